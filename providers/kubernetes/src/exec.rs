//! The operation `kubernetes_exec`: a program is run in a container that is there, to its end, perhaps with a file on its standard input.
//!
//! Not every API server can end a program's standard input alone (version 5 of its protocol, from Kubernetes 1.30 on), so the program is told first how
//! much there is to read.

use std::io::Read;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};
use kube::Api;
use kube::api::AttachParams;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{Receiver, channel};

use crate::act::seconds;
use crate::archive_source::Downloads;
use crate::client::Client;
use crate::failure::{Call, Failure};
use crate::values::text;

/// How long it may take, in seconds.
const TIMEOUT: u64 = 60;
/// So much of what it says is read at once, in bytes, and so much of that is kept.
const CHUNK: usize = 4_096;
/// So much of a file is sent at once, in bytes, and so many pieces are read ahead.
const PIECE: usize = 256 << 10;
const AHEAD: usize = 4;
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
            Attribute::optional(
                "source",
                Type::String,
                "A path or a URL: the program's standard input is the length of what is there, as eight bytes (big-endian), and then that.",
            ),
            Attribute::optional("sha256", Type::String, "The sum of `source`, by which a bundle finds it; the program compares it."),
            Attribute::optional("required", Type::Bool, "Whether it is an error that it fails.").or(true),
            Attribute::optional("again", Type::Bool, "Whether it may be run again when the way to it was lost.").or(false),
        ],
    )
    .through("cluster")
});

/// The operation `kubernetes_exec`.
pub(crate) struct KubernetesExec {
    downloads: Arc<Downloads>,
}

impl KubernetesExec {
    /// With where files come from.
    pub(crate) fn new(downloads: Arc<Downloads>) -> Self {
        Self { downloads }
    }
}

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
            let answer = match tokio::time::timeout(limit, run(client, &self.downloads, arguments)).await {
                Ok(answer) => answer,
                Err(_) => Err(failed(arguments, &format!("it did not end within {} s", limit.as_secs()))),
            };
            match answer {
                Err(told) if is(arguments, "required") == Some(false) => Ok(GateAnswer::Passed(format!("left as it is: {}", told.detail))),
                answer => answer,
            }
        })
    }
}

async fn run(client: &Client, downloads: &Arc<Downloads>, arguments: &Object) -> Result<GateAnswer, Diagnostic> {
    let (Some(namespace), Some(pod), Some(container)) =
        (text(arguments, "namespace"), text(arguments, "pod"), text(arguments, "container"))
    else {
        return Err(Diagnostic::error("Nothing to run it in", "`namespace`, `pod` and `container` must be known."));
    };
    let command: Vec<&str> = arguments.get("command").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).collect();
    let told = |failure: Failure| failure.diagnostic(client.place(), &Call::none(), &[]);
    let api: Api<Pod> = Api::namespaced(client.0.kube().await.map_err(told)?, namespace);
    let file = match text(arguments, "source") {
        Some(source) => Some(opened(downloads, source, text(arguments, "sha256").unwrap_or_default()).await?),
        None => None,
    };
    let may_run_again = is(arguments, "again") == Some(true);
    let parameters = AttachParams::default().stdin(file.is_some()).stdout(true).stderr(true).container(container);
    let parameters = parameters.max_stdin_buf_size(PIECE);
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
    let (stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
    let heard = async { tokio::join!(last_words(stdout), last_words(stderr)) };
    let (said, complained) = match (file, stdin) {
        (Some((length, pieces)), Some(stdin)) => {
            tokio::pin!(heard);
            tokio::select! {
                // Who has ended reads no more.
                biased;
                words = &mut heard => words,
                sent = send(length, pieces, stdin) => match sent {
                    Ok(()) => heard.await,
                    Err(why) => return Err(failed(arguments, &why)),
                },
            }
        }
        _ => heard.await,
    };
    let ended = match status {
        Some(status) => tokio::time::timeout(PAUSE, status).await.ok().flatten(),
        None => None,
    };
    process.abort();
    // It may still run, and a second one beside it would do harm.
    let Some(ended) = ended else {
        return match may_run_again {
            true => Ok(GateAnswer::Waiting("the way into the pod was lost".to_owned())),
            false => Err(failed(arguments, "the way to it was lost before it ended")),
        };
    };
    if ended.status.as_deref() == Some("Success") {
        return Ok(GateAnswer::Passed(said.or(complained).unwrap_or_else(|| "it ended well".to_owned())));
    }
    let why = complained.or(said).or(ended.message).unwrap_or_else(|| "it does not say why".to_owned());
    Err(failed(arguments, &why))
}

/// A file's length, and its pieces, which somebody else reads: files may be slow.
async fn opened(downloads: &Arc<Downloads>, source: &str, sum: &str) -> Result<(u64, Receiver<Result<Vec<u8>, String>>), Diagnostic> {
    let (downloads, source, sum) = (Arc::clone(downloads), source.to_owned(), sum.to_owned());
    let got = tokio::task::spawn_blocking(move || downloads.open(&source, &sum)).await;
    let (length, mut file) = got.map_err(|_| Diagnostic::error("File can't be read", "The work on it ended early. This is a bug."))??;
    let (sender, pieces) = channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece);
            let is_last = !matches!(read, Ok(1..));
            let piece = read.map(|_| piece).map_err(|e| e.to_string());
            if sender.blocking_send(piece).is_err() || is_last {
                break;
            }
        }
    });
    Ok((length, pieces))
}

/// Writes all of it. A way that is lost is no error here: it ends what is heard as well.
async fn send(length: u64, mut pieces: Receiver<Result<Vec<u8>, String>>, mut to: impl AsyncWrite + Unpin) -> Result<(), String> {
    let mut sent = 0;
    if to.write_all(&length.to_be_bytes()).await.is_err() {
        return Ok(());
    }
    while let Some(piece) = pieces.recv().await {
        let piece = piece.map_err(|why| format!("what it is given can't be read: {why}"))?;
        sent += piece.len() as u64;
        if to.write_all(&piece).await.is_err() {
            return Ok(());
        }
    }
    match sent == length {
        true => drop(to.flush().await),
        false => return Err(format!("what it is given has {sent} bytes instead of {length}")),
    }
    Ok(())
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

fn is(arguments: &Object, name: &str) -> Option<bool> {
    arguments.get(name).and_then(Value::as_bool)
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

    #[tokio::test]
    async fn what_is_sent_begins_with_its_length() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content = vec![7; 2 * PIECE + 5];
        std::fs::write(file.path(), &content).unwrap();
        let (length, pieces) = opened(&Arc::default(), file.path().to_str().unwrap(), "").await.unwrap();
        let mut sent = Vec::new();
        send(length, pieces, &mut sent).await.unwrap();
        assert_eq!((length, &sent[..8]), (content.len() as u64, &length.to_be_bytes()[..]));
        assert_eq!(sent[8..], content);
        let (length, pieces) = opened(&Arc::default(), file.path().to_str().unwrap(), "").await.unwrap();
        assert!(send(length + 1, pieces, &mut Vec::new()).await.unwrap_err().contains("bytes instead of"));
        assert!(opened(&Arc::default(), "/does/not/exist.db", "").await.is_err());
    }
}
