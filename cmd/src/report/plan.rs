//! A plan as a page, and as Markdown for a pull request.

use std::collections::BTreeMap;

use karmaform_lang::{Config, Sources};
use karmaform_model::{Action, Address, Catalog, ModeOfPlan, Plan, PlannedResource, Snapshot};

use super::{Format, Wanted, wanted};
use crate::app::{App, Stop};
use crate::page::{Entry, Group, Page, THEME};
use crate::ui::deferred::{name, open, reason};
use crate::ui::diagnostics::warnings_text;
use crate::ui::json::{line, timestamp};
use crate::ui::plan::{PlanOptions, outputs_text, plan_text, verdict};
use crate::ui::resource::{because, body, drifted_body, headline};
use crate::ui::steps::ordered;
use crate::ui::style::{Theme, Tone};

/// `-report`, for a plan.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PlanReports {
    /// Write the plan to a file: human, json, markdown or html. May be repeated
    #[arg(long, value_name = "FORMAT=FILE", action = clap::ArgAction::Append,
          value_parser = wanted(&[Format::Human, Format::Json, Format::Markdown, Format::Html]))]
    report: Vec<Wanted>,
}

impl PlanReports {
    /// True if there are some.
    pub(crate) fn are_wanted(&self) -> bool {
        !self.report.is_empty()
    }

    /// Takes older ones away, before anything can go wrong.
    ///
    /// # Errors
    /// If one can't be removed.
    pub(crate) fn make_room(&self, app: &App) -> Result<(), Stop> {
        super::make_room(app, &self.report)
    }

    /// Writes them. `prior`: the state that the plan was made from.
    ///
    /// # Errors
    /// If a file can't be written.
    pub(crate) fn write(&self, app: &App, plan: &Plan, config: &Config, prior: Option<&Snapshot>) -> Result<(), Stop> {
        let registry = app.wiring.registry.catalog();
        super::write(app, &self.report, |format| match format {
            Format::Json => line(&crate::ui::json::plan::plan(plan, config, prior, registry)),
            Format::Markdown => markdown(plan, registry, &app.sources),
            Format::Html => page(plan, registry, config, &app.sources).html(),
            _ => plan_text(plan, registry, &PLAIN, PlanOptions { verbose: true }),
        })
    }
}

/// GitHub takes comments of 65,536 signs, and some room is for what a pipeline adds.
const MOST: usize = 60_000;
/// Of these, so many for the impact, and for warnings.
const PART: usize = 12_000;
/// Text that is shown outside of what is folded.
const PLAIN: Theme = Theme { color: false, width: None, product: "karmaform" };

/// The groups of a plan's page, what can hurt first.
const GROUPS: [Group; 10] = [
    Group { word: "destroy", meaning: "will be destroyed", tone: Tone::Remove },
    Group { word: "replace", meaning: "must be made anew", tone: Tone::Remove },
    Group { word: "update", meaning: "will be updated in-place", tone: Tone::Change },
    Group { word: "create", meaning: "will be created", tone: Tone::Add },
    Group { word: "read", meaning: "will be read during apply", tone: Tone::Read },
    Group { word: "forget", meaning: "will no longer be managed, and stay", tone: Tone::Change },
    Group { word: "import", meaning: "will be imported", tone: Tone::Change },
    Group { word: "move", meaning: "has another address now", tone: Tone::Change },
    Group { word: "defer", meaning: "is decided by a later plan, or goes on in one", tone: Tone::Read },
    Group { word: "drift", meaning: "changed outside of karmaform", tone: Tone::Change },
];

fn word(resource: &PlannedResource, plan: &Plan) -> Option<&'static str> {
    Some(match resource.change.action() {
        Action::NoOp if plan.moved.contains_key(&resource.address) => "move",
        Action::NoOp => return None,
        Action::Read => "read",
        Action::Create => "create",
        Action::Update if resource.is_import_alone() => "import",
        Action::Update => "update",
        Action::Delete => "destroy",
        Action::DestroyThenCreate | Action::CreateThenDestroy => "replace",
        Action::Forget => "forget",
    })
}

/// The page.
fn page(plan: &Plan, registry: &Catalog, config: &Config, sources: &Sources) -> Page {
    let mut told: Vec<(&'static str, &Address, Entry)> = Vec::new();
    for resource in plan.listed() {
        let Some(group) = word(resource, plan) else { continue };
        told.push((group, &resource.address, entry(group, resource, plan, registry)));
    }
    let open = open(plan);
    for deferred in &plan.deferred {
        let (name, says) = (name(deferred), reason(deferred, &open));
        told.push(("defer", &deferred.address, Entry { group: "defer", name, says, impact: Vec::new(), place: None, text: String::new() }));
    }
    let secret_paths: BTreeMap<&Address, _> = plan.resources.iter().map(|r| (&r.address, r.secret_paths.as_slice())).collect();
    // What only has another address is in a group of its own.
    for resource in plan.listed_drift().into_iter().filter(|d| !d.is_move_alone()) {
        let says = if resource.after.is_some() { "has changed" } else { "has been deleted" };
        let text = drifted_body(resource, secret_paths.get(&resource.address).copied().unwrap_or_default(), registry, &THEME);
        let entry =
            Entry { group: "drift", name: resource.address.to_string(), says: says.to_owned(), impact: Vec::new(), place: None, text };
        told.push(("drift", &resource.address, entry));
    }
    told.sort_by_key(|(group, _, _)| GROUPS.iter().position(|g| g.word == *group));
    let mut marks = BTreeMap::new();
    for (index, (group, address, _)) in told.iter().enumerate() {
        let tone = GROUPS.iter().find(|g| g.word == *group).map_or(Tone::Plain, |g| g.tone);
        marks.entry(*address).or_insert_with(|| (tone, Page::link(index)));
    }
    let things = plan.resources.iter().filter(|r| r.deposed.is_none());
    let picture = super::picture(things.map(|r| (&r.address, r.dependencies.as_slice())), &marks, &super::reads(config));
    let rest = plan.resources.iter().filter(|r| r.change.is_no_op() && !marks.contains_key(&r.address));
    let rest = rest.map(|r| r.address.to_string()).collect();
    Page {
        title: verdict(plan),
        about: about(plan),
        tone: Some(if told.is_empty() { Tone::Add } else { Tone::Change }),
        groups: GROUPS.to_vec(),
        picture,
        drawing: None,
        texts: texts(plan, sources),
        rest,
        entries: told.into_iter().map(|(_, _, entry)| entry).collect(),
    }
}

fn about(plan: &Plan) -> String {
    let mode = match plan.mode {
        ModeOfPlan::Normal => "Plan",
        ModeOfPlan::Destroy => "Plan to destroy everything",
        ModeOfPlan::RefreshOnly => "Plan to take what is seen into the state",
    };
    let part = if plan.is_of_a_part() { ", for a part only" } else { "" };
    let whole = if plan.errored { ", not whole since errors were met" } else { "" };
    format!("{mode}{part}{whole}, made {} by karmaform {}", timestamp(plan.created), plan.tool_version)
}

fn entry(group: &'static str, resource: &PlannedResource, plan: &Plan, registry: &Catalog) -> Entry {
    let was = plan.moved.get(&resource.address);
    let mut says = match was {
        Some(was) if resource.change.is_no_op() => format!("was {was}"),
        _ => headline(resource, &THEME),
    };
    if let (Some(was), false) = (was, resource.change.is_no_op()) {
        says.push_str(&format!(", moved from {was}"));
    }
    if let Some(why) = because(resource, &THEME) {
        says.push_str(&format!(", {why}"));
    }
    let name = match &resource.deposed {
        Some(key) => format!("{} (deposed object {key})", resource.address),
        None => resource.address.to_string(),
    };
    Entry { group, name, says, impact: resource.impact.clone(), place: None, text: body(resource, registry, &THEME) }
}

/// What is not about one resource.
fn texts(plan: &Plan, sources: &Sources) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (composite, lines) in &plan.impact {
        let lines: Vec<String> = lines.iter().map(|line| THEME.paint(Tone::Change, line)).collect();
        texts.push((format!("Impact on {composite}"), lines.join("\n")));
    }
    for composite in plan.resources.iter().filter(|r| r.provider.is_none()).map(|r| &r.address) {
        let steps = ordered(plan, composite);
        if !steps.is_empty() {
            texts.push((format!("Steps of {composite} in order"), steps.join("\n")));
        }
    }
    if plan.told_outputs().next().is_some() {
        let text = outputs_text(plan, &THEME);
        texts.push(("Changes to outputs".to_owned(), text.lines().skip(2).collect::<Vec<_>>().join("\n")));
    }
    let warnings = warnings_text(plan.warnings.iter(), sources, &THEME, false);
    if !warnings.is_empty() {
        texts.push(("Warnings".to_owned(), warnings.trim().to_owned()));
    }
    texts
}

/// The same in Markdown: what it comes to in the open, all else folded, cut where a comment would be too long.
fn markdown(plan: &Plan, registry: &Catalog, sources: &Sources) -> String {
    let mut out = format!("## {}\n\n{}.\n", verdict(plan), about(plan));
    let count = |word_of_group: &str| match word_of_group {
        "defer" => plan.deferred.len(),
        other => plan.resources.iter().filter(|r| word(r, plan) == Some(other)).count(),
    };
    let counts: Vec<(usize, &Group)> = GROUPS.iter().map(|g| (count(g.word), g)).collect();
    let counts: Vec<_> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
    if !counts.is_empty() {
        out.push_str("\n| resources | |\n|---|---|\n");
        counts.iter().for_each(|(count, group)| out.push_str(&format!("| {count} | {} |\n", group.meaning)));
    }
    let impact: Vec<&String> = plan.impact.values().flatten().chain(plan.resources.iter().flat_map(|r| &r.impact)).collect();
    if !impact.is_empty() {
        out.push_str(&format!("\n### Impact\n\n{}", fenced(&cut(impact.into_iter().map(String::as_str), PART))));
    }
    let warnings = warnings_text(plan.warnings.iter(), sources, &PLAIN, false);
    if !warnings.is_empty() {
        out.push_str(&format!("\n### Warnings\n\n{}", fenced(&cut(warnings.trim().lines(), PART))));
    }
    let text = plan_text(plan, registry, &PLAIN, PlanOptions { verbose: true });
    let room = MOST.saturating_sub(out.len());
    let shown = cut(text.trim().lines(), room);
    out.push_str(&format!("\n<details><summary>Show the plan</summary>\n\n{}\n</details>\n", fenced(&shown)));
    out
}

/// As many lines as fit into so many bytes.
fn cut<'a>(lines: impl Iterator<Item = &'a str>, room: usize) -> String {
    let mut shown = String::new();
    for line in lines {
        if shown.len() + line.len() > room {
            shown.push_str("... (the rest is too long for a comment)\n");
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// A block of code that nothing in the text can end.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
