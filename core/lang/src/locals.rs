//! Local values: which need which, in what order they can be evaluated, and which go round in circles.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, Span};

use crate::config::Reference;
use crate::modules::{Name, names_of};
use crate::references::{self, Target, Visit, walk};
use crate::syntax::{Expr, ExprKind};

/// One entry of a `locals` block.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub expr: Expr,
    pub name_span: Span,
    /// The locals it names.
    pub locals: Vec<String>,
    /// The blocks it needs, also through other locals.
    pub references: Vec<Reference>,
    /// All values that it names.
    pub names: Vec<Name>,
    /// A module that it is made of, also through other locals.
    pub module: Option<String>,
}

/// All locals, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locals {
    entries: BTreeMap<String, Local>,
}

impl Locals {
    pub(crate) fn get(&self, name: &str) -> Option<&Local> {
        self.entries.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Local)> {
        self.entries.iter().map(|(n, l)| (n.as_str(), l))
    }

    /// Adds one; gives the place of an earlier one of the same name.
    pub(crate) fn add(&mut self, name: String, name_span: Span, expr: Expr) -> Option<Span> {
        if let Some(first) = self.entries.get(&name) {
            return Some(first.name_span);
        }
        let (mut locals, mut own) = (Vec::new(), Vec::new());
        walk(&expr, &mut |visit| {
            if let Visit::Reference { name, span, steps } = visit {
                match references::target(name, steps) {
                    Some(Target::Local(local)) if !locals.contains(&local) => locals.push(local),
                    Some(Target::Block { address, key, used }) => {
                        push_new(&mut own, references::reference(address, &key, used, steps, span));
                    }
                    _ => {}
                }
            }
        });
        let names = names_of([&expr]);
        let module = names.iter().find_map(|n| match n {
            Name::Output { call, .. } => Some(call.clone()),
            _ => None,
        });
        self.entries.insert(name, Local { expr, name_span, locals, references: own, names, module });
        None
    }

    /// Completes the references, and refuses circles: what is in one is not evaluated.
    pub(crate) fn connect(&mut self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        let (order, circles) = self.order();
        for circle in circles {
            diagnostics.push(self.circle(&circle));
            for name in circle {
                if let Some(local) = self.entries.get_mut(&name) {
                    local.expr.kind = ExprKind::Wrong;
                    local.locals.clear();
                    local.names.clear();
                }
            }
        }
        for name in order {
            let Some(local) = self.entries.get(&name) else { continue };
            let mut all = local.references.clone();
            let mut module = local.module.clone();
            for needed in &local.locals {
                module = module.or_else(|| self.entries.get(needed)?.module.clone());
                for reference in self.entries.get(needed).map(|l| l.references.as_slice()).unwrap_or_default() {
                    push_new(&mut all, reference.clone());
                }
            }
            if let Some(local) = self.entries.get_mut(&name) {
                local.references = all;
                local.module = module;
            }
        }
        diagnostics
    }

    /// Every local after those it needs, and the circles. Without recursion: chains may be long.
    fn order(&self) -> (Vec<String>, Vec<Vec<String>>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Colour {
            Open,
            Done,
        }
        let mut colours: BTreeMap<&str, Colour> = BTreeMap::new();
        let (mut order, mut circles) = (Vec::new(), Vec::new());
        for start in self.entries.keys() {
            if colours.contains_key(start.as_str()) {
                continue;
            }
            let mut path: Vec<(&str, usize)> = vec![(start, 0)];
            colours.insert(start, Colour::Open);
            while let Some((name, next)) = path.last_mut() {
                let name: &str = name;
                let needed = self.entries.get(name).and_then(|l| l.locals.get(*next));
                *next += 1;
                match needed {
                    None => {
                        colours.insert(name, Colour::Done);
                        order.push(name.to_owned());
                        path.pop();
                    }
                    Some(needed) if !self.entries.contains_key(needed) => {}
                    Some(needed) => match colours.get(needed.as_str()) {
                        None => {
                            colours.insert(needed, Colour::Open);
                            path.push((needed, 0));
                        }
                        Some(Colour::Open) => {
                            let from = path.iter().position(|(n, _)| n == needed).unwrap_or(0);
                            circles.push(path[from..].iter().map(|(n, _)| (*n).to_owned()).collect());
                        }
                        Some(Colour::Done) => {}
                    },
                }
            }
        }
        (order, circles)
    }

    fn circle(&self, names: &[String]) -> Diagnostic {
        let round: Vec<_> = names.iter().chain(names.first()).map(|n| format!("local.{n}")).collect();
        let first = names.first().and_then(|n| self.get(n)).map(|l| l.name_span);
        let mut diagnostic =
            Diagnostic::error("Locals depend on each other", format!("None of these can be evaluated first: {}.", round.join(" -> ")))
                .with_span(first)
                .with_hint("Take the common part out into a local of its own.");
        for other in names.iter().skip(1).filter_map(|n| self.get(n)) {
            diagnostic = diagnostic.with_label(other.name_span, "also in the circle");
        }
        diagnostic
    }
}

/// Adds a reference unless the same is there already.
pub(crate) fn push_new(all: &mut Vec<Reference>, reference: Reference) {
    if !all.iter().any(|r| r.address == reference.address && r.attribute == reference.attribute) {
        all.push(reference);
    }
}
