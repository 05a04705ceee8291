//! `import` blocks, and imports by hand: what is there already and becomes a resource's. Knows no state: what is in it already is imported
//! by then. What an id is made of may be known only when other things were looked at: until then an import is open.

mod fits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_model::{Address, Diagnostic, Diagnostics, Key, Kind, Span, Value, convert};

use crate::config::{Config, Repetition};
use crate::decode::{self, Shape, check_shape};
use crate::eval::{Errors, unknown};
use crate::evaluator::{Evaluator, Resolver};
use crate::expand::{UNKNOWN, Untold, for_each};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::{Block, Expr, ExprKind, Step, StepKind};
use fits::{fits, not_configured, takes_over};

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

/// An import of which it is not known yet what is taken over, or by which instance.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenImport {
    /// It may be of any instance of the resource.
    pub is_any: bool,
    /// The blocks that its values are made of.
    pub needs: Arc<BTreeSet<Address>>,
    /// What is to be said where it stays so.
    pub told: Diagnostic,
}

impl Config {
    /// Why it is not known whether an instance takes something over, or what. `None`: it is known.
    pub fn open_import(&self, address: &Address) -> Option<&OpenImport> {
        if self.open_imports.is_empty() {
            return None;
        }
        let of_any = || self.open_imports.get(&address.configuration()).filter(|open| open.is_any);
        self.open_imports.get(address).or_else(of_any)
    }

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
        self.open_imports.clear();
        Ok(())
    }
}

/// All `import` blocks.
#[derive(Default)]
pub(crate) struct Imports {
    /// By the instance that takes the thing over.
    pub all: BTreeMap<Address, Import>,
    /// Those that are not known yet, by the instance; if that is not known, by the resource without any key.
    pub open: BTreeMap<Address, OpenImport>,
}

impl Imports {
    /// Where it is said already what an instance takes over.
    fn place(&self, address: &Address) -> Option<Span> {
        let open = || self.open.get(address).filter(|open| !open.is_any).and_then(|open| open.told.span);
        self.all.get(address).map(|import| import.span).or_else(open)
    }
}

/// Why a value can't be used.
enum Refused {
    /// It was said already, or is not to be said.
    Told,
    /// It is no such value.
    Wrong(Diagnostic),
    /// It is not known yet.
    Open(Diagnostic),
}

/// Reads all `import` blocks, with what is known of instances, which are all there by now.
pub(crate) fn read(config: &Config, known: &dyn Resolver, blocks: &[Block], diagnostics: &mut Diagnostics) -> Imports {
    let mut imports = Imports::default();
    let evaluator = Evaluator::new(config, known);
    for block in blocks {
        decode::labels(block, [], diagnostics);
        let shape = Shape { what: "an \"import\" block", attributes: &["to", "id", "for_each"], blocks: &[] };
        check_shape(&block.body, &shape, diagnostics);
        let absent: Vec<_> = ["to", "id"].into_iter().filter(|n| block.body.attribute(n).is_none()).collect();
        decode::missing(&absent, "an \"import\" block", block.span, diagnostics);
        let of = |name: &str| block.body.attribute(name).map(|a| &a.expr);
        let (Some(to), Some(id)) = (of("to"), of("id")) else { continue };
        let each = of("for_each");
        let (needs, found) = check(config, to, id, each);
        let needs = Arc::new(needs);
        let failed = found.has_errors();
        diagnostics.extend(found);
        if failed {
            continue;
        }
        let mut errors = Errors::default();
        let sites = match each {
            None => Ok(vec![Site::default()]),
            Some(each) if config.any_values => {
                evaluator.eval(each, &Scope::new(&Site::default()), &mut errors);
                Ok(vec![Site { each: Some((unknown(), unknown())), ..Site::default() }])
            }
            Some(each) => sites(&evaluator, each, &mut errors),
        };
        let (sites, mut refused) = match sites {
            Ok(sites) => (sites, Vec::new()),
            Err(why) => (Vec::new(), vec![why]),
        };
        for site in &sites {
            let scope = Scope::new(site);
            let address = address(&evaluator, to, &scope, &mut errors)
                .and_then(|address| fits(config, address, to.span, false).map_err(Refused::Wrong));
            let import = self::id(&evaluator, id, &scope, &mut errors);
            if let (Ok(address), Ok(_) | Err(Refused::Open(_))) = (&address, &import)
                && let Some(first) = imports.place(address)
            {
                diagnostics.push(decode::second(&format!("the import of {address}"), to.span, first));
                continue;
            }
            match (address, import) {
                (Ok(address), Ok(import)) => drop(imports.all.insert(address, import)),
                (Ok(address), Err(Refused::Open(told))) => {
                    let told = with_needs(told, &needs).at(&address);
                    imports.open.insert(address, OpenImport { is_any: false, needs: Arc::clone(&needs), told });
                }
                (address, id) => refused.extend(address.err().into_iter().chain(id.err())),
            }
        }
        // What is said of the block as a whole is said once, however many keys are not known.
        let mut of_any: Option<Diagnostic> = None;
        for why in refused {
            match why {
                Refused::Told => {}
                Refused::Wrong(error) => diagnostics.push(error),
                Refused::Open(told) => of_any = of_any.or(Some(told)),
            }
        }
        if let Some(told) = of_any {
            match target(config, to) {
                Ok(address) => {
                    let told = with_needs(told, &needs).at(&address);
                    imports.open.entry(address).or_insert(OpenImport { is_any: true, needs, told });
                }
                Err(error) => diagnostics.push(error),
            }
        }
        diagnostics.extend(evaluator.finish(errors));
    }
    imports
}

/// What can be said of a block without evaluating it; and the blocks that its values are made of.
fn check(config: &Config, to: &Expr, id: &Expr, each: Option<&Expr>) -> (BTreeSet<Address>, Diagnostics) {
    let (mut needs, mut found) = (BTreeSet::new(), Diagnostics::new());
    let place = Place { each: each.is_some(), ..Place::default() };
    let of_keys = Place { no_blocks: Some("Which instance takes something over has to be known before anything is looked at."), ..place };
    for key in keys(to) {
        found.extend(statics::check(config, key, of_keys, &mut Vec::new()));
    }
    let own = without_keys(to);
    let values = [("id", Some(id), place), ("for_each", each, Place { each: false, ..place })];
    for (name, expr, place) in values.into_iter().filter_map(|(name, expr, place)| Some((name, expr?, place))) {
        let mut references = Vec::new();
        found.extend(statics::check(config, expr, place, &mut references));
        if let Some(own) = references.iter().find(|r| own.as_ref() == Some(&r.address.block())) {
            let detail = format!(
                "\"{name}\" says what becomes {} and can't be made of it: that is known only when it is imported.",
                own.address.block()
            );
            let error = Diagnostic::slip("Import refers to itself", detail).with_span(Some(own.span));
            found.push(error.with_hint("Write out what the thing is named by, or make it of other blocks."));
        }
        needs.extend(references.into_iter().map(|r| r.address));
    }
    (needs, found)
}

/// The same with what has to be applied first.
fn with_needs(mut told: Diagnostic, needs: &BTreeSet<Address>) -> Diagnostic {
    if !needs.is_empty() {
        let needs: Vec<_> = needs.iter().map(ToString::to_string).collect();
        told.detail += &format!(" This depends on {}.", needs.join(", "));
    }
    told
}

/// One for each element of `for_each`. Here it may be a list or a set of anything: addresses have the keys that `to` says.
fn sites(evaluator: &Evaluator<'_>, each: &Expr, errors: &mut Errors) -> Result<Vec<Site>, Refused> {
    let before = errors.list.len();
    let value = evaluator.eval(each, &Scope::new(&Site::default()), errors);
    if errors.list.len() > before {
        return Err(Refused::Told);
    }
    // Whatever it comes to be: a list or a set of anything is taken as well.
    let open = |errors: &Errors, detail: &str| {
        let told = evaluator.failure(each, each.span, &Scope::new(&Site::default()), errors, "Invalid for_each", detail.to_owned());
        Refused::Open(told.with_hint(UNKNOWN))
    };
    if value.is_unknown() && !value.marks().any() {
        return Err(open(errors, "The keys of \"for_each\" are known only after apply, but the plan needs to know the instances."));
    }
    let elements: Vec<(Value, Value)> = match &value.kind {
        // Nothing is imported, as nothing is for no elements.
        Kind::Null(_) if !value.marks().any() => Vec::new(),
        Kind::List(_, items) | Kind::Tuple(items) if !value.marks().any() => {
            items.iter().enumerate().map(|(i, item)| (i.into(), item.clone())).collect()
        }
        Kind::Set(_, items) if !value.marks().any() && value.is_wholly_known() => {
            items.iter().map(|item| (item.clone(), item.clone())).collect()
        }
        // Elements that are not known yet may come to be one.
        Kind::Set(..) if !value.marks().any() => return Err(open(errors, "Not all elements of \"for_each\" are known before apply.")),
        _ => match for_each(evaluator, each, 0, errors) {
            Ok(Repetition::ForEach(entries)) => entries.into_iter().map(|(key, item)| (key.into(), item)).collect(),
            Err(Untold::Open(told)) => return Err(Refused::Open(*told)),
            Ok(_) | Err(Untold::Wrong) => return Err(Refused::Told),
        },
    };
    Ok(elements.into_iter().map(|element| Site { each: Some(element), ..Site::default() }).collect())
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

/// The resource that takes something over, without any key; nothing for what is no address.
fn without_keys(to: &Expr) -> Option<Address> {
    let ExprKind::Traversal(root, steps) = &to.bare().kind else { return None };
    let ExprKind::Name(name) = &root.kind else { return None };
    let mut text = name.clone();
    for step in steps {
        match &step.kind {
            StepKind::Attribute(name) => text += &format!(".{name}"),
            StepKind::LegacyIndex(_) | StepKind::Index(_) => {}
            StepKind::AttributeSplat | StepKind::FullSplat => return None,
        }
    }
    text.parse::<Address>().ok().filter(|a| !a.is_module())
}

/// The same, of a resource that is there and can take something over.
fn target(config: &Config, to: &Expr) -> Result<Address, Diagnostic> {
    let address = without_keys(to).ok_or_else(|| invalid(to))?;
    takes_over(config, &address, to.span, false)?;
    if config.is_written(&address) { Ok(address) } else { Err(not_configured(&address, to.span)) }
}

fn invalid(to: &Expr) -> Diagnostic {
    let error = Diagnostic::error("Invalid to", "\"to\" takes the address of an instance of a resource, without quotes.");
    error.with_span(Some(to.span)).with_hint("Write to = TYPE.NAME, or to = TYPE.NAME[each.key] with for_each.")
}

/// The instance that takes something over.
fn address(evaluator: &Evaluator<'_>, to: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> Result<Address, Refused> {
    let wrong = || Refused::Wrong(invalid(to));
    let (name, steps) = match &to.bare().kind {
        ExprKind::Wrong => return Err(Refused::Told),
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
fn written(evaluator: &Evaluator<'_>, step: &Step, scope: &Scope<'_>, errors: &mut Errors) -> Result<Option<String>, Refused> {
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

fn id(evaluator: &Evaluator<'_>, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> Result<Import, Refused> {
    let value = known(evaluator, expr, scope, errors, "id")?;
    let text = convert(&value, &karmaform_model::Type::String).ok().and_then(|v| v.as_str().map(str::to_owned)).filter(|t| !t.is_empty());
    let wrong = || Diagnostic::error("Invalid id", "\"id\" is what names the thing, as text that is not empty.").with_span(Some(expr.span));
    text.map(|id| Import { id, span: expr.span, by_hand: false }).ok_or_else(|| Refused::Wrong(wrong()))
}

/// A value that may be shown and is known.
fn known(evaluator: &Evaluator<'_>, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors, what: &str) -> Result<Value, Refused> {
    let before = errors.list.len();
    let value = evaluator.eval(expr, scope, errors);
    if errors.list.len() > before {
        return Err(Refused::Told);
    }
    let error = |detail: String| Diagnostic::error(format!("Invalid {what}"), detail).with_span(Some(expr.span));
    if value.contains_secret() {
        let detail = format!("A secret would show: the {what} of what is imported is printed.");
        return Err(Refused::Wrong(error(detail).with_hint("Use nonsensitive() if it is harmless.")));
    }
    // An id may be: the thing is known by it from then on, as in Terraform.
    if what == KEY && value.contains_ephemeral() {
        return Err(Refused::Wrong(crate::ephemeral::refused("The key of an instance", expr.span)));
    }
    if value.is_wholly_known() {
        return Ok(value);
    }
    if evaluator.config.any_values {
        return Err(Refused::Told);
    }
    let detail = format!("The {what} of what is imported is known only after apply, but the plan needs to know it.");
    Err(Refused::Open(error(detail).with_hint(UNKNOWN)))
}
