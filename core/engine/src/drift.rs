//! What someone changed outside, and which outputs change. Pure.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::Evaluator;
use karmaform_model::{
    Address, Connection, Diagnostics, DriftedResource, Mode, ModeOfPlan, Object, OutputChange, OutputState, Schema, Status, same,
    same_and_alike,
};

use crate::deferred::is_among;
use crate::observed::Answer;
use crate::values::without_volatile;
use crate::walk::Pass;

/// Instances that are not as the state remembers them. How to reach a thing is no drift of the thing. As in Terraform, another address is drift
/// where nothing else is planned; what a composite is made of goes with it and is not named.
pub(crate) fn drift(pass: &Pass<'_>) -> Vec<DriftedResource> {
    let mut found = Vec::new();
    for (address, &number) in &pass.graph.instances {
        let visit = &pass.visits[number];
        let Some(schema) = pass.entries[number].map(|entry| entry.schema()) else { continue };
        let (Some(memory), Some(Status::Ready | Status::Tainted)) = (&visit.before.memory, visit.before.status) else { continue };
        let is_moved = pass.options.mode == ModeOfPlan::RefreshOnly && pass.graph.moved.contains_key(address);
        let after = match pass.observed.answer(address) {
            Answer::Absent => None,
            Answer::Present(_) => {
                let changed = visit.before.full.as_ref().filter(|full| differs(schema, memory, full));
                changed.or(is_moved.then_some(memory)).map(Some)
            }
            _ if is_moved => Some(Some(memory)),
            _ => continue,
        };
        let tidy = |object: &Object| without_volatile(schema, object, true);
        let after = match after {
            Some(Some(full)) => Some(tidy(full)),
            Some(None) => None,
            None if visit.before.is_absent => None,
            None => continue,
        };
        let resource_type = pass.graph.nodes[number].kind.clone();
        found.push(DriftedResource { address: address.clone(), resource_type, before: tidy(memory), after });
    }
    found
}

fn differs(schema: &Schema, memory: &Object, full: &Object) -> bool {
    let attributes = schema.attributes.iter().filter(|a| a.is_stored()).map(|a| a.name);
    let compared = attributes.chain(schema.blocks.iter().map(|b| b.name)).filter(|name| schema.connection != Connection::Attribute(name));
    compared.into_iter().any(|name| !same(memory.get(name), full.get(name)))
}

/// Root outputs, those that change and those that don't.
#[derive(Default)]
pub(crate) struct Outputs {
    /// What changes.
    pub(crate) changes: BTreeMap<String, OutputChange>,
    /// What stays, and what is null and was not there.
    pub(crate) kept: BTreeMap<String, OutputState>,
}

/// All root outputs. In a part of everything only those that the part decides; none that needs what is put off. As in Terraform a null one is
/// none, and another type alone is a change, though no text tells it.
pub(crate) fn outputs(pass: &Pass<'_>, evaluator: &Evaluator<'_>, diagnostics: &mut Diagnostics) -> Outputs {
    if pass.options.mode == ModeOfPlan::Destroy {
        return Outputs { changes: crate::leaving::outputs(pass), kept: BTreeMap::new() };
    }
    let absent = absent(pass);
    if absent.is_empty() {
        return all_outputs(pass, evaluator, diagnostics);
    }
    pass.values.leave(absent);
    // The other one remembers locals with all instances.
    let found = all_outputs(pass, &Evaluator::new(pass.inputs.config, pass.values), diagnostics);
    pass.values.leave(BTreeSet::new());
    found
}

/// By node: what is configured and nowhere else, as it is outside of a part, or was never made and is only looked for.
fn absent(pass: &Pass<'_>) -> BTreeSet<usize> {
    let is_absent = |address: &Address, number: usize| match pass.options.mode {
        ModeOfPlan::RefreshOnly if pass.selected[number] => pass.visits[number].decision.is_none(),
        _ => !pass.selected[number] && !pass.inputs.state.resources.contains_key(address),
    };
    let managed = pass.graph.instances.iter().filter(|(a, n)| a.mode == Mode::Managed && !a.is_child() && !pass.deferred[**n]);
    managed.filter(|(a, n)| is_absent(a, **n)).map(|(_, n)| *n).collect()
}

fn all_outputs(pass: &Pass<'_>, evaluator: &Evaluator<'_>, diagnostics: &mut Diagnostics) -> Outputs {
    let Outputs { mut changes, mut kept } = Outputs::default();
    let state = &pass.inputs.state.outputs;
    let has_deferred = pass.deferred.contains(&true);
    for (name, output) in &pass.inputs.config.outputs {
        let needs = |these: &[bool]| pass.inputs.config.output_references(name).iter().any(|r| is_among(pass, these, &r.address));
        // Nobody can tell what it will be.
        if pass.has_lost() && needs(&pass.lost) {
            continue;
        }
        let is_deferred = has_deferred && needs(&pass.deferred);
        if !is_deferred && !is_decided(pass, name) {
            continue;
        }
        let (value, problems) = evaluator.output(name);
        let mut problems = crate::judge::of_looking(problems, pass.options.only_warns());
        if value.contains_infinity() {
            problems.push(crate::walk::infinite_number(&format!("The output \"{name}\"")).with_span(Some(output.span)));
        }
        let failed = problems.has_errors();
        diagnostics.extend(problems);
        if failed || is_deferred || (diagnostics.has_errors() && !value.is_wholly_known() && is_of_what_failed(pass, name)) {
            continue;
        }
        let after = value.secret_if(output.sensitive);
        let before = state.get(name);
        let stays = match before {
            None => after.is_null(),
            Some(b) => (b.value.is_null() && after.is_null()) || (b.sensitive == output.sensitive && same_and_alike(&b.value, &after)),
        };
        if stays {
            kept.insert(name.clone(), OutputState { value: after, sensitive: output.sensitive });
        } else {
            let before = before.map(|b| b.value.clone());
            changes.insert(name.clone(), OutputChange { before, after: Some(after), sensitive: output.sensitive });
        }
    }
    // As in Terraform: a part of everything takes none away.
    let is_gone = |name: &String| !pass.options.is_partial() && !pass.inputs.config.outputs.contains_key(name);
    for (name, output) in state.iter().filter(|(name, _)| is_gone(name)) {
        let change = OutputChange { before: Some(output.value.clone()), after: None, sensitive: output.sensitive };
        changes.insert(name.clone(), change);
    }
    Outputs { changes, kept }
}

/// True if something that an output is made of can't be evaluated. That was told where it came up first, so one is asked that remembers nothing.
fn is_of_what_failed(pass: &Pass<'_>, output: &str) -> bool {
    Evaluator::new(pass.inputs.config, pass.values).output(output).1.has_errors()
}

fn is_decided(pass: &Pass<'_>, output: &str) -> bool {
    if !pass.options.is_partial() {
        return true;
    }
    let references = pass.inputs.config.output_references(output);
    if !pass.options.excludes.is_empty() {
        let is_whole = |r: &karmaform_lang::Reference| pass.graph.within(&r.address.block()).all(|(a, n)| a.is_child() || pass.selected[n]);
        return references.iter().all(is_whole);
    }
    // As Terraform has it: whole blocks count, and an output that needs no resource is left for a run without targets.
    let is_touched = |r: &karmaform_lang::Reference| pass.graph.within(&r.address.block()).any(|(a, n)| !a.is_child() && pass.selected[n]);
    !references.is_empty() && references.iter().all(is_touched)
}
