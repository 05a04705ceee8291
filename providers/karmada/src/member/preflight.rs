//! The block `preflight`: before a member joins it is tried whether control plane and member reach each other, from where that matters. In push
//! mode that is a pod beside the control plane's controllers, in pull mode one in the member.

use karmaform_model::{Arg, Child, Type, Value};
use serde_json::json;

use super::arguments::{Arguments, connection_of};
use super::children::after;
use crate::check::is_label;
use crate::plane::{HOST_NAMESPACE, KARMADA_REGISTRY, child, part};
use crate::read::Reader;

/// A program of the control plane that goes to members; its image has what a preflight takes.
const PROGRAM: &str = "karmada-controller-manager";
/// In a member there is no other namespace before it has joined.
const NAMESPACE: &str = "default";

/// What is written of it, and what follows from the rest.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    connection: Value,
    namespace: Value,
    image: Value,
    /// Of the pod's `spec`.
    fields: Vec<(&'static str, Arg)>,
    timeout: Value,
}

impl Settings {
    /// Reads it; none if it is not written. In pull mode with the agent's image.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, plane: &Value, member: &Value, agent: Option<&Value>) -> Option<Self> {
        if !reader.is_there() {
            return None;
        }
        let is_pull = agent.is_some();
        let said = |name: &str| plane.get(name).filter(|v| !v.is_null()).cloned();
        let later = || Value::unknown_not_null(Type::String);
        let connection = match super::host_cluster(plane).cloned() {
            _ if reader.value("cluster").is_some() => connection_of(reader, "cluster"),
            _ if is_pull => member.clone(),
            Some(via) => via,
            None if plane.is_unknown() => Value::unknown(Type::Any),
            None => {
                let what = format!("must be written: {}, so where its controllers run is not known", super::why_no_cluster(plane));
                return reader.wrong("cluster", &what);
            }
        };
        let namespace = match reader.text("namespace") {
            Some(written) if !is_label(&written) => return reader.wrong("namespace", "is not the name of a namespace"),
            Some(written) => written.into(),
            None if is_pull => NAMESPACE.into(),
            None if plane.is_unknown() => later(),
            None => said("namespace").unwrap_or_else(|| HOST_NAMESPACE.into()),
        };
        let image = match (reader.value("image"), agent, said("karmada_version").as_ref().and_then(Value::as_str)) {
            (Some(image), ..) => image.clone(),
            (None, Some(agent), _) => agent.clone(),
            (None, None, Some(version)) => format!("{KARMADA_REGISTRY}/{PROGRAM}:v{}", version.trim_start_matches('v')).into(),
            (None, None, None) if plane.is_unknown() => later(),
            (None, None, None) => return reader.wrong("image", "must be written: karmaform did not make the control plane"),
        };
        let names: Vec<_> = reader.texts("image_pull_secrets").into_iter().map(|name| json!({ "name": name })).collect();
        let mut fields = vec![("imagePullSecrets", Arg::from_json(&json!(names)))];
        for (field, name) in [("nodeSelector", "node_selector"), ("tolerations", "tolerations")] {
            fields.extend(reader.value(name).map(|value| (field, value.clone().into())));
        }
        Some(Self { connection, namespace, image, fields, timeout: reader.given("timeout") })
    }
}

/// What can't be tried, if something is in the way of that.
pub(crate) fn refused(reader: &mut Reader<'_, '_>, is_pull: bool) {
    if reader.value("preflight").is_none() || is_pull {
        return;
    }
    let proxy = reader.value("proxy_url").and_then(Value::as_str);
    if proxy.is_some_and(|p| !p.starts_with("http://") && !p.starts_with("socks5://")) {
        reader.wrong::<()>("preflight", "can't be with this `proxy_url`: through a proxy with \"https://\" nothing can be tried");
    } else if proxy.is_some_and(|p| p.starts_with("socks5://") && p.contains('@')) {
        reader
            .wrong::<()>("preflight", "can't be with this `proxy_url`: through a proxy with \"socks5://\" and a user nothing can be tried");
    } else if reader.value("proxy_headers").is_some() {
        reader.wrong::<()>("preflight", "can't be with `proxy_headers`: nothing can be tried with them");
    }
}

/// The children of a member, after what is tried.
pub(crate) fn before(member: &Arguments, children: Vec<Child>) -> Vec<Child> {
    let Some(settings) = &member.preflight else { return children };
    let tried = tried(member, settings);
    let path = vec![tried.path.clone()];
    std::iter::once(tried).chain(children.into_iter().map(|one| after(one, &path))).collect()
}

fn tried(member: &Arguments, settings: &Settings) -> Child {
    let (address, target, ca) = match &member.agent {
        Some(agent) => (&agent.server, &member.plane, &agent.ca_certificate),
        None => (&member.endpoint, &member.member, &member.ca_certificate),
    };
    // An agent reaches the control plane without what lies between that and the member.
    let (insecure, proxy) = if member.is_pull() { (false, Value::null(Type::String)) } else { (member.insecure, member.proxy_url.clone()) };
    let mut fields = Arg::from_json(&json!({}));
    for (name, value) in &settings.fields {
        fields.set(&[name], value.clone());
    }
    child(
        part("preflight"),
        "kubernetes_preflight",
        [
            ("cluster", settings.connection.clone().into()),
            ("namespace", settings.namespace.clone().into()),
            ("address", address.clone().into()),
            ("target", target.clone().into()),
            ("ca_certificate", ca.clone().into()),
            ("insecure", insecure.into()),
            ("proxy_url", proxy.into()),
            ("image", settings.image.clone().into()),
            ("pod", fields),
            ("timeout", settings.timeout.clone().into()),
        ],
    )
}
