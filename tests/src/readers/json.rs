//! What terraform-json reads of `show -json` (its `plan.go`, `state.go`, `config.go`, `expression.go`, `checks.go`), and through it tf-summarize and others: which
//! keys have which types, which words there are, and what has to be there at all. Go refuses a whole plan for one key of another type.

use serde_json::Value;

use super::life::{STEPS, step};

/// Where something is, for messages.
type Place<'a> = &'a str;
/// A rule for a value at a place.
type Rule<'a> = &'a dyn Fn(&Value, Place<'_>);

fn text(value: &Value, place: Place<'_>) {
    assert!(value.as_str().is_some_and(|t| !t.is_empty()), "{place}: {value}");
}

fn truth(value: &Value, place: Place<'_>) {
    assert!(value.is_boolean(), "{place}: {value}");
}

fn one_of(words: &[&str], value: &Value, place: Place<'_>) {
    assert!(value.as_str().is_some_and(|t| words.contains(&t)), "{place}: {value}");
}

/// A list of these, if it is there.
fn list(value: Option<&Value>, place: Place<'_>, each: Rule<'_>) {
    let Some(value) = value else { return };
    let items = value.as_array().unwrap_or_else(|| panic!("{place}: no list: {value}"));
    items.iter().enumerate().for_each(|(at, item)| each(item, &format!("{place}[{at}]")));
}

/// An object with values like these, if it is there.
fn map(value: Option<&Value>, place: Place<'_>, each: Rule<'_>) {
    let Some(value) = value else { return };
    let entries = value.as_object().unwrap_or_else(|| panic!("{place}: no object: {value}"));
    entries.iter().for_each(|(name, item)| each(item, &format!("{place}.{name}")));
}

/// These keys, each like that if it is there; those with an exclamation mark must be.
fn object(value: &Value, place: Place<'_>, keys: &[(&str, Rule<'_>)]) {
    assert!(value.is_object(), "{place}: {value}");
    for (key, check) in keys {
        let (key, required) = key.strip_suffix('!').map_or((*key, false), |key| (key, true));
        match value.get(key) {
            Some(value) => check(value, &format!("{place}.{key}")),
            None => assert!(!required, "{place}: no {key} in {value}"),
        }
    }
}

/// `1.2`, of the versions from 0.1 to below 2.0.
fn format_version(value: &Value, place: Place<'_>) {
    let parts: Vec<u64> = value.as_str().unwrap_or_default().split('.').filter_map(|p| p.parse().ok()).collect();
    assert!(matches!(parts[..], [0, 1..=u64::MAX] | [1, _]), "{place}: {value}");
}

/// Three numbers, and not below those that tools remember: Atlantis goes other ways below 0.14, terraform-exec refuses what is below 0.12.
pub(super) fn terraform_version(value: &Value, place: Place<'_>) {
    let parts: Vec<u64> = value.as_str().unwrap_or_default().split('.').filter_map(|p| p.parse().ok()).collect();
    assert!(matches!(parts[..], [1..=u64::MAX, _, _]), "{place}: {value}");
}

fn index(value: &Value, place: Place<'_>) {
    assert!(value.is_string() || value.is_u64(), "{place}: {value}");
}

fn object_or_null(value: &Value, place: Place<'_>) {
    assert!(value.is_object() || value.is_null(), "{place}: {value}");
}

/// A shape: objects and lists with `true` where something is so.
fn shape(value: &Value, place: Place<'_>) {
    match value {
        Value::Bool(_) => {}
        Value::Array(_) => list(Some(value), place, &shape),
        Value::Object(_) => map(Some(value), place, &shape),
        _ => panic!("{place}: {value}"),
    }
}

/// Which actions there are; `is_known` also knows those that only newer tools do.
fn actions(value: &Value, place: Place<'_>) {
    let words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let known =
        matches!(words[..], ["no-op" | "create" | "read" | "update" | "delete" | "forget"] | ["delete", "create"] | ["create", "delete"]);
    assert!(known, "{place}: {value}");
}

fn change(value: &Value, place: Place<'_>) {
    let path = |v: &Value, p: Place<'_>| list(Some(v), p, &index);
    object(
        value,
        place,
        &[
            ("actions!", &actions),
            ("before!", &|_, _| {}),
            ("after_unknown!", &shape),
            ("before_sensitive!", &shape),
            ("after_sensitive!", &shape),
            ("importing", &|v, p| object(v, p, &[("id!", &text)])),
            ("replace_paths", &|v, p| list(Some(v), p, &path)),
            ("generated_config", &text),
        ],
    );
}

/// What holds of changes of resources beyond the types: a side is null where there is none, and nothing is both known and unknown.
fn sides(value: &Value, place: Place<'_>) {
    object_or_null(&value["before"], place);
    object_or_null(&value["after"], place);
    let is = |action: &str| value["actions"].as_array().is_some_and(|a| a.iter().any(|w| w == action));
    assert_eq!(value["before"].is_null(), is("create") && !is("delete") || is("read"), "{place}: {value}");
    assert_eq!(value["after"].is_null(), (is("delete") || is("forget")) && !is("create"), "{place}: {value}");
    for (name, unknown) in value["after_unknown"].as_object().into_iter().flatten() {
        let both = *unknown == true && value["after"].get(name).is_some();
        assert!(!both, "{place}: {name} is known and unknown");
    }
}

const REASONS: [&str; 13] = [
    "replace_because_cannot_update",
    "replace_because_tainted",
    "replace_by_request",
    "replace_by_triggers",
    "delete_because_no_resource_config",
    "delete_because_wrong_repetition",
    "delete_because_count_index",
    "delete_because_each_key",
    "delete_because_no_module",
    "delete_because_no_move_target",
    "read_because_config_unknown",
    "read_because_dependency_pending",
    "read_because_check_nested",
];

fn mode(value: &Value, place: Place<'_>) {
    one_of(&["managed", "data"], value, place);
}

fn resource_change(value: &Value, place: Place<'_>) {
    object(
        value,
        place,
        &[
            ("address!", &text),
            ("previous_address", &text),
            ("module_address", &text),
            ("mode!", &mode),
            ("type!", &text),
            ("name!", &text),
            ("index", &index),
            ("provider_name!", &text),
            ("deposed", &text),
            ("change!", &change),
            ("action_reason", &|v, p| one_of(&REASONS, v, p)),
        ],
    );
}

fn of_a_resource(value: &Value, place: Place<'_>) {
    resource_change(value, place);
    sides(&value["change"], place);
}

/// A type as JSON: a word, or a list of a word and what it is of.
fn cty(value: &Value, place: Place<'_>) {
    if value.is_string() {
        return one_of(&["string", "number", "bool", "dynamic"], value, place);
    }
    match value.as_array().map(Vec::as_slice) {
        Some([word, of]) if word == "object" => map(Some(of), place, &cty),
        Some([word, of]) if word == "tuple" => list(Some(of), place, &cty),
        Some([word, of]) => {
            one_of(&["list", "set", "map"], word, place);
            cty(of, place);
        }
        _ => panic!("{place}: {value}"),
    }
}

fn values(value: &Value, place: Place<'_>) {
    let output = |v: &Value, p: Place<'_>| object(v, p, &[("sensitive!", &truth), ("type", &cty)]);
    object(value, place, &[("outputs", &|v, p| map(Some(v), p, &output)), ("root_module!", &module)]);
}

fn module(value: &Value, place: Place<'_>) {
    let resource = |v: &Value, p: Place<'_>| {
        // Only of what is let go nothing is said.
        assert!(v.get("values").is_some() || v["sensitive_values"] == false, "{p}: {v}");
        object(
            v,
            p,
            &[
                ("address!", &text),
                ("mode!", &mode),
                ("type!", &text),
                ("name!", &text),
                ("index", &index),
                ("provider_name!", &text),
                ("schema_version!", &|v, p| assert!(v.is_u64(), "{p}: {v}")),
                ("values", &|v, p| assert!(v.is_object(), "{p}: {v}")),
                ("sensitive_values!", &shape),
                ("depends_on", &|v, p| list(Some(v), p, &text)),
                ("tainted", &truth),
                ("deposed_key", &text),
            ],
        );
    };
    object(
        value,
        place,
        &[("address", &text), ("resources", &|v, p| list(Some(v), p, &resource)), ("child_modules", &|v, p| list(Some(v), p, &module))],
    );
}

fn checks(value: &Value, place: Place<'_>) {
    let status = |v: &Value, p: Place<'_>| one_of(&["pass", "fail", "error", "unknown"], v, p);
    let problem = |v: &Value, p: Place<'_>| object(v, p, &[("message!", &text)]);
    let instance = |v: &Value, p: Place<'_>| {
        let address = |v: &Value, p: Place<'_>| object(v, p, &[("to_display!", &text), ("module", &text), ("instance_key", &index)]);
        object(v, p, &[("address!", &address), ("status!", &status), ("problems", &|v, p| list(Some(v), p, &problem))]);
    };
    let one = |v: &Value, p: Place<'_>| {
        let kind = |v: &Value, p: Place<'_>| one_of(&["resource", "output_value", "check", "var"], v, p);
        let address = |v: &Value, p: Place<'_>| object(v, p, &[("to_display!", &text), ("kind!", &kind)]);
        object(v, p, &[("address!", &address), ("status!", &status), ("instances", &|v, p| list(Some(v), p, &instance))]);
    };
    list(Some(value), place, &one);
}

/// An expression: a list of nested blocks, or an object that says what it is made of.
fn expression(value: &Value, place: Place<'_>) {
    if value.is_array() {
        return list(Some(value), place, &|v, p| map(Some(v), p, &expression));
    }
    object(value, place, &[("references", &|v, p| list(Some(v), p, &text))]);
}

fn configured(value: &Value, place: Place<'_>) {
    let expressions = |v: &Value, p: Place<'_>| map(Some(v), p, &expression);
    let resource = |v: &Value, p: Place<'_>| {
        object(
            v,
            p,
            &[
                ("address!", &text),
                ("mode!", &mode),
                ("type!", &text),
                ("name!", &text),
                ("provider_config_key!", &text),
                ("expressions", &expressions),
                ("schema_version!", &|v, p| assert!(v.is_u64(), "{p}: {v}")),
                ("count_expression", &expression),
                ("for_each_expression", &expression),
                ("depends_on", &|v, p| list(Some(v), p, &text)),
            ],
        );
    };
    let output = |v: &Value, p: Place<'_>| object(v, p, &[("sensitive", &truth), ("expression!", &expression)]);
    let call = |v: &Value, p: Place<'_>| object(v, p, &[("source!", &text), ("expressions", &expressions), ("module", &configured)]);
    object(
        value,
        place,
        &[
            ("outputs", &|v, p| map(Some(v), p, &output)),
            ("resources", &|v, p| list(Some(v), p, &resource)),
            ("module_calls", &|v, p| map(Some(v), p, &call)),
            ("variables", &|v, p| map(Some(v), p, &|v, p| object(v, p, &[("sensitive", &truth)]))),
        ],
    );
}

fn state(value: &Value, place: Place<'_>) {
    object(
        value,
        place,
        &[("format_version!", &format_version), ("terraform_version", &terraform_version), ("values", &values), ("checks", &checks)],
    );
}

/// A whole plan.
pub(super) fn plan(value: &Value, place: Place<'_>) {
    let deferred = |v: &Value, p: Place<'_>| {
        object(v, p, &[("reason!", &text), ("resource_change!", &resource_change)]);
    };
    let configuration = |v: &Value, p: Place<'_>| {
        let provider = |v: &Value, p: Place<'_>| object(v, p, &[("name!", &text), ("full_name!", &text)]);
        object(v, p, &[("provider_config!", &|v, p| map(Some(v), p, &provider)), ("root_module!", &configured)]);
    };
    object(
        value,
        place,
        &[
            ("format_version!", &format_version),
            ("terraform_version!", &terraform_version),
            ("variables", &|v, p| map(Some(v), p, &|v, p| object(v, p, &[("value!", &|_, _| {})]))),
            ("planned_values!", &values),
            ("resource_drift", &|v, p| list(Some(v), p, &of_a_resource)),
            ("resource_changes!", &|v, p| list(Some(v), p, &of_a_resource)),
            ("deferred_changes", &|v, p| list(Some(v), p, &deferred)),
            ("output_changes", &|v, p| map(Some(v), p, &change)),
            ("prior_state", &state),
            ("configuration!", &configuration),
            ("checks", &checks),
            ("timestamp!", &|v, p| assert!(v.as_str().is_some_and(|t| t.len() == 20 && t.ends_with('Z')), "{p}: {v}")),
            ("complete!", &truth),
            ("applyable!", &truth),
            ("errored!", &truth),
        ],
    );
}

#[test]
fn every_plan_and_every_state_is_read_to_the_last_key() {
    for step in STEPS.iter() {
        step.plan.iter().for_each(|p| plan(p, &format!("{}: plan", step.name)));
        step.state.iter().for_each(|s| state(s, &format!("{}: state", step.name)));
    }
    let seen = |key: &str| STEPS.iter().filter_map(|s| s.plan.as_ref()).any(|p| p.get(key).is_some());
    for key in ["variables", "resource_drift", "deferred_changes", "output_changes", "prior_state", "checks"] {
        assert!(seen(key), "no plan has {key}");
    }
}

#[test]
fn whether_a_plan_is_whole_and_worth_it_goes_with_its_exit_code() {
    for step in STEPS.iter() {
        let Some(plan) = &step.plan else { continue };
        let has_deferred = plan.get("deferred_changes").is_some();
        assert_eq!(plan["complete"], !has_deferred, "{}", step.name);
        assert_eq!(plan["applyable"] == true || has_deferred, step.code == 2, "{}", step.name);
        assert_eq!(plan["errored"], false);
    }
    assert!(step("deferred").plan.as_ref().is_some_and(|p| p["complete"] == false));
}

#[test]
fn policies_see_what_refers_to_what() {
    let plan = step("made").plan.as_ref().expect("a plan");
    let resources = plan["configuration"]["root_module"]["resources"].as_array().expect("resources");
    let of = |address: &str| resources.iter().find(|r| r["address"] == address).expect("a resource");
    let many = of("terraform_data.many");
    assert_eq!(many["expressions"]["input"]["references"], serde_json::json!(["terraform_data.base.output", "terraform_data.base"]));
    assert_eq!(many["count_expression"]["references"], serde_json::json!(["var.n"]));
    assert_eq!(of("local_file.f")["expressions"]["filename"]["constant_value"], "out/f.txt");
    let outputs = &plan["configuration"]["root_module"]["outputs"];
    assert_eq!(outputs["password"]["expression"]["references"], serde_json::json!(["var.password"]));
    assert_eq!(outputs["list"]["expression"]["constant_value"][0], 1);
}
