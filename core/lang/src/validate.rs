//! Finds what only evaluation finds, before anything is read: every block and output evaluated with unknown results of all others, and where
//! the configuration was loaded for any values of its variables, once for all instances.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Diagnostics, Span};

use crate::conditions::{self, PRECONDITION};
use crate::config::Config;
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::modules::Sort;
use crate::scope::{Scope, Site};
use crate::variables::Declaration;

/// Instances of one block mostly make the same mistakes; more of them would only repeat the message.
const INSTANCES: usize = 3;

/// Evaluates the first instances of every block, every output, and what goes into and out of the first instances of every module.
pub fn validate(config: &Config) -> Diagnostics {
    let evaluator = Evaluator::new(config, &NothingKnown);
    let mut all = Diagnostics::new();
    // Of a block in a module, those in all instances of the module count together.
    let mut seen: BTreeMap<Address, usize> = BTreeMap::new();
    for block in config.blocks.values() {
        let count = seen.entry(block.address.configuration()).or_default();
        for key in config.evaluated(&block.repetition).into_iter().take(INSTANCES.saturating_sub(*count)) {
            let instance = block.address.with_key(key);
            let (_, mut found) = evaluator.arguments(&instance);
            found.extend(evaluator.is_protected(&instance).1);
            // There may be no such instance, and what else it would be made of may change: that is for who plans.
            let found: Diagnostics = found.into_iter().filter(|d| d.summary != PRECONDITION).collect();
            *count += 1;
            if found.has_errors() {
                *count = INSTANCES;
            }
            all.extend(found);
            if *count >= INSTANCES {
                break;
            }
        }
    }
    for name in config.outputs.keys() {
        all.extend(evaluator.output(name).1);
    }
    let mut seen: BTreeMap<Address, usize> = BTreeMap::new();
    let mut of_rules = Errors::default();
    for (number, module) in config.modules.iter().enumerate() {
        let count = seen.entry(Address::of_module(module.path.clone()).configuration()).or_default();
        *count += 1;
        if *count > INSTANCES {
            continue;
        }
        let home = config.home(number);
        home.declared.keys().for_each(|n| drop(evaluator.named(number, Sort::Variable, n)));
        home.locals.names().for_each(|n| drop(evaluator.named(number, Sort::Local, n)));
        if number > 0 {
            home.outputs.keys().for_each(|n| drop(evaluator.named(number, Sort::Output, n)));
            home.defaults.keys().for_each(|n| drop(evaluator.named(number, Sort::Provider, n)));
        }
        // Where values count, loading has asked the rules of them.
        if config.any_values {
            let site = Site::in_module(number);
            let rules = home.declared.values().flat_map(Declaration::conditions);
            rules.for_each(|rule| conditions::mistakes(&evaluator, rule, &Scope::new(&site), &mut of_rules));
        }
    }
    // What was met up to here is no warning of a check that is asked next.
    all.extend(evaluator.finish(Errors::default()));
    all.extend(evaluator.check_blocks().into_iter().flat_map(|said| said.wrong));
    // A rule may have been asked already of what a call gives, and stands in each instance of its module.
    let mut told: BTreeSet<_> = all.iter().map(|d| (d.span, d.summary.clone())).collect();
    all.extend(of_rules.list.into_iter().filter(|d| told.insert((d.span, d.summary.clone()))));
    all
}

/// What is wrong beside what loading told, and can be told with it. Where something was dropped, or did not parse, that is nothing: it would follow
/// from that. So does what is found at the place of an error.
pub fn validate_beside(config: &Config, told: &Diagnostics) -> Diagnostics {
    if told.iter().any(|d| d.is_error() && !d.leaves_names) {
        return Diagnostics::new();
    }
    let wrong: Vec<Span> = told.iter().filter(|d| d.is_error()).filter_map(|d| d.span).collect();
    // A place between two characters is one, too.
    let end = |span: Span| span.end.max(span.start + 1);
    let overlaps = |a: Span| wrong.iter().any(|b| a.file == b.file && a.start < end(*b) && b.start < end(a));
    validate(config).into_iter().filter(|d| !d.span.is_some_and(overlaps)).collect()
}
