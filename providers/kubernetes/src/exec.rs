//! The operation `kubernetes_exec`: a program is run in a container that is there, to its end.

use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};
use kube::Api;
use kube::api::AttachParams;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::act::seconds;
use crate::client::Client;
use crate::failure::{Call, Failure};
use crate::values::text;

/// How long it may take, in seconds.
const TIMEOUT: u64 = 60;
/// So much of what it says is read at once, in bytes, and so much of that is kept.
const CHUNK: usize = 4_096;
/// What is told of how it ended comes right after its last words.
const PAUSE: Duration = Duration::from_secs(5);

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Runs a program in a pod's container.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("namespace", Type::String, "The namespace of the pod."),
            Attribute::required("pod", Type::String, "The pod's name."),
            Attribute::required("container", Type::String, "The container's name."),
            Attribute::required("command", Type::list(Type::String), "The program and its arguments; no secret may be among them."),
            Attribute::optional("timeout", Type::Number, "Seconds that it may take.").or(60_i64),
        ],
    )
    .through("cluster")
});

/// The operation `kubernetes_exec`.
pub(crate) struct KubernetesExec;

impl Operation<Client> for KubernetesExec {
    fn name(&self) -> &'static str {
        "kubernetes_exec"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let limit = seconds(arguments, TIMEOUT);
            match tokio::time::timeout(limit, run(client, arguments)).await {
                Ok(answer) => answer,
                Err(_) => Err(failed(arguments, &format!("it did not end within {} s", limit.as_secs()))),
            }
        })
    }
}

async fn run(client: &Client, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
    let (Some(namespace), Some(pod), Some(container)) =
        (text(arguments, "namespace"), text(arguments, "pod"), text(arguments, "container"))
    else {
        return Err(Diagnostic::error("Nothing to run it in", "`namespace`, `pod` and `container` must be known."));
    };
    let command: Vec<&str> = arguments.get("command").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).collect();
    let told = |failure: Failure| failure.diagnostic(client.place(), &Call::none(), &[]);
    let api: Api<Pod> = Api::namespaced(client.0.kube().await.map_err(told)?, namespace);
    let parameters = AttachParams::default().stdout(true).stderr(true).container(container);
    let mut process = match api.exec(pod, command, &parameters).await {
        Ok(process) => process,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            return Err(failed(arguments, "the user of the connection may not run programs in pods")
                .with_hint("It takes \"get\" and \"create\" on \"pods/exec\" there."));
        }
        Err(kube::Error::Api(status)) if status.code < 500 => return Err(failed(arguments, &status.message)),
        // The library's words may quote a header.
        Err(_) => return Ok(GateAnswer::Waiting("the cluster does not open the way into the pod".to_owned())),
    };
    let status = process.take_status();
    let (said, complained) = tokio::join!(last_words(process.stdout()), last_words(process.stderr()));
    let ended = match status {
        Some(status) => tokio::time::timeout(PAUSE, status).await.ok().flatten(),
        None => None,
    };
    process.abort();
    // It may still run, and a second one beside it would do harm.
    let Some(ended) = ended else { return Err(failed(arguments, "the way to it was lost before it ended")) };
    if ended.status.as_deref() == Some("Success") {
        return Ok(GateAnswer::Passed(said.or(complained).unwrap_or_else(|| "it ended well".to_owned())));
    }
    let why = complained.or(said).or(ended.message).unwrap_or_else(|| "it does not say why".to_owned());
    Err(failed(arguments, &why))
}

/// The last line of what comes from there.
async fn last_words(from: Option<impl AsyncRead + Unpin>) -> Option<String> {
    let mut from = from?;
    let (mut kept, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        kept.extend_from_slice(chunk.get(..read)?);
        let too_many = kept.len().saturating_sub(CHUNK);
        kept.drain(..too_many);
    }
    let text = String::from_utf8_lossy(&kept);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

fn failed(arguments: &Object, why: &str) -> Diagnostic {
    let of = |name: &str| text(arguments, name).unwrap_or_default();
    let program = arguments.get("command").and_then(Value::as_items).and_then(|c| c.first()?.as_str()).unwrap_or_default();
    let what = format!("`{program}` in pod {} of {} failed: {}.", of("pod"), of("namespace"), why.trim_end_matches('.'));
    Diagnostic::error("A program in a pod failed", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_that_says_something_is_kept() {
        let words = async |text: &[u8]| last_words(Some(text)).await;
        assert_eq!(words(b"one\ntwo\n\n").await.as_deref(), Some("two"));
        assert_eq!(words(&[vec![b'x'; 3 * CHUNK], b"\nthe end".to_vec()].concat()).await.as_deref(), Some("the end"));
        assert_eq!(words(b" \n").await, None);
    }
}
