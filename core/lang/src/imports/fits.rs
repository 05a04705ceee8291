//! Whether an instance can take something over: it is there, and its type has things outside that can be taken over.

use karmaform_model::{Address, Diagnostic, Mode, ModuleStep, ResourceEntry, Span};

use crate::config::Config;

/// Whether there is such an instance, of a type that can take something over. `by_hand`: no block says so.
pub(super) fn fits(config: &Config, address: Address, span: Span, by_hand: bool) -> Result<Address, Diagnostic> {
    takes_over(config, &address, span, by_hand)?;
    match config.block(&address) {
        Some(block) if block.repetition.has(address.key.as_ref()) => Ok(address),
        Some(block) => {
            let there = match block.repetition.keys().into_iter().flatten().next() {
                Some(key) => address.with_key(Some(key)),
                None => address.block(),
            };
            let hint = if by_hand { format!("Import {there}.") } else { format!("Write to = {there}.") };
            let detail = format!("{} has no such instance.", address.block());
            Err(refused("No such instance", detail, &address, span).with_hint(hint))
        }
        // How often a module stands is not known there, so no instance has an address with its key.
        None if config.any_values && config.is_written(&address) => Ok(address),
        // It may come to be there, and is asked about again then.
        None if !by_hand && is_in_open_module(config, &address) && config.is_written(&address) => Ok(address),
        None => Err(not_configured(&address, span)),
    }
}

/// True if it is not known yet whether a module that it is in has such an instance.
fn is_in_open_module(config: &Config, address: &Address) -> bool {
    let is_open = |steps: &[ModuleStep]| {
        let Some((last, around)) = steps.split_last() else { return false };
        let module = around.iter().cloned().chain([ModuleStep::new(&last.name)]).collect();
        last.key.is_some() && config.open_modules.contains_key(&Address::of_module(module))
    };
    !config.open_modules.is_empty() && (1..=address.module.len()).any(|n| is_open(&address.module[..n]))
}

/// Whether a thing of this type can be taken over.
pub(super) fn takes_over(config: &Config, address: &Address, span: Span, by_hand: bool) -> Result<(), Diagnostic> {
    let error = |summary: &str, detail: String| refused(summary, detail, address, span);
    if address.mode == Mode::Data {
        let error = error("Import of a data source", "A data source is only read, and takes nothing over.".to_owned());
        return Err(error.with_hint(if by_hand { "Nothing is to be done for it: plan reads it." } else { "Delete this block." }));
    }
    match config.registry.resource(&address.kind) {
        Some(ResourceEntry::Composite(_)) => {
            Err(error("Import of a composite", format!("A \"{}\" is made of many things, and no id names them all.", address.kind))
                .with_hint("Where its own marks are on what it made, state rebuild finds all of it."))
        }
        Some(ResourceEntry::Type(_, spec)) if spec.schema().state_only && spec.imported("").is_none() => Err(error(
            "Nothing to import",
            format!("A \"{}\" lives in the state alone: there is no thing outside that could be taken over.", address.kind),
        )
        .with_hint(if by_hand { "Have it made by apply." } else { "Delete this block, and have it made." })),
        _ => Ok(()),
    }
}

/// What is said of a resource that is not there.
pub(super) fn not_configured(address: &Address, span: Span) -> Diagnostic {
    let detail = format!("{} is not configured, and what is imported has to be.", address.block());
    let hint = format!("Write resource \"{}\" \"{}\" {{ ... }} with what the thing is like.", address.kind, address.name);
    refused("Configuration for import target does not exist", detail, address, span).with_hint(hint)
}

fn refused(summary: &str, detail: String, address: &Address, span: Span) -> Diagnostic {
    Diagnostic::error(summary, detail).at(address).with_span(Some(span))
}
