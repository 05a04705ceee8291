//! In which order a cluster on hosts is restored: everything is made ready on every host; all members stop; each changes over when all have stopped, and
//! starts; alarms that came with the snapshot end; all are seen healthy; then the state remembers that it was done.

use karmaform_model::{Action, ChildStep, Key, Point, Scene, Told, Type, Value};

use super::Restoration;
use crate::cluster::choreography::{BEFORE_LIMIT, Order};
use crate::cluster::condition::{Condition, changes, member_of};
use crate::cluster::places::{is_of_restoration, part, part_of, restored};

/// How long members may take to serve what was restored, in seconds: a large database is read for up to a minute per gigabyte.
const SERVES_LIMIT: u64 = 600;
pub(super) const SERVES: &str = "the members serve what was restored";
pub(super) const HEALTHY: &str = "healthy after the restoration";
pub(super) const ENDS: &str = "healthy before data of before is removed";

type Path = Vec<ChildStep>;

/// What the block puts on the host of a member that joins later, which has nothing to restore: its unit waits for it.
pub(in crate::cluster) fn of_joining(scene: &Scene<'_>, name: &str) -> Vec<Path> {
    let is_one = |path: &Path| is_of_restoration(path) && *path != part_of(name, "restore", "before");
    let is_new =
        |path: &Path| scene.children.get(path).is_some_and(|child| child.change.action() != Action::Delete && changes(scene, path));
    scene.children.keys().filter(|path| member_of(path) == Some(name) && is_one(path) && is_new(path)).cloned().collect()
}

impl Order<'_> {
    /// The whole of it. All members stop, so none is spared for the others: whatever else changes is done with it.
    pub(in crate::cluster) fn restore(&mut self, restoration: &Restoration) {
        let (scene, wanted) = (self.scene, self.wanted);
        let changed = |paths: &mut dyn Iterator<Item = Path>| paths.filter(|path| changes(scene, path)).collect::<Vec<_>>();
        let of = |key: &'static str| wanted.members.keys().map(move |name| part_of(name, "restore", key));
        // Members that are not wanted any more stop as well: what is left of the old cluster must not serve beside the new one. Nobody waits for
        // a host that does not answer; the plan says what that means.
        let leaving: Vec<&String> = self.members.keys().filter(|name| !wanted.members.contains_key(*name)).collect();
        let is_in_view = |path: &Path| scene.children.get(path).is_some_and(|child| !child.unseen);
        let units = leaving.iter().map(|name| part(name, "unit")).filter(is_in_view);
        let switches = changed(&mut of("switch"));
        let stops = changed(&mut of("stop").chain(units));
        let starts = changed(&mut wanted.members.keys().map(|name| part(name, "unit")));
        let (ready, at_rest) = self.before_and_after_the_stop();
        let is_of = |kind: &'static str| ready.iter().filter(move |path| path.get(1).is_some_and(|step| step.name == kind));
        for (saved, program) in is_of("snapshot").flat_map(|saved| is_of("program").map(move |program| (saved, program))) {
            self.order(Point::Child(saved.clone()), Point::Child(program.clone()));
        }
        for (first, second) in [(&ready, &stops), (&ready, &switches), (&stops, &at_rest), (&stops, &switches), (&switches, &starts)] {
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
        let outside: Vec<_> = staying.flat_map(|m| m.outside().map(<[ChildStep]>::to_vec)).chain(switches).collect();
        for path in outside {
            self.before_gate(&path, SERVES);
        }
        self.note_restored();
        // Data of those that are not wanted any more goes when the others are seen to have what was restored.
        let kept = |name: &&String| [part(name, "traces"), part_of(name, "directory", "data"), part_of(name, "restore", "before")];
        let mut data = leaving.iter().flat_map(kept);
        for path in changed(&mut data) {
            self.order(Point::Gate(HEALTHY.to_owned()), Point::Child(path));
        }
    }

    /// What changes on hosts of wanted members. The first is done while the old cluster serves, so that what fails there stops nobody. The second
    /// is what a member reads when it starts: one that crashes before all have stopped must come back as what it was.
    fn before_and_after_the_stop(&self) -> (Vec<Path>, Vec<Path>) {
        let (mut ready, mut at_rest) = (Vec::new(), Vec::new());
        for (path, child) in &self.scene.children {
            let Some(name) = member_of(path).filter(|name| self.wanted.members.contains_key(*name)) else { continue };
            let is_there = self.scene.children.get(&part(name, "unit")).is_some_and(|unit| unit.change.action() != Action::Create);
            let changes_host =
                child.resource_type.starts_with("ssh_") && changes(self.scene, path) && child.change.action() != Action::Delete;
            let step = path.get(1).map(|step| (step.name.as_str(), &step.key));
            match step {
                _ if !changes_host => {}
                Some(("unit", _)) => {}
                Some(("restore", Some(Key::Name(key)))) if key != "data" && key != "snapshot" => {}
                Some(("environment" | "guard", _)) if is_there => at_rest.push(path.clone()),
                Some(("program", Some(Key::Name(key)))) if is_there && key == "etcd" => at_rest.push(path.clone()),
                _ => ready.push(path.clone()),
            }
        }
        (ready, at_rest)
    }

    /// A run that was cut off at the very end left nothing to do but to look: first of all, or when what does not work now was seen to.
    pub(in crate::cluster) fn look_at_restored(&mut self, at_once: bool) {
        let works = |name: &String| self.members.get(name).is_some_and(|m| m.condition == Condition::Works);
        let is_open = changes(self.scene, &restored()) && self.wanted.restore.is_some();
        if is_open && at_once == self.wanted.members.keys().all(works) {
            self.see_restored();
        }
    }

    /// Alarms that came with the snapshot end, and all members are seen.
    pub(super) fn see_restored(&mut self) {
        self.operate(SERVES, "etcd_disarm", &self.all(), [], SERVES_LIMIT);
        self.gate_after(HEALTHY, self.all());
    }

    /// The state takes note of a restoration when all members were seen healthy with it, and it knows the cluster that they are by now.
    pub(in crate::cluster) fn note_restored(&mut self) {
        let Some((last, _)) = self.last.clone() else { return };
        self.gate_before(&restored(), &last);
        if changes(self.scene, &restored()) {
            for path in self.ids_to_read().collect::<Vec<_>>() {
                self.order(Point::Child(path), Point::Child(restored()));
            }
        }
    }

    /// Data of before goes when all members were seen healthy without it.
    pub(in crate::cluster) fn end_restoration(&mut self) {
        let scene = self.scene;
        let is_removed = |path: &Path| scene.children.get(path).is_some_and(|child| child.change.action() == Action::Delete);
        let before: Vec<Path> = self.wanted.members.keys().map(|name| part_of(name, "restore", "before")).filter(is_removed).collect();
        if before.is_empty() {
            return;
        }
        if self.last.as_ref().is_none_or(|(_, seen)| *seen != self.all()) {
            self.gate_in_turn(ENDS, self.all(), BEFORE_LIMIT);
        }
        if let Some((last, _)) = self.last.clone() {
            before.into_iter().for_each(|path| self.order(Point::Gate(last.clone()), Point::Child(path)));
        }
    }
}
