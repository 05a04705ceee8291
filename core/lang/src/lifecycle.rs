//! `lifecycle` and `depends_on`.

use karmaform_model::{Diagnostic, Diagnostics, Mode, Path, PathStep, Schema, Span};

use crate::config::{Condition, Config, IgnoreChanges, IgnoredDrift, IgnoredPath, Lifecycle, Reference, Repeat, ResourceBlock};
use crate::decode::{self, Shape, check_shape, literal_bool};
use crate::locals::push_new;
use crate::references::{self, KeyUse, Target};
use crate::statics::{self, Place};
use crate::syntax::{Body, Expr, ExprKind, Step, StepKind};
use crate::{modules, suggest};

/// The conditions that the `lifecycle` blocks of a body hold.
#[derive(Default)]
pub(crate) struct Conditions {
    pub(crate) before: Vec<Condition>,
    pub(crate) after: Vec<Condition>,
}

/// What the `lifecycle` blocks of a body say, without the references in them.
pub(crate) fn read(body: &Body, schema: Option<&Schema>, mode: Mode, diagnostics: &mut Diagnostics) -> (Lifecycle, Conditions) {
    let mut lifecycle = Lifecycle::default();
    let mut conditions = Conditions::default();
    let mut first = None;
    for block in body.blocks("lifecycle") {
        if let Some(first) = first {
            diagnostics.push(decode::second("a \"lifecycle\" block", block.span, first));
            continue;
        }
        first = Some(block.span);
        decode::labels(block, [], diagnostics);
        let managed = ["create_before_destroy", "prevent_destroy", "ignore_changes", "ignore_drift", "replace_triggered_by"];
        let attributes: &[&str] = if mode == Mode::Managed { &managed } else { &[] };
        let shape = Shape { what: "a \"lifecycle\" block", attributes, blocks: &["precondition", "postcondition"] };
        check_shape(&block.body, &shape, diagnostics);
        lifecycle.create_before_destroy = literal_bool(&block.body, "create_before_destroy", diagnostics).unwrap_or_default();
        lifecycle.prevent_destroy = block.body.attribute("prevent_destroy").map(|a| a.expr.clone());
        if let Some(attribute) = block.body.attribute("ignore_changes") {
            lifecycle.ignore_changes = ignore_changes(&attribute.expr, schema, diagnostics);
        }
        if let Some(attribute) = block.body.attribute("ignore_drift") {
            lifecycle.ignore_drift = ignore_drift(&attribute.expr, schema, diagnostics);
        }
        conditions.before.extend(block.body.blocks("precondition").filter_map(|b| decode::condition(b, diagnostics)));
        conditions.after.extend(block.body.blocks("postcondition").filter_map(|b| decode::condition(b, diagnostics)));
    }
    (lifecycle, conditions)
}

fn ignore_changes(expr: &Expr, schema: Option<&Schema>, diagnostics: &mut Diagnostics) -> IgnoreChanges {
    match &expr.kind {
        ExprKind::Name(name) if name == "all" => IgnoreChanges::All,
        ExprKind::Tuple(items) => {
            let paths: Vec<_> = items.iter().filter_map(|item| ignored(item, schema, diagnostics)).collect();
            if paths.is_empty() { IgnoreChanges::None } else { IgnoreChanges::Paths(paths) }
        }
        ExprKind::Wrong => IgnoreChanges::None,
        _ => {
            diagnostics.push(
                Diagnostic::error("Invalid ignore_changes", "It takes a list of attributes, or all.")
                    .with_span(Some(expr.span))
                    .with_hint("Write ignore_changes = [content, mode] or ignore_changes = all."),
            );
            IgnoreChanges::None
        }
    }
}

fn ignore_drift(expr: &Expr, schema: Option<&Schema>, diagnostics: &mut Diagnostics) -> IgnoredDrift {
    match &expr.kind {
        ExprKind::Name(name) if name == "all" => IgnoredDrift::All,
        ExprKind::Tuple(items) => {
            let (mut attributes, mut parts) = (Vec::new(), Vec::new());
            for item in items {
                match &item.kind {
                    ExprKind::Literal(value) if value.as_str().is_some() => parts.extend(value.as_str().map(str::to_owned)),
                    _ => attributes.extend(ignored_path(item, "ignore_drift", schema, diagnostics)),
                }
            }
            IgnoredDrift::These { attributes, parts }
        }
        ExprKind::Wrong => IgnoredDrift::None,
        _ => {
            diagnostics.push(
                Diagnostic::error("Invalid ignore_drift", "It takes a list of attributes, and of parts of a composite in quotes, or all.")
                    .with_span(Some(expr.span))
                    .with_hint("Write ignore_drift = [content], ignore_drift = [\"member[*]/unit\"] or ignore_drift = all."),
            );
            IgnoredDrift::None
        }
    }
}

fn ignored(item: &Expr, schema: Option<&Schema>, diagnostics: &mut Diagnostics) -> Option<IgnoredPath> {
    let path = ignored_path(item, "ignore_changes", schema, diagnostics)?;
    diagnostics.extend(matches!(item.kind, ExprKind::Literal(_)).then(|| in_quotes(item)));
    diagnostics.extend(redundant(item, schema));
    let is_key = |e: &Expr| matches!(&e.kind, ExprKind::Literal(value) if value.as_str().is_some());
    let is_entry = match &item.kind {
        ExprKind::Traversal(_, steps) => matches!(steps.last().map(|s| &s.kind), Some(StepKind::Index(key)) if is_key(key)),
        _ => false,
    };
    Some(IgnoredPath { path, is_entry })
}

/// What is said of an attribute that nobody can set: no configuration ever changes it.
fn redundant(item: &Expr, schema: Option<&Schema>) -> Option<Diagnostic> {
    let name = match &item.kind {
        ExprKind::Name(name) => name,
        ExprKind::Literal(value) => value.as_str()?,
        ExprKind::Traversal(root, _) => match &root.kind {
            ExprKind::Name(name) => name,
            _ => return None,
        },
        _ => return None,
    };
    schema?.attribute(name).filter(|a| !a.is_configurable())?;
    let detail =
        format!("\"{name}\" is a result, given by the provider. The configuration can't change it, so there is nothing to ignore.");
    Some(Diagnostic::warning("Redundant ignore_changes element", detail).with_span(Some(item.span)).with_hint("Remove it."))
}

fn ignored_path(item: &Expr, what: &str, schema: Option<&Schema>, diagnostics: &mut Diagnostics) -> Option<Path> {
    let (root, steps): (&str, &[Step]) = match &item.kind {
        ExprKind::Name(name) => (name, &[]),
        ExprKind::Literal(value) => (value.as_str().unwrap_or_default(), &[]),
        ExprKind::Traversal(root, steps) => match &root.kind {
            ExprKind::Name(name) => (name, steps),
            _ => ("", &[]),
        },
        _ => ("", &[]),
    };
    let mut path = Some(Path::attribute(root));
    for step in steps {
        path = path.zip(path_step(step)).map(|(path, next)| path.then(next));
    }
    let known = |name: &str| schema.is_none_or(|s| s.type_of(name).is_some());
    match path {
        Some(path) if !root.is_empty() && known(root) => Some(path),
        path => {
            let (detail, hint) = if root.is_empty() || path.is_none() {
                ("An attribute of this block must stand here, such as content or tags[\"x\"].".to_owned(), None)
            } else {
                let names = schema.into_iter().flat_map(|s| s.attributes.iter().map(|a| a.name).chain(s.blocks.iter().map(|b| b.name)));
                let all = (root == "*").then(|| format!("For all of them write {what} = all, without brackets."));
                (format!("There is no attribute \"{root}\" in this block."), all.or_else(|| suggest::hint(root, names)))
            };
            let error = Diagnostic::error(format!("Invalid {what}"), detail).with_span(Some(item.span));
            diagnostics.push(match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            });
            None
        }
    }
}

/// A step that is written out.
fn path_step(step: &Step) -> Option<PathStep> {
    match &step.kind {
        StepKind::Attribute(name) => Some(PathStep::Name(name.clone())),
        StepKind::LegacyIndex(i) => usize::try_from(*i).ok().map(PathStep::Index),
        StepKind::Index(Expr { kind: ExprKind::Literal(value), .. }) => match (value.as_str(), value.as_i64()) {
            (Some(name), _) => Some(PathStep::Name(name.to_owned())),
            (None, Some(i)) => usize::try_from(i).ok().map(PathStep::Index),
            _ => None,
        },
        _ => None,
    }
}

/// The references of `depends_on`: whole blocks or instances.
pub(crate) fn depends_on(config: &Config, expr: &Expr, place: Place<'_>, references: &mut Vec<Reference>) -> Diagnostics {
    named_blocks(config, expr, place, "depends_on", |reference| push_new(references, Reference { attribute: None, ..reference }))
}

/// True for `[each.key]` and `[count.index]`.
fn is_own_key(step: &Step) -> bool {
    match &step.kind {
        StepKind::Index(Expr { kind: ExprKind::Traversal(root, steps), .. }) => match (&root.kind, steps.as_slice()) {
            (ExprKind::Name(root), [Step { kind: StepKind::Attribute(name), .. }]) => {
                matches!((root.as_str(), name.as_str()), ("each", "key") | ("count", "index"))
            }
            _ => false,
        },
        _ => false,
    }
}

/// A reference of `replace_triggered_by`.
struct Trigger<'e> {
    /// Where it stands.
    span: Span,
    /// Which instance it means, if it says so.
    key: Option<&'e Step>,
    /// What of the instance it means.
    part: &'e [Step],
}

fn triggers<'e>(config: &Config, block: &'e ResourceBlock) -> impl Iterator<Item = Trigger<'e>> {
    let lists = block.body.blocks("lifecycle").filter_map(|l| l.body.attribute("replace_triggered_by"));
    let items = lists.filter_map(|a| match &a.expr.kind {
        ExprKind::Tuple(items) => Some(items),
        _ => None,
    });
    items.flatten().filter_map(move |item| {
        let ExprKind::Traversal(root, steps) = &item.kind else { return None };
        let ExprKind::Name(name) = &root.kind else { return None };
        let Some(Target::Block { address, key, used }) = references::target(name, steps) else { return None };
        let named = if key == KeyUse::None { used } else { used - 1 };
        // What is in brackets behind the name of a single block is an attribute.
        let is_single = config.blocks.get(&address).is_some_and(|b| matches!(b.repeat, Repeat::None));
        let start = if is_single && key != KeyUse::Splat { named } else { used };
        Some(Trigger { span: item.span, key: steps[named..start].first(), part: &steps[start..] })
    })
}

/// Where references of `replace_triggered_by` stand that mean the instance of the same key.
pub(crate) fn own_keys(config: &Config, block: &ResourceBlock) -> Vec<Span> {
    triggers(config, block).filter(|t| t.key.is_some_and(is_own_key)).map(|t| t.span).collect()
}

/// Where references of `replace_triggered_by` stand, and what of an instance they mean; nothing for a step that is the resource's own key.
pub(crate) fn trigger_parts(config: &Config, block: &ResourceBlock) -> Vec<(Span, Vec<Option<PathStep>>)> {
    let step = |step: &Step| if is_own_key(step) { Some(None) } else { path_step(step).map(Some) };
    triggers(config, block).map(|t| (t.span, t.part.iter().map_while(step).collect())).collect()
}

/// The references of `replace_triggered_by`. What triggers must also come first, so they are references of the block as well.
pub(crate) fn replace_triggered_by(config: &Config, block: &ResourceBlock, place: Place<'_>) -> (Vec<Reference>, Diagnostics) {
    let mut found = Vec::new();
    let mut diagnostics = Diagnostics::new();
    for lifecycle in block.body.blocks("lifecycle") {
        if let Some(attribute) = lifecycle.body.attribute("replace_triggered_by") {
            // Two parts of one attribute are two triggers.
            diagnostics.extend(named_blocks(config, &attribute.expr, place, "replace_triggered_by", |reference| found.push(reference)));
        }
    }
    (found, diagnostics)
}

fn named_blocks(config: &Config, expr: &Expr, place: Place<'_>, what: &str, mut add: impl FnMut(Reference)) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let ExprKind::Tuple(items) = &expr.kind else {
        if !matches!(expr.kind, ExprKind::Wrong) {
            diagnostics.push(
                Diagnostic::error(format!("Invalid {what}"), format!("\"{what}\" takes a list of references."))
                    .with_span(Some(expr.span))
                    .with_hint(format!("Write {what} = [TYPE.NAME].")),
            );
        }
        return diagnostics;
    };
    for item in items {
        let mut found = Vec::new();
        let named = if what == "depends_on" { unquoted(item) } else { None };
        diagnostics.extend(named.as_ref().map(|_| in_quotes(item)));
        let item = named.as_ref().unwrap_or(item);
        let plain = match &item.kind {
            // What a whole module is changed by can't be told.
            ExprKind::Traversal(..) if what != "depends_on" && module_named(item).is_some() => false,
            ExprKind::Traversal(root, _) => {
                matches!(&root.kind, ExprKind::Name(n) if !no_blocks(what).contains(&n.as_str()))
            }
            _ => false,
        };
        if plain {
            let wrong = statics::check(config, item, place, &mut found);
            let is_right = !wrong.has_errors();
            diagnostics.extend(wrong);
            diagnostics.extend(unfit(config, item, what).filter(|_| is_right));
            if let Some(address) = module_named(item)
                && is_right
            {
                found.push(Reference { address, attribute: None, span: item.span });
            }
        } else {
            diagnostics.push(
                Diagnostic::error(
                    format!("Invalid {what}"),
                    if what == "depends_on" {
                        "Only references to resources, data sources and modules may stand here, without quotes."
                    } else {
                        "Only references to resources and data sources may stand here, without quotes."
                    },
                )
                .with_span(Some(item.span))
                .with_hint(format!("Write {what} = [TYPE.NAME].")),
            );
        }
        found.into_iter().for_each(&mut add);
    }
    diagnostics
}

/// What is wrong with a reference to something that is there: it means no whole thing, or only evaluation would tell which one.
fn unfit(config: &Config, item: &Expr, what: &str) -> Option<Diagnostic> {
    let ExprKind::Traversal(root, steps) = &item.kind else { return None };
    let ExprKind::Name(name) = &root.kind else { return None };
    let target = references::target(name, steps)?;
    let (detail, hint) = if what == "depends_on" { part(config, &target, steps)? } else { open_key(&target, steps)? };
    Some(Diagnostic::error(format!("Invalid {what}"), detail).with_span(Some(item.span)).with_hint(hint))
}

/// What is wrong in `depends_on`, which takes blocks, modules and their outputs, variables and locals, and no parts of these; paths mean
/// nothing there, and are taken as in Terraform.
fn part(config: &Config, target: &Target, steps: &[Step]) -> Option<(String, String)> {
    let (whole, key, used) = match target {
        Target::Block { address, key, used } => {
            let is_single = config.blocks.get(address).is_some_and(|b| matches!(b.repeat, Repeat::None));
            // What is in brackets behind the name of a single block is an attribute.
            (address.to_string(), key, if is_single && *key != KeyUse::None { used - 1 } else { *used })
        }
        Target::Module { call, key, used } => (format!("module.{call}"), key, used + 1),
        Target::Variable(name) => (format!("var.{name}"), &KeyUse::None, 1),
        Target::Local(name) => (format!("local.{name}"), &KeyUse::None, 1),
        _ => return None,
    };
    let hint = format!("Write depends_on = [{whole}].");
    if matches!(key, KeyUse::Computed | KeyUse::Splat) {
        return Some(("What stands in brackets in \"depends_on\" must be a number or a text that is written out.".to_owned(), hint));
    }
    (steps.len() > used).then(|| ("Only a whole thing may stand in \"depends_on\", and no part of it.".to_owned(), hint))
}

/// What is wrong in `replace_triggered_by`, which is read before anything but the own key is known.
fn open_key(target: &Target, steps: &[Step]) -> Option<(String, String)> {
    let Target::Block { address, .. } = target else { return None };
    let is_open = |step: &Step| match &step.kind {
        StepKind::AttributeSplat | StepKind::FullSplat => true,
        StepKind::Index(key) => references::literal_key(key).is_none() && !is_own_key(step),
        StepKind::Attribute(_) | StepKind::LegacyIndex(_) => false,
    };
    let detail = "What stands in brackets in \"replace_triggered_by\" must be written out, or be each.key or count.index.";
    steps.iter().any(is_open).then(|| (detail.to_owned(), format!("Write replace_triggered_by = [{address}] for all its instances.")))
}

/// What a text in quotes names, as in Terraform before 0.12.
pub(crate) fn unquoted(item: &Expr) -> Option<Expr> {
    let ExprKind::Literal(value) = &item.kind else { return None };
    let is_name = |name: &str| {
        let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(is_inside)
    };
    let (root, rest) = value.as_str().filter(|text| text.split('.').all(is_name))?.split_once('.')?;
    let root = Expr { kind: ExprKind::Name(root.to_owned()), span: item.span };
    let step = |name: &str| Step { kind: StepKind::Attribute(name.to_owned()), span: item.span };
    Some(Expr { kind: ExprKind::Traversal(Box::new(root), rest.split('.').map(step).collect()), span: item.span })
}

/// The warning that it stands in quotes, where it is taken all the same.
pub(crate) fn in_quotes(item: &Expr) -> Diagnostic {
    Diagnostic::warning("Quoted reference", "What is named here is named without quotes; with them it is taken as well, as in Terraform.")
        .with_span(Some(item.span))
        .with_hint("Remove the quotes.")
}

/// What names no block. What depends on a variable waits for nothing, on a local for what that is made of, as Terraform has it.
fn no_blocks(what: &str) -> &'static [&'static str] {
    if what == "depends_on" { &["each", "count"] } else { &["var", "local", "each", "count", "path"] }
}

/// The module that an expression names.
fn module_named(expr: &Expr) -> Option<karmaform_model::Address> {
    let ExprKind::Traversal(root, steps) = &expr.kind else { return None };
    let ExprKind::Name(name) = &root.kind else { return None };
    match references::target(name, steps)? {
        Target::Module { call, key, .. } => Some(modules::address_of(&call, &key)),
        _ => None,
    }
}
