//! What conditions say of what was seen and is planned, and again of what an apply has made. `check` blocks only warn: nothing waits for
//! them, and nothing fails by them.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{CheckSaid, Evaluator, Verdict};
use karmaform_model::{
    Action, Address, Change, CheckKind, CheckStatus, Checked, Diagnostic, Diagnostics, Mode, ModeOfPlan, Plan, PlannedResource, Reason,
    Snapshot, Step, StepKind,
};

use crate::dispatch::Dispatcher;
use crate::values::with_unknown;
use crate::walk::Pass;

/// The summary of what is told of an `assert` that does not hold; all else that is told is its author's.
pub const CHECK_FAILED: &str = "Check failed";
/// The summary of what is said of a `check` block that can be judged only after an apply.
pub const CHECK_UNKNOWN: &str = "Check known after apply";

/// What all conditions say at the time of a plan; what `check` blocks have to say is added to the diagnostics.
pub(crate) fn planned(evaluator: &Evaluator<'_>, pass: &Pass<'_>, diagnostics: &mut Diagnostics) -> Vec<Checked> {
    let Pass { observed, options, .. } = pass;
    // Of what is to go nothing is judged.
    if options.mode == ModeOfPlan::Destroy {
        return pass.inputs.config.unjudged();
    }
    // What is left out may be what nobody knows, and no apply of this plan will tell.
    let is_whole = pass.is_whole() && !pass.has_lost();
    let mut all = Vec::new();
    for said in evaluator.check_blocks() {
        let unread = said.data.as_ref().and_then(|d| observed.data.get(d)?.result.as_ref().err()).map(|e| e.detail.clone());
        diagnostics.extend(said.wrong.clone());
        diagnostics.extend(warnings(&said, is_whole && unread.is_none()));
        all.push(checked(said, unread));
    }
    all.extend(evaluator.conditions());
    let judged: BTreeMap<&Address, &Checked> = pass.visits.iter().filter_map(|v| v.judged.as_ref()).map(|c| (&c.address, c)).collect();
    for one in all.iter_mut().filter(|one| one.kind == CheckKind::Resource) {
        if let Some(said) = judged.get(&one.address) {
            one.clone_from(said);
        }
    }
    // As in Terraform: of what nothing stands all conditions hold.
    let of_absent = if pass.is_whole() { CheckStatus::Pass } else { CheckStatus::Unknown };
    let absent = pass.inputs.config.absent_checks(&all, of_absent);
    all.extend(absent);
    all
}

/// True of a check's own data source that could not be read, and would be read again by an apply.
pub(crate) fn is_unread(pass: &Pass<'_>, address: &Address) -> bool {
    let has_failed = pass.observed.data.get(address).is_some_and(|reading| reading.result.is_err());
    has_failed && pass.options.mode == ModeOfPlan::Normal && !pass.options.lenient && pass.inputs.config.check_of(address).is_some()
}

/// An apply that does something reads at its end what checks have read for themselves, as in Terraform: it may be another thing by then, or there at
/// last. Nothing waits for that. Where nothing is done, what could not be read has no place in the plan.
pub(crate) fn read_again(plan: &mut Plan, pass: &Pass<'_>) {
    if plan.steps.is_empty() {
        plan.resources.retain(|r| !(r.change.is_no_op() && is_unread(pass, &r.address)));
    }
    if plan.steps.is_empty() || plan.mode != ModeOfPlan::Normal || pass.options.lenient {
        return;
    }
    let of_check = |r: &PlannedResource| r.address.mode == Mode::Data && pass.inputs.config.check_of(&r.address).is_some();
    let is_other = |step: &Step| !matches!(&step.kind, StepKind::Change { resource, .. } if of_check(&plan.resources[*resource]));
    let waited_for: BTreeSet<usize> = plan.steps.iter().filter(|s| is_other(s)).flat_map(|s| s.after.iter().copied()).collect();
    let mut last: Vec<usize> = (0..plan.steps.len()).filter(|n| is_other(&plan.steps[*n]) && !waited_for.contains(n)).collect();
    let reads: Vec<usize> =
        (0..plan.resources.len()).filter(|n| of_check(&plan.resources[*n]) && plan.resources[*n].change.is_no_op()).collect();
    if reads.len() > 1 && last.len() > 1 {
        plan.steps.push(Step { kind: StepKind::Join, after: last });
        last = vec![plan.steps.len() - 1];
    }
    for resource in reads {
        let planned = &mut plan.resources[resource];
        let schema = pass.inputs.registry.data_source(&planned.address.kind).map(|entry| entry.schema);
        let (Some(schema), Some(reading)) = (schema, pass.observed.data.get(&planned.address)) else { continue };
        planned.change = Change::Read { after: with_unknown(schema, &reading.arguments) };
        planned.reason = Some(Reason::ReadBecauseCheckNested);
        plan.steps.push(Step { kind: StepKind::Change { resource, part: Action::Read }, after: last.clone() });
    }
}

/// True if nothing but what the state says of conditions is to be written: as in Terraform, an apply without changes does that.
pub(crate) fn are_news(plan: &Plan, state: &Snapshot) -> bool {
    let is_whole = !plan.is_of_a_part() && plan.deferred.is_empty();
    let is_known = plan.checks.iter().all(|c| c.status != CheckStatus::Unknown);
    plan.mode == ModeOfPlan::Normal && is_whole && is_known && !Checked::are_alike(&plan.checks, &state.checks)
}

/// The same after an apply. What it does not tell any more is as it was planned.
pub(crate) fn applied(dispatcher: &mut Dispatcher<'_>) {
    let plan = dispatcher.plan;
    if plan.mode == ModeOfPlan::Destroy {
        dispatcher.ledger.snapshot.checks.clear();
        return;
    }
    let world = dispatcher.world();
    let mut all = Vec::new();
    let mut diagnostics = Diagnostics::new();
    {
        let evaluator = Evaluator::new(world.config, &dispatcher.ledger).at(&dispatcher.filler.moment);
        for said in evaluator.check_blocks() {
            let unread = said.data.as_ref().and_then(|d| dispatcher.unread.get(d).cloned());
            diagnostics.extend(said.wrong.clone());
            diagnostics.extend(warnings(&said, false));
            all.push(checked(said, unread));
        }
        all.extend(evaluator.conditions());
    }
    let absent = world.config.absent_checks(&all, CheckStatus::Unknown);
    all.extend(absent);
    let planned: BTreeMap<_, _> = plan.checks.iter().map(|p| ((p.kind, &p.address), p)).collect();
    for one in all.iter_mut().filter(|one| one.status == CheckStatus::Unknown) {
        if let Some(before) = planned.get(&(one.kind, &one.address)) {
            one.clone_from(before);
        }
    }
    dispatcher.diagnostics.extend(diagnostics);
    dispatcher.ledger.dirty |= !Checked::are_alike(&dispatcher.ledger.snapshot.checks, &all);
    dispatcher.ledger.snapshot.checks = all;
}

/// What a `check` block comes to. A data source of its own that could not be read is a problem like any other.
fn checked(said: CheckSaid, unread: Option<String>) -> Checked {
    let status = said.asserts.iter().map(|(verdict, _)| verdict.status()).min().unwrap_or(CheckStatus::Pass);
    let status = if unread.is_some() { status.min(CheckStatus::Fail) } else { status };
    let broken = said.asserts.into_iter().filter_map(|(v, _)| if let Verdict::Broken(message) = v { Some(message) } else { None });
    let mut problems: Vec<_> = unread.into_iter().chain(broken).collect();
    problems.sort();
    Checked { kind: CheckKind::Check, address: said.address, status, problems, is_absent: false }
}

/// What is to be told of a `check` block.
fn warnings(said: &CheckSaid, tells_unknown: bool) -> Vec<Diagnostic> {
    let warning = |summary: &str, detail: String, address: &Address| Diagnostic::warning(summary, detail).at(address);
    let told = said.asserts.iter().filter_map(|(verdict, span)| {
        let told = match verdict {
            Verdict::Broken(message) => warning(CHECK_FAILED, message.clone(), &said.address),
            Verdict::Unknown if tells_unknown => {
                let detail = "What this check asserts depends on what is known only after apply; it is judged then.";
                warning(CHECK_UNKNOWN, detail.to_owned(), &said.address)
            }
            _ => return None,
        };
        Some(told.with_span(Some(*span)))
    });
    told.collect()
}
