//! Asks composites in which order their changes are safe. Knows no step: what comes out is data for the schedule.

use std::collections::BTreeMap;

use karmaform_model::{Change, ChildChange, Choreography, Diagnostics, ModeOfPlan, ResourceEntry, Scene};

use crate::graph::Role;
use crate::observed::Answer;
use crate::walk::Pass;

/// The choreography of every composite of which something changes, by its node.
pub(crate) fn choreographies(pass: &Pass<'_>) -> (BTreeMap<usize, Choreography>, Diagnostics) {
    let (mut all, mut diagnostics) = (BTreeMap::new(), Diagnostics::new());
    for (number, node) in pass.graph.nodes.iter().enumerate().filter(|(_, n)| n.role == Role::Composite) {
        let Some(ResourceEntry::Composite(ty)) = pass.entries[number] else { continue };
        let changes = |n: usize| pass.visits[n].decision.as_ref().is_some_and(|d| !d.change.is_no_op());
        // Where nothing changes in the world, there is no order to keep and nothing to refuse.
        if node.forgotten {
            continue;
        }
        if !changes(number) && !node.children.iter().any(|c| changes(*c)) {
            continue;
        }
        let mut children = BTreeMap::new();
        for &child in &node.children {
            let there = &pass.graph.nodes[child];
            let Some(decision) = &pass.visits[child].decision else { continue };
            let answer = pass.observed.answer(&there.address);
            let observed = if let Answer::Present(object) = answer { Some(object) } else { None };
            let unseen = matches!(answer, Answer::Failed(_));
            let in_state = pass.inputs.state.resources.contains_key(&there.address);
            let change = ChildChange { resource_type: &there.kind, change: &decision.change, observed, in_state, unseen };
            children.insert(there.address.child.clone(), change);
        }
        let visit = &pass.visits[number];
        let is_wanted = node.configured && pass.options.mode == ModeOfPlan::Normal;
        let wanted = visit.wanted.as_ref().filter(|_| is_wanted);
        let scene = Scene { address: &node.address, before: visit.before.full.as_ref(), wanted, children };
        match ty.choreograph(&scene) {
            Ok(choreography) => drop(all.insert(number, choreography)),
            Err(errors) => {
                let span = pass.inputs.config.block(&node.address).map(|b| b.span);
                diagnostics.extend(errors.into_iter().map(|d| d.at(&node.address).with_span(span)));
            }
        }
    }
    (all, diagnostics)
}

/// Turns deletions into forgetting, for children that go with something else.
pub(crate) fn forget(pass: &mut Pass<'_>, choreographies: &BTreeMap<usize, Choreography>) {
    for (&composite, choreography) in choreographies.iter().filter(|(_, c)| !c.forgotten.is_empty()) {
        let node = &pass.graph.nodes[composite];
        for &child in &node.children {
            if !choreography.forgotten.contains(&pass.graph.nodes[child].address.child) {
                continue;
            }
            let Some(decision) = &mut pass.visits[child].decision else { continue };
            if let Change::Delete { before } = &mut decision.change {
                decision.change = Change::Forget { before: std::mem::take(before) };
            }
        }
    }
}
