//! Somebody who is sent something, on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// A webhook on loopback: what it is sent, and what it answers.
pub(super) struct Webhook {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    /// The status of its answers; what is refused is not kept.
    pub(super) status: Arc<AtomicU16>,
}

/// What it was sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Method and path.
    pub(super) line: String,
    /// Headers in small letters.
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

impl Webhook {
    /// One that answers with nothing.
    pub(super) fn start() -> Self {
        Self::answering(String::new())
    }

    /// One that answers with this.
    pub(super) fn answering(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (requests, status) = (Arc::<Mutex<Vec<Request>>>::default(), Arc::new(AtomicU16::new(200)));
        let (told, answers) = (Arc::clone(&requests), Arc::clone(&status));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let (mut line, mut length, mut lines) = (String::new(), 0, Vec::new());
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    let header = line.to_ascii_lowercase();
                    length = header.strip_prefix("content-length:").and_then(|v| v.trim().parse().ok()).unwrap_or(length);
                    // Only the first keeps its letters: it has the path.
                    lines.push(if lines.is_empty() { line.trim().to_owned() } else { header.trim().to_owned() });
                    line.clear();
                }
                let mut body = vec![0; length];
                let status = answers.load(Ordering::SeqCst);
                if reader.read_exact(&mut body).is_ok() && status == 200 && !lines.is_empty() {
                    let first = lines.remove(0);
                    let words: Vec<&str> = first.split(' ').take(2).collect();
                    let request = Request { line: words.join(" "), headers: lines, body: String::from_utf8_lossy(&body).into_owned() };
                    told.lock().expect("the list").push(request);
                }
                let length = answer.len();
                let _ = write!(reader.get_mut(), "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
            }
        });
        Self { port, requests, status }
    }

    /// What it was sent since this was asked last.
    pub(super) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().expect("the list"))
    }

    /// The same, the bodies alone.
    pub(super) fn told(&self) -> Vec<String> {
        self.requests().into_iter().map(|r| r.body).collect()
    }
}
