//! Asks the network whether anybody has a virtual IP before a keepalived takes it: two who have one address take it from each other, and no plan sees
//! who is none of the hosts.

use std::collections::BTreeMap;

use karmaform_model::{Action, Arg, ChildStep, Choreography, GateSpec, Point, Scene};

use super::super::Hosts;
use super::super::roll::hosts_away;
use super::held::is_led_to;
use super::{Balancer, Program, on, unit_of};
use crate::plane::arguments::Arguments;
use crate::plane::choreography::is_unchanged;

/// How long the answer may take, in seconds.
const LIMIT: u64 = 60;
const ADVICE: &str = "Choose a free address of the hosts' network for `load_balancer.vip`, or take this one away from who has it.";

/// Adds the gate, where nobody has been led to the address so far. One of the hosts may have it by now, from an apply that was cut off.
pub(super) fn ask(scene: &Scene<'_>, wanted: &Arguments, hosts: &Hosts, choreography: &mut Choreography) {
    let Some(Balancer { address, ours: Some(ours), .. }) = hosts.balancer.as_ref() else { return };
    let Some(vip) = address.as_str().filter(|vip| !is_led_to(scene, vip)) else { return };
    let away = hosts_away(scene);
    let homes = on(wanted, hosts);
    let Some((_, asks)) = homes.iter().find(|(name, _)| !away.contains(name.as_str())) else { return };
    let takes =
        |path: &Vec<ChildStep>| scene.children.get(path).is_some_and(|c| !is_unchanged(c.change) && c.change.action() != Action::Delete);
    let takers: Vec<_> = homes.iter().map(|(name, _)| unit_of(name, Program::Keepalived)).filter(takes).collect();
    if takers.is_empty() {
        return;
    }
    let name = format!("nobody else has {vip}");
    let owners: Vec<Arg> = hosts.all.values().map(|host| host.address.clone().into()).collect();
    let arguments = BTreeMap::from([
        ("host".to_owned(), Arg::from(asks.connection.clone())),
        ("address".to_owned(), vip.into()),
        ("interface".to_owned(), ours.interface(asks).into()),
        ("owners".to_owned(), Arg::List(owners)),
        ("advice".to_owned(), ADVICE.into()),
    ]);
    choreography.orderings.extend(takers.into_iter().map(|path| (Point::Gate(name.clone()), Point::Child(path))));
    choreography.gates.push(GateSpec { name, gate: "ssh_unused".to_owned(), arguments, limit: LIMIT, acts: false });
}
