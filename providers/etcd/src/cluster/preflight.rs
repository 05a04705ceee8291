//! What is looked at on hosts before a plan is made: clocks, and before a new member is made its disk, and what etcd would suffer from there.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{
    Action, Arg, Choreography, Diagnostic, Diagnostics, GateSpec, Object, Point, Scene, Value, concerns, firewalls, free_bytes,
};

use super::arguments::Arguments;
use super::clocks;
use super::condition::{member_of, seen};
use super::hosts::Host;
use super::membership::Membership;
use super::moving::Moving;
use super::places::part;
use crate::care::{QUOTA, bytes as size};

/// How long to wait for an answer of the disk, in seconds.
const LIMIT: u64 = 60;
/// Less than this is no place for a database, in bytes: the log alone has files of 64 MB.
const LEAST: i64 = 256 << 20;

/// Adds the gates that try the disks of new members, and lines on what else is not as it should be.
///
/// # Errors
/// A host without any room, or where something else listens already.
pub(crate) fn look(
    scene: &Scene<'_>,
    wanted: &Arguments,
    membership: &Membership,
    choreography: &mut Choreography,
) -> Result<(), Diagnostics> {
    if wanted.kubernetes.is_some() {
        return Ok(());
    }
    choreography.impact.extend(clocks::line(wanted));
    let is_new = |name: &str| scene.children.get(&part(name, "unit")).is_some_and(|c| !c.in_state && c.change.action() == Action::Create);
    let new: Vec<(&String, &Host)> = wanted.members.iter().filter(|(name, _)| is_new(name)).collect();
    let mut full = Diagnostics::new();
    for (name, host) in &new {
        full.extend(taken(wanted, name, host).map(|d| d.at(scene.address)));
        if wanted.disk_limit > 0 {
            disk(scene, wanted, name, host, choreography);
        }
    }
    // Whoever begins anew is sent the whole database. If its first start met the end of the disk, the next would, and what that left is moved aside there.
    let joining: BTreeSet<&str> = membership.beginning().collect();
    let sizes =
        scene.children.values().filter(|c| c.resource_type == "etcd_member").filter_map(|c| c.observed?.get("size_bytes")?.as_i64());
    let database = sizes.max().unwrap_or(0);
    for (name, host) in wanted.members.iter().filter(|(name, _)| is_new(name) || joining.contains(name.as_str())) {
        let Some(free) = free_bytes(&host.facts, &wanted.data_directory) else { continue };
        let sent = if joining.contains(name.as_str()) { database } else { 0 };
        if free < LEAST.saturating_add(sent) {
            full.push(no_room(wanted, name, free, sent, is_new(name)).at(scene.address));
        } else if is_new(name) && (1..).contains(&quota(wanted)) && free < quota(wanted) {
            let line = format!("{name} has {} free for its data, which may grow to {}", size(free), size(quota(wanted)));
            choreography.impact.push(line);
        }
    }
    let facts = || new.iter().map(|(name, host)| (name.as_str(), &host.facts));
    choreography.impact.extend(concerns(facts()));
    choreography.impact.extend(firewalls(facts()).map(|guarded| let_through(wanted, &guarded)));
    if full.is_empty() { Ok(()) } else { Err(full) }
}

fn no_room(wanted: &Arguments, name: &str, free: i64, sent: i64, is_new: bool) -> Diagnostic {
    let place = &wanted.data_directory;
    let mut detail = format!("Where {place} is to be on the host of member \"{name}\", {} are free.", size(free));
    if sent > 0 {
        detail.push_str(&format!(" It is sent the cluster's database of {}, and needs {} more to go on with.", size(sent), size(LEAST)));
    }
    let error = Diagnostic::error("No room for a member", detail);
    match (is_new, sent) {
        (true, 0) => error.with_hint("Make room, or choose another `data_directory`."),
        (true, _) => error.with_hint("Make room, or choose another host."),
        (false, _) => {
            error.with_hint(format!("Make room there. What was moved aside when it was replaced before is in {place}.replaced-*."))
        }
    }
}

/// Adds a line on data that has to be copied, where it goes to another file system.
///
/// # Errors
/// There is no room for it. What is on a host is asked there once more, before its member is stopped.
pub(crate) fn room_to_move(
    scene: &Scene<'_>,
    wanted: &Arguments,
    moving: &Moving,
    choreography: &mut Choreography,
) -> Result<(), Diagnostics> {
    let (mut full, mut copied, mut most) = (Diagnostics::new(), Vec::new(), 0);
    for (name, places) in &moving.members {
        let facts = wanted.members.get(name).map(|host| &host.facts);
        let free = |place: &str| free_bytes(facts?, place);
        let Some((there, here)) = free(&moving.to).zip(places.first().and_then(|place| free(place))) else { continue };
        // The same free bytes are those of the same file system.
        if there == here {
            continue;
        }
        let needed = seen(scene, &part(name, "etcd"), "size_bytes").and_then(Value::as_i64).unwrap_or(0);
        if there < needed.saturating_add(LEAST) {
            let detail = format!(
                "The database of member \"{name}\" has {}, and where {} is to be {} are free. It takes {} more to go on with.",
                size(needed),
                moving.to,
                size(there),
                size(LEAST)
            );
            let hint = format!("Make room there, or put `data_directory` back to \"{}\".", moving.from());
            full.push(Diagnostic::error("No room for the data of a member", detail).with_hint(hint).at(scene.address));
        }
        copied.push(name.as_str());
        most = most.max(needed);
    }
    if !copied.is_empty() {
        let names = copied.join(", ");
        choreography
            .impact
            .push(format!("on {names} that is another file system: {} and more are copied while the member is down", size(most)));
    }
    if full.is_empty() { Ok(()) } else { Err(full) }
}

/// Somebody else's program, or another cluster's member, listens where a new one is to: it would never start.
fn taken<'a>(wanted: &'a Arguments, name: &'a str, host: &'a Host) -> impl Iterator<Item = Diagnostic> + 'a {
    let listening = host.facts.get("listening_ports").and_then(Value::as_items).unwrap_or_default();
    let ports = [("client_port", wanted.client_port), ("peer_port", wanted.peer_port)];
    let is_taken = move |port: u16| listening.iter().any(|p| p.as_i64() == Some(i64::from(port)));
    ports.into_iter().filter(move |(_, port)| is_taken(*port)).map(move |(argument, port)| {
        let detail = format!("The member \"{name}\" is to listen on port {port} of its host, but something else does already.");
        Diagnostic::error("A port that is taken", detail)
            .with_hint(format!("`ss -ltnp sport = :{port}` on that host says what it is. `{argument}` gives the members another one."))
    })
}

/// Tries a disk before anything is made on its host.
fn disk(scene: &Scene<'_>, wanted: &Arguments, name: &str, host: &Host, choreography: &mut Choreography) {
    let gate = format!("the disk of member[\"{name}\"] is fast enough");
    let advice = "Or allow more with `disk_limit`; 0 does not try.";
    let arguments = BTreeMap::from([
        ("host".to_owned(), Arg::from(host.connection.clone())),
        ("path".to_owned(), wanted.data_directory.as_str().into()),
        ("limit".to_owned(), wanted.disk_limit.into()),
        ("advice".to_owned(), advice.into()),
    ]);
    let made = scene.children.iter().filter(|(path, c)| member_of(path) == Some(name) && c.change.action() == Action::Create);
    choreography.orderings.extend(made.map(|(path, _)| (Point::Gate(gate.clone()), Point::Child(path.clone()))));
    choreography.gates.push(GateSpec { name: gate, gate: "ssh_disk".to_owned(), arguments, limit: LIMIT, acts: false });
}

/// What must get through to new members.
fn let_through(wanted: &Arguments, guarded: &str) -> String {
    let [peer, client] = [wanted.peer_port, wanted.client_port];
    format!("firewalls on {guarded} must let members reach TCP port {peer}, members and clients TCP port {client}")
}

/// What the database may grow to, in bytes; below zero: without end.
pub(crate) fn quota(wanted: &Arguments) -> i64 {
    quota_of(wanted.settings.as_ref())
}

/// The same of settings.
pub(crate) fn quota_of(settings: Option<&Object>) -> i64 {
    let setting = settings.and_then(|s| s.get("quota-backend-bytes"));
    match setting.and_then(Value::as_str).and_then(|q| q.parse().ok()) {
        Some(0) | None => QUOTA,
        Some(quota) => quota,
    }
}
