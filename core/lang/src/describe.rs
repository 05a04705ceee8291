//! Values in messages: short, and never a secret or something ephemeral.

use karmaform_model::Value;

use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::references::{Visit, walk};
use crate::render::render;
use crate::scope::Scope;
use crate::syntax::{Expr, StepKind};

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
        // Only plain paths: what stands in brackets is visited by itself.
        let plain = steps.iter().take_while(|s| matches!(s.kind, StepKind::Attribute(_))).count();
        let root = Expr { kind: crate::syntax::ExprKind::Name(name.to_owned()), span };
        let value = evaluator.eval_traversal(expr, &root, &steps[..plain], scope, &mut Errors::silent());
        let mut path = name.to_owned();
        for step in &steps[..plain] {
            if let StepKind::Attribute(attribute) = &step.kind {
                path = format!("{path}.{attribute}");
            }
        }
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
