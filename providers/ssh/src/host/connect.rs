//! From options to a session that is logged in: TCP or a bastion, handshake, host key, authentication, all within one deadline.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use karmaform_model::Diagnostic;
use ssh2::{MethodType, Session};

use super::auth;
use super::bastion;
use super::known_hosts::KnownKeys;
use super::wire::Wire;
use crate::connection::Options;
use crate::failure;

/// A connection that is ready for work.
pub(super) struct Link {
    pub(super) wire: Wire,
    /// Scripts run through `sudo -n`.
    pub(super) sudo: bool,
}

/// When connecting has to be done.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    total: Duration,
}

impl Deadline {
    fn after(total: Duration) -> Self {
        Self { at: Instant::now() + total, total }
    }

    /// What is left; never zero, which would mean "for ever" to some.
    pub(super) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    /// True when nothing is left.
    pub(super) fn is_over(self) -> bool {
        Instant::now() >= self.at
    }

    /// All of it, for messages.
    pub(super) fn seconds(self) -> u64 {
        self.total.as_secs()
    }
}

/// Connects and logs in.
pub(super) fn connect(options: &Options) -> Result<Link, Diagnostic> {
    connect_by(options, Deadline::after(options.connect_timeout))
}

/// The same, as a part of something with a deadline.
pub(super) fn connect_by(options: &Options, deadline: Deadline) -> Result<Link, Diagnostic> {
    // Keys are looked at first: a wrong path is found without the network.
    let credentials = auth::prepare(options)?;
    let known = KnownKeys::load(options)?;
    let mut session = Session::new().map_err(|e| failure::handshake(&options.place(), e.message()))?;
    session.set_timeout(milliseconds(deadline.left()));
    if let Some(algorithms) = known.algorithms() {
        // Ask for the kind of key that is known; a server with several kinds would else show one that is not, and look changed.
        let _ = session.method_pref(MethodType::HostKey, &algorithms);
    }
    let socket = match &options.bastion {
        Some(jump) => {
            let stream = bastion::through(jump, &options.address, options.port, deadline)?;
            let socket = duplicate(stream.try_clone().map(OwnedFd::from), options)?;
            session.set_tcp_stream(stream);
            socket
        }
        None => {
            let stream = dial(options, deadline)?;
            let socket = duplicate(stream.try_clone().map(OwnedFd::from), options)?;
            session.set_tcp_stream(stream);
            socket
        }
    };
    session.set_timeout(milliseconds(deadline.left()));
    session.handshake().map_err(|e| {
        if deadline.is_over() || is_timeout(&e) {
            failure::unreachable(&options.place(), deadline.seconds())
        } else {
            handshake_failed(options, &known, &e)
        }
    })?;
    known.verify(&session, options)?;
    session.set_timeout(milliseconds(deadline.left()));
    auth::log_in(&session, options, &credentials, deadline)?;
    Ok(Link { wire: Wire::new(session, socket), sudo: options.sudo })
}

/// libssh2's timer and ours differ by a moment.
pub(super) fn is_timeout(error: &ssh2::Error) -> bool {
    matches!(error.code(), ssh2::ErrorCode::Session(-9 | -30))
}

fn handshake_failed(options: &Options, known: &KnownKeys, error: &ssh2::Error) -> Diagnostic {
    let diagnostic = failure::handshake(&options.place(), error.message());
    match known.algorithms() {
        // -5: no algorithm in common; then the known key is of a kind that the server does not have.
        Some(algorithms) if error.code() == ssh2::ErrorCode::Session(-5) => diagnostic
            .with_hint(format!("The known key of this host is of the kind {algorithms}; the server may no longer have such a key.")),
        _ => diagnostic,
    }
}

fn duplicate(socket: io::Result<OwnedFd>, options: &Options) -> Result<OwnedFd, Diagnostic> {
    socket.map_err(|e| failure::handshake(&options.place(), &e.to_string()))
}

/// A TCP connection to the first address that answers.
fn dial(options: &Options, deadline: Deadline) -> Result<TcpStream, Diagnostic> {
    let place = options.place();
    let addresses = resolve(&options.address, options.port, deadline).map_err(|why| failure::unresolved(&options.address, &why))?;
    let mut last = None;
    for (index, address) in addresses.iter().enumerate() {
        let share = deadline.left() / u32::try_from(addresses.len() - index).unwrap_or(1);
        match TcpStream::connect_timeout(address, share.max(Duration::from_millis(1))) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(e) => last = Some(e),
        }
    }
    Err(match last {
        Some(e) if e.kind() == io::ErrorKind::ConnectionRefused => failure::refused(&place),
        Some(e) if e.kind() == io::ErrorKind::TimedOut || e.kind() == io::ErrorKind::WouldBlock => {
            failure::unreachable(&place, deadline.seconds())
        }
        Some(e) => failure::no_route(&place, &e.to_string()),
        None => failure::unresolved(&options.address, "the name has no address"),
    })
}

/// Name resolution has no timeout of its own, so it runs beside us.
fn resolve(address: &str, port: u16, deadline: Deadline) -> Result<Vec<SocketAddr>, String> {
    if let Ok(ip) = address.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let name = address.to_owned();
    thread::Builder::new()
        .name("ssh-resolve".to_owned())
        .spawn(move || {
            let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            let _ = sender.send(found.map_err(|e| e.to_string()));
        })
        .map_err(|e| e.to_string())?;
    receiver.recv_timeout(deadline.left()).map_err(|_| "the name service did not answer in time".to_owned())?
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1)
}
