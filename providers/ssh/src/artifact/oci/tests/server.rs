//! A registry on loopback in a few lines: it says what it was asked, and wants passwords and tokens as it is told to.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::images::{Image, Part};

/// What it wants before it gives anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Nothing,
    /// This password.
    Basic(&'static str),
    /// A token, for this password if there is one. It is good for so many requests.
    Token(Option<&'static str>, usize),
    /// Fewer requests.
    Patience,
}

pub(super) struct Server {
    pub(super) address: String,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// By their paths below `/v2/`.
    things: BTreeMap<String, Part>,
    wants: Wants,
    /// Where blobs are instead.
    elsewhere: Option<String>,
    /// Where tokens are.
    realm: String,
    used: usize,
    asked: Vec<String>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let realm = format!("http://{address}/token");
        let inner = Inner { things: BTreeMap::new(), wants: Wants::Nothing, elsewhere: None, realm, used: 0, asked: Vec::new() };
        let inner = Arc::new(Mutex::new(inner));
        let shared = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&mut stream.unwrap(), &shared));
            }
        });
        Self { address, inner }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wants(&self, wants: Wants) {
        self.inner().wants = wants;
    }

    /// Blobs are sent for to another server.
    pub(super) fn sends_on_to(&self, other: &Self) {
        self.inner().elsewhere = Some(format!("http://{}", other.address));
    }

    pub(super) fn put(&self, path: &str, part: Part) {
        self.inner().things.insert(path.to_owned(), part);
    }

    /// Puts an image there, by its digest.
    pub(super) fn push(&self, repository: &str, image: &Image) {
        for blob in &image.blobs {
            self.put(&format!("{repository}/blobs/sha256:{}", blob.sum()), blob.clone());
        }
        self.put(&format!("{repository}/manifests/sha256:{}", image.manifest.sum()), image.manifest.clone());
    }

    /// What it was asked since the last time: the last part of the path without "sha256:" and most of a sum, and what of a log-in came along.
    pub(super) fn asked(&self) -> String {
        std::mem::take(&mut self.inner().asked).join(" ")
    }
}

fn serve(stream: &mut TcpStream, shared: &Mutex<Inner>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
        // the beginning of TLS, which is answered as Go's servers do
        if head == [0x16] {
            let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
            return;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let authorization =
        head.lines().find_map(|l| l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case("authorization")).map(|(_, v)| v));
    let mut inner = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, headers, body) = answer(&mut inner, &path, authorization);
    drop(inner);
    let length = body.len();
    let _ = stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n").as_bytes());
    let _ = stream.write_all(&body);
}

fn answer(inner: &mut Inner, path: &str, authorization: Option<&str>) -> (u16, String, Vec<u8>) {
    let word = path.rsplit('/').next().unwrap_or_default();
    let word = word.split('?').next().unwrap_or_default().trim_start_matches("sha256:");
    let login = authorization.and_then(|a| a.split(' ').next()).map(|scheme| format!("+{scheme}")).unwrap_or_default();
    inner.asked.push(format!("{}{login}", &word[..word.len().min(6)]));
    let is_basic = |password: &str| authorization == Some(&format!("Basic {password}"));
    if let Some(query) = path.strip_prefix("/token?") {
        let good = query.contains("scope=repository%3Aa%2Fb%3Apull") && query.contains("service=test");
        return match &inner.wants {
            Wants::Token(Some(password), _) if !is_basic(password) => (401, String::new(), b"hunter2".to_vec()),
            Wants::Token(..) if good => {
                inner.used = 0;
                (200, String::new(), br#"{"access_token": "hunter3"}"#.to_vec())
            }
            _ => (400, String::new(), Vec::new()),
        };
    }
    if inner.wants == Wants::Patience {
        return (429, "Retry-After: 3\r\n".to_owned(), Vec::new());
    }
    let challenge = match &inner.wants {
        Wants::Basic(password) if !is_basic(password) => Some("Basic realm=\"test\"".to_owned()),
        Wants::Token(_, uses) if authorization != Some("Bearer hunter3") || inner.used >= *uses => {
            Some(format!("Bearer realm=\"{}\",service=\"test\"", inner.realm))
        }
        _ => None,
    };
    if let Some(challenge) = challenge {
        return (401, format!("WWW-Authenticate: {challenge}\r\n"), Vec::new());
    }
    inner.used += 1;
    let key = path.trim_start_matches("/v2/");
    if let Some(elsewhere) = inner.elsewhere.as_ref().filter(|_| key.contains("/blobs/")) {
        return (307, format!("Location: {elsewhere}{path}?signature=hunter2\r\n"), Vec::new());
    }
    match inner.things.get(key.split('?').next().unwrap_or_default()) {
        Some(part) => (200, format!("Content-Type: {}\r\n", part.kind), part.bytes.clone()),
        None => (404, String::new(), Vec::new()),
    }
}
