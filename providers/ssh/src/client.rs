//! What a resource type works with: one host, and the store of artifacts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use karmaform_model::Diagnostic;

use crate::artifact::Store;
use crate::connection::Options;
use crate::failure;
use crate::host::{Host, Output, Payload, Request};
use crate::look::{self, Look, Seen};
use crate::script::{Script, quote, random_mark};

/// How long a change may take unless it says otherwise.
const USUAL: Duration = Duration::from_secs(60);

/// An open connection, with what belongs to the run.
pub struct Client {
    pub(crate) door: Door,
    pub(crate) store: Arc<Store>,
    pub(crate) run: Arc<Run>,
}

/// The run that this is, for hosts: one at a time changes a host.
pub(crate) struct Run {
    /// Of all runs that work for the same state, of which there is one at a time: what one that was cut off from a host held there, the next
    /// one holds.
    pub(crate) id: OnceLock<String>,
    /// Whose, for whoever else wants to work there.
    pub(crate) who: String,
}

/// The host, or that it is away.
pub(crate) enum Door {
    /// It can be worked on.
    Open(Arc<Host>),
    /// It does not answer, and need not: everything behind it fails with this.
    Shut {
        /// How it would be reached.
        options: Box<Options>,
        /// Why it is not.
        why: Box<Diagnostic>,
    },
}

/// One change to a host, as a script, and what to look at when it is done.
pub(crate) struct Act {
    what: String,
    body: String,
    payload: Payload,
    timeout: Duration,
    secrets: Vec<String>,
    looks: Vec<Look>,
}

impl Act {
    /// `what` is for messages: "Writing /etc/motd".
    pub(crate) fn new(what: impl Into<String>, body: impl Into<String>) -> Self {
        Self { what: what.into(), body: body.into(), payload: Payload::Nothing, timeout: USUAL, secrets: Vec::new(), looks: Vec::new() }
    }

    /// With something on standard input.
    pub(crate) fn with_payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// With more time.
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With texts to be kept out of messages.
    pub(crate) fn with_secrets(mut self, secrets: Vec<String>) -> Self {
        self.secrets = secrets;
        self
    }

    /// With questions that are answered in the same round trip.
    pub(crate) fn then_look(mut self, looks: Vec<Look>) -> Self {
        self.looks = looks;
        self
    }
}

/// A change that was carried out to its end, good or bad.
pub(crate) struct Attempt {
    /// For messages: what, and where.
    pub(crate) what: String,
    /// To be kept out of messages.
    pub(crate) secrets: Vec<String>,
    /// What the script gave.
    pub(crate) output: Output,
    looks: Vec<Look>,
}

impl Client {
    /// How it is reached.
    pub(crate) fn options(&self) -> &Options {
        match &self.door {
            Door::Open(host) => host.options(),
            Door::Shut { options, .. } => options,
        }
    }

    /// The host, if it is not away.
    pub(crate) fn host(&self) -> Result<&Host, Diagnostic> {
        match &self.door {
            Door::Open(host) => Ok(host),
            Door::Shut { why, .. } => Err((**why).clone()),
        }
    }

    /// The host, for messages.
    pub(crate) fn place(&self) -> String {
        self.options().place()
    }

    /// Runs a script that changes nothing; a failure of the script is left to the caller.
    pub(crate) async fn run(&self, act: Act) -> Result<Output, Diagnostic> {
        let what = format!("{} on {}", act.what, self.place());
        let script = Script::new(&act.body);
        self.host()?.run(Request { what, script, payload: act.payload, timeout: act.timeout, secrets: act.secrets }).await
    }

    /// Runs a script that changes something, if nobody else works on the host; a failure of the script is left to the caller.
    pub(crate) async fn change(&self, mut act: Act) -> Result<Output, Diagnostic> {
        let id = self.run.id.get_or_init(random_mark);
        act.body = format!("hold {id} {} {}\n{}", act.timeout.as_secs(), quote(&self.run.who), act.body);
        self.run(act).await
    }

    /// Makes a change and looks at what came of it.
    pub(crate) async fn act(&self, act: Act) -> Result<Seen, Diagnostic> {
        self.conclude(&self.attempt(act).await?)
    }

    /// Makes a change; [`Client::conclude`] says what came of it.
    pub(crate) async fn attempt(&self, mut act: Act) -> Result<Attempt, Diagnostic> {
        let looks = std::mem::take(&mut act.looks);
        // the change has its own subshell, so that an `exit 0` in it does not skip the questions
        act.body = format!("(\nguard\n{}\n) || exit\nkf_written=1\n{}", act.body, look::script(&looks));
        let (what, secrets) = (format!("{} on {}", act.what, self.place()), act.secrets.clone());
        Ok(Attempt { what, secrets, looks, output: self.change(act).await? })
    }

    /// What was seen after a change, or why it failed.
    pub(crate) fn conclude(&self, attempt: &Attempt) -> Result<Seen, Diagnostic> {
        if attempt.output.status != 0 || attempt.output.reason().is_some() {
            return Err(failure::failed(&attempt.what, &attempt.output, &attempt.secrets));
        }
        self.parse(&attempt.output, &attempt.looks)
    }

    /// Looks, without changing anything. Contents are read in a second round trip, and only those that differ from what is known.
    pub(crate) async fn look(&self, looks: &[Look]) -> Result<Seen, Diagnostic> {
        let act = Act::new("Looking", look::script(looks)).with_timeout(look::time_needed(looks));
        let mut seen = self.parse(&self.run(act).await?, looks)?;
        let wanted = seen.contents_wanted(looks);
        if !wanted.is_empty() {
            let output = self.run(Act::new("Reading files", look::content_script(&wanted))).await?;
            seen.read_contents(&output, &wanted);
        }
        Ok(seen)
    }

    fn parse(&self, output: &Output, looks: &[Look]) -> Result<Seen, Diagnostic> {
        Seen::parse(output, looks, &self.place()).ok_or_else(|| {
            let mut error = failure::garbled();
            error.detail = format!("Looking at {}: {} {}", self.place(), error.detail, failure::tail(&output.stderr, 3));
            error
        })
    }
}
