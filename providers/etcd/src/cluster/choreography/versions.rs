//! What comes before members change their version: their data are saved, and the cluster is told where that is a way down.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Arg, ChildStep, Point, Type, Value};

use super::{BEFORE_LIMIT, Order};
use crate::cluster::children;
use crate::cluster::condition::{Member, changes};
use crate::cluster::places::{part, stateful_set};
use crate::cluster::snapshot;
use crate::cluster::upgrade::{Course, Upgrade, told};

/// The gate behind the snapshot.
pub(super) const AFTER_SAVING: &str = "healthy after the snapshot";
/// How long a cluster may take to answer by what it is, in seconds. Its leader looks every 5 s (facts of etcd, "Way back").
const TOLD_LIMIT: u64 = 120;

/// What the operation is called that gives up a way down.
const STAYS: &str = "the cluster does not go down after all";

impl Order<'_> {
    /// What the data is, is saved before anything of another version is on any host, and when all members were seen healthy, unless some of
    /// them are started only now.
    pub(super) fn save_first(&mut self) {
        let Some(snapshot) = snapshot::keeper(self.wanted).map(snapshot::of) else { return };
        if !changes(self.scene, &snapshot) {
            return;
        }
        let changed = self.changed_at_start();
        let mut saved = Point::Child(snapshot.clone());
        if let Some(first) = self.looks().into_iter().next()
            && !self.waits_for_some(&first, &changed)
        {
            self.order(first, saved.clone());
            // It may have taken long.
            let (name, last) = (AFTER_SAVING.to_owned(), self.last.take());
            self.gate(&name, self.all(), BEFORE_LIMIT);
            self.last = last;
            self.order(saved, Point::Gate(name.clone()));
            saved = Point::Gate(name);
        }
        for path in changed {
            self.order(saved.clone(), Point::Child(path));
        }
    }

    /// Nobody of the older version starts in a cluster that was not told, and nobody of the next one in a cluster that is not at the one before. That a cluster
    /// stays, it is told when all else is done: members of its own version start either way, and without a majority nobody can be told.
    pub(super) fn tell(&mut self, upgrade: Option<&Upgrade>) {
        let connection = children::connection_with(self.wanted, &BTreeMap::new());
        let members = Value::strings(self.wanted.members.keys());
        let about = |name: &str, value: Value| {
            BTreeMap::from([
                ("cluster".to_owned(), connection.clone()),
                ("through".to_owned(), members.clone().into()),
                (name.to_owned(), Arg::Value(value)),
            ])
        };
        let rises =
            upgrade.filter(|upgrade| !upgrade.begun && upgrade.from.minor < self.wanted.version.minor).map(|upgrade| upgrade.from.minor);
        let course = told(self.scene, self.wanted, upgrade);
        if let Some(Course::Down(minor)) = course {
            self.first(&format!("the cluster goes down to 3.{minor}"), "etcd_downgrade", about("to", i64::from(minor).into()));
        }
        if course == Some(Course::Stays) {
            let stays = about("to", Value::null(Type::Number));
            if rises.is_some() { self.first(STAYS, "etcd_downgrade", stays) } else { self.at_last(STAYS, "etcd_downgrade", stays) }
        }
        if let Some(minor) = rises {
            let name = format!("the cluster is at 3.{minor}");
            self.first(&name, "etcd_settle", about("minor", i64::from(minor).into()));
            if course == Some(Course::Stays) {
                self.order(Point::Gate(STAYS.to_owned()), Point::Gate(name));
            }
        }
    }

    /// The gates that see members healthy.
    pub(super) fn looks(&self) -> Vec<Point> {
        let looks = self.choreography.gates.iter().filter(|gate| gate.gate == "etcd_healthy");
        looks.map(|gate| Point::Gate(gate.name.clone())).collect()
    }

    /// An operation before any member changes, behind the gate that sees all of them healthy, and what is saved.
    fn first(&mut self, name: &str, operation: &str, arguments: BTreeMap<String, Arg>) {
        let gates = self.looks();
        self.add_operation(name, operation, arguments, TOLD_LIMIT);
        let this = Point::Gate(name.to_owned());
        let before = gates.iter().take(1).chain(gates.iter().filter(|gate| **gate == Point::Gate(AFTER_SAVING.to_owned())));
        for gate in before.cloned().collect::<Vec<_>>() {
            self.order(gate, this.clone());
        }
        for path in self.changed_at_start() {
            self.order(this.clone(), Point::Child(path));
        }
    }

    /// An operation behind the last gate, and before what is known of members is read again.
    fn at_last(&mut self, name: &str, operation: &str, arguments: BTreeMap<String, Arg>) {
        self.add_operation(name, operation, arguments, TOLD_LIMIT);
        let this = Point::Gate(name.to_owned());
        if let Some((last, _)) = self.last.clone() {
            self.order(Point::Gate(last), this.clone());
        }
        self.read_members_after(&this);
        self.last = Some((name.to_owned(), BTreeSet::new()));
    }

    /// What has an effect at a member's next start, of all members.
    fn changed_at_start(&self) -> BTreeSet<Vec<ChildStep>> {
        let on_hosts = self.members.values().flat_map(Member::at_start).map(<[ChildStep]>::to_vec);
        let pods = self.wanted.members.keys().map(|member| part(member, "pod")).chain([stateful_set()]);
        on_hosts.chain(pods.filter(|path| changes(self.scene, path))).collect()
    }

    /// True if a gate waits for some of these changes.
    fn waits_for_some(&self, gate: &Point, changed: &BTreeSet<Vec<ChildStep>>) -> bool {
        let waits = |(before, after): &(Point, Point)| after == gate && matches!(before, Point::Child(path) if changed.contains(path));
        self.choreography.orderings.iter().any(waits)
    }
}
