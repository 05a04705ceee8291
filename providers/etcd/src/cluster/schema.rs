//! What an `etcd_cluster` block may hold, and its defaults.

use std::sync::LazyLock;

use karmaform_model::{Attribute, Schema, Type};

/// Where clients reach a member.
pub(crate) const CLIENT_PORT: i64 = 2379;
/// Where members reach each other.
pub(crate) const PEER_PORT: i64 = 2380;
/// Milliseconds that a write may take until it is on the disk; ten times what etcd's FAQ calls good.
pub(crate) const DISK_LIMIT: i64 = 100;
/// Who runs etcd.
pub(crate) const USER: &str = "etcd";
/// How long leaf certificates are valid: a year.
pub(crate) const CERTIFICATE_VALIDITY_HOURS: i64 = 8760;
/// How long a CA is valid: ten years.
pub(crate) const CA_VALIDITY_HOURS: i64 = 87_600;
/// How long before its end a leaf certificate is renewed: a third of its life.
pub(crate) const RENEW_BEFORE_HOURS: i64 = 2880;

pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "An etcd cluster on Linux hosts, one member per host run by systemd, or on Kubernetes, in pods of a StatefulSet: with its own \
         certificates, formed at once, and changed one member at a time behind health gates.",
        inputs().into_iter().chain(outputs()).collect(),
    )
    .with_blocks(vec![super::kubernetes::schema::block(), super::restore::block(), super::authorities::block()])
});

fn inputs() -> Vec<Attribute> {
    vec![
        Attribute::required("version", Type::String, "The etcd version, as in its release: `3.6.8`."),
        Attribute::optional(
            "hosts",
            Type::Any,
            "The hosts by member name, unless the cluster is on Kubernetes: a `data \"ssh_host\"` with `for_each`, or a map of such objects. One to seven; three or five are best.",
        ),
        Attribute::optional(
            "source",
            Type::String,
            "With `hosts`: the etcd release archive, a path or a `file:` or `https:` URL. `{arch}` (`amd64` or `arm64`, as the host is) and `{version}` are filled in.",
        ),
        Attribute::optional(
            "source_sha256",
            Type::String,
            "The SHA-256 sum of the archive, or the path or URL of a file that says it: the release's `SHA256SUMS`. Words are filled in as in `source`.",
        ),
        Attribute::optional(
            "through",
            Type::Any,
            "Versions on the way to `version`, where etcd takes no step there at once (3.5.16 to 3.6.14 leads over 3.5.32): a map by version of objects with \
             `source` and `source_sha256` on hosts, or `image` in pods. Unless written it is where `version` is, with the other number in its place.",
        ),
        Attribute::optional(
            "settings",
            Type::map(Type::String),
            "More etcd settings by flag name without dashes: `quota-backend-bytes`. A change restarts the members one at a time.",
        ),
        Attribute::optional("client_port", Type::Number, "The port for clients.").or(CLIENT_PORT),
        Attribute::optional("peer_port", Type::Number, "The port between members.").or(PEER_PORT),
        Attribute::optional("data_directory", Type::String, "With `hosts`: where each member keeps its data; `/var/lib/etcd/NAME` unless written. Another one moves it, one member at a time, each while it is stopped."),
        Attribute::optional(
            "addresses",
            Type::map(Type::String),
            "IP addresses by member name that members and clients use, where it is not the address that the host is managed by.",
        ),
        Attribute::optional("certificate_validity_hours", Type::Number, "How long certificates are valid, in hours.")
            .or(CERTIFICATE_VALIDITY_HOURS),
        Attribute::optional("ca_validity_hours", Type::Number, "How long the two CAs are valid, in hours.").or(CA_VALIDITY_HOURS),
        Attribute::optional("renew_before_hours", Type::Number, "How long before its end a certificate is renewed, in hours.")
            .or(RENEW_BEFORE_HOURS),
        Attribute::optional(
            "on_destroy",
            Type::String,
            "What happens to the data when the cluster is destroyed: `delete`, or `keep` it beside its directory as `DIRECTORY.kept-TIME`.",
        )
        .or("delete"),
        Attribute::optional(
            "disk_limit",
            Type::Number,
            "With `hosts`: milliseconds that a write may take on average until it is on the disk where a new member keeps its data, tried for a \
             moment before anything is made there; 100 unless written, 0: not tried. etcd wants less than 10; with 100 it loses its leader again and again.",
        ),
        Attribute::optional(
            "defragment",
            Type::Bool,
            "Whether an apply defragments members that have more free pages than used ones in more than 100 MiB, followers first, the leader last and \
             after it has handed over, and makes room where the alarm NOSPACE is on: then all history but the newest is dropped. By \
             default none does.",
        ),
        Attribute::optional("user", Type::String, "The system user that runs etcd; it is made on each host.").or(USER),
        Attribute::optional(
            "keep_authority",
            Type::Bool,
            "Whether the keys of the two CAs and the client certificate are also kept with the cluster, where etcd does not read them: on its \
             hosts in a directory of root's, on Kubernetes in a Secret that no pod mounts. Without them a state that was lost can't be made \
             anew.",
        )
        .or(true),
    ]
}

fn outputs() -> Vec<Attribute> {
    let client = Type::object([
        ("endpoints", Type::list(Type::String)),
        ("ca_certificate", Type::String),
        ("certificate", Type::String),
        ("private_key", Type::String),
        ("cluster_id", Type::String),
    ]);
    vec![
        Attribute::computed("endpoints", Type::list(Type::String), "The members' client URLs."),
        Attribute::computed(
            "ca_certificate",
            Type::String,
            "What a client is to trust: the CA that the members' server certificates come from, as PEM; all that `authorities` trusts, one behind the other.",
        ),
        Attribute::computed("client_certificate", Type::String, "A client certificate with all rights, as PEM."),
        Attribute::computed("client_key", Type::String, "The private key of the client certificate, as PEM.").secret(),
        Attribute::computed(
            "client",
            client,
            "All that a client needs: `endpoints`, `ca_certificate`, `certificate`, `private_key`, and the `cluster_id`, which is another one after a restoration.",
        ),
        Attribute::computed("cluster_id", Type::String, "The cluster's id, in hexadecimal digits."),
        Attribute::computed("members", Type::map(Type::String), "The members' ids by name, in hexadecimal digits."),
    ]
}
