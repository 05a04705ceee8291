//! Asks composites in which order their changes are safe. Knows no step: what comes out is data for the schedule.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Change, ChildChange, Choreography, Diagnostics, ModeOfPlan, ResourceEntry, Scene};

use crate::facts;
use crate::graph::{Graph, Role};
use crate::observed::Answer;
use crate::walk::{Pass, Renewals};

/// The choreography of every composite of which something changes, or that needs one of which something does, by its node.
pub(crate) fn choreographies(pass: &Pass<'_>) -> (BTreeMap<usize, Choreography>, Diagnostics) {
    let (mut all, mut diagnostics) = (BTreeMap::new(), Diagnostics::new());
    let composites = pass.graph.nodes.iter().enumerate().filter(|(_, n)| n.role == Role::Composite);
    let changing: BTreeSet<usize> = composites.map(|(n, _)| n).filter(|n| changes(pass, *n)).collect();
    if changing.is_empty() {
        return (all, diagnostics);
    }
    for (number, node) in pass.graph.nodes.iter().enumerate().filter(|(_, n)| n.role == Role::Composite) {
        let Some(ResourceEntry::Composite(ty)) = pass.entries[number] else { continue };
        // Where nothing changes in the world, there is no order to keep and nothing to refuse.
        if node.forgotten || pass.lost[number] {
            continue;
        }
        let changes = changing.contains(&number);
        let is_shaken = is_shaken(pass.graph, number, &changing);
        if !changes && !is_shaken {
            continue;
        }
        let told: Vec<(usize, Cow<'_, Change>)> = node.children.iter().filter_map(|&child| Some((child, told(pass, child)?))).collect();
        let mut children = BTreeMap::new();
        for (child, change) in &told {
            let there = &pass.graph.nodes[*child];
            let answer = pass.observed.answer(&there.address);
            let observed = if let Answer::Present(object) = answer { Some(object) } else { None };
            let unseen = matches!(answer, Answer::Failed(_));
            let in_state = pass.inputs.state.resources.contains_key(&there.address);
            let change = ChildChange { resource_type: &there.kind, change, observed, in_state, unseen };
            children.insert(there.address.child.clone(), change);
        }
        let visit = &pass.visits[number];
        let is_wanted = node.configured && pass.options.mode == ModeOfPlan::Normal;
        let wanted = visit.wanted.as_ref().filter(|_| is_wanted);
        let scene = Scene { address: &node.address, before: visit.before.full.as_ref(), wanted, children };
        let stays = scene.before.is_some() && wanted.is_some();
        let own = if changes { ty.choreograph(&scene) } else { Ok(Choreography::default()) };
        let recovery = if is_shaken && stays { ty.recover(&scene) } else { Ok(Choreography::default()) };
        match own.and_then(|own| Ok(joined(own, recovery?))) {
            Ok(choreography) => drop(all.insert(number, choreography)),
            Err(errors) => {
                let span = pass.inputs.config.block(&node.address).map(|b| b.span);
                diagnostics.extend(errors.into_iter().map(|d| d.at(&node.address).with_span(span)));
            }
        }
    }
    (all, diagnostics)
}

/// A child's change as its type knows it, with the facts of the moment: who orders steps must know of each what whoever does it will know.
fn told<'p>(pass: &'p Pass<'_>, child: usize) -> Option<Cow<'p, Change>> {
    let visit = &pass.visits[child];
    let change = &visit.decision.as_ref()?.change;
    let Some(ResourceEntry::Type(_, spec)) = pass.entries[child] else { return Some(Cow::Borrowed(change)) };
    let facts = facts::seen(spec.schema(), change, visit.before.full.as_ref());
    Some(if facts.is_empty() { Cow::Borrowed(change) } else { Cow::Owned(facts::with_facts(change.clone(), &facts)) })
}

/// What composites of which nothing changes say of their children.
pub(crate) fn in_need(pass: &Pass<'_>) -> Diagnostics {
    let mut found = Diagnostics::new();
    for (number, node) in pass.graph.nodes.iter().enumerate().filter(|(_, n)| n.role == Role::Composite) {
        let Some(ResourceEntry::Composite(ty)) = pass.entries[number] else { continue };
        if node.forgotten || pass.lost[number] || changes(pass, number) {
            continue;
        }
        let children = node.children.iter().map(|&child| &pass.graph.nodes[child].address);
        let seen = children.filter_map(|address| match pass.observed.answer(address) {
            Answer::Present(object) => Some((address.child.as_slice(), object)),
            _ => None,
        });
        let span = pass.inputs.config.block(&node.address).map(|b| b.span);
        let told = ty.care(&seen.collect()).into_iter();
        found.extend(told.map(|(path, d)| d.at(&node.address.with_child(&path)).with_span(span)));
    }
    found
}

/// True if something of a composite changes.
fn changes(pass: &Pass<'_>, composite: usize) -> bool {
    let changes = |n: &usize| pass.visits[*n].decision.as_ref().is_some_and(|d| !d.change.is_no_op());
    changes(&composite) || pass.graph.nodes[composite].children.iter().any(changes)
}

/// True if the arguments of a composite refer to one that changes. Of a block's instances only the one with the same key counts, if there
/// is such a one: `etcd_cluster.main[each.key]`.
fn is_shaken(graph: &Graph, composite: usize, changing: &BTreeSet<usize>) -> bool {
    let key = &graph.nodes[composite].address.key;
    let enters = graph.nodes[composite].wanted.iter().filter(|n| graph.nodes[**n].role == Role::Enter);
    enters.flat_map(|enter| &graph.nodes[*enter].wanted).any(|&needed| {
        let node = &graph.nodes[needed];
        match node.role {
            Role::Composite => changing.contains(&needed),
            Role::Block => {
                let twin = key.as_ref().and_then(|key| graph.instances.get(&node.address.with_key(Some(key.clone()))));
                let is_of_it = |n: &usize| graph.nodes[*n].address.is_within(&node.address);
                twin.map_or_else(|| changing.iter().any(is_of_it), |twin| changing.contains(twin))
            }
            Role::Enter => node.address.is_module() && changing.iter().any(|n| graph.nodes[*n].address.is_within(&node.address)),
            _ => false,
        }
    })
}

/// Both, with what they share once.
fn joined(mut own: Choreography, recovery: Choreography) -> Choreography {
    let fresh = recovery.gates.into_iter().filter(|gate| !own.gates.iter().any(|g| g.name == gate.name)).collect::<Vec<_>>();
    own.gates.extend(fresh);
    for ordering in recovery.orderings {
        if !own.orderings.contains(&ordering) {
            own.orderings.push(ordering);
        }
    }
    own.impact.extend(recovery.impact);
    own.risk.data_loss.extend(recovery.risk.data_loss);
    own.risk.margin = own.risk.margin.into_iter().chain(recovery.risk.margin).min_by_key(|m| m.up);
    own.risk.confirm = own.risk.confirm.or(recovery.risk.confirm);
    own
}

/// Children that come to be others, and are not planned so yet.
pub(crate) fn renewals(pass: &Pass<'_>, choreographies: &BTreeMap<usize, Choreography>) -> Renewals {
    let mut all = Renewals::new();
    for (&composite, choreography) in choreographies {
        let address = &pass.graph.nodes[composite].address;
        for renewed in &choreography.renewed {
            let child = pass.graph.instances.get(&address.with_child(&renewed.child)).copied();
            let stays = |n: &usize| pass.visits[*n].decision.as_ref().is_some_and(|d| d.change.is_no_op());
            all.extend(child.filter(stays).filter(|n| !pass.renewals.contains_key(n)).map(|n| (n, renewed.attributes)));
        }
    }
    all
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

/// Gives children what only the order decides: it is in the plan like everything else that apply is to do.
pub(crate) fn tell(pass: &mut Pass<'_>, choreographies: &BTreeMap<usize, Choreography>) {
    for (&composite, choreography) in choreographies.iter().filter(|(_, c)| !c.told.is_empty()) {
        let node = &pass.graph.nodes[composite];
        for told in &choreography.told {
            let Some(&child) = pass.graph.instances.get(&node.address.with_child(&told.child)) else { continue };
            let change = pass.visits[child].decision.as_mut().map(|d| &mut d.change).filter(|c| !c.is_no_op());
            if let Some(after) = change.and_then(Change::after_mut) {
                after.insert(told.attribute.to_owned(), told.value.clone());
            }
        }
    }
}
