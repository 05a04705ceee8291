//! One host: run a script, send a file, open a way through. The only user of ssh2, with everything below it.
//!
//! A host has one thread and one session for the whole run; async callers hand it jobs and wait on a oneshot, so nothing here blocks
//! their runtime. Knows nothing of resource types.

mod auth;
mod bastion;
mod connect;
mod exec;
mod forward;
mod known_hosts;
mod pipe;
mod upload;
mod wire;
mod worker;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use karmaform_model::Diagnostic;
use tokio::sync::{Mutex, oneshot};

use self::exec::Job;
use self::forward::Forward;
use self::worker::Worker;
use crate::connection::Options;
use crate::failure;
use crate::script::Script;

/// What keeps a machine from opening one more.
const LIMITS: &str = "See how many files and processes are open on this machine, and its limits: `ulimit -a`.";

/// An open connection to a host. Ends, with everything that was opened through it, when dropped.
pub(crate) struct Host {
    options: Arc<Options>,
    jobs: mpsc::Sender<Job>,
    waker: UnixStream,
    forwards: Mutex<BTreeMap<(String, u16), Forward>>,
}

/// What to run.
pub(crate) struct Request {
    /// For messages: "Writing /etc/motd on 10.0.0.1".
    pub(crate) what: String,
    /// The script.
    pub(crate) script: Script,
    /// What the script finds on its standard input.
    pub(crate) payload: Payload,
    /// So long after the last of what it is sent was taken, and in the end however it goes on (`exec.rs`), the channel is closed and the request has
    /// failed.
    pub(crate) timeout: Duration,
    /// Never to be shown, even if the script prints it.
    pub(crate) secrets: Vec<String>,
}

/// What a script finds on its standard input.
pub(crate) enum Payload {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The contents of a local file from this byte on, streamed.
    File(Arc<File>, u64),
}

/// What a script gave. That it failed is an output, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// Its exit status.
    pub(crate) status: i32,
    /// What it printed.
    pub(crate) stdout: Vec<u8>,
    /// What it complained.
    pub(crate) stderr: String,
    /// The mark of its own lines in `stdout`.
    pub(crate) mark: String,
    /// Some of `stdout` was too much and is gone.
    pub(crate) truncated: bool,
}

impl Request {
    /// Puts what was being done before a message.
    fn name(&self, mut error: Diagnostic) -> Diagnostic {
        error.detail = format!("{}: {}", self.what, error.detail);
        error
    }
}

impl Host {
    /// Connects and logs in.
    pub(crate) async fn open(options: Options) -> Result<Self, Diagnostic> {
        let options = Arc::new(options);
        let broken = |e: std::io::Error| Diagnostic::error("Host's thread can't be started", format!("{e}.")).with_hint(LIMITS);
        let (jobs, receiver) = mpsc::channel();
        let (waker, woken) = UnixStream::pair().map_err(broken)?;
        waker.set_nonblocking(true).map_err(broken)?;
        woken.set_nonblocking(true).map_err(broken)?;
        let (ready, is_ready) = oneshot::channel();
        let of_thread = Arc::clone(&options);
        let work = move || match connect::connect(&of_thread) {
            Ok(link) => {
                // nobody waits any more: the caller gave up while we connected
                if ready.send(Ok(())).is_ok() {
                    Worker::new(of_thread, link, receiver, woken).run();
                }
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        };
        thread::Builder::new().name("ssh-host".to_owned()).spawn(work).map_err(broken)?;
        is_ready.await.map_err(|_| failure::thread_ended())??;
        Ok(Self { options, jobs, waker, forwards: Mutex::default() })
    }

    /// How it is reached.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Runs a script. A script that ran to its end is `Ok`, whatever its status.
    pub(crate) async fn run(&self, request: Request) -> Result<Output, Diagnostic> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job { request, reply, restarted: false }).map_err(|_| failure::thread_ended())?;
        // a full pipe means that the thread has plenty of reasons to wake up
        let _ = (&self.waker).write(&[0]);
        answer.await.map_err(|_| failure::thread_ended())?
    }

    /// A local address that leads to `host:port` as seen from this host; the same one when asked again, unless the host is away by then.
    pub(crate) async fn forward(&self, host: &str, port: u16) -> Result<SocketAddr, Diagnostic> {
        let mut forwards = self.forwards.lock().await;
        let target = (host.to_owned(), port);
        if let Some(forward) = forwards.get_mut(&target) {
            // Whoever knows another way takes that one.
            forward.reach(Arc::clone(&self.options)).await?;
            return Ok(forward.address);
        }
        let forward = Forward::open(Arc::clone(&self.options), host.to_owned(), port).await?;
        let address = forward.address;
        forwards.insert(target, forward);
        Ok(address)
    }
}
