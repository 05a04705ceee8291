//! What is looked at on hosts before a plan is made: clocks, and before components come there whether the disk has room for their programs, and what they
//! would suffer from.

use std::collections::BTreeMap;

use karmaform_model::{Action, ChildStep, Diagnostic, Diagnostics, Key, Scene, concerns, firewalls, free_bytes};

use super::{Host, Hosts, balancer, clocks, homes, programs, unit_at};
use crate::plane::arguments::Arguments;
use crate::versions::Component;

/// What a program needs at least, in bytes: Karmada's have 45 to 80 MB, an API server 100.
const PROGRAM: i64 = 64 << 20;

/// The components that are reached from other hosts.
const REACHED: [Component; 5] =
    [Component::ApiServer, Component::AggregatedApiServer, Component::Webhook, Component::Search, Component::MetricsAdapter];

/// Hosts without room for the programs that are to come, and those whose clocks would not take certificates that are made now.
pub(crate) fn check(scene: &Scene<'_>, plane: &Arguments, hosts: &Hosts) -> Diagnostics {
    let mut coming: BTreeMap<&str, i64> = BTreeMap::new();
    for (path, _) in scene.children.iter().filter(|(_, c)| c.change.action() == Action::Create) {
        if let [ChildStep { key: Some(Key::Name(host)), .. }, ChildStep { name, .. }] = &path[..]
            && name == "program"
        {
            *coming.entry(host).or_default() += 1;
        }
    }
    let root = programs::root(plane);
    let mut found: Diagnostics = clocks::check(scene, hosts).into_iter().collect();
    for (name, count) in coming {
        let Some(free) = hosts.all.get(name).and_then(|host| free_bytes(&host.facts, &root)) else { continue };
        let needed = count * PROGRAM;
        if free < needed {
            let detail = format!(
                "On the host \"{name}\" {} MiB are free where {root} is to be; {count} programs need at least {} MiB.",
                free >> 20,
                needed >> 20
            );
            found.push(
                Diagnostic::error("No room for programs", detail).with_hint("Make room on that host, then plan again.").at(scene.address),
            );
        }
    }
    found
}

/// Clocks that are off, and what there is to know of hosts that get something that runs.
pub(crate) fn impact(scene: &Scene<'_>, plane: &Arguments, hosts: &Hosts) -> Vec<String> {
    let gets = |name: &str| {
        let is_new = |(path, c): (&Vec<ChildStep>, &karmaform_model::ChildChange<'_>)| {
            unit_at(path).is_some_and(|(host, _)| host == name) && !c.in_state && c.change.action() == Action::Create
        };
        scene.children.iter().any(is_new)
    };
    let new: Vec<(&String, &Host)> = hosts.all.iter().filter(|(name, _)| gets(name)).collect();
    let facts = || new.iter().map(|(name, host)| (name.as_str(), &host.facts));
    let mut lines: Vec<String> = clocks::line(hosts).into_iter().collect();
    lines.extend(concerns(facts()));
    lines.extend(firewalls(facts()).map(|guarded| let_through(plane, hosts, &guarded)));
    lines
}

/// What must get through to hosts that keep others out.
fn let_through(plane: &Arguments, hosts: &Hosts, guarded: &str) -> String {
    let reached = REACHED.into_iter().filter(|c| !homes(plane, hosts, *c).is_empty());
    let mut ports: Vec<i64> = reached.map(|c| hosts.ports.of(c)).collect();
    let ours = hosts.balancer.as_ref().filter(|b| b.ours.is_some());
    ports.extend(ours.map(|b| b.port));
    let ports = ports.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let and = if ours.is_some() { " and IP protocol 112 (VRRP)" } else { "" };
    let people = ours.map_or_else(|| hosts.ports.of(Component::ApiServer), |b: &balancer::Balancer| b.port);
    format!("firewalls on {guarded} must let the other hosts reach TCP ports {ports}{and}, and people and members TCP port {people}")
}
