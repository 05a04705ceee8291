//! A state as `show -json` gives it, and outputs as `output -json` does.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Catalog, Object, OutputState, ResourceState, Snapshot, Status, implied_from_json, to_json};
use serde_json::{Map, Value as Json, json};

use super::{known, known_object, naming, provider_name, shape_object};
use crate::app::TERRAFORM;
use crate::ui::attributes::marked;
use crate::ui::resource::schema_of;

/// The state representation.
pub(crate) fn state(snapshot: Option<&Snapshot>, registry: &Catalog) -> Json {
    match snapshot {
        None => json!({ "format_version": "1.0" }),
        Some(snapshot) => {
            let mut out = json!({ "format_version": "1.0", "terraform_version": TERRAFORM });
            if !snapshot.resources.is_empty() || !snapshot.deposed.is_empty() || !snapshot.outputs.is_empty() {
                out["values"] = values(snapshot, registry);
                if !snapshot.checks.is_empty() {
                    out["checks"] = super::checks::checks(&snapshot.checks, |_| true);
                }
            }
            out
        }
    }
}

fn values(snapshot: &Snapshot, registry: &Catalog) -> Json {
    let mut out = json!({});
    if !snapshot.outputs.is_empty() {
        out["outputs"] = Json::Object(snapshot.outputs.iter().map(|(n, o)| (n.clone(), masked_output(o))).collect());
    }
    let current = snapshot.resources.iter().map(|(a, r)| (a, None, r));
    let deposed = snapshot.deposed.iter().map(|((a, d), r)| (a, Some(d), r));
    let mut all: Vec<_> = current.chain(deposed).collect();
    all.sort_by_key(|(address, deposed, _)| (&address.module, deposed.is_some()));
    let needs = needs(snapshot);
    out["root_module"] = super::by_module(all.into_iter().map(|(a, d, r)| (a, resource(a, d, r, &needs, registry))));
    out
}

/// What each block needs, by its address in the configuration: of all its instances.
type Needs = BTreeMap<Address, BTreeSet<Address>>;

fn needs(snapshot: &Snapshot) -> Needs {
    let mut all = Needs::new();
    for (address, resource) in &snapshot.resources {
        all.entry(address.configuration()).or_default().extend(resource.dependencies.iter().map(Address::configuration));
    }
    all
}

/// What a resource depends on as Terraform tells it: blocks without keys, and all that these depend on.
fn dependencies(resource: &ResourceState, needs: &Needs) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<Address> = resource.dependencies.iter().map(Address::configuration).collect();
    while let Some(address) = open.pop() {
        if !found.contains(&address) {
            open.extend(needs.get(&address).into_iter().flatten().cloned());
            found.insert(address);
        }
    }
    found.iter().map(ToString::to_string).collect()
}

fn resource(address: &Address, deposed: Option<&String>, resource: &ResourceState, needs: &Needs, registry: &Catalog) -> Json {
    let object = attributes(address, resource, registry);
    let mut out = naming(address, &resource.resource_type);
    out.insert("provider_name".into(), json!(provider_name(&resource.provider)));
    out.insert("schema_version".into(), json!(resource.schema_version));
    out.insert("values".into(), Json::Object(known_object(&object)));
    out.insert("sensitive_values".into(), shape_object(&object, &|v| v.secret));
    if !resource.dependencies.is_empty() {
        out.insert("depends_on".into(), json!(dependencies(resource, needs)));
    }
    if resource.status == Status::Tainted {
        out.insert("tainted".into(), json!(true));
    }
    if let Some(deposed) = deposed {
        out.insert("deposed_key".into(), json!(deposed));
    }
    Json::Object(out)
}

/// The stored attributes as values, with all secret marks. Of a type that this binary does not know, as the JSON shows them.
pub(crate) fn attributes(address: &Address, resource: &ResourceState, registry: &Catalog) -> Object {
    let schema = schema_of(registry, address.mode, &resource.resource_type);
    let decoded = schema.and_then(|s| resource.attributes.decoded(s).ok());
    let object = decoded.unwrap_or_else(|| resource.attributes.iter().map(|(n, j)| (n.clone(), implied_from_json(j))).collect());
    marked(object, schema, &resource.secret_paths).as_entries().cloned().unwrap_or_default()
}

fn masked_output(output: &OutputState) -> Json {
    let mut out = json!({ "sensitive": output.sensitive, "type": output.value.ty().to_json() });
    if let Some(value) = known(&output.value) {
        out["value"] = value;
    }
    out
}

/// `output -json`: sensitive values are in clear here, as whoever asks for them by this command wants them.
pub(crate) fn outputs(outputs: &BTreeMap<String, OutputState>) -> Json {
    let one = |o: &OutputState| json!({ "sensitive": o.sensitive, "type": o.value.ty().to_json(), "value": to_json(&o.value) });
    Json::Object(outputs.iter().map(|(n, o)| (n.clone(), one(o))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use karmaform_model::Value;

    use super::*;

    #[test]
    fn no_secret_is_in_the_state_representation() {
        let mut snapshot = Snapshot { tool_version: "0.1.0".into(), ..Snapshot::default() };
        let resource = ResourceState {
            resource_type: "x".into(),
            provider: "terraform".into(),
            schema_version: 0,
            attributes: json!({ "a": "hunter2", "b": 1 }).as_object().cloned().unwrap_or_default().into(),
            secret_paths: vec![karmaform_model::Path::attribute("a")],
            dependencies: vec![],
            create_before_destroy: false,
            protected: false,
            status: Status::Tainted,
        };
        snapshot.resources.insert(Address::managed("x", "y"), resource);
        snapshot.outputs.insert("o".into(), OutputState { value: Value::from("hunter2").secret(), sensitive: true });
        let json = state(Some(&snapshot), &Catalog::default());
        assert!(!json.to_string().contains("hunter2"), "{json}");
        assert_eq!(
            json["values"]["root_module"]["resources"][0],
            json!({
                "address": "x.y", "mode": "managed", "type": "x", "name": "y", "provider_name": "terraform.io/builtin/terraform",
                "schema_version": 0, "values": { "a": null, "b": 1 }, "sensitive_values": { "a": true }, "tainted": true
            })
        );
        assert_eq!(state(None, &Catalog::default()), json!({ "format_version": "1.0" }));
        assert_eq!(outputs(&snapshot.outputs), json!({ "o": { "sensitive": true, "type": "string", "value": "hunter2" } }));
    }
}
