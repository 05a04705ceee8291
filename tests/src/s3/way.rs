//! A way to a server from networks that don't lead to where it listens: hosts and pods have networks of their own.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A port that leads to a server, until it is dropped.
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Way {
    /// From a port at `address` to `server`, which is `HOST:PORT`.
    pub(super) fn open(address: Ipv4Addr, server: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port");
        let way = Self { address: listener.local_addr().expect("its address"), is_over: Arc::default() };
        let (is_over, server) = (Arc::clone(&way.is_over), server.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) {
                    pipe(&client, &server);
                    pipe(&server, &client);
                }
            }
        });
        way
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Who waits for clients sees it at the next one.
        drop(TcpStream::connect(self.address));
    }
}

fn pipe(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut to));
        drop(to.shutdown(Shutdown::Write));
    });
}
