//! A session without blocking calls: one thread drives many channels over it.
//!
//! libssh2 keeps one half-sent packet per session. Whoever caused it must repeat the very same call before anything else is sent, else
//! the session is broken; [`Wire::finish`] and [`Wire::step`] are the only ways to call it here, and both keep that rule.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ssh2::{BlockDirections, ErrorCode, Session};

/// How often a quiet connection is asked for a sign of life.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(10);

/// How long a connection may give no sign of life before it counts as lost: two keepalives unanswered, and a bit.
pub(super) const SILENCE: Duration = Duration::from_secs(25);

/// How long the other side may take for one answer in all, as long as it shows life: on a slow link a question stands in line behind what was
/// sent before it, some megabytes in the buffers of both ends and of the routers between.
const IN_LINE: Duration = Duration::from_secs(180);

/// libssh2's "again later".
const AGAIN: ErrorCode = ErrorCode::Session(-37);

/// The connection is gone; why, in a few words.
#[derive(Clone, Debug)]
pub(super) struct Lost(pub(super) String);

/// An authenticated session, its socket, and when it last showed life.
pub(super) struct Wire {
    /// The session, not blocking.
    pub(super) session: Session,
    socket: OwnedFd,
    last_sign: Instant,
    next_keepalive: Instant,
}

impl Wire {
    /// Takes over a session that is logged in. `socket` is a duplicate of its socket, for waiting.
    pub(super) fn new(session: Session, socket: OwnedFd) -> Self {
        session.set_timeout(0);
        session.set_blocking(false);
        session.set_keepalive(true, u32::try_from(KEEPALIVE.as_secs()).unwrap_or(10));
        let now = Instant::now();
        Self { session, socket, last_sign: now, next_keepalive: now + KEEPALIVE }
    }

    /// Does `call` to its end, waiting for the other side as long as it shows no life for `limit`. `Ok(Err)` is the call's own failure.
    pub(super) fn finish<T>(
        &mut self,
        limit: Duration,
        mut call: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<Result<T, ssh2::Error>, Lost> {
        let began = Instant::now();
        loop {
            match call() {
                Err(e) if e.code() == AGAIN => {}
                Err(e) if breaks(e.code()) => return Err(Lost(e.message().to_owned())),
                other => return Ok(other),
            }
            let now = Instant::now();
            let deadline = (self.last_sign.max(began) + limit).min(began + limit.max(IN_LINE));
            if now >= deadline {
                return Err(Lost(format!("no answer within {} s", limit.as_secs())));
            }
            let outbound = self.outbound();
            self.wait(&mut [], outbound, deadline - now)?;
        }
    }

    /// One read or write. `None`: nothing to be had now; 0: never again. A half-sent packet is finished before this returns.
    pub(super) fn step(&mut self, mut call: impl FnMut() -> io::Result<usize>) -> Result<Option<usize>, Lost> {
        loop {
            match call() {
                Ok(n) => return Ok(Some(n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if !self.outbound() {
                        return Ok(None);
                    }
                    self.wait(&mut [], true, SILENCE)?;
                }
                Err(e) => match ssh2::Error::last_session_error(&self.session) {
                    Some(last) if !breaks(last.code()) => return Ok(Some(0)),
                    _ => return Err(Lost(e.to_string())),
                },
            }
        }
    }

    fn outbound(&self) -> bool {
        matches!(self.session.block_directions(), BlockDirections::Outbound | BlockDirections::Both)
    }

    /// Waits for the socket or one of `others`, at most `limit`; keeps the connection alive and finds out if it is dead.
    pub(super) fn wait(&mut self, others: &mut [PollFd<'_>], outbound: bool, limit: Duration) -> Result<(), Lost> {
        let now = Instant::now();
        let limit = limit.min(self.next_keepalive.saturating_duration_since(now)).min(Duration::from_secs(1));
        let flags = if outbound { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let socket = self.socket.as_fd();
        let mut fds = vec![PollFd::from_borrowed_fd(socket, flags)];
        fds.extend(others.iter().cloned());
        wait_any(&mut fds, limit)?;
        let seen = fds[0].revents();
        let now = Instant::now();
        if seen.intersects(PollFlags::IN | PollFlags::OUT) {
            self.last_sign = now;
        } else if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(Lost("the connection was closed".to_owned()));
        }
        if now.duration_since(self.last_sign) > SILENCE {
            return Err(Lost(format!("no sign of life for {} s", SILENCE.as_secs())));
        }
        if now >= self.next_keepalive && !outbound {
            self.next_keepalive = now + KEEPALIVE;
            self.session.keepalive_send().map_err(|e| Lost(e.message().to_owned()))?;
        }
        Ok(())
    }

    /// Keeps firewalls and the server from ending a connection that nobody uses at the moment. What the server sends meanwhile is read
    /// with the next channel; so an end of the connection shows here late, and the next user has to be ready for it.
    pub(super) fn idle(&mut self) -> Result<(), Lost> {
        let now = Instant::now();
        self.last_sign = now;
        if now >= self.next_keepalive {
            self.next_keepalive = now + KEEPALIVE;
            self.session.keepalive_send().map_err(|e| Lost(e.message().to_owned()))?;
        }
        Ok(())
    }
}

/// Waits for any of these. An interrupted wait is no error.
pub(super) fn wait_any(fds: &mut [PollFd<'_>], limit: Duration) -> Result<(), Lost> {
    let timeout = Timespec { tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(fds, Some(&timeout)) {
        Ok(_) => Ok(()),
        Err(e) if e == rustix::io::Errno::INTR => Ok(()),
        Err(e) => Err(Lost(e.to_string())),
    }
}

/// To be watched for something to read.
pub(super) fn readable<'a>(fd: &'a BorrowedFd<'a>) -> PollFd<'a> {
    PollFd::new(fd, PollFlags::IN)
}

/// True for failures of the connection, not of what was asked of it.
fn breaks(code: ErrorCode) -> bool {
    // socket none, banner, kex, alloc-free transport errors: send, decrypt, disconnect, protocol, timeout, socket timeout, bad socket
    matches!(code, ErrorCode::Session(-1 | -2 | -3 | -4 | -5 | -7 | -8 | -9 | -12 | -13 | -14 | -30 | -43 | -45))
}
