//! Bytes between a local socket and a channel, both ways, without blocking.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use ssh2::Channel;

use super::wire::{Lost, Wire};

/// How much is on its way in one direction.
const PIECE: usize = 64 << 10;

/// The local end.
pub(super) enum Local {
    /// Of a forwarded port.
    Tcp(TcpStream),
    /// Of a session through a bastion.
    Unix(UnixStream),
}

/// One connection.
pub(super) struct Pipe {
    channel: Channel,
    local: Local,
    up: Way,
    down: Way,
}

/// One direction.
struct Way {
    bytes: Vec<u8>,
    sent: usize,
    /// The source has no more.
    ended: bool,
    /// The other end was told so.
    told: bool,
}

impl Way {
    fn new() -> Self {
        Self { bytes: Vec::with_capacity(PIECE), sent: 0, ended: false, told: false }
    }

    fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.sent = 0;
    }
}

impl Pipe {
    /// Between these two. The local end must not block.
    pub(super) fn new(channel: Channel, local: Local) -> Self {
        Self { channel, local, up: Way::new(), down: Way::new() }
    }

    /// Moves what can be moved. True if something moved.
    pub(super) fn turn(&mut self, wire: &mut Wire, buffer: &mut [u8]) -> Result<bool, Lost> {
        let mut moved = false;
        if self.up.is_empty() && !self.up.ended {
            match self.local.read(buffer) {
                Ok(0) => self.up.ended = true,
                Ok(n) => {
                    self.up.take(&buffer[..n]);
                    moved = true;
                }
                Err(e) if is_later(&e) => {}
                Err(_) => self.end(),
            }
        }
        if !self.up.is_empty() {
            let bytes = &self.up.bytes[self.up.sent..];
            if let Some(n @ 1..) = wire.step(|| self.channel.write(bytes))? {
                self.up.sent += n;
                moved = true;
            }
        } else if self.up.ended && !self.up.told {
            self.up.told = true;
            let _ = wire.finish(Duration::from_secs(5), || self.channel.send_eof())?;
        }
        if self.down.is_empty() && !self.down.ended {
            match wire.step(|| self.channel.read(buffer))? {
                Some(0) => self.down.ended = self.channel.eof(),
                Some(n) => {
                    self.down.take(&buffer[..n]);
                    moved = true;
                }
                None => {}
            }
        }
        if !self.down.is_empty() {
            match self.local.write(self.down.rest()) {
                Ok(n) => {
                    self.down.sent += n;
                    moved |= n > 0;
                }
                Err(e) if is_later(&e) => {}
                Err(_) => self.end(),
            }
        } else if self.down.ended && !self.down.told {
            self.down.told = true;
            self.local.shutdown();
        }
        Ok(moved)
    }

    fn end(&mut self) {
        for way in [&mut self.up, &mut self.down] {
            way.take(&[]);
            way.ended = true;
        }
    }

    /// True when both ends have said all.
    pub(super) fn is_done(&self) -> bool {
        self.up.told && self.down.told
    }

    /// True when the local end is gone; for a bastion that is the end, as nobody is left to read.
    pub(super) fn is_left(&self) -> bool {
        self.up.ended
    }

    /// Closes the channel.
    pub(super) fn close(mut self, wire: &mut Wire) -> Result<(), Lost> {
        wire.finish(Duration::from_secs(5), || self.channel.close()).map(drop)
    }

    /// What to watch on the local end.
    pub(super) fn watch(&self) -> Option<PollFd<'_>> {
        let mut flags = PollFlags::empty();
        if self.up.is_empty() && !self.up.ended {
            flags |= PollFlags::IN;
        }
        if !self.down.is_empty() {
            flags |= PollFlags::OUT;
        }
        (!flags.is_empty()).then(|| PollFd::from_borrowed_fd(self.local.as_fd(), flags))
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Local {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(buffer),
            Self::Unix(s) => s.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write(bytes),
            Self::Unix(s) => s.write(bytes),
        }
    }

    fn shutdown(&self) {
        let _ = match self {
            Self::Tcp(s) => s.shutdown(Shutdown::Write),
            Self::Unix(s) => s.shutdown(Shutdown::Write),
        };
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(s) => s.as_fd(),
            Self::Unix(s) => s.as_fd(),
        }
    }
}
