//! Says which steps there are and what must come before what: dependencies, replacements, choreography. `order` makes numbers of it.
//!
//! Every node has two places: `up`, when it is made or changed, and `down`, when it is deleted. Makes go with the dependencies of the
//! configuration, deletes against those of the state.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Address, Change, ChildStep, Choreography, Diagnostic, Point, ReplaceOrder, Step, StepKind};

use crate::graph::{Graph, Role};
use crate::order::{Points, Strength, order};
use crate::walk::Pass;

/// What the schedule is made of.
pub(crate) struct Parts<'a> {
    pub(crate) pass: &'a Pass<'a>,
    /// By node: the index of its planned resource.
    pub(crate) planned: &'a [Option<usize>],
    /// Left over objects: node, index of the planned resource, and whether it is deleted or forgotten.
    pub(crate) deposed: &'a [(usize, usize, Action)],
    pub(crate) choreographies: &'a BTreeMap<usize, Choreography>,
    /// Children whose place does not answer.
    pub(crate) away: &'a BTreeSet<Address>,
}

struct Places {
    points: Points,
    away: Vec<Away>,
    up: Vec<usize>,
    /// Empty if nothing is deleted.
    down: Vec<usize>,
    /// Of composites: when the own record is removed.
    record: BTreeMap<usize, usize>,
}

/// By node: what is where nobody answers.
#[derive(Clone, Copy, Default)]
struct Away {
    /// It is there itself.
    all: bool,
    /// It is, or a part of it.
    some: bool,
}

/// The steps of a plan.
///
/// # Errors
/// If a choreography contradicts itself or the dependencies.
pub(crate) fn schedule(parts: &Parts<'_>) -> Result<Vec<Step>, Diagnostic> {
    let graph = parts.pass.graph;
    let mut places =
        Places { points: Points::default(), away: away(parts), up: vec![0; graph.nodes.len()], down: Vec::new(), record: BTreeMap::new() };
    make(parts, &mut places);
    let goes = |n: usize| matches!(change(parts, n), Some(Change::Delete { .. } | Change::Forget { .. } | Change::Replace { .. }));
    if !parts.deposed.is_empty() || (0..graph.nodes.len()).any(goes) {
        delete(parts, &mut places);
        replace(parts, &mut places);
    }
    for (&composite, choreography) in parts.choreographies {
        direct(graph, composite, choreography, &mut places);
    }
    order(places.points).map_err(|cycle| contradiction(parts, &cycle))
}

fn away(parts: &Parts<'_>) -> Vec<Away> {
    let graph = parts.pass.graph;
    let mut away = vec![Away::default(); graph.nodes.len()];
    for &child in parts.away.iter().filter_map(|address| graph.instances.get(address)) {
        away[child] = Away { all: true, some: true };
        if let Some(composite) = graph.nodes[child].composite {
            away[composite].some = true;
        }
    }
    away
}

/// True if the second one waits for the first. What is left of a composite where nobody answers holds up nothing but what is there as well; its other
/// children need all that it needs.
fn holds(away: &[Away], first: usize, second: usize) -> bool {
    !away[first].some || away[second].all
}

fn change<'a>(parts: &'a Parts<'_>, node: usize) -> Option<&'a Change> {
    parts.planned[node]?;
    parts.pass.visits[node].decision.as_ref().map(|d| &d.change)
}

fn make(parts: &Parts<'_>, places: &mut Places) {
    let graph = parts.pass.graph;
    for &number in &graph.order {
        let up = places.points.place();
        places.up[number] = up;
        let is_new = || matches!(change(parts, number), Some(Change::Create { .. }));
        let early = graph.nodes[number].near.is_some() && is_new();
        for &needed in graph.nodes[number].wanted.iter().filter(|n| !(early && graph.is_entrance_of(**n, number))) {
            let is_sibling = graph.nodes[number].role == Role::Child && graph.nodes[needed].role == Role::Child;
            if !is_sibling || holds(&places.away, needed, number) {
                places.points.before(places.up[needed], up);
            }
        }
        let Some(resource) = parts.planned[number] else { continue };
        let part = match change(parts, number) {
            Some(Change::Create { .. } | Change::Replace { .. }) => Action::Create,
            Some(Change::Update { .. }) => Action::Update,
            Some(Change::Read { .. }) => Action::Read,
            _ => continue,
        };
        let is_record = graph.nodes[number].role == Role::Composite;
        places.points.set(up, if is_record { StepKind::Finish { resource } } else { StepKind::Change { resource, part } });
    }
}

fn delete(parts: &Parts<'_>, places: &mut Places) {
    let graph = parts.pass.graph;
    places.down = vec![0; graph.nodes.len()];
    for &number in graph.order.iter().rev() {
        places.down[number] = places.points.place();
        if graph.nodes[number].role == Role::Composite {
            let record = places.points.place();
            places.record.insert(number, record);
        }
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        let down = places.down[number];
        let last = places.record.get(&number).copied().unwrap_or(down);
        if let Some(resource) = parts.planned[number] {
            match change(parts, number) {
                Some(Change::Delete { .. }) => places.points.set(last, StepKind::Change { resource, part: Action::Delete }),
                Some(Change::Forget { .. }) => places.points.set(last, StepKind::Change { resource, part: Action::Forget }),
                Some(Change::Replace { .. }) if node.role != Role::Composite => {
                    places.points.set(down, StepKind::Change { resource, part: Action::Delete });
                }
                _ => {}
            }
        }
        // What was found and is not in the state yet has no stored dependencies; those of the configuration are the best guess.
        let is_stored = node.is_junction() || parts.pass.inputs.state.resources.contains_key(&node.address);
        let needed = if is_stored || node.role == Role::Composite { &node.stored } else { &node.wanted };
        for &needed in needed {
            if !holds(&places.away, number, needed) {
                continue;
            }
            // A child needs what its composite needs, but the composite may have to make one child before it deletes another; then
            // what both need can't be replaced between the two.
            let is_inside = node.composite.is_some() && graph.nodes[needed].composite == node.composite;
            let is_part = matches!(node.role, Role::Child | Role::Composite);
            let strength = if is_part && !is_inside { Strength::Loose } else { Strength::Hard };
            places.points.rather_before(last, places.down[needed], strength);
        }
        for &child in &node.children {
            places.points.before(down, places.down[child]);
            places.points.before(places.down[child], last);
            // One that goes as a whole is never finished again, and whoever needed it goes as well.
            if !(places.away[child].all && matches!(change(parts, number), Some(Change::Delete { .. } | Change::Forget { .. }))) {
                places.points.before(places.down[child], places.up[number]);
            }
        }
    }
}

fn replace(parts: &Parts<'_>, places: &mut Places) {
    let graph = parts.pass.graph;
    // "Everything that needed it has moved on", by node; junctions pass it on, so that n dependents of n cost 2n.
    let moved: Vec<usize> = graph.nodes.iter().map(|_| places.points.place()).collect();
    for (number, node) in graph.nodes.iter().enumerate() {
        let from = if node.is_junction() { moved[number] } else { places.up[number] };
        for &needed in node.wanted.iter().chain(&node.stored) {
            if graph.nodes[needed].composite != Some(number) && needed != number && holds(&places.away, number, needed) {
                places.points.rather_before(from, moved[needed], Strength::Firm);
            }
        }
        let (up, down) = (places.up[number], places.down[number]);
        match change(parts, number) {
            Some(Change::Replace { order: ReplaceOrder::DestroyFirst, .. }) => places.points.before(down, up),
            Some(Change::Replace { order: ReplaceOrder::CreateFirst, .. }) => {
                places.points.before(up, down);
                places.points.rather_before(moved[number], down, Strength::Firm);
            }
            Some(Change::Delete { .. }) if node.role != Role::Composite => {
                places.points.rather_before(moved[number], down, Strength::Soft);
            }
            _ => {}
        }
    }
    for &(number, resource, part) in parts.deposed {
        let step = places.points.step(StepKind::Change { resource, part });
        places.points.rather_before(places.up[number], step, Strength::Firm);
        places.points.rather_before(moved[number], step, Strength::Firm);
        // Whatever still uses the leftover names the instance as what it needs.
        places.points.before(places.down[number], step);
        for &needed in &graph.nodes[number].stored {
            places.points.before(step, places.down[needed]);
        }
    }
}

/// Adds what a composite says about the order of its changes.
fn direct(graph: &Graph, composite: usize, choreography: &Choreography, places: &mut Places) {
    let node = &graph.nodes[composite];
    let mut gates: BTreeMap<&str, usize> = BTreeMap::new();
    let mut children: BTreeMap<Vec<ChildStep>, (usize, usize)> = BTreeMap::new();
    for gate in &choreography.gates {
        let point = places.points.step(StepKind::Gate { composite: node.address.clone(), gate: Box::new(gate.clone()) });
        gates.insert(&gate.name, point);
        places.points.before(point, places.up[composite]);
        if let Some(&record) = places.record.get(&composite) {
            places.points.before(point, record);
        }
        let mut needed = Vec::new();
        gate.arguments.values().for_each(|a| a.references(&mut needed));
        let siblings = needed.iter().filter_map(|path| graph.instances.get(&node.address.with_child(path)));
        let enter = node.wanted.iter().filter(|w| graph.nodes[**w].role == Role::Enter);
        for needed in siblings.chain(enter) {
            places.points.before(places.up[*needed], point);
        }
    }
    // One that is not there has places of its own, too: it passes on what is said of it, and of nobody else.
    let mut ends = |point: &'_ Point, places: &mut Places| -> (usize, usize) {
        match point {
            Point::Gate(name) => match gates.get(name.as_str()) {
                Some(&gate) => (gate, gate),
                None => {
                    let nothing = places.points.place();
                    (nothing, nothing)
                }
            },
            Point::Child(path) => {
                let number = graph.instances.get(&node.address.with_child(path)).copied();
                *children.entry(path.clone()).or_insert_with(|| around(number, places))
            }
        }
    };
    for (first, second) in &choreography.orderings {
        let (_, end) = ends(first, places);
        let (start, _) = ends(second, places);
        places.points.before(end, start);
    }
}

/// A place before all steps of a child, and one after them. Only places that have a step count: those without one carry the dependencies
/// of makes through a plan that only deletes, and of deletes through one that only makes, where they would contradict what is directed.
fn around(number: Option<usize>, places: &mut Places) -> (usize, usize) {
    let (start, end) = (places.points.place(), places.points.place());
    let both = number.map(|n| [Some(places.up[n]), places.down.get(n).copied()]);
    let mut changes = false;
    for point in both.into_iter().flatten().flatten() {
        if places.points.is_step(point) {
            changes = true;
            places.points.before(start, point);
            places.points.before(point, end);
        }
    }
    if !changes {
        places.points.before(start, end);
    }
    (start, end)
}

fn contradiction(parts: &Parts<'_>, cycle: &[StepKind]) -> Diagnostic {
    let node_of = |resource: usize| parts.planned.iter().position(|p| *p == Some(resource));
    let name = |kind: &StepKind| match kind {
        StepKind::Change { resource, .. } | StepKind::Finish { resource } => {
            node_of(*resource).map(|n| parts.pass.graph.nodes[n].address.to_string()).unwrap_or_default()
        }
        StepKind::Gate { composite, gate } => format!("{composite} ({})", gate.name),
        StepKind::Join => String::new(),
    };
    let mut names: Vec<String> = cycle.iter().map(name).filter(|n| !n.is_empty()).collect();
    names.dedup();
    Diagnostic::error(
        "Steps contradict each other",
        format!("There is no order for these steps, since each has to wait for another: {}. This is a bug.", names.join(", ")),
    )
    .with_hint("Please report it with the plan. Applying parts of it with -target may help meanwhile.")
}
