//! A way through another host: a session there, a channel from it to the target, and a thread that moves the bytes.

use std::os::unix::net::UnixStream;
use std::thread;

use karmaform_model::Diagnostic;

use super::connect::{Deadline, Link, connect_by};
use super::pipe::{Local, Pipe};
use super::wire::SILENCE;
use crate::connection::Options;
use crate::failure;

/// A stream to `address:port` as seen from the bastion. The thread behind it ends when the stream is dropped.
pub(super) fn through(bastion: &Options, address: &str, port: u16, deadline: Deadline) -> Result<UnixStream, Diagnostic> {
    let place = bastion.place();
    let mut link = connect_by(bastion, deadline).map_err(|e| failure::at_bastion(e, &place))?;
    let session = link.wire.session.clone();
    let channel = match link.wire.finish(deadline.left(), || session.channel_direct_tcpip(address, port, None)) {
        Err(lost) if deadline.is_over() => return Err(failure::behind_bastion(&place, address, port, &lost.0)),
        Err(lost) => return Err(failure::at_bastion(failure::lost(&place, &lost.0), &place)),
        Ok(Err(e)) => return Err(failure::behind_bastion(&place, address, port, e.message())),
        Ok(Ok(channel)) => channel,
    };
    let broken = |e: std::io::Error| failure::handshake(&place, &e.to_string());
    let (ours, theirs) = UnixStream::pair().map_err(broken)?;
    theirs.set_nonblocking(true).map_err(broken)?;
    let pipe = Pipe::new(channel, Local::Unix(theirs));
    thread::Builder::new().name("ssh-bastion".to_owned()).spawn(move || pump(link, pipe)).map_err(broken)?;
    Ok(ours)
}

/// Ends when either side does; dropping the pipe closes the stream, which the session over it sees as a lost connection.
fn pump(mut link: Link, mut pipe: Pipe) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match pipe.turn(&mut link.wire, &mut buffer) {
            Ok(_) if pipe.is_done() || pipe.is_left() => return,
            Ok(true) => continue,
            Ok(false) => {}
            Err(_) => return,
        }
        let mut watch: Vec<_> = pipe.watch().into_iter().collect();
        if link.wire.wait(&mut watch, false, SILENCE).is_err() {
            return;
        }
    }
}
