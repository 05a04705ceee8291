//! What an order is made of: gates, one after the other, and what comes before and after each.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Arg, ChildStep, GateSpec, Point, Value};

use super::{BEFORE_LIMIT, Order, RESTART_LIMIT};
use crate::cluster::children;
use crate::cluster::condition::{Member, changes, sides};
use crate::cluster::places::{client_certificate, is_authority, part};

impl Order<'_> {
    /// An operation after everything so far, asked of these members.
    pub(in crate::cluster) fn operate<const N: usize>(
        &mut self,
        name: &str,
        operation: &str,
        through: &BTreeSet<String>,
        arguments: [(&str, Arg); N],
        limit: u64,
    ) {
        let mut arguments: BTreeMap<String, Arg> = arguments.into_iter().map(|(n, a)| (n.to_owned(), a)).collect();
        arguments.insert("cluster".to_owned(), self.connection());
        arguments.insert("through".to_owned(), Value::strings(through).into());
        self.operate_with(name, operation, arguments, limit);
    }

    /// The same with all its arguments, its connection among them.
    pub(super) fn operate_with(&mut self, name: &str, operation: &str, arguments: BTreeMap<String, Arg>, limit: u64) {
        self.add_operation(name, operation, arguments, limit);
        if let Some((previous, _)) = &self.last {
            self.order(Point::Gate(previous.clone()), Point::Gate(name.to_owned()));
        }
        self.last = Some((name.to_owned(), BTreeSet::new()));
    }

    /// An operation whose order is said apart.
    pub(in crate::cluster) fn add_operation(&mut self, name: &str, operation: &str, arguments: BTreeMap<String, Arg>, limit: u64) {
        self.choreography.gates.push(GateSpec { name: name.to_owned(), gate: operation.to_owned(), arguments, limit, acts: true });
    }

    /// A gate after everything so far.
    pub(in crate::cluster) fn gate_after(&mut self, name: &str, required: BTreeSet<String>) {
        self.gate_in_turn(name, required, RESTART_LIMIT);
    }

    /// The same, waiting so many seconds.
    pub(in crate::cluster) fn gate_in_turn(&mut self, name: &str, required: BTreeSet<String>, limit: u64) {
        let previous = self.last.take();
        self.gate(name, required, limit);
        if let Some((previous, _)) = previous {
            self.order(Point::Gate(previous), Point::Gate(name.to_owned()));
        }
    }

    /// The way to all that are members now: those that leave have to be asked, too, as long as they are there.
    pub(super) fn connection(&self) -> Arg {
        // What the state says of the cluster has names for hosts; the whole way is with the members themselves.
        let way = |name: &String| {
            let cluster = sides(self.scene.children.get(&part(name, "etcd"))?.change, "cluster").0?;
            Some((name.clone(), cluster.get("members")?.get(name)?.clone()))
        };
        let leave: BTreeMap<String, Value> = self.membership.leaving.iter().filter_map(way).collect();
        children::connection_with(self.wanted, &leave)
    }

    /// After the last gate these changes of one member, then a gate.
    pub(super) fn step<'p>(&mut self, paths: impl Iterator<Item = &'p [ChildStep]>, member: &str, required: BTreeSet<String>) {
        let name = format!("healthy after member[\"{member}\"]");
        let previous = self.last.take().map(|(name, _)| name);
        for path in paths {
            if let Some(previous) = &previous {
                self.order(Point::Gate(previous.clone()), Point::Child(path.to_vec()));
            }
            self.before_gate(path, &name);
        }
        if let Some(previous) = previous {
            self.order(Point::Gate(previous), Point::Gate(name.clone()));
        }
        self.gate(&name, required, RESTART_LIMIT);
    }

    pub(super) fn gate(&mut self, name: &str, required: BTreeSet<String>, limit: u64) {
        let mut arguments = BTreeMap::from([
            ("cluster".to_owned(), self.connection()),
            ("require".to_owned(), Arg::Value(Value::strings(&required))),
            ("unfinished".to_owned(), Arg::Value(Value::strings(&self.membership.unfinished))),
        ]);
        if !self.care.tolerated().is_empty() {
            arguments.insert("tolerate".to_owned(), Arg::Value(Value::strings(self.care.tolerated())));
        }
        self.choreography.gates.push(GateSpec { name: name.to_owned(), gate: "etcd_healthy".to_owned(), arguments, limit, acts: false });
        // The Services are how names of members are known; the rest is what the question is asked with.
        let services = [vec![ChildStep::new("peer_service")], vec![ChildStep::new("client_service")]];
        let cas = self.scene.children.iter().filter(|(path, ca)| is_authority(path) && ca.change.action() != Action::Delete);
        for path in cas.map(|(path, _)| path).chain(&[client_certificate()]).chain(&services) {
            self.before_gate(path, name);
        }
        self.last = Some((name.to_owned(), required));
    }

    /// Those that are started all at once run already, some of them: nothing is done to any of them where somebody works by then.
    pub(super) fn only_if_nobody_works(&mut self, starting: &[&Member<'_>]) {
        if !starting.iter().any(|member| member.waits) {
            return;
        }
        let name = "nobody works";
        let arguments = BTreeMap::from([
            ("cluster".to_owned(), self.connection()),
            ("members".to_owned(), Arg::Value(Value::strings(self.wanted.members.keys()))),
        ]);
        let spec = GateSpec { name: name.to_owned(), gate: "etcd_silent".to_owned(), arguments, limit: BEFORE_LIMIT, acts: false };
        self.choreography.gates.push(spec);
        for path in starting.iter().flat_map(|member| member.at_start()) {
            self.gate_before(path, name);
        }
    }

    pub(in crate::cluster) fn gate_before(&mut self, path: &[ChildStep], gate: &str) {
        if changes(self.scene, path) {
            self.order(Point::Gate(gate.to_owned()), Point::Child(path.to_vec()));
        }
    }

    pub(in crate::cluster) fn before_gate(&mut self, path: &[ChildStep], gate: &str) {
        if changes(self.scene, path) {
            self.order(Point::Child(path.to_vec()), Point::Gate(gate.to_owned()));
        }
    }

    pub(in crate::cluster) fn order(&mut self, first: Point, second: Point) {
        self.choreography.orderings.push((first, second));
    }
}
