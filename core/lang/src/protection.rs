//! `prevent_destroy`: whether an instance may go.

use karmaform_model::{Address, Diagnostic, Diagnostics, Type, convert};

use crate::attributes;
use crate::config::Config;
use crate::eval::{Errors, article};
use crate::evaluator::{Evaluator, NothingKnown};
use crate::references::{Visit, walk};
use crate::scope::Scope;
use crate::syntax::Expr;

/// Why no block may be referred to there, and what comes with it unknown is refused.
pub const BEFORE: &str = "What may be destroyed has to be known before anything is looked at.";

/// What a block says of one of its instances.
#[derive(Default)]
struct Said {
    /// Nothing, if there is nothing to go by.
    is_protected: Option<bool>,
    /// It is neither true nor false, whatever is there.
    invalid: Option<Diagnostic>,
    /// It can't be evaluated.
    failed: Diagnostics,
}

impl Evaluator<'_> {
    /// Whether `prevent_destroy` of its block keeps an instance from being destroyed. `None`: that is not said, because there is no block, or
    /// it says so of a key that has no instance any more, or because it is not known yet or wrong.
    pub fn is_protected(&self, instance: &Address) -> (Option<bool>, Diagnostics) {
        let Said { is_protected, invalid, failed } = self.protection(instance);
        (is_protected, failed.into_iter().chain(invalid).map(|d| d.at(instance)).collect())
    }

    fn protection(&self, instance: &Address) -> Said {
        let Some(block) = self.config.block(instance) else { return Said::default() };
        let Some(expr) = &block.lifecycle.prevent_destroy else { return Said { is_protected: Some(false), ..Said::default() } };
        let is_there = block.repetition.has(instance.key.as_ref());
        // Without its key `contains([], each.key)` would be false, whatever that was.
        if !is_there && is_of_key(expr) {
            return Said::default();
        }
        let site = attributes::site(self, block, instance.key.as_ref().filter(|_| is_there));
        let (scope, mut errors) = (Scope::new(&site), Errors::default());
        let value = self.eval(expr, &scope, &mut errors);
        let is_protected = convert(&value, &Type::Bool).ok().and_then(|v| v.as_bool());
        let is_invalid = is_protected.is_none() && !value.is_unknown() && !errors.any();
        let invalid = is_invalid.then(|| {
            let problem = format!("\"prevent_destroy\" must be true or false, but is {}.", article(&value));
            Diagnostic::slip("Invalid prevent_destroy", problem).with_span(Some(expr.span))
        });
        Said { is_protected, invalid, failed: self.finish(errors) }
    }
}

/// What is wrong with `prevent_destroy` whatever is there: nobody has to look at anything, or to plan, to see that.
pub(crate) fn refused(config: &Config) -> Diagnostics {
    let evaluator = Evaluator::new(config, &NothingKnown);
    let written = config.blocks.iter().filter(|(_, block)| block.lifecycle.prevent_destroy.is_some());
    written.filter_map(|(address, _)| Some(evaluator.protection(address).invalid?.at(address))).collect()
}

fn is_of_key(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |visit| found |= matches!(visit, Visit::Reference { name: "each" | "count", .. }));
    found
}
