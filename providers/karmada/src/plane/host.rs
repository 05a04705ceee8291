//! The host cluster: where it is, and what it can do.

use karmaform_model::{Type, Value};

use super::schema::NAMESPACE;
use crate::check::is_label;
use crate::read::Reader;

/// The place on a host cluster.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// How it is reached; perhaps not known yet.
    pub(crate) connection: Value,
    pub(crate) namespace: String,
    pub(crate) create_namespace: bool,
    /// The minor version of its API server; `None` if nobody says.
    pub(crate) minor: Option<u32>,
}

impl Host {
    /// Reads the block `kubernetes`.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let namespace = reader.text("namespace").unwrap_or_else(|| NAMESPACE.to_owned());
        if !is_label(&namespace) {
            reader.wrong::<()>("namespace", "is not the name of a namespace");
        }
        let cluster = reader.given("cluster");
        let (connection, version) = match cluster.get("connection") {
            // The data source.
            Some(connection) => (connection.clone(), cluster.get("version").or_else(|| connection.get("version"))),
            None => (cluster.clone(), cluster.get("version")),
        };
        let is_connection =
            connection.is_unknown() || connection.get("provider").is_some_and(|p| p.is_unknown() || p.as_str() == Some("kubernetes"));
        if !is_connection {
            reader.wrong::<()>("cluster", "is no Kubernetes cluster. It must be a `data \"kubernetes_cluster\"`");
        }
        let minor = version.and_then(Value::as_str).and_then(minor);
        let connection = if connection.is_null() { Value::unknown(Type::Any) } else { connection };
        let create_namespace = reader.flag("create_namespace").unwrap_or(false);
        Self { connection, namespace, create_namespace, minor }
    }

    /// The API version of a PodDisruptionBudget: `policy/v1` came with Kubernetes 1.21, `policy/v1beta1` went with 1.25.
    pub(crate) fn budget_version(&self) -> &'static str {
        if self.minor.is_some_and(|m| m < 21) { "policy/v1beta1" } else { "policy/v1" }
    }
}

/// The minor version in `1.36.2`, `v1.36.2+k3s1`.
pub(crate) fn minor(version: &str) -> Option<u32> {
    version.trim_start_matches('v').strip_prefix("1.")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
