//! Does the steps of a plan, in an order that a policy picks from those that are allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use karmaform_model::{Change, ChildStep, Object, Point, Type, Value};

use super::way::Way;
use super::{CHOICE, Outside, Path, Plan, Stage, State, removes};

/// Which of the allowed steps is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Units as early as they may.
    UnitsFirst,
    /// Units as late as they may.
    UnitsLast,
    /// By a seeded shuffle.
    Shuffled(u64),
}

/// What interferes with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing.
    Never,
    /// The run is killed after so many steps.
    After(usize),
    /// A member's process ends after so many steps; the run goes on.
    CrashAfter(usize, String),
    /// The run is killed in the middle of the first step after so many that moves a directory.
    Moving(usize, Cut),
}

/// How far moving a directory has come when it is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nothing was done yet.
    Before,
    /// The host took note of it. Whoever uses it goes on.
    Noted,
    /// It has left its place, and is not at the new one.
    Left,
    /// It is at the new place, and the host still says that it is on its way.
    Arrived,
    /// All was done, and nobody has heard of it.
    Done,
}

impl Cut {
    pub(crate) const ALL: [Self; 5] = [Self::Before, Self::Noted, Self::Left, Self::Arrived, Self::Done];
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Child(Path),
    Gate(String),
}

impl<W: Outside> Stage<W> {
    /// Runs a plan. Gives the number of steps done, and what failed.
    pub(crate) fn run(&mut self, plan: &Plan, policy: Policy, stop: &Stop) -> (usize, Vec<String>) {
        self.world.begin(plan.wanted.is_none());
        self.go_on(plan, Way::new(plan, policy), stop, &mut |_, _| {})
    }

    /// Goes on with a run. Before each step, and after the last one, `each` is shown what there is and how far it has come.
    pub(super) fn go_on(&mut self, plan: &Plan, mut way: Way, stop: &Stop, each: &mut dyn FnMut(&Self, &Way)) -> (usize, Vec<String>) {
        let Graph { nodes, after } = &plan.graph;
        loop {
            each(self, &way);
            match stop {
                Stop::After(n) if way.done >= *n => return (way.done, way.failures),
                Stop::CrashAfter(n, member) if way.done == *n => self.world.crash(member),
                _ => {}
            }
            let is_ready = |n: &usize| way.open[*n] && !way.blocked[*n] && after[*n].iter().all(|w| !way.open[*w]);
            let ready: Vec<usize> = (0..nodes.len()).filter(is_ready).collect();
            let Some(node) = pick::<W>(&ready, nodes, way.policy, &mut way.random) else { break };
            if let (Stop::Moving(n, cut), Node::Child(path)) = (stop, &nodes[node])
                && way.done >= *n
                && self.cut_off(plan, path, *cut)
            {
                return (way.done, way.failures);
            }
            match self.step(plan, &nodes[node]) {
                Ok(()) => way.open[node] = false,
                Err(why) => {
                    way.failures.push(format!("{:?}: {why}", nodes[node]));
                    way.blocked[node] = true;
                }
            }
            way.done += 1;
        }
        if way.open.iter().all(|o| !o) {
            self.finish(plan);
        }
        (way.done, way.failures)
    }

    fn step(&mut self, plan: &Plan, node: &Node) -> Result<(), String> {
        match node {
            Node::Gate(name) => {
                let gate = plan.choreography.gates.iter().find(|g| g.name == *name).ok_or("no such gate")?;
                // What disks there are is no matter of the model; that one is tried before anything is made there is.
                if gate.gate == "ssh_disk" {
                    let member = name.split('"').nth(1).ok_or("a disk of no member")?;
                    let is_there = self.state.children.keys().any(|p| *p == [ChildStep::keyed("member", member), ChildStep::new("unit")]);
                    return if is_there { Err("it is tried too late".to_owned()) } else { Ok(()) };
                }
                // Volumes of the model are as large as they are to be.
                if gate.gate == "kubernetes_grown" {
                    return Ok(());
                }
                if gate.gate == "etcd_silent" {
                    let members = gate.arguments["members"].resolve(&|_, _| Value::unknown(Type::Any));
                    let mut members = members.as_items().unwrap_or_default().iter().filter_map(Value::as_str);
                    return members.find(|m| self.world.is_healthy(m)).map_or(Ok(()), |m| Err(format!("{m} works again")));
                }
                if gate.acts {
                    let lookup = |path: &[ChildStep], attribute: &str| {
                        let known = self.state.children.get(path).and_then(|(_, o)| o.get(attribute).cloned());
                        known.unwrap_or_else(|| Value::unknown(Type::Any))
                    };
                    let arguments: Object = gate.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&lookup))).collect();
                    let mut waits = String::new();
                    for _ in 0..5 {
                        match self.world.operate(&gate.gate, &arguments)? {
                            None => return Ok(()),
                            Some(why) => waits = why,
                        }
                    }
                    return Err(format!("{name}: {waits}"));
                }
                let required = gate.arguments["require"].resolve(&|_, _| Value::unknown(Type::Any));
                let required: Vec<&str> = required.as_items().unwrap_or_default().iter().filter_map(Value::as_str).collect();
                let unhealthy = self.world.gate(&required);
                if self.world.is_full() && !gate.arguments.contains_key("tolerate") {
                    return Err("alarm NOSPACE".to_owned());
                }
                if unhealthy.is_empty() { Ok(()) } else { Err(format!("not healthy: {}", unhealthy.join(", "))) }
            }
            Node::Child(path) => self.change(plan, path),
        }
    }

    /// The state says what was, the world is somewhere in between. False: it is no such step.
    fn cut_off(&mut self, plan: &Plan, path: &Path, cut: Cut) -> bool {
        let (resource_type, change) = &plan.changes[path];
        let Some(_) = change.after().filter(|a| resource_type == "ssh_directory" && a.get("moves").is_some_and(|m| !m.is_null())) else {
            return false;
        };
        self.world.cut_off(change, cut);
        true
    }

    fn change(&mut self, plan: &Plan, path: &Path) -> Result<(), String> {
        let (resource_type, change) = &plan.changes[path];
        let mut change = change.clone();
        if let Some(child) = plan.expansion.child(path)
            && let Some(after) = change.after_mut()
        {
            let lookup = |path: &[ChildStep], attribute: &str| {
                let known = self.state.children.get(path).and_then(|(_, o)| o.get(attribute).cloned());
                known.unwrap_or_else(|| Value::unknown(Type::Any))
            };
            let is_told = |name: &str| plan.choreography.told.iter().any(|t| t.child == *path && t.attribute == name);
            for (name, argument) in child.arguments.iter().filter(|(name, _)| !is_told(name)) {
                let value = argument.resolve(&lookup);
                if !value.is_wholly_known() {
                    return Err(format!("{name} is not known"));
                }
                after.put(name, value);
            }
        }
        let result = match resource_type.as_str() {
            "etcd_member" => match change.after() {
                Some(after) => {
                    let member = after["name"].as_str().unwrap_or_default().to_owned();
                    if !self.world.is_healthy(&member) {
                        return Err("not healthy".to_owned());
                    }
                    let mut object = after.clone();
                    self.world.add_ids(&member, &mut object);
                    Some(object)
                }
                None => None,
            },
            CHOICE => change.after().cloned(),
            t if W::is_outside(t) => self.world.change(t, &change)?,
            t => self.world.issue(t, &change),
        };
        match result {
            Some(object) => {
                self.state.children.insert(path.clone(), (resource_type.clone(), object));
                self.remember(plan, path);
            }
            None => drop(self.state.children.remove(path)),
        }
        Ok(())
    }

    fn remember(&mut self, plan: &Plan, path: &Path) {
        if let Some(needs) = plan.expansion.needs(path) {
            self.state.needs.insert(path.clone(), Rc::clone(needs));
        }
    }

    fn finish(&mut self, plan: &Plan) {
        for (path, (resource_type, change)) in &plan.changes {
            if let Change::NoOp { object } = change {
                self.state.children.insert(path.clone(), (resource_type.clone(), object.clone()));
                self.remember(plan, path);
            }
        }
        self.state.before = plan.wanted.clone().map(|mut record| {
            let lookup = |path: &[ChildStep], attribute: &str| {
                self.state.children.get(path).and_then(|(_, o)| o.get(attribute).cloned()).unwrap_or_else(|| Value::null(Type::Any))
            };
            record.extend(plan.expansion.outputs.iter().map(|(n, a)| (n.clone(), a.resolve(&lookup))));
            record
        });
    }
}

fn pick<W: Outside>(ready: &[usize], nodes: &[Node], policy: Policy, random: &mut Random) -> Option<usize> {
    let is_unit = |n: &usize| matches!(&nodes[*n], Node::Child(path) if path.last().is_some_and(|s| W::runs_a_member(&s.name)));
    let is_gate = |n: &usize| matches!(nodes[*n], Node::Gate(_));
    match policy {
        Policy::UnitsFirst => ready.iter().copied().min_by_key(|n| (!is_unit(n), is_gate(n))),
        Policy::UnitsLast => ready.iter().copied().min_by_key(|n| (is_unit(n), !is_gate(n))),
        Policy::Shuffled(_) if ready.is_empty() => None,
        Policy::Shuffled(_) => Some(ready[usize::try_from(random.next() % ready.len() as u64).unwrap_or(0)]),
    }
}

#[derive(Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(policy: Policy) -> Self {
        Self(match policy {
            Policy::Shuffled(seed) => seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            _ => 1,
        })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
}

/// Steps, and for each the steps that must have ended before it.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    after: Vec<Vec<usize>>,
}

/// The steps of a plan.
pub(super) fn graph(plan: &Plan, state: &State) -> Graph {
    let changed = |path: &Path| plan.changes.get(path).is_some_and(|(_, c)| !c.is_no_op());
    let mut nodes: Vec<Node> = plan.changes.keys().filter(|p| changed(p)).cloned().map(Node::Child).collect();
    nodes.extend(plan.choreography.gates.iter().map(|g| Node::Gate(g.name.clone())));
    let mut edges = Vec::new();
    let gates = plan.choreography.gates.iter().map(|g| {
        let mut found = Vec::new();
        g.arguments.values().for_each(|a| a.references(&mut found));
        (Node::Gate(g.name.clone()), found)
    });
    // Through children without a change the order is passed on.
    let reach = |start: Vec<Path>| {
        let (mut found, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), start);
        while let Some(path) = open.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            if changed(&path) {
                found.insert(path);
            } else if let Some(needs) = plan.expansion.needs(&path) {
                open.extend(needs.iter().cloned());
            }
        }
        found
    };
    let wanted = plan.expansion.children.iter().filter(|c| changed(&c.path)).map(|c| {
        let needs = plan.expansion.needs(&c.path).map(|needs| needs.to_vec());
        (Node::Child(c.path.clone()), needs.unwrap_or_default())
    });
    for (node, first) in wanted.chain(gates) {
        edges.extend(reach(first).into_iter().map(|path| (Node::Child(path), node.clone())));
    }
    edges.extend(deletions(plan, state));
    let node = |point: &Point| match point {
        Point::Child(path) => Node::Child(path.clone()),
        Point::Gate(name) => Node::Gate(name.clone()),
    };
    edges.extend(plan.choreography.orderings.iter().map(|(a, b)| (node(a), node(b))));
    let index: BTreeMap<&Node, usize> = nodes.iter().enumerate().map(|(i, n)| (n, i)).collect();
    let mut after = vec![Vec::new(); nodes.len()];
    for (a, b) in &edges {
        if let (Some(a), Some(b)) = (index.get(a), index.get(b)) {
            after[*b].push(*a);
        }
    }
    let mut done = vec![false; nodes.len()];
    while let Some(next) = (0..nodes.len()).find(|n| !done[*n] && after[*n].iter().all(|a| done[*a])) {
        done[next] = true;
    }
    let stuck: Vec<_> = nodes.iter().zip(&done).filter(|(_, d)| !**d).map(|(n, _)| n).collect();
    assert!(stuck.is_empty(), "these wait for each other: {stuck:?}");
    Graph { nodes, after }
}

/// Deletions go the other way: the state remembers who needed whom.
fn deletions(plan: &Plan, state: &State) -> Vec<(Node, Node)> {
    let goes = |path: &Path| plan.changes.get(path).is_some_and(|(_, c)| removes(c));
    let mut edges = Vec::new();
    for (path, needs) in state.needs.iter().filter(|(path, _)| goes(path)) {
        edges.extend(needs.iter().filter(|n| goes(n)).map(|n| (Node::Child(path.clone()), Node::Child(n.clone()))));
    }
    edges
}
