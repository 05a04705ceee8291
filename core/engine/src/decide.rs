//! Decides the change of one resource instance from what is and what is wanted. Pure, and knows no other instance.

use karmaform_model::{Address, Change, Diagnostics, Object, PlanContext, Reason, ReplaceOrder, ResourceSpec, Schema, Status, Value};

use crate::before::Before;
use crate::values::{carry_marks, without_volatile};

/// Why an instance is to be replaced whatever its attributes say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Force {
    /// `-replace`
    pub(crate) requested: bool,
    /// `replace_triggered_by`
    pub(crate) triggered: Option<Address>,
}

/// A change and its reason.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) change: Change,
    pub(crate) reason: Option<Reason>,
}

/// What happens to an instance that is wanted. `anew` is what is wanted of a new one in its place, where `ignore_changes` keeps nothing.
///
/// # Errors
/// What the resource type says can't be planned.
pub(crate) fn decide(
    spec: &dyn ResourceSpec,
    context: &PlanContext,
    before: &Before,
    (wanted, anew): (&Object, &Object),
    force: &Force,
) -> Result<Decision, Diagnostics> {
    let schema = spec.schema();
    let change = spec.plan(context, before.compared.as_ref(), Some(wanted))?;
    let forced = match before.status {
        Some(Status::Tainted) => Some(Reason::ReplaceBecauseTainted),
        _ => force.triggered.clone().map(Reason::ReplaceByTriggers).or(force.requested.then_some(Reason::ReplaceByRequest)),
    };
    let (change, reason) = match (change, &before.full, forced) {
        (Change::NoOp { .. } | Change::Update { .. }, Some(full), Some(reason)) => {
            (replacement(spec, context, full, anew, Vec::new())?, Some(reason))
        }
        (Change::Replace { because, .. }, Some(full), forced) => {
            let reason = forced.unwrap_or_else(|| Reason::ReplaceBecauseCannotUpdate(because.clone()));
            (replacement(spec, context, full, anew, because)?, Some(reason))
        }
        // It is there, just as wanted, but nobody knows that it is ours: the state must learn it, or it would be orphaned one day.
        (Change::NoOp { object }, Some(full), None) if before.status.is_none() => {
            (Change::Update { before: full.clone(), after: object }, None)
        }
        (change, _, _) => (change, None),
    };
    let reason = reason.or(match (&change, before.status) {
        // As in Terraform: also of a new one it is told that it would have been replaced.
        (Change::Create { .. }, None) => force.triggered.clone().map(Reason::ReplaceByTriggers),
        (Change::NoOp { .. }, _) | (_, None) => None,
        (_, Some(Status::Unfinished)) => Some(Reason::FinishEarlierRun),
        (Change::Create { .. }, Some(_)) => Some(Reason::CreateBecauseMissing),
        _ => None,
    });
    Ok(Decision { change: hidden(tidy(schema, change)), reason })
}

/// The same of what comes to be another one: if nothing else changes of it, these attributes do.
pub(crate) fn renewed(schema: &Schema, decision: Decision, attributes: &[&str]) -> Decision {
    let Change::NoOp { object } = decision.change else { return decision };
    let mut after = object.clone();
    let kinds = attributes.iter().filter_map(|name| schema.attribute(name));
    after.extend(kinds.map(|a| (a.name.to_owned(), Value::unknown_not_null(a.ty.clone()))));
    Decision { change: Change::Update { before: object, after }, reason: decision.reason }
}

/// What is secret on one side is secret on the other: a value that was found outside carries no marks of its own.
fn hidden(mut change: Change) -> Change {
    if let Change::Update { before, after } | Change::Replace { before, after, .. } = &mut change {
        carry_marks(after, before);
    }
    change
}

fn replacement(
    spec: &dyn ResourceSpec,
    context: &PlanContext,
    full: &Object,
    wanted: &Object,
    because: Vec<karmaform_model::Path>,
) -> Result<Change, Diagnostics> {
    let after = match spec.plan(context, None, Some(wanted))? {
        Change::Create { after } => after,
        other => other.after().cloned().unwrap_or_default(),
    };
    Ok(Change::Replace { before: full.clone(), after, order: ReplaceOrder::DestroyFirst, because })
}

/// What happens to an instance that is not wanted any more.
///
/// # Errors
/// What the resource type says can't be planned.
pub(crate) fn decide_delete(spec: &dyn ResourceSpec, context: &PlanContext, before: &Before) -> Result<Change, Diagnostics> {
    let schema = spec.schema();
    if let (true, true, Some(memory)) = (before.is_absent, schema.leaves_note, &before.memory) {
        return Ok(tidy(schema, Change::Delete { before: memory.clone() }));
    }
    let Some(full) = &before.full else {
        return Ok(tidy(schema, Change::Forget { before: before.memory.clone().unwrap_or_default() }));
    };
    let change = match spec.plan(context, Some(full), None)? {
        Change::NoOp { object } => Change::Forget { before: object },
        change => change,
    };
    Ok(tidy(schema, change))
}

/// Facts of the moment are no part of a change.
pub(crate) fn tidy(schema: &Schema, change: Change) -> Change {
    if schema.attributes.iter().all(|a| !a.volatile && !a.write_only) {
        return change;
    }
    let past = |o: Object| without_volatile(schema, &o, true);
    let coming = |o: Object| without_volatile(schema, &o, false);
    match change {
        Change::NoOp { object } => Change::NoOp { object: coming(object) },
        Change::Read { after } => Change::Read { after },
        Change::Create { after } => Change::Create { after: coming(after) },
        Change::Update { before, after } => Change::Update { before: past(before), after: coming(after) },
        Change::Replace { before, after, order, because } => Change::Replace { before: past(before), after: coming(after), order, because },
        Change::Delete { before } => Change::Delete { before: past(before) },
        Change::Forget { before } => Change::Forget { before: past(before) },
    }
}
