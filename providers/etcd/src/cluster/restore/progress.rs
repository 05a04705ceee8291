//! How far a restoration is, by the state and the hosts, and what can't be done with it there.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{ChildChange, ChildStep, Diagnostic, Diagnostics, Object, Scene, Value, same};

use super::{Restore, children};
use crate::cluster::arguments::Arguments;
use crate::cluster::condition::{Member, changes, is_unchanged, last_words, seen, sides};
use crate::cluster::kubernetes::{LOST, helper};
use crate::cluster::membership;
use crate::cluster::places::{Places, chosen, part, part_of, restored, restoring, starting, stateful_set, stopping};
use crate::cluster::roster::peer_url;

/// A restoration that is to be done, or to be finished.
#[derive(Clone, Debug)]
pub(crate) struct Restoration {
    /// Members that don't have it yet.
    pub(crate) pending: BTreeSet<String>,
    /// In pods: all of them have it, and may have started with it. Nothing is put anywhere any more, and nobody is stopped.
    pub(crate) has_started: bool,
    /// What each of all members is called and where the others reach it.
    pub(super) urls: BTreeMap<String, String>,
    pub(crate) what: Restore,
    /// Which backup in a bucket was chosen, if it is of one.
    pub(crate) choice: Option<Object>,
}

impl Restoration {
    /// What the commands on a member's host are told: who it is, and that this is a restoration.
    pub(super) fn told(&self, member: &str) -> Object {
        let all: Vec<String> = self.urls.iter().map(|(name, url)| format!("{name}={url}")).collect();
        let url = self.urls.get(member).cloned().unwrap_or_default();
        [("KARMAFORM_RESTORE", "yes".to_owned()), ("MEMBER", member.to_owned()), ("URL", url), ("MEMBERS", all.join(","))]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect()
    }
}

/// What of a restoration is left to be done. `None`: nothing but to take note of it, or there is none. That it was done is in the state, from the
/// moment on in which all members were seen healthy with it; hosts alone can't tell one that was interrupted from a member that joined later.
///
/// # Errors
/// Only a part of the cluster is looked at, not all addresses are known, or it can't be gone on with as it is written now.
pub(crate) fn restoration(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
) -> Result<Option<Restoration>, Diagnostics> {
    let Some(what) = &wanted.restore else { return Ok(None) };
    if is_noted(scene, what) {
        if let Some((found, sum)) = choice_and_sum(scene, what) {
            fits(what, found, sum).map_err(|why| Diagnostic { hints: vec![DONE.to_owned()], ..why })?;
        }
        half_way(scene, wanted)?;
        done_here(scene, wanted)?;
        return Ok(None);
    }
    let has_begun = scene.children.get(&restoring(what)).is_some_and(|c| c.in_state);
    // Another text of a command is no reason to restore.
    let is_open = |c: &ChildChange<'_>| {
        let (before, after) = sides(c.change, "environment");
        !is_unchanged(c.change) && (c.observed.is_none() || !same(before, after))
    };
    // What a pod's volume holds is not known here. Until members may have started all is done again, which finds what is there; from then on they may have
    // promised each other something.
    let begun = scene.children.get(&restoring(what)).and_then(|c| sides(c.change, "id").0);
    let has_started = begun.is_some() && same(known(scene, &starting()).and_then(|o| o.get("input")), begun);
    let is_served = has_started && has_served(scene, wanted, what);
    if has_started && known(scene, &stopping()).is_some_and(|o| !same(o.get("input"), begun)) {
        return Err(overtaken().into());
    }
    let is_pending = |name: &&String| match &wanted.kubernetes {
        Some(_) => !is_served,
        None => scene.children.get(&switch(name)).is_some_and(is_open),
    };
    let pending: BTreeSet<String> = wanted.members.keys().filter(is_pending).cloned().collect();
    if has_begun {
        unchanged(scene, what)?;
        match wanted.kubernetes {
            Some(_) if has_started && !is_served => not_lost(wanted.members.keys().filter(|name| is_lost(scene, name)))?,
            Some(_) => {}
            None if has_served(scene, wanted, what) => not_lost(pending.iter())?,
            None => {}
        }
    }
    if pending.is_empty() {
        return Ok(None);
    }
    whole(scene, wanted)?;
    let choice = choice(scene, what)?;
    if wanted.kubernetes.is_none() {
        membership::hosts_of_others(scene, wanted, members)?;
    }
    let url = |(name, host)| Some((String::clone(name), peer_url(wanted, host)?));
    let urls: BTreeMap<String, String> = wanted.members.iter().filter_map(url).collect();
    if urls.len() < wanted.members.len() {
        return Err(Diagnostic::error(
            "A member's address is not known yet",
            "What is restored says where its members are, which can't be known only after apply.",
        )
        .with_hint("Write the addresses into `addresses`, or apply what the hosts depend on first with `-target`.")
        .into());
    }
    Ok(Some(Restoration { pending, has_started, urls, what: what.clone(), choice }))
}

/// The backup that was chosen. A plan says which one it is, or there is none.
fn choice(scene: &Scene<'_>, what: &Restore) -> Result<Option<Object>, Diagnostic> {
    if what.shelved.is_none() {
        return Ok(None);
    }
    let Some((found, sum)) = choice_and_sum(scene, what) else {
        return Err(Diagnostic::error(
            "The backup is not chosen yet",
            "What is restored is chosen when planning, by the manifests in the bucket, and this plan has not looked there.",
        )
        .with_hint("Plan without `-refresh=false`, and with the cluster as a whole."));
    };
    fits(what, found, sum)?;
    Ok(Some(found.clone()))
}

/// What was chosen in a bucket, and its sum.
fn choice_and_sum<'a>(scene: &'a Scene<'_>, what: &Restore) -> Option<(&'a Object, &'a str)> {
    what.shelved.as_ref()?;
    let found = scene.children.get(&chosen(what))?.change.after()?;
    Some((found, found.get("sha256")?.as_str()?))
}

/// What to do where nothing is to be restored any more: without the sum it would be another restoration.
const DONE: &str = "It has been restored already: take the block `restore` out, or name the backup that has this sum. Don't leave `sha256` out, or it is restored again.";

/// It has the sum that is written, if one is.
fn fits(what: &Restore, found: &Object, sum: &str) -> Result<(), Diagnostic> {
    if what.sha256.is_empty() || what.sha256 == sum {
        return Ok(());
    }
    let place = found.get("place").and_then(Value::as_str).unwrap_or_default();
    Err(Diagnostic::error(
        "The backup has another sum",
        format!("{place} has the SHA-256 sum {sum}, and `sha256` in `restore` is another."),
    )
    .with_hint("Name the backup that has it; or leave `sha256` out, so that it is the one of the manifest."))
}

/// The part of a member that changes over to what was restored.
fn switch(member: &str) -> Vec<ChildStep> {
    part_of(member, "restore", "switch")
}

/// It was done. Where the note of that is out of view, what the last whole apply ended with tells.
fn is_noted(scene: &Scene<'_>, what: &Restore) -> bool {
    if scene.children.contains_key(&restored()) {
        return !changes(scene, &restored());
    }
    scene.before.and_then(Restore::name_in).is_some_and(|name| name == what.name())
}

/// What all members have to begin alike is as it was when the restoration began.
fn unchanged(scene: &Scene<'_>, what: &Restore) -> Result<(), Diagnostic> {
    let Some((before, after)) = scene.children.get(&restoring(what)).map(|c| sides(c.change, "input")) else { return Ok(()) };
    let part = |side: Option<&Value>, name: &str| side.and_then(|v| v.get(name)).cloned();
    let names = [
        ("members", "the members or their addresses"),
        ("minor_version", "`version`"),
        ("bump_revision", "how the revision is raised"),
        ("sha256", "what is restored"),
    ];
    let other = names.iter().find(|(name, _)| !same(part(before, name).as_ref(), part(after, name).as_ref()));
    let Some((_, what)) = other else { return Ok(()) };
    Err(Diagnostic::error(
        "A restoration that has begun can't be changed",
        format!(
            "It has not ended, and {what} would be another than when it began: some members would begin with other things than the rest."
        ),
    )
    .with_hint("Put that back and apply, so that it ends; then change it.")
    .with_hint("Or give the block `restore` another `id`: then all members begin anew, as they are written now."))
}

/// Some member was seen to work with what was restored, as all were by then.
fn has_served(scene: &Scene<'_>, wanted: &Arguments, what: &Restore) -> bool {
    let begun = scene.children.get(&restoring(what)).and_then(|c| sides(c.change, "id").0);
    wanted.members.keys().any(|name| {
        let child = scene.children.get(&part(name, "etcd")).filter(|c| c.in_state);
        child.is_some_and(|c| same(sides(c.change, "restoration").0, begun))
    })
}

/// A member in a pod says that it has no data.
fn is_lost(scene: &Scene<'_>, name: &str) -> bool {
    last_words(scene, name).is_some_and(|words| words.contains(LOST))
}

/// Some members may have what the other one has put there.
fn overtaken() -> Diagnostic {
    Diagnostic::error(
        "Another restoration has stopped the members since",
        "This one had begun and not ended when another one stopped all members, and some may have what that has put in place.",
    )
    .with_hint("Put the other block back and apply: it goes on from where it was.")
    .with_hint("Or give the block `restore` an `id` that none had yet: then all members begin anew with that.")
}

/// Who has run with the others and lost its data again must not begin once more with less than it has promised them.
fn not_lost<'a>(lost: impl Iterator<Item = &'a String>) -> Result<(), Diagnostic> {
    let lost: Vec<&str> = lost.map(String::as_str).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::error(
        "A member has lost what was restored",
        format!(
            "{} had it before the restoration ended, and has not any more. The others may count on what it has written since.",
            lost.join(", ")
        ),
    )
    .with_hint("Give the block `restore` another `id`: then all members begin anew."))
}

/// All members begin anew: all of them are in view.
fn whole(scene: &Scene<'_>, wanted: &Arguments) -> Result<(), Diagnostic> {
    let of = |name: &String| match &wanted.kubernetes {
        Some(_) => [part(name, "claim"), part(name, "pod")],
        None => [switch(name), part(name, "unit")],
    };
    let is_there = |name: &String| of(name).iter().all(|path| scene.children.contains_key(path));
    let has_set = wanted.kubernetes.is_none() || scene.children.contains_key(&stateful_set());
    if has_set && scene.children.contains_key(&restored()) && wanted.members.keys().all(is_there) {
        return Ok(());
    }
    Err(Diagnostic::error(
        "A cluster is restored only as a whole",
        "All members begin anew from the same snapshot, and not all of them are among the targets.",
    )
    .with_hint("Plan without `-target`, or with the cluster as a whole as the target."))
}

/// How a restoration stands whose block is not written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There was none.
    Never,
    /// It has ended well.
    Well,
    /// It was given up before anything was stopped, or all members work with what was before again.
    GivenUp,
}

/// What taking the block out means.
///
/// # Errors
/// A restoration is half done.
pub(crate) fn ended(scene: &Scene<'_>, wanted: &Arguments) -> Result<Ended, Diagnostic> {
    let is_known =
        |(path, child): (&Vec<ChildStep>, &ChildChange<'_>)| child.in_state && path.first().is_some_and(|s| s.name == "restoring");
    if wanted.restore.is_some() || !scene.children.iter().any(is_known) {
        return Ok(Ended::Never);
    }
    let was_given_up = half_way(scene, wanted)?;
    Ok(if noted(scene).is_some() && !was_given_up { Ended::Well } else { Ended::GivenUp })
}

/// What the state remembers of a part.
fn known<'a>(scene: &'a Scene<'_>, path: &[ChildStep]) -> Option<&'a Object> {
    scene.children.get(path).filter(|c| c.in_state).and_then(|c| c.change.before())
}

/// The restoration that has ended.
fn noted<'a>(scene: &'a Scene<'_>) -> Option<&'a str> {
    known(scene, &restored()).and_then(|o| o.get("input")?.as_str())
}

/// True if one has begun to stop members and has not ended, and all of them work with what was before again.
///
/// # Errors
/// They don't: some may have what was restored.
fn half_way(scene: &Scene<'_>, wanted: &Arguments) -> Result<bool, Diagnostic> {
    let noted = noted(scene);
    let of_pods = known(scene, &stopping()).and_then(|o| o.get("input")?.as_str());
    let of_hosts = wanted.members.keys().filter_map(|name| known(scene, &part_of(name, "restore", "stop")).and_then(children::token));
    let mut stopped = of_hosts.chain(of_pods);
    if !stopped.any(|token| Some(token) != noted) {
        return Ok(false);
    }
    let of_before = scene.before.and_then(|b| b.get("cluster_id")).filter(|id| id.as_str().is_some());
    let is_of_before = |name: &String| {
        let seen = |attribute: &str| seen(scene, &part(name, "etcd"), attribute);
        seen("healthy").and_then(Value::as_bool) == Some(true) && same(seen("cluster_id"), of_before)
    };
    if of_before.is_some() && wanted.members.keys().all(is_of_before) {
        return Ok(true);
    }
    let data = match &wanted.kubernetes {
        Some(_) => helper::data(),
        None => Places::of(wanted).data,
    };
    let by_hand = match &wanted.kubernetes {
        Some(_) if of_before.is_none() => "Or destroy the cluster: it has never worked, so there is nothing that was before.".to_owned(),
        Some(place) => format!(
            "To have back what was before, scale the StatefulSet {} to 0, let a pod of yours move in each volume the first {data}.before-* since the last \
             restoration that ended ({}) to {data} in the place of what is there, if there is one, put the image of before back if `version` was changed, \
             scale it back, and when all work plan without the block.",
            place.name,
            noted.map_or_else(|| "there was none".to_owned(), |token| format!("not {data}.before-{token}, nor an older one")),
        ),
        None => format!(
            "To have back what was before, stop the members on their hosts (`systemctl stop {}`), move the oldest of {data}.before-* (or \
             {data}/member.before, if it is there) to {data}/member in the place of what is there, start them, and when all work plan without the block.",
            wanted.unit()
        ),
    };
    Err(Diagnostic::error(
        "A restoration has begun and has not ended",
        format!(
            "Members were stopped for it, and some may have what was restored already, and others what was before. What was before is beside \
             their data, in {data}.before-*."
        ),
    )
    .with_hint("Put the block `restore` back as it was and apply: it goes on from where it was.")
    .with_hint("Or `restore` another snapshot, or the same one with an `id` that none had yet: then all members begin anew with that.")
    .with_hint(by_hand))
}

/// What has ended was with these members. A note that is left since something of it is on a host that is gone says nothing of them.
fn done_here(scene: &Scene<'_>, wanted: &Arguments) -> Result<(), Diagnostic> {
    let noted = noted(scene);
    let mut switches = wanted.members.keys().map(|name| switch(name)).filter(|path| scene.children.contains_key(path)).peekable();
    if noted.is_none() || switches.peek().is_none() || switches.any(|path| known(scene, &path).and_then(children::token) == noted) {
        return Ok(());
    }
    Err(Diagnostic::error(
        "This restoration was done before",
        "The state still has its note, since something of it is on a host that does not answer, and none of these members has it. Written \
         again it would do nothing.",
    )
    .with_hint("Give the block `restore` an `id` that none had yet."))
}
