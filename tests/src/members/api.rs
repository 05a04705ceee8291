//! A cluster's API as its administrator has it, over a plain connection to a way there in this process: a kubectl costs twenty times as much,
//! and what stands in for Karmada's controllers asks all the time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::kubernetes_proxy::behind;
use crate::proxy::Proxy;

/// Longer than a server that runs takes for anything here.
const LIMIT: Duration = Duration::from_secs(20);

/// The kinds of bodies.
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const JSON: &str = "application/json";

/// It ends when it is dropped.
pub(super) struct Api(Proxy);

impl Api {
    /// Of the cluster that this kubeconfig is for.
    pub(super) fn new(kubeconfig: &str) -> Self {
        Self(Proxy::new(behind(kubeconfig), None))
    }

    /// The code and the body of the answer.
    pub(super) fn ask(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<(u16, Value), String> {
        let (kind, text) = body.map(|(kind, value)| (kind, value.to_string())).unwrap_or((JSON, String::new()));
        let words = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.0.address)?;
            stream.set_read_timeout(Some(LIMIT))?;
            // 1.0: the answer ends with the connection, and is in one piece.
            let length = text.len();
            write!(stream, "{method} {path} HTTP/1.0\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{text}")?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        let words = words().map_err(|e| format!("{method} {path}: {e}"))?;
        let code = words.split_whitespace().nth(1).and_then(|c| c.parse().ok());
        let (Some(code), Some((_, body))) = (code, words.split_once("\r\n\r\n")) else { return Err(format!("{method} {path}: {words:?}")) };
        Ok((code, serde_json::from_str(body).unwrap_or_else(|_| body.into())))
    }

    /// What is there; none if nothing is.
    pub(super) fn get(&self, path: &str) -> Result<Option<Value>, String> {
        match self.ask("GET", path, None)? {
            (200, value) => Ok(Some(value)),
            (404, _) => Ok(None),
            (code, value) => Err(format!("GET {path}: {code} {value}")),
        }
    }

    /// The items of a list.
    pub(super) fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let list = self.get(path)?;
        Ok(list.and_then(|l| l["items"].as_array().cloned()).unwrap_or_default())
    }

    /// Writes; whether what it is about is there.
    pub(super) fn write(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<bool, String> {
        match self.ask(method, path, Some((kind, body)))? {
            (200..=299, _) => Ok(true),
            (404, _) => Ok(false),
            (code, value) => Err(format!("{method} {path}: {code} {value}")),
        }
    }
}
