//! A control plane goes to another etcd: what counts as one, in which order it goes, and what is refused.

use std::collections::BTreeMap;

use karmaform_model::{Change, ChildChange, ChildStep, Choreography, Diagnostics, Object, Point, Scene, Type, Value};
use serde_json::json;

use crate::common::{address, arguments, composite, expand, lookup, path, with};

/// One CA or several, as a bundle.
fn bundle(names: &[&str]) -> Value {
    names.iter().map(|n| format!("-----BEGIN CERTIFICATE-----\n{n}\n-----END CERTIFICATE-----\n")).collect::<String>().into()
}

/// A control plane that uses this etcd.
fn using(hosts: &[&str], cas: &[&str], cluster_id: Option<&str>) -> Object {
    let endpoints = Value::strings(hosts.iter().map(|h| format!("https://{h}:2379")));
    using_parts(&[("endpoints", endpoints), ("ca_certificate", bundle(cas)), ("cluster_id", id(cluster_id))])
}

fn id(id: Option<&str>) -> Value {
    id.map_or_else(|| Value::null(Type::String), Value::from)
}

fn using_parts(parts: &[(&str, Value)]) -> Object {
    let mut all = arguments();
    let mut etcd = all["etcd"].as_entries().unwrap().clone();
    etcd.extend(parts.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
    all.insert("etcd".to_owned(), etcd.into());
    all
}

/// What a control plane is made of.
fn parts(arguments: &Object) -> BTreeMap<Vec<ChildStep>, (String, Object)> {
    let resolved = |c: &karmaform_model::Child| c.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&lookup))).collect();
    expand(arguments).unwrap().children.iter().map(|c| (c.path.clone(), (c.resource_type.clone(), resolved(c)))).collect()
}

/// The choreography of a change from one to the other, where all parts of the control plane that have one but for these are in the plan.
fn choreograph(before: &Object, wanted: &Object, left_out: &[&str], fact: &str) -> Result<Choreography, Diagnostics> {
    let (old, new) = (parts(before), parts(wanted));
    let change = |(path, (kind, after)): (&Vec<ChildStep>, &(String, Object))| {
        let (was, after) = (old[path].1.clone(), after.clone());
        let change = if was == after { Change::NoOp { object: after } } else { Change::Update { before: was, after } };
        (path.clone(), kind.clone(), change)
    };
    let changes: Vec<_> = new.iter().filter(|(p, _)| !left_out.contains(&path(p).as_str())).map(change).collect();
    let seen = Object::from([(fact.to_owned(), true.into())]);
    let children = changes.iter().map(|(at, kind, change)| {
        let observed = Some(&seen).filter(|_| path(at) == "etcd_prefix");
        (at.clone(), ChildChange { resource_type: kind, change, observed, in_state: true, unseen: false })
    });
    let address = address();
    composite().choreograph(&Scene { address: &address, before: Some(before), wanted: Some(wanted), children: children.collect() })
}

fn moves(before: &Object, wanted: &Object) -> bool {
    let made = choreograph(before, wanted, &[], "checked").unwrap();
    let gates = made.gates.iter().any(|g| g.gate == "etcd_move");
    assert_eq!(gates, made.impact.iter().any(|l| l.starts_with("moves everything below /registry")), "{:?}", made.impact);
    assert_eq!(gates, !made.renewed.is_empty());
    gates
}

#[test]
fn another_etcd_is_told_from_one_that_has_changed() {
    let before = using(&["10.0.0.1", "10.0.0.2"], &["one"], Some("c1"));
    let unknown = || Value::unknown(Type::String);
    let endpoint = |host: &str| Value::strings([format!("https://{host}:2379")]);
    // Members that go and come, another CA beside the first, restored where it is, and restored elsewhere.
    for same in [
        using(&["10.0.0.2", "10.0.0.3"], &["one"], Some("c1")),
        using(&["10.0.0.8", "10.0.0.9"], &["one"], Some("c1")),
        using(&["10.0.0.1"], &["one", "two"], Some("c1")),
        using(&["10.0.0.1"], &["one"], Some("c2")),
        using(&["10.0.0.8"], &["one"], Some("c2")),
        using_parts(&[("endpoints", endpoint("10.0.0.8")), ("ca_certificate", bundle(&["one"])), ("cluster_id", unknown())]),
    ] {
        assert!(!moves(&before, &same), "{same:?}");
    }
    // Another cluster, that is there or not yet; one that nobody's `etcd_cluster` is, also with the same CA.
    let elsewhere = using(&["10.0.0.8"], &["two"], Some("c2"));
    let not_yet = [("endpoints", endpoint("10.0.0.8")), ("ca_certificate", unknown()), ("cluster_id", unknown())];
    for other in [elsewhere.clone(), using_parts(&not_yet), using(&["10.0.0.8"], &["two"], None), using(&["10.0.0.8"], &["one"], None)] {
        assert!(moves(&before, &other), "{other:?}");
    }
    let outside = using(&["10.0.0.8"], &["one"], None);
    assert!(!moves(&outside, &elsewhere), "an endpoint is the same");
    assert!(moves(&outside, &using(&["10.0.0.9"], &["one"], None)) && moves(&outside, &before));
}

#[test]
fn all_that_use_etcd_stop_between_the_copy_and_the_rest_of_it() {
    let (before, wanted) = (using(&["10.0.0.1"], &["one"], Some("c1")), using(&["10.0.0.8"], &["two"], Some("c2")));
    let made = choreograph(&before, &wanted, &[], "checked").unwrap();
    let point = |point: &Point| match point {
        Point::Child(steps) => path(steps),
        Point::Gate(name) => format!("<{name}>"),
    };
    let orderings: Vec<_> = made.orderings.iter().map(|(a, b)| format!("{} -> {}", point(a), point(b))).collect();
    for expected in [
        "etcd_prefix -> <what is in etcd is copied>",
        "<what is in etcd is copied> -> <apiserver has stopped>",
        "<what is in etcd is copied> -> <aggregated-apiserver has stopped>",
        "<apiserver has stopped> -> <the new etcd has everything>",
        "<aggregated-apiserver has stopped> -> <the new etcd has everything>",
        "<the new etcd has everything> -> secret[\"apiserver\"]",
        "<the new etcd has everything> -> component[\"apiserver\"]",
        "<the new etcd has everything> -> component[\"aggregated-apiserver\"]",
    ] {
        assert!(orderings.iter().any(|o| o == expected), "no {expected} in\n{}", orderings.join("\n"));
    }
    assert!(!orderings.iter().any(|o| o.contains("everything> -> component[\"scheduler\"]")));
    let told: Vec<_> = made.told.iter().map(|t| (path(&t.child), t.attribute, t.value.as_bool())).collect();
    assert_eq!(told, [("etcd_prefix".to_owned(), "is_copy", Some(true))]);
    assert!(!made.impact.iter().any(|l| l.contains("serves") && l.contains("restarts the Karmada API")), "{:?}", made.impact);
    // The old one is asked with what was used last, and stays a secret.
    let moved = made.gates.iter().find(|g| g.gate == "etcd_move").unwrap();
    let from = moved.arguments["from"].resolve(&lookup);
    assert_eq!(from.get("endpoints").and_then(|e| e.as_items()?.first()?.as_str()), Some("https://10.0.0.1:2379"));
    assert!(from.get("private_key").is_some_and(Value::contains_secret));
}

#[test]
fn what_would_lose_something_is_refused_or_agreed_to_by_name() {
    let (before, wanted) = (using(&["10.0.0.1"], &["one"], Some("c1")), using(&["10.0.0.8"], &["two"], Some("c2")));
    let refused = |before: &Object, wanted: &Object, left_out: &[&str], fact: &str| {
        let found = choreograph(before, wanted, left_out, fact).unwrap_err();
        found.iter().map(|d| format!("{}: {}", d.summary, d.detail)).collect::<String>()
    };
    let part = refused(&before, &wanted, &["component[\"aggregated-apiserver\"]"], "checked");
    assert!(
        part.contains("A move of a part to another etcd") && part.contains("component[\"aggregated-apiserver\"] is not among"),
        "{part}"
    );
    // Back to where it was, when the new one counts already; and to a copy that nobody finished.
    let mut again = before.clone();
    again.insert("component".to_owned(), with(&json!({ "component": { "scheduler": { "replicas": 3 } } }))["component"].clone());
    for (fact, part) in [("is_left", "An etcd that was left"), ("is_unfinished", "An etcd that does not have everything")] {
        let told = refused(&before, &again, &[], fact);
        assert!(told.contains(part) && told.contains("/registry in the etcd at https://10.0.0.1:2379"), "{told}");
        // What it goes to may be either; and who says that it counts has it marked so.
        assert!(choreograph(&before, &wanted, &[], fact).is_ok());
        let mut counts = again.clone();
        counts.insert("adopt_etcd_data".to_owned(), true.into());
        let made = choreograph(&before, &counts, &[], fact).unwrap();
        assert!(made.renewed.len() == 1 && made.told.is_empty() && made.risk.confirm.is_none(), "{:?}", made.renewed);
    }
    assert!(choreograph(&before, &again, &[], "checked").unwrap().renewed.is_empty());
    // What is there is what counts, whatever there was before: that is a loss.
    let mut adopting = wanted;
    adopting.insert("adopt_etcd_data".to_owned(), true.into());
    let made = choreograph(&before, &adopting, &[], "checked").unwrap();
    assert!(made.gates.iter().all(|g| g.gate != "etcd_move"));
    assert!(made.risk.confirm.is_some_and(|why| why.contains("leaves behind all that the Karmada API has below /registry")));
    assert!(made.impact.contains(&"all that the Karmada API has now is left behind".to_owned()), "{:?}", made.impact);
}

/// Its first apply was cut off when the API servers ran, and what they have written is nowhere: who knows which etcd they had.
#[test]
fn servers_that_run_do_not_begin_with_nothing_unless_that_is_agreed_to() {
    let first = |arguments: &Object, is_made: bool| {
        let change = |(path, (kind, after)): (Vec<ChildStep>, (String, Object))| {
            let is_gone = kind == "etcd_prefix";
            let change = if is_gone { Change::Create { after } } else { Change::NoOp { object: after } };
            (path, kind, change)
        };
        let changes: Vec<_> = parts(arguments).into_iter().map(change).collect();
        let children = changes.iter().map(|(at, kind, change)| {
            (at.clone(), ChildChange { resource_type: kind, change, observed: None, in_state: is_made, unseen: false })
        });
        let address = address();
        composite().choreograph(&Scene { address: &address, before: None, wanted: Some(arguments), children: children.collect() })
    };
    let mut wanted = using(&["10.0.0.1"], &["one"], Some("c1"));
    let refused = first(&wanted, true).unwrap_err();
    let told = refused.iter().find(|d| d.summary == "An etcd with nothing in it").unwrap_or_else(|| panic!("{refused:?}"));
    assert!(told.detail.contains("there is nothing below /registry in the etcd at https://10.0.0.1:2379"), "{told:?}");
    assert!(told.hints[0].contains("apply to the end") && told.hints[1].contains("`adopt_etcd_data = true`"), "{told:?}");
    // What nobody has made yet has lost nothing.
    assert!(first(&wanted, false).is_ok());
    wanted.insert("adopt_etcd_data".to_owned(), true.into());
    assert!(first(&wanted, true).is_ok());
}
