//! What a plan puts off, as a user reads it.

use std::collections::BTreeSet;

use karmaform_model::{Address, Deferred, Plan};

use super::style::{Theme, Tone};

/// So many are named of what something waits for.
const NAMED: usize = 3;

/// The name of something that is put off: `terraform_data.b[*]` for all instances of a block, and the same for modules.
pub(crate) fn name(deferred: &Deferred) -> String {
    if deferred.is_open() { format!("{}[*]", deferred.address) } else { deferred.address.to_string() }
}

/// The blocks and modules of a plan whose instances are not known.
pub(crate) fn open(plan: &Plan) -> BTreeSet<&Address> {
    plan.deferred.iter().filter(|d| d.is_open()).map(|d| &d.address).collect()
}

/// Why it is put off, and what becomes of what there is of it. `open` as [`open()`] of the same plan.
pub(crate) fn reason(deferred: &Deferred, open: &BTreeSet<&Address>) -> String {
    if let Some(rest) = &deferred.rest {
        return rest.clone();
    }
    let named = |a: &Address| if open.contains(a) { format!("{a}[*]") } else { a.to_string() };
    let mut names: Vec<String> = deferred.because.iter().take(NAMED).map(named).collect();
    if deferred.because.len() > NAMED {
        names.push(format!("{} more", deferred.because.len() - NAMED));
    }
    let needed = match names.split_last() {
        None => None,
        Some((only, [])) => Some(only.clone()),
        Some((last, others)) => Some(format!("{} and {last}", others.join(", "))),
    };
    let why = match (deferred.is_open(), needed) {
        (true, Some(needed)) => format!("how many there are depends on {needed}"),
        (true, None) => "how many there are is known only after apply".to_owned(),
        (false, Some(needed)) => format!("depends on {needed}"),
        (false, None) => "something that is put off depends on it".to_owned(),
    };
    let kept = match (deferred.is_open(), deferred.stored) {
        (_, 0) => String::new(),
        (false, _) | (true, 1) => "; what is there stays as it is".to_owned(),
        (true, n) => format!("; the {n} that are there stay as they are"),
    };
    format!("{why}{kept}")
}

/// What is put off, each with its reason; nothing if nothing is.
pub(crate) fn deferred_text(plan: &Plan, theme: &Theme) -> String {
    if plan.deferred.is_empty() {
        return String::new();
    }
    let open = open(plan);
    let mut out = String::new();
    for (is_whole, intro) in [
        (true, "Deferred: this plan can't tell what becomes of these, and a later one will."),
        (false, "Deferred: this plan goes a part of the way with these, and a later one goes on."),
    ] {
        let these: Vec<&Deferred> = plan.deferred.iter().filter(|d| d.is_whole() == is_whole).collect();
        if !these.is_empty() {
            out.push_str(&format!("\n{}\n\n", theme.wrap(intro)));
        }
        for deferred in these {
            let name = theme.strong(Tone::Plain, &format!("# {}", name(deferred)));
            out.push_str(&format!("  {name}: {}\n", reason(deferred, &open)));
        }
    }
    out
}

/// `3 deferred`; nothing if nothing is.
pub(crate) fn count(plan: &Plan) -> Option<String> {
    Some(plan.deferred.len()).filter(|n| *n > 0).map(|n| format!("{n} deferred"))
}

/// What follows the plan's summary.
pub(crate) fn way_on(plan: &Plan, theme: &Theme) -> String {
    let Some(count) = count(plan) else { return String::new() };
    let product = theme.product.to_lowercase();
    theme.wrap(&format!("\n{count}: apply this plan and plan again, or let \"{product} apply -until-done\" go on until nothing is.\n"))
}

/// Where a plan has nothing to do but to put things off.
pub(crate) fn nothing_yet(theme: &Theme) -> String {
    let title = theme.strong(Tone::Read, "Nothing can be done yet.");
    let detail = "What there is matches the configuration as far as that can be told. For the rest applying this plan changes nothing; \
                  something else has to be known first.";
    format!("\n{title}\n\n{}\n", theme.wrap(detail))
}
