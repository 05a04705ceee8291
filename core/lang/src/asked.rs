//! Which outputs of modules a part of everything asks for, however many locals, variables and modules lie between. From the text alone, and without
//! keys: as in Terraform, what asks one instance of a module asks all.

use std::collections::BTreeSet;

use karmaform_model::{Address, ModuleStep};

use crate::config::{Config, Output, Reference};
use crate::modules::Name;
use crate::references::KeyUse;

/// An output of a module: the way to the module without keys, and its name.
pub type Asked = (Vec<ModuleStep>, String);

impl Config {
    /// The outputs of modules that go into these resources and these root outputs, or that these wait for.
    pub fn asked_of_modules<'a>(
        &self,
        resources: impl Iterator<Item = &'a Address>,
        outputs: impl Iterator<Item = &'a String>,
    ) -> BTreeSet<Asked> {
        let mut search = Search { root: self, found: BTreeSet::new(), entered: BTreeSet::new(), seen: BTreeSet::new(), open: Vec::new() };
        for address in resources {
            let at = without_keys(&address.module);
            let inside = Address { module: Vec::new(), ..address.block() };
            if let Some(block) = self.unit_at(&at).and_then(|unit| unit.blocks.get(&inside)) {
                search.enter(&at);
                search.names(&at, &block.names);
            }
        }
        for output in outputs.filter_map(|name| self.outputs.get(name)) {
            search.output(&[], output);
        }
        while let Some((at, name)) = search.open.pop() {
            search.follow(&at, &name);
        }
        search.found
    }
}

/// The way to a module, for all of its instances.
fn without_keys(path: &[ModuleStep]) -> Vec<ModuleStep> {
    path.iter().map(|step| ModuleStep::new(&step.name)).collect()
}

struct Search<'c> {
    root: &'c Config,
    found: BTreeSet<Asked>,
    /// Modules of which it was asked what they wait for.
    entered: BTreeSet<Vec<ModuleStep>>,
    /// What was followed already, or will be.
    seen: BTreeSet<(Vec<ModuleStep>, Name)>,
    /// What is still to be followed: a list, since one thing may be made of another for thousands of steps.
    open: Vec<(Vec<ModuleStep>, Name)>,
}

impl Search<'_> {
    fn names(&mut self, at: &[ModuleStep], names: &[Name]) {
        for name in names {
            let one = (at.to_vec(), name.clone());
            if self.seen.insert(one.clone()) {
                self.open.push(one);
            }
        }
    }

    /// How often a module stands, and what all of it waits for; the same of those around it.
    fn enter(&mut self, at: &[ModuleStep]) {
        let root = self.root;
        let mut inside = at;
        while let Some((last, around)) = inside.split_last() {
            if !self.entered.insert(inside.to_vec()) {
                return;
            }
            if let Some(call) = root.unit_at(around).and_then(|unit| unit.calls.get(&last.name)) {
                self.names(around, &call.repeat_names);
                self.wholes(around, &call.depends);
            }
            inside = around;
        }
    }

    fn output(&mut self, at: &[ModuleStep], output: &Output) {
        self.names(at, &output.names);
        self.wholes(at, &output.references);
    }

    /// Modules that are waited for as a whole.
    fn wholes(&mut self, at: &[ModuleStep], references: &[Reference]) {
        for module in references.iter().map(|r| &r.address).filter(|a| a.is_module()) {
            if let Some((last, between)) = module.module.split_last() {
                let around = [at.to_vec(), without_keys(between)].concat();
                self.names(&around, &[Name::Output { call: last.name.clone(), key: KeyUse::None, output: None }]);
            }
        }
    }

    fn follow(&mut self, at: &[ModuleStep], name: &Name) {
        let root = self.root;
        let Some(unit) = root.unit_at(at) else { return };
        match name {
            Name::Variable(name) => {
                let Some((last, around)) = at.split_last() else { return };
                let call = root.unit_at(around).and_then(|unit| unit.calls.get(&last.name));
                if let Some(argument) = call.and_then(|call| call.arguments.get(name)) {
                    self.names(around, &argument.names);
                }
            }
            Name::Local(name) => {
                if let Some(local) = unit.locals.get(name) {
                    self.names(at, &local.names);
                }
            }
            Name::Output { call, output, .. } => {
                let inside = [at.to_vec(), vec![ModuleStep::new(call)]].concat();
                let Some(unit) = root.unit_at(&inside) else { return };
                self.enter(&inside);
                for (name, given) in unit.outputs.iter().filter(|(name, _)| output.as_ref().is_none_or(|o| o == *name)) {
                    self.found.insert((inside.clone(), name.clone()));
                    self.output(&inside, given);
                }
            }
        }
    }
}
