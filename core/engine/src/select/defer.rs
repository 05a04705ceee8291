//! What a plan puts off: what stands so often that only an apply can tell, what the state has of it, and all that needs it.

use karmaform_model::{Diagnostic, Diagnostics, ModeOfPlan};

use super::exclude::{close_entrances, dependents, keep_needed};
use super::{selection, spread};
use crate::graph::{Graph, Role};
use crate::options::Options;

/// By node: whether nothing can be decided of it yet. What is to be destroyed is in the state, so nothing of that is open.
pub(super) fn deferred(graph: &Graph, options: &Options) -> Vec<bool> {
    let mut deferred = vec![false; graph.nodes.len()];
    if options.mode == ModeOfPlan::Destroy || graph.open.is_empty() {
        return deferred;
    }
    // What is only looked at goes nowhere, wanted or not.
    let decides = options.mode == ModeOfPlan::Normal;
    for &number in &graph.open {
        deferred[number] = true;
        if !decides {
            continue;
        }
        // Nobody can tell yet which of these are wanted; taken for ones that are not they would go.
        graph.within(&graph.nodes[number].address).filter(|(_, n)| !graph.nodes[*n].configured).for_each(|(_, n)| deferred[n] = true);
    }
    spread(&mut deferred, &dependents(graph));
    for number in 0..deferred.len() {
        if deferred[number] {
            graph.nodes[number].children.iter().for_each(|c| deferred[*c] = true);
        }
    }
    if decides {
        keep_needed(graph, &mut deferred);
    }
    close_entrances(graph, &mut deferred);
    deferred
}

/// What is wrong with a graph, but for composites that can't be known to be right yet: those that are put off, and those that are to go, for
/// which nobody needs to know what they would be made of.
pub fn without_deferred(graph: &Graph, options: &Options, wrong: Diagnostics) -> Diagnostics {
    if !wrong.has_errors() || graph.open.is_empty() {
        return wrong;
    }
    let selection = selection(graph, options);
    let is_open = |problem: &Diagnostic| {
        let number = problem.address.as_ref().and_then(|a| graph.instances.get(a)).copied();
        let of_composite = number.filter(|n| graph.nodes[*n].role == Role::Composite);
        of_composite.is_some_and(|n| options.mode == ModeOfPlan::Destroy || selection.deferred[n])
    };
    wrong.into_iter().filter(|problem| !is_open(problem)).collect()
}
