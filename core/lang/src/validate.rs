//! Finds what only evaluation finds, before anything is read: every block and output evaluated with unknown results of all others, and where
//! the configuration was loaded for any values of its variables, once for all instances.

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostics};

use crate::config::Config;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::modules::Sort;

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
    }
    all.extend(evaluator.check_blocks().into_iter().flat_map(|said| said.wrong));
    all.extend(evaluator.finish(crate::eval::Errors::default()));
    all
}
