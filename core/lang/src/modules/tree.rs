//! What calls what, and in which order values and repetitions can be told. All from the text: a module is here once for each of its
//! calls, however often `count` or `for_each` make it stand.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_model::{Address, Diagnostic, ModuleStep, Span};

use super::{ModuleCall, Name};
use crate::config::{Config, Reference};

/// More calls and more instances of modules are a mistake: modules that call each other twice grow without bounds.
pub(super) const MOST: usize = 100_000;

/// A call of a module; the first is the root.
pub(super) struct Node {
    /// Its path, without keys.
    pub path: Vec<ModuleStep>,
    pub parent: usize,
    /// Nothing for the root.
    pub call: Option<(String, Arc<ModuleCall>)>,
    pub unit: Option<Arc<Config>>,
    pub children: BTreeMap<String, usize>,
}

/// Something that is told after something else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub node: usize,
    pub what: What,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Call(String),
    Variable(String),
    Local(String),
    Output(String),
    /// How often a block stands.
    Block(Address),
}

/// All calls.
pub(super) struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Follows the calls. Directories that contain each other were refused when they were read, so this ends.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn grow(config: &Config) -> Result<Self, Diagnostic> {
        let root = Node { path: Vec::new(), parent: 0, call: None, unit: None, children: BTreeMap::new() };
        let mut tree = Self { nodes: vec![root] };
        let mut next = 0;
        while next < tree.nodes.len() {
            let calls: Vec<_> = tree.unit(config, next).calls.iter().map(|(n, c)| (n.clone(), Arc::clone(c))).collect();
            for (name, call) in calls {
                let Some(unit) = call.unit.clone() else { continue };
                if tree.nodes.len() > MOST {
                    return Err(too_many(call.span));
                }
                let mut path = tree.nodes[next].path.clone();
                path.push(ModuleStep::new(&name));
                let number = tree.nodes.len();
                tree.nodes[next].children.insert(name.clone(), number);
                tree.nodes.push(Node { path, parent: next, call: Some((name, call)), unit: Some(unit), children: BTreeMap::new() });
            }
            next += 1;
        }
        Ok(tree)
    }

    /// What stands in the directory of a node.
    pub(super) fn unit<'c>(&'c self, config: &'c Config, node: usize) -> &'c Config {
        self.nodes[node].unit.as_deref().unwrap_or(config)
    }

    /// All that has to be told, each after what it needs; and what goes round in circles. Without recursion: chains may be long.
    pub(super) fn order(&self, config: &Config) -> (Vec<Item>, Vec<Vec<Item>>) {
        let (mut order, mut circles) = (Vec::new(), Vec::new());
        // False while on the path.
        let mut done: BTreeMap<Item, bool> = BTreeMap::new();
        for start in self.items(config) {
            if done.contains_key(&start) {
                continue;
            }
            done.insert(start.clone(), false);
            let mut path = vec![(self.needs(config, &start), 0, start)];
            while let Some((needs, next, item)) = path.last_mut() {
                let Some(needed) = needs.get(*next).cloned() else {
                    done.insert(item.clone(), true);
                    order.push(item.clone());
                    path.pop();
                    continue;
                };
                *next += 1;
                match done.get(&needed) {
                    None => {
                        done.insert(needed.clone(), false);
                        path.push((self.needs(config, &needed), 0, needed));
                    }
                    Some(false) => {
                        let from = path.iter().position(|(_, _, i)| *i == needed).unwrap_or(0);
                        circles.push(path[from..].iter().map(|(_, _, i)| i.clone()).collect());
                    }
                    Some(true) => {}
                }
            }
        }
        (order, circles)
    }

    /// Without modules the blocks behind locals are known as it is.
    fn has_modules(&self) -> bool {
        self.nodes.len() > 1
    }

    fn items(&self, config: &Config) -> Vec<Item> {
        let mut all = Vec::new();
        for node in 0..self.nodes.len() {
            let unit = self.unit(config, node);
            let mut add = |what| all.push(Item { node, what });
            self.nodes[node].children.keys().for_each(|n| add(What::Call(n.clone())));
            unit.blocks.values().filter(|b| b.repeat.expr().is_some()).for_each(|b| add(What::Block(b.address.clone())));
            if self.has_modules() {
                unit.locals.names().for_each(|n| add(What::Local(n.to_owned())));
            }
            if node > 0 {
                unit.declared.keys().for_each(|n| add(What::Variable(n.clone())));
                unit.outputs.keys().for_each(|n| add(What::Output(n.clone())));
            }
        }
        all
    }

    /// What must be told before an item.
    fn needs(&self, config: &Config, item: &Item) -> Vec<Item> {
        let mut all = Vec::new();
        let node = &self.nodes[item.node];
        let unit = self.unit(config, item.node);
        if let Some((name, _)) = &node.call {
            all.push(Item { node: node.parent, what: What::Call(name.clone()) });
        }
        match &item.what {
            What::Call(name) => {
                let Some(call) = unit.calls.get(name).filter(|c| c.repeat.expr().is_some()) else { return all };
                self.add(config, item.node, &call.repeat_names, &call.repeat_references, &mut all);
            }
            What::Variable(name) => {
                let argument = node.call.as_ref().and_then(|(_, call)| call.arguments.get(name));
                if let Some(argument) = argument {
                    self.add(config, node.parent, &argument.names, &argument.references, &mut all);
                }
            }
            What::Local(name) => {
                if let Some(local) = unit.locals.get(name) {
                    self.add(config, item.node, &local.names, &local.references, &mut all);
                }
            }
            What::Output(name) => {
                if let Some(output) = unit.outputs.get(name) {
                    self.add(config, item.node, &output.names, &output.references, &mut all);
                }
            }
            What::Block(address) => {
                if let Some(expr) = unit.blocks.get(address).and_then(|b| b.repeat.expr()) {
                    let references = super::expand::references_in(unit, expr);
                    self.add(config, item.node, &super::names_of([expr]), &references, &mut all);
                }
            }
        }
        all
    }

    fn add(&self, config: &Config, node: usize, names: &[Name], references: &[Reference], all: &mut Vec<Item>) {
        let unit = self.unit(config, node);
        for name in names {
            match name {
                Name::Variable(name) if node > 0 && unit.declared.contains_key(name) => {
                    all.push(Item { node, what: What::Variable(name.clone()) });
                }
                Name::Local(name) if self.has_modules() && unit.locals.get(name).is_some() => {
                    all.push(Item { node, what: What::Local(name.clone()) })
                }
                Name::Output { call, output, .. } => {
                    let Some(&child) = self.nodes[node].children.get(call) else { continue };
                    all.push(Item { node, what: What::Call(call.clone()) });
                    let outputs = self.unit(config, child).outputs.keys().filter(|o| output.as_ref().is_none_or(|n| n == *o));
                    all.extend(outputs.map(|o| Item { node: child, what: What::Output(o.clone()) }));
                }
                Name::Variable(_) | Name::Local(_) => {}
            }
        }
        // How often a block stands matters; what is in it is not known yet anyway.
        let repeated =
            references.iter().map(|r| r.address.block()).filter(|a| unit.blocks.get(a).is_some_and(|b| b.repeat.expr().is_some()));
        all.extend(repeated.map(|address| Item { node, what: What::Block(address) }));
    }

    /// An error about a circle.
    pub(super) fn circle(&self, config: &Config, circle: &[Item]) -> Diagnostic {
        let round: Vec<_> = circle.iter().chain(circle.first()).map(|i| self.name(i)).collect();
        let spans: Vec<_> = circle.iter().map(|i| (self.name(i), self.span(config, i))).collect();
        let only_blocks = circle.iter().all(|i| matches!(i.what, What::Block(_) | What::Call(_)));
        let error = if only_blocks {
            Diagnostic::error("Blocks depend on each other", format!("How often these stand can't be decided: {}.", round.join(" -> ")))
                .with_hint("Take the common count or keys into a variable or a local.")
        } else {
            Diagnostic::error("Modules depend on each other", format!("None of these can be evaluated first: {}.", round.join(" -> ")))
                .with_hint("Cut one of these references, or take the common part out into a module of its own.")
        };
        let mut places = spans.into_iter().filter_map(|(name, span)| Some((name, span?)));
        let first = places.next().map(|(_, span)| span);
        let error = error.with_span(first);
        if only_blocks { error } else { places.fold(error, |e, (name, span)| e.with_label(span, format!("{name} is also in the circle"))) }
    }

    fn name(&self, item: &Item) -> String {
        let path = &self.nodes[item.node].path;
        let below = |rest: String| match path.is_empty() {
            true => rest,
            false => format!("{}.{rest}", Address::of_module(path.clone())),
        };
        match &item.what {
            What::Call(name) => below(format!("module.{name}")),
            What::Variable(name) => below(format!("var.{name}")),
            What::Local(name) => below(format!("local.{name}")),
            What::Output(name) => below(name.clone()),
            What::Block(address) => address.in_module(path).to_string(),
        }
    }

    fn span(&self, config: &Config, item: &Item) -> Option<Span> {
        let unit = self.unit(config, item.node);
        match &item.what {
            What::Call(name) => unit.calls.get(name).map(|c| c.span),
            What::Variable(name) => self.nodes[item.node].call.as_ref().and_then(|(_, c)| c.arguments.get(name)).map(|a| a.name_span),
            What::Local(name) => unit.locals.get(name).map(|l| l.name_span),
            What::Output(name) => unit.outputs.get(name).map(|o| o.span),
            What::Block(address) => unit.blocks.get(address).map(|b| b.span),
        }
    }
}

/// There are more modules than anybody means.
pub(super) fn too_many(span: Span) -> Diagnostic {
    Diagnostic::error("Too many modules", format!("The configuration has more than {MOST} instances of modules."))
        .with_span(Some(span))
        .with_hint("Modules that call others several times, again and again, make very many; use for_each of resources instead.")
}
