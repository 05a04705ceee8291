//! Stores root outputs at the end of an apply, as far as what they are made of was reached.

use karmaform_lang::Evaluator;
use karmaform_model::{JournalRecord, ModeOfPlan, OutputState};

use crate::dispatch::Dispatcher;
use crate::graph::Graph;
use crate::ledger::OnlyThere;

/// Takes the planned output changes into the state.
pub(crate) fn store(dispatcher: &mut Dispatcher<'_>, graph: &Graph) {
    let plan = dispatcher.plan;
    let unreached = dispatcher.unreached();
    let world = dispatcher.world();
    let mut outputs = dispatcher.ledger.snapshot.outputs.clone();
    // With all that there was all outputs go, also those that the plan does not tell.
    if plan.mode == ModeOfPlan::Destroy && !plan.is_of_a_part() && unreached.is_empty() {
        outputs.clear();
    }
    for (name, change) in &plan.outputs {
        let Some(after) = &change.after else {
            // While something is left of what was to be destroyed, its outputs may still be of use.
            if plan.mode != ModeOfPlan::Destroy || unreached.is_empty() {
                outputs.remove(name);
            }
            continue;
        };
        if !unreached.is_empty() {
            let references = world.config.output_references(name);
            let instances = references.iter().flat_map(|r| graph.within(&r.address));
            let roots: Vec<usize> = instances.filter(|(a, _)| !a.is_child()).map(|(_, n)| n).collect();
            if !dispatcher.filler.is_reached(&roots, &|address| !unreached.contains(address)) {
                continue;
            }
        }
        let mut value = after.clone();
        if !value.is_wholly_known() || dispatcher.open.has_output(name) {
            let there = OnlyThere(&dispatcher.ledger);
            let (now, problems) = Evaluator::new(world.config, &there).at(&dispatcher.filler.moment).output(name);
            let problems = crate::judge::of_looking(problems, plan.mode == ModeOfPlan::RefreshOnly);
            let failed = problems.has_errors();
            dispatcher.diagnostics.extend(problems);
            // As in Terraform: what a part of everything does not make is null in outputs that are made of that part too.
            let now = if plan.is_of_a_part() { now.with_nulls() } else { now };
            match (failed, now.is_wholly_known()) {
                (false, true) => value = now,
                // As in Terraform: what the plan knew of it is kept, also where its own condition does not hold.
                (true, _) if value.is_wholly_known() => {}
                _ => continue,
            }
        }
        // As in Terraform: a null output is none.
        if value.is_null() {
            outputs.remove(name);
            continue;
        }
        outputs.insert(name.clone(), OutputState { value: value.secret_if(change.sensitive), sensitive: change.sensitive });
    }
    if outputs != dispatcher.ledger.snapshot.outputs {
        dispatcher.ledger.records.push(JournalRecord::Outputs(outputs.clone()));
        dispatcher.ledger.snapshot.outputs = outputs;
        dispatcher.ledger.dirty = true;
    }
}
