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
    patience: Patience,
    /// Set when the answer was given and the channel only has to close.
    closing: Option<Instant>,
}

/// How many times its limit a command may take in all: what takes a byte now and then gets nowhere. A program's limit is for 32 KiB a second.
const AT_MOST: u32 = 32;

/// How long a command is still waited for. As long as it takes what it is sent it works: how fast that goes is the line's doing, and of all who share it.
struct Patience {
    began: Instant,
    since: Instant,
    limit: Duration,
}

impl Patience {
    fn new(now: Instant, limit: Duration) -> Self {
        Self { began: now, since: now, limit }
    }

    /// Some of what it is sent was taken just now.
    fn renew(&mut self, now: Instant) {
        self.since = now;
    }

    fn left(&self, now: Instant) -> Duration {
        let left = |limit: Duration, since: Instant| limit.saturating_sub(now.saturating_duration_since(since));
        left(self.limit, self.since).min(left(self.limit.saturating_mul(AT_MOST), self.began))
    }
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
        let (session, limit) = (wire.session.clone(), job.request.timeout);
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
                patience: Patience::new(Instant::now(), limit),
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
                    if n > 0 {
                        self.patience.renew(Instant::now());
                    }
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
        if self.remaining().is_zero() {
            return Some(Err(request.name(failure::timed_out(request, &self.stdout, &self.stderr))));
        }
        None
    }

    /// When the job's time is over.
    pub(super) fn remaining(&self) -> Duration {
        self.patience.left(Instant::now())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_waited_for_and_what_stands_still_is_not() {
        let (start, limit) = (Instant::now(), Duration::from_secs(60));
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut patience = Patience::new(start, limit);
        for seconds in (0..=1800).step_by(50) {
            assert!(!patience.left(at(seconds)).is_zero(), "after {seconds} s");
            patience.renew(at(seconds));
        }
        assert_eq!(patience.left(at(1810)), Duration::from_secs(50));
        assert!(patience.left(at(1860)).is_zero());
    }

    #[test]
    fn what_takes_a_byte_now_and_then_ends() {
        let (start, limit) = (Instant::now(), Duration::from_secs(60));
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut patience = Patience::new(start, limit);
        let ended = (0..=3600).step_by(30).find(|seconds| {
            patience.renew(at(*seconds));
            patience.left(at(*seconds)).is_zero()
        });
        assert_eq!(ended, Some(1920));
    }
}
