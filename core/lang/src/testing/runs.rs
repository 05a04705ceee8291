//! Reads `run` blocks.

use std::collections::BTreeSet;

use karmaform_model::{Address, Diagnostic, Diagnostics, Span};

use super::read::values;
use super::{RUN, Run, RunOptions, mocks, overrides};
use crate::config::Config;
use crate::decode::{self, Shape, check_shape, literal_bool, literal_text};
use crate::references::{self, KeyUse, Target, Visit, walk};
use crate::syntax::{Block, Expr, ExprKind, Step, StepKind};
use crate::{lifecycle, suggest};

/// Reads one; `earlier` are the names of those before it.
pub(super) fn read(config: &Config, block: &Block, earlier: &BTreeSet<String>, diagnostics: &mut Diagnostics) -> Option<Run> {
    let [label] = decode::labels(block, ["NAME"], diagnostics)?;
    let name = decode::name(label, diagnostics)?.to_owned();
    let mut body = block.body.clone();
    mocks::take_unsupported(&mut body, "A run", diagnostics, |name| match name {
        "providers" => {
            Some("There are no aliases of providers: hosts and clusters are reached through connections, which are values. Leave it out.")
        }
        "parallel" | "state_key" => Some("Runs go one after the other; each configuration of a file has a state of its own. Leave it out."),
        _ => None,
    });
    let blocks = &["variables", "assert", "module", "plan_options", overrides::RESOURCE, overrides::DATA, overrides::MODULE];
    check_shape(&body, &Shape { what: "a \"run\" block", attributes: &["command", "expect_failures"], blocks }, diagnostics);
    for kind in ["variables", "module", "plan_options"] {
        if let [first, second, ..] = body.blocks(kind).collect::<Vec<_>>().as_slice() {
            diagnostics.push(decode::second(&format!("the block \"{kind}\" of this run"), second.span, first.span));
        }
    }
    let one = |kind: &'static str| body.blocks(kind).next().cloned();
    let mut overridden = Vec::new();
    for block in body.blocks.iter().filter(|b| [overrides::RESOURCE, overrides::DATA, overrides::MODULE].contains(&b.kind.as_str())) {
        overrides::read(config, block, false, &mut overridden, diagnostics);
    }
    let mut wrong = Diagnostics::new();
    let command = body.attribute("command").and_then(|a| keyword(&a.expr, "command", ["plan", "apply"], diagnostics));
    Some(Run {
        is_plan: command == Some("plan"),
        module: one("module").and_then(|b| module(&b, diagnostics)),
        expected: body.attribute("expect_failures").map(|a| expected(&a.expr, diagnostics, &mut wrong)).unwrap_or_default(),
        options: one("plan_options").map(|b| options(&b, diagnostics)).unwrap_or_default(),
        variables: one("variables").map(|b| values(&b, diagnostics)).unwrap_or_default(),
        asserts: body.blocks("assert").filter_map(|b| decode::condition(b, diagnostics)).collect(),
        overrides: overridden,
        span: block.span,
        earlier: earlier.clone(),
        wrong,
        name,
    })
}

/// One of two words, written without quotes.
pub(super) fn keyword<'w>(expr: &Expr, what: &str, words: [&'w str; 2], diagnostics: &mut Diagnostics) -> Option<&'w str> {
    let written = match &expr.bare().kind {
        ExprKind::Name(name) => Some(name.as_str()),
        _ => None,
    };
    let found = words.into_iter().find(|w| Some(*w) == written);
    if found.is_none() && !matches!(expr.kind, ExprKind::Wrong) {
        let error = Diagnostic::error("Unknown word", format!("\"{what}\" must be {} or {}, written without quotes.", words[0], words[1]));
        diagnostics.push(error.with_span(Some(expr.span)).with_hint(format!("Write {what} = {}.", words[0])));
    }
    found
}

fn module(block: &Block, diagnostics: &mut Diagnostics) -> Option<(String, Span)> {
    decode::labels(block, [], diagnostics);
    check_shape(&block.body, &Shape { what: "the \"module\" of a run", attributes: &["source"], blocks: &[] }, diagnostics);
    decode::required(block, "source", diagnostics)?;
    let source = literal_text(&block.body, "source", diagnostics)?;
    let span = block.body.attribute("source").map_or(block.span, |a| a.expr.span);
    if !source.starts_with("./") && !source.starts_with("../") {
        let error = Diagnostic::error("Module from elsewhere", format!("\"{source}\" is no path of a directory."));
        let hint = "Write the path of a directory, from the directory of the configuration, starting with \"./\" or \"../\".";
        diagnostics.push(error.with_span(Some(span)).with_hint(hint));
        return None;
    }
    Some((source, span))
}

fn options(block: &Block, diagnostics: &mut Diagnostics) -> RunOptions {
    decode::labels(block, [], diagnostics);
    let attributes = &["mode", "refresh", "target", "replace"];
    check_shape(&block.body, &Shape { what: "a \"plan_options\" block", attributes, blocks: &[] }, diagnostics);
    let mode = block.body.attribute("mode").and_then(|a| keyword(&a.expr, "mode", ["normal", "refresh-only"], diagnostics));
    let mut list = |name: &str| {
        let attribute = block.body.attribute(name);
        let named = attribute.map(|a| addresses(&a.expr, name, |expr, _| address(expr), diagnostics)).unwrap_or_default();
        let (wrong, fine): (Vec<_>, Vec<_>) = named.into_iter().partition(|(a, _)| a.reserved_word().is_some());
        diagnostics.extend(wrong.into_iter().map(|(address, span)| {
            let error =
                Diagnostic::error("Invalid address", format!("\"{name}\" is a list of resources and modules, and {address} is neither."));
            error.with_span(Some(span)).with_hint("Write TYPE.NAME or module.NAME, without quotes.")
        }));
        fine.into_iter().map(|(address, _)| address).collect::<Vec<_>>()
    };
    let (targets, replace) = (list("target"), list("replace"));
    let refresh = literal_bool(&block.body, "refresh", diagnostics).unwrap_or(true);
    let options = RunOptions { refresh_only: mode == Some("refresh-only"), refresh, targets, replace };
    if options.refresh_only && (!options.refresh || !options.replace.is_empty()) {
        let why = "mode = refresh-only only looks, so it goes with neither refresh = false nor \"replace\".";
        diagnostics.push(Diagnostic::error("Options that don't go together", why).with_span(Some(block.span)));
    }
    options
}

/// What has conditions and stands once.
const WITHOUT_INSTANCES: [&str; 4] = ["var", "output", "check", "policy"];

/// What may fail: all that has conditions, in the root module; of what stands several times one instance, or any. What is named that can't fail is
/// `wrong` with the run.
fn expected(expr: &Expr, diagnostics: &mut Diagnostics, wrong: &mut Diagnostics) -> Vec<(Address, Span)> {
    let named = addresses(expr, "expect_failures", checkable, diagnostics);
    let mut all = Vec::new();
    for (address, span) in named {
        if address.is_module() || !address.module.is_empty() {
            let detail = "What is in a module can't be expected to fail: a run sees it from outside.";
            let hint = "Test the module by itself, with module { source = ... } in a run; or expect what of the root module fails by it.";
            wrong.push(Diagnostic::error("Unexpected reference", detail).with_span(Some(span)).with_hint(hint));
        } else {
            all.push((address, span));
        }
    }
    all
}

/// What of a reference has conditions: `var.x` of `var.x.a`, as what is in a value fails with it.
fn checkable(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Address> {
    let unquoted = lifecycle::unquoted(expr);
    diagnostics.extend(unquoted.as_ref().map(|_| lifecycle::in_quotes(expr)));
    let (address, _) = leading(unquoted.as_ref().unwrap_or(expr))?;
    Some(if WITHOUT_INSTANCES.contains(&address.kind.as_str()) { address.block() } else { address })
}

/// A list of references, each `read` as an address: of a variable it is `var.x`.
fn addresses(
    expr: &Expr,
    what: &str,
    read: fn(&Expr, &mut Diagnostics) -> Option<Address>,
    diagnostics: &mut Diagnostics,
) -> Vec<(Address, Span)> {
    let ExprKind::Tuple(items) = &expr.bare().kind else {
        if !matches!(expr.kind, ExprKind::Wrong) {
            let error = Diagnostic::error("List needed", format!("\"{what}\" is a list of references."));
            diagnostics.push(error.with_span(Some(expr.span)).with_hint(format!("Write {what} = [TYPE.NAME].")));
        }
        return Vec::new();
    };
    let mut all = Vec::new();
    for item in items {
        match read(item, diagnostics) {
            Some(address) => all.push((address, item.span)),
            None => {
                let error = Diagnostic::error(
                    "Reference needed",
                    format!("\"{what}\" is a list of references to what stands in the configuration."),
                );
                let hint = "Write TYPE.NAME, data.TYPE.NAME, var.NAME, output.NAME, check.NAME or policy.NAME, without quotes.";
                diagnostics.push(error.with_span(Some(item.span)).with_hint(hint));
            }
        }
    }
    all
}

/// The address that a reference is.
pub(super) fn address(expr: &Expr) -> Option<Address> {
    leading(expr).and_then(|(address, is_all)| is_all.then_some(address))
}

/// The address that a reference begins with, and whether that is all of it.
fn leading(expr: &Expr) -> Option<(Address, bool)> {
    let ExprKind::Traversal(root, steps) = &expr.bare().kind else { return None };
    let ExprKind::Name(name) = &root.kind else { return None };
    let is_literal = |step: &Step| match &step.kind {
        StepKind::Attribute(_) | StepKind::LegacyIndex(_) => true,
        StepKind::Index(key) => references::literal_key(key).is_some(),
        StepKind::AttributeSplat | StepKind::FullSplat => false,
    };
    if !steps.iter().all(is_literal) {
        return None;
    }
    let keyed = |key: KeyUse| match key {
        KeyUse::None => Some(None),
        KeyUse::Literal(key) => Some(Some(key)),
        KeyUse::Computed | KeyUse::Splat => None,
    };
    match references::target(name, steps)? {
        Target::Variable(variable) => Some((Address::managed("var", &variable), steps.len() == 1)),
        Target::Block { address, key, used } => Some((address.with_key(keyed(key)?), used == steps.len())),
        // As an address is written, so it is read: module.a["x"].T.N
        Target::Module { .. } => Some((written(name, steps)?.parse().ok()?, true)),
        _ => None,
    }
}

/// A reference as a text, if all its keys are literal.
fn written(name: &str, steps: &[Step]) -> Option<String> {
    let mut text = name.to_owned();
    for step in steps {
        match &step.kind {
            StepKind::Attribute(name) => text.push_str(&format!(".{name}")),
            StepKind::Index(expr) => match references::literal_key(expr)? {
                karmaform_model::Key::Index(i) => text.push_str(&format!("[{i}]")),
                karmaform_model::Key::Name(n) => text.push_str(&format!("[{n:?}]")),
            },
            _ => return None,
        }
    }
    Some(text)
}

/// Only what earlier runs gave is there.
pub(super) fn check_runs(expr: &Expr, run: &Run, diagnostics: &mut Diagnostics) {
    let (own, earlier) = (run.name.as_str(), &run.earlier);
    walk(expr, &mut |visit| {
        let Visit::Reference { name: RUN, span, steps } = visit else { return };
        let Some(StepKind::Attribute(name)) = steps.first().map(|s| &s.kind) else { return };
        if earlier.contains(name) {
            return;
        }
        let why = if name == own { "is this run itself" } else { "is no run above this one" };
        let error = Diagnostic::error("Unknown run", format!("run.{name} {why}, so it has given nothing yet.")).with_span(Some(span));
        let hint = match suggest::hint(name, earlier.iter().map(String::as_str)) {
            Some(hint) => hint,
            None if name == own => "Refer to its outputs by output.NAME.".to_owned(),
            None if earlier.is_empty() => "There is none above it.".to_owned(),
            None => format!("There are {}.", suggest::listed(earlier.iter().map(String::as_str))),
        };
        diagnostics.push(error.with_hint(hint));
    });
}
