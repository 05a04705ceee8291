//! The gate `kubernetes_ready`: an API server answers, and says that it is ready.

use std::sync::LazyLock;
use std::time::Duration;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type};

use crate::client::Client;
use crate::failure::{Call, Failure};
use crate::values::text;

const PATH: &str = "/readyz";
/// The longest wait for one look; the engine looks again.
const LIMIT: Duration = Duration::from_secs(10);

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Waits until an API server says that it is ready.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::optional("path", Type::String, "What to ask: \"/readyz\", or the path of an API that must be served.").or(PATH),
        ],
    )
    .through("cluster")
});

/// The gate `kubernetes_ready`.
pub(crate) struct KubernetesReady;

impl Gate<Client> for KubernetesReady {
    fn name(&self) -> &'static str {
        "kubernetes_ready"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let path = text(arguments, "path").unwrap_or(PATH);
            if !path.starts_with('/') {
                return Err(Diagnostic::error("Bad path", "`path` of a gate must begin with \"/\"."));
            }
            Ok(match client.text(path, LIMIT).await {
                Ok(_) => GateAnswer::Passed(format!("{path} answers")),
                Err(failure) => GateAnswer::Waiting(reason(&failure, client.place(), path)),
            })
        })
    }
}

/// Why it is not ready, in a few words.
fn reason(failure: &Failure, place: &str, path: &str) -> String {
    let told = || failure.diagnostic(place, &Call::none(), &[]).detail.trim_end_matches('.').to_owned();
    let Some(code) = failure.code().filter(|c| *c != 401) else { return told() };
    // One line per check, `[+]ping ok` or `[-]etcd failed: reason withheld` (https://kubernetes.io/docs/reference/using-api/health-checks/).
    let failed: Vec<&str> =
        failure.message().lines().filter_map(|l| l.strip_prefix("[-]")).filter_map(|l| l.split_whitespace().next()).collect();
    if failed.is_empty() { format!("{path} answers {code}") } else { format!("not ready: {}", failed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_what_is_not_ready() {
        let answer = |code: u16, text: &str| {
            let status = kube::core::Status::failure(text, "Failed to parse error data").with_code(code);
            reason(&Failure::Kube(Box::new(kube::Error::Api(Box::new(status)))), "https://h:1", "/readyz")
        };
        let checks = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac failed: x\nreadyz check failed";
        assert_eq!(answer(500, checks), "not ready: etcd, poststarthook/rbac");
        assert_eq!(answer(404, "404 page not found"), "/readyz answers 404");
        assert!(answer(401, "Unauthorized").contains("does not accept the credentials"));
        let way = Diagnostic::error("Nothing to forward to", "There is no Service \"a\".");
        assert_eq!(reason(&Failure::Way(Box::new(way)), "https://h:1", "/"), "There is no Service \"a\"");
    }
}
