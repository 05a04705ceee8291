//! A state, a stored resource, and outputs as text. Secrets are masked.

use std::collections::BTreeMap;

use karmaform_model::{Address, Catalog, OutputState, ResourceState, Snapshot, Status};

use super::attributes::presentable;
use super::json::state::attributes;
use super::resource::{schema_of, title};
use super::style::{Mark, Theme, Tone};
use super::values::{Manner, Printer, key_texts, untyped};

/// The whole state.
pub(crate) fn state_text(snapshot: &Snapshot, registry: &Catalog, theme: &Theme) -> String {
    let current = snapshot.resources.iter().map(|(address, resource)| resource_text(address, None, resource, registry, theme));
    let deposed = snapshot.deposed.iter().map(|((address, key), resource)| resource_text(address, Some(key), resource, registry, theme));
    let mut out = current.chain(deposed).collect::<Vec<_>>().join("\n");
    if !snapshot.outputs.is_empty() {
        out.push_str(&format!("{}{}\n\n", if out.is_empty() { "\n" } else { "\n\n" }, theme.strong(Tone::Plain, "Outputs:")));
        let mut printer = Printer::comparing(Manner { untyped: true });
        for (name, output) in &snapshot.outputs {
            let name = key_texts(std::iter::once(name), false).remove(0);
            let value = untyped(&output.value).secret_if(output.sensitive);
            printer.value(0, Mark::None, &format!("{name} = "), &value, "");
        }
        out.push_str(&printer.finish(theme));
    }
    if out.is_empty() { "The state file is empty. No resources are represented.\n".to_owned() } else { out }
}

/// One stored resource.
pub(crate) fn resource_text(
    address: &Address,
    deposed: Option<&String>,
    resource: &ResourceState,
    registry: &Catalog,
    theme: &Theme,
) -> String {
    let schema = schema_of(registry, address.mode, &resource.resource_type);
    let object = presentable(&attributes(address, resource, registry), schema, &[]);
    let mark = match (deposed, resource.status) {
        (Some(key), _) => format!(" (deposed object {key})"),
        (None, Status::Ready) => String::new(),
        (None, Status::Tainted) => " (tainted)".to_owned(),
        (None, Status::Unfinished) => " (unfinished: a run was cut off while it worked on this)".to_owned(),
    };
    let mut printer = Printer::default();
    printer.line(0, Mark::None, format!("{} {{", title(address, &resource.resource_type)));
    printer.one_sided(4, Mark::None, schema, &object);
    printer.line(0, Mark::None, "}");
    format!("{}\n{}", theme.strong(Tone::Plain, &format!("# {address}:{mark}")), printer.finish(theme))
}

/// `name = value`, one after the other; sensitive ones as `<sensitive>`.
pub(crate) fn outputs_text(outputs: &BTreeMap<String, OutputState>, theme: &Theme) -> String {
    let mut printer = Printer::default();
    // Names are not padded: this is how people and scripts know it.
    for (name, output) in outputs {
        let name = key_texts(std::iter::once(name), false).remove(0);
        if output.sensitive || output.value.secret {
            printer.line(0, Mark::None, format!("{name} = <sensitive>"));
        } else {
            printer.line(0, Mark::None, format!("{name} = {}", karmaform_lang::render(&output.value)));
        }
    }
    printer.finish(theme)
}
