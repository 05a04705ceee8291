//! Why a prefix is not taken: the same words in the plan and in the apply.

use karmaform_model::{Diagnostic, Object, Value};

use super::{is_true, mark, text};

/// So many endpoints are named.
const MOST: usize = 3;

/// Of arguments that can't be used.
pub(crate) fn arguments(wanted: &Object) -> Option<Diagnostic> {
    let wrong = |detail: String| Some(Diagnostic::error("An argument that can't be used", detail));
    if let Some((prefix, problem)) = text(wanted, "prefix").and_then(|p| Some((p, mark::problem(p)?))) {
        return wrong(format!("`prefix` is \"{prefix}\", which {problem}."));
    }
    match text(wanted, "on_destroy") {
        Some(other) if !matches!(other, "keep" | "delete") => {
            wrong(format!("`on_destroy` is \"{other}\", but must be \"keep\" or \"delete\"."))
        }
        _ => None,
    }
}

/// What is in the way, if anything is: `before` is what was seen, with the mark's owner as its own.
pub(crate) fn of_plan(before: &Object, wanted: &Object) -> Option<Diagnostic> {
    let prefix = text(wanted, "prefix").unwrap_or_default();
    let place = place(wanted);
    let overlaps: Vec<&str> = before.get("overlaps").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).collect();
    if !overlaps.is_empty() {
        return Some(
            Diagnostic::error(
                "A prefix in etcd that overlaps another",
                format!("{prefix} in the etcd at {place} overlaps {}. Each would see the other's keys as its own.", overlaps.join(" and ")),
            )
            .with_hint("Take a prefix that is neither above nor below another one: \"/karmada/NAME\" for each."),
        );
    }
    let is_ours = || text(before, "owner_uid").is_some_and(|uid| text(wanted, "owner_uid") == Some(uid));
    if !is_true(before, "foreign") || is_true(wanted, "adopt") || is_ours() {
        return None;
    }
    let keys = before.get("keys").and_then(Value::as_i64).unwrap_or_default();
    let place = format!("{prefix} in the etcd at {place}");
    let what = match (keys, text(before, "first_key").filter(|k| !k.is_empty())) {
        (0, _) | (_, None) => "Nothing is below it just now.".to_owned(),
        (1, Some(key)) => format!("One key is below it: {key}."),
        (n, Some(key)) => format!("{n} keys are below it; the first is {key}."),
    };
    let whose = match text(before, "owner_uid").map(|_| text(before, "owner").filter(|o| !o.is_empty())) {
        Some(Some(owner)) => format!("{place} belongs to \"{owner}\"."),
        Some(None) => format!("{place} has the mark of somebody who is not named."),
        None => format!("{place} is not empty, and nothing says whose it is."),
    };
    let detail = format!("{whose} {what} Two that write there damage each other's data.");
    Some(
        Diagnostic::error("A prefix in etcd that holds somebody else's data", detail)
            .with_hint("Take another prefix: \"/karmada/NAME\", for one.")
            .with_hint(
                "If it is this one's own, from before its state was lost or made by another tool, adopt it on purpose: `adopt = true`, of a \
                 control plane `adopt_etcd_data = true`.",
            ),
    )
}

/// The endpoints, for a message.
pub(crate) fn place(object: &Object) -> String {
    let endpoints = object.get("cluster").and_then(|c| c.get("endpoints")).and_then(Value::as_items).unwrap_or_default();
    let names: Vec<&str> = endpoints.iter().filter_map(Value::as_str).take(MOST).collect();
    match (names.is_empty(), endpoints.len().saturating_sub(MOST)) {
        (true, _) => object.get("cluster").and_then(|c| c.get("id")).and_then(Value::as_str).unwrap_or("its endpoints").to_owned(),
        (_, 0) => names.join(", "),
        (_, more) => format!("{} and {more} more", names.join(", ")),
    }
}
