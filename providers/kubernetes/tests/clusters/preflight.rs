//! Whether a server is reached from a pod: a pod that really runs, and this very cluster as the server.

use std::collections::BTreeSet;

use karmaform_model::{Action, Change, Diagnostic, Object, Value};

use crate::lab::{Lab, lab_with_node, object};
use crate::pods::IMAGE;

const KIND: &str = "kubernetes_preflight";
/// How a pod reaches its own cluster. Source: "Accessing the Kubernetes API from a Pod", `kubernetes.io/docs/tasks/run-application/access-api-from-pod`.
const ADDRESS: &str = "https://kubernetes.default.svc";

/// To this cluster at this address.
fn wanted(lab: &Lab, address: &str) -> Object {
    let read = lab.read(&object([("kubeconfig_file", lab.kubeconfig.as_str().into())])).unwrap();
    let mut wanted = lab.arguments(KIND);
    wanted.extend(object([
        ("namespace", lab.namespace.as_str().into()),
        ("address", address.into()),
        ("target", read["connection"].clone()),
        ("image", IMAGE.into()),
    ]));
    wanted
}

fn with(mut object: Object, name: &str, value: Value) -> Object {
    object.insert(name.to_owned(), value);
    object
}

/// An authority that nobody's certificate is of.
fn another_ca() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.self_signed(&key).unwrap().pem()
}

fn refused(lab: &Lab, wanted: &Object) -> Diagnostic {
    lab.observe_of(KIND, None, Some(wanted)).expect_err("no way")
}

fn pods(lab: &Lab) -> String {
    lab.kubectl(&["-n", &lab.namespace, "get", "pods", "-o", "name"])
}

/// The pods that there have been, by what the cluster said of them. What it says of one may come when that is gone.
fn tried(lab: &Lab) -> BTreeSet<String> {
    let uids = "-o=jsonpath={range .items[*]}{.involvedObject.name}={.involvedObject.uid}{\"\\n\"}{end}";
    let events = lab.kubectl(&["-n", &lab.namespace, "get", "events", uids]);
    events.lines().filter(|l| l.contains("karmaform-preflight")).map(str::to_owned).collect()
}

#[test]
fn a_way_is_tried_once_and_nothing_is_left() {
    let Some(lab) = lab_with_node("preflight") else { return };
    let good = wanted(&lab, ADDRESS);
    // Two at once share a pod, and the plan of one that fails does not hold up the other.
    let asks = [lab.ask_of(KIND, None, Some(&good)), lab.ask_of(KIND, None, Some(&wanted(&lab, "https://kubernetes.default.svc:1")))];
    let answers = lab.observe_all(&asks);
    assert_eq!(answers[0], Ok(None));
    let error = answers[1].clone().unwrap_err();
    assert!(
        error.summary == "No way to the server from there" && error.detail.contains("kubernetes.default.svc:1 does not answer within 10 s"),
        "{error:?}"
    );
    assert_eq!(pods(&lab), "");
    let seen = tried(&lab);
    assert_eq!(seen.len(), 1, "there was one: {seen:?}");
    // The same run does not try it again.
    let state = lab.apply_of(KIND, &Change::Create { after: good.clone() }).unwrap().unwrap();
    assert_eq!(tried(&lab), seen);
    lab.step_of(KIND, Some(&state), Some(&with(good.clone(), "image", "another:1".into())), Action::NoOp);
    assert!(matches!(lab.plan_of(KIND, Some(&state), None).unwrap(), Change::Forget { .. }));
    // Another address is another way.
    let error = lab.plan_of(KIND, Some(&state), Some(&wanted(&lab, "https://nobody.invalid:6443"))).unwrap_err();
    assert!(error.detail.contains("the name nobody.invalid is not known"), "{error:?}");
    assert_eq!(pods(&lab), "");
}

#[test]
fn what_fails_on_the_way_is_said() {
    let Some(lab) = lab_with_node("preflight-why") else { return };
    let good = wanted(&lab, ADDRESS);
    let mut another = good["target"].as_entries().unwrap().clone();
    another.insert("id".to_owned(), "b0b0".into());
    assert_eq!(refused(&lab, &with(good.clone(), "target", another.into())).summary, "Another cluster answers");

    let error = refused(&lab, &with(good.clone(), "ca_certificate", another_ca().as_str().into()));
    assert_eq!((error.summary.as_str(), error.retryable), ("No way to the server from there", false), "{error:?}");
    assert!(error.detail.starts_with("From a pod in the namespace") && error.detail.contains("certificate"), "{error:?}");
    let open = with(with(good.clone(), "ca_certificate", another_ca().as_str().into()), "insecure", true.into());
    assert_eq!(lab.observe_of(KIND, None, Some(&open)), Ok(None));

    let error = refused(&lab, &with(good.clone(), "image", "karmaform.test/missing:1".into()));
    assert_eq!(error.summary, "Pod for the preflight does not come up", "{error:?}");
    assert!(error.detail.contains("karmaform.test/missing:1"), "{error:?}");

    // A plan may make the namespace; applying does not.
    let homeless = with(good, "namespace", "kf-not-there".into());
    assert_eq!(lab.observe_of(KIND, None, Some(&homeless)), Ok(None));
    let error = lab.apply_of(KIND, &Change::Create { after: homeless }).unwrap_err();
    assert_eq!(error.summary, "No namespace for the preflight", "{error:?}");
    assert_eq!(pods(&lab), "");
}
