//! The arguments of a `karmada_member`, checked once and given names.

use karmaform_model::{Address, Arg, Diagnostic, Diagnostics, Key, Object, Type, Value};

use super::agent::Settings;
use super::estimator;
use super::names::{self, name_problem};
use super::preflight;
use crate::api::CLUSTER_NAMESPACE;
use crate::check::{is_label, is_label_key, is_label_value};
use crate::plane::module_prefix;
use crate::read::{self, Reader};

/// The effects of taints that a Cluster object may have. Source: `pkg/apis/cluster/validation` in karmada.
const EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];

/// A member as it is wanted, or as it was.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) name: String,
    /// How the Karmada API is reached; perhaps not known yet.
    pub(crate) plane: Value,
    /// How the member is reached: it need not answer when a plan is made.
    pub(crate) member: Value,
    /// The control plane's mark in the names of what is in the member.
    pub(crate) mark: Option<String>,
    pub(crate) mode: String,
    pub(crate) namespace: String,
    pub(crate) endpoint: Value,
    pub(crate) ca_certificate: Value,
    pub(crate) insecure: bool,
    pub(crate) proxy_url: Value,
    pub(crate) proxy_headers: Value,
    pub(crate) provider: Value,
    pub(crate) region: Value,
    pub(crate) zones: Value,
    pub(crate) labels: Value,
    pub(crate) taints: Value,
    pub(crate) resource_models: Value,
    pub(crate) rules: Value,
    /// "everything" or "workloads".
    pub(crate) rights: String,
    /// A word in the names of tokens.
    pub(crate) rotation: Option<String>,
    pub(crate) impersonation: bool,
    pub(crate) keep_resources: bool,
    pub(crate) force: bool,
    pub(crate) verify: Value,
    pub(crate) timeout: Value,
    pub(crate) leave_timeout: Value,
    /// In pull mode.
    pub(crate) agent: Option<Settings>,
    pub(crate) estimator: Option<estimator::Settings>,
    pub(crate) preflight: Option<preflight::Settings>,
}

impl Arguments {
    /// Reads and checks them.
    pub(crate) fn read(address: &Address, object: &Object) -> Result<Self, Diagnostics> {
        read::all(address, object, |reader| Self::all(address, reader))
    }

    fn all(address: &Address, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let written = reader.text("name");
        let name = written.clone().unwrap_or_else(|| default_name(address));
        if let Some(problem) = name_problem(&name) {
            let whose =
                if written.is_some() { String::new() } else { format!("is not set, and \"{name}\", made of the resource's name and key,") };
            reader.wrong::<()>("name", format!("{whose} {problem}").trim_start());
        }
        let (plane, member) = (connection(reader, "control_plane"), connection(reader, "cluster"));
        let mode = reader.word("mode", &["push", "pull"], "push");
        let namespace = reader.text("cluster_namespace").unwrap_or_else(|| CLUSTER_NAMESPACE.to_owned());
        if !is_label(&namespace) {
            reader.wrong::<()>("cluster_namespace", "is not the name of a namespace");
        }
        let endpoint = endpoint(reader, &member);
        let insecure = reader.flag("insecure").unwrap_or(false) || member.get("insecure").and_then(Value::as_bool) == Some(true);
        let allowed = reader.flag("allow_host_cluster").unwrap_or(false);
        guard(reader, &plane, &member, allowed);
        for field in ["provider", "region"] {
            if reader.value(field).and_then(Value::as_str).is_some_and(|t| !is_label_value(t)) {
                reader.wrong::<()>(field, "must be written as a label's value: letters, digits, \"-\", \"_\" and \".\", 63 at most");
            }
        }
        labels(reader);
        taints(reader);
        let agent = Settings::read(&mut reader.block("agent"), &plane);
        let member = lenient(member);
        let estimator = estimator::Settings::read(&mut reader.block("estimator"), &plane, &member, (&name, &namespace));
        let image = agent.as_ref().map(|a| a.pods.image.clone());
        let preflight = preflight::Settings::read(&mut reader.block("preflight"), &plane, &member, image.as_ref());
        preflight::refused(reader, mode == "pull");
        if mode == "pull" && reader.flag("insecure") == Some(true) {
            reader.wrong::<()>("insecure", "is for the mode \"push\" alone: an agent reaches its member from within");
        }
        if mode == "pull" {
            // They are a flag of the agent.
            reader.texts("zones");
        }
        if mode == "pull" && reader.value("agent").is_none() {
            reader.wrong::<()>(
                "agent",
                "is missing: in the mode \"pull\" karmada-agent runs in the member, and `agent { version = ... }` says which",
            );
        } else if mode != "pull" && reader.value("agent").is_some() {
            reader.wrong::<()>("agent", "is for the mode \"pull\" alone: in the mode \"push\" nothing of Karmada runs in the member");
        }
        let rotation = reader.text("rotation");
        if rotation.as_ref().is_some_and(|r| !is_label(r) || r.len() > 30) {
            reader.wrong::<()>("rotation", "must be lower-case letters, digits and \"-\", 30 of them at most");
        }
        let impersonation = reader.flag("impersonation").unwrap_or(true);
        let rights = reader.word("rights", &["everything", "workloads"], "everything");
        if rights != "everything" && reader.value("rules").is_some() {
            reader.wrong::<()>("rights", "and `rules` are both written, and only one of them can be meant");
        }
        if rights != "everything" && impersonation {
            let why = "is given with `impersonation`: Karmada brings the role of that account itself, for which it needs the rights to give any rights. \
                       Write `impersonation = false`";
            reader.wrong::<()>("rights", why);
        }
        let (keep_resources, force) = (reader.flag("keep_resources").unwrap_or(false), reader.flag("force").unwrap_or(false));
        Some(Self {
            name,
            mark: names::mark(&plane),
            plane,
            member,
            mode,
            namespace,
            endpoint,
            ca_certificate: reader.given("ca_certificate"),
            insecure,
            proxy_url: reader.given("proxy_url"),
            proxy_headers: reader.given("proxy_headers"),
            provider: reader.given("provider"),
            region: reader.given("region"),
            zones: reader.given("zones"),
            labels: reader.given("labels"),
            taints: reader.given("taints"),
            resource_models: reader.given("resource_models"),
            rules: reader.given("rules"),
            rights,
            rotation,
            impersonation,
            keep_resources,
            force,
            verify: reader.given("verify"),
            timeout: reader.given("timeout"),
            leave_timeout: reader.given("leave_timeout"),
            agent,
            estimator,
            preflight,
        })
    }

    /// True if an agent in the member fetches what is to be done.
    pub(crate) fn is_pull(&self) -> bool {
        self.mode == "pull"
    }

    /// What an account of the control plane is called in the member.
    pub(crate) fn account(&self, role: &str) -> Arg {
        match &self.mark {
            Some(mark) if role.is_empty() => format!("karmada-{}-{mark}", self.name).into(),
            Some(mark) => format!("karmada-{}-{role}-{mark}", self.name).into(),
            None => Value::unknown_not_null(Type::String).into(),
        }
    }
}

/// The resource's name and key, with the modules that it is in. `_` becomes `-`.
fn default_name(address: &Address) -> String {
    let written = match &address.key {
        // The key of a list of members is what people call each.
        Some(Key::Name(key)) => key.clone(),
        Some(Key::Index(i)) => format!("{}-{i}", address.name),
        None => address.name.clone(),
    };
    (module_prefix(address) + &written).replace('_', "-")
}

/// A connection to a cluster, or what carries one.
pub(crate) fn connection_of(reader: &mut Reader<'_, '_>, name: &str) -> Value {
    let given = reader.given(name);
    let connection = given.get("connection").cloned().unwrap_or(given);
    let is_one = connection.is_unknown() || connection.get("provider").is_some_and(|p| p.is_unknown() || p.as_str() == Some("kubernetes"));
    if !is_one {
        let what = if name == "cluster" { "" } else { " or a `karmada_control_plane`" };
        reader.wrong::<()>(
            name,
            &format!("is no connection: it must be the attribute `connection` of a `data \"kubernetes_cluster\"`{what}"),
        );
    }
    connection
}

/// The CA of the Karmada API, as the connection to it says: written, or found in a kubeconfig.
pub(crate) fn plane_ca(plane: &Value) -> Option<Value> {
    ["ca_certificate", "server_ca"].into_iter().find_map(|name| plane.get(name).filter(|v| !v.is_null()).cloned())
}

/// The connection to what is to come together.
fn connection(reader: &mut Reader<'_, '_>, name: &str) -> Value {
    let connection = connection_of(reader, name);
    // One that was asked and did not answer says how it is reached, and not which one it is. What is joined is known from before.
    if connection.as_entries().is_some_and(|way| way.get("id").is_some_and(Value::is_unknown)) {
        reader.found.push(
            Diagnostic::error(
                "A cluster that does not answer",
                format!("`{name}` did not answer, so it can't be told which cluster it is. One that is to join, or to be joined, must."),
            )
            .with_hint("See whether it runs and can be reached from here; or leave this member out until it does."),
        );
    }
    connection
}

/// That the member does not answer is no error when a plan is made: the fleet goes on without it.
fn lenient(member: Value) -> Value {
    match member.as_entries() {
        Some(entries) => {
            let mut entries = entries.clone();
            entries.insert("required".to_owned(), false.into());
            Value::from(entries).secret_if(member.secret)
        }
        None => member,
    }
}

fn endpoint(reader: &mut Reader<'_, '_>, member: &Value) -> Value {
    let part = |name: &str| member.get(name).filter(|v| !v.is_null()).cloned();
    let found = reader.value("api_endpoint").cloned().or_else(|| part("server")).or_else(|| part("address"));
    let found = found.unwrap_or_else(|| Value::unknown_not_null(Type::String));
    if let Some(text) = found.as_str() {
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        if host.is_none_or(|h| h.is_empty() || h.starts_with('/')) {
            reader.wrong::<()>("api_endpoint", &format!("is \"{text}\", but must be a URL like \"https://10.0.0.1:6443\""));
        }
    }
    found
}

/// The cluster that carries the control plane is a member only if that is said.
fn guard(reader: &mut Reader<'_, '_>, plane: &Value, member: &Value, allowed: bool) {
    let id = |value: Option<&Value>| value.and_then(|v| v.get("id")).and_then(Value::as_str).map(str::to_owned);
    let (host, member) = (id(super::host_cluster(plane)), id(Some(member)));
    if !allowed && host.is_some() && host == member {
        reader.found.push(
            Diagnostic::error(
                "The control plane's own cluster",
                "`cluster` is the cluster that the control plane runs in. What is propagated there can overwrite or delete what carries the \
                 control plane.",
            )
            .with_hint("If that is wanted, set `allow_host_cluster = true`."),
        );
    } else if member.is_some() && id(Some(plane)) == member {
        reader.wrong::<()>("cluster", "is the Karmada API itself: `control_plane` and `cluster` reach the same");
    }
}

fn labels(reader: &mut Reader<'_, '_>) {
    let Some(labels) = reader.value("labels").and_then(Value::as_entries) else { return };
    for (key, value) in labels {
        if !is_label_key(key) || value.as_str().is_some_and(|v| !is_label_value(v)) {
            reader.wrong::<()>("labels", &format!("has \"{key}\", which is no label with a value that Kubernetes takes"));
        }
    }
}

fn taints(reader: &mut Reader<'_, '_>) {
    let Some(taints) = reader.value("taints").and_then(Value::as_items) else { return };
    for taint in taints {
        let text = |name: &str| taint.get(name).and_then(Value::as_str);
        if text("key").is_some_and(|k| !is_label_key(k)) || text("value").is_some_and(|v| !is_label_value(v)) {
            reader.wrong::<()>("taints", "has one whose key or value Kubernetes does not take");
        }
        if let Some(effect) = text("effect").filter(|e| !EFFECTS.contains(e)) {
            reader.wrong::<()>("taints", &format!("has the effect \"{effect}\", but there are {}", EFFECTS.join(" and ")));
        }
        if text("key").is_some_and(|k| k.starts_with("cluster.karmada.io/")) {
            reader.wrong::<()>("taints", "has one that Karmada's own controllers set and take away");
        }
    }
}
