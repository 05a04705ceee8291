//! What a host cluster that is well refuses: webhooks, quotas, namespaces on their way out, rights. Each is said once, and when it is mended
//! all goes on.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Host;
use super::faults::errors;
use crate::kubernetes_proxy::Proxy;
use crate::project::Project;

/// A namespace for one test; it goes with it.
struct Namespace<'a>(&'a Host);

impl<'a> Namespace<'a> {
    fn new(host: &'a Host) -> Self {
        let name = &host.namespace;
        host.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": { "kf": name } } }));
        Self(host)
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        // The next test counts what there is.
        let _ = self.0.command(&["delete", "namespace", &self.0.namespace, "--timeout=90s", "--ignore-not-found"]).output();
    }
}

impl Host {
    /// Makes an object. What kubectl validates by is not there at all times: it is made anew whenever something aggregated changes.
    #[track_caller]
    fn create(&self, manifest: &Value) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), manifest.to_string()).expect("written");
        self.run(&["create", "--validate=false", "-f", &file.path().to_string_lossy()]);
    }
}

/// A project with these objects in the test's namespace: name, further arguments, manifest.
fn project(host: &Host, kubeconfig: &str, objects: &[(&str, &str, Value)]) -> Project {
    let project = Project::new();
    let mut text = format!("data \"kubernetes_cluster\" \"host\" {{\n  kubeconfig_file = {kubeconfig:?}\n}}\n");
    for (name, more, manifest) in objects {
        let mut manifest = manifest.clone();
        manifest["metadata"]["name"] = (*name).into();
        if manifest["kind"] != "Namespace" {
            manifest["metadata"]["namespace"] = host.namespace.as_str().into();
        }
        let _ = writeln!(
            text,
            "resource \"kubernetes_object\" {name:?} {{\n  cluster = data.kubernetes_cluster.host.connection\n  \
             manifest = jsondecode({:?})\n{more}\n}}",
            manifest.to_string()
        );
    }
    project.write("main.kf.hcl", &text);
    project
}

fn map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "1" } })
}

fn workload(kind: &str) -> Value {
    let labels = json!({ "app": kind.to_lowercase() });
    let container =
        json!({ "name": "c", "image": "karmaform.test/busybox:1", "resources": { "limits": { "cpu": "50m", "memory": "20Mi" } } });
    let mut manifest = json!({ "apiVersion": "apps/v1", "kind": kind, "spec": { "replicas": 1, "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } } } });
    if kind == "StatefulSet" {
        manifest["spec"]["serviceName"] = "none".into();
    }
    manifest
}

/// One thing is said, and these words are in it.
#[track_caller]
fn one_error(text: &str, words: &[&str]) {
    // What is said is broken into lines where they end.
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(errors(text), 1, "{text}");
    for word in words {
        assert!(line.contains(word), "{word:?} is not in:\n{text}");
    }
}

#[test]
fn a_webhook_in_the_way_is_named() {
    let Some(host) = Host::for_test("a_webhook_in_the_way_is_named", "kf-webhook") else { return };
    let _namespace = Namespace::new(&host);
    let objects = [("a", "", map()), ("b", "", map()), ("c", "", map())];
    let project = project(&host, host.kubeconfig(), &objects);
    project.must(0, &["plan", "-out=saved"]);
    let name = "absent.kf-webhook.example.com";
    let service = json!({ "name": "nobody", "namespace": host.namespace, "path": "/" });
    host.create(&json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "kf-webhook" }, "webhooks": [{ "name": name, "clientConfig": { "service": service },
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 5,
            "namespaceSelector": { "matchLabels": { "kf": host.namespace } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"] }] }] }));
    let planned = project.run(&["plan"]);
    let applied = project.run(&["apply", "saved"]);
    host.run(&["delete", "validatingwebhookconfiguration", "kf-webhook"]);
    let words = ["Admission webhook does not answer", name, "service \"nobody\" not found", "more"];
    one_error(&planned.text, &words);
    one_error(&applied.text, &words);
    project.apply();
    project.no_changes();
    project.must(0, &["destroy", "-auto-approve"]);
}

#[test]
fn a_quota_is_named_where_it_is_met() {
    let Some(host) = Host::for_test("a_quota_is_named_where_it_is_met", "kf-quota") else { return };
    let _namespace = Namespace::new(&host);
    let wait = "  timeout = 300\n  wait {\n    rollout = true\n  }";
    // Of objects: already in the plan.
    let quota = |hard: Value| json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few", "namespace": host.namespace }, "spec": { "hard": hard } });
    host.create(&quota(json!({ "count/secrets": "0" })));
    host.eventually("the quota is counted", || host.object("resourcequota", "few")["status"]["used"]["count/secrets"].is_string());
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "stringData": { "k": "hunter22" } });
    let refused = project(&host, host.kubeconfig(), &[("s", "", secret)]).must(1, &["plan"]);
    one_error(&refused, &["Quota is exceeded", "secrets \"s\"", "ResourceQuota \"few\"", "limited: count/secrets=0"]);
    assert!(!refused.contains("hunter22"), "{refused}");
    host.run(&["-n", &host.namespace, "delete", "resourcequota", "few"]);
    // Of pods: they never come, and that is said long before the limit.
    host.create(&quota(json!({ "pods": "0" })));
    host.eventually("the quota is counted", || host.object("resourcequota", "few")["status"]["used"]["pods"].is_string());
    let workloads = project(&host, host.kubeconfig(), &[("d", wait, workload("Deployment")), ("s", wait, workload("StatefulSet"))]);
    let ended = workloads.run(&["apply", "-auto-approve"]);
    assert_eq!((ended.code, errors(&ended.text)), (Some(1), 2), "{}", ended.text);
    assert!(ended.text.matches("exceeded quota: few").count() >= 2, "{}", ended.text);
    assert!(ended.took.as_secs() < 60, "{:?}\n{}", ended.took, ended.text);
    host.run(&["-n", &host.namespace, "delete", "resourcequota", "few"]);
    // Of a pod's size.
    host.create(&json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "small", "namespace": host.namespace },
        "spec": { "limits": [{ "type": "Container", "max": { "memory": "10Mi" } }] } }));
    let limited = project(&host, host.kubeconfig(), &[("e", wait, workload("Deployment"))]);
    let ended = limited.run(&["apply", "-auto-approve"]);
    one_error(&ended.text, &["Waited in vain", "maximum memory usage per Container is 10Mi"]);
    assert!(ended.took.as_secs() < 60, "{:?}\n{}", ended.took, ended.text);
    host.run(&["-n", &host.namespace, "delete", "limitrange", "small"]);
    for project in [workloads, limited] {
        project.must(0, &["destroy", "-auto-approve"]);
    }
}

#[test]
fn a_namespace_on_its_way_out_says_what_holds_it() {
    let Some(host) = Host::for_test("a_namespace_on_its_way_out_says_what_holds_it", "kf-leaving") else { return };
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace" });
    let own = project(&host, host.kubeconfig(), &[(&host.namespace, "  timeout = 10", namespace.clone())]);
    own.apply();
    let held = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "held", "namespace": host.namespace, "finalizers": ["example.com/hold"] } });
    host.create(&held);
    // To be destroyed: bounded, and with what holds it.
    let ended = own.run(&["destroy", "-auto-approve"]);
    assert!(ended.took.as_secs() < 40, "{:?}", ended.took);
    one_error(&ended.text, &["Deletion does not finish", "example.com/hold", "configmaps"]);
    // To be used: before anything is done, once for all of it.
    let objects = [(host.namespace.as_str(), "  shared = true", namespace), ("a", "", map()), ("b", "", map())];
    let user = project(&host, host.kubeconfig(), &objects);
    let words = ["Namespace is being deleted", "example.com/hold", "more"];
    one_error(&user.must(1, &["plan"]), &words);
    host.run(&["-n", &host.namespace, "patch", "configmap", "held", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    own.must(0, &["destroy", "-auto-approve"]);
    let is_gone = || host.run(&["get", "namespace", &host.namespace, "--ignore-not-found", "-o", "name"]).is_empty();
    host.eventually("the namespace is gone", is_gone);
    user.apply();
    user.no_changes();
    user.must(0, &["destroy", "-auto-approve"]);
}

/// What a control plane's objects on the host cluster are made with, and what is looked at meanwhile.
const RIGHTS: [(&str, &str, &[&str]); 9] = [
    ("", "namespaces", &["get", "create", "patch"]),
    ("", "secrets", &["get", "list", "create", "patch"]),
    ("", "services", &["get", "list", "create", "patch"]),
    ("apps", "deployments", &["get", "list", "create", "patch"]),
    ("apps", "statefulsets", &["get", "create", "patch"]),
    ("policy", "poddisruptionbudgets", &["get", "list", "create", "patch"]),
    ("", "nodes", &["list"]),
    ("", "configmaps", &["get", "create", "patch"]),
    ("", "pods", &["get"]),
];

fn roles(user: &str, without: Option<(&str, &str)>) -> [Value; 2] {
    let rules = RIGHTS.iter().filter_map(|(group, resource, verbs)| {
        let left: Vec<_> = verbs.iter().filter(|v| without != Some((**v, *resource))).collect();
        (!left.is_empty()).then(|| json!({ "apiGroups": [group], "resources": [resource], "verbs": left }))
    });
    let storage = json!({ "apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["list"] });
    let rules: Vec<Value> = rules.chain([storage]).collect();
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({ "name": user });
    let subject = json!({ "apiGroup": api, "kind": "User", "name": user });
    [
        json!({ "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules }),
        json!({ "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata, "subjects": [subject],
            "roleRef": { "apiGroup": api, "kind": "ClusterRole", "name": user } }),
    ]
}

#[test]
fn a_right_that_is_missing_is_in_the_plan() {
    let Some(host) = Host::for_test("a_right_that_is_missing_is_in_the_plan", "kf-rights") else { return };
    let proxy = Proxy::new(host.kubeconfig());
    let way = format!("kubeconfig={}", proxy.kubeconfig());
    let all: Vec<(&str, &str)> = RIGHTS.iter().flat_map(|(_, resource, verbs)| verbs.iter().map(move |v| (*v, *resource))).collect();
    let user = |n: usize| format!("kf-rights-{n}");
    let mut items: Vec<Value> = all.iter().enumerate().flat_map(|(n, missing)| roles(&user(n), Some(*missing))).collect();
    items.extend(roles(&user(all.len()), None));
    host.create(&json!({ "apiVersion": "v1", "kind": "List", "items": items }));
    let plane = super::plane::Plane::example(&host, "demo");
    let plan = |n: usize| {
        proxy.act_as(Some(&user(n)));
        plane.project.run(&["plan", "-var", &way])
    };
    let whole = plan(all.len());
    let mut wrong = Vec::new();
    for (n, (verb, resource)) in all.iter().enumerate() {
        let ended = plan(n);
        let line = ended.text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Who may not list may get one by one, so that is nothing to miss.
        let is_told = ended.code == Some(1) && errors(&ended.text) == 1 && line.contains(&format!("{verb} {resource}"));
        let is_spared = *verb == "list" && *resource != "nodes" && ended.code == Some(0);
        if !is_told && !is_spared {
            wrong.push(format!("--- without {verb} {resource}\n{}", ended.text));
        }
    }
    for n in 0..=all.len() {
        host.run(&["delete", "clusterrole,clusterrolebinding", &user(n)]);
    }
    assert_eq!(whole.code, Some(0), "{}", whole.text);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
