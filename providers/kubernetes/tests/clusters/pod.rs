//! A pod of a StatefulSet at a revision.

use karmaform_model::{Action, Change, Object, Type, Value};
use serde_json::{Value as Json, json};

use crate::lab::{Lab, lab_with_node, object};
use crate::pods::IMAGE;

const KIND: &str = "kubernetes_pod";

fn set(lab: &Lab, revision: &str) -> Json {
    json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "s", "namespace": lab.namespace }, "spec": {
        "serviceName": "s", "replicas": 2, "podManagementPolicy": "Parallel", "updateStrategy": { "type": "OnDelete" },
        "selector": { "matchLabels": { "app": "s" } },
        "template": { "metadata": { "labels": { "app": "s" }, "annotations": { "karmaform.io/revision": revision } },
            "spec": { "terminationGracePeriodSeconds": 1, "containers": [{ "name": "main", "image": IMAGE }] } } } })
}

fn pod(lab: &Lab, name: &str, revision: &str) -> Object {
    let mut wanted = lab.arguments(KIND);
    let namespace = lab.namespace.as_str();
    wanted.extend(object([
        ("namespace", namespace.into()),
        ("name", name.into()),
        ("revision", revision.into()),
        ("timeout", 30i64.into()),
    ]));
    wanted
}

#[test]
fn another_revision_restarts_just_the_named_pod() {
    let Some(lab) = lab_with_node("pod") else { return };
    let object = lab.create(&lab.wanted(&set(&lab, "1")));
    // the pods are made meanwhile, so that a plan would see them or not
    let made = |name: &str| {
        let mut after = pod(&lab, name, "1");
        after.insert("uid".into(), Value::unknown(Type::String));
        lab.apply_of(KIND, &Change::Create { after }).unwrap().unwrap()
    };
    let (first, second) = (made("s-0"), made("s-1"));
    assert_eq!(made("s-0"), first, "done twice");
    lab.step_of(KIND, Some(&first), Some(&pod(&lab, "s-0", "1")), Action::NoOp);
    // before the template has it, nothing is harmed
    let early = lab.plan_of(KIND, Some(&first), Some(&pod(&lab, "s-0", "2"))).unwrap();
    let error = lab.apply_of(KIND, &early).unwrap_err();
    assert_eq!(error.summary, "Pod would not get the wanted revision", "{error:?}");
    lab.step(Some(&object), Some(&lab.wanted(&set(&lab, "2"))), Action::Update);
    let after = lab.step_of(KIND, Some(&first), Some(&pod(&lab, "s-0", "2")), Action::Update).unwrap();
    assert_ne!(after["uid"], first["uid"]);
    lab.step_of(KIND, Some(&after), Some(&pod(&lab, "s-0", "2")), Action::NoOp);
    let asks = [lab.ask_of(KIND, Some(&after), None), lab.ask_of(KIND, Some(&second), None)];
    let seen: Vec<Object> = lab.observe_all(&asks).into_iter().map(|a| a.unwrap().unwrap()).collect();
    assert_eq!((&seen[1]["uid"], &seen[1]["revision"]), (&second["uid"], &"1".into()), "the other pod was left alone");
    assert_eq!((&seen[0]["phase"], seen[0]["problem"].is_null()), (&"Running".into(), true), "{seen:?}");
    // destroying leaves it to its StatefulSet
    assert_eq!(lab.apply_of(KIND, &Change::Delete { before: after.clone() }).unwrap(), None);
    assert_eq!(lab.observe_of(KIND, Some(&after), None).unwrap().unwrap()["uid"], after["uid"]);
}

#[test]
fn a_pod_that_does_not_come_up_says_why() {
    let Some(lab) = lab_with_node("pod-why") else { return };
    let mut set = set(&lab, "1");
    set["spec"]["template"]["spec"]["containers"][0]["image"] = "karmaform.test/none:1".into();
    lab.create(&lab.wanted(&set));
    let mut wanted = pod(&lab, "s-0", "1");
    wanted.insert("timeout".into(), Value::from(10i64));
    let error = lab.apply_of(KIND, &Change::Create { after: wanted }).unwrap_err();
    assert!(error.detail.contains("can't get the image \"karmaform.test/none:1\""), "{error:?}");
    let error = lab.apply_of(KIND, &Change::Create { after: object_named(&lab, "none-0") }).unwrap_err();
    assert!(error.summary == "Pod does not come up" && error.detail.contains("it is not there"), "{error:?}");
}

fn object_named(lab: &Lab, name: &str) -> Object {
    let mut wanted = pod(lab, name, "1");
    wanted.insert("timeout".into(), Value::from(1i64));
    wanted
}
