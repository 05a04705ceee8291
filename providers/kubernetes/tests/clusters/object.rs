//! The life of objects.

use std::time::{Duration, Instant};

use karmaform_model::{Action, Change, Type, Value, same};
use serde_json::{Value as Json, json};

use crate::lab::{lab, object, say};

#[test]
fn life_of_a_config_map() {
    let Some(lab) = lab("life_of_a_config_map") else { return };
    let state = lab.create(&lab.wanted(&lab.map("a", json!({ "k": "1", "gone": "x" }))));
    let wanted = lab.wanted(&lab.map("a", json!({ "k": "2" })));
    let state = lab.step(Some(&state), Some(&wanted), Action::Update).unwrap();
    assert_eq!(lab.kubectl(&["-n", &lab.namespace, "get", "cm", "a", "-o", "jsonpath={.data}"]), "{\"k\":\"2\"}");
    // somebody else's field
    lab.kubectl(&["-n", &lab.namespace, "patch", "cm", "a", "-p", "{\"data\":{\"other\":\"x\"}}"]);
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    // our field
    lab.kubectl(&["-n", &lab.namespace, "patch", "cm", "a", "-p", "{\"data\":{\"k\":\"9\"}}"]);
    let error = lab.plan(Some(&state), Some(&wanted)).unwrap_err();
    assert_eq!(error.summary, "Field belongs to another manager");
    assert!(error.detail.contains("\"kubectl-patch\" owns .data.k"), "{}", error.detail);
    let forced = lab.forced(&lab.map("a", json!({ "k": "2" })));
    let change = lab.plan(Some(&state), Some(&forced)).unwrap();
    let Change::Update { before, .. } = &change else { panic!("{change:?}") };
    assert_eq!(before["manifest"].get("data"), Some(&Value::object([("k", "9".into())])), "drift is seen on our field alone");
    let state = lab.step(Some(&state), Some(&forced), Action::Update).unwrap();
    lab.step(Some(&state), Some(&forced), Action::NoOp);
    assert_eq!(lab.kubectl(&["-n", &lab.namespace, "get", "cm", "a", "-o", "jsonpath={.data.k} {.data.other}"]), "2 x");
    lab.delete(&state);
}

#[test]
fn what_others_add_goes_where_nobody_else_may() {
    let Some(lab) = lab("exclusive") else { return };
    let mut wanted =
        lab.wanted(&json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d", "namespace": lab.namespace },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": { "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "main", "image": "m", "env": [{ "name": "OURS", "value": "1" }] }] } } } }));
    let open = wanted.clone();
    wanted.insert("exclusive".into(), true.into());
    let state = lab.create(&wanted);
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    let deployment = |arguments: &[&str]| lab.kubectl(&[&["-n", &lab.namespace], arguments].concat());
    let patch = |text: &str| deployment(&["patch", "deployment", "d", "-p", text]);
    // A restart by hand is nobody's business.
    patch(r#"{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}"#);
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    patch(
        r#"{"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"main","env":[{"name":"THEIRS","value":"2"}]},{"name":"side","image":"s"}]}}}}"#,
    );
    lab.step(Some(&state), Some(&open), Action::NoOp);
    let Change::Update { before, .. } = lab.plan(Some(&state), Some(&wanted)).unwrap() else { panic!("it is to be changed") };
    let seen = karmaform_model::to_json(&before["manifest"]).to_string();
    for theirs in ["THEIRS", "\"side\"", "\"paused\":true"] {
        assert!(seen.contains(theirs), "{theirs} is not in {seen}");
    }
    assert!(!seen.contains("\"2\"") && seen.contains("set by somebody else"), "what others wrote is shown: {seen}");
    let state = lab.step(Some(&state), Some(&wanted), Action::Update).unwrap();
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    let left = deployment(&[
        "get",
        "deployment",
        "d",
        "-o",
        "jsonpath={.spec.paused} {.spec.template.spec.containers[*].name} {.spec.template.spec.containers[0].env[*].name}",
    ]);
    assert_eq!(left.trim(), "main OURS");
    assert!(deployment(&["get", "deployment", "d", "-o", "yaml"]).contains("restartedAt: now"), "a mark of somebody else's was taken away");
    // What is ours and somebody else's at once, and is not wanted any more, goes at once.
    let theirs = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d", "namespace": lab.namespace },
        "spec": { "template": { "spec": { "containers": [{ "name": "main", "env": [{ "name": "OURS", "value": "1" }] }] } } } });
    lab.kubectl_with(&["apply", "--server-side", "--validate=false", "--field-manager=helm", "-f", "-"], &theirs);
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    let mut without = wanted["manifest"].clone();
    let bare = json!([{ "name": "main", "image": "m" }]);
    let mut manifest = karmaform_model::to_json(&without);
    // Something else changes with it: by itself that would not be seen, as the server would go on having it.
    manifest["spec"]["minReadySeconds"] = 1.into();
    manifest["spec"]["template"]["spec"]["containers"] = bare;
    without = lab.wanted(&manifest)["manifest"].clone();
    wanted.insert("manifest".into(), without);
    let state = lab.step(Some(&state), Some(&wanted), Action::Update).unwrap();
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    assert_eq!(deployment(&["get", "deployment", "d", "-o", "jsonpath={.spec.template.spec.containers[0].env}"]).trim(), "");
}

#[test]
fn what_others_made_is_refused_and_conflicts_are_named() {
    let Some(lab) = lab("foreign") else { return };
    let manifest = lab.map("a", json!({ "k": "theirs" }));
    lab.kubectl_with(&["apply", "--server-side", "--field-manager=helm", "-f", "-"], &manifest);
    let ours = lab.map("a", json!({ "k": "ours" }));
    assert_eq!(lab.plan(None, Some(&lab.wanted(&ours))).unwrap_err().summary, "Exists already");
    let create = Change::Create { after: lab.wanted(&ours) };
    assert_eq!(lab.apply(&create).unwrap_err().summary, "Exists already", "it may come between plan and apply");
    let state = lab.step(None, Some(&lab.forced(&ours)), Action::Update).unwrap();
    lab.kubectl_with(&["apply", "--server-side", "--force-conflicts", "--field-manager=helm", "-f", "-"], &manifest);
    let error = lab.plan(Some(&state), Some(&lab.wanted(&ours))).unwrap_err();
    assert!(error.detail.contains("\"helm\" owns .data.k") && error.hints[0].contains("force"), "{error:?}");
}

#[test]
fn what_has_nothing_but_a_name_is_known_again_without_a_memory() {
    let Some(lab) = lab("bare") else { return };
    let namespace = format!("{}-bare", lab.namespace);
    let wanted = lab.wanted(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
    let state = lab.create(&wanted);
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    let seen = lab.observe(None, Some(&wanted)).unwrap().expect("it is there");
    assert_eq!(seen["foreign"], false.into());
    lab.delete(&state);
}

#[test]
fn custom_resources_of_a_definition_made_in_the_same_run() {
    let Some(lab) = lab("custom") else { return };
    let group = format!("{}.example.com", lab.namespace);
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": format!("things.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": { "plural": "things", "singular": "thing", "kind": "Thing" }, "versions": [
            { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": { "size": { "type": "integer", "default": 3 }, "list": { "type": "array", "items": { "type": "string" } } } } } } } }] } });
    let thing = json!({ "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": { "name": "a", "namespace": lab.namespace }, "spec": { "list": ["x"] } });
    let thing = lab.wanted(&thing);
    assert_eq!(lab.plan(None, Some(&thing)).unwrap().action(), Action::Create, "a kind that is not served yet is not there yet");
    assert!(lab.apply(&Change::Create { after: thing.clone() }).unwrap_err().retryable);
    let mut wanted = lab.wanted(&definition);
    let condition = Value::map(Type::String, [("Established".to_owned(), Value::from("True"))].into());
    wanted.insert("wait".into(), object([("condition", condition)]).into());
    let definition = lab.create(&wanted);
    let thing = lab.create(&thing);
    lab.delete(&definition);
    assert_eq!(lab.observe(Some(&thing), None).unwrap(), None);
}

#[test]
fn a_kind_of_kubernetes_itself_may_be_too_new() {
    let Some(lab) = lab("too_new") else { return };
    let budget = |name: &str| json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name, "namespace": lab.namespace }, "spec": { "minAvailable": 1 } });
    let wanted = [lab.wanted(&budget("a")), lab.wanted(&budget("b"))];
    let seen = lab.observe_all(&[lab.ask(None, Some(&wanted[0])), lab.ask(None, Some(&wanted[1]))]);
    assert_eq!(seen, [Ok(None), Ok(None)]);
    let made = lab.apply(&Change::Create { after: wanted[0].clone() });
    if lab.kubectl(&["api-versions"]).lines().any(|l| l == "policy/v1") {
        made.unwrap();
    } else {
        assert_eq!(made.unwrap_err().summary, "Kind is not known to the cluster");
    }
}

#[test]
fn refusals_show_in_the_plan() {
    let Some(lab) = lab("refusals") else { return };
    let mut bad = lab.map("a", json!({ "k": "1" }));
    bad["metadata"]["labels"] = json!({ "a": "not valid!" });
    let error = lab.plan(None, Some(&lab.wanted(&bad))).unwrap_err();
    assert_eq!(error.summary, "Refused by the cluster");
    assert!(error.detail.contains("not valid!"), "{}", error.detail);
    // what is in a namespace that is not there yet can't be judged yet
    let mut later = lab.map("a", json!({}));
    later["metadata"]["namespace"] = "later".into();
    assert_eq!(lab.plan(None, Some(&lab.wanted(&later))).unwrap().action(), Action::Create);
    let state = lab
        .create(&lab.wanted(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "namespace": lab.namespace },
        "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] } })));
    let moved = lab.wanted(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "namespace": lab.namespace },
        "spec": { "clusterIP": "10.214.0.77", "ports": [{ "port": 80 }] } }));
    let change = lab.plan(Some(&state), Some(&moved));
    assert_eq!(change.as_ref().map(Change::action), Ok(Action::DestroyThenCreate), "{change:?}");
}

#[test]
fn secrets_are_masked() {
    let Some(lab) = lab("secrets") else { return };
    let secret = |text: &str| {
        lab.wanted(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": lab.namespace }, "stringData": { "k": text } }))
    };
    let state = lab.create(&secret("hunter22"));
    let change = lab.plan(Some(&state), Some(&secret("hunter23"))).unwrap();
    assert_eq!(change.action(), Action::Update);
    assert!(!format!("{change:?}").contains("hunter"), "{change:?}");
    lab.kubectl(&["-n", &lab.namespace, "patch", "secret", "s", "-p", "{\"stringData\":{\"k\":\"drifted1\"}}"]);
    let mut forced = secret("hunter22");
    forced.insert("force".into(), true.into());
    let seen = lab.observe(Some(&state), Some(&forced)).unwrap().unwrap();
    assert_eq!(seen["manifest"].get("stringData").and_then(|d| d.get("k")).and_then(Value::as_str), Some("drifted1"));
    assert!(!format!("{seen:?}").contains("drifted1"), "{seen:?}");
    let mut bad = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "t", "namespace": lab.namespace }, "data": { "not valid": "aHVudGVyMjI=" } });
    let error = lab.plan(None, Some(&lab.wanted(&bad))).unwrap_err();
    assert!(!format!("{error:?}").contains("aHVudGVyMjI"), "{error:?}");
    bad["data"] = json!({ "k": "no base64: hunter22" });
    let error = lab.plan(None, Some(&lab.wanted(&bad))).unwrap_err();
    assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
}

#[test]
fn a_deletion_that_does_not_finish_names_its_finalizers() {
    let Some(lab) = lab("finalizers") else { return };
    let mut manifest = lab.map("a", json!({}));
    manifest["metadata"]["finalizers"] = json!(["example.com/stay"]);
    let mut state = lab.create(&lab.wanted(&manifest));
    state.insert("timeout".into(), 1i64.into());
    let begin = Instant::now();
    let error = lab.apply(&Change::Delete { before: state.clone() }).unwrap_err();
    assert_eq!(error.summary, "Deletion does not finish");
    assert!(error.detail.contains("\"example.com/stay\""), "{}", error.detail);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    lab.kubectl(&["-n", &lab.namespace, "patch", "cm", "a", "-p", "{\"metadata\":{\"finalizers\":null}}"]);
    lab.delete(&state);
}

/// Of a kind that nobody else asks for meanwhile.
fn limit(namespace: &str, number: u32) -> Json {
    json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": format!("m{number}"), "namespace": namespace },
        "spec": { "limits": [{ "type": "Pod", "max": { "cpu": (number + 1).to_string() } }] } })
}

#[test]
fn many_objects_cost_few_requests() {
    let Some(lab) = lab("many") else { return };
    let wanted: Vec<_> = (0..30).map(|i| lab.wanted(&limit(&lab.namespace, i))).collect();
    let begin = Instant::now();
    let states: Vec<_> = wanted.iter().map(|w| lab.apply(&Change::Create { after: w.clone() }).unwrap().unwrap()).collect();
    let made = begin.elapsed();
    let asks: Vec<_> = states.iter().zip(&wanted).map(|(s, w)| lab.ask(Some(s), Some(w))).collect();
    let count = || lab.requests("limitranges", &["GET", "LIST", "APPLY", "PATCH"]);
    // The server counts for all: while namespaces of other tests go, their limit ranges are listed. That hits some looks, not all.
    let mut least = u64::MAX;
    for _ in 0..5 {
        let (before, begin) = (count(), Instant::now());
        let seen = lab.observe_all(&asks);
        let (asked, took) = (count() - before, begin.elapsed());
        say(&format!("30 objects: made one by one in {made:?}, looked at with {asked} requests in {took:?}"));
        for (seen, wanted) in seen.into_iter().zip(&wanted) {
            assert_eq!(seen.unwrap().unwrap()["manifest"], wanted["manifest"]);
        }
        least = least.min(asked);
    }
    assert!(least <= 3, "{least} requests");
}

#[test]
fn what_is_shared_is_left_as_it_is() {
    let Some(lab) = lab("shared") else { return };
    let shared = |value: &str| {
        let mut wanted = lab.wanted(&lab.map("a", json!({ "k": value })));
        wanted.insert("shared".into(), true.into());
        wanted
    };
    lab.kubectl_with(&["create", "-f", "-"], &lab.map("a", json!({ "k": "theirs" })));
    lab.step(None, Some(&shared("ours")), Action::NoOp);
    // as the engine does it, so that the state learns of it
    let adopted = lab.plan(None, Some(&shared("ours"))).unwrap().after().cloned().unwrap();
    let before = lab.observe(None, Some(&shared("ours"))).unwrap().unwrap();
    let state = lab.apply(&Change::Update { before, after: adopted }).unwrap().unwrap();
    assert_eq!(state["adopted"], true.into());
    let data = || lab.kubectl(&["-n", &lab.namespace, "get", "cm", "a", "-o", "jsonpath={.data.k}"]);
    assert_eq!(data(), "theirs");
    lab.kubectl(&["-n", &lab.namespace, "patch", "cm", "a", "-p", "{\"data\":{\"k\":\"other\"}}"]);
    let seen = lab.observe(Some(&state), Some(&shared("ours"))).unwrap().unwrap();
    assert!(same(seen.get("manifest"), state.get("manifest")), "whatever others do to it, nothing drifts");
    lab.step(Some(&state), Some(&shared("ours")), Action::NoOp);
    lab.step(Some(&state), Some(&shared("changed")), Action::NoOp);
    assert_eq!(lab.plan(Some(&state), None).unwrap().action(), Action::Forget);
    assert_eq!(lab.apply(&Change::Delete { before: state.clone() }).unwrap(), None);
    assert_eq!(data(), "other", "the first half of a replacement leaves it");
    lab.kubectl(&["-n", &lab.namespace, "delete", "cm", "a"]);
    let state = lab.step(Some(&state), Some(&shared("ours")), Action::Create).unwrap();
    assert_eq!((data().as_str(), state["adopted"].is_null()), ("ours", true));
    let state = lab.step(Some(&state), Some(&shared("changed")), Action::Update).unwrap();
    assert_eq!(lab.plan(Some(&state), None).unwrap().action(), Action::Delete);
    // it comes between plan and apply
    let create = lab.plan(None, Some(&lab.wanted(&lab.map("b", json!({}))))).unwrap();
    lab.kubectl_with(&["create", "-f", "-"], &lab.map("b", json!({ "k": "theirs" })));
    let mut after = create.after().cloned().unwrap();
    after.insert("shared".into(), true.into());
    after.insert("adopted".into(), Value::unknown(Type::Bool));
    assert_eq!(lab.apply(&Change::Create { after }).unwrap().unwrap()["adopted"], true.into());
}

#[test]
fn what_is_kept_stays_in_the_cluster() {
    let Some(lab) = lab("keep") else { return };
    let mut wanted = lab.wanted(&lab.map("a", json!({ "k": "1" })));
    wanted.insert("keep".into(), true.into());
    let state = lab.create(&wanted);
    assert_eq!(lab.plan(Some(&state), None).unwrap().action(), Action::Forget);
    assert_eq!(lab.apply(&Change::Delete { before: state.clone() }).unwrap(), None);
    assert!(lab.observe(Some(&state), None).unwrap().is_some());
}

#[test]
fn a_secret_that_somebody_made_immutable_is_made_anew() {
    let Some(lab) = lab("immutable") else { return };
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": lab.namespace }, "stringData": { "k": "1" } });
    let mut wanted = lab.wanted(&secret);
    wanted.extend([("exclusive".to_owned(), true.into()), ("reclaim".to_owned(), true.into())]);
    let state = lab.create(&wanted);
    lab.kubectl(&["-n", &lab.namespace, "patch", "secret", "s", "-p", r#"{"immutable":true}"#]);
    let change = lab.plan(Some(&state), Some(&wanted)).unwrap();
    assert!(matches!(&change, Change::Replace { .. }), "{change:?}");
    let Change::Replace { before, after, .. } = change else { return };
    lab.apply(&Change::Delete { before }).unwrap();
    let state = lab.apply(&Change::Create { after }).unwrap().unwrap();
    lab.step(Some(&state), Some(&wanted), Action::NoOp);
    assert_eq!(lab.kubectl(&["-n", &lab.namespace, "get", "secret", "s", "-o", "jsonpath={.immutable}"]), "");
    lab.delete(&state);
}
