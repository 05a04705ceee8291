//! Where a control plane runs: in a Kubernetes cluster, or on hosts.

use karmaform_model::{Arg, Diagnostic, Value};

use super::host::Host;
use super::hosts::Hosts;
use crate::read::Reader;

/// What says something about a cluster alone.
const OF_KUBERNETES: [&str; 6] = ["service", "ingress", "tls_route", "image_pull_secrets", "image_pull_policy", "cluster_domain"];
/// What says something about hosts alone.
const OF_HOSTS: [&str; 8] =
    ["addresses", "ports", "dns_name", "load_balancer", "karmada_source", "karmada_source_sha256", "kube_source", "kube_source_sha256"];

/// One of the two.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Pods.
    Kubernetes(Host),
    /// Units of systemd.
    Hosts(Box<Hosts>),
}

impl Target {
    /// Reads whichever is written; exactly one must be.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let on_hosts = reader.value("hosts").is_some();
        let in_cluster = reader.value("kubernetes").is_some();
        if on_hosts == in_cluster {
            reader.found.push(if on_hosts {
                Diagnostic::error(
                    "Two places to run",
                    "`hosts` and the block `kubernetes` are both there; a control plane is on one of them.",
                )
                .with_hint("Remove one of them.")
            } else {
                Diagnostic::error(
                    "Nowhere to run",
                    "A control plane runs in a Kubernetes cluster or on hosts, and neither the block `kubernetes` nor `hosts` is there.",
                )
                .with_hint("Write `kubernetes { cluster = data.kubernetes_cluster.NAME }`, or `hosts = data.ssh_host.NAME`.")
            });
        }
        let (strays, other) = if on_hosts { (&OF_KUBERNETES[..], "in a cluster") } else { (&OF_HOSTS[..], "on hosts") };
        for name in strays {
            if reader.value(name).is_none_or(|v| is_default(name, v)) {
                continue;
            }
            reader.wrong::<()>(name, &format!("is for a control plane {other}"));
        }
        if on_hosts { Self::Hosts(Box::new(Hosts::read(reader))) } else { Self::Kubernetes(Host::read(&mut reader.block("kubernetes"))) }
    }

    /// The hosts, if it runs on some.
    pub(crate) fn hosts(&self) -> Option<&Hosts> {
        match self {
            Self::Hosts(hosts) => Some(hosts),
            Self::Kubernetes(_) => None,
        }
    }

    /// The connection that what runs there is reached through.
    pub(crate) fn way(&self) -> Arg {
        match self {
            Self::Kubernetes(host) => host.connection.clone().into(),
            Self::Hosts(hosts) => hosts.way(),
        }
    }
}

/// What has a default is there without being written.
fn is_default(name: &str, value: &Value) -> bool {
    match name {
        "image_pull_secrets" => value.as_items().is_some_and(<[Value]>::is_empty),
        "image_pull_policy" => value.as_str() == Some("IfNotPresent"),
        "cluster_domain" => value.as_str() == Some(super::schema::DOMAIN),
        _ => false,
    }
}
