//! Another CA in place of one that a formed cluster has: which changes are safe, and what they mean.
//!
//! Two things are known of before: what the last apply that ended had, which clients have learned of; and what the state says of each certificate
//! and of each member, which also is true after an apply that did not end.

use std::collections::BTreeMap;

use karmaform_model::{Action, Change, ChildChange, ChildStep, Diagnostic, Diagnostics, Key, Scene, Value, same};

use super::super::arguments::Arguments;
use super::super::condition::{Condition, Member, differs, is_unchanged, member_of, runner, sides};
use super::super::membership::Membership;
use super::super::places::{CLIENT_CA, PEER_CA, authority, client_certificate, is_authority, number_of_authority, part, part_of};
use super::Authorities;

const ROLES: [(&str, &str); 2] = [(CLIENT_CA, "of clients and servers"), (PEER_CA, "between members")];

/// Every reason not to change the CAs of a formed cluster like this.
pub(in crate::cluster) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Diagnostics {
    let mut found = Diagnostics::new();
    let (now, former) = (&wanted.authorities, former(scene));
    for (role, what) in ROLES {
        for number in now.trusted.iter().filter(|n| former.as_ref().is_none_or(|f| f.trusted.contains(n))) {
            let Some(ca) = scene.children.get(&authority(role, *number)).filter(|ca| is_reissued(ca)) else { continue };
            // One that nothing comes from can be any: whoever trusts it learns of the new one as of any that is added.
            let signs = [Some(now), former.as_ref()].into_iter().flatten().any(|a| a.signs_with == *number);
            let is_in_use = signs || leaves(wanted).any(|(of, path)| of == role && is_perhaps_of(scene, role, &path, *number));
            // Pods are made anew for another number alone, and etcd reads CAs only when it starts.
            if wanted.kubernetes.is_some() || is_in_use && !keeps_key(ca.change) {
                found.push(replaced(what, ca.in_state));
            }
        }
    }
    let Some(former) = former else { return found };
    if !former.trusted.contains(&now.signs_with) {
        found.push(not_trusted_yet(now, &former));
    } else if let Some(who) = trust_changes(scene, wanted).filter(|_| now.signs_with != former.signs_with) {
        found.push(not_both(now, &former, who));
    }
    found.extend(dropping(scene, wanted, &former));
    found
}

/// Why a CA can't be dropped.
fn dropping(scene: &Scene<'_>, wanted: &Arguments, former: &Authorities) -> Option<Diagnostic> {
    if !wanted.authorities.trusted.contains(&former.signs_with) {
        return Some(signs_still(former, former.signs_with));
    }
    let gone: Vec<i64> = dropped(scene, wanted).into_iter().filter_map(number_of_authority).collect();
    // A run that did not end has signed with it already.
    let has_signed = |number: &&i64| {
        let is_of_it = |(role, path): (&str, Vec<ChildStep>)| {
            scene.children.get(&path).is_some_and(|leaf| leaf.in_state && is_signed_by(scene, leaf.change, role, **number))
        };
        leaves(wanted).any(is_of_it)
    };
    if let Some(number) = gone.iter().find(|n| has_signed(n)).copied() {
        return Some(signs_still(former, number));
    }
    let is_in_view = |name: &String| scene.children.contains_key(&runner(name, scene));
    (!gone.is_empty() && !wanted.members.keys().any(is_in_view)).then(alone)
}

/// Members come and go by what all of them trust at that moment.
///
/// # Errors
/// Both would change.
pub(in crate::cluster) fn not_with_members(scene: &Scene<'_>, wanted: &Arguments, membership: &Membership) -> Result<(), Diagnostics> {
    let former = former(scene).filter(|former| *former != wanted.authorities && !membership.moves.is_empty());
    let Some(former) = former else { return Ok(()) };
    let what = "A member that joins must trust all others, and they it, at every moment of both changes.";
    Err(Diagnostic::error("Members and CAs can't change in one plan", what)
        .with_hint(format!("Put `authorities` back to {}, plan and apply; then change it.", written(&former)))
        .into())
}

/// A CA goes when all members were seen with certificates of those that stay: karmaform trusts no others then. In pods that takes a while after the
/// apply that made them.
///
/// # Errors
/// Some were not, and nobody has let go of it yet.
pub(in crate::cluster) fn all_are_seen(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
) -> Result<(), Diagnostics> {
    let Some(former) = former(scene).filter(|_| !dropped(scene, wanted).is_empty()) else { return Ok(()) };
    let ours = || members.values().filter(|m| wanted.members.contains_key(&m.name));
    let unseen: Vec<&str> = ours().filter(|m| m.condition != Condition::Works).map(|m| m.name.as_str()).collect();
    if unseen.is_empty() || ours().any(|m| scene.children.contains_key(&runner(&m.name, scene)) && !m.restarts()) {
        return Ok(());
    }
    let what = format!("A CA goes when all members answer with certificates of those that stay, and {} do not.", unseen.join(", "));
    Err(Diagnostic::error("Not all members are seen without that CA", what)
        .with_hint("In pods a changed Secret is seen after a minute or so: plan again then.")
        .with_hint(format!(
            "Put `authorities` back to {}, plan and apply, so that those that are down are repaired; then drop it.",
            written(&former)
        ))
        .into())
}

/// A CA in the state gets another certificate with its key.
pub(in crate::cluster) fn renews(scene: &Scene<'_>) -> bool {
    scene.children.iter().any(|(path, ca)| is_authority(path) && ca.in_state && is_reissued(ca) && keeps_key(ca.change))
}

/// Certificates come from another CA than at the last apply.
pub(in crate::cluster) fn signs_anew(scene: &Scene<'_>, wanted: &Arguments) -> bool {
    former(scene).is_some_and(|former| former.signs_with != wanted.authorities.signs_with)
}

/// The CAs of the state that are not wanted any more.
pub(in crate::cluster) fn dropped<'a>(scene: &'a Scene<'_>, wanted: &Arguments) -> Vec<&'a [ChildStep]> {
    let is_dropped = |path: &[ChildStep], child: &ChildChange<'_>| {
        number_of_authority(path).is_some_and(|n| !wanted.authorities.trusted.contains(&n)) && child.change.action() == Action::Delete
    };
    scene.children.iter().filter(|(path, child)| is_dropped(path, child)).map(|(path, _)| path.as_slice()).collect()
}

/// What members keep of CAs that are not wanted any more.
pub(in crate::cluster) fn dropped_keys(scene: &Scene<'_>, wanted: &Arguments) -> Vec<Vec<ChildStep>> {
    let is_one = |path: &[ChildStep], child: &ChildChange<'_>| {
        let is_kept = path.get(1).is_some_and(|step| step.name == "authority");
        is_kept && child.change.action() == Action::Delete && member_of(path).is_some_and(|name| wanted.members.contains_key(name))
    };
    scene.children.iter().filter(|(path, child)| is_one(path, child)).map(|(path, _)| path.clone()).collect()
}

/// True for the file of a member on its host that a certificate or its key is in.
pub(in crate::cluster) fn is_leaf_file(path: &[ChildStep]) -> bool {
    let Some(ChildStep { name, key: Some(Key::Name(file)) }) = path.get(1) else { return false };
    name == "pki" && ["server.", "peer."].iter().any(|start| file.starts_with(start))
}

/// What happens to the CAs, in words.
pub(in crate::cluster) fn lines(scene: &Scene<'_>, wanted: &Arguments) -> Vec<String> {
    let Some(former) = former(scene) else { return Vec::new() };
    let now = &wanted.authorities;
    let mut lines = Vec::new();
    let missing = |of: &Authorities, from: &Authorities| list(from.trusted.iter().filter(|n| !of.trusted.contains(n)));
    let (added, gone) = (missing(&former, now), missing(now, &former));
    if !added.is_empty() {
        lines.push(format!("also trusts {added} from now on; nothing is signed with it yet"));
    }
    if former.signs_with != now.signs_with {
        lines.push(format!("signs with CA {} from now on: new certificates for every member and for clients", now.signs_with));
    }
    if !gone.is_empty() {
        lines.push(format!("does not trust {gone} any more: clients with certificates of it are refused"));
    }
    for (role, what) in ROLES {
        let reissued = |keeps: bool| {
            let is_one = |ca: &ChildChange<'_>| is_reissued(ca) && keeps_key(ca.change) == keeps;
            let known = now.trusted.iter().filter(|n| former.trusted.contains(n));
            list(known.filter(|n| scene.children.get(&authority(role, **n)).is_some_and(is_one)))
        };
        let (renewed, remade) = (reissued(true), reissued(false));
        if !remade.is_empty() {
            lines.push(format!("makes {remade} {what} anew, with another key; nothing is signed with it yet"));
        }
        if !renewed.is_empty() {
            lines.push(format!(
                "renews {renewed} {what} with the same key: what it signed stays valid, members trust it when they have restarted"
            ));
        }
    }
    lines
}

fn list<'a>(numbers: impl Iterator<Item = &'a i64>) -> String {
    let all: Vec<String> = numbers.map(|n| format!("CA {n}")).collect();
    all.join(" and ")
}

/// What the last apply that ended had; of a cluster that none has ended for, what the state has.
fn former(scene: &Scene<'_>) -> Option<Authorities> {
    if let Some(before) = scene.before {
        return Authorities::recorded(before);
    }
    let known = scene.children.iter().filter(|(path, child)| child.in_state && path.first().is_some_and(|s| s.name == CLIENT_CA));
    let mut trusted: Vec<i64> = known.filter_map(|(path, _)| number_of_authority(path)).collect();
    trusted.sort_unstable();
    let certificate = scene.children.get(&client_certificate())?.change;
    let signs_with = *trusted.iter().find(|n| is_signed_by(scene, certificate, CLIENT_CA, **n))?;
    Some(Authorities { trusted, signs_with })
}

/// Certificates, each with the CA that it comes from.
fn leaves(wanted: &Arguments) -> impl Iterator<Item = (&'static str, Vec<ChildStep>)> {
    let of_members = wanted
        .members
        .keys()
        .flat_map(|name| [(CLIENT_CA, part_of(name, "certificate", "server")), (PEER_CA, part_of(name, "certificate", "peer"))]);
    of_members.chain([(CLIENT_CA, client_certificate())])
}

/// By the texts that the state has of both.
fn is_signed_by(scene: &Scene<'_>, certificate: &Change, role: &str, number: i64) -> bool {
    let ca = scene.children.get(&authority(role, number)).filter(|ca| ca.in_state).and_then(|ca| sides(ca.change, "certificate").0);
    ca.is_some_and(|ca| same(sides(certificate, "ca_certificate").0, Some(ca)))
}

/// It is in the state, and no other one than this is known to have signed it.
fn is_perhaps_of(scene: &Scene<'_>, role: &str, path: &[ChildStep], number: i64) -> bool {
    let Some(child) = scene.children.get(path).filter(|c| c.in_state) else { return false };
    let others = scene.children.keys().filter(|ca| ca.first().is_some_and(|s| s.name == role)).filter_map(|ca| number_of_authority(ca));
    !others.filter(|n| *n != number).any(|n| is_signed_by(scene, child.change, role, n))
}

/// A member that was not started with what it is to trust.
fn trust_changes<'a>(scene: &Scene<'_>, wanted: &'a Arguments) -> Option<&'a str> {
    let in_state = |path: &[ChildStep]| scene.children.get(path).filter(|c| c.in_state && !is_unchanged(c.change)).map(|c| c.change);
    let is_restarted = |unit: &Change| {
        let (before, after) = sides(unit, "restart_triggers");
        let of = |side: Option<&Value>, key: &str| side.and_then(|triggers| triggers.get(key)).cloned();
        let is_known = after.is_some_and(|triggers| !triggers.is_unknown());
        !is_known || ["client_ca", "peer_ca"].iter().any(|key| !same(of(before, key).as_ref(), of(after, key).as_ref()))
    };
    let is_one = |name: &&String| {
        let files = ["client-ca.crt", "peer-ca.crt"].map(|file| part_of(name, "pki", file));
        let runs_otherwise = in_state(&part(name, "unit")).is_some_and(is_restarted)
            || in_state(&part(name, "pod")).is_some_and(|pod| differs(pod, "revision"));
        runs_otherwise || files.iter().filter_map(|file| in_state(file)).any(|file| differs(file, "content"))
    };
    wanted.members.keys().find(is_one).map(String::as_str)
}

/// It gets another certificate, or its first.
pub(in crate::cluster) fn is_reissued(ca: &ChildChange<'_>) -> bool {
    !is_unchanged(ca.change) && differs(ca.change, "certificate")
}

/// A certificate that is made anew for the key that it had: whoever trusts the old one takes what the new one signs, as long as the old one is valid.
fn keeps_key(change: &Change) -> bool {
    let has_one = sides(change, "private_key").0.is_some_and(|key| !key.is_null());
    change.action() == Action::Update && has_one && !differs(change, "private_key")
}

/// As it is written in a configuration.
fn written(authorities: &Authorities) -> String {
    let trusted: Vec<String> = authorities.trusted.iter().map(ToString::to_string).collect();
    format!("`trusted = [{}]` with `signs_with = {}`", trusted.join(", "), authorities.signs_with)
}

fn replaced(what: &str, is_known: bool) -> Diagnostic {
    let found = Diagnostic::error(
        "A CA of a formed cluster can't be replaced in place",
        format!(
            "The CA {what} would be made anew. Members read it only when they start, so they would stop trusting each other one after another."
        ),
    );
    if !is_known {
        return found
            .with_hint(
                "The state does not have it. If it was lost, make it anew with `authorities` as it was at the last apply: `state rebuild`.",
            )
            .with_hint("Else take another number for a new CA.");
    }
    found
        .with_hint("If `ca_validity_hours` or a `-replace` changes it, undo that.")
        .with_hint("For another CA write the block `authorities`, with one more number in `trusted`.")
}

fn alone() -> Diagnostic {
    Diagnostic::error(
        "A CA goes only together with the cluster",
        "Members have to let go of it first, and none of them is among the targets.",
    )
    .with_hint("Take the whole cluster as the target.")
}

fn not_trusted_yet(now: &Authorities, former: &Authorities) -> Diagnostic {
    let mut both = former.clone();
    both.trusted.push(now.signs_with);
    both.trusted.sort_unstable();
    Diagnostic::error(
        "Nobody trusts that CA yet",
        format!("Certificates would come from CA {}, which members and clients would learn to trust only in this apply.", now.signs_with),
    )
    .with_hint(format!("Write {}, plan and apply; then change `signs_with`.", written(&both)))
}

fn not_both(now: &Authorities, former: &Authorities, who: &str) -> Diagnostic {
    Diagnostic::error(
        "What is trusted and what signs can't change in one plan",
        format!(
            "Certificates would come from CA {}, and \"{who}\" does not run with what it is to trust yet: it could refuse them.",
            now.signs_with
        ),
    )
    .with_hint(format!("Put `signs_with` back to {}, plan and apply; then change it.", former.signs_with))
}

fn signs_still(former: &Authorities, number: i64) -> Diagnostic {
    Diagnostic::error(
        "A CA that is in use can't be dropped",
        format!("CA {number} has signed certificates of members and clients, which would be refused."),
    )
    .with_hint(format!(
        "Put `authorities` back to {}, plan and apply; if another one is to sign, change `signs_with` and apply that first.",
        written(former)
    ))
}
