//! `prevent_destroy`: what it keeps from being destroyed, in blocks and beyond them.

use std::collections::BTreeMap;

use karmaform_lang::{Config, Evaluator, PROTECTION_BEFORE};
use karmaform_model::{Address, Change, Diagnostic, Diagnostics, Mode, ModeOfPlan, Plan, PlannedResource, ResourceState, Snapshot};

use crate::walk::Pass;

/// What is known of an instance; of a composite, with all its parts.
#[derive(Default)]
struct Known {
    /// What its block says; `None`: nothing.
    said: Option<bool>,
    /// What is wrong with that.
    wrong: Diagnostics,
    /// It, or a part of it, is in the state.
    is_stored: bool,
    /// It was in effect when that was written.
    was: bool,
    /// The plan destroys or replaces it: of a composite, with parts that its block does not take away.
    goes: bool,
    /// The plan makes it.
    comes: bool,
}

impl Known {
    fn holds(&self) -> bool {
        self.said.unwrap_or(self.was)
    }
}

/// By node: whether it is in effect; and what it refuses. Where no block says (it was deleted, or the key of the instance was, or what it says
/// can't be told now) what was in effect when the instance was last applied still holds, until a `removed` block says that it is to be destroyed.
/// The parts of a composite remember it with it: its own record is the last to be written.
pub(crate) fn guard(pass: &Pass<'_>, evaluator: &Evaluator<'_>) -> (Vec<bool>, Diagnostics) {
    let mut known: BTreeMap<Address, Known> = BTreeMap::new();
    let is_seen = |number: usize| {
        let node = &pass.graph.nodes[number];
        !node.is_junction() && pass.selected[number] && node.address.mode == Mode::Managed
    };
    for number in (0..pass.graph.nodes.len()).filter(|n| is_seen(*n)) {
        let address = &pass.graph.nodes[number].address;
        let owner = address.whole();
        let of_owner = known.entry(owner).or_insert_with_key(|owner| {
            let (said, wrong) = evaluator.is_protected(owner);
            Known { said, wrong, ..Known::default() }
        });
        let stored = pass.inputs.state.resources.get(address);
        of_owner.is_stored |= stored.is_some();
        of_owner.was |= stored.is_some_and(|s| s.protected);
        let change = pass.visits[number].decision.as_ref().map(|d| &d.change);
        let is_taken = !address.is_child() || pass.options.mode == ModeOfPlan::Destroy || !is_configured(pass, address);
        of_owner.goes |= match change {
            Some(Change::Delete { .. }) => is_taken,
            Some(Change::Replace { .. }) => !address.is_child(),
            _ => false,
        };
        of_owner.comes |= matches!(change, Some(Change::Create { .. })) && !address.is_child();
    }
    let config = pass.inputs.config;
    let mut refused = Diagnostics::new();
    for (owner, of_owner) in &mut known {
        if pass.options.mode == ModeOfPlan::Normal {
            let wrong = std::mem::take(&mut of_owner.wrong);
            // What is there is as protected as it was; of what comes nobody has said. What is wrong says enough.
            let is_open = of_owner.comes && !of_owner.is_stored && !wrong.has_errors();
            refused.extend(wrong);
            if let (None, true, Some(block)) = (of_owner.said, is_open, config.block(owner)) {
                refused.push(Diagnostic::error("Invalid prevent_destroy", PROTECTION_BEFORE).at(owner).with_span(Some(block.span)));
            }
        }
        if !of_owner.holds() || !of_owner.goes {
            continue;
        }
        match config.block(owner).filter(|_| of_owner.said.is_some()) {
            Some(block) => refused.push(
                error(owner, "The plan would destroy it, but its lifecycle block has prevent_destroy set.")
                    .with_span(Some(block.span))
                    .with_hint("Take prevent_destroy out if it shall really go, or narrow the plan with -target so that it stays."),
            ),
            None if config.removed_by(owner).is_some_and(|r| r.destroy) => {}
            None => refused.push(outlived(owner, config)),
        }
    }
    let holds = |number: usize| {
        let address = &pass.graph.nodes[number].address;
        is_seen(number) && known.get(address.composite().as_ref().unwrap_or(address)).is_some_and(Known::holds)
    };
    ((0..pass.graph.nodes.len()).map(holds).collect(), refused)
}

/// True if the composite that a part is of is configured.
fn is_configured(pass: &Pass<'_>, part: &Address) -> bool {
    part.composite().and_then(|c| pass.graph.node(&c)).is_some_and(|c| c.configured)
}

/// True if what a plan keeps as it is would have to be remembered with another protection, another order of being replaced, or as needing
/// other things: that is no change, but what goes by it later must not go by what was.
pub(crate) fn changes(plan: &Plan, state: &Snapshot) -> bool {
    renews(plan, state) || kept(plan, state).any(|(r, s)| s.protected != r.protected)
}

/// The same where protection stays as it is.
pub(crate) fn renews(plan: &Plan, state: &Snapshot) -> bool {
    kept(plan, state).any(|(r, s)| (s.create_before_destroy, &s.dependencies) != (r.create_before_destroy, &r.dependencies))
}

/// What a plan keeps as it is, with what the state has of it.
fn kept<'a>(plan: &'a Plan, state: &'a Snapshot) -> impl Iterator<Item = (&'a PlannedResource, &'a ResourceState)> {
    let kept = plan.resources.iter().filter(|r| r.deposed.is_none() && r.change.is_no_op() && r.address.mode == Mode::Managed);
    kept.filter_map(move |r| Some((r, state.resources.get(&r.address)?)))
}

/// Nothing in the configuration makes it any more, or nothing says of it what it said.
fn outlived(address: &Address, config: &Config) -> Diagnostic {
    let detail =
        "The plan would destroy it, but it had prevent_destroy set when it was last applied, and that outlives what was written of it.";
    let way = if config.is_written(address) {
        "If it shall really go, apply once with it and without prevent_destroy, and take it out then.".to_owned()
    } else {
        format!(
            "If it shall really go, say so in a \"removed\" block with from = {} and lifecycle {{ destroy = true }}. With destroy = false it is left as it \
             is and forgotten. Or write its block again: without prevent_destroy, apply, and then take it out.",
            address.configuration()
        )
    };
    error(address, detail).with_hint(way)
}

fn error(address: &Address, detail: &str) -> Diagnostic {
    Diagnostic::error("Instance cannot be destroyed", detail).at(address)
}
