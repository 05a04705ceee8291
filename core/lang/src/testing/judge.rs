//! What a run's asserts say of what was planned or made, and whose conditions a diagnostic speaks of.

use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, Object, Span, Value, nearest};

use super::runs::check_runs;
use super::values::VAR;
use super::{RUN, Run};
use crate::conditions::{self, Verdict};
use crate::config::{Condition, Config};
use crate::describe::names_in;
use crate::eval::Errors;
use crate::evaluator::{Evaluator, Resolver};
use crate::references::{Visit, walk};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::{Expr, StepKind};

/// The name that stands for the outputs of this run.
const OUTPUT: &str = "output";

/// What became of a run's asserts.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Those that don't hold.
    pub failed: Diagnostics,
    /// What these say of it, without the values that are told beside.
    pub messages: Vec<String>,
    /// Those that nobody can judge, and why.
    pub wrong: Diagnostics,
}

impl Run {
    /// How many asserts it has.
    pub fn asserts_count(&self) -> usize {
        self.asserts.len()
    }

    /// Judges all asserts. `outputs` are those of this run, `given` the values that tests give to variables, `ran` the outputs of earlier runs by the
    /// name of the run.
    pub fn judge(&self, config: &Config, resolver: &dyn Resolver, outputs: &Object, given: &Object, ran: &Object) -> Judged {
        let evaluator = Evaluator::new(config, resolver);
        let mut bound = vec![RUN.to_owned(), OUTPUT.to_owned()];
        let mut names = vec![(RUN, Value::from(ran.clone())), (OUTPUT, Value::from(outputs.clone()))];
        if self.asserts.iter().any(|a| [&a.condition, &a.message].into_iter().any(|expr| is_of_file_alone(expr, config, given))) {
            let mut variables = given.clone();
            variables.extend(config.variables.iter().map(|(name, variable)| (name.clone(), variable.value.clone())));
            bound.push(VAR.to_owned());
            names.push((VAR, variables.into()));
        }
        let site = Site::default();
        let mut judged = Judged::default();
        for assert in &self.asserts {
            let mut found = Diagnostics::new();
            for expr in [&assert.condition, &assert.message] {
                let place = Place { bound: &bound, ..Place::default() };
                found.extend(statics::check(config, expr, place, &mut Vec::new()));
                check_outputs(config, expr, &mut found);
                check_runs(expr, self, &mut found);
            }
            if found.has_errors() {
                judged.wrong.extend(found);
                continue;
            }
            Scope::new(&site).bind(&names, |scope| self.one(&evaluator, assert, scope, &mut judged));
        }
        judged
    }

    fn one(&self, evaluator: &Evaluator<'_>, assert: &Condition, scope: &Scope<'_>, judged: &mut Judged) {
        let mut errors = Errors::default();
        let verdict = conditions::verdict(evaluator, assert, scope, &mut errors);
        judged.wrong.extend(evaluator.finish(errors));
        let span = Some(assert.condition.span);
        match verdict {
            Verdict::Holds | Verdict::Wrong => {}
            Verdict::Broken(message) => {
                judged.messages.push(message.clone());
                let values = names_in(evaluator, &assert.condition, scope);
                let detail = if values.is_empty() { message } else { format!("{message}\n{values}") };
                judged.failed.push(Diagnostic::error("Test assertion failed", detail).with_span(span));
            }
            Verdict::Unknown => {
                let error = Diagnostic::error("Unknown condition value", "What this asserts depends on what is known only after apply.");
                let hint = match (self.is_plan, self.options.targets.is_empty()) {
                    (true, _) => format!(
                        "Write command = apply in the run \"{}\", or assert something that a plan knows: what is overridden with override_during = plan, for one.",
                        self.name
                    ),
                    (false, true) => "Assert something that is known after an apply.".to_owned(),
                    (false, false) => "It may be of something that \"target\" leaves out.".to_owned(),
                };
                judged.wrong.push(error.with_span(span).with_hint(hint));
            }
        }
    }
}

/// True if an expression has a variable that the configuration does not declare, and only tests give a value to.
fn is_of_file_alone(expr: &Expr, config: &Config, given: &Object) -> bool {
    let mut found = false;
    walk(expr, &mut |visit| {
        let Visit::Reference { name: VAR, steps, .. } = visit else { return };
        let Some(StepKind::Attribute(name)) = steps.first().map(|s| &s.kind) else { return };
        found |= given.contains_key(name) && !config.declared.contains_key(name);
    });
    found
}

/// Only what is declared is there.
fn check_outputs(config: &Config, expr: &Expr, diagnostics: &mut Diagnostics) {
    walk(expr, &mut |visit| {
        let Visit::Reference { name: OUTPUT, span, steps } = visit else { return };
        let Some(StepKind::Attribute(name)) = steps.first().map(|s| &s.kind) else { return };
        if config.outputs.contains_key(name) || config.is_incomplete() {
            return;
        }
        let error = Diagnostic::error("Unknown output", format!("No output \"{name}\" is declared.")).with_span(Some(span));
        let hint = nearest(name, config.outputs.keys().map(String::as_str)).map(|n| format!("Did you mean output.{n}?"));
        diagnostics.push(error.with_hint(hint.unwrap_or_else(|| format!("Declare it: output \"{name}\" {{ value = ... }}."))));
    });
}

impl Evaluator<'_> {
    /// All outputs of the root module. What is wrong with them is told elsewhere.
    pub fn outputs(&self) -> Object {
        self.config.outputs.keys().map(|name| (name.clone(), self.output(name).0)).collect()
    }
}

impl Config {
    /// Where the conditions of this stand: of a variable (`var.x`), an output, a check, a policy, or a block or one of its instances. `None`: there
    /// is no such thing.
    pub fn condition_spans(&self, address: &Address) -> Option<Vec<Span>> {
        let of = |conditions: &[Condition]| conditions.iter().map(|c| c.condition.span).collect();
        match (address.mode, address.kind.as_str()) {
            (Mode::Managed, "var") => self.declared.get(&address.name).map(|v| v.conditions().map(|c| c.condition.span).collect()),
            (Mode::Managed, OUTPUT) => self.outputs.get(&address.name).map(|o| of(&o.preconditions)),
            (Mode::Managed, "check") => self.checks.get(&address.name).map(|c| of(&c.asserts)),
            (Mode::Managed, "policy") => self.policies.get(&address.name).map(|p| vec![p.condition_span()]),
            _ => self.blocks.get(&address.block()).map(|b| [of(&b.preconditions), of(&b.postconditions)].concat()),
        }
    }
}
