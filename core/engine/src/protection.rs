//! `prevent_destroy`: what it keeps from being destroyed, in blocks and beyond them.

use karmaform_lang::Evaluator;
use karmaform_model::{Address, Change, Diagnostic, Diagnostics, Mode, Plan, Snapshot};

use crate::walk::Pass;

/// By node: whether it is in effect; and what it refuses. Without a block that says so (it was deleted, or the key of the instance was) what
/// was in effect when the instance was last applied still holds, until a `removed` block says that it is to be destroyed.
pub(crate) fn guard(pass: &Pass<'_>, evaluator: &Evaluator<'_>) -> (Vec<bool>, Diagnostics) {
    let config = pass.inputs.config;
    let mut protected = vec![false; pass.graph.nodes.len()];
    let mut refused = Diagnostics::new();
    for (number, node) in pass.graph.nodes.iter().enumerate() {
        if node.is_junction() || node.address.is_child() || node.address.mode != Mode::Managed {
            continue;
        }
        let (said, wrong) = evaluator.is_protected(&node.address);
        refused.extend(wrong);
        let stored = pass.inputs.state.resources.get(&node.address).is_some_and(|s| s.protected);
        protected[number] = said.unwrap_or(stored);
        let goes = matches!(pass.visits[number].decision.as_ref().map(|d| &d.change), Some(Change::Delete { .. } | Change::Replace { .. }));
        if !protected[number] || !goes {
            continue;
        }
        match config.block(&node.address).filter(|_| said.is_some()) {
            Some(block) => refused.push(
                error(&node.address, "The plan would destroy it, but its lifecycle block has prevent_destroy set.")
                    .with_span(Some(block.span))
                    .with_hint("Take prevent_destroy out if it shall really go, or narrow the plan with -target so that it stays."),
            ),
            None if config.removed_by(&node.address).is_some_and(|r| r.destroy) => {}
            None => refused.push(outlived(&node.address)),
        }
    }
    (protected, refused)
}

/// True if what a plan keeps as it is would have to be remembered with another protection: that is no change, but it must not get lost.
pub(crate) fn changes(plan: &Plan, state: &Snapshot) -> bool {
    let kept = plan.resources.iter().filter(|r| r.deposed.is_none() && r.change.is_no_op() && r.address.mode == Mode::Managed);
    kept.into_iter().any(|r| state.resources.get(&r.address).is_some_and(|s| s.protected != r.protected))
}

/// Nothing in the configuration makes it any more.
fn outlived(address: &Address) -> Diagnostic {
    let detail =
        "The plan would destroy it, but it had prevent_destroy set when it was last applied, and that outlives what was written of it.";
    let block = address.block();
    error(address, detail).with_hint(format!(
        "If it shall really go, say so in a \"removed\" block with from = {block} and lifecycle {{ destroy = true }}. With destroy = false it is left as it \
         is and forgotten. Or write its block again: without prevent_destroy, apply, and then take it out."
    ))
}

fn error(address: &Address, detail: &str) -> Diagnostic {
    Diagnostic::error("Instance cannot be destroyed", detail).at(address)
}
