//! A state, a stored resource, and outputs as text. Secrets are masked.

use std::collections::BTreeMap;

use karmaform_model::{Address, Catalog, Kind, OutputState, ResourceState, Snapshot, Status, Value};

use super::attributes::presentable;
use super::json::state::attributes;
use super::resource::{schema_of, title};
use super::style::{Mark, Theme, Tone};
use super::values::{Manner, Printer, key_texts};

/// The whole state.
pub(crate) fn state_text(snapshot: &Snapshot, registry: &Catalog, theme: &Theme) -> String {
    let current = snapshot.resources.iter().map(|(address, resource)| (address, None, resource));
    let deposed = snapshot.deposed.iter().map(|((address, key), resource)| (address, Some(key), resource));
    let mut out = String::new();
    let mut before: Option<&Address> = None;
    for (address, key, resource) in current.chain(deposed) {
        // As Terraform: what is in another module stands further apart.
        out.push_str(before.map_or("", |b| if b.module == address.module { "\n" } else { "\n\n" }));
        out.push_str(&resource_text(address, key, resource, registry, theme));
        before = Some(address);
    }
    if !snapshot.outputs.is_empty() {
        out.push_str(&format!("\n\n{}\n\n", theme.strong(Tone::Plain, "Outputs:")));
        let mut printer = Printer::comparing(Manner { untyped: true, whole: false });
        for (name, output) in &snapshot.outputs {
            let name = key_texts(std::iter::once(name), false).remove(0);
            let value = without_nulls(&output.value).secret_if(output.sensitive);
            printer.value(0, Mark::None, &format!("{name} = "), &value, "");
        }
        out.push_str(&printer.finish(theme));
    }
    if out.is_empty() { "The state file is empty. No resources are represented.\n".to_owned() } else { out }
}

/// The value without what is null in its objects, as Terraform tells outputs. In a map, where keys are data, it stays.
fn without_nulls(value: &Value) -> Value {
    let mut value = value.map_parts(|_, part| without_nulls(part));
    if let Kind::Object(entries) = &mut value.kind {
        entries.retain(|_, part| !part.is_null());
    }
    value
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
            printer.line(0, Mark::None, format!("{name} = {}", karmaform_lang::render(&output.value.clone().as_stored())));
        }
    }
    printer.finish(theme)
}

#[cfg(test)]
mod tests {
    use karmaform_model::{Encoded, Type};

    use super::*;

    #[test]
    fn modules_and_outputs_stand_apart() {
        let resource = ResourceState {
            resource_type: "t".into(),
            provider: "p".into(),
            schema_version: 0,
            attributes: Encoded::default(),
            secret_paths: vec![],
            dependencies: vec![],
            create_before_destroy: false,
            protected: false,
            status: Status::Ready,
        };
        let resources = ["t.a", "t.b", "module.m.t.c"].map(|address| (address.parse::<Address>().unwrap(), resource.clone())).into();
        let outputs = [("o".to_owned(), OutputState { value: 1i64.into(), sensitive: false })].into();
        let snapshot = Snapshot { resources, outputs, ..Snapshot::default() };
        let text = state_text(&snapshot, &Catalog::default(), &Theme::plain());
        let heads: Vec<&str> = text.split("}\n").filter_map(|part| part.split(':').next()).collect();
        assert_eq!(heads, ["# t.a", "\n# t.b", "\n\n# module.m.t.c", "\n\nOutputs"], "{text}");
    }

    #[test]
    fn outputs_of_a_state_tell_maps_from_objects() {
        let null = || Value::null(Type::String);
        let map = Value::map(Type::String, [("a".to_owned(), Value::from("x")), ("n".to_owned(), null())].into());
        let value = Value::object([("b", 2i64.into()), ("m", map), ("n", null())]);
        let outputs = [("o".to_owned(), OutputState { value, sensitive: false })].into();
        let text = state_text(&Snapshot { outputs, ..Snapshot::default() }, &Catalog::default(), &Theme::plain());
        let expected = "o = {\n    b = 2\n    m = {\n        \"a\" = \"x\"\n        \"n\" = null\n    }\n}\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
