//! One command on one channel: script and payload in, output out, without blocking.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use karmaform_model::Diagnostic;
use ssh2::Channel;
use tokio::sync::oneshot;

use super::upload::Input;
use super::wire::{Lost, Wire};
use super::{Output, Request};
use crate::failure;

/// How much of each output stream is kept. The end is what matters to a reader, and no answer to a question gets near it.
const KEPT: usize = 32 << 20;

/// Reads and writes in a row before other channels get their turn.
const TURN: usize = 64;

/// How long a finished channel may take to close before it is given up.
const CLOSING: Duration = Duration::from_secs(5);

/// A request with its way back.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) reply: oneshot::Sender<Result<Output, Diagnostic>>,
    /// It was already started once on a connection that turned out to be dead.
    pub(super) restarted: bool,
}

/// A job on its channel.
pub(super) struct Running {
    pub(super) job: Job,
    channel: Channel,
    input: Option<Input>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncated: bool,
    began: Instant,
    /// Set when the answer was given and the channel only has to close.
    closing: Option<Instant>,
}

/// Why a job could not be started.
pub(super) enum StartError {
    /// The connection is gone; nothing has run.
    Lost(Job, Lost),
    /// The server wants no more channels at once.
    Busy(Job),
    /// It was answered with an error.
    Refused,
}

impl Running {
    /// Opens a channel and starts the job's script on it. `may_wait`: a refusal may mean that others have to end first.
    pub(super) fn start(wire: &mut Wire, job: Job, sudo: bool, may_wait: bool) -> Result<Self, StartError> {
        const OPEN: Duration = Duration::from_secs(10);
        let input = match Input::new(&job.request) {
            Ok(input) => input,
            Err(error) => {
                let _ = job.reply.send(Err(error));
                return Err(StartError::Refused);
            }
        };
        let session = wire.session.clone();
        let mut channel = match wire.finish(OPEN, || session.channel_session()) {
            Err(lost) => return Err(StartError::Lost(job, lost)),
            Ok(Err(_)) if may_wait => return Err(StartError::Busy(job)),
            Ok(Err(e)) => return Err(refused(job, &e)),
            Ok(Ok(channel)) => channel,
        };
        let command = job.request.script.bootstrap(sudo);
        match wire.finish(OPEN, || channel.exec(&command)) {
            Err(lost) => Err(StartError::Lost(job, lost)),
            Ok(Err(e)) => Err(refused(job, &e)),
            Ok(Ok(())) => Ok(Self {
                job,
                channel,
                input: Some(input),
                stdout: Vec::new(),
                stderr: Vec::new(),
                truncated: false,
                began: Instant::now(),
                closing: None,
            }),
        }
    }

    /// Moves what can be moved. True if something moved.
    pub(super) fn turn(&mut self, wire: &mut Wire, buffer: &mut [u8]) -> Result<bool, Lost> {
        let mut moved = false;
        for _ in 0..TURN {
            let mut again = false;
            if let Some(n @ 1..) = wire.step(|| self.channel.read(buffer))? {
                again = true;
                keep(&mut self.stdout, &buffer[..n], &mut self.truncated);
            }
            if let Some(n @ 1..) = wire.step(|| self.channel.stderr().read(buffer))? {
                again = true;
                keep(&mut self.stderr, &buffer[..n], &mut self.truncated);
            }
            again |= self.send(wire)?;
            if !again {
                break;
            }
            moved = true;
        }
        Ok(moved)
    }

    fn send(&mut self, wire: &mut Wire) -> Result<bool, Lost> {
        let Some(input) = self.input.as_mut().filter(|_| self.closing.is_none()) else { return Ok(false) };
        match input.pending() {
            Ok(Some(bytes)) => match wire.step(|| self.channel.write(bytes))? {
                Some(n) => {
                    input.sent(n);
                    // 0: the other side takes no more, or its window is full; either way not now
                    Ok(n > 0)
                }
                None => Ok(false),
            },
            // A file that can't be read to its end: the sum on the other side will not match, so nothing gets installed.
            Ok(None) | Err(_) => {
                self.input = None;
                let _ = wire.finish(Duration::from_secs(5), || self.channel.send_eof())?;
                Ok(true)
            }
        }
    }

    /// The answer, once there is one.
    pub(super) fn answer(&mut self) -> Option<Result<Output, Diagnostic>> {
        if self.closing.is_some() {
            return None;
        }
        let request = &self.job.request;
        if let Some(output) = request.script.output(&self.stdout, &self.stderr, self.truncated) {
            return Some(output.map_err(|e| request.name(e)));
        }
        if self.channel.eof() {
            let signal = self.channel.exit_signal().ok().and_then(|s| s.exit_signal);
            let status = self.channel.exit_status().unwrap_or(-1);
            return Some(Err(request.name(failure::did_not_run(&self.stdout, &self.stderr, status, signal.as_deref(), request))));
        }
        if self.began.elapsed() >= request.timeout {
            return Some(Err(request.name(failure::timed_out(request, &self.stdout, &self.stderr))));
        }
        None
    }

    /// When the job's time is over.
    pub(super) fn remaining(&self) -> Duration {
        self.job.request.timeout.saturating_sub(self.began.elapsed())
    }

    /// Nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.closing.is_none() && self.job.reply.is_closed()
    }

    /// Hands the answer over; the channel stays to be closed.
    pub(super) fn conclude(&mut self, answer: Result<Output, Diagnostic>) {
        let (nobody, _) = oneshot::channel();
        let _ = std::mem::replace(&mut self.job.reply, nobody).send(answer);
        self.stdout = Vec::new();
        self.closing = Some(Instant::now());
    }

    /// Closes the channel as far as that goes without waiting. True when it is done with.
    pub(super) fn is_closed(&mut self, wire: &mut Wire) -> Result<bool, Lost> {
        let Some(since) = self.closing else { return Ok(false) };
        if !self.channel.eof() && since.elapsed() < Duration::from_millis(500) {
            return Ok(false);
        }
        let _ = wire.finish(CLOSING, || self.channel.close())?;
        Ok(true)
    }
}

fn refused(job: Job, error: &ssh2::Error) -> StartError {
    let answer = failure::no_channel(error.message());
    let answer = job.request.name(answer);
    let _ = job.reply.send(Err(answer));
    StartError::Refused
}

/// Appends; of too much the beginning and the end are kept.
fn keep(into: &mut Vec<u8>, bytes: &[u8], truncated: &mut bool) {
    into.extend_from_slice(bytes);
    if into.len() > KEPT {
        *truncated = true;
        into.drain(KEPT / 4..KEPT / 2);
    }
}
