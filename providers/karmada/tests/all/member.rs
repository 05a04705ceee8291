//! What a member expands into, and what a plan says of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_karmada::composites;
use karmaform_model::{
    Address, Change, ChildChange, ChildStep, Choreography, Composite, Expansion, Key, Object, ReplaceOrder, Scene, Type, Value,
    implied_from_json, to_json,
};
use serde_json::{Value as Json, json};

fn composite() -> Arc<dyn Composite> {
    composites().into_iter().find(|c| c.name() == "karmada_member").unwrap()
}

fn address() -> Address {
    Address::managed("karmada_member", "all").with_key(Some(Key::Name("eu1".into())))
}

fn arguments(more: &Json) -> Object {
    let mut all = json!({
        "control_plane": { "provider": "kubernetes", "id": "p1", "server": "https://karmada:5443", "server_ca": "PLANE CA" },
        "cluster": { "provider": "kubernetes", "id": "c1", "server": "https://eu1:6443", "kubeconfig": "k" },
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    implied_from_json(&all).as_entries().unwrap().clone()
}

fn expand(more: &Json) -> Expansion {
    composite().expand(&address(), &arguments(more)).unwrap()
}

/// An attribute of a sibling as the tests see it: `<token[controller].exposed>`.
fn lookup(sibling: &[ChildStep], attribute: &str) -> Value {
    let key = match &sibling[0].key {
        Some(Key::Name(key)) => format!("[{key}]"),
        _ => String::new(),
    };
    let named = format!("<{}{key}.{attribute}>", sibling[0].name);
    if attribute == "exposed" {
        return Value::object([("token", format!("{named}token").into()), ("ca", format!("{named}ca").into())]);
    }
    named.into()
}

/// An argument of a child, resolved.
fn argument(expansion: &Expansion, name: &str, key: Option<&str>, argument: &str) -> Json {
    let path = match key {
        Some(key) => vec![ChildStep::keyed(name, key)],
        None => vec![ChildStep::new(name)],
    };
    let child = expansion.children.iter().find(|c| c.path == path).unwrap_or_else(|| panic!("no child {name} {key:?}"));
    child.arguments.get(argument).map_or(Json::Null, |a| to_json(&a.resolve(&lookup)))
}

#[test]
fn what_the_control_plane_has_in_a_member_is_named_after_it() {
    let expansion = expand(&json!({}));
    let other = expand(&json!({ "control_plane": { "provider": "kubernetes", "id": "p2" } }));
    let name =
        |e: &Expansion, child: &str| argument(e, child, Some("controller"), "manifest")["metadata"]["name"].as_str().unwrap().to_owned();
    for child in ["account", "role_binding", "token"] {
        assert!(name(&expansion, child).starts_with("karmada-eu1-"), "{child}");
        assert_ne!(name(&expansion, child), name(&other, child), "{child}");
    }
    let secret = argument(&expansion, "secret", Some("controller"), "manifest");
    assert_eq!(secret["metadata"]["name"], "eu1");
    assert_eq!(secret["data"], json!({ "token": "<token[controller].exposed>token", "caBundle": "<token[controller].exposed>ca" }));
    let cluster = argument(&expansion, "cluster", None, "manifest");
    assert_eq!(
        cluster["spec"],
        json!({
            "id": "c1", "syncMode": "Push", "apiEndpoint": "https://eu1:6443",
            "secretRef": { "namespace": "karmada-cluster", "name": "eu1" },
            "impersonatorSecretRef": { "namespace": "karmada-cluster", "name": "eu1-impersonator" },
        })
    );
    // It need not answer when a plan is made.
    assert_eq!(argument(&expansion, "role", None, "cluster")["required"], false);
    assert_eq!(argument(&expansion, "cluster", None, "cluster").get("required"), None);
}

#[test]
fn settings_go_where_karmada_looks_for_them() {
    let expansion = expand(&json!({
        "provider": "acme", "region": "eu", "zones": ["a", "b"], "labels": { "tier": "gold" }, "proxy_url": "socks5://x", "insecure": true,
        "ca_certificate": "CA", "impersonation": false, "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
        "api_endpoint": "https://10.0.0.1:6443", "cluster_namespace": "members",
    }));
    let cluster = argument(&expansion, "cluster", None, "manifest");
    assert_eq!(cluster["metadata"]["labels"]["tier"], "gold");
    let spec = &cluster["spec"];
    assert_eq!((&spec["provider"], &spec["region"], &spec["zones"]), (&json!("acme"), &json!("eu"), &json!(["a", "b"])));
    assert_eq!((&spec["proxyURL"], &spec["insecureSkipTLSVerification"]), (&json!("socks5://x"), &json!(true)));
    assert_eq!((&spec["apiEndpoint"], &spec["impersonatorSecretRef"]), (&json!("https://10.0.0.1:6443"), &Json::Null));
    assert_eq!(argument(&expansion, "secret", Some("controller"), "manifest")["data"]["caBundle"], "Q0E=");
    assert_eq!(argument(&expansion, "role", None, "manifest")["rules"][0]["resources"], json!(["pods"]));
    assert!(!expansion.children.iter().any(|c| c.path == [ChildStep::keyed("account", "impersonator")]));
    // A namespace of its own goes with the last member, Karmada's stays.
    assert_eq!(argument(&expansion, "plane_namespace", None, "keep_if_used"), json!(true));
    assert_eq!(argument(&expand(&json!({})), "plane_namespace", None, "keep"), json!(true));
}

#[test]
fn the_namespace_of_estimators_is_the_same_object_for_member_and_control_plane() {
    let namespace = |more: &Json| {
        let mut estimator = json!({ "inside": true, "address": "10.0.0.1", "port": 30352, "version": "1.19.0" });
        estimator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        argument(&expand(&json!({ "estimator": estimator })), "estimator_namespace", None, "manifest")
    };
    // As a control plane has it: another label here would be taken away there, by turns.
    let own = json!({ "app.kubernetes.io/managed-by": "karmaform", "karmada.io/system": "true" });
    assert_eq!(namespace(&json!({}))["metadata"], json!({ "name": "karmada-system", "labels": own }));
    let other = namespace(&json!({ "service_namespace": "elsewhere" }));
    assert_eq!(other["metadata"]["labels"]["namespace.karmada.io/skip-auto-propagation"], "true");
}

#[test]
fn an_agent_says_the_same_as_the_cluster_object() {
    let agent = json!({ "version": "1.19.0", "replicas": 1, "extra_args": { "v": "4" } });
    let expansion = expand(&json!({ "mode": "pull", "agent": agent, "region": "eu", "zones": ["a", "b"] }));
    let manifest = argument(&expansion, "agent", None, "manifest");
    let container = &manifest["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "docker.io/karmada/karmada-agent:v1.19.0");
    let flags: Vec<&str> = container["args"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
    for flag in ["--cluster-name=eu1", "--cluster-region=eu", "--cluster-zones=a,b", "--report-secrets=None", "--v=4"] {
        assert!(flags.contains(&flag), "{flag} is not in {flags:?}");
    }
    assert_eq!(argument(&expansion, "cluster", None, "manifest")["spec"]["syncMode"], "Pull");
    let secret = argument(&expansion, "agent_secret", None, "manifest");
    assert!(secret["data"]["karmada-kubeconfig"].is_string());
    let names: Vec<Json> = ["agent", "agent-secret", "agent-work"]
        .map(|grant| argument(&expansion, "plane_role_binding", Some(grant), "manifest")["subjects"][0]["name"].clone())
        .to_vec();
    assert_eq!(names, vec![json!("system:karmada:agent:eu1"); 3]);
    // With a control plane that is made in the same run the parts are the same.
    let mut later = arguments(&json!({ "mode": "pull", "agent": agent }));
    later.insert("control_plane".to_owned(), Value::unknown(Type::Any));
    let unknown = composite().expand(&address(), &later).unwrap();
    let paths = |e: &Expansion| e.children.iter().map(|c| c.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&unknown), paths(&expansion));
}

#[test]
fn pods_are_another_users_where_namespaces_ask_for_it() {
    let security = |more: &Json, child: &str| {
        let manifest = argument(&expand(more), child, None, "manifest");
        manifest["spec"]["template"]["spec"]["securityContext"].clone()
    };
    let agent = |user: Json| json!({ "mode": "pull", "agent": { "version": "1.19.0", "run_as_user": user } });
    let estimator =
        json!({ "estimator": { "inside": true, "address": "10.0.0.1", "port": 30352, "version": "1.19.0", "run_as_user": 1001 } });
    let wanted = |user: i64| json!({ "runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user, "seccompProfile": { "type": "RuntimeDefault" } });
    assert_eq!(security(&agent(json!(65532)), "agent"), wanted(65_532));
    assert_eq!(security(&estimator, "estimator"), wanted(1001));
    // A cluster that gives each namespace users of its own would take no other.
    assert_eq!(security(&agent(Json::Null), "agent"), Json::Null);
    let refused = composite().expand(&address(), &arguments(&agent(json!(0)))).unwrap_err();
    assert!(refused.iter().any(|d| d.detail.contains("`agent.run_as_user` must be a whole number from 1")), "{refused:?}");
}

#[test]
fn an_agent_is_rolled_for_another_authority() {
    let annotations = |ca: &str| {
        let agent = json!({ "version": "1.19.0", "ca_certificate": ca });
        let manifest = argument(&expand(&json!({ "mode": "pull", "agent": agent })), "agent", None, "manifest");
        manifest["spec"]["template"]["metadata"]["annotations"].clone()
    };
    let (one, other) = (annotations("CA 1"), annotations("CA 2"));
    assert_eq!(one, annotations("CA 1"));
    assert_ne!(one["karmaform/ca"], other["karmaform/ca"]);
    assert!(one["karmaform/ca"].is_string() && one["karmaform/certificate"] == other["karmaform/certificate"], "{one}");
}

#[test]
fn an_agent_knows_all_hosts_of_a_control_plane() {
    let expanded = |agent: Json, addresses: Json| {
        let plane = json!({
            "provider": "kubernetes", "id": "p1", "server": "https://10.0.0.11:5443", "ca_certificate": "PLANE CA", "identity": "i",
            "address": "https://prod-apiserver.karmada-system.svc.cluster.local:5443", "addresses": addresses,
        });
        let expansion = expand(&json!({ "control_plane": plane, "mode": "pull", "agent": agent, "preflight": {} }));
        let pod = argument(&expansion, "agent", None, "manifest")["spec"]["template"]["spec"].clone();
        let encoded = argument(&expansion, "agent_secret", None, "manifest")["data"]["karmada-kubeconfig"].as_str().unwrap().to_owned();
        (pod["hostAliases"].clone(), encoded, argument(&expansion, "preflight", None, "address"))
    };
    let agent = |more: Json| {
        let mut agent = json!({ "version": "1.19.0" });
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        agent
    };
    let two = json!(["10.0.0.11", "10.0.0.12"]);
    let (aliases, several, tried) = expanded(agent(json!({})), two.clone());
    let names = ["prod-apiserver.karmada-system.svc.cluster.local"];
    assert_eq!(aliases, json!([{ "ip": "10.0.0.11", "hostnames": names }, { "ip": "10.0.0.12", "hostnames": names }]));
    assert_eq!(tried, "https://10.0.0.11:5443");
    // Whoever says where it is, or has one address for all, is taken at that.
    let (aliases, one, _) = expanded(agent(json!({})), Json::Null);
    assert!(aliases.is_null() && one != several);
    let (aliases, written, tried) = expanded(agent(json!({ "server": "https://karmada.example:5443" })), two);
    assert!(aliases.is_null() && written != several && written != one);
    assert_eq!(tried, "https://karmada.example:5443");
}

#[test]
fn a_cluster_that_is_to_join_must_answer() {
    let mut silent = arguments(&json!({}));
    let mut way = silent["cluster"].as_entries().unwrap().clone();
    way.insert("id".to_owned(), Value::unknown(Type::String));
    silent.insert("cluster".to_owned(), way.into());
    let refused = composite().expand(&address(), &silent).unwrap_err();
    let summaries: Vec<_> = refused.iter().map(|d| d.summary.as_str()).collect();
    assert_eq!(summaries, ["A cluster that does not answer"]);
}

/// A plan in which all children have the same fate; `unseen` are those in the member.
fn choreograph(more: &Json, facts: &Json, unseen: bool, fate: impl Fn(Object) -> Change) -> Choreography {
    let expansion = expand(more);
    let facts = implied_from_json(facts).as_entries().cloned().unwrap_or_default();
    let changes: Vec<_> = expansion
        .children
        .iter()
        .map(|c| {
            let mut object: Object = c.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&lookup))).collect();
            let manifest = object.get("manifest").map(to_json).unwrap_or_default();
            let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
            let (kind, metadata) = (text(&manifest["kind"]), &manifest["metadata"]);
            object.insert("object".into(), format!("{kind}/{}/{}", text(&metadata["namespace"]), text(&metadata["name"])).into());
            (c.path.clone(), c.resource_type.clone(), fate(object))
        })
        .collect();
    let children: BTreeMap<_, _> = changes
        .iter()
        .map(|(path, kind, change)| {
            let is_there = change.before().and_then(|b| b.get("cluster")).and_then(|c| c.get("required")).is_some();
            let observed = (path[0].name == "membership").then_some(&facts);
            (path.clone(), ChildChange { resource_type: kind, change, observed, in_state: true, unseen: unseen && is_there })
        })
        .collect();
    let record = arguments(more);
    composite().choreograph(&Scene { address: &address(), before: Some(&record), wanted: None, children }).unwrap()
}

fn gone(before: Object) -> Change {
    Change::Delete { before }
}

#[test]
fn leaving_says_what_becomes_of_what_was_propagated() {
    let facts = json!({ "ready": "True", "resources": ["Deployment.apps default/web"] });
    let impact = |more: Json, facts: &Json| choreograph(&more, facts, false, gone).impact;
    assert_eq!(impact(json!({}), &facts), ["leaves; is deleted in the member: Deployment.apps default/web"]);
    let kept = impact(json!({ "keep_resources": true }), &facts);
    assert_eq!(kept, ["leaves; stays in the member, and nobody looks after it any more: Deployment.apps default/web"]);
    assert_eq!(impact(json!({}), &json!({ "ready": "True", "resources": [] })), ["leaves; nothing was propagated to it"]);
    let moved = |before: Object| Change::Replace { after: before.clone(), before, order: ReplaceOrder::DestroyFirst, because: Vec::new() };
    let moves = choreograph(&json!({}), &json!({}), false, moved).impact;
    assert!(moves[0].starts_with("moves: it leaves the control plane it is in"), "{moves:?}");
    assert_eq!(moves[1], "what was propagated to it is deleted in the member");
}

#[test]
fn a_member_that_does_not_answer_is_waited_for_or_left_behind() {
    let facts = json!({ "ready": "False", "problem": "Ready is False", "resources": ["Deployment.apps default/web"] });
    let waits = choreograph(&json!({}), &facts, true, gone);
    assert_eq!(waits.gates.iter().map(|g| (g.gate.as_str(), g.limit)).collect::<Vec<_>>(), [("kubernetes_ready", 60)]);
    assert!(waits.forgotten.is_empty());
    assert_eq!(waits.orderings.len(), expand(&json!({})).children.len(), "nothing is done before it answers");

    let forced = choreograph(&json!({ "force": true, "leave_timeout": 5 }), &facts, true, gone);
    assert!(forced.gates.is_empty());
    let in_member =
        expand(&json!({})).children.iter().filter(|c| c.arguments["cluster"].resolve(&lookup).get("required").is_some()).count();
    assert_eq!(forced.forgotten.len(), in_member);
    let commands: Vec<&String> = forced.impact.iter().filter(|l| l.starts_with("  kubectl delete")).collect();
    // Each of them, what was propagated, and what Karmada itself brought.
    assert_eq!(commands.len(), in_member + 2, "{:#?}", forced.impact);
    assert!(commands.iter().any(|c| *c == "  kubectl delete -n default deployment.apps web"));

    // One that answers is left in order, whatever is allowed.
    let well = choreograph(&json!({ "force": true }), &json!({ "ready": "True", "resources": [] }), false, gone);
    assert!(well.gates.is_empty() && well.forgotten.is_empty());
}

/// The connection to a control plane that karmaform made.
fn made_by_karmaform() -> Json {
    json!({
        "provider": "kubernetes", "id": "p1", "address": "https://karmada-apiserver.ks.svc:5443", "ca_certificate": "PLANE CA",
        "via": { "provider": "kubernetes", "id": "h1", "kubeconfig": "h" }, "namespace": "ks", "karmada_version": "1.19.0",
    })
}

#[test]
fn the_way_is_tried_from_where_it_will_be_gone() {
    let push = expand(&json!({ "control_plane": made_by_karmaform(), "proxy_url": "http://proxy:3128", "preflight": {} }));
    let of = |expansion: &Expansion, name: &str| argument(expansion, "preflight", None, name);
    assert_eq!((of(&push, "cluster")["id"].clone(), of(&push, "target")["id"].clone()), (json!("h1"), json!("c1")));
    assert_eq!((of(&push, "namespace"), of(&push, "address")), (json!("ks"), json!("https://eu1:6443")));
    assert_eq!(of(&push, "image"), "docker.io/karmada/karmada-controller-manager:v1.19.0");
    assert_eq!((of(&push, "proxy_url"), of(&push, "ca_certificate")), (json!("http://proxy:3128"), Json::Null));
    let path = vec![ChildStep::new("preflight")];
    assert!(push.children.iter().all(|c| c.path == path || c.after.contains(&path)), "before everything else");

    let agent = json!({ "image": "a:1", "server": "https://karmada.example.org:5443" });
    let preflight = json!({ "namespace": "n", "image_pull_secrets": ["s"], "tolerations": [{ "operator": "Exists" }] });
    let pull = expand(&json!({ "control_plane": made_by_karmaform(), "mode": "pull", "agent": agent, "preflight": preflight }));
    assert_eq!((of(&pull, "cluster")["id"].clone(), of(&pull, "target")["id"].clone()), (json!("c1"), json!("p1")));
    assert_eq!((of(&pull, "namespace"), of(&pull, "image")), (json!("n"), json!("a:1")));
    assert_eq!((of(&pull, "address"), of(&pull, "ca_certificate")), (json!("https://karmada.example.org:5443"), json!("PLANE CA")));
    assert_eq!(of(&pull, "pod"), json!({ "imagePullSecrets": [{ "name": "s" }], "tolerations": [{ "operator": "Exists" }] }));
    // Without the block nothing is tried.
    assert!(expand(&json!({})).children.iter().all(|c| c.path != path));
}

#[test]
fn a_preflight_that_nobody_can_make_is_refused() {
    let refusals = |more: &Json| {
        let found = composite().expand(&address(), &arguments(more)).unwrap_err();
        found.into_iter().map(|d| d.detail).collect::<Vec<_>>().join(" ")
    };
    let elsewhere = refusals(&json!({ "preflight": {} }));
    assert!(elsewhere.contains("`preflight.cluster` must be written: karmaform did not make the control plane"), "{elsewhere}");
    let headers = json!({ "control_plane": made_by_karmaform(), "proxy_url": "http://p", "proxy_headers": { "a": "b" }, "preflight": {} });
    assert!(refusals(&headers).contains("`preflight` can't be with `proxy_headers`"));
    let proxy = json!({ "control_plane": made_by_karmaform(), "proxy_url": "https://p", "preflight": {} });
    assert!(refusals(&proxy).contains("`preflight` can't be with this `proxy_url`"));
}
