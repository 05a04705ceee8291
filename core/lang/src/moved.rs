//! `moved` blocks: what is in the state under one address belongs to another one now. Knows no state: what of it there is to be moved is seen
//! when planning.

mod check;
mod ends;
mod pattern;

use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, ModuleStep, Span};

use crate::config::Config;
use crate::decode::{self, Shape, check_shape};
use crate::load::unknown_type;
use crate::references::literal_key;
use crate::syntax::{Block, Expr, ExprKind, Step, StepKind};
pub(crate) use check::checked;

/// A `moved` block.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The module that it stands in, without keys: it is about each instance of that. Empty in the root module.
    pub module: Vec<String>,
    /// Where things were, seen from inside of that module.
    pub from: Address,
    /// Where they are now.
    pub to: Address,
    /// Where its header stands.
    pub span: Span,
    pub(crate) from_span: Span,
    pub(crate) to_span: Span,
}

/// What one address is a part of that moves as one: an instance of a module, a resource with all its instances, or one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Where it was.
    pub from: Address,
    /// Where it is now.
    pub to: Address,
}

impl Moved {
    /// Where neither end names an instance, all of them move, each with its key.
    pub fn is_whole(&self) -> bool {
        let key = |a: &Address| if a.is_module() { a.module.last().and_then(|s| s.key.clone()) } else { a.key.clone() };
        key(&self.from).is_none() && key(&self.to).is_none()
    }

    /// What moves with an address; `None` if it stays.
    pub fn unit(&self, address: &Address) -> Option<Unit> {
        let (around, rest) = address.module.split_at_checked(self.module.len())?;
        if address.mode == Mode::Data || !around.iter().zip(&self.module).all(|(step, name)| step.name == *name) {
            return None;
        }
        let is_whole = self.is_whole();
        let from = &self.from;
        let (inner, last) = if from.is_module() { from.module.split_last().map(|(l, i)| (i, Some(l)))? } else { (&from.module[..], None) };
        let depth = from.module.len();
        if rest.len() < depth || rest[..inner.len()] != *inner {
            return None;
        }
        // Nothing is made before it is known to be it: each block is asked of each address.
        if let Some(last) = last {
            let there = &rest[depth - 1];
            if there.name != last.name || !(is_whole || there.key == last.key) {
                return None;
            }
            let mut to = self.to.in_module(around);
            if let (Some(step), true) = (to.module.last_mut(), is_whole) {
                step.key.clone_from(&there.key);
            }
            return Some(Unit { from: Address::of_module(address.module[..around.len() + depth].to_vec()), to });
        }
        let is_it = rest.len() == depth && (&address.kind, &address.name) == (&from.kind, &from.name);
        if !is_it || !(is_whole || address.key == from.key) {
            return None;
        }
        Some(Unit { from: self.from.in_module(around), to: self.to.in_module(around) })
    }

    /// True if it is about the instances of this block, at one of its ends.
    pub fn mentions(&self, block: &Address) -> bool {
        let Some((around, rest)) = block.module.split_at_checked(self.module.len()) else { return false };
        around.iter().zip(&self.module).all(|(step, name)| step.name == *name)
            && [&self.from, &self.to]
                .iter()
                .any(|end| !end.is_module() && end.module == rest && (&end.kind, &end.name) == (&block.kind, &block.name))
    }
}

impl Unit {
    /// The address that something in this unit gets.
    #[must_use]
    pub fn renamed(&self, address: &Address) -> Address {
        if self.from.is_module() {
            let inside = address.module.iter().skip(self.from.module.len());
            return Address { module: self.to.module.iter().chain(inside).cloned().collect(), ..address.clone() };
        }
        let is_whole = self.from.key.is_none() && self.to.key.is_none();
        let key = if is_whole { address.key.clone() } else { self.to.key.clone() };
        Address { key, child: address.child.clone(), ..self.to.clone() }
    }
}

/// All `moved` blocks of a directory, as they stand.
pub(crate) fn read(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> Vec<Moved> {
    let mut all = Vec::new();
    for block in blocks {
        decode::labels(block, [], diagnostics);
        check_shape(&block.body, &Shape { what: "a \"moved\" block", attributes: &["from", "to"], blocks: &[] }, diagnostics);
        let absent: Vec<_> = ["from", "to"].into_iter().filter(|n| block.body.attribute(n).is_none()).collect();
        decode::missing(&absent, "a \"moved\" block", block.span, diagnostics);
        let mut end = |name: &str| {
            let expr = &block.body.attribute(name)?.expr;
            match address(name, expr) {
                Ok(address) => Some((address, expr.span)),
                Err(error) => {
                    diagnostics.extend(error.map(|e| e.with_span(Some(expr.span))));
                    None
                }
            }
        };
        let (from, to) = (end("from"), end("to"));
        if let (Some((from, from_span)), Some((to, to_span))) = (from, to) {
            let moved = Moved { module: Vec::new(), from, to, span: block.span, from_span, to_span };
            match fits(config, &moved) {
                Ok(()) => all.push(moved),
                Err(error) => diagnostics.push(error),
            }
        }
    }
    all
}

/// Whether one end can become the other.
fn fits(config: &Config, moved: &Moved) -> Result<(), Diagnostic> {
    let Moved { from, to, .. } = moved;
    if from.is_module() != to.is_module() {
        let detail = format!("{from} can't become {to}: one is a whole module, and the other is not.");
        return Err(Diagnostic::error("Invalid move", detail)
            .with_span(Some(moved.span))
            .with_hint("Move a module to the address of a module, and a resource to the address of a resource."));
    }
    if from == to {
        let detail = format!("The block says that {from} is at {to} now, where it was.");
        return Err(Diagnostic::error("Redundant moved block", detail).with_span(Some(moved.span)).with_hint("Delete it."));
    }
    if from.kind != to.kind {
        let detail = format!("{from} can't become {to}: what is there is another type of thing.");
        return Err(Diagnostic::error("Resource type mismatch", detail)
            .with_span(Some(moved.to_span))
            .with_hint("Only the name, the keys and the module of an address can change."));
    }
    if !to.is_module() && config.registry.resource(&to.kind).is_none() {
        return Err(unknown_type(&config.registry, to).with_span(Some(moved.to_span)));
    }
    Ok(())
}

/// The address that an end of the block names.
///
/// # Errors
/// What is wrong with it; nothing if that was reported already.
fn address(end: &str, expr: &Expr) -> Result<Address, Option<Diagnostic>> {
    let wrong = |hint: String| {
        let detail = format!("\"{end}\" takes the address of a resource, of an instance of one, or of a module, without quotes.");
        Err(Some(Diagnostic::error(format!("Invalid {end}"), detail).with_hint(hint)))
    };
    let form = || format!("Write {end} = TYPE.NAME, {end} = TYPE.NAME[\"KEY\"] or {end} = module.NAME.");
    let (name, steps) = match &expr.bare().kind {
        ExprKind::Wrong => return Err(None),
        ExprKind::Traversal(root, steps) => match &root.kind {
            ExprKind::Name(name) => (name, steps),
            _ => return wrong(form()),
        },
        // `etcd_cluster.main/member["a"]`: a part of a composite reads as a division.
        ExprKind::Binary(..) => return wrong(format!("Write {end} = TYPE.NAME; a composite moves with all its parts.")),
        ExprKind::Literal(value) => {
            let meant = value.as_str().and_then(|text| text.parse::<Address>().ok()).filter(|a| !a.is_child());
            return wrong(meant.map_or_else(form, |a| format!("Write {end} = {a}.")));
        }
        _ => return wrong(form()),
    };
    let mut text = name.clone();
    let mut known = None;
    for step in steps {
        match written(step) {
            Some(step) => text += &step,
            None => {
                let detail = format!("The key of an instance in \"{end}\" has to be written out: a move is the same for everybody.");
                let error = Diagnostic::error("Key not written out", detail).with_hint("Write one block for each instance.");
                return Err(Some(error.with_span(Some(step.span))));
            }
        }
        // A module by itself is one as well as what is in it.
        known = text.parse::<Address>().ok().or(known);
    }
    match text.parse::<Address>() {
        Ok(address) if address.mode == Mode::Data => {
            let detail = "A data source is only read, and nothing of it is in the state that could be moved.";
            Err(Some(
                Diagnostic::error("Data source in a moved block", detail)
                    .with_hint("Delete this block: it is enough to rename the data block."),
            ))
        }
        // It reads like one, but nothing of this is in a state.
        Ok(address) if !address.is_module() && NO_RESOURCES.contains(&address.kind.as_str()) => wrong(form()),
        Ok(address) => Ok(address),
        Err(_) => wrong(known.filter(|a| a.mode == Mode::Managed).map_or_else(form, |a| format!("Write {end} = {a}."))),
    }
}

/// First words of what is referred to and is no resource.
const NO_RESOURCES: [&str; 7] = ["var", "local", "output", "each", "count", "path", "self"];

/// A step as addresses have it; `None` if that is not known from the text alone.
fn written(step: &Step) -> Option<String> {
    match &step.kind {
        StepKind::Attribute(name) => Some(format!(".{name}")),
        StepKind::LegacyIndex(index) => Some(format!("[{index}]")),
        StepKind::Index(expr) => literal_key(expr).map(|key| key.to_string()),
        StepKind::AttributeSplat | StepKind::FullSplat => None,
    }
}

/// The path of the module that a block stands in.
pub(crate) fn names(path: &[ModuleStep]) -> Vec<String> {
    path.iter().map(|step| step.name.clone()).collect()
}
