//! Conditions with a message: `validation` of variables, `precondition` of blocks and outputs, `postcondition` of blocks, policies, what a
//! check asserts.

use karmaform_model::{Address, CheckStatus, Diagnostic, Diagnostics, Type, Value, convert};

use crate::config::Condition;
use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::scope::Scope;

/// Reports the conditions that are false. One that is not known yet is passed over.
pub(crate) fn preconditions(evaluator: &Evaluator<'_>, conditions: &[Condition], summary: &str, scope: &Scope<'_>, errors: &mut Errors) {
    for condition in conditions {
        if let Some(message) = failed(evaluator, condition, scope, errors) {
            errors.push(Diagnostic::error(summary, message).with_span(Some(condition.condition.span)));
        }
    }
}

/// What is said of a precondition of a block that is false.
pub const PRECONDITION: &str = "Precondition failed";
/// What is said of one of an output.
pub const OUTPUT_PRECONDITION: &str = "Output precondition failed";
/// What `self` is called where it has a value.
pub(crate) const SELF: &str = "self";

impl Evaluator<'_> {
    /// The preconditions of an instance that are false, or can't be evaluated. One that is not known yet is passed over.
    pub fn preconditions(&self, instance: &Address) -> Diagnostics {
        let mut errors = Errors::default();
        if let Some(block) = self.config.block(instance) {
            let site = crate::attributes::site(self, block, instance.key.as_ref());
            preconditions(self, &block.preconditions, PRECONDITION, &Scope::new(&site), &mut errors);
        }
        self.finish(errors).into_iter().map(|d| d.at(instance)).collect()
    }

    /// The postconditions of an instance that are false, or can't be evaluated, as the resolver knows it now. One that is not known yet is
    /// passed over.
    pub fn postconditions(&self, instance: &Address) -> Diagnostics {
        let mut errors = Errors::default();
        let Some(block) = self.config.block(instance).filter(|b| !b.postconditions.is_empty() && !instance.is_child()) else {
            return Diagnostics::new();
        };
        let site = crate::attributes::site(self, block, instance.key.as_ref());
        Scope::new(&site).bind(&[(SELF, self.instance(instance))], |scope| {
            preconditions(self, &block.postconditions, "Postcondition failed", scope, &mut errors);
        });
        self.finish(errors).into_iter().map(|d| d.at(instance)).collect()
    }
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not, and why.
    Broken(String),
    /// That depends on what is not known yet.
    Unknown,
    /// It can't be evaluated, or has no message; that is a diagnostic.
    Wrong,
}

impl Verdict {
    /// As others call it.
    pub fn status(&self) -> CheckStatus {
        match self {
            Self::Holds => CheckStatus::Pass,
            Self::Broken(_) => CheckStatus::Fail,
            Self::Unknown => CheckStatus::Unknown,
            Self::Wrong => CheckStatus::Error,
        }
    }
}

/// The message of a condition that is false.
pub(crate) fn failed(evaluator: &Evaluator<'_>, condition: &Condition, scope: &Scope<'_>, errors: &mut Errors) -> Option<String> {
    match verdict(evaluator, condition, scope, errors) {
        Verdict::Broken(message) => Some(message),
        _ => None,
    }
}

/// Reports what is wrong with a condition and its message where what they are about has a type and no value. Whether the condition holds is
/// for who has one.
pub(crate) fn mistakes(evaluator: &Evaluator<'_>, condition: &Condition, scope: &Scope<'_>, errors: &mut Errors) {
    drop(truth(evaluator, condition, scope, errors));
    let message = evaluator.eval(&condition.message, scope, errors);
    is_message(&message, condition, errors);
}

/// True if a value may be the message of a condition, now or once it is known. What is not is told at its place.
fn is_message(value: &Value, condition: &Condition, errors: &mut Errors) -> bool {
    let detail = match convert(value, &Type::String) {
        Ok(text) if !text.is_null() => return true,
        Ok(_) => "\"error_message\" must not be null.",
        Err(_) => "\"error_message\" must be a string.",
    };
    errors.push(Diagnostic::error("Invalid error message", detail).with_span(Some(condition.message.span)));
    false
}

/// Whether a condition holds, or why nobody can tell.
fn truth(evaluator: &Evaluator<'_>, condition: &Condition, scope: &Scope<'_>, errors: &mut Errors) -> Result<bool, Verdict> {
    let before = errors.list.len();
    let value = evaluator.eval(&condition.condition, scope, errors);
    if errors.list.len() > before {
        return Err(Verdict::Wrong);
    }
    if value.is_unknown() {
        return Err(Verdict::Unknown);
    }
    convert(&value, &Type::Bool).ok().and_then(|v| v.as_bool()).ok_or_else(|| {
        let detail = "A condition must be true or false.".into();
        evaluator.fail(&condition.condition, condition.condition.span, scope, errors, "Invalid condition", detail);
        Verdict::Wrong
    })
}

/// Evaluates a condition.
pub(crate) fn verdict(evaluator: &Evaluator<'_>, condition: &Condition, scope: &Scope<'_>, errors: &mut Errors) -> Verdict {
    let truth = match truth(evaluator, condition, scope, errors) {
        Err(Verdict::Wrong) => return Verdict::Wrong,
        truth => truth,
    };
    // As in Terraform: what is no message is a mistake whatever the condition says. What else is wrong with one is told where it is needed.
    let message = match truth {
        Ok(false) => evaluator.eval(&condition.message, scope, errors),
        _ => evaluator.eval(&condition.message, scope, &mut Errors::silent()),
    };
    if !is_message(&message, condition, errors) {
        return Verdict::Wrong;
    }
    match truth {
        Ok(true) => return Verdict::Holds,
        Ok(false) => {}
        Err(verdict) => return verdict,
    }
    if message.contains_ephemeral() {
        return Verdict::Broken("The message of this condition is made of ephemeral values and can't be shown.".into());
    }
    if message.contains_secret() {
        return Verdict::Broken("The message of this condition is made of secrets and can't be shown.".into());
    }
    let text = convert(&message, &Type::String).ok().and_then(|m| m.as_str().map(|m| m.trim().to_owned()));
    Verdict::Broken(text.unwrap_or_else(|| "The condition does not hold; its message is not known yet.".into()))
}
