//! The attributes of other providers' types that a cluster's children use, as far as a difference needs them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use karmaform_model::{Attribute, Registry, ResourceEntry, Schema, Type};

pub(super) static REGISTRY: LazyLock<Registry> =
    LazyLock::new(|| Registry::new(vec![karmaform_etcd::driver()], karmaform_etcd::composites()));

static SCHEMAS: LazyLock<BTreeMap<&'static str, Schema>> = LazyLock::new(|| {
    let text = |name| Attribute::optional(name, Type::String, "");
    let any = |name| Attribute::optional(name, Type::Any, "");
    let made = |name| Attribute::computed(name, Type::String, "");
    let on_host = |attributes: Vec<Attribute>| {
        let host = Attribute::required("host", Type::Any, "");
        Schema::new("", [vec![host], attributes].concat()).through("host")
    };
    BTreeMap::from([
        (
            "kubernetes_object",
            Schema::new(
                "",
                vec![
                    Attribute::required("cluster", Type::Any, ""),
                    any("manifest"),
                    any("keep"),
                    any("remake").write_only(),
                    text("propagation"),
                    any("timeout"),
                    made("uid"),
                ],
            )
            .through("cluster"),
        ),
        (
            "kubernetes_pod",
            Schema::new(
                "",
                vec![
                    Attribute::required("cluster", Type::Any, ""),
                    text("namespace"),
                    text("name").identity(),
                    text("revision"),
                    text("renew_on"),
                    any("timeout"),
                    made("uid"),
                    made("phase").volatile(),
                    Attribute::computed("ready", Type::Bool, "").volatile(),
                    made("problem").volatile(),
                    made("termination_message").volatile(),
                ],
            )
            .through("cluster"),
        ),
        ("tls_ca", tls(&[])),
        ("tls_certificate", tls(&["ca_certificate", "ca_private_key", "organizations", "dns_names", "ip_addresses", "usages"])),
        (
            "terraform_data",
            Schema::new("", vec![any("input"), any("triggers_replace").forces_replace(), made("output"), made("id")]).state_only(),
        ),
        ("ssh_user", on_host(vec![text("name").identity(), text("home"), text("shell"), any("system"), made("uid"), made("gid")])),
        (
            "ssh_directory",
            on_host(vec![
                text("path").identity(),
                text("owner"),
                text("group"),
                text("mode"),
                any("purge"),
                any("moves").write_only(),
                any("moves_from").write_only(),
                any("moves_with").write_only(),
                text("stopped_unit").write_only(),
                text("essential").write_only(),
                Attribute::computed("empty", Type::Bool, "").volatile(),
                Attribute::computed("moving", Type::Bool, "").volatile(),
                Attribute::computed("hollow", Type::Bool, "").volatile(),
            ]),
        ),
        (
            "ssh_file",
            on_host(vec![
                text("path").identity(),
                text("content"),
                text("owner"),
                text("group"),
                text("mode"),
                any("overwrite"),
                made("sha256"),
            ]),
        ),
        (
            "ssh_artifact",
            on_host(vec![
                text("source"),
                text("sha256"),
                text("member"),
                text("path").identity(),
                text("previous"),
                text("owner"),
                text("group"),
                text("mode"),
                made("content_sha256"),
            ]),
        ),
        (
            "ssh_command",
            on_host(vec![
                text("command"),
                text("check"),
                text("undo"),
                any("triggers"),
                any("environment"),
                any("run_environment").write_only(),
                any("timeout"),
                made("output"),
            ]),
        ),
        (
            "ssh_systemd_unit",
            on_host(vec![
                text("name").identity(),
                text("content"),
                any("enabled"),
                any("active"),
                any("restart_triggers"),
                any("start_environment").write_only(),
                text("check").write_only(),
                any("wait"),
                any("start_timeout"),
                made("sha256"),
                text("active_state").volatile(),
                text("sub_state").volatile(),
            ]),
        ),
    ])
});

fn tls(more: &[&'static str]) -> Schema {
    let given = ["common_name", "organization", "algorithm", "validity_hours", "renew_before_hours"];
    let given = given.iter().chain(more).map(|n| Attribute::optional(n, Type::Any, ""));
    let made = ["certificate", "private_key", "not_before", "not_after", "serial_number"];
    let made = made.iter().map(|n| Attribute::computed(n, Type::String, ""));
    Schema::new("", given.chain(made).collect()).state_only()
}

/// The schema of a resource type.
pub(crate) fn schema(resource_type: &str) -> &'static Schema {
    match REGISTRY.resource(resource_type) {
        Some(ResourceEntry::Type(_, spec)) => spec.schema(),
        Some(ResourceEntry::Composite(composite)) => composite.schema(),
        None => &SCHEMAS[resource_type],
    }
}
