//! The operation `kubernetes_exec`: a program is run in a container that is there, to its end, perhaps with a file on its standard input.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};
use kube::Api;
use kube::api::AttachParams;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

use crate::act::seconds;
use crate::archive_source::Downloads;
use crate::client::Client;
use crate::exec_input::{Asked, PIECE, Ungiven, get_ready, give};
use crate::failure::{Call, Failure};
use crate::values::text;

/// How long it may take, in seconds.
const TIMEOUT: u64 = 60;
/// So much of what it says is read at once, in bytes, and so much of that is kept.
const CHUNK: usize = 4_096;
/// Nothing goes through for so long: the way is lost.
const STALLED: Duration = Duration::from_secs(120);
/// The way into a pod is not open for so long: it won't be.
const SHUT: Duration = Duration::from_secs(300);
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
                "A path or a URL with what the program asks for: by the line `length?` for its length, which comes as eight bytes (big-endian), by `content?` for all of it.",
            ),
            Attribute::optional("sha256", Type::String, "The sum of `source`, which the program compares."),
            Attribute::optional("required", Type::Bool, "Whether it is an error that it fails.").or(true),
            Attribute::optional("again", Type::Bool, "Whether it may be run again when the way to it was lost.").or(false),
        ],
    )
    .through("cluster")
});

/// The operation `kubernetes_exec`.
pub(crate) struct KubernetesExec {
    downloads: Arc<Downloads>,
    /// Since when the way into a pod is not open, by what runs there.
    shut: Mutex<BTreeMap<String, Instant>>,
}

impl KubernetesExec {
    /// With where files come from.
    pub(crate) fn new(downloads: Arc<Downloads>) -> Self {
        Self { downloads, shut: Mutex::default() }
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
            let answer = match timeout(limit, run(client, &self.downloads, arguments)).await {
                Ok(answer) => answer,
                Err(_) => Err(failed(arguments, &format!("it did not end within {} s", limit.as_secs()))),
            };
            let answer = match answer {
                Ok(GateAnswer::Waiting(why)) if self.is_shut(client, arguments, true) => {
                    Err(failed(arguments, &format!("{why}, and not for {} s", SHUT.as_secs())))
                }
                Ok(GateAnswer::Waiting(why)) => Ok(GateAnswer::Waiting(why)),
                answer => {
                    self.is_shut(client, arguments, false);
                    answer
                }
            };
            match answer {
                Err(told) if is(arguments, "required") == Some(false) => Ok(GateAnswer::Passed(format!("left as it is: {}", told.detail))),
                Ok(GateAnswer::Waiting(why)) if is(arguments, "required") == Some(false) => {
                    Ok(GateAnswer::Passed(format!("left as it is: {why}")))
                }
                answer => answer,
            }
        })
    }
}

impl KubernetesExec {
    /// It was so for too long. `now`: it is so at this moment.
    fn is_shut(&self, client: &Client, arguments: &Object, now: bool) -> bool {
        let of = |name: &str| text(arguments, name).unwrap_or_default();
        let name = format!("{} {} {}", client.place(), of("namespace"), of("pod"));
        let mut shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        match now {
            true => shut.entry(name).or_insert_with(Instant::now).elapsed() > SHUT,
            false => shut.remove(&name).is_some(),
        }
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
    let may_run_again = is(arguments, "again") == Some(true);
    let parameters = AttachParams::default().stdin(text(arguments, "source").is_some()).stdout(true).stderr(true).container(container);
    let parameters = parameters.max_stdin_buf_size(PIECE);
    if let Some(source) = text(arguments, "source") {
        get_ready(downloads, source).await;
    }
    let mut process = match api.exec(pod, command, &parameters).await {
        Ok(process) => process,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            return Err(failed(arguments, "the user of the connection may not run programs in pods")
                .with_hint("It takes \"get\" and \"create\" on \"pods/exec\" there."));
        }
        Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => return Err(failed(arguments, &status.message)),
        // The library's words may quote a header.
        Err(_) => return Ok(GateAnswer::Waiting("the cluster does not open the way into the pod".to_owned())),
    };
    let status = process.take_status();
    let (stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
    let ended = async move { status?.await };
    let (asks, asked) = unbounded_channel();
    let heard = async { tokio::join!(last_words(stdout, Some(asks)), last_words(stderr, None)) };
    let given = text(arguments, "source").zip(stdin);
    let giving = async move {
        match given {
            Some((source, stdin)) => give(downloads, (source, text(arguments, "sha256").unwrap_or_default()), asked, stdin, STALLED).await,
            None => std::future::pending().await,
        }
    };
    let listened = listen(heard, ended, giving, PAUSE).await;
    process.abort();
    let ((said, complained), ended) = listened.map_err(|why| match why {
        Ungiven::Stalled(why) => failed(arguments, &why),
        Ungiven::Unread(why) => *why,
    })?;
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

/// What a program said last, on both of its outputs.
type Words = (Option<String>, Option<String>);

/// Gives what is asked for, and listens to the end: to the program's, or to that of the way, which is known by nothing but that `ended` knows nothing.
async fn listen<T>(
    heard: impl Future<Output = Words>,
    ended: impl Future<Output = Option<T>>,
    giving: impl Future<Output = Result<Infallible, Ungiven>>,
    pause: Duration,
) -> Result<(Words, Option<T>), Ungiven> {
    tokio::pin!(heard, ended);
    tokio::select! {
        // Who has ended reads no more.
        biased;
        words = &mut heard => Ok((words, timeout(pause, ended).await.ok().flatten())),
        status = &mut ended => Ok((timeout(pause, heard).await.unwrap_or_default(), status)),
        why = giving => why.map(|never| match never {}),
    }
}

/// The last line of what comes from there. What asks for something goes to `asks`.
async fn last_words(from: Option<impl AsyncRead + Unpin>, asks: Option<UnboundedSender<Asked>>) -> Option<String> {
    let mut from = from?;
    let (mut kept, mut chunk, mut line) = (Vec::new(), vec![0; CHUNK], Vec::new());
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let new = chunk.get(..read)?;
        for byte in new.iter().filter(|_| asks.is_some()) {
            match (byte, Asked::read(&line)) {
                (b'\n', Some(asked)) => asks.iter().for_each(|asks| {
                    // Nobody is left who could give it.
                    let _ = asks.send(asked);
                }),
                (b'\n', None) => line.clear(),
                _ if line.len() < CHUNK => line.push(*byte),
                _ => {}
            }
            if *byte == b'\n' {
                line.clear();
            }
        }
        kept.extend_from_slice(new);
        let too_many = kept.len().saturating_sub(CHUNK);
        kept.drain(..too_many);
    }
    let text = String::from_utf8_lossy(&kept);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty() && Asked::read(line.as_bytes()).is_none()).map(str::to_owned)
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
        let words = async |text: &[u8]| last_words(Some(text), None).await;
        assert_eq!(words(b"one\ntwo\n\n").await.as_deref(), Some("two"));
        assert_eq!(words(&[vec![b'x'; 3 * CHUNK], b"\nthe end".to_vec()].concat()).await.as_deref(), Some("the end"));
        assert_eq!(words(b" \n").await, None);
        let (asks, mut asked) = unbounded_channel();
        let said = last_words(Some(&b"one\nlength?\ncontent?\nlength? no\ncontent?\n"[..]), Some(asks)).await;
        assert_eq!(said.as_deref(), Some("length? no"));
        for expected in [Some(Asked::Length), Some(Asked::Content), Some(Asked::Content), None] {
            assert_eq!(asked.recv().await, expected);
        }
    }

    /// The library says nothing on either output then.
    #[tokio::test]
    async fn a_way_that_is_lost_ends_it() {
        let (never, soon) = (std::future::pending::<Words>, Duration::from_millis(20));
        let lost = listen(never(), async { None::<()> }, std::future::pending(), soon).await;
        assert!(matches!(lost, Ok(((None, None), None))));
        let words = || (Some("done".to_owned()), None);
        assert!(matches!(listen(async { words() }, async { Some(7) }, std::future::pending(), soon).await, Ok((_, Some(7)))));
        let stalled = async { Err(Ungiven::Stalled("no".to_owned())) };
        assert!(listen(never(), std::future::pending::<Option<()>>(), stalled, soon).await.is_err());
    }

    #[test]
    fn a_program_that_fails_is_named_with_its_pod() {
        let command = Value::list(karmaform_model::Type::String, vec!["etcdctl".into(), "snapshot".into()]);
        let arguments = crate::values::object([("namespace", "n".into()), ("pod", "etcd-0".into()), ("command", command)]);
        let why = failed(&arguments, "no such file.");
        assert_eq!(why.summary, "A program in a pod failed");
        assert_eq!(why.detail, "`etcdctl` in pod etcd-0 of n failed: no such file.");
    }

    #[tokio::test]
    async fn what_does_not_say_where_is_run_nowhere() {
        let (client, seen) = crate::mock::client(|_, _| crate::mock::missing()).await;
        let arguments = crate::values::object([("namespace", "n".into()), ("pod", "etcd-0".into())]);
        let why = KubernetesExec::new(Arc::default()).attempt(&client, &arguments).await.unwrap_err();
        assert_eq!(why.summary, "Nothing to run it in");
        assert!(why.detail.contains("`container`") && seen.lock().unwrap().is_empty(), "{why:?}");
    }
}
