//! Reads the top level of a test file.

use std::collections::BTreeSet;

use karmaform_model::{Catalog, Diagnostic, Diagnostics, FileId};

use super::{TestFile, mocks, overrides, runs};
use crate::config::Config;
use crate::context::Context;
use crate::decode;
use crate::source::SourceFile;
use crate::suggest;
use crate::syntax::{Attribute, Block, parse_tests};

const KNOWN: [&str; 6] = ["variables", "run", "mock_provider", overrides::RESOURCE, overrides::DATA, overrides::MODULE];

/// Reads a test file, with all that is wrong with it.
pub fn read_tests(file: FileId, source: &SourceFile, context: &Context, registry: &Catalog) -> (TestFile, Diagnostics) {
    let parsed = parse_tests(file, source, registry);
    let mut diagnostics = parsed.diagnostics;
    let config = Config::empty(context.clone(), registry.clone(), false);
    let mut tests = TestFile::default();
    for attribute in &parsed.body.attributes {
        let error = Diagnostic::error("Argument outside of a block", format!("\"{}\" stands in no block.", attribute.name));
        let hint = "Values of variables stand in variables { ... }.";
        diagnostics.push(error.with_span(Some(attribute.name_span)).with_hint(hint));
    }
    let mut first = None;
    let mut names = BTreeSet::new();
    for block in &parsed.body.blocks {
        match block.kind.as_str() {
            "variables" => match first {
                None => {
                    first = Some(block.span);
                    tests.variables = values(block, &mut diagnostics);
                }
                Some(first) => diagnostics.push(decode::second("the block \"variables\" of this file", block.span, first)),
            },
            "run" => {
                let run = runs::read(&config, block, &names, &mut diagnostics);
                let Some(run) = run else { continue };
                match tests.runs.iter().find(|r| r.name == run.name) {
                    Some(first) => diagnostics.push(decode::double(&format!("the run \"{}\"", run.name), run.span, first.span)),
                    None => {
                        names.insert(run.name.clone());
                        tests.runs.push(run);
                    }
                }
            }
            overrides::RESOURCE | overrides::DATA | overrides::MODULE => {
                overrides::read(&config, block, false, &mut tests.overrides, &mut diagnostics);
            }
            "mock_provider" => mocks::read(&config, block, &mut tests.mocks, &mut diagnostics),
            _ => diagnostics.push(unknown_block(block)),
        }
    }
    // As a reader goes through the text, whatever found it.
    let mut sorted: Vec<_> = diagnostics.into_iter().collect();
    sorted.sort_by_key(|d| d.span.map(|s| s.start));
    (tests, sorted.into_iter().collect())
}

/// The lines of a `variables` block.
pub(super) fn values(block: &Block, diagnostics: &mut Diagnostics) -> Vec<Attribute> {
    decode::labels(block, [], diagnostics);
    for nested in &block.body.blocks {
        let error = Diagnostic::error("Block among values", "A \"variables\" block holds only NAME = VALUE lines.");
        diagnostics.push(error.with_span(Some(nested.span)).with_hint("For an object write NAME = { ... } with the equals sign."));
    }
    block.body.attributes.clone()
}

fn unknown_block(block: &Block) -> Diagnostic {
    let name = block.kind.as_str();
    let not_supported =
        |hint: &str| Diagnostic::error("Block not supported", format!("A test file has no block \"{name}\" here.")).with_hint(hint);
    let error = match name {
        "provider" => not_supported(
            "What a provider takes for granted stands in the configuration, and may be made of variables that the test sets. To ask nobody write mock_provider \"NAME\" {}.",
        ),
        "test" => not_supported("Files and runs go one after the other; leave it out."),
        "variable" => not_supported("Variables are declared in the configuration. Values for them stand in variables { NAME = VALUE }."),
        _ => {
            let error = Diagnostic::slip("Unknown block", format!("A test file has no block \"{name}\"."));
            error.with_hint(suggest::hint(name, KNOWN).unwrap_or_else(|| format!("There are {}.", suggest::listed(KNOWN))))
        }
    };
    error.with_span(Some(block.kind_span))
}
