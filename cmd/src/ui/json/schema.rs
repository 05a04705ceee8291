//! What blocks may hold, in the format of Terraform's `providers schema -json`.

use std::collections::BTreeMap;

use karmaform_model::{Attribute, Catalog, Nesting, Presence, ResourceEntry, Schema};
use serde_json::{Map, Value as Json, json};

use super::plan::COMPOSITES;
use super::provider_name;

/// The schemas of all providers: format 1.0.
pub(crate) fn schemas(registry: &Catalog) -> Json {
    let mut providers: BTreeMap<String, Json> = BTreeMap::new();
    let mut entry = |provider: &str, what: &str, name: &str, schema: &Schema| {
        let all = providers.entry(provider_name(provider)).or_insert_with(|| json!({}));
        all[what][name] = with_version(schema);
    };
    for name in registry.resource_names() {
        match registry.resource(name) {
            Some(ResourceEntry::Type(driver, spec)) => entry(driver.name(), "resource_schemas", name, spec.schema()),
            Some(ResourceEntry::Composite(composite)) => entry(COMPOSITES, "resource_schemas", name, composite.schema()),
            None => {}
        }
    }
    for name in registry.data_names() {
        if let Some(source) = registry.data_source(name) {
            entry(source.driver.name(), "data_source_schemas", name, source.schema);
        }
    }
    for driver in registry.providers() {
        let all = providers.entry(provider_name(driver.name())).or_insert_with(|| json!({}));
        all["provider"] = with_version(driver.schema());
    }
    json!({ "format_version": "1.0", "provider_schemas": providers })
}

fn with_version(schema: &Schema) -> Json {
    json!({ "version": schema.version, "block": block(schema) })
}

fn block(schema: &Schema) -> Json {
    let mut out = json!({ "description_kind": "plain" });
    if !schema.doc.is_empty() {
        out["description"] = json!(schema.doc);
    }
    if !schema.attributes.is_empty() {
        out["attributes"] = schema.attributes.iter().map(|a| (a.name.to_owned(), attribute(a))).collect::<Map<_, _>>().into();
    }
    if !schema.blocks.is_empty() {
        let blocks = schema.blocks.iter().map(|b| {
            let nesting = match b.nesting {
                Nesting::Single => "single",
                Nesting::List => "list",
                Nesting::Map => "map",
            };
            (b.name.to_owned(), json!({ "nesting_mode": nesting, "block": block(&b.schema) }))
        });
        out["block_types"] = blocks.collect::<Map<_, _>>().into();
    }
    out
}

fn attribute(attribute: &Attribute) -> Json {
    let mut out = json!({ "type": attribute.ty.to_json(), "description_kind": "plain" });
    if !attribute.doc.is_empty() {
        out["description"] = json!(attribute.doc);
    }
    let who: &[&str] = match attribute.presence {
        Presence::Required => &["required"],
        Presence::Optional => &["optional"],
        Presence::Computed => &["computed"],
        Presence::OptionalComputed => &["optional", "computed"],
    };
    let marks = [("sensitive", attribute.secret), ("write_only", attribute.write_only)];
    for name in who.iter().copied().chain(marks.into_iter().filter_map(|(name, is)| is.then_some(name))) {
        out[name] = json!(true);
    }
    out
}

#[cfg(test)]
mod tests {
    use karmaform_model::{Block, Type};

    use super::*;

    #[test]
    fn a_schema_is_told_as_terraform_does() {
        let inner = Schema::new("", vec![Attribute::required("port", Type::Number, "In bytes.")]);
        let schema = Schema::new(
            "A thing.",
            vec![
                Attribute::optional("tags", Type::map(Type::String), ""),
                Attribute::computed("any", Type::Any, ""),
                Attribute::optional_computed("key", Type::String, "").secret(),
            ],
        )
        .with_blocks(vec![Block { name: "rule", nesting: Nesting::List, schema: inner }]);
        assert_eq!(
            with_version(&schema),
            json!({ "version": 0, "block": {
                "description": "A thing.",
                "description_kind": "plain",
                "attributes": {
                    "any": { "type": "dynamic", "description_kind": "plain", "computed": true },
                    "key": { "type": "string", "description_kind": "plain", "optional": true, "computed": true, "sensitive": true },
                    "tags": { "type": ["map", "string"], "description_kind": "plain", "optional": true },
                },
                "block_types": { "rule": { "nesting_mode": "list", "block": {
                    "description_kind": "plain",
                    "attributes": {
                        "port": { "type": "number", "description": "In bytes.", "description_kind": "plain", "required": true },
                    },
                } } },
            } })
        );
    }

    #[test]
    fn all_that_this_binary_has_is_told() {
        let registry = crate::Wiring::real().registry;
        let schemas = schemas(&registry);
        let count = |what: &str| -> usize {
            let providers = schemas["provider_schemas"].as_object().unwrap().values();
            providers.map(|p| p[what].as_object().map_or(0, Map::len)).sum()
        };
        assert_eq!(count("resource_schemas"), registry.resource_names().len());
        assert_eq!(count("data_source_schemas"), registry.data_names().len());
        let providers = &schemas["provider_schemas"];
        assert!(providers["karmaform.io/karmaform/karmaform"]["resource_schemas"]["etcd_cluster"].is_object());
        assert!(providers["terraform.io/builtin/terraform"]["resource_schemas"]["terraform_data"].is_object());
        assert!(providers["karmaform.io/karmaform/ssh"]["provider"]["block"]["attributes"].is_object());
    }
}
