//! The values of `count` and `for_each` into how often something stands: here and nowhere later.

use karmaform_model::{Diagnostic, Kind, Number, Object, Type, convert};

use crate::config::Repetition;
use crate::ephemeral;
use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::scope::{Scope, Site};
use crate::syntax::Expr;

/// More instances of one block are a mistake.
const MOST: i64 = 1_000_000;

/// How often something stands can't be told.
pub(crate) enum Untold {
    /// It is wrong, and that is among the errors.
    Wrong,
    /// It is not known yet. That is to be said if it stays so.
    Open(Box<Diagnostic>),
}

/// How often something with `count` stands, in an instance of a module.
///
/// # Errors
/// If that can't be told.
pub(crate) fn count(evaluator: &Evaluator<'_>, expr: &Expr, module: usize, errors: &mut Errors) -> Result<Repetition, Untold> {
    let site = Site::in_module(module);
    let scope = Scope::new(&site);
    let before = errors.list.len();
    let value = evaluator.eval(expr, &scope, errors);
    if errors.list.len() > before {
        return Err(Untold::Wrong);
    }
    let told = |errors: &Errors, detail: &str, hint: &str| {
        evaluator.failure(expr, expr.span, &scope, errors, "Invalid count", detail.to_owned()).with_hint(hint)
    };
    let wrong = |errors: &mut Errors, detail: &str, hint: &str| {
        let told = told(errors, detail, hint);
        errors.push(told);
        Untold::Wrong
    };
    // A secret may decide it, as in Terraform: how many there are says little of what it is.
    if value.contains_ephemeral() {
        errors.push(ephemeral::refused("The number of instances", expr.span));
        return Err(Untold::Wrong);
    }
    if value.is_null() {
        return Err(wrong(errors, "\"count\" must not be null.", "Write 0 for none, 1 for one: var.enabled ? 1 : 0."));
    }
    let Ok(number) = convert(&value, &Type::Number) else {
        let found = crate::eval::article(&value);
        let hint = if matches!(value.kind, Kind::Bool(_)) { "Write CONDITION ? 1 : 0." } else { "For a map or set use for_each." };
        return Err(wrong(errors, &format!("\"count\" must be a number, but is {found}."), hint));
    };
    let Some(number) = number.as_number() else {
        let detail = "\"count\" is known only after apply, but the plan needs to know how many instances there are.";
        return Err(Untold::Open(Box::new(told(errors, detail, UNKNOWN))));
    };
    match number.as_i64() {
        Some(n) if n > MOST => Err(wrong(errors, &format!("\"count\" may be {MOST} at most."), "Check the calculation.")),
        Some(n) if n >= 0 => u64::try_from(n).map(Repetition::Count).map_err(|_| Untold::Wrong),
        _ if *number < Number::from(0i64) => Err(wrong(errors, "\"count\" must not be negative.", "Use max(0, ...).")),
        _ => Err(wrong(errors, "\"count\" must be a whole number.", "Use floor() or ceil().")),
    }
}

/// The hint where it is not known before apply.
pub(crate) const UNKNOWN: &str = "Make it of variables, locals and keys of other blocks; or apply first what it depends on, with -target.";

/// How often something with `for_each` stands, in an instance of a module.
///
/// # Errors
/// If that can't be told.
pub(crate) fn for_each(evaluator: &Evaluator<'_>, expr: &Expr, module: usize, errors: &mut Errors) -> Result<Repetition, Untold> {
    let site = Site::in_module(module);
    let scope = Scope::new(&site);
    let before = errors.list.len();
    let value = evaluator.eval(expr, &scope, errors);
    if errors.list.len() > before {
        return Err(Untold::Wrong);
    }
    let told = |errors: &Errors, detail: String, hint: &str| {
        evaluator.failure(expr, expr.span, &scope, errors, "Invalid for_each", detail).with_hint(hint)
    };
    let wrong = |errors: &mut Errors, detail: String, hint: &str| {
        let told = told(errors, detail, hint);
        errors.push(told);
        Untold::Wrong
    };
    if value.secret {
        let detail = "A secret would show: the keys of instances are printed.";
        let told = told(errors, detail.into(), "Use nonsensitive() if the keys are harmless.");
        // What else shows a secret does so whatever the keys are.
        errors.push(Diagnostic { leaves_names: true, ..told });
        return Err(Untold::Wrong);
    }
    // Keys are kept, in addresses; values are not.
    if value.ephemeral {
        errors.push(ephemeral::refused("The keys of instances", expr.span));
        return Err(Untold::Wrong);
    }
    // Whatever comes to be known of its elements: these are no keys.
    if !value.is_null() && matches!(value.ty(), Type::List(_) | Type::Tuple(_)) {
        let detail = format!("\"for_each\" takes a map or a set of strings, but this is a {}.", value.ty().word());
        return Err(wrong(errors, detail, "Write toset(...): a list has no keys that stay when elements come and go."));
    }
    match &value.kind {
        Kind::Map(_, entries) | Kind::Object(entries) => Ok(Repetition::ForEach(entries.clone())),
        Kind::Set(element, items) => {
            let mut entries = Object::new();
            for item in items {
                match &item.kind {
                    Kind::String(text) => drop(entries.insert(text.clone(), item.clone())),
                    Kind::Unknown(_) => {
                        let told = told(errors, "Not all keys of \"for_each\" are known before apply.".into(), UNKNOWN);
                        return Err(Untold::Open(Box::new(told)));
                    }
                    Kind::Null(_) => {
                        let detail = "A key of \"for_each\" must not be null.";
                        return Err(wrong(errors, detail.into(), "Remove nulls: [for x in ... : x if x != null]."));
                    }
                    _ => {
                        let detail = format!("\"for_each\" takes a set of strings, but this is a set of {element}.");
                        return Err(wrong(errors, detail, "Convert the elements: toset([for x in ... : tostring(x)])."));
                    }
                }
            }
            Ok(Repetition::ForEach(entries))
        }
        Kind::Unknown(_) => {
            let detail = "The keys of \"for_each\" are known only after apply, but the plan needs to know the instances.";
            Err(Untold::Open(Box::new(told(errors, detail.into(), UNKNOWN))))
        }
        Kind::Null(_) => Err(wrong(errors, "\"for_each\" must not be null.".into(), "Write {} for none.")),
        _ => {
            let detail = format!("\"for_each\" takes a map or a set of strings, but this is {}.", crate::eval::article(&value));
            Err(wrong(errors, detail, "For a number of instances use count."))
        }
    }
}
