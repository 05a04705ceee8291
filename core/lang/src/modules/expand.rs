//! Blocks and modules into instances, in an order in which each knows how often it stands; and what each needs first, through variables
//! and outputs of modules, as references to blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_model::{Address, Diagnostics, ModuleStep, Object};

use super::tree::{Item, MOST, Tree, What, too_many};
use super::{Called, ModuleCall, ModuleInstance, Name, defaults};
use crate::config::{Config, Reference, Repeat, Repetition, ResourceBlock};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, Memo, Resolver};
use crate::expand::{Untold, count, for_each};
use crate::moved::Moved;
use crate::references::KeyUse;
use crate::statics::{self, Place, normalised};
use crate::syntax::Expr;

/// The blocks that an expression refers to, also through locals.
pub(super) fn references_in(unit: &Config, expr: &Expr) -> Vec<Reference> {
    let mut references = Vec::new();
    // What is wrong with it was reported.
    let _ = statics::check(unit, expr, Place { each: true, count: true, ..Place::default() }, &mut references);
    references
}

/// Makes the instances of all modules, with their blocks, and decides how often each block stands.
pub(crate) fn expand(config: &mut Config, known: &dyn Resolver, diagnostics: &mut Diagnostics) {
    config.modules = vec![ModuleInstance::root()];
    config.places = [(Vec::new(), 0)].into();
    let tree = match Tree::grow(config) {
        Ok(tree) => tree,
        Err(error) => return diagnostics.push(error),
    };
    let (order, circles) = tree.order(config);
    let mut is_whole = true;
    let mut told: BTreeSet<Item> = BTreeSet::new();
    for circle in circles {
        // Others through the same things are cut together with it.
        if !circle.iter().any(|i| told.contains(i)) {
            diagnostics.push(tree.circle(config, &circle));
        }
        told.extend(circle.iter().cloned());
        for item in &circle {
            match &item.what {
                What::Block(address) if item.node == 0 => set(config, address, None),
                // What goes round through modules can't be cut out of them: they are left out.
                _ => is_whole = false,
            }
        }
    }
    take_removed(config, &tree, diagnostics);
    take_moved(config, &tree);
    let mut work = Work {
        failed: diagnostics.has_errors(),
        resolver: known,
        memo: Memo::default(),
        instances: vec![Vec::new(); tree.nodes.len()],
        known: BTreeMap::new(),
        joined: BTreeMap::new(),
        open: Diagnostics::new(),
    };
    work.instances[0].push(0);
    for item in &order {
        if item.node == 0 || is_whole {
            work.item(config, &tree, item, is_whole, diagnostics);
        }
    }
    config.open = std::mem::take(&mut work.open);
    work.connect(config);
    let moved = std::mem::take(&mut config.moved);
    config.moved = crate::moved::checked(config, moved, diagnostics);
}

fn set(config: &mut Config, address: &Address, repetition: Option<Repetition>) {
    if let Some(block) = config.blocks.get_mut(address) {
        match repetition {
            Some(repetition) => block.repetition = repetition,
            None => block.repeat = Repeat::Wrong,
        }
    }
}

/// What is known while instances are made.
struct Work<'a> {
    /// There were errors before, so what is not known may be so because of them.
    failed: bool,
    /// What instances are, as far as that is known.
    resolver: &'a dyn Resolver,
    memo: Memo,
    /// By node of the tree.
    instances: Vec<Vec<usize>>,
    /// What a variable, local or output needs, by instance of its module; nothing where it needs nothing.
    known: BTreeMap<(usize, What), Arc<Vec<Reference>>>,
    /// What an output of all instances of a module needs.
    joined: BTreeMap<(usize, String, String), Arc<Vec<Reference>>>,
    /// What stands so often that it is not known.
    open: Diagnostics,
}

/// References without doubles.
#[derive(Default)]
struct Gathered {
    list: Vec<Reference>,
    seen: BTreeSet<(Address, Option<String>)>,
}

impl Gathered {
    fn add(&mut self, reference: Reference) {
        if self.seen.insert((reference.address.clone(), reference.attribute.clone())) {
            self.list.push(reference);
        }
    }

    /// In no more room than they need: every block keeps its own.
    fn into_list(mut self) -> Vec<Reference> {
        self.list.shrink_to_fit();
        self.list
    }
}

impl Work<'_> {
    fn item(&mut self, config: &mut Config, tree: &Tree, item: &Item, is_whole: bool, diagnostics: &mut Diagnostics) {
        let mut instances = self.instances[item.node].clone();
        if !matches!(item.what, What::Variable(_)) {
            instances.retain(|i| config.modules[*i].overridden.is_none());
        }
        if let What::Block(address) = &item.what {
            let unit = tree.unit(config, item.node);
            let Some(repeat) = unit.blocks.get(address).map(|b| b.repeat.clone()) else { return };
            let Some(expr) = repeat.expr() else { return };
            let (names, direct) = (super::names_of([expr]), references_in(unit, expr));
            for instance in instances {
                let address = address.in_module(&config.modules[instance].path);
                let repetition = self.repetition(config, instance, &repeat, &names, &direct, &address, diagnostics);
                set(config, &address, repetition);
            }
            return;
        }
        for instance in instances {
            match &item.what {
                What::Call(name) if is_whole => self.call(config, tree, item.node, instance, name, diagnostics),
                What::Call(_) | What::Block(_) => {}
                what => {
                    let needs = self.needs_of(config, tree, item.node, instance, what);
                    if !needs.is_empty() {
                        self.known.insert((instance, what.clone()), Arc::new(needs));
                    }
                }
            }
        }
    }

    /// What a variable, a local or an output of an instance needs.
    fn needs_of(&mut self, config: &Config, tree: &Tree, node: usize, instance: usize, what: &What) -> Vec<Reference> {
        let unit = tree.unit(config, node);
        let mut all = Gathered::default();
        match what {
            What::Variable(name) => {
                let argument = tree.nodes[node].call.as_ref().and_then(|(_, call)| call.arguments.get(name));
                if let Some(argument) = argument {
                    self.gather(config, config.modules[instance].parent, &argument.names, &argument.references, &mut all);
                }
            }
            What::Local(name) => {
                if let Some(local) = unit.locals.get(name) {
                    let direct: Vec<_> = local.references.iter().filter_map(|r| normalised(unit, r)).collect();
                    self.gather(config, instance, &local.names, &direct, &mut all);
                }
            }
            What::Output(name) => {
                if let Some(output) = unit.outputs.get(name) {
                    config.modules[instance].enter.iter().for_each(|r| all.add(r.clone()));
                    self.gather(config, instance, &output.names, &output.references, &mut all);
                }
            }
            What::Call(_) | What::Block(_) => {}
        }
        all.into_list()
    }

    /// Adds what names and references in an instance need, seen from the root.
    fn gather(&mut self, config: &Config, instance: usize, names: &[Name], references: &[Reference], all: &mut Gathered) {
        let here = &config.modules[instance];
        for reference in references {
            all.add(Reference { address: reference.address.in_module(&here.path), ..reference.clone() });
        }
        for name in names {
            match name {
                Name::Variable(_) if instance == 0 => {}
                Name::Variable(name) => self.add_known(instance, What::Variable(name.clone()), all),
                Name::Local(name) => self.add_known(instance, What::Local(name.clone()), all),
                Name::Output { call, key, output } => {
                    let Some(called) = here.children.get(call) else {
                        // How often it stands is not known: what needs it must not be taken for what needs nothing.
                        if let Some(span) = config.home(instance).calls.get(call).map(|c| c.span) {
                            let mut path = here.path.clone();
                            path.push(ModuleStep::new(call));
                            all.add(Reference { address: Address::of_module(path), attribute: None, span });
                        }
                        continue;
                    };
                    let is_joined = called.instances.len() > 1 && !matches!(key, KeyUse::Literal(_));
                    for output in outputs(config, called, output.as_ref()) {
                        if is_joined {
                            self.joined(config, instance, call, called, &output).iter().for_each(|r| all.add(r.clone()));
                        } else {
                            called.meant(key).into_iter().for_each(|child| self.add_known(child, What::Output(output.clone()), all));
                        }
                    }
                }
            }
        }
    }

    fn add_known(&self, instance: usize, what: What, all: &mut Gathered) {
        self.known.get(&(instance, what)).into_iter().flat_map(|l| l.iter()).for_each(|r| all.add(r.clone()));
    }

    /// What an output of all instances of a module needs. What is in these is named without their keys: one name for n instances, or n
    /// modules that need n others would need n times n.
    fn joined(&mut self, config: &Config, instance: usize, call: &str, called: &Called, output: &str) -> Arc<Vec<Reference>> {
        let name = (instance, call.to_owned(), output.to_owned());
        if let Some(found) = self.joined.get(&name) {
            return Arc::clone(found);
        }
        let mut all = Gathered::default();
        for child in called.instances.values() {
            let path = &config.modules[*child].path;
            let needs = self.known.get(&(*child, What::Output(output.to_owned()))).cloned().unwrap_or_default();
            for reference in needs.iter() {
                let mut reference = reference.clone();
                if reference.address.module.starts_with(path) {
                    reference.address.module[path.len() - 1].key = None;
                }
                all.add(reference);
            }
        }
        let found = Arc::new(all.into_list());
        self.joined.insert(name, Arc::clone(&found));
        found
    }

    /// Makes the instances of a module that is called in an instance of another.
    fn call(&mut self, config: &mut Config, tree: &Tree, node: usize, parent: usize, name: &str, diagnostics: &mut Diagnostics) {
        let Some(&child) = tree.nodes[node].children.get(name) else { return };
        let Some((_, call)) = &tree.nodes[child].call else { return };
        let mut path = config.modules[parent].path.clone();
        path.push(ModuleStep::new(name));
        let repetition = match &call.repeat {
            Repeat::None => Some(Repetition::Single),
            Repeat::Wrong => None,
            repeat => {
                let address = Address::of_module(path.clone());
                self.repetition(config, parent, repeat, &call.repeat_names, &call.repeat_references, &address, diagnostics)
            }
        };
        if repetition == Some(Repetition::Open) && !config.any_values {
            let needs = self.enter(config, parent, call);
            config.open_modules.insert(Address::of_module(path), needs.to_vec());
            return;
        }
        let Some(repetition) = repetition else { return };
        let keys = config.evaluated(&repetition);
        if config.modules.len() + keys.len() > MOST {
            return diagnostics.push(too_many(call.span));
        }
        let enter = self.enter(config, parent, call);
        let mut called = Called { repetition, instances: BTreeMap::new() };
        for key in keys {
            let mut path = path.clone();
            if let Some(last) = path.last_mut() {
                last.key.clone_from(&key);
            }
            let instance = add_instance(config, path, parent, call, &enter);
            self.instances[child].push(instance);
            called.instances.insert(key, instance);
        }
        config.modules[parent].children.insert(name.to_owned(), called);
    }

    /// What all in a module needs first.
    fn enter(&mut self, config: &Config, parent: usize, call: &ModuleCall) -> Arc<Vec<Reference>> {
        let around = Arc::clone(&config.modules[parent].enter);
        if call.depends.is_empty() && call.repeat.expr().is_none() {
            return around;
        }
        let mut all = Gathered::default();
        around.iter().for_each(|r| all.add(r.clone()));
        self.gather(config, parent, &call.repeat_names, &call.repeat_references, &mut all);
        self.gather(config, parent, &[], &call.depends, &mut all);
        Arc::new(all.into_list())
    }

    /// How often something stands; `None` if that can't be told, which is reported.
    #[allow(clippy::too_many_arguments)]
    fn repetition(
        &mut self,
        config: &Config,
        instance: usize,
        repeat: &Repeat,
        names: &[Name],
        direct: &[Reference],
        address: &Address,
        diagnostics: &mut Diagnostics,
    ) -> Option<Repetition> {
        let mut needs = Gathered::default();
        self.gather(config, instance, names, direct, &mut needs);
        // What is unknown without a block being involved is so because of an error that was reported.
        let own = needs.list.is_empty();
        let is_wrong = |r: &Reference| config.blocks.get(&r.address.block()).is_some_and(|b| matches!(b.repeat, Repeat::Wrong));
        let behind_wrong = needs.list.iter().any(is_wrong);
        let evaluator = Evaluator::with_memo(config, self.resolver, std::mem::take(&mut self.memo));
        let mut errors = Errors::default();
        let found = match repeat {
            Repeat::Count(expr) => count(&evaluator, expr, instance, &mut errors),
            Repeat::ForEach(expr) => for_each(&evaluator, expr, instance, &mut errors),
            Repeat::None | Repeat::Wrong => Err(Untold::Wrong),
        };
        let reported = self.failed || diagnostics.has_errors() || !evaluator.memo.late.borrow().is_empty();
        let mut repetition = match found {
            Ok(repetition) => Some(repetition),
            Err(Untold::Open(_)) if config.any_values => Some(Repetition::Open),
            Err(Untold::Open(told)) if !((own || behind_wrong) && reported) => {
                self.open.push(told.at(address));
                Some(Repetition::Open)
            }
            Err(_) => None,
        };
        diagnostics.extend(evaluator.finish(errors).into_iter().map(|d| d.at(address)));
        self.memo = evaluator.memo;
        if config.any_values {
            return repetition.map(|_| Repetition::Open);
        }
        if let (Some(Repetition::ForEach(entries)), false) = (&mut repetition, own) {
            // What comes from instances is evaluated again by each pass, whose instances these are.
            entries.iter_mut().filter(|(key, value)| value.as_str() != Some(key)).for_each(|(_, value)| *value = crate::eval::unknown());
        }
        repetition
    }

    /// Completes what blocks and outputs need: what their names stand for, and what the modules around them need first.
    fn connect(mut self, config: &mut Config) {
        let mut found = Vec::with_capacity(config.blocks.len());
        for (address, block) in &config.blocks {
            let (instance, here) = (block.module, &config.modules[block.module]);
            if instance == 0 && block.names.is_empty() {
                continue;
            }
            let mut all = Gathered::default();
            self.gather(config, instance, &block.names, &block.references, &mut all);
            for (around, names) in defaults::needs(config, block) {
                self.gather(config, around, names, &[], &mut all);
            }
            here.enter.iter().for_each(|r| all.add(r.clone()));
            found.push((address.clone(), all.into_list()));
        }
        for (address, references) in found {
            if let Some(block) = config.blocks.get_mut(&address) {
                block.references = references;
            }
        }
        let outputs: Vec<_> = config.outputs.iter().map(|(n, o)| (n.clone(), o.names.clone(), o.references.clone())).collect();
        for (name, names, references) in outputs {
            let mut all = Gathered::default();
            self.gather(config, 0, &names, &references, &mut all);
            if let Some(output) = config.outputs.get_mut(&name) {
                output.references = all.into_list();
            }
        }
    }
}

/// The outputs that a use of a module means.
fn outputs(config: &Config, called: &Called, output: Option<&String>) -> Vec<String> {
    let Some(first) = called.instances.values().next() else { return Vec::new() };
    config.home(*first).outputs.keys().filter(|n| output.is_none_or(|o| o == *n)).cloned().collect()
}

/// Adds an instance with its blocks.
fn add_instance(config: &mut Config, path: Vec<ModuleStep>, parent: usize, call: &Arc<ModuleCall>, enter: &Arc<Vec<Reference>>) -> usize {
    let number = config.modules.len();
    let unit = call.unit.clone();
    let overridden = overridden(config, &path);
    for block in unit.iter().filter(|_| overridden.is_none()).flat_map(|u| u.blocks.values()) {
        let mut block = ResourceBlock { address: block.address.in_module(&path), module: number, ..block.clone() };
        for trigger in &mut block.lifecycle.replace_triggered_by {
            trigger.address = trigger.address.in_module(&path);
        }
        config.blocks.insert(block.address.clone(), block);
    }
    config.places.insert(path.clone(), number);
    config.modules.push(ModuleInstance {
        path,
        unit,
        parent,
        call: Some(Arc::clone(call)),
        children: BTreeMap::new(),
        enter: Arc::clone(enter),
        overridden,
    });
    number
}

/// What a test says of an instance of a module, or of all of them.
fn overridden(config: &Config, path: &[ModuleStep]) -> Option<Arc<Object>> {
    let mut address = Address::of_module(path.to_vec());
    let of_one = config.overridden.get(&address);
    if let Some(last) = address.module.last_mut() {
        last.key = None;
    }
    of_one.or_else(|| config.overridden.get(&address)).cloned()
}

/// Takes in the `moved` blocks of modules. A directory that is called several times says it of each of its calls.
fn take_moved(config: &mut Config, tree: &Tree) {
    for node in tree.nodes.iter().skip(1) {
        let Some(unit) = &node.unit else { continue };
        let module = crate::moved::names(&node.path);
        config.moved.extend(unit.moved.iter().map(|m| Moved { module: module.clone(), ..m.clone() }));
    }
}

/// Takes in the `removed` blocks of modules, and refuses those about modules that are still called.
fn take_removed(config: &mut Config, tree: &Tree, diagnostics: &mut Diagnostics) {
    for node in tree.nodes.iter().skip(1) {
        let Some(unit) = &node.unit else { continue };
        for (address, removed) in &unit.removed {
            config.removed.insert(address.in_module(&node.path), removed.clone());
        }
    }
    for (address, removed) in config.removed.iter().filter(|(a, _)| !a.module.is_empty()) {
        let Some(node) = tree.nodes.iter().find(|n| n.path == address.module) else { continue };
        let unit = node.unit.as_deref().and_then(|u| u.blocks.get(&address.outside_of_modules()));
        let there = if address.is_module() { node.call.as_ref().map(|(_, c)| c.span) } else { unit.map(|b| b.span) };
        // What a module says of itself was refused when it was read.
        let is_said = node.unit.as_deref().is_some_and(|u| u.removed.contains_key(&address.outside_of_modules()));
        if let (Some(there), false) = (there, is_said) {
            diagnostics.push(crate::removed::still_there(address, removed.span, there));
        }
    }
}
