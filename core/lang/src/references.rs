//! References: what the names in an expression refer to, found without evaluating it.

use karmaform_model::{Address, Key, Mode, Span};

use crate::config::Reference;
use crate::syntax::{Call, Expr, ExprKind, ObjectKey, Part, Step, StepKind};

/// What a reference's first names mean.
#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    /// `var.x`
    Variable(String),
    /// `local.x`
    Local(String),
    /// `T.N`, `resource.T.N`, `data.T.N`, with what follows: the key, and how many steps make up the whole.
    Block { address: Address, key: KeyUse, used: usize },
    /// `module.N`, with what follows: the key, and how many steps make up the whole.
    Module { call: String, key: KeyUse, used: usize },
    /// `each.key`, `each.value`
    Each(String),
    /// `count.index`
    Count(String),
    /// `path.module`
    Path(String),
    /// `terraform.workspace`
    Tool(String),
    /// `self`
    Own,
    /// A name alone that starts no reference.
    Alone,
}

/// What follows the name of a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyUse {
    /// No index.
    None,
    /// `["a"]`, `[0]`
    Literal(Key),
    /// `[each.key]`
    Computed,
    /// `[*]`, `.*`
    Splat,
}

/// Reads the start of a reference. `None`: more names are needed, as in `var` alone.
pub(crate) fn target(name: &str, steps: &[Step]) -> Option<Target> {
    let attribute = |i: usize| match steps.get(i).map(|s: &Step| &s.kind) {
        Some(StepKind::Attribute(name)) => Some(name.clone()),
        _ => None,
    };
    match name {
        "var" => attribute(0).map(Target::Variable),
        "local" => attribute(0).map(Target::Local),
        "each" => attribute(0).map(Target::Each),
        "count" => attribute(0).map(Target::Count),
        "path" => attribute(0).map(Target::Path),
        "terraform" | "karmaform" => attribute(0).map(Target::Tool),
        "self" => Some(Target::Own),
        "module" => {
            let (key, used) = key_after(steps, 1);
            attribute(0).map(|call| Target::Module { call, key, used })
        }
        "data" => {
            let (kind, name) = (attribute(0)?, attribute(1)?);
            Some(block(Address { mode: Mode::Data, ..Address::managed(&kind, &name) }, steps, 2))
        }
        // The long form of `T.N`.
        "resource" => {
            let (kind, name) = (attribute(0)?, attribute(1)?);
            Some(block(Address::managed(&kind, &name), steps, 2))
        }
        _ if steps.is_empty() => Some(Target::Alone),
        kind => attribute(0).map(|name| block(Address::managed(kind, &name), steps, 1)),
    }
}

fn block(address: Address, steps: &[Step], named: usize) -> Target {
    let (key, used) = key_after(steps, named);
    Target::Block { address, key, used }
}

/// The key after so many steps that name something, and how many steps there are with it.
fn key_after(steps: &[Step], named: usize) -> (KeyUse, usize) {
    match steps.get(named).map(|s| &s.kind) {
        Some(StepKind::Index(expr)) => (literal_key(expr).map_or(KeyUse::Computed, KeyUse::Literal), named + 1),
        Some(StepKind::LegacyIndex(i)) => (KeyUse::Literal(Key::Index(*i)), named + 1),
        Some(StepKind::FullSplat | StepKind::AttributeSplat) => (KeyUse::Splat, named + 1),
        _ => (KeyUse::None, named),
    }
}

/// A key that is written out.
pub(crate) fn literal_key(expr: &Expr) -> Option<Key> {
    match &expr.bare().kind {
        ExprKind::Literal(value) => match (value.as_str(), value.as_i64()) {
            (Some(text), _) => Some(Key::Name(text.to_owned())),
            (None, Some(index)) => u64::try_from(index).ok().map(Key::Index),
            _ => None,
        },
        _ => None,
    }
}

/// What a walk meets.
pub(crate) enum Visit<'e> {
    /// A name that nothing in the expression binds, with the steps that follow it.
    Reference { name: &'e str, span: Span, steps: &'e [Step] },
    /// A function call.
    Call(&'e Call),
}

/// Visits all references and calls of an expression.
pub(crate) fn walk<'e>(expr: &'e Expr, visit: &mut dyn FnMut(Visit<'e>)) {
    walk_bound(expr, Vec::new(), visit);
}

/// The same where these names are bound already.
pub(crate) fn walk_bound<'e>(expr: &'e Expr, bound: Vec<&'e str>, visit: &mut dyn FnMut(Visit<'e>)) {
    Walker { bound, visit }.expr(expr);
}

/// Visits all references and calls of a template, in which these names are bound.
pub(crate) fn walk_parts<'e>(parts: &'e [Part], bound: Vec<&'e str>, visit: &mut dyn FnMut(Visit<'e>)) {
    Walker { bound, visit }.parts(parts);
}

struct Walker<'e, 'v> {
    bound: Vec<&'e str>,
    visit: &'v mut dyn FnMut(Visit<'e>),
}

impl<'e> Walker<'e, '_> {
    fn reference(&mut self, name: &'e str, span: Span, steps: &'e [Step]) {
        if !self.bound.contains(&name) {
            (self.visit)(Visit::Reference { name, span, steps });
        }
    }

    fn expr(&mut self, expr: &'e Expr) {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Wrong => {}
            ExprKind::Template(parts) => self.parts(parts),
            ExprKind::Tuple(items) => items.iter().for_each(|e| self.expr(e)),
            ExprKind::Object(items) => {
                for (key, value) in items {
                    if let ObjectKey::Expr(key) | ObjectKey::Once(key) = key {
                        self.expr(key);
                    }
                    self.expr(value);
                }
            }
            ExprKind::Name(name) => self.reference(name, expr.span, &[]),
            ExprKind::Traversal(root, steps) => {
                match &root.kind {
                    ExprKind::Name(name) => {
                        let end = steps.last().map_or(root.span.end, |s| s.span.end);
                        self.reference(name, Span { end, ..root.span }, steps);
                    }
                    _ => self.expr(root),
                }
                for step in steps {
                    if let StepKind::Index(index) = &step.kind {
                        self.expr(index);
                    }
                }
            }
            ExprKind::Parentheses(inner) | ExprKind::Unary(_, inner) => self.expr(inner),
            ExprKind::Conditional(three) => three.iter().for_each(|e| self.expr(e)),
            ExprKind::Call(call) => {
                (self.visit)(Visit::Call(call));
                call.args.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Binary(_, both) => {
                self.expr(&both.0);
                self.expr(&both.1);
            }
            ExprKind::For(f) => {
                self.expr(&f.collection);
                let names = [f.key_name.as_deref(), Some(f.value_name.as_str())];
                self.bind(names, |inner| {
                    f.key.iter().chain([&f.value]).chain(&f.condition).for_each(|e| inner.expr(e));
                });
            }
        }
    }

    fn parts(&mut self, parts: &'e [Part]) {
        for part in parts {
            match part {
                Part::Literal(_) => {}
                Part::Interpolation(expr) => self.expr(expr),
                Part::If { condition, then, otherwise } => {
                    self.expr(condition);
                    self.parts(then);
                    self.parts(otherwise);
                }
                Part::For { key_name, value_name, collection, body } => {
                    self.expr(collection);
                    self.bind([key_name.as_deref(), Some(value_name)], |inner| inner.parts(body));
                }
            }
        }
    }

    fn bind(&mut self, names: [Option<&'e str>; 2], work: impl FnOnce(&mut Self)) {
        let before = self.bound.len();
        self.bound.extend(names.into_iter().flatten());
        work(self);
        self.bound.truncate(before);
    }
}

/// The reference that a block target is.
pub(crate) fn reference(address: Address, key: &KeyUse, used: usize, steps: &[Step], span: Span) -> Reference {
    let address = match key {
        KeyUse::Literal(key) => address.with_key(Some(key.clone())),
        _ => address,
    };
    let attribute = match steps.get(used).map(|s| &s.kind) {
        Some(StepKind::Attribute(name)) => Some(name.clone()),
        _ => None,
    };
    Reference { address, attribute, span }
}
