//! Members that say over etcd's own protocol, on loopback, what a test has them say: what a real etcd says on a bad day only.
//!
//! They keep nothing and decide nothing. Of each message they fill in what is read here. Source: `rpc.proto` in etcd's `api/etcdserverpb`.

mod wire;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Request, Response, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use karmaform_etcd::Cluster;
use karmaform_model::{AnyClient, BoxFuture, Connections, Diagnostic, Driver, GateAnswer, Object, Value};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use wire::{bytes, number};

/// gRPC's numbers for answers: what is wrong with a question, what is full, what can't be done as things are, and who is away.
pub(crate) const INVALID: i32 = 3;
pub(crate) const EXHAUSTED: i32 = 8;
pub(crate) const PRECONDITION: i32 = 9;

/// A member as the list of a fake one has it.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) learner: bool,
    /// Where others reach it.
    pub(crate) peer: String,
    /// Where clients reach it; empty: it never started.
    pub(crate) client: String,
}

/// A key as a fake member has it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) lease: u64,
}

/// What a fake member says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Says {
    pub(crate) id: u64,
    pub(crate) leader: u64,
    pub(crate) revision: u64,
    pub(crate) version: String,
    /// The version of its data; empty before 3.6.
    pub(crate) storage: String,
    /// Its database, in bytes.
    pub(crate) size: u64,
    /// What it may grow to, in bytes.
    pub(crate) quota: u64,
    /// Of a member, its id and etcd's number for the kind: 1 is NOSPACE, 2 is CORRUPT.
    pub(crate) alarms: Vec<(u64, u64)>,
    /// Whether alarms are on again at once after they were ended.
    pub(crate) alarms_stay: bool,
    pub(crate) list: Vec<Listed>,
    pub(crate) hash: u64,
    /// What it streams as its snapshot.
    pub(crate) snapshot: Vec<u8>,
    pub(crate) keys: Vec<Key>,
    /// Users that somebody made.
    pub(crate) users: Vec<String>,
    /// Whether the conditions of transactions hold.
    pub(crate) changed: bool,
    /// What it refuses, with gRPC's number and why.
    pub(crate) refuses: Vec<(&'static str, i32, &'static str)>,
    /// When it is asked for these its connection breaks, and nobody hears what became of it.
    pub(crate) breaks: Vec<&'static str>,
    /// What it was asked to do.
    pub(crate) asked: Vec<String>,
}

impl Says {
    fn answer(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>, (i32, &'static str)> {
        // Alarms are looked at and ended by one method.
        let method = if method == "Alarm" && request.starts_with(&number(1, 2)) { "Disarm" } else { method };
        self.asked.push(method.to_owned());
        if let Some((_, code, why)) = self.refuses.iter().find(|(refused, ..)| *refused == method) {
            return Err((*code, why));
        }
        let header = bytes(1, [number(1, 9), number(2, self.id), number(3, self.revision), number(4, 2)].concat());
        let rest = match method {
            "Status" => self.status(),
            "Alarm" => self.alarms.iter().flat_map(|(id, kind)| bytes(2, [number(1, *id), number(2, *kind)].concat())).collect(),
            "MemberList" => self.list.iter().flat_map(|listed| bytes(2, member(listed))).collect(),
            "Range" => self.range(request),
            "Txn" => number(2, u64::from(!self.changed)),
            "HashKV" => [number(2, self.hash), number(3, 1)].concat(),
            "Snapshot" => bytes(3, &self.snapshot),
            "UserList" => self.users.iter().flat_map(|user| bytes(2, user)).collect(),
            "LeaseGrant" => [number(2, 7), number(3, 60)].concat(),
            "Disarm" if !self.alarms_stay => {
                self.alarms.clear();
                Vec::new()
            }
            _ => Vec::new(),
        };
        Ok([header, rest].concat())
    }

    fn status(&self) -> Vec<u8> {
        [
            bytes(2, &self.version),
            number(3, self.size),
            number(4, self.leader),
            number(5, 100),
            number(6, 2),
            number(7, 100),
            number(9, self.size),
            bytes(11, &self.storage),
            number(12, self.quota),
        ]
        .concat()
    }

    fn range(&self, request: &[u8]) -> Vec<u8> {
        let (first, end) = wire::texts(request);
        let is_asked = |key: &&Key| end.as_ref().map_or(key.key == first, |end| key.key >= first && key.key < *end);
        let found: Vec<&Key> = self.keys.iter().filter(is_asked).collect();
        let kv =
            |key: &&Key| bytes(2, [bytes(1, &key.key), number(3, 3), number(4, 1), bytes(5, &key.value), number(6, key.lease)].concat());
        [found.iter().flat_map(kv).collect(), number(4, found.len() as u64)].concat()
    }
}

fn member(listed: &Listed) -> Vec<u8> {
    let clients = if listed.client.is_empty() { Vec::new() } else { bytes(4, &listed.client) };
    [number(1, listed.id), bytes(2, &listed.name), bytes(3, &listed.peer), clients, number(5, u64::from(listed.learner))].concat()
}

/// One that listens as long as the test runs.
pub(crate) struct Member {
    pub(crate) address: SocketAddr,
    says: Arc<Mutex<Says>>,
}

impl Member {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, says) = (listener.local_addr().unwrap(), Arc::<Mutex<Says>>::default());
        let served = Arc::clone(&says);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (says, broken) = (Arc::clone(&served), Arc::<Notify>::default());
                let breaks = Arc::clone(&broken);
                let service = service_fn(move |request| answered(Arc::clone(&says), Arc::clone(&breaks), request));
                let serving = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    tokio::select! {
                        _ = serving => {}
                        () = broken.notified() => {}
                    }
                });
            }
        });
        Self { address, says }
    }

    /// What it says, to be changed.
    pub(crate) fn says(&self) -> MutexGuard<'_, Says> {
        self.says.lock().unwrap()
    }
}

async fn answered(
    says: Arc<Mutex<Says>>,
    broken: Arc<Notify>,
    request: Request<Incoming>,
) -> Result<Response<impl Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let question = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if says.lock().unwrap().breaks.contains(&method.as_str()) {
        broken.notify_one();
        std::future::pending::<()>().await;
    }
    let answer = says.lock().unwrap().answer(&method, question.get(5..).unwrap_or_default());
    let (messages, code, why) = match answer {
        Ok(message) => (vec![message], 0, ""),
        Err((code, why)) => (Vec::new(), code, why),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code));
    trailers.insert("grpc-message", HeaderValue::from_static(why));
    let body = Full::new(wire::framed(&messages)).with_trailers(async { Some(Ok(trailers)) });
    Ok(Response::builder().header("content-type", "application/grpc").body(body).unwrap())
}

/// A cluster of fake members, which is well until a test has them say otherwise. The first one leads.
pub(crate) struct Fakes(pub(crate) Vec<Member>);

/// By which the provider asks them.
pub(crate) struct Asking {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) client: AnyClient,
}

impl Asking {
    /// One try of an operation.
    pub(crate) async fn operate(&self, name: &str, arguments: &[(&str, Value)]) -> Result<GateAnswer, Diagnostic> {
        let arguments: Object = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.driver.operate(&self.client, name, &arguments).await
    }
}

impl Fakes {
    pub(crate) async fn start(members: usize) -> Self {
        let mut all = Vec::new();
        for _ in 0..members {
            all.push(Member::start().await);
        }
        let listed = |(member, id): (&Member, u64)| Listed {
            id,
            name: name(id),
            learner: false,
            peer: format!("http://{}:2380", name(id)),
            client: format!("http://{}", member.address),
        };
        let list: Vec<Listed> = all.iter().zip(1..).map(listed).collect();
        for (member, id) in all.iter().zip(1..) {
            let says = Says { id, leader: 1, revision: 7, version: "3.5.30".into(), size: 1 << 20, quota: 1 << 30, ..Says::default() };
            *member.says() = Says { list: list.clone(), hash: 5, ..says };
        }
        Self(all)
    }

    /// Has all of them say something else.
    pub(crate) fn all(&self, change: impl Fn(&mut Says)) {
        self.0.iter().for_each(|member| change(&mut member.says()));
    }

    /// All that they were asked, one after the other.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.iter().flat_map(|member| member.says().asked.clone()).collect()
    }

    /// A connection value by their names, `a` to `c`.
    pub(crate) fn connection(&self) -> Object {
        connection(self.0.iter().map(|member| member.address.port()))
    }

    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(&self.connection(), Arc::new(Straight { only_looks: false })).unwrap()
    }

    pub(crate) async fn asking(&self) -> Asking {
        asking(&self.connection()).await
    }
}

fn name(id: u64) -> String {
    char::from(b'a' + u8::try_from(id - 1).unwrap()).to_string()
}

/// Members on these ports.
pub(crate) fn connection(ports: impl IntoIterator<Item = u16>) -> Object {
    let member = |(port, id): (u16, u64)| (name(id), Value::object([("host", "127.0.0.1".into()), ("port", i64::from(port).into())]));
    let members: Object = ports.into_iter().zip(1..).map(member).collect();
    Object::from([
        ("provider".to_owned(), "etcd".into()),
        ("id".to_owned(), "etcd_cluster.main".into()),
        ("members".to_owned(), members.into()),
    ])
}

pub(crate) async fn asking(connection: &Object) -> Asking {
    let driver = karmaform_etcd::driver();
    let client = driver.connect(&Object::new(), connection, Arc::new(Straight { only_looks: false })).await.unwrap();
    Asking { driver, client }
}

/// A port on which nobody listens.
pub(crate) fn closed() -> u16 {
    // Nobody is given it by chance, as another fake might be given a port that was free a moment ago.
    1
}

/// A run in which nothing is reached through anything else.
pub(crate) struct Straight {
    pub(crate) only_looks: bool,
}

impl Connections for Straight {
    fn forward<'a>(&'a self, _: &'a Object, host: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async move { panic!("{host} is reached straight") })
    }

    fn only_looks(&self) -> bool {
        self.only_looks
    }
}

/// What was told has these words in its detail, and these in one of its hints.
#[track_caller]
pub(crate) fn tells(told: &Diagnostic, summary: &str, detail: &str, hint: &str) {
    assert_eq!(told.summary, summary, "{told:?}");
    assert!(told.detail.contains(detail), "{told:?}");
    assert!(told.hints.iter().any(|told| told.contains(hint)), "{told:?}");
}
