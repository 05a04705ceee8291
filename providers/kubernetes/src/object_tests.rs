use super::*;
use crate::values::object;
use karmaform_model::{Action, implied_from_json};
use serde_json::{Value as Json, json};

fn wanted(json: Json) -> Object {
    let cluster = Value::object([("provider", "kubernetes".into()), ("id", "u".into())]);
    KubernetesObject::new().derived(object([("cluster", cluster), ("manifest", implied_from_json(&json)), ("force", false.into())]))
}

fn map(value: i64) -> Json {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" }, "data": { "k": value.to_string() } })
}

fn plan(before: Option<&Object>, wanted: &Object) -> Result<Change, Diagnostics> {
    KubernetesObject::new().plan(&PlanContext { now: 0 }, before, Some(wanted))
}

fn summaries(errors: &Diagnostics) -> Vec<&str> {
    errors.iter().map(|d| d.summary.as_str()).collect()
}

#[test]
fn the_identity_comes_from_the_manifest() {
    assert_eq!(wanted(map(1))["object"], "ConfigMap/n/a".into());
    let create = plan(None, &wanted(map(1))).unwrap();
    assert_eq!(create.after().unwrap()["object"], "ConfigMap/n/a".into());
    assert!(create.after().unwrap()["uid"].is_unknown());
    let mut unknown = wanted(map(1));
    unknown.insert("manifest".into(), Value::unknown(Type::Any));
    let derived = KubernetesObject::new().derived(unknown);
    assert!(derived["object"].is_unknown());
    assert!(plan(None, &derived).unwrap().after().unwrap()["object"].is_unknown());
}

#[test]
fn changes_are_made_in_place_and_uid_stays_unless_the_server_says_no() {
    let mut before = wanted(map(1));
    before.insert("uid".into(), "u1".into());
    assert_eq!(plan(Some(&before), &wanted(map(1))).unwrap().action(), Action::NoOp);
    let update = plan(Some(&before), &wanted(map(2))).unwrap();
    assert_eq!((update.action(), &update.after().unwrap()["uid"]), (Action::Update, &"u1".into()));
    before.insert("immutable".into(), "field is immutable".into());
    let replace = plan(Some(&before), &wanted(map(2))).unwrap();
    assert_eq!(replace.action(), Action::DestroyThenCreate);
    assert!(replace.after().unwrap()["uid"].is_unknown());
    let mut renamed = map(1);
    renamed["metadata"]["name"] = "b".into();
    before.remove("immutable");
    assert_eq!(plan(Some(&before), &wanted(renamed)).unwrap().action(), Action::DestroyThenCreate);
}

#[test]
fn what_is_foreign_is_refused_unless_forced() {
    let before = object([("object", "ConfigMap/n/a".into()), ("manifest", implied_from_json(&map(9))), ("foreign", true.into())]);
    assert_eq!(summaries(&plan(Some(&before), &wanted(map(1))).unwrap_err()), ["Exists already"]);
    let mut forced = wanted(map(1));
    forced.insert("force".into(), true.into());
    assert_eq!(plan(Some(&before), &forced).unwrap().action(), Action::Update);
}

#[test]
fn bad_arguments_are_refused() {
    let mut bad = wanted(json!({ "kind": "ConfigMap", "metadata": { "name": "a" } }));
    bad.insert("propagation".into(), "none".into());
    assert_eq!(summaries(&plan(None, &bad).unwrap_err()), ["Manifest is not of one object", "Unknown propagation policy"]);
}

#[test]
fn what_is_shared_is_adopted_as_it_is_and_only_forgotten() {
    let spec = KubernetesObject::new();
    let mut shared = wanted(map(1));
    shared.insert("shared".into(), true.into());
    let create = plan(None, &shared).unwrap();
    assert!(create.after().unwrap()["adopted"].is_unknown(), "it may come between plan and apply");
    let seen = object([
        ("object", "ConfigMap/n/a".into()),
        ("cluster", Value::object([("id", "u".into())])),
        ("manifest", implied_from_json(&map(9))),
        ("uid", "u1".into()),
        ("foreign", true.into()),
        ("adopted", true.into()),
    ]);
    let adopted = plan(Some(&seen), &shared).unwrap();
    assert_eq!((adopted.action(), &adopted.after().unwrap()["adopted"]), (Action::NoOp, &true.into()));
    assert_eq!(adopted.after().unwrap()["uid"], "u1".into());
    assert_eq!(spec.impact(&Change::Update { before: seen.clone(), after: adopted.after().unwrap().clone() }).len(), 1);
    assert_eq!(spec.plan(&PlanContext { now: 0 }, Some(&seen), None).unwrap().action(), Action::Forget);
    assert_eq!(summaries(&plan(Some(&seen), &wanted(map(1))).unwrap_err()), ["Exists already"], "no longer shared");
    // one that karmaform made is managed as ever
    let mut ours = seen;
    ours.insert("foreign".into(), false.into());
    ours.insert("adopted".into(), Value::null(Type::Bool));
    let update = plan(Some(&ours), &shared).unwrap();
    assert_eq!((update.action(), update.after().unwrap()["adopted"].is_null()), (Action::Update, true));
    assert_eq!(spec.plan(&PlanContext { now: 0 }, Some(&ours), None).unwrap().action(), Action::Delete);
}

#[test]
fn what_is_kept_is_forgotten_and_never_replaced() {
    let mut kept = wanted(map(1));
    kept.insert("keep".into(), true.into());
    let mut before = kept.clone();
    before.insert("uid".into(), "u1".into());
    assert_eq!(plan(Some(&before), &kept).unwrap().action(), Action::NoOp);
    let forgotten = KubernetesObject::new().plan(&PlanContext { now: 0 }, Some(&before), None).unwrap();
    assert_eq!(forgotten.action(), Action::Forget);
    before.insert("immutable".into(), "field is immutable".into());
    let mut other = kept.clone();
    other.insert("manifest".into(), implied_from_json(&map(2)));
    assert_eq!(summaries(&plan(Some(&before), &other).unwrap_err()), ["Field can't be changed in place"]);
}

#[test]
fn a_rollout_that_has_not_come_is_waited_for_again() {
    let wait = Value::object([("rollout", true.into())]);
    let mut wanted = wanted(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "namespace": "n" } }));
    wanted.insert("wait".into(), wait);
    let seen = |ready: bool| {
        let mut before = wanted.clone();
        before.extend(object([("uid", "u1".into()), ("ready", ready.into())]));
        plan(Some(&before), &wanted).unwrap()
    };
    assert_eq!((seen(true).action(), seen(false).action()), (Action::NoOp, Action::Update));
    assert!(KubernetesObject::new().impact(&seen(false))[0].starts_with("nothing changes"));
}
