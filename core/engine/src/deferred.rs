//! What a plan tells of what it puts off.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Change, Deferred, DeferredReason, Diagnostic, Diagnostics};

use crate::forget::few;
use crate::graph::Role;
use crate::walk::Pass;

/// All that is put off, by address: blocks and modules whose instances are not known, and instances that need such a thing. Parts of
/// composites and what is only in the state of an open block go with these and are not named.
pub(crate) fn deferred(pass: &Pass<'_>) -> Vec<Deferred> {
    let nodes = pass.graph.nodes.iter().enumerate().filter(|(n, _)| pass.deferred[*n] && !pass.lost[*n]);
    let mut causes = Causes { pass, junctions: BTreeMap::new() };
    let mut found: Vec<Deferred> = nodes
        .filter(|(_, node)| node.open || !node.is_junction() && !node.address.is_child() && !is_of_open(pass, &node.address))
        .map(|(number, node)| Deferred {
            address: node.address.clone(),
            reason: if node.open { DeferredReason::InstanceCountUnknown } else { DeferredReason::DeferredPrereq },
            because: causes.of(number).into_iter().collect(),
            stored: stored(pass, &node.address, node.open),
            rest: None,
        })
        .collect();
    let on_their_way = pass.visits.iter().enumerate().filter(|(n, _)| pass.selected[*n] && !pass.lost[*n]);
    found.extend(on_their_way.filter_map(|(number, visit)| {
        let (address, rest) = (pass.graph.nodes[number].address.clone(), Some(visit.rest.clone()?));
        Some(Deferred { address, reason: DeferredReason::AbsentPrereq, because: Vec::new(), stored: 1, rest })
    }));
    found.sort_by(|a, b| a.address.cmp(&b.address));
    found
}

/// True if what an address means is put off, or a part of it.
pub(crate) fn is_deferred(pass: &Pass<'_>, address: &Address) -> bool {
    is_among(pass, &pass.deferred, address)
}

/// True if what an address means is among these nodes, or a part of it.
pub(crate) fn is_among(pass: &Pass<'_>, these: &[bool], address: &Address) -> bool {
    let block = address.block();
    let touches = |other: &Address| other.is_within(&block) || block.is_within(other);
    let is_open = |n: &usize| these[*n] && touches(&pass.graph.nodes[*n].address);
    pass.graph.open.iter().any(is_open) || pass.graph.within(&block).any(|(_, n)| these[n])
}

/// True for what only the state has of an open block or module.
fn is_of_open(pass: &Pass<'_>, address: &Address) -> bool {
    let graph = pass.graph;
    !graph.is_configured(address) && graph.open.iter().any(|open| address.is_within(&graph.nodes[*open].address))
}

/// How many instances the state has of what is put off: one, or those of an open block or module.
fn stored(pass: &Pass<'_>, address: &Address, is_open: bool) -> usize {
    let resources = &pass.inputs.state.resources;
    if !is_open {
        return usize::from(resources.contains_key(address));
    }
    pass.graph.within(address).filter(|(a, _)| !a.is_child() && resources.contains_key(*a)).count()
}

/// What is made anew while something that was made of it waits: that stays made of what was, until a later plan comes to it.
pub(crate) fn outlived(pass: &Pass<'_>) -> Diagnostics {
    let graph = pass.graph;
    let mut found: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
    let is_replaced = |number: usize| pass.visits[number].decision.as_ref().is_some_and(|d| matches!(d.change, Change::Replace { .. }));
    if !(0..graph.nodes.len()).any(is_replaced) {
        return Diagnostics::new();
    }
    let waiting = (0..graph.nodes.len()).filter(|n| pass.deferred[*n] && !graph.nodes[*n].is_junction());
    for number in waiting {
        let mut seen = BTreeSet::new();
        let mut next = graph.nodes[number].stored.clone();
        while let Some(needed) = next.pop() {
            if !seen.insert(needed) {
                continue;
            }
            let node = &graph.nodes[needed];
            if node.is_junction() {
                next.extend(&node.stored);
            } else if is_replaced(needed) {
                found.entry(node.address.clone()).or_default().insert(graph.nodes[number].address.clone());
            }
        }
    }
    let warning = |(made, waiting): (Address, BTreeSet<Address>)| {
        let detail =
            format!("It is replaced while what was made of it is deferred, and stays as it is until a later plan: {}.", few(&waiting));
        let span = pass.inputs.config.block(&made).map(|b| b.span);
        Diagnostic::warning("Replaced before what depends on it", detail)
            .at(&made)
            .with_span(span)
            .with_hint("If that can't be without it, let count and for_each depend on something that stays, and plan again.")
    };
    found.into_iter().map(warning).collect()
}

/// What nodes wait for: of their own needs those that are put off, are made or changed first, or could not be looked at. A block of which
/// several instances are meant is named once, so that n that wait for n others cost 2n.
struct Causes<'a> {
    pass: &'a Pass<'a>,
    /// What is found behind each junction.
    junctions: BTreeMap<usize, BTreeSet<Address>>,
}

impl Causes<'_> {
    fn of(&mut self, number: usize) -> BTreeSet<Address> {
        let mut found = BTreeSet::new();
        for &needed in &self.pass.graph.nodes[number].wanted {
            self.add(needed, &mut found);
        }
        // Its own parts are no reason.
        found.remove(&self.pass.graph.nodes[number].address);
        found
    }

    fn add(&mut self, needed: usize, found: &mut BTreeSet<Address>) {
        let node = &self.pass.graph.nodes[needed];
        if !node.is_junction() || node.open {
            let flags = &self.pass.visits[needed].flags;
            if self.pass.deferred[needed] || flags.pending || flags.unready || flags.failed {
                found.insert(node.address.whole());
            }
            return;
        }
        if !self.junctions.contains_key(&needed) {
            let mut behind = BTreeSet::new();
            node.wanted.iter().for_each(|n| self.add(*n, &mut behind));
            if node.role == Role::Block && behind.len() > 1 {
                behind = BTreeSet::from([node.address.clone()]);
            }
            self.junctions.insert(needed, behind);
        }
        found.extend(self.junctions.get(&needed).into_iter().flatten().cloned());
    }
}

/// What was to be replaced and is put off.
pub(crate) fn not_replaced(pass: &Pass<'_>) -> Diagnostics {
    let is_deferred_now = |a: &&Address| is_deferred(pass, a) && !pass.graph.instances.get(*a).is_some_and(|n| pass.selected[*n]);
    let warning = |address: &Address| {
        Diagnostic::warning("Replacement is deferred", "It is to be replaced by -replace, but nothing can be decided of it yet.")
            .at(address)
            .with_hint("Give -replace again with the plan that follows; apply -until-done does that by itself.")
    };
    if pass.graph.open.is_empty() { Diagnostics::new() } else { pass.options.replace.iter().filter(is_deferred_now).map(warning).collect() }
}
