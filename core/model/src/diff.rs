//! The schema-driven difference that every resource type has unless it says otherwise.

use std::borrow::Cow;

use crate::schema::Connection;
use crate::{Block, Change, Kind, Object, Path, ReplaceOrder, Schema, Type, Value};

/// The part of a connection value that says *which* thing it reaches; the rest only says how.
const CONNECTION_IDENTITY: &str = "id";

/// Compares what is with what is wanted, by the schema alone.
///
/// `wanted` holds what the configuration says; computed attributes that it leaves out keep their value on update and are unknown on
/// create. Write-only attributes are carried but not compared, volatile ones are dropped. Of a connection only its `id` is compared, so
/// that a new user name or key file is no change to everything on the host.
pub fn default_plan(schema: &Schema, before: Option<&Object>, wanted: Option<&Object>) -> Change {
    match (before, wanted) {
        (None, None) => Change::NoOp { object: Object::new() },
        (Some(before), None) => Change::Delete { before: before.clone() },
        (None, Some(wanted)) => Change::Create { after: completed(schema, None, wanted) },
        (Some(before), Some(wanted)) => {
            let after = completed(schema, Some(before), wanted);
            let mut changed = false;
            let mut because = Vec::new();
            for Comparison { name, forces_replace, compared, typed } in comparisons(schema) {
                let is_same = match (before.get(name), after.get(name)) {
                    _ if !compared => true,
                    (a, b) if schema.connection == Connection::Attribute(name) => same(connection_id(a), connection_id(b)),
                    (Some(a), Some(b)) if typed => same_and_alike(a, b),
                    (a, b) => same(a, b),
                };
                if !is_same {
                    changed = true;
                    if forces_replace || schema.connection == Connection::Attribute(name) {
                        because.push(Path::attribute(name));
                    }
                }
            }
            if !because.is_empty() {
                let after = completed(schema, None, wanted);
                return Change::Replace { before: before.clone(), after, order: ReplaceOrder::DestroyFirst, because };
            }
            if changed { Change::Update { before: before.clone(), after } } else { Change::NoOp { object: after } }
        }
    }
}

/// How a part of an object is compared.
struct Comparison {
    name: &'static str,
    forces_replace: bool,
    compared: bool,
    typed: bool,
}

fn comparisons(schema: &Schema) -> impl Iterator<Item = Comparison> + '_ {
    let attributes = schema.attributes.iter().map(|a| Comparison {
        name: a.name,
        forces_replace: a.forces_replace,
        compared: a.is_stored(),
        typed: a.typed,
    });
    let block = |b: &Block| Comparison { name: b.name, forces_replace: false, compared: true, typed: false };
    attributes.chain(schema.blocks.iter().map(block))
}

fn connection_id(value: Option<&Value>) -> Option<&Value> {
    value.map(|v| v.get(CONNECTION_IDENTITY).unwrap_or(v))
}

/// The wanted object with what only the provider can say filled in. A copy of what is if nothing is different, so that both share it.
fn completed(schema: &Schema, before: Option<&Object>, wanted: &Object) -> Object {
    let attributes = schema.attributes.iter().filter(|a| !a.volatile).map(|attribute| {
        let given = wanted.get(attribute.name).filter(|v| !(attribute.is_computed() && v.is_null()));
        let value = match (given, attribute.is_computed()) {
            (Some(value), _) => Cow::Borrowed(value),
            (None, true) => match before.and_then(|b| b.get(attribute.name)) {
                Some(value) => Cow::Borrowed(value),
                None => Cow::Owned(Value::unknown(attribute.ty.clone())),
            },
            (None, false) => Cow::Owned(Value::null(attribute.ty.clone())),
        };
        (attribute.name, value)
    });
    let blocks = schema.blocks.iter().map(|block| {
        let null = || Cow::Owned(Value::null(block.ty()));
        (block.name, wanted.get(block.name).map_or_else(null, Cow::Borrowed))
    });
    let parts: Vec<(&str, Cow<'_, Value>)> = attributes.chain(blocks).collect();
    let is_all = |object: &&Object| object.len() == parts.len() && parts.iter().all(|(name, value)| object.get(name) == Some(value));
    let mut after = match before.filter(is_all) {
        Some(before) => before.clone(),
        None => parts.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect(),
    };
    schema.mark(&mut after);
    after
}

/// True if two values are the same to a user: marks and the type of a null don't matter, an unknown is the same as nothing.
pub fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let null = Value::null(Type::Any);
    same_kind(&a.unwrap_or(&null).kind, &b.unwrap_or(&null).kind)
}

/// [`same`], and of the same type: `[1]` and `tolist([1])` differ, as they do to Terraform where any type may stand.
pub fn same_and_alike(a: &Value, b: &Value) -> bool {
    // As JSON: whether an attribute of an object was optional in a constraint is nothing that a value has. All nulls are one.
    same(Some(a), Some(b)) && (a.is_null() || a.ty().to_json() == b.ty().to_json())
}

fn same_kind(a: &Kind, b: &Kind) -> bool {
    match (a, b) {
        (Kind::Unknown(_), _) | (_, Kind::Unknown(_)) => false,
        (Kind::Null(_), Kind::Null(_)) => true,
        (Kind::List(_, x) | Kind::Tuple(x), Kind::List(_, y) | Kind::Tuple(y)) | (Kind::Set(_, x), Kind::Set(_, y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same_kind(&p.kind, &q.kind))
        }
        (Kind::Map(_, x) | Kind::Object(x), Kind::Map(_, y) | Kind::Object(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|((n, p), (m, q))| n == m && same_kind(&p.kind, &q.kind))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Attribute};

    fn schema() -> Schema {
        Schema::new(
            "",
            vec![
                Attribute::required("host", Type::Any, ""),
                Attribute::required("path", Type::String, "").identity(),
                Attribute::optional("content", Type::String, ""),
                Attribute::computed("sha256", Type::String, ""),
                Attribute::optional("hint", Type::String, "").write_only(),
                Attribute::computed("age", Type::Number, "").volatile(),
            ],
        )
        .through("host")
    }

    fn object(parts: &[(&str, &str)]) -> Object {
        parts.iter().map(|(n, v)| ((*n).to_owned(), Value::from(*v))).collect()
    }

    fn host(id: &str, user: &str) -> Value {
        Value::object([("id", id.into()), ("user", user.into())])
    }

    #[test]
    fn each_kind_of_difference() {
        let mut before = object(&[("path", "/a"), ("content", "x"), ("sha256", "s")]);
        before.insert("host".into(), host("h1", "root"));
        let mut wanted = object(&[("path", "/a"), ("content", "x"), ("hint", "now")]);
        wanted.insert("host".into(), host("h1", "admin"));
        let plan = |before: Option<&Object>, wanted: Option<&Object>| default_plan(&schema(), before, wanted);

        let Change::NoOp { object: refreshed } = plan(Some(&before), Some(&wanted)) else { panic!() };
        assert_eq!(refreshed["host"], host("h1", "admin"), "how to reach it is refreshed without a change");

        let mut other = wanted.clone();
        other.insert("content".into(), "y".into());
        let update = plan(Some(&before), Some(&other));
        assert_eq!(update.action(), Action::Update);
        assert_eq!(update.after().unwrap()["sha256"], "s".into(), "computed values stay on update");

        other.insert("host".into(), host("h2", "root"));
        assert_eq!(plan(Some(&before), Some(&other)).action(), Action::DestroyThenCreate);
        let create = plan(None, Some(&wanted));
        assert!(create.after().unwrap()["sha256"].is_unknown());
        assert!(!create.after().unwrap().contains_key("age"));
        assert_eq!(plan(Some(&before), None).action(), Action::Delete);
    }

    #[test]
    fn an_unknown_wanted_value_is_a_change() {
        let before = object(&[("path", "/a"), ("content", "x")]);
        let mut wanted = object(&[("path", "/a")]);
        wanted.insert("content".into(), Value::unknown(Type::String));
        assert_eq!(default_plan(&schema(), Some(&before), Some(&wanted)).action(), Action::Update);
    }
}
