//! The custom resource definitions of Karmada, out of their archive.

use std::path::Path;
use std::time::Instant;

use karmaform_model::{Action, Object, Type, Value};

use crate::lab::{Lab, lab, object, say};

const KIND: &str = "kubernetes_archive";

fn wanted(lab: &Lab, source: &str, ca: &str) -> Object {
    let texts = |parts: &[(&str, &str)]| Value::map(Type::String, parts.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect());
    let mut wanted = lab.arguments(KIND);
    wanted.extend(object([
        ("name", "crds".into()),
        ("source", source.into()),
        ("include", "crds/bases/".into()),
        ("patches", "crds/patches/".into()),
        ("substitutions", texts(&[("name", "karmada-webhook"), ("namespace", "karmada-system"), ("caBundle", ca)])),
        ("wait_condition", texts(&[("Established", "True")])),
        ("timeout", 30i64.into()),
    ]));
    wanted
}

#[test]
fn life_of_the_definitions_of_karmada() {
    let Some(data) = std::env::var_os("KARMAFORM_SHARED_DATA") else {
        say("SKIPPED life_of_the_definitions_of_karmada: KARMAFORM_SHARED_DATA is not set");
        return;
    };
    let Some(lab) = lab("archive") else { return };
    let source = Path::new(&data).join("karmada-crds-v1.19.tar.gz");
    let wanted = |ca: &str| wanted(&lab, source.to_str().unwrap(), ca);
    let begin = Instant::now();
    let state = lab.step_of(KIND, None, Some(&wanted("Q0E=")), Action::Create).unwrap();
    let made = begin.elapsed();
    let words = state["objects"].as_entries().unwrap();
    assert_eq!((words.len(), words.values().all(|w| w.as_str() == Some("as wanted"))), (19, true), "{words:?}");
    let count = || lab.requests("customresourcedefinitions", &["GET", "LIST", "APPLY", "PATCH"]);
    let (before, begin) = (count(), Instant::now());
    lab.step_of(KIND, Some(&state), Some(&wanted("Q0E=")), Action::NoOp);
    let (asked, looked) = (count() - before, begin.elapsed());
    say(&format!("19 definitions: made twice in {made:?}, looked at with {asked} requests in {looked:?}"));
    assert!(asked <= 2, "{asked} requests");
    lab.step_of(KIND, None, Some(&wanted("Q0E=")), Action::NoOp);
    // by hand
    lab.kubectl(&["patch", "crd", "works.work.karmada.io", "--type=merge", "-p", "{\"spec\":{\"names\":{\"shortNames\":[\"hand\"]}}}"]);
    let name = "CustomResourceDefinition.apiextensions.k8s.io//works.work.karmada.io";
    let seen = lab.observe_of(KIND, Some(&state), Some(&wanted("Q0E="))).unwrap().unwrap();
    let different: Vec<_> = seen["objects"].as_entries().unwrap().iter().filter(|(_, w)| w.as_str() != Some("as wanted")).collect();
    assert_eq!((different.len(), different[0].0.as_str(), different[0].1.as_str()), (1, name, Some("different")), "{different:?}");
    let drift = lab.observe_of(KIND, Some(&state), None).unwrap().unwrap();
    assert_eq!(drift["objects"], seen["objects"], "also where nothing is to be changed");
    lab.kubectl(&["delete", "crd", "remedies.remedy.karmada.io"]);
    let state = lab.step_of(KIND, Some(&state), Some(&wanted("Q0E=")), Action::Update).unwrap();
    lab.step_of(KIND, Some(&state), Some(&wanted("Q0E=")), Action::NoOp);
    assert!(!lab.kubectl(&["get", "crd", "works.work.karmada.io", "-o", "jsonpath={.spec.names.shortNames}"]).contains("hand"));
    // another certificate authority
    let state = lab.step_of(KIND, Some(&state), Some(&wanted("Q0Ey")), Action::Update).unwrap();
    let hook = "jsonpath={.spec.conversion.webhook.clientConfig}";
    let hook = lab.kubectl(&["get", "crd", "resourcebindings.work.karmada.io", "-o", hook]);
    assert!(hook.contains("Q0Ey") && hook.contains("https://karmada-webhook.karmada-system.svc:443/convert"), "{hook}");
    assert_eq!(lab.apply_of(KIND, &karmaform_model::Change::Delete { before: state.clone() }).unwrap(), None);
    assert_eq!(lab.observe_of(KIND, Some(&state), None).unwrap(), None);
    assert!(!lab.kubectl(&["get", "crd", "-o", "name"]).contains("karmada"));
}
