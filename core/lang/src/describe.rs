//! Values in messages: short, and never a secret or something ephemeral.

use karmaform_model::Value;

use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::references::{Visit, literal_key, walk};
use crate::render::render;
use crate::scope::Scope;
use crate::syntax::{Expr, Step, StepKind};

/// More characters than this are cut.
const LONGEST: usize = 60;
/// More names than this don't help.
const MOST: usize = 4;

/// The value in a few characters; `None` if it is secret, ephemeral or not known.
pub(crate) fn excerpt(value: &Value) -> Option<String> {
    if value.all_marks().any() || value.is_unknown() {
        return None;
    }
    let text = match value.as_items().map(<[Value]>::len).or_else(|| value.as_entries().map(|e| e.len())) {
        Some(1) => format!("{} with 1 element", value.ty().word()),
        Some(n) => format!("{} with {n} elements", value.ty().word()),
        None => render(value),
    };
    let text = text.replace('\n', " ");
    Some(if text.chars().count() > LONGEST { text.chars().take(LONGEST).chain("...".chars()).collect() } else { text })
}

/// "Here each.key is "a" and var.n is 3." for the names in an expression; empty if there is nothing to say.
pub(crate) fn names_in(evaluator: &Evaluator<'_>, expr: &Expr, scope: &Scope<'_>) -> String {
    let mut found: Vec<(String, String)> = Vec::new();
    walk(expr, &mut |visit| {
        let Visit::Reference { name, span, steps } = visit else { return };
        if found.len() >= MOST {
            return;
        }
        let root = Expr { kind: crate::syntax::ExprKind::Name(name.to_owned()), span };
        let value = |count: usize| evaluator.eval_traversal(expr, &root, &steps[..count], scope, &mut Errors::silent());
        // What is written out; what else stands in brackets is visited by itself. Where nothing is there, what would hold it is told.
        let written = steps.iter().take_while(|s| written_step(s).is_some()).count();
        let plain = steps.iter().take_while(|s| matches!(s.kind, StepKind::Attribute(_))).count();
        let (count, value) = match value(written) {
            found if written > plain && found.is_unknown() => (plain, value(plain)),
            found => (written, found),
        };
        let path = steps[..count].iter().filter_map(written_step).fold(name.to_owned(), |path, step| path + &step);
        if found.iter().any(|(p, _)| *p == path) {
            return;
        }
        if value.secret {
            found.push((path, "secret".into()));
        } else if value.ephemeral {
            found.push((path, "ephemeral".into()));
        } else if let Some(text) = excerpt(&value) {
            found.push((path, text));
        }
    });
    match found.as_slice() {
        [] => String::new(),
        all => {
            let parts: Vec<_> = all.iter().map(|(path, text)| format!("{path} is {text}")).collect();
            format!("Here {}.", parts.join(", "))
        }
    }
}

/// A step that needs nothing else to be known: `.name`, `[0]`, `["key"]`.
fn written_step(step: &Step) -> Option<String> {
    match &step.kind {
        StepKind::Attribute(name) => Some(format!(".{name}")),
        StepKind::Index(key) => literal_key(key).map(|key| key.to_string()),
        _ => None,
    }
}
