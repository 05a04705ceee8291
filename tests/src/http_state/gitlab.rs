//! A server in this process that keeps states as GitLab does: basic authentication, each serial once, a lock that is checked on every write,
//! and its answers. What it does was read in GitLab's `lib/api/terraform/state.rb` and `app/services/terraform/remote_state_handler.rb`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Object, Value};
use serde_json::{Value as Json, json};

use crate::proxy::{Behind, Proxy};

/// Who may do everything. The same as the suite's run, because GitLab tells the holder by the name of its user.
pub(crate) const USER: &str = "me@here";
/// Its token.
pub(crate) const TOKEN: &str = "glpat-hunter2";
/// Its clock stands still.
const NOW: &str = "2026-01-02T03:04:05Z";
/// Where its states are.
const PROJECT: &str = "/api/v4/projects/42/terraform/state";

/// It runs until the tests end.
#[derive(Clone)]
pub(crate) struct GitLab {
    /// `127.0.0.1:PORT`
    address: String,
    states: Arc<Mutex<BTreeMap<String, Kept>>>,
}

/// One state.
#[derive(Default)]
pub(crate) struct Kept {
    /// What was written last.
    pub(crate) file: Option<String>,
    /// The id of the lock.
    pub(crate) lock: Option<String>,
    serials: BTreeSet<u64>,
}

type Answer = (u16, Vec<u8>);

impl GitLab {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let states = Arc::default();
        let server = Self { address, states };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    /// What it keeps, by name.
    pub(crate) fn states(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}{PROJECT}/{name}", self.address)
    }

    /// What the block says, as GitLab's documentation tells people to write it.
    pub(crate) fn backend(&self, name: &str) -> String {
        let url = self.url(name);
        format!(
            "  backend \"http\" {{\n    address        = \"{url}\"\n    lock_address   = \"{url}/lock\"\n    unlock_address = \"{url}/lock\"\n    \
             lock_method    = \"POST\"\n    unlock_method  = \"DELETE\"\n    username       = \"{USER}\"\n    password       = \"{TOKEN}\"\n    \
             retry_wait_min = 0\n    retry_wait_max = 1\n  }}\n"
        )
    }

    /// The same past the command.
    pub(crate) fn open(&self, name: &str) -> karmaform_http_state::HttpBackend {
        let url = self.url(name);
        let lock = format!("{url}/lock");
        let texts = [
            ("address", url.as_str()),
            ("lock_address", &lock),
            ("unlock_address", &lock),
            ("lock_method", "POST"),
            ("unlock_method", "DELETE"),
            ("username", USER),
            ("password", TOKEN),
        ];
        let arguments: Object = texts.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        karmaform_http_state::HttpBackend::open(&arguments, &BTreeMap::new()).expect("a backend")
    }

    /// The same server, over a line on which things go wrong.
    pub(crate) fn through_proxy(&self) -> (Self, Proxy) {
        let (host, port) = self.address.rsplit_once(':').expect("a port");
        let behind = Behind { host: host.to_owned(), port: port.parse().expect("a port"), tls: None, refusal };
        let proxy = Proxy::new(behind, None);
        (Self { address: proxy.address.to_string(), ..self.clone() }, proxy)
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let (mut length, mut login) = (0, String::new());
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => value.trim().clone_into(&mut login),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let is_known = login == format!("Basic {}", STANDARD.encode(format!("{USER}:{TOKEN}")));
        let (status, text) = if is_known { self.answer(&method, &path, &body) } else { says(401, "401 Unauthorized") };
        let stream = reader.get_mut();
        let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", text.len()) };
        write!(stream, "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{length}Connection: close\r\n\r\n").ok()?;
        stream.write_all(&text).and_then(|()| stream.flush()).ok()
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some(name) = path.strip_prefix(PROJECT).and_then(|rest| rest.strip_prefix('/')) else {
            return says(404, "404 Project Not Found");
        };
        let (name, is_lock) = name.strip_suffix("/lock").map_or((name, false), |name| (name, true));
        // Its parameters come from the query and from a body alike.
        let sent: Json = serde_json::from_slice(body).unwrap_or_default();
        let id = query.strip_prefix("ID=").or_else(|| sent.get("ID").and_then(Json::as_str)).map(str::to_owned);
        let mut states = self.states();
        match (method, is_lock) {
            ("GET", false) => match states.get(name) {
                None => says(404, "404 Not Found"),
                Some(kept) => kept.file.clone().map_or((204, Vec::new()), |file| (200, file.into_bytes())),
            },
            ("POST", false) => states.entry(name.to_owned()).or_default().write(body, query.strip_prefix("ID=")),
            ("POST", true) => {
                let names = ["ID", "Operation", "Info", "Who", "Version", "Created", "Path"];
                if let Some(missing) = names.iter().find(|name| sent.get(**name).is_none_or(|v| !v.is_string())) {
                    return (400, json!({ "error": format!("{missing} is missing") }).to_string().into_bytes());
                }
                let kept = states.entry(name.to_owned()).or_default();
                let status = if kept.lock.is_some() { 409 } else { 200 };
                let holder = kept.lock.get_or_insert_with(|| id.unwrap_or_default());
                // Only these three are the holder's; the rest is what whoever asks has just sent.
                let mut lock = sent.clone();
                lock["ID"] = json!(holder);
                lock["Who"] = json!(USER);
                lock["Created"] = json!(NOW);
                (status, lock.to_string().into_bytes())
            }
            ("DELETE", true) => {
                let kept = states.entry(name.to_owned()).or_default();
                if id.is_some() && id != kept.lock {
                    return (409, b"null".to_vec());
                }
                kept.lock = None;
                (200, b"null".to_vec())
            }
            _ => says(405, "405 Not Allowed"),
        }
    }
}

impl Kept {
    fn write(&mut self, body: &[u8], id: Option<&str>) -> Answer {
        if body.is_empty() {
            return (204, Vec::new());
        }
        let Ok(json) = serde_json::from_slice::<Json>(body) else { return says(422, "422 Unprocessable Entity - invalid JSON") };
        let Some(serial) = json.get("serial").and_then(Json::as_u64) else {
            return says(422, "422 Unprocessable Entity - No serial in payload");
        };
        // Nobody catches what is raised for another lock than the one that is held.
        if self.lock.as_deref() != id {
            return says(500, "500 Internal Server Error");
        }
        if !self.serials.insert(serial) {
            return says(422, "PG::UniqueViolation");
        }
        self.file = Some(String::from_utf8_lossy(body).into_owned());
        (200, Vec::new())
    }
}

fn says(status: u16, message: &str) -> Answer {
    (status, json!({ "message": message }).to_string().into_bytes())
}

/// As its front door says it.
fn refusal(code: u16) -> (String, Vec<(hyper::header::HeaderName, &'static str)>) {
    let mut headers = vec![(hyper::header::CONTENT_TYPE, "application/json")];
    headers.extend((code == 503).then_some((hyper::header::RETRY_AFTER, "1")));
    (json!({ "message": format!("{code} as told") }).to_string(), headers)
}
