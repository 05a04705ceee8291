//! Root outputs of what is to be destroyed: all go. Pure.

use std::collections::BTreeMap;

use karmaform_lang::Evaluator;
use karmaform_model::{ModeOfPlan, OutputChange, OutputState};

use crate::judge::of_looking;
use crate::options::Options;
use crate::walk::{Pass, values, walk};

/// Those of the state, and as in Terraform with what a look makes of them. A part of everything leaves them.
pub(crate) fn outputs(pass: &Pass<'_>) -> BTreeMap<String, OutputChange> {
    if pass.options.is_partial() {
        return BTreeMap::new();
    }
    let state = pass.inputs.state;
    let mut all = state.outputs.clone();
    // Where nothing ever was, or no output is written, there is nothing to look for.
    if pass.options.refresh
        && !pass.inputs.config.outputs.is_empty()
        && !(state.resources.is_empty() && state.deposed.is_empty() && all.is_empty())
    {
        look(pass, &mut all);
    }
    all.into_iter().map(|(name, o)| (name, OutputChange { before: Some(o.value), after: None, sensitive: o.sensitive })).collect()
}

/// What a plan that destroys nothing would know of them counts as theirs, whatever their conditions say. What is wrong with the configuration
/// is no reason to stay.
fn look(pass: &Pass<'_>, all: &mut BTreeMap<String, OutputState>) {
    let options = Options { mode: ModeOfPlan::Normal, ..pass.options.clone() };
    let values = values(pass.graph);
    let evaluator = Evaluator::new(pass.inputs.config, &values);
    walk(pass.graph, pass.inputs, pass.observed, &options, &values, &evaluator);
    for (name, output) in &pass.inputs.config.outputs {
        let (value, problems) = evaluator.output(name);
        if of_looking(problems, true).has_errors() || value.contains_infinity() || !value.is_wholly_known() {
            continue;
        }
        if value.is_null() {
            all.remove(name);
        } else {
            all.insert(name.clone(), OutputState { value: value.secret_if(output.sensitive), sensitive: output.sensitive });
        }
    }
}
