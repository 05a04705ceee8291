//! A server in this process that keeps one state and one lock, and does to each request what the test says, faults included. It keeps what
//! was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use karmaform_http_state::{HttpBackend, Limits};
use karmaform_model::{LockInfo, Object, OutputState, Snapshot, Value};

/// Far longer than a server in this process takes, and short enough to wait for when it hangs.
pub(crate) const LIMITS: Limits =
    Limits { connect: Duration::from_secs(10), one_try: Duration::from_secs(20), megabyte: Duration::from_secs(10) };

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

    /// Method and path: `POST /state`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// What is done to a request.
pub(crate) enum Act {
    /// What it asks for.
    Do,
    /// What it asks for, and no answer.
    DoAndHangUp,
    /// What it asks for, and half of the answer.
    DoAndCut,
    /// An answer with this status, these headers, and this body; nothing is done.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// What it asks for, and this answer.
    DoAndAnswer(u16),
    /// Nothing, for longer than anyone waits.
    Hang,
    /// The connection ends without an answer.
    HangUp,
}

/// An answer without anything to it.
pub(crate) fn answer(status: u16) -> Act {
    Act::Answer(status, vec![], String::new())
}

/// What is kept.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) state: Option<Vec<u8>>,
    /// The content of the lock.
    pub(crate) lock: Option<Vec<u8>>,
    /// The status of a lock that is held.
    pub(crate) held: u16,
    pub(crate) seen: Vec<Seen>,
}

/// The server.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    kept: Arc<Mutex<Kept>>,
}

impl Server {
    /// One that does what it is asked.
    pub(crate) fn good() -> Self {
        Self::new(|_, _| Act::Do)
    }

    /// `act` is given the number of the request, from 0 on, and the request.
    pub(crate) fn new(act: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::on("http", act, Some)
    }

    /// With TLS, after whatever `wrap` does with a connection.
    pub(crate) fn on<S: Read + Write>(
        scheme: &str,
        act: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> Option<S> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Kept { held: 423, ..Kept::default() }));
        let (shared, act, wrap) = (Arc::clone(&kept), Arc::new(act), Arc::new(wrap));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, kept, wrap) = (Arc::clone(&act), Arc::clone(&shared), Arc::clone(&wrap));
                thread::spawn(move || wrap(stream).and_then(|s| serve(s, &*act, &kept)));
            }
        });
        Self { endpoint, kept }
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// What was asked so far, as methods and paths.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept().seen.iter().map(Seen::line).collect()
    }

    /// The requests with this method so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.kept().seen.iter().filter(|s| s.method == method).count()
    }

    /// The arguments for it: with locks, a user, and no pauses.
    pub(crate) fn arguments(&self) -> Object {
        let url = |path: &str| Value::from(format!("{}{path}", self.endpoint).as_str());
        let mut arguments = Object::new();
        for (name, value) in [
            ("address", url("/state")),
            ("lock_address", url("/lock")),
            ("unlock_address", url("/lock")),
            ("username", Value::from("me")),
            ("password", Value::from("hunter2")),
            ("retry_wait_min", Value::from(0i64)),
            ("retry_wait_max", Value::from(1i64)),
        ] {
            arguments.insert(name.to_owned(), value);
        }
        arguments
    }

    pub(crate) fn open(&self) -> HttpBackend {
        open(&self.arguments())
    }
}

/// Opens a backend with nothing around it.
pub(crate) fn open(arguments: &Object) -> HttpBackend {
    HttpBackend::open_within(arguments, &BTreeMap::new(), LIMITS).unwrap_or_else(|d| panic!("{}: {}", d.summary, d.detail))
}

/// A state with this serial, and something in it.
pub(crate) fn state(serial: u64, content: &str) -> Snapshot {
    let mut state = Snapshot { tool_version: "0.1.0".into(), lineage: "l".into(), serial, ..Snapshot::default() };
    state.outputs.insert("content".into(), OutputState { value: Value::from(content), sensitive: false });
    state
}

/// A run.
pub(crate) fn who(id: &str) -> LockInfo {
    LockInfo {
        id: id.into(),
        operation: "OperationTypeApply".into(),
        info: String::new(),
        who: "me@here".into(),
        version: "0.1.0".into(),
        created: "2026-01-02T03:04:05Z".into(),
        path: "somewhere".into(),
        lease: None,
        renewed: None,
    }
}

fn serve(stream: impl Read + Write, act: &dyn Fn(usize, &Seen) -> Act, kept: &Mutex<Kept>) -> Option<()> {
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
        kept.seen.push(seen.clone());
        kept.seen.len() - 1
    };
    let done = || kept.lock().unwrap().done(&seen);
    let (status, headers, body, sent) = match act(number, &seen) {
        Act::Do => {
            let (status, body) = done();
            (status, vec![], body, usize::MAX)
        }
        Act::DoAndCut => {
            let (status, body) = done();
            let half = body.len() / 2;
            (status, vec![], body, half)
        }
        Act::DoAndAnswer(status) => {
            done();
            (status, vec![], Vec::new(), 0)
        }
        Act::DoAndHangUp => {
            done();
            return None;
        }
        Act::Answer(status, headers, body) => (status, headers, body.into_bytes(), usize::MAX),
        Act::Hang => {
            thread::sleep(Duration::from_secs(60));
            return None;
        }
        Act::HangUp => return None,
    };
    let stream = reader.get_mut();
    let headers: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    write!(stream, "HTTP/1.1 {status} x\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()).ok()?;
    stream.write_all(&body[..sent.min(body.len())]).ok()?;
    stream.flush().ok()
}

impl Kept {
    /// What a plain server does: it keeps whatever it is given.
    fn done(&mut self, seen: &Seen) -> (u16, Vec<u8>) {
        let path = seen.path.split('?').next().unwrap_or_default();
        match (seen.method.as_str(), path) {
            ("GET", "/state") => self.state.clone().map_or((404, Vec::new()), |state| (200, state)),
            ("POST", "/state") => {
                self.state = Some(seen.body.clone());
                (200, Vec::new())
            }
            ("LOCK", "/lock") => match &self.lock {
                Some(lock) => (self.held, lock.clone()),
                None => {
                    self.lock = Some(seen.body.clone());
                    (200, Vec::new())
                }
            },
            // It releases whatever there is, as many do.
            ("UNLOCK", "/lock") => match self.lock.take() {
                Some(_) => (200, Vec::new()),
                None => (409, Vec::new()),
            },
            _ => (405, Vec::new()),
        }
    }
}
