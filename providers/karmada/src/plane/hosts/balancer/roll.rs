//! The order in which the parts of a load balancer of ours may change, and that the API answers behind it in the end.

use std::collections::BTreeMap;

use karmaform_model::{Action, Arg, ChildChange, ChildStep, Choreography, GateSpec, Point, Scene, Type, Value};

use super::super::roll::{awaited, hosts_away, is_restarted};
use super::super::{Hosts, homes, on_of, unit_at, url};
use super::{Balancer, Program, listeners, on, program_at, unit_of, unused};
use crate::plane::arguments::Arguments;
use crate::plane::choreography::{ANSWERS, is_unchanged};
use crate::plane::pki;
use crate::versions::Component;

/// How long the API may take to answer there, in seconds: an API server reads a new certificate within a minute.
const LIMIT: u64 = 180;

/// Adds orderings for the changes of units: one host after the other, and those of a host that leaves last. Then the gate.
pub(in super::super) fn roll(scene: &Scene<'_>, wanted: &Arguments, hosts: &Hosts, choreography: &mut Choreography) {
    unused::ask(scene, wanted, hosts, choreography);
    let away = hosts_away(scene);
    let mut changed = Vec::new();
    for program in Program::ALL {
        let mut previous: Option<Vec<ChildStep>> = None;
        let mut homes = on(wanted, hosts);
        // Whoever is away comes last: what waits for it is not done.
        homes.sort_by_key(|(name, _)| away.contains(name.as_str()));
        for (name, _) in homes {
            let path = unit_of(name, program);
            let Some(child) = scene.children.get(&path).filter(|c| !is_unchanged(c.change)) else { continue };
            if is_restarted(scene, child)
                && let Some(previous) = previous.replace(path.clone())
            {
                // Also what it is made of stays as it is until it is its host's turn: nothing that was refused on one goes to the next.
                for own in parts_of(name, program).into_iter().chain([path.clone()]).filter(|own| scene.children.contains_key(own)) {
                    choreography.orderings.push((Point::Child(previous.clone()), Point::Child(own)));
                }
            }
            changed.push(path);
        }
    }
    for path in scene.children.iter().filter(|(_, c)| is_removed(c)).map(|(p, _)| p) {
        let alike: Vec<_> = on(wanted, hosts).into_iter().filter_map(|(name, _)| Some(unit_of(name, program_at(path)?))).collect();
        for stays in awaited(scene, &away, alike) {
            choreography.orderings.push((Point::Child(stays), Point::Child(path.clone())));
        }
    }
    let Some(balancer) = hosts.balancer.as_ref().filter(|b| b.ours.is_some() && !changed.is_empty()) else { return };
    let gate = gate(wanted, balancer);
    let point = Point::Gate(gate.name.clone());
    let servers = wanted.runners(Component::ApiServer);
    let servers = servers.into_iter().filter(|p| scene.children.get(p).is_some_and(|c| !is_unchanged(c.change)));
    // It is one address: it answers without those that are away.
    for path in changed.into_iter().chain(servers).filter(|path| !choreography.away.contains(path)) {
        choreography.orderings.push((Point::Child(path), point.clone()));
    }
    if choreography.gates.iter().any(|g| g.name == ANSWERS) {
        choreography.orderings.push((Point::Gate(ANSWERS.to_owned()), point));
    }
    choreography.gates.push(gate);
}

/// What a unit is made of: what it runs, and what that reads.
fn parts_of(host: &str, program: Program) -> [Vec<ChildStep>; 2] {
    let file = format!("load-balancer/{}", program.configuration());
    [on_of(host, "program", program.name()), on_of(host, "file", &file)]
}

fn is_made(child: &ChildChange<'_>) -> bool {
    !child.in_state && child.change.action() == Action::Create
}

fn is_removed(child: &ChildChange<'_>) -> bool {
    child.in_state && child.change.action() == Action::Delete
}

/// The API answers at the virtual IP, asked from a host.
fn gate(plane: &Arguments, balancer: &Balancer) -> GateSpec {
    let mut connection = pki::connection(plane);
    connection.set(&["address"], url(balancer.address.clone(), balancer.port));
    let arguments = BTreeMap::from([("cluster".to_owned(), connection), ("path".to_owned(), Arg::from("/readyz"))]);
    let name = format!("the Karmada API answers at {}", balancer.address.as_str().unwrap_or_default());
    GateSpec { name, gate: "kubernetes_ready".to_owned(), arguments, limit: LIMIT, acts: false }
}

/// That nothing is in front of the API servers of a new control plane, and what people do without.
fn alone(scene: &Scene<'_>, wanted: &Arguments, hosts: &Hosts) -> Option<String> {
    let names: Vec<&str> = homes(wanted, hosts, Component::ApiServer).into_iter().map(|(name, _)| name.as_str()).collect();
    let (first, others) = names.split_first().filter(|(_, others)| !others.is_empty())?;
    let is_alone = hosts.balancer.is_none() && scene.before.is_none();
    is_alone.then(|| {
        let others = others.join(", ");
        format!(
            "the kubeconfig leads to the API server on {first}, and by contexts of their own to those on {others}; with `load_balancer` it is \
             one address"
        )
    })
}

/// What becomes of it, in plain words.
pub(crate) fn impact(scene: &Scene<'_>, wanted: &Arguments, hosts: &Hosts) -> Vec<String> {
    let with = |program: Program, fits: &dyn Fn(&ChildChange<'_>) -> bool| -> Vec<&str> {
        let of = scene.children.iter().filter(|(p, c)| program_at(p) == Some(program) && fits(c));
        of.filter_map(|(p, _)| unit_at(p)).map(|(host, _)| host).collect()
    };
    let all = listeners(wanted, hosts).len();
    let vip = hosts.balancer.as_ref().and_then(|b| b.address.as_str()).unwrap_or_default();
    let mut lines: Vec<String> = alone(scene, wanted, hosts).into_iter().collect();
    let endpoint = wanted.endpoint().resolve(&|_, _| Value::unknown(Type::String));
    let before = scene.before.and_then(|b| b.get("endpoint")).and_then(Value::as_str);
    if let (Some(before), Some(now)) = (before, endpoint.as_str())
        && before != now
    {
        lines.push(format!("the API is reached at {now} in place of {before}: kubeconfigs have to be handed out again"));
    }
    let mut say = |names: Vec<&str>, line: &dyn Fn(String) -> String| {
        if !names.is_empty() {
            lines.push(line(names.join(", ")));
        }
    };
    let restarted = |child: &ChildChange<'_>| is_restarted(scene, child);
    let made = with(Program::Haproxy, &is_made);
    let is_new = made.len() == all;
    say(made, &|names| match is_new {
        true => format!("makes a load balancer with the virtual IP {vip}"),
        false => format!("puts the load balancer on {names}, too"),
    });
    say(with(Program::Haproxy, &restarted), &|names| {
        format!("restarts haproxy on {names}, one host after the other: connections through it are made anew")
    });
    say(with(Program::Keepalived, &restarted), &|names| {
        format!("restarts keepalived on {names}, one host after the other: the virtual IP may move, and connections are made anew")
    });
    say(with(Program::Haproxy, &is_removed), &|names| match all {
        0 => "removes the load balancer: whoever uses its virtual IP loses the API".to_owned(),
        _ => format!("takes the load balancer away from {names}"),
    });
    lines
}
