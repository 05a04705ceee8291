//! Which instances a run is about: all of them, `-target`s with what they need, or all but what is excluded with what depends on it.

mod defer;
mod exclude;

pub use defer::without_deferred;

use karmaform_model::{Address, Diagnostic, Diagnostics, ModeOfPlan};

use crate::forget::MOST;
use crate::graph::{Graph, Node, Role};
use crate::options::Options;

/// The summary of what is said of every run with `-target`.
pub const TARGETING: &str = "Resource targeting is in effect";

/// What a run is about.
pub(crate) struct Selection {
    /// By node: whether the run is about it.
    pub(crate) selected: Vec<bool>,
    /// By node: whether it would be, but is put off.
    pub(crate) deferred: Vec<bool>,
}

/// What a run is about by its options and by what can be told.
pub(crate) fn selection(graph: &Graph, options: &Options) -> Selection {
    let mut selected = selected(graph, options);
    let mut deferred = defer::deferred(graph, options);
    for (selected, deferred) in selected.iter_mut().zip(&mut deferred) {
        (*selected, *deferred) = (*selected && !*deferred, *selected && *deferred);
    }
    Selection { selected, deferred }
}

/// By node: whether the run is about it by its options.
fn selected(graph: &Graph, options: &Options) -> Vec<bool> {
    if options.targets.is_empty() {
        return exclude::remaining(graph, options);
    }
    let mut selected: Vec<bool> = graph.nodes.iter().map(|n| options.targets.iter().any(|t| is_named(graph, n, t))).collect();
    if options.mode == ModeOfPlan::Destroy {
        spread(&mut selected, &dependents(graph));
        // A composite goes with its children, and its children with it.
        for (number, node) in graph.nodes.iter().enumerate() {
            if selected[number] {
                node.children.iter().for_each(|c| selected[*c] = true);
            }
        }
        let data = needs(graph, |n| graph.nodes[n].wanted.clone());
        let mut read = selected.clone();
        spread(&mut read, &data);
        for (number, node) in graph.nodes.iter().enumerate() {
            selected[number] |= read[number] && (node.is_junction() || node.role == Role::Data);
        }
        return selected;
    }
    spread(&mut selected, &needs(graph, |n| taken_along(graph, n, options)));
    selected
}

/// What a node takes along: what it needs by the configuration; as all of a block, also the instances that only the state has. A composite that
/// goes does so with its parts; of one that stays, what leaves it is a change of its own: what the composite is to be has to be known to judge it, and a part of `member["c"]` goes with all
/// of that, as whoever stops a member must see that it is one.
fn taken_along(graph: &Graph, number: usize, options: &Options) -> Vec<usize> {
    let node = &graph.nodes[number];
    let mut along = node.wanted.clone();
    if let Some(stays) = node.composite.filter(|c| !node.configured && graph.nodes[*c].configured) {
        let composite = &graph.nodes[stays];
        along.extend(composite.wanted.iter().filter(|n| graph.nodes[**n].role == Role::Enter));
        let goes_along = |c: &&usize| {
            let other = &graph.nodes[**c];
            !other.configured && other.address.child.first() == node.address.child.first()
        };
        along.extend(composite.children.iter().filter(goes_along));
    }
    if options.takes_along {
        along.extend(node.stored.iter().filter(|_| node.role == Role::Block));
        along.extend(node.children.iter().filter(|_| !node.configured));
    }
    along
}

/// True if an address is what was asked for, by the name that it has or had.
fn is_meant(graph: &Graph, address: &Address, target: &Address) -> bool {
    address.is_within(target) || graph.previous(address).is_some_and(|was| was.is_within(target))
}

/// True if a node is what was asked for. Of what is not known to stand how often, an instance may be meant.
fn is_named(graph: &Graph, node: &Node, target: &Address) -> bool {
    is_meant(graph, &node.address, target) && !node.is_junction()
        || node.open && (node.address.is_within(target) || target.is_within(&node.address))
}

/// True if anything is meant by an address.
fn is_there(graph: &Graph, address: &Address) -> bool {
    graph.nodes.iter().any(|n| is_named(graph, n, address))
}

fn needs(graph: &Graph, of: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    (0..graph.nodes.len()).map(of).collect()
}

/// What has to go before a node can go: what was made from it, by the state, and what is made from it, by the configuration. What is only
/// forgotten stays where it is, and so may all that was made from it.
fn dependents(graph: &Graph) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); graph.nodes.len()];
    for (number, node) in graph.nodes.iter().enumerate() {
        for &needed in node.wanted.iter().chain(&node.stored) {
            // A composite's record needs its children, but a targeted child does not take all of its siblings with it.
            let is_own_child = node.role == Role::Composite && graph.nodes[needed].composite == Some(number);
            if !is_own_child && !graph.nodes[needed].forgotten {
                dependents[needed].push(number);
            }
        }
    }
    dependents
}

fn spread(selected: &mut [bool], edges: &[Vec<usize>]) {
    let mut open: Vec<usize> = (0..selected.len()).filter(|n| selected[*n]).collect();
    while let Some(number) = open.pop() {
        for &next in &edges[number] {
            if !std::mem::replace(&mut selected[next], true) {
                open.push(next);
            }
        }
    }
}

/// What the user should know about targets and forced replacements.
pub(crate) fn warnings(graph: &Graph, options: &Options) -> Diagnostics {
    let mut warnings = Diagnostics::new();
    if !options.targets.is_empty() {
        warnings.push(
            Diagnostic::warning(
                TARGETING,
                "The -target option is set, so this plan may not hold everything that the configuration asks for.",
            )
            .with_hint("Use -target for exceptional situations only, and run plan without it afterwards."),
        );
    }
    warnings.extend(exclude::warnings(graph, options));
    warnings.extend(left_out(graph, options));
    for (option, addresses) in [("-target", &options.targets), ("-replace", &options.replace)] {
        for address in addresses.iter().filter(|a| !is_there(graph, a)) {
            warnings.push(
                Diagnostic::warning("No such resource", format!("Nothing in the configuration or the state is selected by {option}."))
                    .at(address)
                    .with_hint("Check the address for typing errors; a key in brackets may need quoting in your shell."),
            );
        }
    }
    for address in options.replace.iter().filter(|a| a.key.is_none()) {
        let found: Vec<_> = graph.instances.keys().filter(|i| i.is_within(address)).collect();
        if !found.is_empty() && found.iter().all(|i| i.key.is_some()) {
            let mut names: Vec<_> = found.iter().filter(|i| !i.is_child()).map(|i| format!("-replace='{i}'")).collect();
            names.truncate(5);
            warnings.push(
                Diagnostic::warning(
                    "No instance is replaced",
                    "The block has several instances, and -replace takes them one by one, each with its key.",
                )
                .at(address)
                .with_hint(format!("Use {}.", names.join(" "))),
            );
        }
    }
    warnings
}

/// A state is moved as a whole: what moved must not be left out, or its old name would be remembered for what is there no more.
fn left_out(graph: &Graph, options: &Options) -> Option<Diagnostic> {
    if !options.is_partial() || graph.moved.is_empty() {
        return None;
    }
    let selected = selected(graph, options);
    let is_in = |a: &Address| graph.instances.get(a).is_some_and(|n| selected[*n]);
    let left: Vec<_> = graph.moved.iter().filter(|(now, _)| !is_in(now)).collect();
    let (now, was) = left.first()?;
    let detail = format!(
        "Moves are about the whole state, and {} of what moved {} not among what was asked for: {was}, which is {now} now, is the first.",
        left.len(),
        if left.len() == 1 { "is" } else { "are" }
    );
    if !options.excludes.is_empty() {
        let error = Diagnostic::error("Moved resource instances excluded", detail).at(now);
        return Some(error.with_hint("Exclude something else, or apply the moves before."));
    }
    let options: Vec<_> = left.iter().map(|(now, _)| format!("-target='{now}'")).take(MOST).collect();
    let error = Diagnostic::error("Moved resource instances excluded by targeting", detail).at(now);
    Some(error.with_hint(format!("Run without -target, or add {}.", options.join(" "))))
}
