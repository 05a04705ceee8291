//! What a `karmada_member` block may hold, and its defaults.

use std::sync::LazyLock;

use karmaform_model::{Attribute, Block, Nesting, ObjectAttribute, Schema, Type};

use super::pods;
use crate::api::CLUSTER_NAMESPACE;

/// Seconds until a member is ready: the plane looks at it at once and then every 10 s, and images may have to be pulled.
pub(crate) const TIMEOUT: i64 = 120;
/// Seconds until a member has left. Source: `--wait` of `karmadactl unjoin`.
pub(crate) const LEAVE_TIMEOUT: i64 = 60;

pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "A cluster as a member of a Karmada control plane: the accounts and rights that the control plane has there, their tokens, and the \
         Cluster object. Taking it away unjoins: what was propagated is deleted first, then everything that joining made.",
        reached().into_iter().chain(described()).chain(rights()).chain(leaving()).chain(outputs()).collect(),
    )
    .with_blocks(vec![
        Block { name: "agent", nesting: Nesting::Single, schema: agent() },
        Block { name: "estimator", nesting: Nesting::Single, schema: estimator() },
        Block { name: "preflight", nesting: Nesting::Single, schema: preflight() },
    ])
});

fn reached() -> Vec<Attribute> {
    vec![
        Attribute::required(
            "control_plane",
            Type::Any,
            "The connection to the Karmada API: the attribute `connection` of a `karmada_control_plane`, or of a `data \"kubernetes_cluster\"` \
             for a control plane that something else made. With another one the member moves there.",
        ),
        Attribute::required(
            "cluster",
            Type::Any,
            "The connection to the member: the attribute `connection` of a `data \"kubernetes_cluster\"`. Its user must be allowed to give rights.",
        ),
        Attribute::optional(
            "mode",
            Type::String,
            "How the control plane and the member come together: with \"push\" the control plane's controllers act in the member; with \"pull\" \
             karmada-agent runs there and fetches what is to be done, so that only the member must reach the control plane. Another mode makes \
             it leave and join anew.",
        )
        .or("push"),
        Attribute::optional_computed(
            "name",
            Type::String,
            "What it is called in the control plane: at most 48 lower-case letters, digits and \"-\". The resource's name and key unless written.",
        ),
        Attribute::optional(
            "api_endpoint",
            Type::String,
            "The URL at which the control plane's components reach the member; the one in the connection unless written.",
        ),
        Attribute::optional(
            "ca_certificate",
            Type::String,
            "The CA that signed what is at that URL, in PEM; unless written, the one that the member tells its own pods.",
        ),
        Attribute::optional("insecure", Type::Bool, "Whether the control plane does not check the member's certificate.").or(false),
        Attribute::optional(
            "proxy_url",
            Type::String,
            "The proxy between the control plane and the member: \"http://...\", \"https://...\" or \"socks5://...\".",
        ),
        Attribute::optional("proxy_headers", Type::map(Type::String), "Headers for that proxy.").secret(),
        Attribute::optional("timeout", Type::Number, "Seconds to wait until the control plane says that the member is ready.").or(TIMEOUT),
        Attribute::optional(
            "verify",
            Type::Bool,
            "Whether to send a ConfigMap through the control plane to the member once it is ready, and to wait until it is back.",
        )
        .or(false),
    ]
}

fn described() -> Vec<Attribute> {
    let taint = [
        ("key", ObjectAttribute::required(Type::String)),
        ("value", ObjectAttribute::optional(Type::String)),
        ("effect", ObjectAttribute::required(Type::String)),
    ];
    vec![
        Attribute::optional("provider", Type::String, "Who provides the cluster, for placement."),
        Attribute::optional("region", Type::String, "The region it is in, for placement."),
        Attribute::optional("zones", Type::list(Type::String), "The zones it is in, for placement."),
        Attribute::optional("labels", Type::map(Type::String), "Labels of the Cluster object, for placement."),
        Attribute::optional(
            "taints",
            Type::list(Type::Object(taint.into_iter().map(|(n, a)| (n.to_owned(), a)).collect())),
            "Taints: `key`, `value` and `effect` (\"NoSchedule\" or \"NoExecute\"). Those that others set, Karmada's own \
             controllers first of all, stay theirs.",
        ),
        Attribute::optional(
            "resource_models",
            Type::Any,
            "Grades of nodes, as `spec.resourceModels` of the Cluster object has them; Karmada's own unless written.",
        ),
    ]
}

fn rights() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "cluster_namespace",
            Type::String,
            "The namespace of accounts in the member, and of credentials in the control plane.",
        )
        .or(CLUSTER_NAMESPACE),
        Attribute::optional(
            "rights",
            Type::String,
            "What the control plane may do in the member: \"everything\", or \"workloads\", which is what propagating the usual workloads with \
             their configuration takes, and neither roles nor custom resources.",
        )
        .or("everything"),
        Attribute::optional(
            "rules",
            Type::Any,
            "What the control plane may do in the member, as `rules` of a ClusterRole, instead of `rights`.",
        ),
        Attribute::optional(
            "rotation",
            Type::String,
            "A word in the names of the Secrets with tokens in the member, for example \"2026-11\": with another one the control plane gets new \
             tokens, and the old ones are worth nothing any more.",
        ),
        Attribute::optional(
            "impersonation",
            Type::Bool,
            "Whether users of the control plane may reach the member through it (`clusters/proxy`, `karmadactl get`, search): this takes an \
             account that may act as others.",
        )
        .or(true),
        Attribute::optional(
            "allow_host_cluster",
            Type::Bool,
            "Whether the cluster that the control plane runs in may be its member: what is propagated can then hurt the control plane.",
        )
        .or(false),
    ]
}

fn leaving() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "keep_resources",
            Type::Bool,
            "Whether what was propagated stays in the member when it leaves; otherwise it is deleted there.",
        )
        .or(false),
        Attribute::optional(
            "force",
            Type::Bool,
            "Whether it may leave while it does not answer. What the control plane then waits for is cut off within `leave_timeout`, and what \
             stays behind in the member is listed in the plan.",
        )
        .or(false),
        Attribute::optional("leave_timeout", Type::Number, "Seconds to wait until it has left.").or(LEAVE_TIMEOUT),
    ]
}

fn outputs() -> Vec<Attribute> {
    vec![
        Attribute::computed("id", Type::String, "What tells the cluster from all others: the UID of its namespace kube-system."),
        Attribute::computed("uid", Type::String, "The UID of the Cluster object."),
        Attribute::computed("verified", Type::String, "With `verify`: how long the ConfigMap took to each part of its way."),
    ]
}

fn agent() -> Schema {
    let text = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::String, doc);
    let own = [
        text(
            "server",
            "The URL at which it reaches the Karmada API; the one in the connection unless written. Of a control plane that karmaform made \
             that is an address inside its own cluster; of one on several hosts without a load balancer, all of them, one after the other.",
        ),
        text("ca_certificate", "The CA that signed what is at that URL, in PEM; the connection's unless written."),
    ];
    Schema::new(
        "karmada-agent in the member, for the mode \"pull\". It should have the control plane's version; of several, one acts and the others \
         wait.",
        pods::attributes().into_iter().chain(own).chain(validity()).collect(),
    )
}

/// How long a certificate that the control plane signs is valid.
fn validity() -> [Attribute; 2] {
    let hours = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::Number, doc);
    [
        hours("validity_hours", "How long its certificate is valid, in hours.").or(8_760i64),
        hours("renew_before_hours", "How long before its end the certificate is renewed, in hours.").or(2_880i64),
    ]
}

fn estimator() -> Schema {
    let text = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::String, doc);
    let own = [
        Attribute::optional(
            "inside",
            Type::Bool,
            "Whether it runs in the member itself; then `address` and `port` say where the scheduler reaches it.",
        ),
        Attribute::optional(
            "cluster",
            Type::Any,
            "The connection to the cluster that it runs in: the attribute `connection` of a `data \"kubernetes_cluster\"`. The control plane's \
             own unless written.",
        ),
        text(
            "namespace",
            "The namespace that it runs in, which must be there; unless written, the one in which the scheduler looks, and in the member the one \
             of accounts.",
        ),
        Attribute::optional("node_port", Type::Number, "The port on every node at which it is reached, if it is to be reached so."),
        Attribute::optional("host", Type::Any, "The host that it runs on, instead of a cluster: a `data \"ssh_host\"`."),
        text("source", "On a host: where the program comes from, a path on this machine, or a file, http or https URL."),
        text("source_sha256", "On a host: the SHA-256 sum of what is there, or the path or URL of a file that says it."),
        text(
            "address",
            "The address at which the scheduler reaches it, if it does not run beside the scheduler: an IPv4 address or a DNS name. On a \
             host the one that it is managed by, unless written.",
        ),
        Attribute::optional("port", Type::Number, "The port at that address; 10352 unless written. On a host it listens there."),
        text(
            "service_namespace",
            "The namespace that the scheduler looks in (`--scheduler-estimator-service-namespace`); the control plane's own, \
             or \"karmada-system\" for one that something else made.",
        ),
        text("server", "The URL at which it reaches the member; that of the control plane unless written."),
        text("ca_certificate", "The CA that signed what is at that URL, in PEM."),
        text("client_ca_certificate", "The CA that signed the scheduler's client certificate, in PEM; the control plane's unless written."),
    ];
    Schema::new(
        "karmada-scheduler-estimator for this member: it counts what still fits there, for the control plane's scheduler. In pods, or on a \
         host.",
        own.into_iter().chain(pods::attributes()).chain(validity()).collect(),
    )
}

fn preflight() -> Schema {
    let text = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::String, doc);
    let attributes = vec![
        Attribute::optional(
            "cluster",
            Type::Any,
            "The connection to the cluster that the pod runs in; unless written, the one that the control plane runs in, and in the mode \"pull\" \
             the member.",
        ),
        text(
            "namespace",
            "The namespace that it runs in, which must be there; unless written, the control plane's, and in the mode \"pull\" \"default\".",
        ),
        text(
            "image",
            "Its image, which must have the programs `sleep` and `nc`; unless written, that of karmada-controller-manager, and in the mode \
             \"pull\" that of the agent.",
        ),
        Attribute::optional("image_pull_secrets", Type::list(Type::String), "Secrets in its namespace to pull with."),
        Attribute::optional("node_selector", Type::map(Type::String), "Labels of the nodes that it runs on."),
        Attribute::optional("tolerations", Type::Any, "Its `tolerations`."),
        Attribute::optional("timeout", Type::Number, "Seconds until it must run. 60 unless written."),
    ];
    Schema::new(
        "Tries, before the member joins and before it is reached another way, whether it is reached: from a short-lived pod, in the plan too if \
         all that it takes is there by then.",
        attributes,
    )
}
