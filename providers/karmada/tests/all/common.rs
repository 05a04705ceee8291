//! Arguments of a control plane, and a look at what it expands into.

use std::collections::BTreeMap;

use karmaform_karmada::composites;
use karmaform_model::{Address, Child, ChildStep, Composite, Diagnostics, Expansion, Object, Type, Value, implied_from_json, to_json};
use serde_json::{Value as Json, json};

/// The composite's address in all tests.
pub(crate) fn address() -> Address {
    Address::managed("karmada_control_plane", "prod")
}

/// The composite.
pub(crate) fn composite() -> std::sync::Arc<dyn Composite> {
    composites().into_iter().find(|c| c.name() == "karmada_control_plane").unwrap()
}

/// The least that a control plane needs.
pub(crate) fn arguments() -> Object {
    object(&json!({
        "version": "1.19.0",
        "kube_version": "1.36.2",
        "etcd": {
            "endpoints": ["https://etcd-0.etcd:2379", "https://etcd-1.etcd:2379"],
            "ca_certificate": "ETCD CA", "certificate": "ETCD CERTIFICATE", "private_key": "ETCD KEY",
        },
        "crds": "crds.tar.gz",
        "kubernetes": { "cluster": { "version": "1.33.1", "connection": { "provider": "kubernetes", "id": "host" } } },
    }))
}

/// An object from JSON.
pub(crate) fn object(json: &Json) -> Object {
    implied_from_json(json).as_entries().unwrap().clone()
}

/// The arguments with more of them; objects are merged.
pub(crate) fn with(json: &Json) -> Object {
    fn merge(base: &mut Json, more: &Json) {
        match (base, more) {
            (Json::Object(base), Json::Object(more)) => {
                for (name, value) in more {
                    merge(base.entry(name.clone()).or_insert(Json::Null), value);
                }
            }
            (base, more) => *base = more.clone(),
        }
    }
    let mut base = to_json(&arguments().into());
    merge(&mut base, json);
    object(&base)
}

/// The arguments with a value that JSON can't say.
pub(crate) fn with_value(name: &str, value: Value) -> Object {
    let mut arguments = arguments();
    arguments.insert(name.to_owned(), value);
    arguments
}

/// Expands.
pub(crate) fn expand(arguments: &Object) -> Result<Expansion, Diagnostics> {
    composite().expand(&address(), arguments)
}

/// A child's path as text, without the composite.
pub(crate) fn path(child: &[ChildStep]) -> String {
    address().with_child(child).to_string().trim_start_matches("karmada_control_plane.prod/").to_owned()
}

/// An attribute of a sibling as the tests see it: `<ca.certificate>`. Keys are secret.
pub(crate) fn lookup(sibling: &[ChildStep], attribute: &str) -> Value {
    let step = &sibling[0];
    let key = step.key.as_ref().map(|k| format!("[{}]", k.to_string().trim_matches(['[', ']', '"']))).unwrap_or_default();
    Value::from(format!("<{}{key}.{attribute}>", step.name)).secret_if(attribute == "private_key")
}

/// The arguments of the children by path, as JSON.
pub(crate) fn children(arguments: &Object) -> BTreeMap<String, Json> {
    let resolved = |child: &Child| {
        let arguments: Object = child.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&lookup))).collect();
        to_json(&arguments.into())
    };
    expand(arguments).unwrap().children.iter().map(|c| (path(&c.path), resolved(c))).collect()
}

/// The manifest of a child.
pub(crate) fn manifest(arguments: &Object, child: &str) -> Json {
    children(arguments).remove(child).unwrap_or_else(|| panic!("no {child}"))["manifest"].take()
}

/// The paths at which the children of two sets of arguments differ.
pub(crate) fn differing(a: &Object, b: &Object) -> Vec<String> {
    let (a, b) = (children(a), children(b));
    let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|n| a.get(*n) != b.get(*n)).cloned().collect()
}

/// An unknown value.
pub(crate) fn later() -> Value {
    Value::unknown(Type::Any)
}
