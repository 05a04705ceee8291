//! `check` blocks: what is said of the world as it is, beside what is made of it. What does not hold is a warning and stops nothing.
//! Also gives what became of all other conditions, for who keeps that.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, CheckKind, CheckStatus, Checked, Diagnostic, Diagnostics, ModuleStep, Severity, Span};

use crate::conditions::{self, Verdict};
use crate::config::{Condition, Config, ResourceBlock};
use crate::decode::{self, Shape, check_shape};
use crate::eval::Errors;
use crate::evaluator::Evaluator;
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::Block;

/// What checks, outputs and variables are called in addresses.
const CHECK: &str = "check";
const OUTPUT: &str = "output";
const VARIABLE: &str = "var";

/// A `check` block.
#[derive(Clone, Debug)]
pub struct Check {
    /// Where its header stands.
    pub span: Span,
    /// The data source that only this block sees, as its module names it.
    pub(crate) data: Option<Address>,
    pub(crate) asserts: Vec<Condition>,
}

/// What one instance of a `check` block says.
#[derive(Clone, Debug)]
pub struct CheckSaid {
    /// `check.NAME`, in its module.
    pub address: Address,
    /// The data source that only this check sees.
    pub data: Option<Address>,
    /// What each `assert` says, and where it stands.
    pub asserts: Vec<(Verdict, Span)>,
    /// Why some of them can't be evaluated, as warnings.
    pub wrong: Diagnostics,
}

impl Config {
    /// The `check` block of an address like `module.m.check.NAME`.
    pub fn check(&self, address: &Address) -> Option<&Check> {
        let number = self.places.get(&address.module).filter(|_| address.kind == CHECK)?;
        self.home(*number).checks.get(&address.name)
    }

    /// The check that a data source belongs to, if that is the only one that sees it.
    pub fn check_of(&self, data: &Address) -> Option<Address> {
        let name = self.block(data)?.check.as_ref()?;
        Some(Address::managed(CHECK, name).in_module(&data.module))
    }

    /// All that has conditions, each by its place in the text, as what nobody has judged; also where nothing of it stands.
    pub fn unjudged(&self) -> Vec<Checked> {
        let mut all = BTreeSet::new();
        self.add_conditions(&[], &mut all);
        // Of a module of which one instance alone is replaced the others ask.
        let replaced: Vec<_> = self.overridden.keys().filter(|module| **module == module.configuration()).collect();
        let is_overridden = |address: &Address| replaced.iter().any(|module| address.is_within(module));
        let these = all.into_iter().filter(|(_, address)| !is_overridden(address));
        these.map(|(kind, address)| checked(kind, address, vec![Verdict::Unknown])).collect()
    }

    /// Of all that has conditions what is not among these: nothing of it stands, so that nobody asks it.
    pub fn absent_checks(&self, judged: &[Checked], status: CheckStatus) -> Vec<Checked> {
        let told: BTreeSet<_> = judged.iter().map(|one| (one.kind, one.configuration())).collect();
        let rest = self.unjudged().into_iter().filter(|one| !told.contains(&(one.kind, one.address.clone())));
        rest.map(|one| Checked { status, is_absent: true, ..one }).collect()
    }

    /// What has conditions in this directory, and in those of the modules that it calls.
    fn add_conditions(&self, path: &[ModuleStep], all: &mut BTreeSet<(CheckKind, Address)>) {
        let named = |kind: &str, name: &String| Address::managed(kind, name).in_module(path);
        let has_conditions = |b: &&ResourceBlock| !(b.preconditions.is_empty() && b.postconditions.is_empty());
        let blocks = self.blocks.values().filter(|b| b.address.module.is_empty()).filter(has_conditions);
        all.extend(blocks.map(|b| (CheckKind::Resource, b.address.in_module(path))));
        all.extend(self.checks.keys().map(|name| (CheckKind::Check, named(CHECK, name))));
        let outputs = self.outputs.iter().filter(|(_, o)| !o.preconditions.is_empty());
        all.extend(outputs.map(|(name, _)| (CheckKind::Output, named(OUTPUT, name))));
        let variables = self.declared.iter().filter(|(_, v)| v.conditions().next().is_some());
        all.extend(variables.map(|(name, _)| (CheckKind::Variable, named(VARIABLE, name))));
        for (name, unit) in self.calls.iter().filter_map(|(name, call)| Some((name, call.unit()?))) {
            let inside: Vec<_> = path.iter().cloned().chain([ModuleStep::new(name)]).collect();
            unit.add_conditions(&inside, all);
        }
    }

    /// All of them, with the instance of a module that each stands in.
    fn all_checks(&self) -> impl Iterator<Item = (usize, &str, &Check)> {
        let numbers = (0..self.modules.len()).filter(|n| self.modules[*n].overridden.is_none());
        numbers.flat_map(|number| self.home(number).checks.iter().map(move |(name, check)| (number, name.as_str(), check)))
    }
}

impl Evaluator<'_> {
    /// What all `check` blocks say, in every instance of their modules.
    pub fn check_blocks(&self) -> Vec<CheckSaid> {
        let said = self.config.all_checks().map(|(number, name, check)| {
            let path = &self.config.modules[number].path;
            let address = Address::managed(CHECK, name).in_module(path);
            let site = Site::in_module(number);
            let mut errors = Errors::default();
            let verdict = |a: &Condition| (conditions::verdict(self, a, &Scope::new(&site), &mut errors), a.condition.span);
            let asserts = check.asserts.iter().map(verdict).collect();
            let softened = |d: Diagnostic| Diagnostic { severity: Severity::Warning, ..d.at(&address) };
            let wrong = self.finish(errors).into_iter().map(softened).collect();
            CheckSaid { data: check.data.as_ref().map(|d| d.in_module(path)), address, asserts, wrong }
        });
        said.collect()
    }

    /// What became of all other conditions: of resources, outputs and variables. What is wrong with them is told elsewhere.
    pub fn conditions(&self) -> Vec<Checked> {
        let mut all = Vec::new();
        for block in self.config.blocks.values().filter(|b| !(b.preconditions.is_empty() && b.postconditions.is_empty())) {
            all.extend(block.repetition.keys().into_iter().map(|key| self.judged(block, block.address.with_key(key))));
        }
        for number in 0..self.config.modules.len() {
            let (home, path, site) = (self.config.home(number), &self.config.modules[number].path, Site::in_module(number));
            let is_there = self.config.modules[number].overridden.is_none();
            for (name, output) in home.outputs.iter().filter(|(_, o)| is_there && !o.preconditions.is_empty()) {
                let verdicts = self.verdicts(output.preconditions.iter(), &Scope::new(&site));
                all.push(checked(CheckKind::Output, Address::managed(OUTPUT, name).in_module(path), verdicts));
            }
            for (name, variable) in home.declared.iter().filter(|(_, v)| v.conditions().next().is_some()) {
                let verdicts = self.verdicts(variable.conditions(), &Scope::new(&site));
                all.push(checked(CheckKind::Variable, Address::managed(VARIABLE, name).in_module(path), verdicts));
            }
        }
        all
    }

    /// What the conditions of an instance of a block say, as the resolver knows it now; nothing of what has no block.
    pub fn conditions_of(&self, instance: &Address) -> Option<Checked> {
        self.config.block(instance).filter(|_| !instance.is_child()).map(|block| self.judged(block, instance.clone()))
    }

    fn judged(&self, block: &ResourceBlock, instance: Address) -> Checked {
        let site = crate::attributes::site(self, block, instance.key.as_ref());
        let scope = Scope::new(&site);
        let mut verdicts = self.verdicts(block.preconditions.iter(), &scope);
        if !block.postconditions.is_empty() {
            let own = [(conditions::SELF, self.instance(&instance))];
            verdicts.extend(scope.bind(&own, |scope| self.verdicts(block.postconditions.iter(), scope)));
        }
        checked(CheckKind::Resource, instance, verdicts)
    }

    fn verdicts<'c>(&self, all: impl IntoIterator<Item = &'c Condition>, scope: &Scope<'_>) -> Vec<Verdict> {
        all.into_iter().map(|c| conditions::verdict(self, c, scope, &mut Errors::silent())).collect()
    }
}

/// What several conditions of one thing come to: the worst of them.
fn checked(kind: CheckKind, address: Address, verdicts: Vec<Verdict>) -> Checked {
    let status = verdicts.iter().map(Verdict::status).min().unwrap_or(CheckStatus::Pass);
    let broken = verdicts.into_iter().filter_map(|v| if let Verdict::Broken(message) = v { Some(message) } else { None });
    let mut problems: Vec<_> = broken.collect();
    problems.sort();
    Checked { kind, address, status, problems, is_absent: false }
}

/// The data sources that stand in `check` blocks, each with the name of its block.
pub(crate) fn data_of(blocks: &[Block], diagnostics: &mut Diagnostics) -> Vec<(String, Block)> {
    let mut all = Vec::new();
    for block in blocks {
        let [label] = block.labels.as_slice() else { continue };
        for (number, data) in block.body.blocks("data").enumerate() {
            if number > 0 {
                let error = Diagnostic::error("Block written twice", "A check has one data source of its own.");
                let hint = "Write another check block, or move the data source out of the check.";
                diagnostics.push(error.with_span(Some(data.span)).with_hint(hint));
                continue;
            }
            for name in ["count", "for_each"] {
                if let Some(attribute) = data.body.attribute(name) {
                    let error = Diagnostic::error("Repeated data source in a check", format!("\"{name}\" has no use in a check."));
                    let hint = "Move the data source out of the check, and refer to all of its instances in the assert.";
                    diagnostics.push(error.with_span(Some(attribute.name_span)).with_hint(hint));
                }
            }
            all.push((label.text.clone(), data.clone()));
        }
    }
    all
}

/// All `check` blocks by name. Their data sources are among the blocks of the configuration by now.
pub(crate) fn read(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<String, Check> {
    let mut all: BTreeMap<String, Check> = BTreeMap::new();
    let data: BTreeMap<&str, &Address> = config.blocks.values().filter_map(|b| Some((b.check.as_deref()?, &b.address))).collect();
    for block in blocks {
        let Some(name) = decode::labels(block, ["NAME"], diagnostics).and_then(|[label]| decode::name(label, diagnostics)) else {
            continue;
        };
        check_shape(&block.body, &Shape { what: "a \"check\" block", attributes: &[], blocks: &["data", "assert"] }, diagnostics);
        if block.body.blocks("assert").next().is_none() {
            let error = Diagnostic::error("Missing block", format!("The check \"{name}\" asserts nothing."));
            diagnostics.push(error.with_span(Some(block.span)).with_hint("Write assert { condition = ... error_message = ... } in it."));
        }
        let asserts: Vec<_> = block.body.blocks("assert").filter_map(|b| decode::condition(b, diagnostics)).collect();
        // Of two data sources of one name the first one is there, and that there are two is told; what the other check asserts is not looked at then.
        let of_first = block.body.blocks("data").find_map(|data| {
            let [kind, name] = data.labels.as_slice() else { return None };
            config.blocks.get(&Address::data(&kind.text, &name.text))?.check.as_deref()
        });
        let is_sure = of_first.is_none_or(|first| first == name);
        for expr in asserts.iter().filter(|_| is_sure).flat_map(|a| [&a.condition, &a.message]) {
            let place = Place { check: Some(name), ..Place::default() };
            diagnostics.extend(statics::check(config, expr, place, &mut Vec::new()));
        }
        if let Some(first) = all.get(name) {
            diagnostics.push(decode::double(&format!("the check \"{name}\""), block.span, first.span));
            continue;
        }
        let data = data.get(name).map(|address| (*address).clone());
        all.insert(name.to_owned(), Check { span: block.span, data, asserts });
    }
    all
}
