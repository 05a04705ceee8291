//! The order in which what runs on hosts may change: a component on one host after the other, and the API servers before all others. After an
//! API server, and after what serves clusters to it, a gate asks that very host; of the others systemd says that they run. So no more than one of
//! a kind is away because of us.

use std::collections::BTreeMap;

use karmaform_model::{Action, Arg, Change, ChildChange, ChildStep, Choreography, GateSpec, Point, Scene};

use super::{Hosts, balancer, homes, unit_at, unit_of};
use crate::plane::arguments::Arguments;
use crate::plane::choreography::{ANSWERS, is_unchanged};
use crate::plane::pki;
use crate::versions::Component;

/// How long an API server may take to answer again, in seconds.
const LIMIT: u64 = 180;
/// What an API server serves once the aggregated one beside it does.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1";

/// Adds gates and orderings for the changes of units.
pub(crate) fn roll(scene: &Scene<'_>, wanted: &Arguments, hosts: &Hosts, choreography: &mut Choreography) {
    let is_away = |name: &str, component| scene.children.get(&unit_of(name, component)).is_some_and(|c| c.unseen);
    let mut last_server = None;
    for component in wanted.components.iter().map(|(c, _)| *c) {
        let mut previous: Option<Point> = last_server.clone();
        // The last one that can be reached: nobody else waits for one that is away.
        let mut server: Option<Point> = None;
        let mut homes = homes(wanted, hosts, component);
        // Whoever is away comes last: what waits for it is not done.
        homes.sort_by_key(|(name, _)| is_away(name, component));
        for (name, _) in homes {
            let path = unit_of(name, component);
            if !scene.children.get(&path).is_some_and(|c| c.in_state && restarts(c.change)) {
                continue;
            }
            // What is replaced is taken away before the API server that it works with is, whatever the order of hosts.
            let is_replaced = matches!(scene.children[&path].change, Change::Replace { .. });
            let waits = matches!(component, Component::ApiServer) || !is_replaced;
            let unit = Point::Child(path);
            if let Some(previous) = previous.filter(|_| waits) {
                choreography.orderings.push((previous, unit.clone()));
            }
            previous = Some(match gate(wanted, hosts, component, name) {
                Some(gate) => {
                    let point = Point::Gate(gate.name.clone());
                    choreography.orderings.push((unit, point.clone()));
                    choreography.gates.push(gate);
                    point
                }
                None => unit,
            });
            if !is_away(name, component) {
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
    leaving(scene, wanted, choreography);
    outdated(scene, choreography);
    balancer::roll(scene, wanted, hosts, choreography);
}

/// A program of before goes when nothing on its host runs it any more: until then what ends could not start again.
fn outdated(scene: &Scene<'_>, choreography: &mut Choreography) {
    for (path, _) in scene.children.iter().filter(|(_, c)| c.change.action() == Action::Delete) {
        let [host, program] = &path[..] else { continue };
        if program.name != "program" {
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
fn leaving(scene: &Scene<'_>, wanted: &Arguments, choreography: &mut Choreography) {
    for (path, _) in scene.children.iter().filter(|(_, c)| c.in_state && c.change.action() == Action::Delete) {
        let Some(component) = unit_at(path).and_then(|(_, name)| Component::argument(name)) else { continue };
        for stays in wanted.runners(component).into_iter().filter(|p| scene.children.get(p).is_some_and(|c| !is_unchanged(c.change))) {
            choreography.orderings.push((Point::Child(stays), Point::Child(path.clone())));
        }
    }
}

/// True for what stops what runs.
fn restarts(change: &Change) -> bool {
    matches!(change, Change::Update { .. } | Change::Replace { .. })
}

/// What must be so on a host before the next one's turn.
fn gate(plane: &Arguments, hosts: &Hosts, component: Component, name: &str) -> Option<GateSpec> {
    // Whoever has no API server beside it is not asked through one.
    let (_, host) = homes(plane, hosts, Component::ApiServer).into_iter().find(|(n, _)| *n == name)?;
    let (what, path) = match component {
        Component::ApiServer => (format!("the Karmada API on {name} answers"), "/readyz"),
        Component::AggregatedApiServer => (format!("the Karmada API on {name} serves clusters"), CLUSTERS),
        _ => return None,
    };
    let mut connection = pki::connection(plane);
    connection.set(&["address"], format!("https://127.0.0.1:{}", hosts.ports.of(Component::ApiServer)).into());
    connection.set(&["via"], host.connection.clone().into());
    let arguments = BTreeMap::from([("cluster".to_owned(), connection), ("path".to_owned(), Arg::from(path))]);
    Some(GateSpec { name: what, gate: "kubernetes_ready".to_owned(), arguments, limit: LIMIT, acts: false })
}
