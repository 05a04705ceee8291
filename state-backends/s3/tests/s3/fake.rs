//! A server in this process that does to each request what the test says, faults included. It keeps what was asked.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request that came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// A header; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }
}

/// What is done to a request.
pub(crate) enum Act {
    /// An answer with this status, these headers, and this body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Nothing, for longer than anyone waits.
    Hang,
    /// The connection ends without an answer.
    Hangup,
    /// An answer that ends in the midst of its body.
    Cut,
    /// An answer whose body comes in so many pieces, with a pause before each; after them nothing, if more was announced.
    Drip { pieces: usize, announced: usize, pause: Duration },
}

/// The server.
pub(crate) struct Fake {
    /// Its address.
    pub(crate) endpoint: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// An S3 error of this code.
pub(crate) fn error(status: u16, code: &str) -> Act {
    Act::Answer(
        status,
        vec![],
        format!(
            "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>Words of\nthe store.</Message><Resource>/b</Resource></Error>"
        ),
    )
}

/// A good answer with this ETag.
pub(crate) fn tagged(tag: &str, body: &str) -> Act {
    Act::Answer(200, vec![("ETag", tag.to_owned())], body.to_owned())
}

impl Fake {
    /// Starts one. `act` is given the number of the request, from 0 on, and the request.
    pub(crate) fn new(act: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::on(listener, "http", act, Some)
    }

    /// One with TLS, and the certificate it shows, which it signed itself.
    pub(crate) fn secure(act: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap());
        let wrap = move |stream| Some(rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&config)).ok()?, stream));
        (Self::on(listener, "https", act, wrap), own.cert.pem())
    }

    fn on<S: Read + Write>(
        listener: TcpListener,
        scheme: &str,
        act: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> Option<S> + Send + Sync + 'static,
    ) -> Self {
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let wrap = Arc::new(wrap);
        let (seen, act) = (Arc::new(Mutex::new(Vec::new())), Arc::new(act));
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, kept, wrap) = (Arc::clone(&act), Arc::clone(&kept), Arc::clone(&wrap));
                thread::spawn(move || wrap(stream).and_then(|s| serve(s, &*act, &kept)));
            }
        });
        Self { endpoint, seen }
    }

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: impl Read + Write, act: &dyn Fn(usize, &Seen) -> Act, kept: &Mutex<Vec<Seen>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut seen = Seen { method: words.next()?, path: words.next()?, ..Seen::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        seen.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    seen.body = vec![0; seen.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut seen.body).ok()?;
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(seen.clone());
        kept.len() - 1
    };
    let stream = reader.get_mut();
    match act(number, &seen) {
        Act::Answer(status, headers, body) => {
            let headers: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
            // The length that a body would have is announced with none as well.
            let length = body.len();
            let body = if seen.method == "HEAD" { String::new() } else { body };
            write!(stream, "HTTP/1.1 {status} x\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}").ok()?;
        }
        Act::Hang => thread::sleep(Duration::from_secs(30)),
        Act::Hangup => {}
        Act::Drip { pieces, announced, pause } => {
            write!(stream, "HTTP/1.1 200 x\r\nETag: \"1\"\r\nContent-Length: {announced}\r\n\r\n").ok()?;
            for _ in 0..pieces {
                thread::sleep(pause);
                write!(stream, "x").and_then(|()| stream.flush()).ok()?;
            }
            if announced > pieces {
                thread::sleep(Duration::from_secs(30));
            }
        }
        Act::Cut => write!(stream, "HTTP/1.1 200 x\r\nETag: \"1\"\r\nContent-Length: 1000\r\n\r\nhalf").ok()?,
    }
    stream.flush().ok()
}
