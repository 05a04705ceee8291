//! `policy` blocks: what a plan must be like, or had better be. Knows no plan: it comes as a value, under the name `plan`.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, Span, Value};

use crate::conditions::{self, Verdict};
use crate::config::{Condition, Config};
use crate::decode::{self, Shape, check_shape, literal_text};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::suggest;
use crate::syntax::Block;

/// The name that stands for the plan.
const PLAN: &str = "plan";
const NO_BLOCKS: &str = "A policy is about a plan: what is planned for a resource is in plan.changes.";
const MANDATORY: &str = "mandatory";
const ADVISORY: &str = "advisory";

/// A `policy` block.
#[derive(Clone, Debug)]
pub struct Policy {
    /// A plan that breaks it is not applied; otherwise it is only told.
    pub is_mandatory: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Where its header stands.
    pub span: Span,
    pub(crate) condition: Condition,
}

impl Policy {
    /// Where its condition stands.
    pub fn condition_span(&self) -> Span {
        self.condition.condition.span
    }
}

impl Config {
    /// What each policy says of this plan.
    pub fn judge(&self, plan: &Value) -> Vec<(&str, &Policy, Verdict, Diagnostics)> {
        let evaluator = Evaluator::new(self, &NothingKnown);
        let site = Site::default();
        Scope::new(&site).bind(&[(PLAN, plan.clone())], |scope| {
            let judged = self.policies.iter().map(|(name, policy)| {
                let mut errors = Errors::default();
                let verdict = conditions::verdict(&evaluator, &policy.condition, scope, &mut errors);
                (name.as_str(), policy, verdict, evaluator.finish(errors))
            });
            judged.collect()
        })
    }
}

/// All `policy` blocks by name.
pub(crate) fn read(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<String, Policy> {
    let mut all: BTreeMap<String, Policy> = BTreeMap::new();
    let bound = [PLAN.to_owned()];
    for block in blocks {
        let Some(name) = decode::labels(block, ["NAME"], diagnostics).and_then(|[label]| decode::name(label, diagnostics)) else {
            continue;
        };
        let attributes = &["condition", "error_message", "enforcement", "description"];
        check_shape(&block.body, &Shape { what: "a \"policy\" block", attributes, blocks: &[] }, diagnostics);
        let is_mandatory = enforcement(block, diagnostics) != Some(false);
        let description = literal_text(&block.body, "description", diagnostics);
        let condition = decode::required(block, "condition", diagnostics);
        let message = decode::required(block, "error_message", diagnostics);
        let (Some(condition), Some(message)) = (condition, message) else { continue };
        for expr in [&condition, &message] {
            let place = Place { no_blocks: Some(NO_BLOCKS), bound: &bound, ..Place::default() };
            diagnostics.extend(statics::check(config, expr, place, &mut Vec::new()));
        }
        if let Some(first) = all.get(name) {
            diagnostics.push(decode::double(&format!("the policy \"{name}\""), block.span, first.span));
            continue;
        }
        let condition = Condition { condition, message };
        all.insert(name.to_owned(), Policy { is_mandatory, description, span: block.span, condition });
    }
    all
}

/// True for `mandatory`, false for `advisory`; none if it is not written, or wrong.
fn enforcement(block: &Block, diagnostics: &mut Diagnostics) -> Option<bool> {
    let text = literal_text(&block.body, "enforcement", diagnostics)?;
    match text.as_str() {
        MANDATORY => Some(true),
        ADVISORY => Some(false),
        _ => {
            let error = Diagnostic::error("Unknown enforcement", format!("There is no enforcement \"{text}\" of a policy."));
            let span = block.body.attribute("enforcement").map(|a| a.expr.span);
            let hint = suggest::hint(&text, [MANDATORY, ADVISORY]).unwrap_or_else(|| format!("Write \"{MANDATORY}\" or \"{ADVISORY}\"."));
            diagnostics.push(error.with_span(span).with_hint(hint));
            None
        }
    }
}
