//! The order in which what runs on hosts may change: a component on one host after the other, and the API servers before all others. After an
//! API server, and after what serves clusters to it, a gate asks that very host; of the others systemd says that they run. So no more than one of
//! a kind is away because of us.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Arg, Change, ChildChange, ChildStep, Choreography, GateSpec, Point, Scene, Value};

use super::{Hosts, balancer, homes, host_at, unit_at, unit_of};
use crate::plane::arguments::Arguments;
use crate::plane::choreography::{ANSWERS, is_unchanged};
use crate::plane::places::api;
use crate::plane::store::prefix_path;
use crate::plane::{pki, secrets};
use crate::versions::Component;

/// How long an API server may take to answer again, in seconds.
const LIMIT: u64 = 180;
/// What an API server serves once the aggregated one beside it does.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1";
/// By what it finds that one, among the objects inside the Karmada API.
const FOUND_BY: [&str; 2] = ["service karmada-aggregated-apiserver", "apiservice v1alpha1.cluster.karmada.io"];

/// Adds gates and orderings for the changes of units.
pub(crate) fn roll(scene: &Scene<'_>, wanted: &Arguments, hosts: &Hosts, choreography: &mut Choreography) {
    let away = hosts_away(scene);
    let mut last_server = None;
    for component in wanted.components.iter().map(|(c, _)| *c) {
        let mut previous: Option<Point> = last_server.clone();
        // The last one that can be reached: nobody else waits for one that is away.
        let mut server: Option<Point> = None;
        let mut homes = homes(wanted, hosts, component);
        // Whoever is away comes last: what waits for it is not done.
        homes.sort_by_key(|(name, _)| away.contains(name.as_str()));
        for (name, _) in homes {
            let path = unit_of(name, component);
            if !scene.children.get(&path).is_some_and(|c| is_restarted(scene, c)) {
                continue;
            }
            // What is replaced is taken away before the API server that it works with is, whatever the order of hosts.
            let is_replaced = matches!(scene.children[&path].change, Change::Replace { .. });
            let waits = matches!(component, Component::ApiServer) || !is_replaced;
            let unit = Point::Child(path);
            if let Some(previous) = previous.filter(|_| waits) {
                choreography.orderings.push((previous, unit.clone()));
            }
            previous = Some(match gate(scene, wanted, hosts, (component, name)) {
                Some(gate) => {
                    let point = Point::Gate(gate.name.clone());
                    choreography.orderings.push((unit, point.clone()));
                    choreography.gates.push(gate);
                    point
                }
                None => unit,
            });
            if !away.contains(name.as_str()) {
                server.clone_from(&previous);
            }
        }
        if matches!(component, Component::ApiServer) {
            last_server = server;
        }
    }
    if let Some(last) = last_server.filter(|_| choreography.gates.iter().any(|g| g.name == ANSWERS)) {
        choreography.orderings.push((last, Point::Gate(ANSWERS.to_owned())));
    }
    leaving(scene, wanted, &away, choreography);
    outdated(scene, choreography);
    balancer::roll(scene, wanted, hosts, choreography);
}

/// A program of before goes when nothing on its host runs it any more: until then what ends could not start again.
fn outdated(scene: &Scene<'_>, choreography: &mut Choreography) {
    for (path, _) in scene.children.iter().filter(|(_, c)| c.change.action() == Action::Delete) {
        let [host, program] = &path[..] else { continue };
        if program.name != "program" && program.name != "package" {
            continue;
        }
        let runs =
            |(p, c): &(&Vec<ChildStep>, &ChildChange<'_>)| unit_at(p).is_some() && p[0] == *host && c.change.action() == Action::Update;
        for (unit, _) in scene.children.iter().filter(runs) {
            choreography.orderings.push((Point::Child(unit.clone()), Point::Child(path.clone())));
        }
    }
}

/// A unit on a host that goes ends when those that stay or come run.
fn leaving(scene: &Scene<'_>, wanted: &Arguments, away: &BTreeSet<&str>, choreography: &mut Choreography) {
    for (path, _) in scene.children.iter().filter(|(_, c)| c.in_state && c.change.action() == Action::Delete) {
        let Some(component) = unit_at(path).and_then(|(_, name)| Component::argument(name)) else { continue };
        for stays in awaited(scene, away, wanted.runners(component)) {
            choreography.orderings.push((Point::Child(stays), Point::Child(path.clone())));
        }
    }
}

/// Of what stays somewhere, what changes and is waited for by what leaves elsewhere: not what is away, unless all of it is. Somebody has to be
/// there.
pub(super) fn awaited(scene: &Scene<'_>, away: &BTreeSet<&str>, stays: Vec<Vec<ChildStep>>) -> impl Iterator<Item = Vec<ChildStep>> {
    let is_away = |path: &Vec<ChildStep>| host_at(path).is_some_and(|host| away.contains(host));
    let all_away = stays.iter().all(is_away);
    let changes = |path: &Vec<ChildStep>| scene.children.get(path).is_some_and(|c| !is_unchanged(c.change));
    stays.into_iter().filter(move |path| changes(path) && (all_away || !is_away(path)))
}

/// The hosts that do not answer. Of what is new there nobody asked, so one part that was asked for stands for all.
pub(crate) fn hosts_away<'s>(scene: &'s Scene<'_>) -> BTreeSet<&'s str> {
    scene.children.iter().filter(|(_, child)| child.unseen).filter_map(|(path, _)| host_at(path)).collect()
}

/// What is on hosts that do not answer.
pub(crate) fn away(scene: &Scene<'_>) -> Vec<Vec<ChildStep>> {
    let hosts = hosts_away(scene);
    scene.children.keys().filter(|path| host_at(path).is_some_and(|host| hosts.contains(host))).cloned().collect()
}

/// Where data is to be deleted, also a program that can't be seen has to be stopped before: it would write what nobody deletes any more.
pub(crate) fn written_until_gone(scene: &Scene<'_>) -> Vec<(Point, Point)> {
    let Some(prefix) = scene.children.get(&prefix_path()) else { return Vec::new() };
    if prefix.change.before().and_then(|b| b.get("on_destroy")).and_then(Value::as_str) != Some("delete") {
        return Vec::new();
    }
    let writes = |path: &&Vec<ChildStep>| unit_at(path).and_then(|(_, name)| Component::argument(name)).is_some_and(secrets::uses_etcd);
    scene.children.keys().filter(writes).map(|unit| (Point::Child(unit.clone()), Point::Child(prefix_path()))).collect()
}

/// True for what stops what runs. Under another key of its host the state does not know it yet, and what was applied before runs all the same.
pub(super) fn is_restarted(scene: &Scene<'_>, child: &ChildChange<'_>) -> bool {
    (child.in_state || scene.before.is_some()) && matches!(child.change, Change::Update { .. } | Change::Replace { .. })
}

/// True if API servers are told anew where the aggregated one is, or whom to trust there. That is done when all of it runs, on every host: whoever waited
/// on one host for what it serves before the next one's turn would wait for ever, as after an apply that was cut off, or with another CA.
fn is_found_anew(scene: &Scene<'_>) -> bool {
    FOUND_BY.iter().any(|key| scene.children.get(&api(key)).is_some_and(|c| !is_unchanged(c.change)))
}

/// What must be so on a host before the next one's turn.
fn gate(scene: &Scene<'_>, plane: &Arguments, hosts: &Hosts, (component, name): (Component, &str)) -> Option<GateSpec> {
    // Whoever has no API server beside it is not asked through one.
    let (_, host) = homes(plane, hosts, Component::ApiServer).into_iter().find(|(n, _)| *n == name)?;
    let (what, path) = match component {
        Component::ApiServer => (format!("the Karmada API on {name} answers"), "/readyz"),
        Component::AggregatedApiServer if is_found_anew(scene) => return None,
        Component::AggregatedApiServer => (format!("the Karmada API on {name} serves clusters"), CLUSTERS),
        _ => return None,
    };
    let mut connection = pki::connection(plane);
    connection.set(&["address"], format!("https://127.0.0.1:{}", hosts.ports.of(Component::ApiServer)).into());
    connection.set(&["via"], host.connection.clone().into());
    let arguments = BTreeMap::from([("cluster".to_owned(), connection), ("path".to_owned(), Arg::from(path))]);
    Some(GateSpec { name: what, gate: "kubernetes_ready".to_owned(), arguments, limit: LIMIT, acts: false })
}
