//! One resource of a plan: its heading, why, and its attributes.

use karmaform_lang::quoted;
use karmaform_model::{
    Action, Address, Catalog, Change, DriftedResource, Key, Mode, ModeOfPlan, Path, PlannedResource, Reason, ResourceEntry, Schema,
};

use super::attributes::{presentable, presentable_before};
use super::style::{Mark, Theme, Tone};
use super::values::Printer;

/// `12 resources`
pub(crate) fn resources(count: usize) -> String {
    if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") }
}

/// The schema of a planned or stored resource, if the registry still has it.
pub(crate) fn schema_of<'a>(registry: &'a Catalog, mode: Mode, resource_type: &str) -> Option<&'a Schema> {
    match mode {
        Mode::Managed => registry.resource(resource_type).map(|e: ResourceEntry<'a>| e.schema()),
        Mode::Data => registry.data_source(resource_type).map(|e| e.schema),
    }
}

/// What the heading says: `will be created`.
pub(crate) fn headline(resource: &PlannedResource, theme: &Theme) -> String {
    match (resource.change.action(), &resource.reason) {
        (Action::NoOp, _) => "stays as it is".to_owned(),
        (Action::Read, _) => "will be read during apply".to_owned(),
        (Action::Create, _) => "will be created".to_owned(),
        (Action::Update, _) if resource.is_import_alone() => "will be imported".to_owned(),
        (Action::Update, _) => "will be updated in-place".to_owned(),
        (Action::Delete, _) => "will be destroyed".to_owned(),
        (Action::Forget, _) => format!("will no longer be managed by {}, but will not be destroyed", theme.product),
        (_, Some(Reason::ReplaceBecauseTainted)) => "is tainted, so must be replaced".to_owned(),
        (_, Some(Reason::ReplaceByRequest)) => "will be replaced, as requested".to_owned(),
        (_, Some(Reason::ReplaceByTriggers(_))) => "will be replaced due to changes in replace_triggered_by".to_owned(),
        _ => "must be replaced".to_owned(),
    }
}

/// What stands in parentheses below the heading.
pub(crate) fn because(resource: &PlannedResource, theme: &Theme) -> Option<String> {
    let address = &resource.address;
    let key = address.key.as_ref().map(key_text).unwrap_or_default();
    Some(match resource.reason.as_ref()? {
        // It is new, whatever triggers a replacement.
        Reason::ReplaceByTriggers(_) if resource.change.action() == Action::Create => return None,
        // As in Terraform: by its name in its module.
        Reason::DeleteBecauseNoResourceConfig => format!("because {} is not in configuration", address.block().outside_of_modules()),
        // As in Terraform: with the keys of all that it is in, whichever of these is not there.
        Reason::DeleteBecauseNoModule(_) => format!("because {} is not in configuration", Address::of_module(address.module.clone())),
        Reason::DeleteBecauseNoMoveTarget(was) => format!("because {was} was moved to {address}, which is not in configuration"),
        Reason::DeleteBecauseCountIndex => format!("because index {key} is out of range for count"),
        Reason::DeleteBecauseEachKey => format!("because key {key} is not in for_each map"),
        Reason::DeleteBecauseWrongRepetition => match address.key {
            Some(Key::Index(_)) => "because resource does not use count".to_owned(),
            Some(Key::Name(_)) => "because resource does not use for_each".to_owned(),
            None => "because resource uses count or for_each".to_owned(),
        },
        Reason::DeleteBecauseNotInComposite => {
            format!("because {} does not need it any more", address.whole())
        }
        Reason::CreateBecauseMissing => format!("because it was deleted outside of {}", theme.product),
        Reason::FinishEarlierRun => "because an earlier run started this and did not finish".to_owned(),
        Reason::ReadBecauseConfigUnknown => "config refers to values not yet known".to_owned(),
        Reason::ReadBecauseDependencyPending => "depends on a resource or a module with changes pending".to_owned(),
        Reason::ReadBecauseCheckNested => "config will be reloaded to verify a check block".to_owned(),
        Reason::ReplaceByTriggers(trigger) => format!("because {trigger} changes"),
        Reason::ReplaceByRequest | Reason::ReplaceBecauseCannotUpdate(_) | Reason::ReplaceBecauseTainted => return None,
    })
}

/// True if a `removed` block lets it go: whatever else is only forgotten has another reason, goes with its composite, or is of a type of which
/// nothing is left to be destroyed.
pub(crate) fn is_let_go(resource: &PlannedResource, mode: ModeOfPlan) -> bool {
    let is_forgotten = resource.change.action() == Action::Forget && resource.reason.is_none();
    is_forgotten && mode == ModeOfPlan::Normal && !resource.address.is_child()
}

/// A key as the data has it: in an address `${` would be doubled.
fn key_text(key: &Key) -> String {
    match key {
        Key::Name(name) => format!("[{}]", quoted(name)),
        Key::Index(_) => key.to_string(),
    }
}

/// The heading of what is as it was, and has another address.
fn moved(was: &Address, now: &Address, theme: &Theme) -> String {
    let [was, now] = [format!("# {was}"), now.to_string()].map(|text| theme.strong(Tone::Plain, &text));
    format!("  {was} has moved to {now}\n")
}

/// The line of what is not as it was, and has another address.
fn moved_from(was: &Address, theme: &Theme) -> String {
    format!("  {}\n", theme.paint(Tone::Faint, &format!("# (moved from {was})")))
}

/// The heading lines of a resource; `was`: where it was before, if it moved; `mode`: what the plan is for.
pub(crate) fn heading(resource: &PlannedResource, was: Option<&Address>, mode: ModeOfPlan, theme: &Theme) -> String {
    if let (Some(was), Action::NoOp) = (was, resource.change.action()) {
        return moved(was, &resource.address, theme);
    }
    let tone = match resource.change.action() {
        Action::Delete | Action::DestroyThenCreate | Action::CreateThenDestroy => Tone::Remove,
        _ => Tone::Plain,
    };
    let which = resource.deposed.as_ref().map(|key| format!(" (deposed object {key})")).unwrap_or_default();
    let mut out = format!(
        "  {} {}\n",
        theme.strong(Tone::Plain, &format!("# {}{which}", resource.address)),
        match tone {
            Tone::Remove => headline(resource, theme)
                .replace("destroyed", &theme.strong(Tone::Remove, "destroyed"))
                .replace("replaced", &theme.strong(Tone::Remove, "replaced")),
            _ => headline(resource, theme),
        }
    );
    if let Some(why) = because(resource, theme) {
        out.push_str(&format!("  {}\n", theme.paint(Tone::Faint, &format!("# ({why})"))));
    }
    if resource.deposed.is_some() {
        out.push_str(&format!("  {}\n", theme.paint(Tone::Faint, "# (left over from a partially-failed replacement of this instance)")));
    }
    if is_let_go(resource, mode) {
        out.push_str(&format!("  {}\n", theme.paint(Tone::Faint, "# (destroy = false is set in the configuration)")));
    }
    if let Some(id) = resource.importing.as_ref().filter(|_| !resource.is_import_alone()) {
        out.push_str(&format!("  {}\n", theme.paint(Tone::Faint, &format!("# (imported from {id:?})"))));
        if matches!(resource.change, Change::Replace { .. }) {
            out.push_str(&format!("  {}\n", theme.paint(Tone::Change, "# Warning: this will destroy the imported resource")));
        }
    }
    // As in Terraform: where all goes, nobody asks where it was.
    if let Some(was) = was.filter(|_| mode != ModeOfPlan::Destroy) {
        out.push_str(&moved_from(was, theme));
    }
    for impact in &resource.impact {
        out.push_str(&format!("  {}\n", theme.paint(Tone::Change, &format!("# impact: {impact}"))));
    }
    out
}

/// The resource from its symbol to its closing brace.
pub(crate) fn body(resource: &PlannedResource, registry: &Catalog, theme: &Theme) -> String {
    let schema = schema_of(registry, resource.address.mode, &resource.resource_type);
    let ready = |object| presentable(object, schema, &resource.secret_paths);
    let old = |object| presentable_before(object, schema, resource);
    let mut printer = Printer::default();
    let mark = if resource.is_import_alone() { Mark::None } else { Mark::of(resource.change.action()) };
    printer.line(4, mark, format!("{} {{", title(&resource.address, &resource.resource_type)));
    match &resource.change {
        Change::Create { after } => printer.one_sided(8, Mark::Add, schema, &ready(after)),
        Change::Read { after } => printer.one_sided(8, Mark::Add, schema, &ready(after)),
        Change::Delete { before } => printer.one_sided(8, Mark::Remove, schema, &ready(before)),
        Change::Update { before, after } => printer.compared(8, schema, &old(before), &ready(after), &[]),
        Change::Replace { before, after, because, .. } => printer.compared(8, schema, &old(before), &ready(after), because),
        // Of a composite its arguments say which one it is.
        Change::Forget { before } if resource.provider.is_none() => printer.one_sided(8, Mark::None, schema, &ready(before)),
        Change::NoOp { object: side } | Change::Forget { before: side } => printer.compared(8, schema, &ready(side), &ready(side), &[]),
    }
    printer.line(4, Mark::None, "}");
    printer.finish(theme)
}

/// A drifted resource, heading and attributes; `was`: where it was before, if it moved.
pub(crate) fn drifted(
    resource: &DriftedResource,
    was: Option<Address>,
    secret_paths: &[Path],
    registry: &Catalog,
    theme: &Theme,
) -> String {
    let body = drifted_body(resource, secret_paths, registry, theme);
    if let Some(was) = was.as_ref().filter(|_| resource.is_move_alone()) {
        return moved(was, &resource.address, theme) + &body;
    }
    let word = if resource.after.is_some() { "has changed" } else { "has been deleted" };
    let from = was.map(|was| moved_from(&was, theme)).unwrap_or_default();
    format!("  {} {word}\n{from}{body}", theme.strong(Tone::Plain, &format!("# {}", resource.address)))
}

/// A drifted resource from its symbol to its closing brace.
pub(crate) fn drifted_body(resource: &DriftedResource, secret_paths: &[Path], registry: &Catalog, theme: &Theme) -> String {
    let schema = schema_of(registry, resource.address.mode, &resource.resource_type);
    let ready = |object| presentable(object, schema, secret_paths);
    let mut printer = Printer::default();
    let title = title(&resource.address, &resource.resource_type);
    match &resource.after {
        Some(after) => {
            let mark = if resource.is_move_alone() { Mark::None } else { Mark::Change };
            printer.line(4, mark, format!("{title} {{"));
            printer.compared(8, schema, &ready(&resource.before), &ready(after), &[]);
        }
        None => {
            printer.line(4, Mark::Remove, format!("{title} {{"));
            // Which thing it was is enough; it is gone.
            let identity = schema.map(|s| s.identity(&resource.before)).unwrap_or_default();
            let mut shown: karmaform_model::Object = identity;
            shown.extend(resource.before.get("id").map(|id| ("id".to_owned(), id.clone())));
            let hidden = resource.before.iter().filter(|(n, v)| !v.is_null() && !shown.contains_key(n)).count();
            printer.one_sided(8, Mark::Remove, schema, &ready(&shown));
            printer.hidden(8, hidden, "attribute");
        }
    }
    printer.line(4, Mark::None, "}");
    printer.finish(theme)
}

/// `resource "ssh_file" "motd"`; a child, which nobody wrote as a block, by its type and path.
pub(crate) fn title(address: &Address, resource_type: &str) -> String {
    if address.is_child() {
        return format!("{resource_type} {}", path_text(address));
    }
    let word = if address.mode == Mode::Data { "data" } else { "resource" };
    format!("{word} \"{resource_type}\" \"{}\"", address.name)
}

/// The path of a child below its composite: `member["a"]/unit`.
pub(crate) fn path_text(address: &Address) -> String {
    address.child.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use karmaform_model::Object;

    use super::*;
    use crate::ui::plan::tests::planned;

    #[test]
    fn why_something_goes() {
        let check = |address: &str, reason: Reason, expected: &str| {
            let resource = planned(address, Change::Delete { before: Object::new() });
            assert_eq!(because(&PlannedResource { reason: Some(reason), ..resource }, &Theme::plain()).as_deref(), Some(expected));
        };
        check("t.a[1]", Reason::DeleteBecauseCountIndex, "because index [1] is out of range for count");
        check("t.a[\"$${z}\"]", Reason::DeleteBecauseEachKey, "because key [\"${z}\"] is not in for_each map");
        check("module.m[\"k\"].t.a[0]", Reason::DeleteBecauseNoResourceConfig, "because t.a is not in configuration");
    }
}
