//! Changes that this version does not make, because they need more care than an order of steps: they are refused in the plan.

mod on_kubernetes;

use std::collections::BTreeSet;

use karmaform_model::{Action, Change, ChildChange, ChildStep, Diagnostic, Diagnostics, Object, Scene, Value, same};

use super::arguments::Arguments;
use super::condition::{changes, differs, has_data, is_formed, member_of, members_away, runner, seen, sides};
use super::places::{is_authority, part, part_of, token};
use super::preflight::{quota, quota_of};
use super::roster::roster;
use super::schema::{CLIENT_PORT, PEER_PORT, USER};
use super::{authorities, clocks, moving};
use crate::care::bytes;

pub(super) use on_kubernetes::{grows, grows_apart, relabels};

/// Finds every reason not to make this plan.
pub(crate) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Diagnostics {
    let mut found = Diagnostics::new();
    if is_formed(scene) {
        formed(scene, wanted, &mut found);
    } else {
        unfinished(scene, wanted, &mut found);
        on_kubernetes::kept(scene, wanted, &mut found);
    }
    on_kubernetes::class(scene, wanted, &mut found);
    found.extend(clocks::check(scene, wanted));
    found.into_iter().map(|d| d.at(scene.address)).collect()
}

fn formed(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    // Another place or name gives all members other names, which is not what is to be told.
    on_kubernetes::place(scene, wanted, found);
    if found.has_errors() {
        return;
    }
    if let Some(before) = scene.before {
        arguments(scene, before, wanted, found);
    }
    // The record is written when a whole apply has ended, which none does while there is something on a host that is gone.
    let is_left = |(path, child): (&Vec<ChildStep>, &ChildChange<'_>)| {
        child.in_state && child.unseen && member_of(path).is_some_and(|name| !wanted.members.contains_key(name))
    };
    let is_unfinished = scene.children.iter().any(is_left);
    for name in wanted.members.keys() {
        data(scene, name, wanted, found);
        if !is_unfinished {
            identity(scene, name, found);
        }
        address(scene, name, wanted, found);
    }
    on_kubernetes::check(scene, wanted, found);
    found.extend(authorities::check(scene, wanted));
    found.extend(moving::check(scene, wanted));
    found.extend(outgrown(scene, wanted));
    if is_remade(scene, &token()) {
        found.push(
            Diagnostic::error(
                "The token of a formed cluster can't change",
                "It is a part of the cluster's identity, and members that were formed with it go on using it.",
            )
            .with_hint("If a destruction of this cluster was begun, destroy it to its end first."),
        );
    }
}

/// Arguments that a formed cluster keeps.
fn arguments(scene: &Scene<'_>, before: &Object, wanted: &Arguments, found: &mut Diagnostics) {
    let mut keep = |attribute: &str, now: &str, old: Option<String>, why: &str| {
        if let Some(old) = old.filter(|old| old != now) {
            found.push(
                Diagnostic::error(
                    format!("`{attribute}` of a formed cluster can't be changed yet"),
                    format!("It is \"{old}\" and would be \"{now}\". {why}"),
                )
                .with_hint(format!("Put `{attribute}` back to \"{old}\".")),
            );
        }
    };
    let given = |name: &str| before.get(name).filter(|v| !v.is_null());
    let text = |name: &str, default: &str| given(name).map_or(Some(default), Value::as_str).map(str::to_owned);
    let number = |name: &str, default: i64| given(name).map_or(Some(default), Value::as_i64).map(|n| n.to_string());
    let url = "The cluster and its clients know every member by its URLs, which contain it.";
    keep("client_port", &wanted.client_port.to_string(), number("client_port", CLIENT_PORT), url);
    keep("peer_port", &wanted.peer_port.to_string(), number("peer_port", PEER_PORT), url);
    keep("user", &wanted.user, text("user", USER), "The data belongs to the old user, and etcd could not read it any more.");

    let id = |object: &Object, name: &str| {
        let host = object.get("hosts")?.get(name)?;
        Some(host.get("connection")?.get("id")?.as_str()?.to_owned())
    };
    for name in wanted.members.keys() {
        let now = scene.wanted.and_then(|w| id(w, name));
        if let (Some(old), Some(now)) = (id(before, name), now)
            && old != now
        {
            found.push(
                Diagnostic::error(
                    "A member can't move to another host yet",
                    format!("The member \"{name}\" is on {old} and would be on {now}. Moving it means adding a member and removing one."),
                )
                .with_hint("Give the new host a key of its own in `hosts` and take the old key out, in one change: the new member joins before the old one leaves.")
                .with_hint("If it is the same host under another address, go on managing it by the old one."),
            );
        }
    }
}

/// Whoever has more than it may have takes no more writes, from its restart on. What is restored has a size of its own.
fn outgrown(scene: &Scene<'_>, wanted: &Arguments) -> Option<Diagnostic> {
    let (may, applied) = (quota(wanted), quota_of(scene.before.and_then(|b| b.get("settings")?.as_entries())));
    let is_lowered = may > 0 && (applied <= 0 || may < applied) && wanted.restore.is_none();
    let has = |name: &String| Some((seen(scene, &part(name, "etcd"), "size_bytes")?.as_i64()?, name.clone()));
    let (size, name) = wanted.members.keys().filter_map(has).max().filter(|(size, _)| is_lowered && *size >= may)?;
    let detail = format!(
        "The database of member \"{name}\" has {}, and with `quota-backend-bytes` it could have {}: the cluster would take no writes any more.",
        bytes(size),
        bytes(may)
    );
    let error = Diagnostic::error("A quota that the database has outgrown", detail);
    Some(error.with_hint("Take a larger one. Free pages in the database go back to the disk with `karmaform etcd defrag`."))
}

/// A member keeps its data. One that has lost it takes part again as a new one (`membership`).
fn data(scene: &Scene<'_>, name: &str, wanted: &Arguments, found: &mut Diagnostics) {
    let directory = scene.children.get(&part_of(name, "directory", "data"));
    let goes =
        directory.is_some_and(|d| matches!(d.change.action(), Action::DestroyThenCreate | Action::CreateThenDestroy | Action::Delete));
    if wanted.kubernetes.is_some() {
        return;
    }
    if goes && has_data(scene, name) != Some(false) {
        found.push(Diagnostic::error(
            "A member's data directory can't be replaced",
            format!("The data directory of the member \"{name}\" would be removed and made anew, and its data would be gone."),
        ));
    }
}

/// The cluster knows a member by its peer URL. Told another one, the others would not find it.
fn address(scene: &Scene<'_>, name: &str, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(host) = wanted.members.get(name) else { return };
    if host.address.is_unknown() {
        // Of who is to join `membership` says so.
        let is_known = || roster(scene, wanted).into_iter().flatten().any(|entry| entry.name == name);
        let is_there = scene.children.get(&part(name, "etcd")).is_some_and(|c| c.in_state) || is_known();
        if is_there && changes(scene, &part(name, "environment")) {
            found.push(
                Diagnostic::error(
                    "A member's address is not known yet",
                    format!("Where the member \"{name}\" is can't be told before apply, so this plan can't show that it stays there."),
                )
                .with_hint("Write the address into `addresses`, or apply what the host depends on first with `-target`."),
            );
        }
        return;
    }
    let known = scene.children.get(&part(name, "etcd")).and_then(|c| c.change.before()?.get("peer_url")?.as_str());
    let now: String = wanted.url(host, wanted.peer_port).iter().filter_map(Value::as_str).collect();
    if let Some(known) = known.filter(|k| !k.is_empty() && *k != now) {
        found.push(
            Diagnostic::error(
                "A member's address can't be changed yet",
                format!("The cluster knows the member \"{name}\" by {known}, and it would be told {now}."),
            )
            .with_hint("Keep the address as it is with the argument `addresses`."),
        );
    }
}

/// Another cluster that answers in this one's place is nothing to act on.
fn identity(scene: &Scene<'_>, name: &str, found: &mut Diagnostics) {
    let expected = scene.before.and_then(|b| b.get("cluster_id")).filter(|v| v.as_str().is_some());
    let seen = seen(scene, &part(name, "etcd"), "cluster_id").filter(|v| v.as_str().is_some());
    if let (Some(expected), Some(seen)) = (expected, seen)
        && !same(Some(expected), Some(seen))
        && !is_restored(scene, name, seen)
    {
        found.push(
            Diagnostic::error(
                "Another etcd cluster answers",
                format!(
                    "The member \"{name}\" says that its cluster is {}, but the state knows {}. It was restored, or formed anew, by someone else.",
                    seen.as_str().unwrap_or_default(),
                    expected.as_str().unwrap_or_default()
                ),
            )
            .with_hint("Find out which of the two is right before anything is changed."),
        );
    }
}

/// What was restored has another identity. The cluster's own record is written when all is done, and a member's when it was seen to work.
fn is_restored(scene: &Scene<'_>, name: &str, seen: &Value) -> bool {
    let Some(change) = scene.children.get(&part(name, "etcd")).map(|c| c.change) else { return false };
    let (before, after) = sides(change, "restoration");
    let is_noted = before.is_some_and(|v| !v.is_null()) && same(sides(change, "cluster_id").0, Some(seen));
    is_noted || after.is_some_and(|v| !v.is_null()) && !same(before, after)
}

/// A cluster that no apply finished. As long as nothing was started, everything may change; after that, the list of members is in the data
/// of those that were.
fn unfinished(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let in_scene: BTreeSet<&str> = scene.children.keys().filter_map(|path| member_of(path)).collect();
    let has_unit = |name: &str| scene.children.get(&runner(name, scene)).is_some_and(|c| c.in_state || c.observed.is_some());
    let is_new = |path: &Vec<ChildStep>| !scene.children.get(path).is_some_and(|c| c.in_state);
    let cas = || scene.children.iter().filter(|(path, _)| is_authority(path));
    let ca_is_new = is_new(&token()) || cas().all(|(path, _)| is_new(path));
    // An empty volume is no start: what this state made nobody has written to before there are pods.
    let is_written = |name: &str| has_data(scene, name) == Some(true) && (ca_is_new || wanted.kubernetes.is_none());
    let started: Vec<&str> =
        in_scene.iter().copied().filter(|n| has_unit(n) || is_written(n) || on_kubernetes::is_started(scene)).collect();
    found.extend(founders_away(scene, wanted, &started));
    if started.is_empty() {
        return;
    }
    if ca_is_new {
        lost_state(scene, wanted, found);
        return;
    }
    let mut differences: Vec<String> = Vec::new();
    differences.extend(on_kubernetes::unfinished(scene, wanted));
    for name in in_scene.iter().filter(|n| !wanted.members.contains_key(**n)) {
        differences.push(format!("the member \"{name}\" is not wanted any more"));
    }
    for name in &started {
        let change_of = |path: &[ChildStep]| scene.children.get(path).map(|c| c.change);
        let files = ["environment", "peers"].map(|file| change_of(&part(name, file)));
        for line in files.into_iter().flatten().filter_map(|c| moved(sides(c, "content"))) {
            differences.push(format!("the member \"{name}\" would be told another {line}"));
        }
        for (path, what) in [
            (part_of(name, "directory", "data"), "data directory"),
            (part_of(name, "program", "etcd"), "version or host"),
            (part(name, "user"), "user"),
        ] {
            let is_other = |c: &Change| {
                matches!(c.action(), Action::DestroyThenCreate | Action::CreateThenDestroy)
                    || moving::is_data(&path) && c.action() == Action::Update && differs(c, "path")
            };
            if change_of(&path).is_some_and(is_other) {
                differences.push(format!("the member \"{name}\" would get another {what}"));
            }
        }
    }
    if cas().any(|(_, ca)| authorities::is_reissued(ca)) || is_remade(scene, &token()) {
        differences.push("its certificates or its token would be made anew".to_owned());
    }
    if !differences.is_empty() {
        found.push(
            Diagnostic::error(
                "A cluster that was partly formed can't be changed like this",
                format!(
                    "The first apply did not finish, but it started {} already, and {}. Members of two kinds would not find each other.",
                    started.join(", "),
                    differences.join("; ")
                ),
            )
            .with_hint("Apply once more without this change, or destroy the cluster first: it holds nothing yet."),
        );
    }
}

/// Whoever forms a cluster waits for all that are to be in it, and everything that needs the cluster waits for that.
fn founders_away(scene: &Scene<'_>, wanted: &Arguments, started: &[&str]) -> Option<Diagnostic> {
    let unseen = members_away(scene);
    let away: Vec<&str> = wanted.members.keys().map(String::as_str).filter(|name| unseen.contains(name)).collect();
    if away.is_empty() {
        return None;
    }
    let names = away.join(", ");
    let detail =
        format!("The cluster is formed by all members that it begins with, and the hosts of {names} can't be looked at. Nothing was done.");
    let hint = if started.is_empty() {
        format!(
            "Take {names} out of `hosts`, and put it in again when it answers: it joins the cluster that the others have formed by then."
        )
    } else {
        format!(
            "Others were started to form it with {names}: apply again when it answers. If it never will, destroy the cluster, which \
             holds nothing yet, and take what is left of {names} out of the state (`karmaform state rm`)."
        )
    };
    Some(Diagnostic::error("A host that is to form the cluster does not answer", detail).with_hint(hint))
}

/// The hosts know the cluster and the state does not.
fn lost_state(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let has_unit = |name: &String| scene.children.get(&runner(name, scene)).is_some_and(|c| c.observed.is_some());
    found.push(if wanted.members.keys().any(has_unit) || on_kubernetes::is_started(scene) {
        Diagnostic::error(
            "This cluster exists, but the state does not know it",
            "Its members are there, but the keys of its CAs were in a state that is gone. New CAs would lock out every member and \
             every client at once.",
        )
        .with_hint("Bring the state back from its backup.")
        .with_hint("If the cluster is not needed any more, stop its members and remove its files and data by hand.")
    } else {
        let with_data: Vec<&str> = wanted.members.keys().map(String::as_str).filter(|n| has_data(scene, n) == Some(true)).collect();
        Diagnostic::error(
            "There is data of another cluster already",
            format!("A new cluster starts empty, but for {} there is something in {} already.", with_data.join(", "), place(wanted)),
        )
        .with_hint("Move it away or remove it, or choose another place for the data.")
    });
}

/// Where the data of this cluster would be.
fn place(wanted: &Arguments) -> String {
    match &wanted.kubernetes {
        Some(_) => "its volumes".to_owned(),
        None => format!("{} on their hosts", wanted.data_directory),
    }
}

/// It is made anew, with another identity.
fn is_remade(scene: &Scene<'_>, path: &[ChildStep]) -> bool {
    scene.children.get(path).is_some_and(|c| !matches!(c.change.action(), Action::NoOp | Action::Update | Action::Forget))
}

/// Lines of the environment that say who is where. `None` if they stay, or if a side is not known.
fn moved((before, after): (Option<&Value>, Option<&Value>)) -> Option<&'static str> {
    let (before, after) = (before?.as_str()?, after?.as_str()?);
    let line = |text: &str, name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=').map(str::to_owned));
    [
        ("ETCD_INITIAL_CLUSTER", "list of members"),
        ("ETCD_INITIAL_ADVERTISE_PEER_URLS", "peer address"),
        ("ETCD_ADVERTISE_CLIENT_URLS", "client address"),
        ("ETCD_DATA_DIR", "data directory"),
    ]
    .into_iter()
    .find(|(name, _)| {
        let (old, new) = (line(before, name), line(after, name));
        // A line that someone removed by hand is put back; that moves nothing.
        old.is_some() && old != new
    })
    .map(|(_, what)| what)
}
