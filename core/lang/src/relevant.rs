//! Which attributes of resources what changes is made of, however many locals, variables, outputs and modules lie between: for those outside who
//! ask of a change made by others whether it matters. From the text alone, as in Terraform.

use std::collections::BTreeSet;

use karmaform_model::{Address, Key, ModuleStep};

use crate::config::{Config, Repeat, ResourceBlock};
use crate::modules::ModuleCall;
use crate::references::{KeyUse, Target, Visit, literal_key, target, walk};
use crate::syntax::{Body, Expr, Step, StepKind};

/// A part of a resource: its address, as far as the text names an instance, and the way to the part, which is empty for all of it.
pub type Relevant = (Address, Vec<Key>);

impl Config {
    /// All outputs of modules, each with the instance of a module that gives it.
    pub fn outputs_of_modules(&self) -> impl Iterator<Item = (&[ModuleStep], &String)> {
        let called = self.modules.iter().filter_map(|m| Some((m.path.as_slice(), m.unit.as_ref()?)));
        called.flat_map(|(path, unit)| unit.outputs.keys().map(move |name| (path, name)))
    }

    /// What these resources, these root outputs and these outputs of modules are made of. What is not in the text is made of nothing.
    pub fn relevant<'a, 'b>(
        &self,
        resources: impl Iterator<Item = &'a Address>,
        outputs: impl Iterator<Item = &'a String>,
        of_modules: impl Iterator<Item = (&'b [ModuleStep], &'b String)>,
    ) -> BTreeSet<Relevant> {
        let mut search = Search { root: self, found: BTreeSet::new(), seen: BTreeSet::new(), open: Vec::new() };
        for address in resources {
            let inside = Address { module: Vec::new(), ..address.block() };
            if let Some(block) = search.unit(&address.module).and_then(|unit| unit.blocks.get(&inside))
                && search.is_new(&address.module, inside.to_string())
            {
                search.block(&address.module, block);
            }
        }
        for output in outputs.filter_map(|name| self.outputs.get(name)) {
            search.expr(&[], None, &output.value);
        }
        for (module, name) in of_modules {
            if let Some(output) = search.unit(module).and_then(|unit| unit.outputs.get(name)) {
                search.expr(module, None, &output.value);
            }
        }
        while let Some((at, around, expr)) = search.open.pop() {
            search.look(&at, around, expr);
        }
        search.found
    }
}

/// What `each` stands for, if for anything.
type Around<'c> = Option<&'c Repeat>;

struct Search<'c> {
    root: &'c Config,
    found: BTreeSet<Relevant>,
    /// What was followed already, by its module and its name there.
    seen: BTreeSet<(Vec<ModuleStep>, String)>,
    /// What is still to be looked at: a list, since one thing may be made of another for thousands of steps.
    open: Vec<(Vec<ModuleStep>, Around<'c>, &'c Expr)>,
}

impl<'c> Search<'c> {
    fn unit(&self, at: &[ModuleStep]) -> Option<&'c Config> {
        self.root.unit_at(at)
    }

    fn call(&self, at: &[ModuleStep]) -> Option<&'c ModuleCall> {
        let (last, around) = at.split_last()?;
        self.unit(around)?.calls.get(&last.name).map(|call| &**call)
    }

    fn block(&mut self, at: &[ModuleStep], block: &'c ResourceBlock) {
        self.body(at, Some(&block.repeat), &block.body, true);
    }

    fn body(&mut self, at: &[ModuleStep], around: Around<'c>, body: &'c Body, outer: bool) {
        for attribute in body.attributes.iter().filter(|a| !(outer && crate::blocks::META.contains(&a.name.as_str()))) {
            self.expr(at, around, &attribute.expr);
        }
        for block in body.blocks.iter().filter(|b| !(outer && b.kind == "lifecycle")) {
            self.body(at, around, &block.body, false);
        }
    }

    fn expr(&mut self, at: &[ModuleStep], around: Around<'c>, expr: &'c Expr) {
        self.open.push((at.to_vec(), around, expr));
    }

    fn look(&mut self, at: &[ModuleStep], around: Around<'c>, expr: &'c Expr) {
        let mut met = Vec::new();
        walk(expr, &mut |visit| {
            if let Visit::Reference { name, steps, .. } = visit {
                met.extend(target(name, steps).map(|target| (target, steps)));
            }
        });
        for (target, steps) in met {
            self.follow(at, around, target, steps);
        }
    }

    fn is_new(&mut self, at: &[ModuleStep], name: String) -> bool {
        self.seen.insert((at.to_vec(), name))
    }

    fn follow(&mut self, at: &[ModuleStep], around: Around<'c>, target: Target, steps: &'c [Step]) {
        match target {
            Target::Variable(name) => {
                let given = self.call(at).and_then(|call| Some(&call.arguments.get(&name)?.expr));
                if let (Some(expr), Some((_, outside))) = (given, at.split_last())
                    && self.is_new(at, format!("var.{name}"))
                {
                    // What a module is called for each of is not followed, as in Terraform.
                    self.expr(outside, None, expr);
                }
            }
            Target::Local(name) => {
                if let Some(local) = self.unit(at).and_then(|unit| unit.locals.get(&name))
                    && self.is_new(at, format!("local.{name}"))
                {
                    self.expr(at, None, &local.expr);
                }
            }
            Target::Each(_) => {
                if let Some(Repeat::ForEach(expr)) = around {
                    self.expr(at, None, expr);
                }
            }
            Target::Count(_) => {
                if let Some(Repeat::Count(expr)) = around {
                    self.expr(at, None, expr);
                }
            }
            Target::Module { call, key, used } => {
                // Behind a splat, or a key that is not written out, all outputs are meant.
                let is_told = matches!(key, KeyUse::None | KeyUse::Literal(_));
                let key = if let KeyUse::Literal(key) = key { Some(key) } else { None };
                let inside: Vec<ModuleStep> = at.iter().cloned().chain([ModuleStep { name: call, key }]).collect();
                let Some(unit) = self.unit(&inside) else { return };
                let named = steps.get(used).filter(|_| is_told);
                let output = named.and_then(|s| if let StepKind::Attribute(name) = &s.kind { Some(name) } else { None });
                for (name, value) in unit.outputs.iter().filter(|(name, _)| output.is_none_or(|o| o == *name)) {
                    if self.is_new(&inside, format!("output.{name}")) {
                        self.expr(&inside, None, &value.value);
                    }
                }
            }
            Target::Block { address, key, used } => {
                // Behind a key that is not written out nobody can tell what is meant: all of it.
                let is_told = matches!(key, KeyUse::None | KeyUse::Literal(_));
                let key = if let KeyUse::Literal(key) = key { Some(key) } else { None };
                let way: Vec<Key> = steps[used..].iter().filter(|_| is_told).map_while(way_on).collect();
                let part = if let Some(Key::Name(name)) = way.first() { Some(name.clone()) } else { None };
                let block = self.unit(at).and_then(|unit| unit.blocks.get(&address));
                let name = format!("{address}.{}", part.clone().unwrap_or_default());
                self.found.insert((address.with_key(key).in_module(at), way));
                let Some(block) = block.filter(|_| self.is_new(at, name)) else { return };
                // What an argument is made of matters as much as the argument, and all arguments do where all of it is meant.
                match part.map(|part| block.body.attribute(&part)) {
                    None => self.block(at, block),
                    Some(attribute) => attribute.into_iter().for_each(|a| self.expr(at, Some(&block.repeat), &a.expr)),
                }
            }
            Target::Path(_) | Target::Tool(_) | Target::Own | Target::Alone => {}
        }
    }
}

/// A step that the text tells.
fn way_on(step: &Step) -> Option<Key> {
    match &step.kind {
        StepKind::Attribute(name) => Some(Key::Name(name.clone())),
        StepKind::LegacyIndex(at) => Some(Key::Index(*at)),
        StepKind::Index(key) => literal_key(key),
        StepKind::AttributeSplat | StepKind::FullSplat => None,
    }
}
