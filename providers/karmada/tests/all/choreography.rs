//! The order and the impact of plans, and changes that are refused.

use std::collections::BTreeMap;

use crate::common::{address, arguments, composite, expand, lookup, with};
use karmaform_model::{Change, ChildChange, ChildStep, Choreography, Diagnostics, Object, Point, Scene, Type, Value};
use serde_json::{Value as Json, json};

type Children = BTreeMap<Vec<ChildStep>, (String, Object)>;

fn children(arguments: Option<&Object>) -> Children {
    let Some(arguments) = arguments else { return Children::new() };
    let resolved = |c: &karmaform_model::Child| c.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&lookup))).collect();
    expand(arguments).unwrap().children.iter().map(|c| (c.path.clone(), (c.resource_type.clone(), resolved(c)))).collect()
}

/// The record of a plane that was applied: arguments and outputs.
fn record(arguments: &Object) -> Object {
    let mut record = arguments.clone();
    for (name, output) in expand(arguments).unwrap().outputs {
        record.insert(name, output.resolve(&lookup));
    }
    record
}

fn choreograph(before: Option<&Object>, wanted: Option<&Object>) -> Result<Choreography, Diagnostics> {
    let (old, new) = (children(before), children(wanted));
    let mut changes: BTreeMap<Vec<ChildStep>, (String, Change)> = BTreeMap::new();
    for (path, (kind, after)) in &new {
        let after = after.clone();
        let change = match old.get(path) {
            None => Change::Create { after },
            Some((_, before)) if *before == after => Change::NoOp { object: after },
            Some((_, before)) => Change::Update { before: before.clone(), after },
        };
        changes.insert(path.clone(), (kind.clone(), change));
    }
    for (path, (kind, before)) in &old {
        let delete = || (kind.clone(), Change::Delete { before: before.clone() });
        changes.entry(path.clone()).or_insert_with(delete);
    }
    let record = before.map(record);
    let of = |(path, (kind, change)): (&Vec<ChildStep>, &'_ (String, Change))| (path.clone(), kind.clone(), change.clone());
    let owned: Vec<_> = changes.iter().map(of).collect();
    let children = owned
        .iter()
        .map(|(path, kind, change)| {
            (path.clone(), ChildChange { resource_type: kind, change, observed: None, in_state: old.contains_key(path), unseen: false })
        })
        .collect();
    composite().choreograph(&Scene { address: &address(), before: record.as_ref(), wanted, children })
}

fn impact(before: Json, wanted: Json) -> Vec<String> {
    choreograph(Some(&with(&before)), Some(&with(&wanted))).unwrap().impact
}

#[test]
fn the_impact_is_told_in_plain_words() {
    let installed = choreograph(None, Some(&arguments())).unwrap().impact;
    assert_eq!(installed, ["installs Karmada 1.19.0 (6 components)"]);
    let check = |before: Json, wanted: Json, expected: &[&str]| assert_eq!(impact(before, wanted), expected);
    let args =
        |component: &str, replicas: i64, v: &str| json!({ "component": { component: { "replicas": replicas, "extra_args": { "v": v } } } });
    check(args("scheduler", 2, "1"), args("scheduler", 2, "2"), &["restarts the scheduler, one pod at a time; the other replica serves"]);
    check(args("scheduler", 3, "1"), args("scheduler", 3, "2"), &["restarts the scheduler, one pod at a time; the other 2 replicas serve"]);
    check(
        args("webhook", 1, "1"),
        args("webhook", 1, "2"),
        &["restarts the webhook: 1 replica; policies, bindings and works can't be written meanwhile"],
    );
    check(args("webhook", 0, "1"), args("webhook", 0, "2"), &["changes the webhook, of which no pod runs"]);
    check(args("apiserver", 1, "1"), args("apiserver", 1, "2"), &["the Karmada API restarts: 1 replica, so it is unavailable for moments"]);
    check(args("apiserver", 2, "1"), args("apiserver", 2, "2"), &["restarts the Karmada API, one pod at a time; the other replica serves"]);
    check(args("webhook", 2, "1"), args("webhook", 3, "1"), &["scales the webhook from 2 to 3"]);
    check(args("scheduler", 2, "1"), args("scheduler", 0, "1"), &["scales the scheduler from 2 to 0: nothing is scheduled"]);
    check(json!({}), json!({ "addon": { "search": {} } }), &["installs the addon search"]);
    check(json!({ "addon": { "search": {} } }), json!({}), &["removes the addon search"]);
    check(
        json!({}),
        json!({ "certificates": { "sans": ["x.example"] } }),
        &["no restart for new certificates: the components read their files again"],
    );
    let renamed = impact(json!({}), json!({ "service": { "names": ["x.example"] } }));
    assert!(renamed.contains(&"the administrator's kubeconfig changes: it has to be handed out again".to_owned()), "{renamed:?}");
    let upgraded = impact(json!({ "version": "1.18.0", "kube_version": "1.35.2" }), json!({}));
    assert_eq!(upgraded[..2], ["Karmada 1.18.0 becomes 1.19.0", "Kubernetes behind the Karmada API 1.35.2 becomes 1.36.2"]);
}

/// What destroying says, with what was seen of the list of members and of the prefix.
fn destroyed(more: &Json, members: Option<Object>, keys: Option<i64>) -> Vec<String> {
    let arguments = with(more);
    let owned = children(Some(&arguments));
    let changes: BTreeMap<_, _> =
        owned.iter().map(|(path, (kind, before))| (path.clone(), (kind.clone(), Change::Delete { before: before.clone() }))).collect();
    let prefix = keys.map(|k| Object::from([("keys".to_owned(), k.into())]));
    let seen = |path: &Vec<ChildStep>| match path[0].name.as_str() {
        "members" => members.as_ref(),
        "etcd_prefix" => prefix.as_ref(),
        _ => None,
    };
    let scene_children = changes
        .iter()
        .map(|(path, (kind, change))| {
            (path.clone(), ChildChange { resource_type: kind, change, observed: seen(path), in_state: true, unseen: false })
        })
        .collect();
    let record = record(&arguments);
    let scene = Scene { address: &address(), before: Some(&record), wanted: None, children: scene_children };
    composite().choreograph(&scene).unwrap().impact
}

#[test]
fn destroying_tells_what_stays_on_members_and_in_etcd() {
    let item =
        |name: &str, mode: &str| Value::map(Type::String, [("name".to_owned(), name.into()), ("mode".to_owned(), mode.into())].into());
    let items = |items: Vec<Value>| Some(Object::from([("items".to_owned(), Value::list(Type::map(Type::String), items))]));
    let alone = destroyed(&json!({}), items(Vec::new()), None);
    assert_eq!(alone[0], "stops and removes the control plane (6 components)");
    assert_eq!(alone.last().unwrap(), "everything in the Karmada API stays in etcd, below /registry, and goes only if that etcd does");

    let joined = destroyed(&json!({}), items(vec![item("eu1", "Push"), item("eu2", "Pull")]), None);
    let at = joined.iter().position(|l| l == "2 members are still joined: eu1 (push), eu2 (pull)").expect("the members");
    assert!(joined[at + 2].contains("`karmadactl unjoin NAME`") && joined[at + 3].contains("`karmadactl unregister NAME`"), "{joined:?}");
    let pushed = destroyed(&json!({}), items((0..12).map(|i| item(&format!("m{i}"), "Push")).collect()), None);
    assert!(
        pushed.iter().any(|l| l.starts_with("12 members are still joined: m0 (push)") && l.ends_with("m9 (push) and 2 more")),
        "{pushed:?}"
    );
    assert!(!pushed.iter().any(|l| l.contains("unregister")), "{pushed:?}");

    // Nobody answers: that is said, and why as far as somebody knows.
    let silent = destroyed(&json!({}), None, None);
    assert!(
        silent.last().unwrap().starts_with("whether members are still joined can't be told: the Karmada API does not answer;"),
        "{silent:?}"
    );
    let problem = Object::from([("problem".to_owned(), "The server says 503.".into())]);
    let silent = destroyed(&json!({}), Some(problem), None);
    assert!(silent.last().unwrap().contains("can't be told: The server says 503;"), "{silent:?}");

    let deleting = json!({ "etcd_data_on_destroy": "delete", "etcd": { "prefix": "/karmada/a" } });
    let told = destroyed(&deleting, items(Vec::new()), Some(321));
    assert_eq!(told.last().unwrap(), "data will be deleted: all 321 keys below /karmada/a in etcd, which is everything in the Karmada API");
}

#[test]
fn the_prefix_is_taken_before_anyone_writes_there() {
    let expansion = expand(&arguments()).unwrap();
    let prefix = vec![ChildStep::new("etcd_prefix")];
    let after: Vec<String> = expansion.children.iter().filter(|c| c.after.contains(&prefix)).map(|c| c.path[0].to_string()).collect();
    assert_eq!(after, ["component[\"apiserver\"]", "component[\"aggregated-apiserver\"]"]);
    let child = expansion.children.iter().find(|c| c.path == prefix).unwrap();
    let of = |name: &str| child.arguments[name].resolve(&lookup);
    assert_eq!((of("prefix").as_str(), of("owner").as_str()), (Some("/registry"), Some("karmada-system/prod")));
    assert_eq!(of("cluster").get("via").and_then(|v| v.get("id")).and_then(Value::as_str), Some("host"));
    // Whoever ends while the data goes would write some of it again.
    let deleting = expand(&with(&json!({ "etcd_data_on_destroy": "delete" }))).unwrap();
    let waited: Vec<String> = deleting
        .children
        .iter()
        .filter(|c| c.arguments.get("propagation").is_some_and(|p| p.resolve(&lookup).as_str() == Some("foreground")))
        .map(|c| c.path[0].to_string())
        .collect();
    assert_eq!(waited, after);
    // The members are never deleted one by one, and nothing waits for them.
    let gone = choreograph(Some(&arguments()), None).unwrap().forgotten;
    assert!(gone.contains(&vec![ChildStep::new("members")]) && !gone.contains(&prefix));
}

#[test]
fn nothing_is_done_in_the_api_before_it_answers() {
    let choreography = choreograph(None, Some(&arguments())).unwrap();
    let [gate, last] = &choreography.gates[..] else { panic!() };
    assert_eq!((last.gate.as_str(), last.name.as_str()), ("kubernetes_accepts", "policies are admitted"));
    let webhook = Point::Child(vec![ChildStep::keyed("component", "webhook")]);
    assert!(choreography.orderings.contains(&(webhook, Point::Gate(last.name.clone()))));
    assert_eq!((gate.gate.as_str(), gate.name.as_str()), ("kubernetes_ready", "the Karmada API answers"));
    let connection = gate.arguments["cluster"].resolve(&lookup);
    assert_eq!(connection.get("id").and_then(Value::as_str), Some("karmada_control_plane.prod"));
    let is_gate = |p: &Point| matches!(p, Point::Gate(_));
    let after: Vec<_> = choreography.orderings.iter().filter(|(a, _)| is_gate(a)).map(|(_, b)| b.clone()).collect();
    let before: Vec<_> = choreography.orderings.iter().filter(|(_, b)| is_gate(b)).map(|(a, _)| a.clone()).collect();
    assert!(after.contains(&Point::Child(vec![ChildStep::new("crds")])));
    assert!(after.len() > 3 && before.contains(&Point::Child(vec![ChildStep::keyed("component", "apiserver")])));
    for expansion_child in expand(&arguments()).unwrap().children.iter().filter(|c| c.path[0].name == "api") {
        assert!(after.contains(&Point::Child(expansion_child.path.clone())), "{:?}", expansion_child.path);
    }
    // What is not about the API server does not ask it.
    let scheduler = with(&json!({ "component": { "scheduler": { "replicas": 3 } } }));
    assert!(choreograph(Some(&arguments()), Some(&scheduler)).unwrap().gates.is_empty());
    let server = with(&json!({ "component": { "apiserver": { "replicas": 3 } } }));
    // Whoever missed it is waited for, after it and after the changes of its own.
    let server = choreograph(Some(&arguments()), Some(&server)).unwrap();
    assert_eq!(server.gates.iter().map(|g| g.gate.as_str()).collect::<Vec<_>>(), ["kubernetes_ready", "kubernetes_runs"]);
    let all = with(&json!({ "defaults": { "labels": { "a": "b" } } }));
    let scheduler = Point::Child(vec![ChildStep::keyed("component", "scheduler")]);
    let orderings = choreograph(Some(&arguments()), Some(&all)).unwrap().orderings;
    assert!(orderings.contains(&(scheduler, Point::Gate("all components run".to_owned()))));
}

#[test]
fn a_stopped_api_is_not_waited_for() {
    let stopped = json!({ "component": { "apiserver": { "replicas": 0 } } });
    let choreography = choreograph(Some(&arguments()), Some(&with(&stopped))).unwrap();
    assert!(choreography.gates.is_empty());
    assert_eq!(choreography.impact, ["scales the Karmada API server from 2 to 0: the Karmada API is unavailable"]);
    let and_more = json!({ "component": { "apiserver": { "replicas": 0 } }, "addon": { "search": {} } });
    refused(stopped, and_more, "A change inside an API that is stopped", "1 or more");
}

fn refused(before: Json, wanted: Json, summary: &str, words: &str) {
    let Err(found) = choreograph(Some(&with(&before)), Some(&with(&wanted))) else { panic!("not refused: {summary}") };
    let text = |d: &karmaform_model::Diagnostic| format!("{} {}", d.detail, d.hints.join(" "));
    assert!(found.iter().any(|d| d.summary == summary && text(d).contains(words)), "{summary}, {words}: {found:?}");
    assert!(found.iter().all(|d| d.address == Some(address())));
}

#[test]
fn changes_that_are_refused() {
    refused(json!({}), json!({ "name": "other" }), "`name` of a control plane can't be changed", "Put `name` back to \"prod\"");
    let namespace = json!({ "kubernetes": { "namespace": "x" } });
    refused(json!({}), namespace, "`kubernetes.namespace` of a control plane can't be changed", "karmada-system");
    let prefix = |p: &str| json!({ "etcd": { "prefix": p } });
    let summary = "`etcd.prefix` of a control plane can't be changed";
    refused(json!({}), prefix("/x"), summary, "back to \"/registry\"");
    refused(prefix("/x"), prefix("/y"), summary, "would be gone");
    refused(prefix("/x"), json!({}), summary, "\"/registry\"");
    assert!(choreograph(Some(&arguments()), Some(&with(&prefix("/registry")))).is_ok());
    let version = |karmada: &str, kube: &str| json!({ "version": karmada, "kube_version": kube });
    let skips = "An upgrade that skips a minor version";
    refused(version("1.17.0", "1.35.2"), version("1.19.0", "1.36.2"), skips, "the newest 1.18 first");
    refused(version("1.19.1", "1.36.2"), version("1.19.0", "1.36.2"), "A control plane can't go back", "Stay at 1.19.1");
    refused(version("1.19.0", "1.36.2"), version("1.18.0", "1.36.2"), "A control plane can't go back", "snapshot of etcd");
    let skips = "An upgrade of Kubernetes that skips a minor version";
    refused(version("1.19.0", "1.34.1"), version("1.19.0", "1.36.2"), skips, "a 1.35 first");
    refused(version("1.19.0", "1.36.2"), version("1.19.0", "1.35.2"), "Kubernetes can't go back", "Keep `kube_version` at 1.36.2");
    assert!(choreograph(Some(&with(&version("1.18.0", "1.35.2"))), Some(&with(&version("1.19.0", "1.36.2")))).is_ok());
}

#[test]
fn no_key_goes_that_data_is_encrypted_with() {
    let key = |name: &str| json!({ "name": name, "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" });
    let keys = |names: &[&str]| json!({ "encryption": { "keys": names.iter().map(|n| key(n)).collect::<Vec<_>>() } });
    let reading = |names: &[&str]| {
        let mut block = keys(names);
        block["encryption"]["encrypt"] = false.into();
        block
    };
    let tried = |before: &Json, wanted: &Json| choreograph(Some(&with(before)), Some(&with(wanted)));
    let refused = |before: Json, wanted: Json, expected: &str| {
        let found = tried(&before, &wanted).expect_err("refused");
        assert!(found.iter().any(|d| d.summary == expected), "{before} to {wanted}: {found:?}");
    };
    let (lost, unknown) = ("The key that data is encrypted with would go", "A key that not all replicas know would encrypt");
    refused(keys(&["a"]), json!({}), lost);
    refused(keys(&["a"]), keys(&["b"]), lost);
    refused(keys(&["a"]), keys(&["b", "a"]), unknown);
    let mut other = keys(&["a"]);
    other["encryption"]["keys"][0]["secret"] = "MTEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=".into();
    refused(keys(&["a"]), other, lost);
    // One replica restarts at once, and reads with both.
    let mut alone = keys(&["b", "a"]);
    alone["component"] = json!({ "apiserver": { "replicas": 1 } });
    tried(&keys(&["a"]), &alone).unwrap();
    // The way from one key to the next, and out.
    let steps = [json!({}), keys(&["a"]), keys(&["a", "b"]), keys(&["b", "a"]), keys(&["b"]), reading(&["b"]), json!({})];
    let told: Vec<Vec<String>> = steps.windows(2).map(|s| tried(&s[0], &s[1]).unwrap().impact).collect();
    let says = |step: usize, words: &str| assert!(told[step].iter().any(|l| l.contains(words)), "{step}: {:?}", told[step]);
    says(0, "the key \"a\" encrypts from now on");
    assert!(!told[1].iter().any(|l| l.contains("key")), "{:?}", told[1]);
    says(2, "the key \"b\" encrypts from now on");
    says(3, "the key \"a\" goes");
    says(4, "nothing is encrypted from now on");
    says(5, "the key \"b\" goes");
}

#[test]
fn who_is_behind_its_etcd_does_not_follow_to_the_next_certificates() {
    let of = |ca: Value, certificate: Value| {
        let mut all = arguments();
        let mut etcd = all["etcd"].as_entries().unwrap().clone();
        etcd.insert("ca_certificate".to_owned(), ca);
        etcd.insert("certificate".to_owned(), certificate);
        all.insert("etcd".to_owned(), etcd.into());
        all
    };
    let later = || Value::unknown(karmaform_model::Type::String);
    let cas = |names: &[&str]| Value::from(names.iter().map(|n| format!("-----BEGIN CERTIFICATE-----\n{n}\n")).collect::<String>());
    let (one, both) = (|| cas(&["1"]), || cas(&["1", "2"]));
    let before = record(&of(one(), "leaf 1".into()));
    let is_behind = |ca: Value, certificate: Value| {
        let (wanted, address) = (of(ca, certificate), address());
        let scene = Scene { address: &address, before: Some(&before), wanted: Some(&wanted), children: BTreeMap::new() };
        let refused = composite().recover(&scene).err();
        refused.is_some_and(|found| found.iter().any(|d| d.summary == "The control plane is behind its etcd"))
    };
    // One more CA, new certificates, one CA less, a CA renewed: each the etcd's own change.
    for (ca, certificate) in [
        (later(), "leaf 1".into()),
        (one(), later()),
        (one(), "leaf 2".into()),
        (both(), "leaf 1".into()),
        (later(), later()),
        (cas(&["1 renewed"]), "leaf 2".into()),
    ] {
        assert!(!is_behind(ca, certificate));
    }
    // Both CAs were never given to it, and certificates of the second are next; or its new certificate was not, and the first CA goes.
    assert!(is_behind(both(), later()));
    assert!(is_behind(both(), "leaf 2".into()));
}

#[test]
fn after_a_change_of_etcd_the_api_answers_and_all_components_run() {
    let recovered = |arguments: &Object, ready: bool, unseen: bool| {
        let children = children(Some(arguments));
        let changes =
            children.iter().map(|(path, (kind, object))| (path, kind, Change::NoOp { object: object.clone() })).collect::<Vec<_>>();
        let observed = Object::from([("ready".to_owned(), ready.into())]);
        let child = |(path, kind, change): &'_ (&Vec<ChildStep>, &String, Change)| -> (Vec<ChildStep>, bool, String, Change) {
            (path.to_vec(), path[0].name == "component", (*kind).clone(), change.clone())
        };
        let owned: Vec<_> = changes.iter().map(child).collect();
        let children = owned.iter().map(|(path, is_component, kind, change)| {
            let observed = Some(&observed).filter(|_| *is_component);
            (path.clone(), ChildChange { resource_type: kind, change, observed, in_state: true, unseen })
        });
        let (address, record) = (address(), record(arguments));
        let scene = Scene { address: &address, before: Some(&record), wanted: Some(arguments), children: children.collect() };
        let dance = composite().recover(&scene).unwrap();
        assert_eq!(dance.orderings.len(), dance.gates.len().saturating_sub(1));
        dance.gates.into_iter().map(|g| g.name).collect::<Vec<_>>()
    };
    let usual = arguments();
    assert_eq!(recovered(&usual, true, false), ["the Karmada API answers", "all components run"]);
    // What did not run before does not run after; and who is away, or not to run at all, is not asked.
    assert_eq!(recovered(&usual, false, false), ["the Karmada API answers"]);
    assert!(recovered(&usual, true, true).is_empty());
    assert!(recovered(&with(&json!({ "component": { "apiserver": { "replicas": 0 } } })), true, false).is_empty());
}
