//! What a control plane keeps its objects in, and what is joined to it: the prefix in etcd that is its own, and the list of its members.

use karmaform_model::{Arg, Child, ChildStep, Value};

use super::arguments::Arguments;
use super::children::child;
use super::pki;
use super::places::{part, service};
use super::target::Target;
use crate::versions::Component;

/// kube-apiserver's own prefix, which all of Karmada's components have for theirs, too. Source: `DefaultEtcdPathPrefix` in
/// `k8s.io/apiserver`, `defaultEtcdPathPrefix` in `cmd/aggregated-apiserver` and `cmd/karmada-search` of karmada.
pub(crate) const PREFIX: &str = "/registry";
/// Where the Karmada API lists its members.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// The path of the prefix.
pub(crate) fn prefix_path() -> Vec<ChildStep> {
    part("etcd_prefix")
}

/// The path of the list of members.
pub(crate) fn members_path() -> Vec<ChildStep> {
    part("members")
}

/// The way to an etcd that the control plane uses, from where its API servers are.
pub(crate) fn connection(plane: &Arguments, id: String, part: impl Fn(&str) -> Value) -> Arg {
    let mut connection = Arg::object([("provider", "etcd".into()), ("id", id.into())]);
    for name in ["endpoints", "ca_certificate", "certificate"] {
        connection.set(&[name], part(name).into());
    }
    // Whatever was written, and whatever a state remembers of it: a key is secret.
    connection.set(&["private_key"], part("private_key").secret().into());
    connection.set(&["via"], plane.target.way());
    connection
}

/// The prefix: it is looked at before anything is written below it. The API server's Service stands for the control plane, for its UID is
/// found again when a state is lost, and nobody else's is the same. On hosts its key for service accounts does.
pub(crate) fn prefix(plane: &Arguments) -> Child {
    let etcd = &plane.etcd;
    let connection = connection(plane, plane.address.to_string(), |name| match name {
        "endpoints" => etcd.endpoints.clone(),
        "ca_certificate" => etcd.ca_certificate.clone(),
        "certificate" => etcd.certificate.clone(),
        _ => etcd.private_key.clone(),
    });
    let owner = match &plane.target {
        Target::Kubernetes(_) => Arg::child(&service(Component::ApiServer), "uid"),
        Target::Hosts(_) => pki::identity(),
    };
    let prefix: Arg = if etcd.prefix.is_null() { PREFIX.into() } else { etcd.prefix.clone().into() };
    child(
        prefix_path(),
        "etcd_prefix",
        [
            ("cluster", connection),
            ("prefix", prefix),
            ("owner", format!("{}/{}", plane.namespace, plane.name).into()),
            ("owner_uid", owner),
            ("adopt", etcd.adopt.clone().into()),
            ("on_destroy", etcd.on_destroy.as_str().into()),
        ],
    )
}

/// Who is joined: nothing is made of it, but whoever destroys the control plane should know.
pub(crate) fn members(plane: &Arguments) -> Child {
    child(members_path(), "kubernetes_list", [("cluster", pki::connection(plane)), ("path", CLUSTERS.into())])
}
