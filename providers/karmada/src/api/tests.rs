//! Tests of the objects: the whole of them as recorded files, and what must hold for every version.

use std::collections::BTreeSet;

use karmaform_model::{ChildStep, to_json};

use super::*;

/// A place of this version, with the CA as a child gives it.
fn place<'a>(version: &'a Version, addons: &'a [Component]) -> Place<'a> {
    Place {
        reached: &|component| match component {
            Component::Webhook => ("prod-webhook.fleet.svc".to_owned(), 443),
            other => (format!("prod-{}.fleet.svc.cluster.local", other.name()), 443),
        },
        version,
        ca: Arg::child(&[ChildStep::new("ca")], "certificate"),
        server: "https://karmada.example.org:5443".into(),
        addons,
    }
}

/// A version.
fn version(minor: u32) -> Version {
    Version::parse(&format!("1.{minor}.0")).expect("a known version")
}

/// What an argument is once the CA is known.
fn resolved(arg: &Arg) -> Json {
    to_json(&arg.resolve(&|path, attribute| {
        assert_eq!((path, attribute), (&[ChildStep::new("ca")][..], "certificate"));
        "FAKE CA\n".into()
    }))
}

/// The objects as one JSON value.
fn recorded(objects: &[ApiObject]) -> Json {
    let one = |o: &ApiObject| {
        json!({
            "key": o.key,
            "stage": format!("{:?}", o.stage),
            "after": o.after,
            "wait": o.wait.as_ref().map(resolved),
            "manifest": resolved(&o.manifest),
        })
    };
    objects.iter().map(one).collect()
}

/// Compares with a recorded file; `BLESS=1` records it anew.
fn check(file: &str, expected: &str, objects: &[ApiObject]) {
    let got = format!("{:#}\n", recorded(objects));
    if std::env::var_os("BLESS").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/recorded").join(file);
        std::fs::write(path, &got).expect("writes the file");
        return;
    }
    assert_eq!(got, expected, "{file}: if the change is meant, record it with BLESS=1");
}

#[test]
fn a_control_plane_without_addons() {
    check("plain.json", include_str!("recorded/plain.json"), &objects(&place(&version(19), &[])));
}

#[test]
fn a_control_plane_with_addons() {
    let addons = [Component::Search, Component::Descheduler, Component::MetricsAdapter];
    let version = version(19);
    let all = objects(&place(&version, &addons));
    // What is the same without addons is in the other file.
    let plain = objects(&place(&version, &[]));
    let added: Vec<ApiObject> = all.iter().filter(|o| !plain.contains(o)).cloned().collect();
    assert_eq!(all.len(), plain.len() + added.len());
    check("addons.json", include_str!("recorded/addons.json"), &added);
}

#[test]
fn entries_belong_to_versions() {
    let entries = |minor: u32, key: &str| -> BTreeSet<String> {
        let all = objects(&place(&version(minor), &[]));
        let manifest = resolved(&all.iter().find(|o| o.key == key).expect("is there").manifest);
        manifest["webhooks"].as_array().expect("a list").iter().map(|w| w["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (mutating, validating) = ("mutatingwebhookconfiguration mutating-config", "validatingwebhookconfiguration validating-config");
    for (minor, first, second) in [(13, 8, 12), (14, 8, 14), (16, 8, 14), (19, 8, 14)] {
        assert_eq!(entries(minor, mutating).len(), first, "1.{minor}");
        assert_eq!(entries(minor, validating).len(), second, "1.{minor}");
    }
    let new: Vec<String> = entries(14, validating).difference(&entries(13, validating)).cloned().collect();
    assert_eq!(new, ["clustertaintpolicy.karmada.io", "resourcebinding.karmada.io"]);
}

#[test]
fn objects_refer_to_each_other_and_come_in_stages() {
    for minor in 13..=19 {
        for addons in [&[][..], &[Component::Search], &[Component::Descheduler, Component::MetricsAdapter]] {
            let all = objects(&place(&version(minor), addons));
            let keys: BTreeSet<&str> = all.iter().map(|o| o.key.as_str()).collect();
            assert_eq!(keys.len(), all.len(), "keys are unique");
            for (at, object) in all.iter().enumerate() {
                for before in &object.after {
                    let other = all.iter().position(|o| o.key == *before).expect("a key of another object");
                    assert!(other < at, "{}: {before} comes first", object.key);
                    assert!(all[other].stage <= object.stage || object.stage == Stage::First, "{}: {before} is not later", object.key);
                }
                let manifest = resolved(&object.manifest);
                let metadata = &manifest["metadata"];
                assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "karmaform", "{}", object.key);
                let (kind, name) = (manifest["kind"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap_or_default());
                assert_eq!(object.key, format!("{} {name}", kind.to_lowercase()));
                assert_eq!(object.wait.is_some(), kind == "APIService", "{}", object.key);
            }
        }
    }
}

#[test]
fn every_component_that_runs_may_do_something() {
    let version = version(19);
    for addons in [&[][..], &[Component::Search, Component::Descheduler, Component::MetricsAdapter]] {
        let all = objects(&place(&version, addons));
        for component in Component::ALL {
            let expected = !component.is_kube() && (!component.is_addon() || addons.contains(&component));
            let who = user(component);
            let bound = all.iter().any(|o| {
                let manifest = resolved(&o.manifest);
                manifest["kind"] == "ClusterRoleBinding" && manifest["subjects"][0]["name"] == who.as_str()
            });
            assert_eq!(bound, expected, "{who}");
        }
    }
}

#[test]
fn nothing_else_depends_on_the_ca_being_known() {
    let version = version(19);
    let later: Vec<String> = objects(&place(&version, &[]))
        .into_iter()
        .filter(|o| {
            let mut found = Vec::new();
            o.manifest.references(&mut found);
            !found.is_empty()
        })
        .map(|o| o.key)
        .collect();
    assert_eq!(
        later,
        [
            "mutatingwebhookconfiguration mutating-config",
            "validatingwebhookconfiguration validating-config",
            "apiservice v1alpha1.cluster.karmada.io",
            "configmap cluster-info",
        ]
    );
}
