//! A local port that leads to a port beyond the host: its own session and thread, any number of connections, made again if lost.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use karmaform_model::Diagnostic;
use ssh2::Channel;
use tokio::sync::oneshot;

use super::LIMITS;
use super::connect::{Link, connect};
use super::pipe::{Local, Pipe};
use super::wire::{KEEPALIVE, Lost, readable, wait_any};
use crate::connection::Options;
use crate::failure;

/// How long the host may take to reach the target.
const OPEN: Duration = Duration::from_secs(10);

/// An open way; it ends when this is dropped.
pub(super) struct Forward {
    /// Where to connect to.
    pub(super) address: SocketAddr,
    /// The connection to the host broke, and there was none since.
    lost: Arc<AtomicBool>,
    /// When it was found out last that the host is away, and why.
    unreachable: Option<(Instant, Diagnostic)>,
    /// The thread watches the other end.
    _stop: UnixStream,
}

/// For how long nobody tries again to reach a host that could not be reached: many who wait must not each wait for a dead host.
const MEMORY: Duration = Duration::from_secs(10);

impl Forward {
    /// Opens the way. The session is made now, so that a host that can't be reached is told here and not to whoever connects later.
    pub(super) async fn open(options: Arc<Options>, host: String, port: u16) -> Result<Self, Diagnostic> {
        let broken = |e: std::io::Error| {
            Diagnostic::error("No local port", format!("A local port for the way to {host}:{port} can't be opened: {e}.")).with_hint(LIMITS)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(broken)?;
        listener.set_nonblocking(true).map_err(broken)?;
        let address = listener.local_addr().map_err(broken)?;
        let (stop, watched) = UnixStream::pair().map_err(broken)?;
        let (ready, is_ready) = oneshot::channel();
        let (target, lost) = (host.clone(), Arc::new(AtomicBool::new(false)));
        let of_thread = Arc::clone(&lost);
        let work = move || match connect(&options) {
            Ok(link) => {
                let _ = ready.send(Ok(()));
                let (link, lost) = (Some(link), of_thread);
                Forwarder { options, listener, stop: watched, host: target, port, link, lost, pipes: Vec::new() }.run();
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        };
        thread::Builder::new().name("ssh-forward".to_owned()).spawn(work).map_err(broken)?;
        is_ready.await.map_err(|_| failure::thread_ended())??;
        Ok(Self { address, lost, unreachable: None, _stop: stop })
    }

    /// Finds out whether the host can be reached, if the connection to it broke. One that can be is not asked again before the next break.
    pub(super) async fn reach(&mut self, options: Arc<Options>) -> Result<(), Diagnostic> {
        if !self.lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some((since, why)) = &self.unreachable
            && since.elapsed() < MEMORY
        {
            return Err(why.clone());
        }
        let tried = tokio::task::spawn_blocking(move || connect(&options).map(drop)).await.map_err(|_| failure::thread_ended())?;
        self.unreachable = tried.as_ref().err().map(|why| (Instant::now(), why.clone()));
        if tried.is_ok() {
            self.lost.store(false, Ordering::Relaxed);
        }
        tried
    }
}

struct Forwarder {
    options: Arc<Options>,
    listener: TcpListener,
    stop: UnixStream,
    host: String,
    port: u16,
    link: Option<Link>,
    lost: Arc<AtomicBool>,
    pipes: Vec<Pipe>,
}

impl Forwarder {
    fn run(mut self) {
        let mut buffer = vec![0; 64 << 10];
        while !self.is_stopped() {
            if let Ok((stream, _)) = self.listener.accept() {
                self.accept(stream);
            }
            match self.turn(&mut buffer) {
                Ok(true) => {}
                Ok(false) => {
                    if self.wait().is_err() {
                        self.lose();
                    }
                }
                Err(_) => self.lose(),
            }
        }
    }

    fn is_stopped(&self) -> bool {
        // the other end never writes: an error other than "later", or an end, means that it is gone
        let _ = self.stop.set_nonblocking(true);
        !matches!(std::io::Read::read(&mut &self.stop, &mut [0]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// A connection that can't be led on is closed; who made it tries again or reports it.
    fn accept(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let _ = stream.set_nodelay(true);
        for _ in 0..2 {
            match self.channel() {
                Ok(channel) => {
                    self.pipes.extend(channel.map(|c| Pipe::new(c, Local::Tcp(stream))));
                    return;
                }
                Err(_) => self.lose(),
            }
        }
    }

    /// `Ok(None)`: the host can't reach the target.
    fn channel(&mut self) -> Result<Option<Channel>, Lost> {
        if self.link.is_none() {
            self.link = Some(connect(&self.options).map_err(|e| Lost(e.detail))?);
            self.lost.store(false, Ordering::Relaxed);
        }
        let Some(link) = &mut self.link else { return Ok(None) };
        let session = link.wire.session.clone();
        Ok(link.wire.finish(OPEN, || session.channel_direct_tcpip(&self.host, self.port, None))?.ok())
    }

    fn turn(&mut self, buffer: &mut [u8]) -> Result<bool, Lost> {
        let Some(link) = &mut self.link else { return Ok(false) };
        let mut moved = false;
        let mut index = 0;
        while index < self.pipes.len() {
            moved |= self.pipes[index].turn(&mut link.wire, buffer)?;
            if self.pipes[index].is_done() {
                self.pipes.swap_remove(index).close(&mut link.wire)?;
            } else {
                index += 1;
            }
        }
        Ok(moved)
    }

    fn wait(&mut self) -> Result<(), Lost> {
        let (listener, stop) = (self.listener.as_fd(), self.stop.as_fd());
        let mut fds = vec![readable(&listener), readable(&stop)];
        fds.extend(self.pipes.iter().filter_map(Pipe::watch));
        match &mut self.link {
            Some(link) if !self.pipes.is_empty() => link.wire.wait(&mut fds, false, KEEPALIVE),
            Some(link) => {
                link.wire.idle()?;
                wait_any(&mut fds, KEEPALIVE)
            }
            None => wait_any(&mut fds, KEEPALIVE),
        }
    }

    fn lose(&mut self) {
        self.link = None;
        self.lost.store(true, Ordering::Relaxed);
        self.pipes.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc;

    use karmaform_model::Object;
    use tokio::sync::Mutex;

    use super::super::Host;
    use super::*;
    use crate::values::object;

    #[test]
    fn a_way_through_a_host_that_went_away_is_none() {
        // Nobody listens there any more.
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let arguments = object([
            ("address", "127.0.0.1".into()),
            ("port", i64::from(gone.port()).into()),
            ("password", "pw".into()),
            ("known_hosts_file", "/does/not/exist".into()),
        ]);
        let options = Arc::new(Options::new(&arguments, &Object::new()).ok().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let asked = |lost: bool, unreachable: Option<(Instant, Diagnostic)>| {
            let way = Forward { address: gone, lost: Arc::new(AtomicBool::new(lost)), unreachable, _stop: UnixStream::pair().unwrap().0 };
            let host = Host {
                options: Arc::clone(&options),
                jobs: mpsc::channel().0,
                waker: UnixStream::pair().unwrap().0,
                forwards: Mutex::new(BTreeMap::from([(("api".to_owned(), 6443), way)])),
            };
            runtime.block_on(host.forward("api", 6443)).map_err(|e| e.summary)
        };
        let before = |age: Duration| Some((Instant::now().checked_sub(age).unwrap(), Diagnostic::error("As before", "")));
        assert_eq!(asked(false, None), Ok(gone), "the same one when asked again");
        assert_eq!(asked(false, before(Duration::ZERO)), Ok(gone), "it is back");
        assert_eq!(asked(true, None), Err("Connection refused".to_owned()));
        assert_eq!(asked(true, before(Duration::ZERO)), Err("As before".to_owned()), "nobody tries again at once");
        assert_eq!(asked(true, before(MEMORY)), Err("Connection refused".to_owned()));
    }
}
