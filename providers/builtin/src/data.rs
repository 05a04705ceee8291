//! `terraform_data`: passes a value through and gives others something to depend on. Behaves as Terraform's does.
//!
//! Lives in the state alone, so there is nothing to look at.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Kind, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan, same, same_and_alike,
};
use uuid::Uuid;

pub(crate) struct TerraformData {
    schema: Schema,
}

impl TerraformData {
    pub(crate) fn new() -> Self {
        let schema = Schema::new(
            "Keeps a value in the state. It glues: `output` gives what `input` was at the last apply, and `triggers_replace` \
             gives others something to be replaced by.",
            vec![
                Attribute::optional("input", Type::Any, "Any value; `output` gives it back once it is applied.").typed(),
                Attribute::optional("triggers_replace", Type::Any, "Any value; a change replaces the resource.").typed().forces_replace(),
                Attribute::computed("output", Type::Any, "The input of the last apply.").echoes("input"),
                Attribute::computed("id", Type::String, "A random UUID, new with every replacement."),
            ],
        )
        .state_only();
        Self { schema }
    }
}

/// What `output` is while `input` waits to be applied: of the same type, and secret where that is. A new one with a null input has a null output at
/// once.
fn output_to_come(input: &Value, is_new: bool) -> Value {
    if input.is_null() && is_new { input.clone() } else { to_come(input) }
}

/// The value as nobody knows it yet: in one piece, but where only some of its parts are secret. These are told apart, or the others would be
/// secret until the next plan, with all that is made of them.
fn to_come(value: &Value) -> Value {
    let is_in_parts = matches!(value.kind, Kind::Object(_) | Kind::Map(..) | Kind::Tuple(_) | Kind::List(..));
    if is_in_parts && !value.secret && value.contains_secret() {
        return value.map_parts(|_, part| to_come(part));
    }
    Value::unknown(value.ty()).secret_if(value.contains_secret())
}

fn is_as_before(before: &Object, after: &Object) -> bool {
    match (before.get("input"), after.get("input")) {
        (Some(a), Some(b)) => same_and_alike(a, b),
        (a, b) => same(a, b),
    }
}

impl ResourceSpec for TerraformData {
    fn name(&self) -> &'static str {
        "terraform_data"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let mut change = default_plan(&self.schema, before, wanted);
        let kept = match &change {
            Change::NoOp { object } => Some(object.get("input").cloned()),
            Change::Update { before, after } => is_as_before(before, after).then(|| after.get("input").cloned()),
            _ => None,
        };
        let is_new = matches!(change, Change::Create { .. } | Change::Replace { .. });
        if let Some(after) = change.after_mut() {
            let input = after.get("input").cloned().unwrap_or_else(|| Value::null(Type::Any));
            // What stays is taken from the input and not from the state, which keeps no marks of computed attributes.
            let output = kept.flatten().unwrap_or_else(|| output_to_come(&input, is_new));
            after.insert("output".into(), output);
            if is_new {
                after.insert("id".into(), Value::unknown_not_null(Type::String));
            }
        }
        Ok(change)
    }

    /// As Terraform has it: its id, and nothing else.
    fn imported(&self, id: &str) -> Option<Object> {
        Some(Object::from([("id".to_owned(), id.into())]))
    }

    /// The id is found where it is used. Where nobody uses it, any other is as good.
    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let mut object = wanted.clone();
        let id = found.get("id").and_then(Value::as_str).map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        object.insert("id".into(), id.into());
        let input = object.get("input").cloned().unwrap_or_else(|| Value::null(Type::Any));
        object.insert("output".into(), input);
        Ok(Some(object))
    }
}

impl ResourceType<()> for TerraformData {
    fn observe<'a>(&'a self, (): &'a (), ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(ask.known.clone()) })
    }

    fn apply<'a>(&'a self, (): &'a (), change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(after) = change.after() else { return Ok(None) };
            let mut object = after.clone();
            let input = object.get("input").cloned().unwrap_or_else(|| Value::null(Type::Any));
            object.insert("output".into(), input);
            if object.get("id").and_then(Value::as_str).is_none() {
                object.insert("id".into(), Uuid::new_v4().to_string().into());
            }
            Ok(Some(object))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use karmaform_model::Action;

    use super::*;

    const NOW: PlanContext = PlanContext { now: 0 };

    fn object(parts: &[(&str, Value)]) -> Object {
        parts.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect()
    }

    fn plan(before: Option<&Object>, wanted: &Object) -> Change {
        TerraformData::new().plan(&NOW, before, Some(wanted)).unwrap()
    }

    fn applied(change: &Change) -> Object {
        block_on(TerraformData::new().apply(&(), change)).unwrap().unwrap()
    }

    /// Applies `first`, goes through the state, then plans `second`: the action, and what is known of output and id.
    fn check(first: &[(&str, Value)], second: &[(&str, Value)], action: Action, output: &str, keeps_id: bool) {
        let schema = TerraformData::new().schema;
        let stored = schema.encode(&applied(&plan(None, &object(first))));
        let before = schema.decode(&stored).unwrap();
        let change = plan(Some(&before), &object(second));
        assert_eq!(change.action(), action, "{second:?}");
        let after = change.after().unwrap();
        assert_eq!(format!("{:?}", after["output"]), output, "{second:?}");
        assert_eq!(after["id"] == before["id"], keeps_id, "{second:?}");
    }

    #[test]
    fn a_new_one_has_an_unknown_output_of_the_type_of_its_input() {
        let change = plan(None, &object(&[("input", Value::strings(["a"]))]));
        let after = change.after().unwrap();
        assert_eq!(format!("{:?} {:?}", after["output"], after["id"]), "unknown(list(string)) unknown(string)");
        let done = applied(&change);
        assert_eq!(done["output"], done["input"]);
        assert_eq!(done["id"].as_str().unwrap().len(), 36);
        let empty = plan(None, &Object::new());
        assert!(empty.after().unwrap()["output"].is_null());
    }

    #[test]
    fn each_kind_of_change() {
        let null = || Value::null(Type::Any);
        let tuple = Value::tuple(vec![1i64.into(), "a".into()]);
        check(&[("input", "a".into())], &[("input", "a".into())], Action::NoOp, r#""a""#, true);
        check(&[("input", tuple.clone())], &[("input", tuple.clone())], Action::NoOp, r#"[1, "a"]"#, true);
        check(&[], &[("input", null())], Action::NoOp, "null(any)", true);
        check(&[("input", "a".into())], &[("input", 5i64.into())], Action::Update, "unknown(number)", true);
        check(&[("input", "a".into())], &[], Action::Update, "unknown(any)", true);
        check(&[("input", "a".into())], &[("input", Value::unknown(Type::String))], Action::Update, "unknown(string)", true);
        let with = |t: i64| [("input", Value::from("a")), ("triggers_replace", t.into())];
        check(&with(1), &with(1), Action::NoOp, r#""a""#, true);
        check(&with(1), &with(2), Action::DestroyThenCreate, "unknown(string)", false);
        check(&with(1), &[("input", "a".into())], Action::DestroyThenCreate, "unknown(string)", false);
    }

    #[test]
    fn an_output_is_secret_where_the_input_is() {
        let secret = Value::object([("user", "u".into()), ("password", Value::from("pw").secret())]);
        let wanted = object(&[("input", secret.clone())]);
        let change = plan(None, &wanted);
        let output = &change.after().unwrap()["output"];
        assert_eq!(output.secret_paths(), secret.secret_paths());
        assert_eq!(format!("{:?}", output.get("user").unwrap()), "unknown(string)");
        let set = plan(None, &object(&[("input", Value::set(Type::String, vec![Value::from("pw").secret()]))]));
        assert!(set.after().unwrap()["output"].secret, "what is in a set has no place of its own");
        let done = applied(&change);
        assert_eq!(done["output"], secret, "the mark sits on the same part");
        let schema = TerraformData::new().schema;
        let before = schema.decode(&schema.encode(&done)).unwrap();
        assert!(!before["output"].contains_secret(), "the state keeps no marks of computed attributes");
        let Change::NoOp { object } = plan(Some(&before), &wanted) else { panic!("a mark is no change") };
        assert_eq!(object["output"], secret);
    }

    #[test]
    fn an_update_keeps_the_id_and_a_delete_leaves_nothing() {
        let first = applied(&plan(None, &object(&[("input", 1i64.into())])));
        let change = plan(Some(&first), &object(&[("input", 2i64.into())]));
        let second = applied(&change);
        assert_eq!(second["id"], first["id"]);
        assert_eq!(second["output"], 2i64.into());
        let kind = TerraformData::new();
        assert_eq!(block_on(kind.apply(&(), &kind.plan(&NOW, Some(&second), None).unwrap())).unwrap(), None);
        let ask =
            Ask { resource_type: kind.name().to_owned(), identity: Object::new(), known: Some(second.clone()), wanted: None, begun: false };
        assert_eq!(block_on(kind.observe(&(), &ask)).unwrap(), Some(second));
    }
}
