//! A composite of a plan with what it expands into: the record, its impact, its parts, and the steps in their order.

use karmaform_model::{Action, Address, Attribute, Catalog, Change, Plan, PlannedResource};

use super::attributes::{connection_of, presentable};
use super::resource::{body, heading, schema_of};
use super::steps::ordered;
use super::style::{Mark, Theme, Tone, fill};

/// The composite's own record (if it is in the plan) and its children, changed or not.
pub(crate) struct Group<'a> {
    /// Its address.
    pub(crate) address: Address,
    /// Its record.
    pub(crate) record: Option<&'a PlannedResource>,
    /// Its children.
    pub(crate) children: Vec<&'a PlannedResource>,
}

impl Group<'_> {
    /// True if something of it is to be shown.
    pub(crate) fn is_news(&self, plan: &Plan) -> bool {
        plan.moved.contains_key(&self.address) || self.record.iter().chain(&self.children).any(|r| !r.change.is_no_op())
    }
}

/// Draws one composite. With `verbose` every part is shown in full.
pub(crate) fn group(group: &Group<'_>, plan: &Plan, registry: &Catalog, theme: &Theme, verbose: bool) -> String {
    let changed: Vec<_> = group.children.iter().filter(|r| !r.change.is_no_op()).collect();
    let mut impact: Vec<&String> = plan.impact.get(&group.address).into_iter().flatten().collect();
    let was = plan.moved.get(&group.address);
    let mut out = match group.record.filter(|r| !r.change.is_no_op() || was.is_some() && changed.is_empty()) {
        Some(record) => {
            impact.retain(|line| !record.impact.contains(line));
            heading(record, was, plan.mode, theme)
        }
        None => {
            let counts = format!("{} of its {} parts change", changed.len(), group.children.len());
            let moved = was.map(|was| format!("  {}\n", theme.paint(Tone::Faint, &format!("# (moved from {was})"))));
            format!("  {} {counts}\n{}", theme.strong(Tone::Plain, &format!("# {}:", group.address)), moved.unwrap_or_default())
        }
    };
    for line in impact {
        out.push_str(&format!("  {}\n", theme.paint(Tone::Change, &format!("# impact: {line}"))));
    }
    if let Some(record) = group.record.filter(|r| !r.change.is_no_op() || was.is_some() && changed.is_empty()) {
        out.push_str(&if verbose { body(record, registry, theme) } else { body(&argued(record, registry), registry, theme) });
    }
    let (short, full): (Vec<_>, Vec<_>) = changed.into_iter().partition(|r| !verbose && is_short(r));
    if !short.is_empty() {
        out.push_str(&parts(&short, registry, theme, &group.address));
    }
    for resource in full {
        out.push('\n');
        out.push_str(&heading(resource, None, plan.mode, theme));
        out.push_str(&body(resource, registry, theme));
    }
    let steps = ordered(plan, &group.address);
    if !steps.is_empty() {
        out.push_str(&format!("\n    {}\n", theme.paint(Tone::Bold, &format!("Steps of {} in order:", group.address))));
        let width = steps.len().to_string().len() + 1;
        for step in steps {
            let (number, text) = step.split_once(' ').unwrap_or(("", &step));
            let text = match theme.width {
                Some(columns) => fill(text, columns.saturating_sub(width + 7)).replace('\n', &format!("\n{:1$}", "", width + 7)),
                None => text.to_owned(),
            };
            out.push_str(&format!("      {number:>width$} {text}\n"));
        }
    }
    out
}

/// Of a composite that goes, its arguments say which one it is; what it had worked out (certificates, endpoints) is gone with its parts.
fn argued(record: &PlannedResource, registry: &Catalog) -> PlannedResource {
    let mut record = record.clone();
    if let (Change::Delete { before } | Change::Forget { before }, Some(schema)) =
        (&mut record.change, registry.composite(&record.resource_type).map(|c| c.schema()))
    {
        before.retain(|name, _| schema.attribute(name).is_none_or(Attribute::is_configurable));
    }
    record
}

/// What comes or goes as a whole needs no attributes: the composite's arguments say it.
fn is_short(resource: &PlannedResource) -> bool {
    matches!(resource.change.action(), Action::Create | Action::Delete | Action::Read | Action::Forget)
}

fn parts(resources: &[&&PlannedResource], registry: &Catalog, theme: &Theme, composite: &Address) -> String {
    let mut out = format!("\n    {}\n", theme.paint(Tone::Bold, &format!("Parts of {composite}:")));
    let width = resources.iter().map(|r| r.address.to_string().chars().count()).max().unwrap_or(0);
    for resource in resources {
        let address = resource.address.to_string();
        out.push_str(&format!(
            "    {} {address:width$}  {}\n",
            Mark::of(resource.change.action()).painted(theme),
            theme.paint(Tone::Faint, &which(resource, registry))
        ));
        for impact in &resource.impact {
            out.push_str(&format!("          {}\n", theme.paint(Tone::Change, &format!("# impact: {impact}"))));
        }
    }
    out
}

/// Type, identity and place in a few words: `ssh_file /etc/etcd/ca.crt on 10.0.0.11:22`.
fn which(resource: &PlannedResource, registry: &Catalog) -> String {
    let mut text = resource.resource_type.clone();
    let side = resource.change.after().or_else(|| resource.change.before());
    if let (Some(schema), Some(object)) = (schema_of(registry, resource.address.mode, &resource.resource_type), side) {
        let shown = presentable(object, Some(schema), &resource.secret_paths);
        for (_, value) in schema.identity(&shown) {
            if let Some(part) = value.as_str().filter(|_| !value.secret) {
                text.push(' ');
                text.push_str(&super::values::visible(part));
            }
        }
        if let Some(place) = connection_of(schema, object) {
            text.push_str(" on ");
            text.push_str(&place);
        }
    }
    text
}
