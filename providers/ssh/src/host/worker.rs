//! The one thread of a host: takes jobs, runs several at once over one session, and connects again if the session is lost.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use karmaform_model::Diagnostic;

use super::connect::{self, Link};
use super::exec::{Job, Running, StartError};
use super::wire::{KEEPALIVE, Lost, readable, wait_any};
use crate::connection::Options;
use crate::failure;

/// Channels at once on one session; servers allow ten unless told otherwise.
const CHANNELS: usize = 8;

/// For how long a failed reconnection is not tried again: many waiting jobs must not each wait for a dead host.
const MEMORY: Duration = Duration::from_secs(10);

/// How long a server may take to notice that a channel is closed.
const SETTLING: Duration = Duration::from_secs(3);

/// The state of the thread.
pub(super) struct Worker {
    options: Arc<Options>,
    jobs: Receiver<Job>,
    waker: UnixStream,
    link: Option<Link>,
    waiting: VecDeque<Job>,
    running: Vec<Running>,
    channels: usize,
    /// When a channel was closed last. The server needs a moment to notice, and counts it as open until then.
    closed: Option<Instant>,
    unreachable: Option<(Instant, Diagnostic)>,
}

impl Worker {
    /// With a first connection.
    pub(super) fn new(options: Arc<Options>, link: Link, jobs: Receiver<Job>, waker: UnixStream) -> Self {
        Self {
            options,
            jobs,
            waker,
            link: Some(link),
            waiting: VecDeque::new(),
            running: Vec::new(),
            channels: CHANNELS,
            closed: None,
            unreachable: None,
        }
    }

    /// Works until the last handle to the host is gone.
    pub(super) fn run(mut self) {
        let mut buffer = vec![0; 256 << 10];
        while self.take_jobs() {
            self.start_jobs();
            if let Err(lost) = self.turn(&mut buffer) {
                self.lose(&lost);
            }
        }
    }

    /// False when nobody can send jobs any more.
    fn take_jobs(&mut self) -> bool {
        loop {
            match self.jobs.try_recv() {
                Ok(job) => self.waiting.push_back(job),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn start_jobs(&mut self) {
        while self.running.len() < self.channels {
            let Some(job) = self.waiting.pop_front() else { return };
            if job.reply.is_closed() {
                continue;
            }
            let link = match self.link() {
                Ok(link) => link,
                Err(error) => {
                    let error = job.request.name(error);
                    let _ = job.reply.send(Err(error));
                    continue;
                }
            };
            let sudo = link.sudo;
            let may_wait = !self.running.is_empty() || self.closed.is_some_and(|c| c.elapsed() < SETTLING);
            let Some(link) = &mut self.link else { return };
            match Running::start(&mut link.wire, job, sudo, may_wait) {
                Ok(running) => self.running.push(running),
                Err(StartError::Refused) => {}
                Err(StartError::Busy(job)) => {
                    self.channels = self.running.len().max(1);
                    self.waiting.push_front(job);
                    if self.running.is_empty() {
                        self.sleep(Duration::from_millis(20));
                    }
                    return;
                }
                Err(StartError::Lost(mut job, lost)) => {
                    self.lose(&lost);
                    if job.restarted {
                        let error = job.request.name(failure::lost(&self.options.place(), &lost.0));
                        let _ = job.reply.send(Err(error));
                    } else {
                        job.restarted = true;
                        self.waiting.push_front(job);
                    }
                }
            }
        }
    }

    /// The connection, made again if it was lost.
    fn link(&mut self) -> Result<&Link, Diagnostic> {
        if self.link.is_none() {
            if let Some((since, error)) = &self.unreachable
                && since.elapsed() < MEMORY
            {
                return Err(error.clone());
            }
            self.unreachable = None;
            match connect::connect(&self.options) {
                Ok(link) => self.link = Some(link),
                Err(error) => {
                    self.unreachable = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            }
        }
        self.link.as_ref().ok_or_else(|| failure::lost(&self.options.place(), "no connection"))
    }

    /// One round over all channels; waits if nothing moved.
    fn turn(&mut self, buffer: &mut [u8]) -> Result<(), Lost> {
        let Some(link) = &mut self.link else {
            self.sleep(KEEPALIVE);
            return Ok(());
        };
        let mut moved = false;
        let mut index = 0;
        while index < self.running.len() {
            let running = &mut self.running[index];
            moved |= running.turn(&mut link.wire, buffer)?;
            if let Some(answer) = running.answer() {
                running.conclude(answer);
            } else if running.is_abandoned() {
                running.conclude(Err(failure::abandoned()));
            }
            if running.is_closed(&mut link.wire)? {
                self.running.swap_remove(index);
                self.closed = Some(Instant::now());
                moved = true;
            } else {
                index += 1;
            }
        }
        if moved || (!self.waiting.is_empty() && self.running.len() < self.channels) {
            return Ok(());
        }
        if self.running.is_empty() {
            link.wire.idle()?;
            self.sleep(KEEPALIVE);
            return Ok(());
        }
        let limit = self.running.iter().map(Running::remaining).min().unwrap_or(KEEPALIVE).clamp(Duration::from_millis(1), KEEPALIVE);
        let waker = self.waker.as_fd();
        link.wire.wait(&mut [readable(&waker)], false, limit)?;
        self.drain_waker();
        Ok(())
    }

    fn sleep(&mut self, limit: Duration) {
        let waker = self.waker.as_fd();
        let _ = wait_any(&mut [readable(&waker)], limit);
        self.drain_waker();
    }

    fn drain_waker(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.waker.read(&mut bytes), Ok(64)) {}
    }

    /// Everything that ran on the lost connection failed; whether its command was carried out nobody knows.
    fn lose(&mut self, lost: &Lost) {
        self.link = None;
        for mut running in self.running.drain(..) {
            let error = running.job.request.name(failure::lost(&self.options.place(), &lost.0));
            running.conclude(Err(error));
        }
    }
}
