//! Finds what only evaluation finds, before anything is read: every block and output evaluated with unknown results of all others.

use karmaform_model::Diagnostics;

use crate::config::Config;
use crate::evaluator::{Evaluator, Unknowns};

/// Instances of one block mostly make the same mistakes; more of them would only repeat the message.
const INSTANCES: usize = 3;

/// Evaluates the first instances of every block, and every output.
pub fn validate(config: &Config) -> Diagnostics {
    let evaluator = Evaluator::new(config, &Unknowns);
    let mut all = Diagnostics::new();
    for block in config.blocks.values() {
        for key in block.repetition.keys().into_iter().take(INSTANCES) {
            let (_, found) = evaluator.arguments(&block.address.with_key(key));
            let failed = found.has_errors();
            all.extend(found);
            if failed {
                break;
            }
        }
    }
    for name in config.outputs.keys() {
        all.extend(evaluator.output(name).1);
    }
    for name in config.locals.names() {
        evaluator.local(name);
    }
    all.extend(evaluator.finish(crate::eval::Errors::default()));
    all
}
