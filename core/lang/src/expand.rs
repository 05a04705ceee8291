//! `count` and `for_each` into instances: here and nowhere later.
//!
//! A block is expanded after the blocks that its `count` or `for_each` needs, so that `for_each = data.ssh_host.cp` sees their keys.

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Kind, Number, Object, Type, convert};

use crate::config::{Config, Reference, Repeat, Repetition};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, Memo, Unknowns};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::Expr;

/// More instances of one block are a mistake.
const MOST: i64 = 1_000_000;

/// Sets the repetition of all blocks. `needs` is what the `count` or `for_each` of each block refers to; `failed`: there were errors before.
pub(crate) fn expand(config: &mut Config, needs: &BTreeMap<Address, Vec<Reference>>, failed: bool) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let (order, circles) = order(needs);
    for circle in circles {
        diagnostics.push(circle_error(config, &circle));
        for address in &circle {
            set(config, address, None);
        }
    }
    let mut memo = Memo::default();
    for address in order {
        // What is unknown without a block being involved is so because of an error that was reported.
        let own = needs.get(&address).is_some_and(Vec::is_empty);
        let is_wrong = |r: &Reference| config.blocks.get(&r.address.block()).is_some_and(|b| matches!(b.repeat, Repeat::Wrong));
        let behind_wrong = needs.get(&address).is_some_and(|n| n.iter().any(is_wrong));
        let repetition = match config.blocks.get(&address).map(|b| &b.repeat) {
            Some(Repeat::Count(expr) | Repeat::ForEach(expr)) => {
                let evaluator = Evaluator::with_memo(config, &Unknowns, memo);
                let is_count = matches!(config.blocks[&address].repeat, Repeat::Count(_));
                let mut errors = Errors::default();
                let repetition = if is_count { count(&evaluator, expr, &mut errors) } else { for_each(&evaluator, expr, &mut errors) };
                let reported = failed || diagnostics.has_errors() || !evaluator.memo.late.borrow().is_empty();
                if (own || behind_wrong) && reported {
                    errors.list.retain(|d| !d.hints.iter().any(|h| h == UNKNOWN));
                }
                diagnostics.extend(evaluator.finish(errors).into_iter().map(|d| d.at(&address)));
                memo = evaluator.memo;
                repetition
            }
            _ => continue,
        };
        set(config, &address, repetition);
    }
    diagnostics
}

fn set(config: &mut Config, address: &Address, repetition: Option<Repetition>) {
    if let Some(block) = config.blocks.get_mut(address) {
        match repetition {
            Some(repetition) => block.repetition = repetition,
            None => block.repeat = Repeat::Wrong,
        }
    }
}

/// Checks what a `count` or `for_each` refers to.
pub(crate) fn needs(config: &Config, address: &Address, expr: &Expr, references: &mut Vec<Reference>) -> Diagnostics {
    statics::check(config, expr, Place { own: Some(address), ..Place::default() }, references)
}

/// Blocks after what they need. Without recursion: chains may be long.
fn order(needs: &BTreeMap<Address, Vec<Reference>>) -> (Vec<Address>, Vec<Vec<Address>>) {
    let (mut order, mut circles) = (Vec::new(), Vec::new());
    // False while on the path.
    let mut done: BTreeMap<&Address, bool> = BTreeMap::new();
    for start in needs.keys() {
        if done.contains_key(start) {
            continue;
        }
        done.insert(start, false);
        let mut path = vec![(start, 0)];
        while let Some((address, next)) = path.last_mut() {
            let address: &Address = address;
            let needed = needs.get(address).and_then(|r| r.get(*next)).map(|r| r.address.block());
            *next += 1;
            match needed.map(|needed| needs.get_key_value(&needed).map(|(key, _)| key)) {
                None => {
                    done.insert(address, true);
                    order.push(address.clone());
                    path.pop();
                }
                // A block without count or for_each needs nothing first.
                Some(None) => {}
                Some(Some(needed)) => match done.get(needed) {
                    None => {
                        done.insert(needed, false);
                        path.push((needed, 0));
                    }
                    Some(false) => {
                        let from = path.iter().position(|(a, _)| *a == needed).unwrap_or(0);
                        circles.push(path[from..].iter().map(|(a, _)| (*a).clone()).collect());
                    }
                    Some(true) => {}
                },
            }
        }
    }
    (order, circles)
}

fn circle_error(config: &Config, circle: &[Address]) -> Diagnostic {
    let round: Vec<_> = circle.iter().chain(circle.first()).map(ToString::to_string).collect();
    let span = circle.first().and_then(|a| config.blocks.get(a)).map(|b| b.span);
    Diagnostic::error("Blocks depend on each other", format!("How often these stand can't be decided: {}.", round.join(" -> ")))
        .with_span(span)
        .with_hint("Take the common count or keys into a variable or a local.")
}

fn count(evaluator: &Evaluator<'_>, expr: &Expr, errors: &mut Errors) -> Option<Repetition> {
    let site = Site::default();
    let scope = Scope::new(&site);
    let before = errors.list.len();
    let value = evaluator.eval(expr, &scope, errors);
    if errors.list.len() > before {
        return None;
    }
    let wrong = |errors: &mut Errors, detail: &str, hint: &str| {
        evaluator.fail(expr, expr.span, &scope, errors, "Invalid count", detail.to_owned());
        with_hint(errors, hint)
    };
    if value.contains_secret() {
        return wrong(errors, "A secret would show: the number of instances is printed.", "Use nonsensitive() if the number is harmless.");
    }
    if value.is_null() {
        return wrong(errors, "\"count\" must not be null.", "Write 0 for none, 1 for one: var.enabled ? 1 : 0.");
    }
    let Ok(number) = convert(&value, &Type::Number) else {
        let found = crate::eval::article(&value);
        let hint = if matches!(value.kind, Kind::Bool(_)) { "Write CONDITION ? 1 : 0." } else { "For a map or set use for_each." };
        return wrong(errors, &format!("\"count\" must be a number, but is {found}."), hint);
    };
    let Some(number) = number.as_number() else {
        return wrong(errors, "\"count\" is known only after apply, but the plan needs to know how many instances there are.", UNKNOWN);
    };
    match number.as_i64() {
        Some(n) if n > MOST => wrong(errors, &format!("\"count\" may be {MOST} at most."), "Check the calculation."),
        Some(n) if n >= 0 => u64::try_from(n).ok().map(Repetition::Count),
        _ if *number < Number::from(0i64) => wrong(errors, "\"count\" must not be negative.", "Use max(0, ...)."),
        _ => wrong(errors, "\"count\" must be a whole number.", "Use floor() or ceil()."),
    }
}

const UNKNOWN: &str = "Make it of variables, locals and keys of other blocks; or apply first what it depends on, with -target.";

fn for_each(evaluator: &Evaluator<'_>, expr: &Expr, errors: &mut Errors) -> Option<Repetition> {
    let site = Site::default();
    let scope = Scope::new(&site);
    let before = errors.list.len();
    let value = evaluator.eval(expr, &scope, errors);
    if errors.list.len() > before {
        return None;
    }
    let wrong = |errors: &mut Errors, detail: String, hint: &str| {
        evaluator.fail(expr, expr.span, &scope, errors, "Invalid for_each", detail);
        with_hint(errors, hint)
    };
    if value.secret {
        return wrong(
            errors,
            "A secret would show: the keys of instances are printed.".into(),
            "Use nonsensitive() if the keys are harmless.",
        );
    }
    match &value.kind {
        Kind::Map(_, entries) | Kind::Object(entries) => Some(Repetition::ForEach(entries.clone())),
        Kind::Set(element, items) => {
            let mut entries = Object::new();
            for item in items {
                match &item.kind {
                    Kind::String(text) => drop(entries.insert(text.clone(), item.clone())),
                    Kind::Unknown(_) => {
                        return wrong(errors, "Not all keys of \"for_each\" are known before apply.".into(), UNKNOWN);
                    }
                    Kind::Null(_) => {
                        return wrong(
                            errors,
                            "A key of \"for_each\" must not be null.".into(),
                            "Remove nulls: [for x in ... : x if x != null].",
                        );
                    }
                    _ => {
                        let detail = format!("\"for_each\" takes a set of strings, but this is a set of {element}.");
                        return wrong(errors, detail, "Convert the elements: toset([for x in ... : tostring(x)]).");
                    }
                }
            }
            Some(Repetition::ForEach(entries))
        }
        Kind::List(..) | Kind::Tuple(_) => {
            let detail = format!("\"for_each\" takes a map or a set of strings, but this is a {}.", value.ty().word());
            wrong(errors, detail, "Write toset(...): a list has no keys that stay when elements come and go.")
        }
        Kind::Unknown(_) => {
            wrong(errors, "The keys of \"for_each\" are known only after apply, but the plan needs to know the instances.".into(), UNKNOWN)
        }
        Kind::Null(_) => wrong(errors, "\"for_each\" must not be null.".into(), "Write {} for none."),
        _ => {
            let detail = format!("\"for_each\" takes a map or a set of strings, but this is {}.", crate::eval::article(&value));
            wrong(errors, detail, "For a number of instances use count.")
        }
    }
}

fn with_hint(errors: &mut Errors, hint: &str) -> Option<Repetition> {
    if let Some(last) = errors.list.pop() {
        errors.list.push(last.with_hint(hint));
    }
    None
}
