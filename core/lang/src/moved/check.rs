//! Whether `moved` blocks go together, and the order in which they take effect. Knows no state: what is wrong here is wrong for every state.

use std::collections::BTreeSet;

use karmaform_model::{Address, Diagnostic, Diagnostics, ModuleStep, Span};

use super::Moved;
use super::ends::Ends;
use super::pattern::Pattern;
use crate::config::Config;

/// The blocks in the order in which they take effect. Instances of modules are known by now.
pub(crate) fn checked(config: &Config, blocks: Vec<Moved>, diagnostics: &mut Diagnostics) -> Vec<Moved> {
    let ends = Ends::of(blocks.iter().map(|m| (Pattern::of(m, &m.from), Pattern::of(m, &m.to))).collect());
    let mut is_double = vec![false; blocks.len()];
    for (later, moved) in blocks.iter().enumerate() {
        let (from, to) = &ends.all()[later];
        for first in ends.near(later).into_iter().take_while(|first| *first < later) {
            let (other, (other_from, other_to)) = (&blocks[first], &ends.all()[first]);
            match (other_from.is_same(from), other_to.is_same(to)) {
                _ if is_double[first] => {}
                (true, true) => is_double[later] = true,
                (true, false) => diagnostics.push(ambiguous(moved, other, false)),
                (false, true) => diagnostics.push(ambiguous(moved, other, true)),
                (false, false) => {}
            }
        }
        diagnostics.extend(still_there(config, moved));
    }
    match order(&ends) {
        Ok(order) => order.into_iter().filter(|n| !is_double[*n]).map(|n| blocks[n].clone()).collect(),
        Err(circle) => {
            diagnostics.push(goes_round(&circle.iter().map(|n| &blocks[*n]).collect::<Vec<_>>()));
            Vec::new()
        }
    }
}

/// Two blocks about one source, or about one target.
fn ambiguous(moved: &Moved, other: &Moved, has_one_target: bool) -> Diagnostic {
    let detail = if has_one_target {
        format!("Both {} and {} are said to have moved to {}, and only one thing can be there.", other.from, moved.from, moved.to)
    } else {
        format!("{} is said to have moved to {}, and to {}.", moved.from, other.to, moved.to)
    };
    Diagnostic::error("Ambiguous moved blocks", detail)
        .with_span(Some(moved.span))
        .with_label(other.span, "the other one")
        .with_hint("Delete one of the two, or correct its address.")
}

/// What has moved and stands there still.
fn still_there(config: &Config, moved: &Moved) -> Option<Diagnostic> {
    // Without values each stands once, without a key, and for all its instances.
    if config.any_values && moved.from.configuration() == moved.to.configuration() {
        return None;
    }
    let around = config.places.iter().filter(|(path, _)| super::names(path) == moved.module);
    let (address, there) = around.filter_map(|(path, _)| declared(config, path, moved)).next()?;
    let word = if address.is_module() { "module" } else { "resource" };
    let to = moved.to.in_module(&address.module[..moved.module.len()]);
    let detail = format!("The block says that {address} is at {to} now, but it is configured.");
    let error = Diagnostic::error("Moved object still exists", detail).at(&address).with_span(Some(moved.from_span));
    Some(error.with_label(there, "it stands here").with_hint(format!("Rename the {word} block, or delete the moved block to have both.")))
}

/// The source of a move, seen from the root, and where it is declared; `None` if it is not.
fn declared(config: &Config, around: &[ModuleStep], moved: &Moved) -> Option<(Address, Span)> {
    let from = moved.from.in_module(around);
    if !from.is_module() {
        let block = config.blocks.get(&from.block())?;
        // Where no key is known, each may be one that is not there any more.
        let is_there = moved.is_whole() || (block.repetition.has(from.key.as_ref()) && !config.any_values);
        return is_there.then_some((from, block.span));
    }
    let (last, outer) = from.module.split_last()?;
    let parent = *config.places.get(outer)?;
    let unit = config.modules.get(parent)?.unit.as_deref().unwrap_or(config);
    let span = unit.calls.get(&last.name)?.span;
    let is_there = moved.is_whole() || config.places.contains_key(&from.module);
    is_there.then_some((from, span))
}

/// True if the first takes effect before the second: what it moves may be moved on, or what is moved out of it, or into it.
fn goes_first(first: &(Pattern, Pattern), second: &(Pattern, Pattern)) -> bool {
    let is_special = first.0.may_be(&second.0) && !first.0.is_whole_resource() && second.0.is_whole_resource();
    let is_nested =
        second.0.may_be_in(&first.1) || second.1.may_be_in(&first.1) || first.0.may_be_in(&second.0) || first.1.may_be_in(&second.0);
    // Of a module that only gets another key, what moves within it lies in both its ends. It goes after.
    let is_of_keys = second.0.is_same_call(&second.1) && second.0.depth() < first.0.depth();
    is_special || first.1.may_be(&second.0) || is_nested && !is_of_keys
}

/// Every block after those that go first; otherwise as they stand.
///
/// # Errors
/// Blocks of which each goes before the next, and the last before the first.
fn order(ends: &Ends) -> Result<Vec<usize>, Vec<usize>> {
    let all = ends.all();
    let goes_first = |first: usize, second: usize| first != second && goes_first(&all[first], &all[second]);
    let before: Vec<Vec<usize>> =
        (0..all.len()).map(|second| ends.near(second).into_iter().filter(|first| goes_first(*first, second)).collect()).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (second, firsts) in before.iter().enumerate() {
        for first in firsts {
            after[*first].push(second);
        }
    }
    // How many each still waits for.
    let mut waits: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<usize> = (0..all.len()).filter(|n| waits[*n] == 0).collect();
    let mut order = Vec::new();
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for second in &after[next] {
            waits[*second] -= 1;
            if waits[*second] == 0 {
                ready.insert(*second);
            }
        }
    }
    if order.len() == all.len() { Ok(order) } else { Err(circle(&before, &(0..all.len()).filter(|n| waits[*n] > 0).collect())) }
}

/// One way round among blocks that all wait for each other.
fn circle(before: &[Vec<usize>], open: &BTreeSet<usize>) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let mut next = open.first().copied();
    while let Some(here) = next {
        if let Some(start) = path.iter().position(|n| *n == here) {
            path.drain(..start);
            path.reverse();
            break;
        }
        path.push(here);
        next = before[here].iter().copied().find(|b| open.contains(b));
    }
    path
}

fn goes_round(circle: &[&Moved]) -> Diagnostic {
    let steps: Vec<String> = circle.iter().map(|m| format!("{} to {}", m.from, m.to)).collect();
    let detail = format!("What these moved blocks say goes round in circles: {}.", steps.join(", "));
    let error = Diagnostic::error("Moves in a circle", detail).with_span(circle.first().map(|m| m.span));
    let error = circle.iter().skip(1).fold(error, |error, m| error.with_label(m.span, "and this"));
    error.with_hint("Delete the blocks that are not true any more.")
}
