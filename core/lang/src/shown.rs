//! Whether an output shows what is secret. `validate` has no values: what is of no known type may come to anything there, and is refused as
//! secret only where Terraform is as sure of it.

use std::collections::BTreeMap;

use karmaform_model::{Kind, Type, Value};

use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::scope::Scope;
use crate::syntax::{Call, Expr, ExprKind, Part, StepKind};

/// What makes something secret of a secret argument that is of no known type. Other functions may make nothing of it, by what it will be.
const KEEPING: &[&str] = &["jsondecode", "one", "yamldecode"];

/// True if `value`, which the output's expression has, is secret or has a part that is.
pub(crate) fn shows_a_secret(evaluator: &Evaluator<'_>, expr: &Expr, value: &Value, scope: &Scope<'_>) -> bool {
    if !evaluator.config.any_values {
        return value.contains_secret();
    }
    is_surely_secret(value) || evaluator.aside(|errors| Shown { evaluator, scope, errors, locals: BTreeMap::new() }.shows(expr))
}

/// True if it or a part of it is secret, and of a type that says what it will be.
fn is_surely_secret(value: &Value) -> bool {
    (value.secret && !is_open(value)) || value.parts().any(is_surely_secret)
}

fn is_open(value: &Value) -> bool {
    matches!(&value.kind, Kind::Unknown(u) if u.ty == Type::Any)
}

/// A look at what an expression is made of.
struct Shown<'s, 'e> {
    evaluator: &'s Evaluator<'e>,
    scope: &'s Scope<'s>,
    errors: &'s mut Errors,
    /// By the name of a local: whether it stays secret.
    locals: BTreeMap<String, bool>,
}

impl Shown<'_, '_> {
    fn value(&mut self, expr: &Expr) -> Value {
        self.evaluator.eval(expr, self.scope, self.errors)
    }

    /// True if a part of it stays secret, whatever its type will be.
    fn shows(&mut self, expr: &Expr) -> bool {
        match &expr.bare().kind {
            ExprKind::Tuple(items) => items.iter().any(|i| self.shows(i)),
            ExprKind::Object(entries) => entries.iter().any(|(_, v)| self.shows(v)),
            _ => self.stays(expr) && self.value(expr).contains_secret(),
        }
    }

    /// True if it is as secret as what it is made of, whatever types that will have. What modules and resources give may be harmless.
    fn stays(&mut self, expr: &Expr) -> bool {
        match &expr.bare().kind {
            ExprKind::Literal(_) => true,
            ExprKind::Template(parts) => parts.iter().all(|p| match p {
                Part::Literal(_) => true,
                Part::Interpolation(inner) => self.stays(inner),
                Part::If { .. } | Part::For { .. } => false,
            }),
            ExprKind::Tuple(items) => items.iter().all(|i| self.stays(i)),
            ExprKind::Object(entries) => entries.iter().all(|(_, v)| self.stays(v)),
            ExprKind::Conditional(parts) => parts.iter().all(|p| self.stays(p)),
            ExprKind::Traversal(root, steps) => match (&root.kind, steps.first().map(|s| &s.kind)) {
                (ExprKind::Name(name), _) if name == "var" => true,
                (ExprKind::Name(name), Some(StepKind::Attribute(local))) if name == "local" => self.local_stays(local),
                (ExprKind::Name(_), _) => false,
                // Of what a function gives, a part that it takes from elsewhere may be meant.
                (ExprKind::Call(call), _) if !KEEPING.contains(&call.name.as_str()) => !is_open(&self.value(root)) && self.stays(root),
                _ => self.stays(root),
            },
            ExprKind::Call(call) => self.call_stays(call),
            ExprKind::For(f) => {
                let collection = self.value(&f.collection);
                collection.secret && !is_open(&collection) && self.stays(&f.collection)
            }
            _ => false,
        }
    }

    fn local_stays(&mut self, name: &str) -> bool {
        if let Some(stays) = self.locals.get(name) {
            return *stays;
        }
        // One in a circle is an error of its own, and must not be looked at for ever.
        self.locals.insert(name.into(), false);
        let evaluator = self.evaluator;
        let stays = evaluator.config.locals.get(name).is_some_and(|local| self.stays(&local.expr));
        self.locals.insert(name.into(), stays);
        stays
    }

    fn call_stays(&mut self, call: &Call) -> bool {
        match call.name.as_str() {
            "sensitive" => true,
            "try" => false,
            name => {
                call.args.iter().all(|a| self.stays(a)) && (KEEPING.contains(&name) || !call.args.iter().any(|a| is_open(&self.value(a))))
            }
        }
    }
}
