//! When a cluster is restored, and in which order: everything is made ready on every host; all members stop; each changes over when all have
//! stopped, and starts; alarms that came with the snapshot end; all are seen healthy; then the state remembers that it was done.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{ChildStep, Diagnostic, Object, Point, Scene, Told, Type, Value};

use super::Restore;
use crate::cluster::arguments::Arguments;
use crate::cluster::choreography::Order;
use crate::cluster::condition::{Condition, changes};
use crate::cluster::places::{part, part_of, restored};
use crate::cluster::roster::peer_url;

/// How long members may take to serve what was restored, in seconds: a large database is read for up to a minute per gigabyte.
const SERVES_LIMIT: u64 = 600;
const SERVES: &str = "the members serve what was restored";
const HEALTHY: &str = "healthy after the restoration";

/// A restoration that is to be done, or to be finished.
#[derive(Clone, Debug)]
pub(crate) struct Restoration {
    /// Members that don't have it yet.
    pub(crate) pending: BTreeSet<String>,
    /// What each of all members is called and where the others reach it.
    pub(crate) urls: BTreeMap<String, String>,
    pub(crate) what: Restore,
}

/// The part of a member that changes over to what was restored.
pub(crate) fn switch(member: &str) -> Vec<ChildStep> {
    part_of(member, "restore", "switch")
}

/// What of a restoration is left to be done. `None`: nothing but to take note of it, or there is none. That it was done is in the state, from the
/// moment on in which all members were seen healthy with it; hosts alone can't tell one that was interrupted from a member that joined later.
///
/// # Errors
/// Only a part of the cluster is looked at, or not all addresses are known.
pub(crate) fn restoration(scene: &Scene<'_>, wanted: &Arguments) -> Result<Option<Restoration>, Diagnostic> {
    let Some(what) = &wanted.restore else { return Ok(None) };
    if scene.children.contains_key(&restored()) && !changes(scene, &restored()) {
        return Ok(None);
    }
    let is_pending = |name: &&String| changes(scene, &switch(name));
    let pending: BTreeSet<String> = wanted.members.keys().filter(is_pending).cloned().collect();
    if pending.is_empty() {
        return Ok(None);
    }
    let in_view = |name: &String| scene.children.contains_key(&switch(name));
    if !scene.children.contains_key(&restored()) || !wanted.members.keys().all(in_view) {
        return Err(Diagnostic::error(
            "A cluster is restored only as a whole",
            "All members begin anew from the same snapshot, and not all of them are among the targets.",
        )
        .with_hint("Plan without `-target`, or with the cluster as a whole as the target."));
    }
    let url = |(name, host)| Some((String::clone(name), peer_url(wanted, host)?));
    let urls: BTreeMap<String, String> = wanted.members.iter().filter_map(url).collect();
    if urls.len() < wanted.members.len() {
        return Err(Diagnostic::error(
            "A member's address is not known yet",
            "What is restored says where its members are, which can't be known only after apply.",
        )
        .with_hint("Write the addresses into `addresses`, or apply what the hosts depend on first with `-target`."));
    }
    Ok(Some(Restoration { pending, urls, what: what.clone() }))
}

impl Restoration {
    /// What the commands on a member's host are told: who it is, and that this is a restoration.
    pub(crate) fn told(&self, member: &str) -> Object {
        let all: Vec<String> = self.urls.iter().map(|(name, url)| format!("{name}={url}")).collect();
        let url = self.urls.get(member).cloned().unwrap_or_default();
        [("KARMAFORM_RESTORE", "yes".to_owned()), ("MEMBER", member.to_owned()), ("URL", url), ("MEMBERS", all.join(","))]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect()
    }
}

impl Order<'_> {
    /// The whole of it. All members stop, so none is spared for the others: whatever else changes is done with it.
    pub(in crate::cluster) fn restore(&mut self, restoration: &Restoration) {
        let (scene, wanted) = (self.scene, self.wanted);
        let changed = |paths: Vec<Vec<ChildStep>>| paths.into_iter().filter(|path| changes(scene, path)).collect::<Vec<_>>();
        let of = |key: &str| wanted.members.keys().map(|name| part_of(name, "restore", key)).collect::<Vec<_>>();
        // Members that are not wanted any more stop as well: what is left of the old cluster must not serve beside the new one.
        let leaving: Vec<&String> = self.members.keys().filter(|name| !wanted.members.contains_key(*name)).collect();
        let units = leaving.iter().map(|name| part(name, "unit"));
        let (prepared, switches) = (changed(of("data")), changed(of("switch")));
        let stops = changed(of("stop").into_iter().chain(units).collect());
        let starts = changed(wanted.members.keys().map(|name| part(name, "unit")).collect());
        for (first, second) in [(&prepared, &stops), (&prepared, &switches), (&stops, &switches), (&switches, &starts)] {
            for (before, after) in first.iter().flat_map(|before| second.iter().map(move |after| (before, after))) {
                self.order(Point::Child(before.clone()), Point::Child(after.clone()));
            }
        }
        for (name, key) in restoration.pending.iter().flat_map(|name| ["data", "stop", "switch"].map(|key| (name, key))) {
            let value = Value::map(Type::String, restoration.told(name));
            self.choreography.told.push(Told { child: part_of(name, "restore", key), attribute: "run_environment", value });
        }
        self.see_restored();
        let staying = wanted.members.keys().filter_map(|name| self.members.get(name));
        for path in staying.flat_map(|m| m.outside().map(<[ChildStep]>::to_vec)).collect::<Vec<_>>() {
            self.before_gate(&path, SERVES);
        }
        self.note_restored();
        // Data of those that are not wanted any more goes when the others are seen to have what was restored.
        let data = leaving.iter().flat_map(|name| [part(name, "traces"), part_of(name, "directory", "data")]).collect();
        for path in changed(data) {
            self.order(Point::Gate(HEALTHY.to_owned()), Point::Child(path));
        }
    }

    /// A run that was killed at the very end left nothing to do but to look.
    pub(in crate::cluster) fn look_at_restored(&mut self) {
        let works = |name: &String| self.members.get(name).is_some_and(|m| m.condition == Condition::Works);
        if changes(self.scene, &restored()) && self.wanted.restore.is_some() && self.wanted.members.keys().all(works) {
            self.see_restored();
        }
    }

    /// Alarms that came with the snapshot end, and all members are seen.
    fn see_restored(&mut self) {
        self.operate(SERVES, "etcd_disarm", &self.all(), [], SERVES_LIMIT);
        self.gate_after(HEALTHY, self.all());
    }

    /// The state takes note of a restoration when all members were seen healthy with it.
    pub(in crate::cluster) fn note_restored(&mut self) {
        if let Some((last, _)) = self.last.clone() {
            self.gate_before(&restored(), &last);
        }
    }
}
