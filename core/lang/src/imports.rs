//! `import` blocks, and imports by hand: what is there already and becomes a resource's. Knows no state: what is in it already is imported
//! by then.

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Key, Kind, Mode, ResourceEntry, Span, Value, convert};

use crate::config::{Config, Repetition};
use crate::decode::{self, Shape, check_shape};
use crate::eval::{Errors, unknown};
use crate::evaluator::{Evaluator, NothingKnown};
use crate::expand::for_each;
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::{Block, Expr, ExprKind, Step, StepKind};

/// What one instance takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// What names the thing, in the words of its type.
    pub id: String,
    /// Where its id stands; of an import by hand, the block of the resource.
    pub span: Span,
    /// No block says so, but somebody who asked for it.
    pub by_hand: bool,
}

impl Config {
    /// Imports one thing by hand, and nothing else.
    ///
    /// # Errors
    /// If there is no such instance, or it is of a type that takes nothing over.
    pub fn import_by_hand(&mut self, address: &Address, id: &str) -> Result<(), Diagnostic> {
        if id.is_empty() {
            return Err(Diagnostic::error("Invalid id", "The id is what names the thing, as text that is not empty.").at(address));
        }
        let nowhere = Span { file: karmaform_model::FileId(u32::MAX), start: 0, end: 0 };
        let span = self.block(address).map(|b| b.span);
        let place = span.unwrap_or(nowhere);
        fits(self, address.clone(), place, true).map_err(|e| Diagnostic { span, ..e })?;
        self.imports = [(address.clone(), Import { id: id.to_owned(), span: place, by_hand: true })].into();
        Ok(())
    }
}

const KNOWN: &str = "Make it of variables, locals and functions.";

/// All `import` blocks, by the instance that takes the thing over. Instances are known by now.
pub(crate) fn read(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<Address, Import> {
    let mut all = BTreeMap::new();
    let evaluator = Evaluator::new(config, &NothingKnown);
    for block in blocks {
        decode::labels(block, [], diagnostics);
        let shape = Shape { what: "an \"import\" block", attributes: &["to", "id", "for_each"], blocks: &[] };
        check_shape(&block.body, &shape, diagnostics);
        let absent: Vec<_> = ["to", "id"].into_iter().filter(|n| block.body.attribute(n).is_none()).collect();
        decode::missing(&absent, "an \"import\" block", block.span, diagnostics);
        let of = |name: &str| block.body.attribute(name).map(|a| &a.expr);
        let (Some(to), Some(id)) = (of("to"), of("id")) else { continue };
        let each = of("for_each");
        let place = Place {
            each: each.is_some(),
            no_blocks: Some("What is imported has to be known before anything is looked at."),
            ..Place::default()
        };
        let mut found = Diagnostics::new();
        for expr in std::iter::once(id).chain(keys(to)) {
            found.extend(statics::check(config, expr, place, &mut Vec::new()));
        }
        if let Some(each) = each {
            found.extend(statics::check(config, each, Place { each: false, ..place }, &mut Vec::new()));
        }
        let failed = found.has_errors();
        diagnostics.extend(found);
        if failed {
            continue;
        }
        let mut errors = Errors::default();
        let sites = match each {
            None => vec![Site::default()],
            Some(each) if config.any_values => {
                evaluator.eval(each, &Scope::new(&Site::default()), &mut errors);
                vec![Site { each: Some((unknown(), unknown())), ..Site::default() }]
            }
            Some(each) => sites(&evaluator, each, &mut errors),
        };
        for site in &sites {
            let scope = Scope::new(site);
            let address = address(&evaluator, to, &scope, &mut errors).and_then(|a| fits(config, a, to.span, false).map_err(Some));
            let id = self::id(&evaluator, id, &scope, &mut errors);
            match (address, id) {
                (Ok(address), Ok(import)) => {
                    if let Some(first) = all.insert(address.clone(), import.clone()) {
                        diagnostics.push(decode::second(&format!("the import of {address}"), import.span, first.span));
                    }
                }
                (address, id) => diagnostics.extend(address.err().into_iter().chain(id.err()).flatten()),
            }
        }
        diagnostics.extend(evaluator.finish(errors));
    }
    all
}

/// One for each element of `for_each`. Here it may be a list or a set of anything: addresses have the keys that `to` says.
fn sites(evaluator: &Evaluator<'_>, each: &Expr, errors: &mut Errors) -> Vec<Site> {
    let before = errors.list.len();
    let value = evaluator.eval(each, &Scope::new(&Site::default()), errors);
    if errors.list.len() > before {
        return Vec::new();
    }
    let elements: Vec<(Value, Value)> = match &value.kind {
        Kind::List(_, items) | Kind::Tuple(items) if !value.marks().any() => {
            items.iter().enumerate().map(|(i, item)| (i.into(), item.clone())).collect()
        }
        Kind::Set(_, items) if !value.marks().any() && value.is_wholly_known() => {
            items.iter().map(|item| (item.clone(), item.clone())).collect()
        }
        _ => match for_each(evaluator, each, 0, errors) {
            Some(Repetition::ForEach(entries)) => entries.into_iter().map(|(key, item)| (key.into(), item)).collect(),
            _ => Vec::new(),
        },
    };
    elements.into_iter().map(|element| Site { each: Some(element), ..Site::default() }).collect()
}

/// The expressions in brackets of an address.
fn keys(to: &Expr) -> impl Iterator<Item = &Expr> {
    let steps = match &to.bare().kind {
        ExprKind::Traversal(_, steps) => steps.as_slice(),
        _ => &[],
    };
    steps.iter().filter_map(|step| match &step.kind {
        StepKind::Index(expr) => Some(expr),
        _ => None,
    })
}

/// The instance that takes something over; an error that was reported already is none.
fn address(evaluator: &Evaluator<'_>, to: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> Result<Address, Option<Diagnostic>> {
    let wrong = || {
        let detail = "\"to\" takes the address of an instance of a resource, without quotes.";
        let error = Diagnostic::error("Invalid to", detail).with_span(Some(to.span));
        Some(error.with_hint("Write to = TYPE.NAME, or to = TYPE.NAME[each.key] with for_each."))
    };
    let (name, steps) = match &to.bare().kind {
        ExprKind::Wrong => return Err(None),
        ExprKind::Traversal(root, steps) => match &root.kind {
            ExprKind::Name(name) => (name, steps),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let mut text = name.clone();
    for step in steps {
        text += &written(evaluator, step, scope, errors)?.ok_or_else(wrong)?;
    }
    text.parse::<Address>().ok().filter(|a| !a.is_module()).ok_or_else(wrong)
}

/// What stands in the brackets of an address.
const KEY: &str = "key";

/// A step as addresses have it; nothing for one that can't be.
fn written(evaluator: &Evaluator<'_>, step: &Step, scope: &Scope<'_>, errors: &mut Errors) -> Result<Option<String>, Option<Diagnostic>> {
    let expr = match &step.kind {
        StepKind::Attribute(name) => return Ok(Some(format!(".{name}"))),
        StepKind::LegacyIndex(index) => return Ok(Some(format!("[{index}]"))),
        StepKind::Index(expr) => expr,
        StepKind::AttributeSplat | StepKind::FullSplat => return Ok(None),
    };
    let value = known(evaluator, expr, scope, errors, KEY)?;
    let index = value.as_i64().and_then(|i| u64::try_from(i).ok());
    let key = value.as_str().map(|text| Key::Name(text.to_owned())).or_else(|| index.map(Key::Index));
    Ok(key.map(|key| key.to_string()))
}

fn id(evaluator: &Evaluator<'_>, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> Result<Import, Option<Diagnostic>> {
    let value = known(evaluator, expr, scope, errors, "id")?;
    let text = convert(&value, &karmaform_model::Type::String).ok().and_then(|v| v.as_str().map(str::to_owned)).filter(|t| !t.is_empty());
    let wrong = || Diagnostic::error("Invalid id", "\"id\" is what names the thing, as text that is not empty.").with_span(Some(expr.span));
    text.map(|id| Import { id, span: expr.span, by_hand: false }).ok_or_else(|| Some(wrong()))
}

/// A value that may be shown and is there before anything is looked at.
fn known(evaluator: &Evaluator<'_>, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors, what: &str) -> Result<Value, Option<Diagnostic>> {
    let before = errors.list.len();
    let value = evaluator.eval(expr, scope, errors);
    if errors.list.len() > before {
        return Err(None);
    }
    let error = |detail: String| Diagnostic::error(format!("Invalid {what}"), detail).with_span(Some(expr.span));
    if value.contains_secret() {
        let detail = format!("A secret would show: the {what} of what is imported is printed.");
        return Err(Some(error(detail).with_hint("Use nonsensitive() if it is harmless.")));
    }
    // An id may be: the thing is known by it from then on, as in Terraform.
    if what == KEY && value.contains_ephemeral() {
        return Err(Some(crate::ephemeral::refused("The key of an instance", expr.span)));
    }
    if value.is_wholly_known() {
        return Ok(value);
    }
    let detail = format!("The {what} of what is imported has to be known before anything is looked at.");
    Err((!evaluator.config.any_values).then(|| error(detail).with_hint(KNOWN)))
}

/// Whether there is such an instance, of a type that can take something over. `by_hand`: no block says so.
fn fits(config: &Config, address: Address, span: Span, by_hand: bool) -> Result<Address, Diagnostic> {
    let at = address.clone();
    let error = |summary: &str, detail: String| Diagnostic::error(summary, detail).at(&at).with_span(Some(span));
    if address.mode == Mode::Data {
        let error = error("Import of a data source", "A data source is only read, and takes nothing over.".to_owned());
        return Err(error.with_hint(if by_hand { "Nothing is to be done for it: plan reads it." } else { "Delete this block." }));
    }
    let refused = match config.registry.resource(&address.kind) {
        Some(ResourceEntry::Composite(_)) => Some(
            error("Import of a composite", format!("A \"{}\" is made of many things, and no id names them all.", address.kind))
                .with_hint("Where its own marks are on what it made, state rebuild finds all of it."),
        ),
        Some(ResourceEntry::Type(_, spec)) if spec.schema().state_only && spec.imported("").is_none() => Some(
            error(
                "Nothing to import",
                format!("A \"{}\" lives in the state alone: there is no thing outside that could be taken over.", address.kind),
            )
            .with_hint(if by_hand { "Have it made by apply." } else { "Delete this block, and have it made." }),
        ),
        _ => None,
    };
    if let Some(refused) = refused {
        return Err(refused);
    }
    match config.block(&address) {
        Some(block) if block.repetition.has(address.key.as_ref()) => Ok(address),
        Some(block) => {
            let there = match block.repetition.keys().into_iter().flatten().next() {
                Some(key) => address.with_key(Some(key)),
                None => address.block(),
            };
            let hint = if by_hand { format!("Import {there}.") } else { format!("Write to = {there}.") };
            Err(error("No such instance", format!("{} has no such instance.", address.block())).with_hint(hint))
        }
        None => {
            let detail = format!("{} is not configured, and what is imported has to be.", address.block());
            let hint = format!("Write resource \"{}\" \"{}\" {{ ... }} with what the thing is like.", address.kind, address.name);
            Err(error("Configuration for import target does not exist", detail).with_hint(hint))
        }
    }
}
