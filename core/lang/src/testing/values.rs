//! Values that tests give to variables: those of a file, made of what is given from outside, and those of a run.

use std::collections::BTreeSet;

use karmaform_model::{Diagnostic, Diagnostics, Object, Value, nearest};

use super::runs::check_runs;
use super::{RUN, Run, TestFile};
use crate::config::Config;
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::given::VariableInputs;
use crate::references::{Visit, walk};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::{Attribute, Expr, StepKind};

pub(super) const VAR: &str = "var";
const OF_RUN: &str = "Values of variables are needed before anything is planned: they may be made of var.NAME and run.NAME.OUTPUT.";
const OF_FILE: &str =
    "Values for all runs of a file are needed before the first one: they may be made of var.NAME, of what is given from outside.";
/// What is given from outside of a file.
const OUTSIDE: &str = "-var, a variables file or the environment";

impl Config {
    /// The values that were given to variables, also of those that nobody declares, without defaults. What is made of them in a test is as secret as the variable that it is for.
    pub fn given(&self) -> Object {
        let given = self.variables.iter().filter(|(_, v)| v.origin.is_some());
        let given = given.map(|(name, v)| (name.clone(), v.value.clone().without_marks()));
        self.undeclared.clone().into_iter().chain(given).collect()
    }
}

impl TestFile {
    /// The variables that something in the file is made of: what is given to them from outside is needed.
    pub fn used(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let values = self.variables.iter().chain(self.runs.iter().flat_map(|r| &r.variables)).map(|a| &a.expr);
        let asserts = self.runs.iter().flat_map(|r| &r.asserts).flat_map(|a| [&a.condition, &a.message]);
        for expr in values.chain(asserts) {
            walk(expr, &mut |visit| {
                let Visit::Reference { name: VAR, steps, .. } = visit else { return };
                let Some(StepKind::Attribute(name)) = steps.first().map(|s| &s.kind) else { return };
                names.insert(name.clone());
            });
        }
        names
    }

    /// Adds the values that hold for all runs of the file, but for those of `run`, that it gives itself. `config` is the configuration under test,
    /// `given` what is given from outside.
    pub fn variables(&self, inputs: &mut VariableInputs, config: &Config, given: &Object, run: Option<&Run>) -> Diagnostics {
        inputs.used_by_tests(self.used());
        let mut diagnostics = Diagnostics::new();
        let is_given = |name: &str| run.is_some_and(|run| run.variables.iter().any(|a| a.name == name));
        for attribute in self.variables.iter().filter(|a| !is_given(&a.name)) {
            let (value, found) = of_file(config, attribute, given);
            let failed = found.has_errors();
            diagnostics.extend(hidden(config, &attribute.name, found));
            if !failed {
                inputs.value(&attribute.name, value, attribute.expr.span, false);
            }
        }
        diagnostics
    }

    /// What `var` stands for in the values of a run: what the file gives, over what is given from outside.
    pub fn names(&self, config: &Config, given: &Object) -> Object {
        let mut names = given.clone();
        for attribute in &self.variables {
            let (value, found) = of_file(config, attribute, given);
            if !found.has_errors() {
                names.insert(attribute.name.clone(), value);
            }
        }
        names
    }
}

impl Run {
    /// Adds the values that hold for this run. `config` is the configuration under test, `names` what `var` stands for, `ran` the outputs of
    /// earlier runs by the name of the run.
    pub fn variables(&self, inputs: &mut VariableInputs, config: &Config, names: &Object, ran: &Object) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        let bound = [(RUN, Value::from(ran.clone())), (VAR, Value::from(names.clone()))];
        for attribute in &self.variables {
            let mut found = Diagnostics::new();
            check_runs(&attribute.expr, self, &mut found);
            let wrong = |name: &str| format!("var.{name} has no value, neither by this file nor by {OUTSIDE}; defaults are not seen here.");
            check_names(&attribute.expr, names, &wrong, &mut found);
            let (value, mut found) = evaluated(config, &attribute.expr, OF_RUN, &bound, found);
            if !found.has_errors() && !value.is_wholly_known() {
                let detail = format!("The value of \"{}\" is not known when the run \"{}\" begins.", attribute.name, self.name);
                let error = Diagnostic::error("Value not known yet", detail).with_span(Some(attribute.expr.span));
                found.push(error.with_hint("What only an apply can tell is not known after a run that plans: write command = apply there. A variable without a value needs one."));
            }
            if !found.has_errors() {
                inputs.value(&attribute.name, value, attribute.expr.span, true);
            }
            diagnostics.extend(hidden(config, &attribute.name, found));
        }
        diagnostics
    }

    /// What `var` stands for in the asserts of the run: what it gives itself, over `names`, what it stands for in the values of the run.
    pub fn names(&self, config: &Config, names: Object, ran: &Object) -> Object {
        let bound = [(RUN, Value::from(ran.clone())), (VAR, Value::from(names.clone()))];
        let given = self.variables.iter().filter_map(|attribute| {
            let (value, found) = evaluated(config, &attribute.expr, OF_RUN, &bound, Diagnostics::new());
            (!found.has_errors()).then(|| (attribute.name.clone(), value))
        });
        let given: Object = given.collect();
        // Values are given without marks. Where another module is run, whose asserts may name them all the same, they are as secret as their variables.
        let marks = |name: &str| config.declared.get(name).map(|declaration| declaration.marks()).unwrap_or_default();
        names
            .into_iter()
            .chain(given)
            .map(|(name, value)| (marks(&name), name, value))
            .map(|(m, name, value)| (name, value.marked(m)))
            .collect()
    }
}

/// The value that a file gives to a variable.
fn of_file(config: &Config, attribute: &Attribute, given: &Object) -> (Value, Diagnostics) {
    let mut found = Diagnostics::new();
    let wrong = |name: &str| format!("var.{name} has no value from outside of this file: by {OUTSIDE}.");
    check_names(&attribute.expr, given, &wrong, &mut found);
    evaluated(config, &attribute.expr, OF_FILE, &[(VAR, given.clone().into())], found)
}

/// The value of an expression in which these names mean something, and no blocks do. `found` is what is known to be wrong with it.
fn evaluated(config: &Config, expr: &Expr, why: &'static str, names: &[(&str, Value)], mut found: Diagnostics) -> (Value, Diagnostics) {
    let bound: Vec<String> = names.iter().map(|(name, _)| (*name).to_owned()).collect();
    let place = Place { no_blocks: Some(why), bound: &bound, ..Place::default() };
    found.extend(statics::check(config, expr, place, &mut Vec::new()));
    if found.has_errors() {
        return (crate::eval::unknown(), found);
    }
    let evaluator = Evaluator::new(config, &NothingKnown);
    let site = Site::default();
    let mut errors = Errors::default();
    let value = Scope::new(&site).bind(names, |scope| evaluator.eval(expr, scope, &mut errors));
    found.extend(evaluator.finish(errors));
    (value, found)
}

/// Only variables with a value are there.
fn check_names(expr: &Expr, names: &Object, wrong: &dyn Fn(&str) -> String, diagnostics: &mut Diagnostics) {
    walk(expr, &mut |visit| {
        let Visit::Reference { name: VAR, span, steps } = visit else { return };
        let Some(StepKind::Attribute(name)) = steps.first().map(|s| &s.kind) else { return };
        if names.contains_key(name) {
            return;
        }
        let error = Diagnostic::slip("Unknown variable", wrong(name)).with_span(Some(span));
        diagnostics.push(match nearest(name, names.keys().map(String::as_str)) {
            Some(near) => error.with_hint(format!("Did you mean var.{near}?")),
            None => error.with_hint(format!("Give it one, with -var {name}=... or in a variables file.")),
        });
    });
}

/// What is wrong with the value of a variable; of a secret one its line must not be drawn.
fn hidden(config: &Config, name: &str, found: Diagnostics) -> Diagnostics {
    if !found.has_errors() || config.variables.get(name).is_none_or(|v| !v.sensitive) {
        return found;
    }
    let detail = format!("The value of \"{name}\" in the test can't be evaluated; it is secret, so no more is said.");
    Diagnostic::error("Invalid value for a variable", detail).into()
}
