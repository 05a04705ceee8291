//! An API server for tests, which answers as it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use karmaform_model::{BoxFuture, Connections, Diagnostic, Object};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{Client, Inner, Needed};
use crate::connection::Options;
use crate::values::object;

/// What was asked, each "GET /api/v1".
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

struct NoConnections {
    only_looks: bool,
}

impl Connections for NoConnections {
    fn only_looks(&self) -> bool {
        self.only_looks
    }

    fn forward<'a>(&'a self, _: &'a Object, _: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async { Err(Diagnostic::error("None", "None.")) })
    }
}

/// A client of a server that gives these answers, by method and path.
pub(crate) async fn client(answer: impl Fn(&str, &str) -> (u16, Json) + Send + Sync + 'static) -> (Client, Seen) {
    client_of(answer, false).await
}

/// The same in a run that only looks.
pub(crate) async fn looking(answer: impl Fn(&str, &str) -> (u16, Json) + Send + Sync + 'static) -> (Client, Seen) {
    client_of(answer, true).await
}

async fn client_of(answer: impl Fn(&str, &str) -> (u16, Json) + Send + Sync + 'static, only_looks: bool) -> (Client, Seen) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (seen, answer) = (Seen::default(), Arc::new(answer));
    let list = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (list, answer) = (Arc::clone(&list), Arc::clone(&answer));
            tokio::spawn(async move { serve(stream, &list, &*answer).await });
        }
    });
    let options = Options::new(&object([("address", address.as_str().into())])).ok().unwrap();
    (Client(Arc::new(Inner::open(options, Arc::new(NoConnections { only_looks })).await.ok().unwrap()), Needed::Yes), seen)
}

/// Answers all that comes on a connection.
async fn serve(mut stream: TcpStream, seen: &Seen, answer: &(impl Fn(&str, &str) -> (u16, Json) + Sync)) -> Option<()> {
    let (mut kept, mut chunk) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let text = String::from_utf8_lossy(&kept).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.and_then(|l| l.parse().ok()).unwrap_or(0) {
                let mut words = head.split_whitespace();
                let (method, path) = (words.next()?, words.next()?.split('?').next()?);
                seen.lock().unwrap().push(format!("{method} {path}"));
                let (status, body) = answer(method, path);
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
                kept.clear();
                continue;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => kept.extend_from_slice(chunk.get(..read)?),
            _ => return None,
        }
    }
}

/// There is no such object.
pub(crate) fn missing() -> (u16, Json) {
    refused(404, "not found")
}

/// A refusal that is about an object.
pub(crate) fn refused(code: u16, message: &str) -> (u16, Json) {
    (code, json!({ "kind": "Status", "status": "Failure", "code": code, "message": message, "details": { "name": "x" } }))
}

/// Kinds of a group's version: kind, plural, and whether it lives in namespaces.
pub(crate) fn group(kinds: &[(&str, &str, bool)]) -> (u16, Json) {
    let one = |(kind, plural, namespaced): &(&str, &str, bool)| json!({ "kind": kind, "name": plural, "namespaced": namespaced });
    (200, json!({ "resources": kinds.iter().map(one).collect::<Vec<_>>() }))
}
