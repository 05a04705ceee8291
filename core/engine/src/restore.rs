//! Fills in what a saved plan leaves out. Secrets are not saved in clear: each is replaced by "unknown, secret". Planning again from the
//! same inputs gives them back, and shows on the way whether the saved plan still holds.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Change, Diagnostic, Diagnostics, Kind, ModeOfPlan, Object, Path, Plan, PlannedResource, StepKind, Value};

use crate::values::merge;

/// Fills the holes of `saved` from `fresh`, which was planned from the same configuration and state and the same time. What the saved plan
/// shows is never changed; where `fresh` would do something else, the saved plan does not hold any more.
pub fn restore(saved: &mut Plan, fresh: &Plan) -> Diagnostics {
    let mut problems = Diagnostics::new();
    if saved.moved != fresh.moved {
        problems.push(stale());
    }
    let by_address: BTreeMap<_, _> = fresh.resources.iter().map(|r| ((&r.address, &r.deposed), r)).collect();
    let is_left_out = |r: &&PlannedResource| r.change.after().is_some() && !by_address.contains_key(&(&r.address, &r.deposed));
    let left_out = saved.resources.iter().find(is_left_out).map(|r| &r.address);
    let is_wanted = |r: &&PlannedResource| {
        let now = by_address.get(&(&r.address, &r.deposed));
        saved.mode == ModeOfPlan::Normal && r.change.after().is_none() && now.is_some_and(|now| now.change.after().is_some())
    };
    let left_out = left_out.or_else(|| saved.resources.iter().find(is_wanted).map(|r| &r.address));
    let (put_off, now) = (addresses(saved), addresses(fresh));
    if let Some(address) = left_out.or_else(|| put_off.symmetric_difference(&now).next().copied()) {
        problems.push(other_instances(address));
    }
    for resource in saved.resources.iter_mut().filter(|r| has_holes(&r.change)) {
        let now = by_address.get(&(&resource.address, &resource.deposed)).map(|r| &r.change);
        let filled = now.filter(|now| now.action() == resource.change.action()).and_then(|now| fill(&resource.change, now));
        match filled {
            Some(change) => resource.change = change,
            None => problems.push(stale().at(&resource.address)),
        }
    }
    for (name, change) in &mut saved.outputs {
        let now = fresh.outputs.get(name);
        for (side, now) in
            [(&mut change.before, now.and_then(|n| n.before.as_ref())), (&mut change.after, now.and_then(|n| n.after.as_ref()))]
        {
            if let (Some(value), Some(now)) = (side.as_mut(), now) {
                *value = merge(value, now, &Path::attribute(name)).unwrap_or_else(|_| value.clone());
            }
        }
    }
    saved.kept_outputs.clone_from(&fresh.kept_outputs);
    for (name, variable) in &mut saved.variables {
        if variable.value.is_none() {
            variable.value = fresh.variables.get(name).and_then(|v| v.value.clone());
        }
    }
    let gates: BTreeMap<_, _> = fresh.steps.iter().filter_map(|s| gate(&s.kind)).collect();
    for step in &mut saved.steps {
        if let StepKind::Gate { composite, gate } = &mut step.kind {
            match gates.get(&(&*composite, gate.name.as_str())) {
                Some(now) => gate.arguments.clone_from(now),
                None => problems.push(stale().at(composite)),
            }
        }
    }
    problems
}

/// What a plan puts off.
fn addresses(plan: &Plan) -> BTreeSet<&Address> {
    plan.deferred.iter().filter(|d| d.is_whole()).map(|d| &d.address).collect()
}

fn other_instances(address: &Address) -> Diagnostic {
    let detail = "How often things stand was told by what was there when the plan was made. By what is there now it is another thing.";
    Diagnostic::error("Saved plan is stale", detail).at(address).with_hint("Run plan again, review it, and apply the new one.")
}

type Arguments = BTreeMap<String, karmaform_model::Arg>;

fn gate(kind: &StepKind) -> Option<((&Address, &str), &Arguments)> {
    match kind {
        StepKind::Gate { composite, gate } => Some(((composite, &gate.name), &gate.arguments)),
        _ => None,
    }
}

fn has_holes(change: &Change) -> bool {
    let hole = |object: &Object| object.values().any(is_hole);
    change.before().is_some_and(hole) || change.after().is_some_and(hole)
}

/// A secret that was left out looks like a secret that is not known yet.
fn is_hole(value: &Value) -> bool {
    (value.secret && matches!(value.kind, Kind::Unknown(_))) || value.parts().any(is_hole)
}

fn fill(saved: &Change, fresh: &Change) -> Option<Change> {
    let mut filled = saved.clone();
    let sides = |saved: &Object, fresh: Option<&Object>| -> Option<Object> {
        let fresh = fresh?;
        saved
            .iter()
            .map(|(name, value)| {
                let now = fresh.get(name).filter(|_| is_hole(value));
                // Facts that no plan showed may have changed meanwhile; only holes are taken from the fresh plan.
                Some((name.clone(), now.map_or_else(|| Some(value.clone()), |now| merge_holes(value, now))?))
            })
            .collect()
    };
    match &mut filled {
        Change::NoOp { object } => *object = sides(object, fresh.after())?,
        Change::Read { after } | Change::Create { after } => *after = sides(after, fresh.after())?,
        Change::Update { before, after } | Change::Replace { before, after, .. } => {
            *before = sides(before, fresh.before())?;
            *after = sides(after, fresh.after())?;
        }
        Change::Delete { before } | Change::Forget { before } => *before = sides(before, fresh.before())?,
    }
    Some(filled)
}

fn merge_holes(saved: &Value, fresh: &Value) -> Option<Value> {
    merge(saved, fresh, &Path::default()).ok()
}

fn stale() -> Diagnostic {
    Diagnostic::error(
        "Saved plan is stale",
        "The saved plan leaves out secrets, and planning again to fill them in gave another change here. Something changed since.",
    )
    .with_hint("Run plan again, review it, and apply the new one.")
}
