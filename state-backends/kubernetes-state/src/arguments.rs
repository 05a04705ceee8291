//! What stands in `backend "kubernetes" { ... }`: the arguments of Terraform's, with their names, as far as they make sense here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use karmaform_model::{Attribute, Diagnostic, Object, Schema, Type, Value, written_path};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which arguments there are. The names are Terraform's
/// (<https://developer.hashicorp.com/terraform/language/backend/kubernetes>).
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(build);
    &SCHEMA
}

fn build() -> Schema {
    let text = |name, doc| Attribute::optional(name, Type::String, doc);
    Schema::new(
        "Keeps the state in a Secret of a Kubernetes cluster, and its lock in a Lease. Names, labels and encoding are those of Terraform's backend.",
        vec![
            Attribute::required(
                "secret_suffix",
                Type::String,
                "End of the Secret's name: it is `tfstate-default-<secret_suffix>`. Of small letters, digits and `-`.",
            ),
            text("namespace", "Namespace of the Secret; it must be there already.").or("default"),
            Attribute::optional("labels", Type::map(Type::String), "More labels for the Secrets."),
            text("config_path", "Path of a kubeconfig. Unless given: `KUBE_CONFIG_PATH`, `KUBECONFIG`, `~/.kube/config`."),
            text("config_context", "Its context. Unless given: `KUBE_CTX`, the current one."),
            Attribute::optional("in_cluster_config", Type::Bool, "Use the service account of the pod that karmaform runs in."),
        ],
    )
}

/// Where the state is, and how to get there.
pub(crate) struct Settings {
    pub(crate) suffix: String,
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) way: Way,
}

/// The way to the cluster.
pub(crate) enum Way {
    InCluster,
    Kubeconfig { path: PathBuf, context: Option<String> },
}

impl Settings {
    /// Reads arguments that fit the schema. Paths are relative to `directory`.
    pub(crate) fn read(
        arguments: &Object,
        environment: &BTreeMap<String, String>,
        directory: &Path,
        home: Option<&Path>,
    ) -> Result<Self, Diagnostic> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        let suffix = text("secret_suffix").unwrap_or_default();
        // The longest name of ours ends with "-generation-" and 20 digits, and is no longer than 253 letters.
        if suffix.len() > 150 || !is_name(&suffix) {
            return Err(wrong("\"secret_suffix\" must be part of a name: of small letters, digits and \"-\", 1 to 150 of them.")
                .with_hint("Write it like \"prod\"."));
        }
        let namespace = text("namespace").unwrap_or_else(|| "default".to_owned());
        if namespace.len() > 63 || !is_name(&namespace) {
            return Err(wrong("\"namespace\" must be the name of a namespace."));
        }
        let labels = arguments.get("labels").and_then(Value::as_entries).into_iter().flatten();
        let labels = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        let way = if arguments.get("in_cluster_config").and_then(Value::as_bool) == Some(true) {
            Way::InCluster
        } else {
            let variable = |name: &str| environment.get(name).filter(|v| !v.is_empty()).cloned();
            let usual = || home.map(|home| home.join(".kube/config").display().to_string());
            let path = text("config_path").or_else(|| variable("KUBE_CONFIG_PATH")).or_else(|| variable("KUBECONFIG")).or_else(usual);
            let path =
                path.ok_or_else(|| wrong("Nothing says where a kubeconfig is.").with_hint("Set config_path, or KUBE_CONFIG_PATH."))?;
            let path = written_path(directory, home, &path);
            Way::Kubeconfig { path, context: text("config_context").or_else(|| variable("KUBE_CTX")) }
        };
        Ok(Self { suffix, namespace, labels, way })
    }
}

impl Way {
    /// What kube needs for a client. `Err`: why there is none, in words.
    pub(crate) async fn config(&self) -> Result<Config, String> {
        let (path, context) = match self {
            Self::InCluster => return Config::incluster().map_err(|e| format!("this is no pod with a service account: {e}")),
            Self::Kubeconfig { path, context } => (path, context),
        };
        let failed = |e: kube::config::KubeconfigError| format!("the kubeconfig {} can't be used: {e}", path.display());
        let parsed = Kubeconfig::read_from(path).map_err(failed)?;
        let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(parsed, &options).await.map_err(failed)
    }
}

fn is_name(text: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_inside) && !text.starts_with('-') && !text.ends_with('-')
}

fn wrong(detail: &str) -> Diagnostic {
    Diagnostic::error("Invalid backend configuration", detail)
}
