//! `prevent_destroy`: whether an instance may go.

use karmaform_model::{Address, Diagnostic, Diagnostics, Type, convert};

use crate::attributes;
use crate::eval::{Errors, article};
use crate::evaluator::Evaluator;
use crate::scope::Scope;

/// Why no block may be referred to there.
pub(crate) const BEFORE: &str = "What may be destroyed has to be known before anything is looked at.";

impl Evaluator<'_> {
    /// Whether `prevent_destroy` of its block keeps an instance from being destroyed. `None`: no block says so, because there is none, or
    /// because what it says is made of a key that has no instance any more.
    pub fn is_protected(&self, instance: &Address) -> (Option<bool>, Diagnostics) {
        let Some(block) = self.config.block(instance) else { return (None, Diagnostics::new()) };
        let Some(expr) = &block.lifecycle.prevent_destroy else { return (Some(false), Diagnostics::new()) };
        let is_there = block.repetition.has(instance.key.as_ref());
        let site = attributes::site(self, block, instance.key.as_ref().filter(|_| is_there));
        let (scope, mut errors) = (Scope::new(&site), Errors::default());
        let value = self.eval(expr, &scope, &mut errors);
        let said = convert(&value, &Type::Bool).ok().and_then(|v| v.as_bool());
        let problem = match &value {
            _ if errors.any() || said.is_some() => None,
            value if value.is_unknown() => is_there.then_some(BEFORE.to_owned()),
            value => Some(format!("\"prevent_destroy\" must be true or false, but is {}.", article(value))),
        };
        if let Some(problem) = problem {
            errors.push(Diagnostic::error("Invalid prevent_destroy", problem).with_span(Some(expr.span)));
        }
        (said, self.finish(errors).into_iter().map(|d| d.at(instance)).collect())
    }
}
