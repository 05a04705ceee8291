//! The whole plan as text, in Terraform's form. Lines that other tools search for are kept to the byte; tests hold them.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Address, Catalog, ModeOfPlan, Plan, PlannedResource};

use super::composite::{Group, group};
use super::deferred::{count, deferred_text, nothing_yet, way_on};
use super::resource::{body, drifted, heading};
use super::style::{Mark, Theme, Tone};
use super::values::{Manner, Printer, key_texts, nothing, shortened, untyped};

/// What stands before the list.
const WILL: &str = "will perform the following actions";
/// The same of a plan that could not be brought to its end.
const UNFINISHED: &str = "planned the following actions, but then encountered a problem";

/// What to draw besides the plan itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanOptions {
    /// Show every part of every composite in full.
    pub(crate) verbose: bool,
}

/// The plan as a user reads it, from drift to outputs.
pub(crate) fn plan_text(plan: &Plan, registry: &Catalog, theme: &Theme, options: PlanOptions) -> String {
    let mut out = drift_text(plan, registry, theme);
    if plan.mode == ModeOfPlan::RefreshOnly && plan.errored {
        out.push_str(&outputs_text(plan, theme));
        out.push_str(&failed(theme));
        return out;
    }
    if plan.mode == ModeOfPlan::RefreshOnly {
        if out.is_empty() && tells_outputs(plan) {
            out.push_str(&outputs_text(plan, theme));
            out.push_str(&only_outputs(theme));
        } else {
            out.push_str(&refresh_only_text(plan, theme, !out.is_empty()));
            out.push_str(&outputs_text(plan, theme));
        }
        out.push_str(&deferred_text(plan, theme));
        return out;
    }
    let shown: Vec<&PlannedResource> = plan.resources.iter().filter(|r| !r.change.is_no_op()).collect();
    let moves = !plan.moved.is_empty();
    if shown.is_empty() && !tells_outputs(plan) && !moves && plan.errored {
        out.push_str(&failed(theme));
        return out;
    }
    if shown.is_empty() && !tells_outputs(plan) && !moves {
        out.push_str(&if plan.deferred.is_empty() { no_changes(plan, theme) } else { nothing_yet(theme) });
        out.push_str(&deferred_text(plan, theme));
        return out;
    }
    if shown.is_empty() && !moves {
        out.push_str(&deferred_text(plan, theme));
        out.push_str(&outputs_text(plan, theme));
        out.push_str(&if plan.errored { failed(theme) } else { only_outputs(theme) });
        return out;
    }
    if shown.iter().any(|r| !r.is_import_alone()) {
        out.push_str(&legend(&shown, theme));
    }
    out.push_str(&format!("\n{} {}:\n", theme.product, if plan.errored { UNFINISHED } else { WILL }));
    for item in items(plan) {
        match item {
            Item::Plain(resource) if resource.change.is_no_op() && !plan.moved.contains_key(&resource.address) => {}
            Item::Plain(resource) => {
                out.push('\n');
                out.push_str(&heading(resource, plan.moved.get(&resource.address), plan.mode, theme));
                out.push_str(&body(resource, registry, theme));
            }
            Item::Composite(g) if g.is_news(plan) => {
                out.push('\n');
                out.push_str(&group(&g, plan, registry, theme, options.verbose));
            }
            Item::Composite(_) => {}
        }
    }
    out.push_str(&deferred_text(plan, theme));
    out.push_str(&format!("\n{}\n", theme.strong(Tone::Plain, &summary(plan))));
    out.push_str(&outputs_text(plan, theme));
    out.push_str(&way_on(plan, theme));
    out
}

/// What `refresh` tells of its plan: it takes all of it into the state at once, so that nothing of it is still to be applied.
pub(crate) fn refreshed_text(plan: &Plan, registry: &Catalog, theme: &Theme) -> String {
    drift_text(plan, registry, theme) + &deferred_text(plan, theme)
}

/// `Plan: 1 to add, 0 to change, 0 to destroy.`; what is only forgotten follows if there is some, as in OpenTofu; what is taken over goes first.
pub(crate) fn summary(plan: &Plan) -> String {
    let Counts { import, add, change, destroy, forget } = counts(plan);
    let imported = if import > 0 { format!("{import} to import, ") } else { String::new() };
    let forgotten = if forget > 0 { format!(", {forget} to forget") } else { String::new() };
    format!("Plan: {imported}{add} to add, {change} to change, {destroy} to destroy{forgotten}.")
}

/// How many resources come, change and go; a composite's own record does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// To take over, whether it changes or not.
    pub(crate) import: usize,
    /// To add, replacements among them.
    pub(crate) add: usize,
    /// To change in place.
    pub(crate) change: usize,
    /// To destroy, replacements among them.
    pub(crate) destroy: usize,
    /// To take out of the state only.
    pub(crate) forget: usize,
}

/// What a plan's summary counts.
pub(crate) fn counts(plan: &Plan) -> Counts {
    let (add, change, destroy) = plan.counts();
    let forget = plan.resources.iter().filter(|r| r.provider.is_some() && r.change.action() == Action::Forget).count();
    let import = plan.resources.iter().filter(|r| r.importing.is_some()).count();
    Counts { import, add, change, destroy, forget }
}

enum Item<'a> {
    Plain(&'a PlannedResource),
    Composite(Group<'a>),
}

/// Resources in their order; what belongs to one composite comes together.
fn items(plan: &Plan) -> Vec<Item<'_>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut places: BTreeMap<Address, usize> = BTreeMap::new();
    for resource in plan.listed() {
        let is_record = resource.provider.is_none() && resource.address.mode == karmaform_model::Mode::Managed;
        let composite = resource.address.composite().or_else(|| is_record.then(|| resource.address.clone()));
        let Some(address) = composite else {
            items.push(Item::Plain(resource));
            continue;
        };
        let place = *places.entry(address.clone()).or_insert_with(|| {
            items.push(Item::Composite(Group { address, record: None, children: Vec::new() }));
            items.len() - 1
        });
        if let Some(Item::Composite(group)) = items.get_mut(place) {
            if resource.address.is_child() { group.children.push(resource) } else { group.record = Some(resource) }
        }
    }
    items
}

fn legend(shown: &[&PlannedResource], theme: &Theme) -> String {
    let intro = format!(
        "{} used the linked providers to generate the following execution plan. Resource actions are indicated with the following symbols:",
        theme.product
    );
    let mut out = format!("\n{}\n", theme.paragraph(&intro));
    let used: BTreeSet<Mark> = shown.iter().filter(|r| !r.is_import_alone()).map(|r| Mark::of(r.change.action())).collect();
    let order = [Mark::Add, Mark::Change, Mark::Remove, Mark::DestroyThenCreate, Mark::CreateThenDestroy, Mark::Read, Mark::Forget];
    for mark in order.into_iter().filter(|m| used.contains(m)) {
        out.push_str(&format!("{} {}\n", mark.painted(theme), mark.meaning()));
    }
    out
}

/// What a plan comes to, in a line.
pub(crate) fn verdict(plan: &Plan) -> String {
    let rest = count(plan).map(|count| format!(" {count}.")).unwrap_or_default();
    let done = match plan.mode {
        ModeOfPlan::RefreshOnly if has_seen(plan) => "Changes outside of karmaform, to be taken into the state".to_owned(),
        _ if !plan.moved.is_empty() || plan.resources.iter().any(|r| !r.change.is_no_op()) => summary(plan),
        _ if !plan.outputs.is_empty() => "Changes to outputs only".to_owned(),
        _ if !plan.deferred.is_empty() => "Nothing can be done yet.".to_owned(),
        _ => unchanged(plan.mode).to_owned(),
    };
    done + &rest
}

fn unchanged(mode: ModeOfPlan) -> &'static str {
    match mode {
        ModeOfPlan::Normal => "No changes. Your infrastructure matches the configuration.",
        ModeOfPlan::Destroy => "No changes. No objects need to be destroyed.",
        ModeOfPlan::RefreshOnly => "No changes. Your infrastructure still matches the configuration.",
    }
}

fn failed(theme: &Theme) -> String {
    let text = format!("Planning failed. {} encountered an error while generating this plan.", theme.product);
    format!("\n{}\n", theme.paragraph(&text))
}

fn no_changes(plan: &Plan, theme: &Theme) -> String {
    let title = unchanged(plan.mode);
    let detail = if plan.mode == ModeOfPlan::Destroy {
        format!("Either you have not created any objects yet or the existing objects were already deleted outside of {}.", theme.product)
    } else {
        format!(
            "{} has compared your real infrastructure against your configuration and found no differences, so no changes are needed.",
            theme.product
        )
    };
    format!("\n{}\n\n{}\n", theme.strong(Tone::Add, title), theme.paragraph(&detail))
}

fn drift_text(plan: &Plan, registry: &Catalog, theme: &Theme) -> String {
    let changed: BTreeSet<&Address> = plan.resources.iter().filter(|r| !r.change.is_no_op()).map(|r| &r.address).collect();
    let secret_paths: BTreeMap<&Address, _> = plan.resources.iter().rev().map(|r| (&r.address, r.secret_paths.as_slice())).collect();
    let all = plan.mode == ModeOfPlan::RefreshOnly;
    let shown: Vec<_> = plan.listed_drift().into_iter().filter(|d| all || changed.contains(&d.address)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let product = theme.product;
    let title = format!("Note: Objects have changed outside of {product}");
    let intro = format!(
        "{product} detected the following changes made outside of {product} since the last \"{} apply\" which may have affected this plan:",
        product.to_lowercase()
    );
    let mut out = format!("\n{}\n\n{}\n", theme.strong(Tone::Read, &title), theme.paragraph(&intro));
    for resource in shown {
        out.push('\n');
        let was = plan.previous_address(&resource.address);
        out.push_str(&drifted(resource, was, secret_paths.get(&resource.address).copied().unwrap_or_default(), registry, theme));
    }
    if !all {
        out.push_str(&theme.paragraph(
            "\nUnless you have made equivalent changes to your configuration, or ignored the relevant attributes using ignore_changes, \
             the following plan may include actions to undo or respond to these changes.\n",
        ));
        out.push_str(&format!("\n{}\n", rule()));
    }
    out
}

/// What applying does where only outputs change.
fn only_outputs(theme: &Theme) -> String {
    let sentence = format!(
        "You can apply this plan to save these new output values to the {} state, without changing any real infrastructure.",
        theme.product
    );
    format!("\n{}\n", theme.paragraph(&sentence))
}

fn refresh_only_text(plan: &Plan, theme: &Theme, has_drift: bool) -> String {
    if !has_drift && !tells_outputs(plan) {
        let title = unchanged(plan.mode);
        let detail = format!(
            "{} has checked that the real remote objects still match the result of your most recent changes, and found no differences.",
            theme.product
        );
        return format!("\n{}\n\n{}\n", theme.strong(Tone::Add, title), theme.paragraph(&detail));
    }
    let detail = format!(
        "\nThis is a refresh-only plan, so {0} will not take any actions to undo these. If you were expecting these changes then you can \
         apply this plan to record the updated values in the {0} state without changing any remote objects.\n",
        theme.product
    );
    theme.paragraph(&detail)
}

/// True if there is something to tell of outputs.
fn tells_outputs(plan: &Plan) -> bool {
    plan.told_outputs().next().is_some()
}

/// `Changes to Outputs:` and what changes; nothing if none does. As in Terraform, nothing is told of one that changes its type alone.
pub(crate) fn outputs_text(plan: &Plan, theme: &Theme) -> String {
    if !tells_outputs(plan) {
        return String::new();
    }
    let mut printer = Printer::comparing(Manner { untyped: true, whole: false });
    // What stays has its place in the width of the names.
    let stays = plan.outputs.iter().filter(|(_, change)| change.is_of_type_alone()).map(|(name, _)| name).chain(plan.kept_outputs.keys());
    let keys = key_texts(plan.told_outputs().map(|(name, _)| name).chain(stays), false);
    for (key, (_, output)) in keys.iter().zip(plan.told_outputs()) {
        let side = |v: &Option<karmaform_model::Value>| {
            v.as_ref().map_or_else(nothing, |v| untyped(&shortened(v)).secret_if(output.sensitive && !v.is_null()))
        };
        printer.difference(4, &format!("{key} = "), &side(&output.before), &side(&output.after), "");
    }
    format!("\n{}\n{}", theme.strong(Tone::Plain, "Changes to Outputs:"), printer.finish(theme))
}

/// So many that have secrets are named.
const NAMED: usize = 5;

/// What lies in clear in a state that is not encrypted.
pub(crate) fn in_clear(holders: &BTreeSet<String>, theme: &Theme) -> String {
    if holders.is_empty() {
        return String::new();
    }
    let named: Vec<_> = holders.iter().take(NAMED).map(String::as_str).collect();
    let more = match holders.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = format!(
        "Note: The state is not encrypted, and holds secrets in clear: those of {}{more}. An \"encryption\" block in the configuration encrypts it.",
        named.join(", ")
    );
    format!("\n{}\n", theme.wrap(&note))
}

/// What follows a plan that is not applied at once.
pub(crate) fn trailer(saved: Option<&str>, theme: &Theme) -> String {
    let command = theme.product.to_lowercase();
    let text = match saved {
        Some(path) => format!(
            "Saved the plan to: {path}\n\nTo perform exactly these actions, run the following command to apply:\n    {command} apply \"{path}\"\n"
        ),
        None => format!(
            "{}\n",
            theme.paragraph(&format!(
                "Note: You didn't use the -out option to save this plan, so {} can't guarantee to take exactly these actions if you run \
                 \"{command} apply\" now.",
                theme.product
            ))
        ),
    };
    format!("\n{}\n\n{text}", rule())
}

/// The line between parts.
pub(crate) fn rule() -> String {
    "\u{2500}".repeat(77)
}

/// True if the plan has something to say besides "No changes.": also reads, and drift in a refresh-only plan; or if an apply of that
/// one writes what nothing tells.
pub(crate) fn has_news(plan: &Plan) -> bool {
    match plan.mode {
        ModeOfPlan::RefreshOnly => has_seen(plan) || plan.renews,
        _ => !plan.is_empty() || plan.resources.iter().any(|r| r.change.action() == Action::Read),
    }
}

/// True if a refresh-only plan tells of something.
fn has_seen(plan: &Plan) -> bool {
    !plan.drift.is_empty() || plan.has_new_outputs() || !plan.moved.is_empty()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub(crate) mod tests;
