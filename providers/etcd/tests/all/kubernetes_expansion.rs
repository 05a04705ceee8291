//! What a cluster on Kubernetes expands into: its manifests, the same children whatever is known, and arguments that are refused.

use karmaform_etcd::EtcdCluster;
use karmaform_model::{Address, Change, Child, ChildChange, Composite, Diagnostics, Expansion, Kind, Object, Scene, Type, Value, to_json};

fn address() -> Address {
    Address::managed("etcd_cluster", "main")
}

fn expand(arguments: &Object) -> Result<Expansion, Diagnostics> {
    EtcdCluster.expand(&address(), arguments)
}

/// What a `data "kubernetes_cluster"` gives, with a version of the server.
fn cluster(version: &str) -> Value {
    let node = |name: &str, ready: bool| Value::object([("name", name.into()), ("ready", ready.into())]);
    let connection = Value::object([("provider", "kubernetes".into()), ("id", "host".into()), ("version", version.into())]);
    Value::object([
        ("connection", connection),
        ("version", version.into()),
        ("nodes", Value::tuple(vec![node("node1", true), node("node2", true), node("node3", false)])),
        ("storage_classes", Value::strings(["fast", "slow"])),
    ])
}

fn arguments(entries: &[(&str, Value)]) -> Object {
    let mut block = Object::from([
        ("cluster".to_owned(), cluster("1.36.2")),
        ("namespace".to_owned(), "karmada".into()),
        ("members".to_owned(), 3i64.into()),
        ("storage".to_owned(), "fast".into()),
        ("storage_size".to_owned(), "10Gi".into()),
    ]);
    block.extend(entries.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
    Object::from([("version".to_owned(), "3.6.8".into()), ("kubernetes".to_owned(), block.into())])
}

fn with(mut arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    arguments.insert(name.to_owned(), value.into());
    arguments
}

fn on_nodes() -> Object {
    arguments(&[("storage", "hostPath".into()), ("nodes", Value::strings(["node1", "node2"]))])
}

/// A child's manifest, with what other children give as `<attribute of child>`.
fn manifest(arguments: &Object, child: &str) -> String {
    let expansion = expand(arguments).unwrap();
    let wanted = format!("etcd_cluster.main/{child}");
    let found = expansion.children.iter().find(|c| address().with_child(&c.path).to_string() == wanted).unwrap();
    let value = found.arguments["manifest"].resolve(&|path, attribute| {
        let sibling = address().with_child(path).to_string();
        format!("<{attribute} of {}>", sibling.trim_start_matches("etcd_cluster.main/")).into()
    });
    serde_json::to_string_pretty(&to_json(&value)).unwrap()
}

/// One manifest, or several in a list.
fn golden(name: &str, texts: &[String]) {
    let text = if let [one] = texts { format!("{one}\n") } else { format!("[\n{}\n]\n", texts.join(",\n")) };
    crate::golden::golden(&format!("kubernetes-{name}.json"), &text);
}

#[test]
fn manifests() {
    let plain = arguments(&[]);
    golden("stateful-set", &[manifest(&plain, "stateful_set")]);
    golden("secret", &[manifest(&plain, "member[\"etcd-main-0\"]/secret")]);
    golden("services", &[manifest(&plain, "peer_service"), manifest(&plain, "client_service")]);
    golden("disruption-budget", &[manifest(&plain, "disruption_budget")]);
    golden("disruption-budget-1.20", &[manifest(&arguments(&[("cluster", cluster("v1.20.2"))]), "disruption_budget")]);
    let volume = |child: &str| manifest(&on_nodes(), &format!("member[\"etcd-main-2\"]/{child}"));
    golden("volume", &[volume("volume"), volume("claim")]);
    golden("formed", &[manifest(&plain, "formed")]);
}

/// A part that was known stays, and nothing comes to a list or an object that was known.
fn fits(early: &Value, late: &Value, place: &str) {
    match (&early.kind, &late.kind) {
        (Kind::Unknown(_), _) => {}
        (Kind::Object(early), Kind::Object(late)) => {
            assert_eq!(early.keys().collect::<Vec<_>>(), late.keys().collect::<Vec<_>>(), "{place}");
            early.iter().for_each(|(name, value)| fits(value, &late[name], &format!("{place}.{name}")));
        }
        _ => match (early.as_items(), late.as_items()) {
            (Some(early), Some(late)) => {
                assert_eq!(early.len(), late.len(), "{place}");
                early.iter().zip(late).enumerate().for_each(|(i, (e, l))| fits(e, l, &format!("{place}.{i}")));
            }
            _ => assert_eq!(early, late, "{place}"),
        },
    }
}

#[test]
fn the_same_children_whatever_is_known() {
    let unknown = || Value::unknown(Type::Any);
    let map = || Value::map(Type::String, [("a".to_owned(), "b".into())].into());
    let full = |storage: &[(&str, Value)]| {
        let mut entries = vec![
            ("image", "mirror.example/etcd:3.6.8-0".into()),
            ("labels", map()),
            ("annotations", map()),
            ("node_selector", map()),
            ("image_pull_secrets", Value::strings(["pull"])),
            ("priority_class", "high".into()),
            ("resources", Value::object([("limits", Value::object([("memory", "1Gi".into())]))])),
        ];
        entries.extend(storage.iter().cloned());
        with(arguments(&entries), "settings", Value::map(Type::String, [("snapshot-count".to_owned(), "5000".into())].into()))
    };
    let nodes = [("storage", "hostPath".into()), ("nodes", Value::strings(["node1", "node2"])), ("host_path", "/data".into())];
    for late in [full(&[]), full(&nodes), arguments(&[("cluster", cluster("1.20.0"))])] {
        let known = expand(&late).unwrap();
        let block = late["kubernetes"].as_entries().unwrap().clone();
        let mut early = vec![with(late.clone(), "settings", unknown()), with(late.clone(), "certificate_validity_hours", unknown())];
        for name in block.keys().filter(|n| !matches!(n.as_str(), "members" | "storage")) {
            early.push(with(late.clone(), "kubernetes", with(block.clone(), name, unknown())));
        }
        for early in early {
            let expansion = expand(&early).unwrap();
            assert_eq!(expansion.children.len(), known.children.len());
            for (early, late) in expansion.children.iter().zip(&known.children) {
                let place = address().with_child(&late.path).to_string();
                assert_eq!((&early.path, &early.resource_type, &early.after), (&late.path, &late.resource_type, &late.after));
                assert_eq!(early.arguments.keys().collect::<Vec<_>>(), late.arguments.keys().collect::<Vec<_>>());
                for (name, argument) in early.arguments.iter().filter(|(n, _)| *n != "cluster" && *n != "validity_hours") {
                    let value = |a: &karmaform_model::Arg| a.resolve(&|_, _| "made".into());
                    fits(&value(argument), &value(&late.arguments[name]), &format!("{place}.{name}"));
                }
            }
        }
    }
}

fn refused(arguments: &Object, expected: &str) {
    let Err(found) = expand(arguments) else { panic!("not refused: {expected}") };
    assert_eq!(found.iter().map(|d| d.summary.as_str()).collect::<Vec<_>>(), [expected], "{found:?}");
    for diagnostic in found.iter() {
        assert!(diagnostic.detail.ends_with('.') && !diagnostic.summary.ends_with('.'), "{diagnostic:?}");
        assert_eq!(diagnostic.address, Some(address()));
    }
}

#[test]
fn arguments_that_can_not_be_served() {
    let null = || Value::null(Type::Any);
    for (entries, expected) in [
        (&[("members", 0i64.into())][..], "A number of members that etcd is not made for"),
        (&[("members", 8i64.into())], "A number of members that etcd is not made for"),
        (&[("members", to_number("2.5"))], "A number of members that etcd is not made for"),
        (&[("members", Value::unknown(Type::Number))], "A value that must be known when planning"),
        (&[("namespace", "A_B".into())], "Not a namespace"),
        (&[("namespace", null())], "No namespace"),
        (&[("name", "a".repeat(46).into())], "Not a name for Kubernetes"),
        (&[("name", "1a".into())], "Not a name for Kubernetes"),
        (&[("name", Value::unknown(Type::String))], "A value that must be known when planning"),
        (&[("storage", null())], "No storage for the data"),
        (&[("storage", Value::unknown(Type::String))], "A value that must be known when planning"),
        (&[("storage", "emptyDir".into())], "A size for nothing"),
        (&[("storage_size", null())], "No size for the data"),
        (&[("storage", "hostPath".into())], "No nodes for the data"),
        (&[("storage", "hostPath".into()), ("nodes", Value::tuple(Vec::new()))], "No nodes for the data"),
        (&[("nodes", Value::strings(["node1"]))], "Nodes for nothing"),
        (&[("storage", "emptyDir".into()), ("storage_size", null()), ("nodes", Value::strings(["node1"]))], "Nodes for nothing"),
        (&[("storage", "emptyDir".into()), ("storage_size", null()), ("host_path", "/data".into())], "A folder for nothing"),
        (&[("spread", "x".into())], "Unknown `spread`"),
        (&[("spread", "required".into()), ("members", 5i64.into())], "More members than nodes"),
        (&[("cluster", Value::object([("version", "1.36.2".into())]))], "No way to the cluster"),
        (&[("cluster", "host".into())], "No way to the cluster"),
    ] {
        refused(&arguments(entries), expected);
    }
    let host = Value::object([("a", Value::object([("address", "10.0.0.11".into())]))]);
    refused(&with(arguments(&[]), "hosts", host), "Two places for one cluster");
    refused(&with(arguments(&[]), "source", "etcd.tar.gz"), "Arguments of hosts");
    refused(&with(arguments(&[]), "client_port", 12379i64), "Arguments of hosts");
    // A node that is not ready just now is no reason.
    assert!(expand(&arguments(&[("spread", "required".into())])).is_ok());
}

/// Whoever removes a class does no harm to volumes of it that are there.
#[test]
fn a_storage_class_must_be_there_for_new_volumes_only() {
    for (storage, claims_are_there, expected) in
        [("fast", false, None), ("none", false, Some("Unknown storage class")), ("none", true, None)]
    {
        let wanted = arguments(&[("storage", storage.into())]);
        let children = expand(&wanted).unwrap().children;
        let changes: Vec<_> = children
            .iter()
            .map(|c| {
                let object: Object = c.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&|_, _| Value::unknown(Type::Any)))).collect();
                let is_there = claims_are_there && c.path.last().is_some_and(|s| s.name == "claim");
                if is_there { Change::NoOp { object } } else { Change::Create { after: object } }
            })
            .collect();
        let child = |(c, change): (&Child, &'_ Change)| (c.path.clone(), c.resource_type.clone(), change.clone());
        let owned: Vec<_> = children.iter().zip(&changes).map(child).collect();
        let scene_children = owned
            .iter()
            .map(|(path, kind, change)| {
                (path.clone(), ChildChange { resource_type: kind, change, observed: None, in_state: false, unseen: false })
            })
            .collect();
        let address = address();
        let scene = Scene { address: &address, before: None, wanted: Some(&wanted), children: scene_children };
        let refused = EtcdCluster.choreograph(&scene).err().map(|d| d.into_iter().map(|d| d.summary).collect::<Vec<_>>().join(", "));
        let refused = refused.filter(|r| r.contains("storage class"));
        assert_eq!(refused.as_deref(), expected, "{storage} {claims_are_there}");
    }
}

fn to_number(text: &str) -> Value {
    karmaform_model::implied_from_json(&serde_json::from_str(text).unwrap())
}

#[test]
fn keys_are_secret_and_only_in_secrets() {
    let expansion = expand(&arguments(&[])).unwrap();
    let mut without = arguments(&[]);
    without.insert("keep_authority".to_owned(), false.into());
    assert_eq!(expand(&without).unwrap().children.len() + 1, expansion.children.len());
    for child in expansion.children.iter().filter(|c| c.resource_type.starts_with("kubernetes_")) {
        let is_secret = child.path.last().is_some_and(|s| s.name == "secret" || s.name == "authority");
        for (name, argument) in &child.arguments {
            let value = argument.resolve(&|_, attribute| Value::from("x").secret_if(attribute == "private_key"));
            assert_eq!(value.contains_secret(), is_secret && name == "manifest", "{:?}", child.path);
        }
    }
}
