//! `-exclude`: a run about all but some things, and all that could not be right without them.

use karmaform_model::{Diagnostic, Diagnostics, ModeOfPlan};

use super::{is_named, is_there, needs, spread};
use crate::graph::{Graph, Role};
use crate::options::Options;

/// By node: whether the run is about it.
pub(super) fn remaining(graph: &Graph, options: &Options) -> Vec<bool> {
    let count = graph.nodes.len();
    if options.excludes.is_empty() {
        return vec![true; count];
    }
    let named: Vec<bool> = graph.nodes.iter().map(|n| options.excludes.iter().any(|e| is_named(graph, n, e))).collect();
    let mut stays = named.clone();
    if options.mode == ModeOfPlan::Destroy {
        // What stays keeps all that it was made of. A part of a composite that stays does so by itself, as data that is to be kept.
        let made_of = |n: usize| graph.nodes[n].wanted.iter().chain(&graph.nodes[n].stored).copied().collect();
        spread(&mut stays, &needs(graph, made_of));
        for (number, node) in graph.nodes.iter().enumerate() {
            // Data sources are read for those that go.
            stays[number] &= named[number] || !(node.is_junction() || node.role == Role::Data);
        }
    } else {
        spread(&mut stays, &dependents(graph));
        keep_needed(graph, &mut stays);
    }
    close_entrances(graph, &mut stays);
    stays.into_iter().map(|stays| !stays).collect()
}

/// What leads into a composite is asked for only where something of it is wanted.
pub(super) fn close_entrances(graph: &Graph, stays: &mut [bool]) {
    let is_out = |n: usize| stays[n] && graph.nodes[n].children.iter().all(|c| stays[*c]);
    let is_entrance = |n: &usize| graph.nodes[*n].is_junction() && graph.nodes[*n].composite.is_some_and(is_out);
    let closed: Vec<usize> = (0..stays.len()).filter(is_entrance).collect();
    closed.into_iter().for_each(|n| stays[n] = true);
}

/// By node: what needs it by the configuration.
pub(super) fn dependents(graph: &Graph) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); graph.nodes.len()];
    for (number, node) in graph.nodes.iter().enumerate() {
        node.wanted.iter().for_each(|needed| dependents[*needed].push(number));
    }
    dependents
}

/// What is not configured any more would be destroyed; not while something that stays as it is was made of it. A composite stays with all
/// its parts.
pub(super) fn keep_needed(graph: &Graph, stays: &mut [bool]) {
    let mut seen = vec![false; graph.nodes.len()];
    let mut open: Vec<usize> = (0..stays.len()).filter(|n| stays[*n] && !graph.nodes[*n].is_junction()).collect();
    while let Some(number) = open.pop() {
        let node = &graph.nodes[number];
        let whole = node.composite.filter(|_| !node.configured && !node.is_junction());
        let parts = node.children.iter().filter(|_| !node.configured);
        for &needed in node.stored.iter().chain(parts).chain(&whole) {
            let node = &graph.nodes[needed];
            if (node.is_junction() || !node.configured) && !std::mem::replace(&mut seen[needed], true) {
                stays[needed] |= !node.is_junction();
                open.push(needed);
            }
        }
    }
}

/// What the user should know. An address that names nothing is an error here: what was to be left alone would not be.
pub(super) fn warnings(graph: &Graph, options: &Options) -> Diagnostics {
    let mut found = Diagnostics::new();
    if options.excludes.is_empty() {
        return found;
    }
    found.push(
        Diagnostic::warning(
            "Resource exclusion is in effect",
            "The -exclude option is set, so this plan may not hold everything that the configuration asks for.",
        )
        .with_hint("Use -exclude for exceptional situations only, and run plan without it afterwards."),
    );
    for address in options.excludes.iter().filter(|a| !is_there(graph, a)) {
        found.push(
            Diagnostic::error("Nothing is excluded", "Nothing in the configuration or the state is named by this value of -exclude.")
                .at(address)
                .with_hint("Check the address for typing errors; a key in brackets may need quoting in your shell."),
        );
    }
    found
}
