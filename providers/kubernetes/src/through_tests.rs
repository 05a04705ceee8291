use super::*;
use crate::client::Inner;
use crate::values::object;
use karmaform_model::{BoxFuture, Value};
use std::net::SocketAddr;
use std::sync::Mutex as Lock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A host that leads where it is told to.
struct Host(Lock<Vec<Result<SocketAddr, Diagnostic>>>, bool);

impl Connections for Host {
    fn forward<'a>(&'a self, _: &'a Object, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        assert_eq!((host, port), ("api.ns.svc", 5443));
        let mut ways = self.0.lock().unwrap();
        let way = if ways.len() > 1 { ways.remove(0) } else { ways[0].clone() };
        Box::pin(async move { way })
    }

    fn only_looks(&self) -> bool {
        self.1
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn client(ways: Vec<Result<SocketAddr, Diagnostic>>) -> Client {
    client_for(ways, false).await
}

async fn client_for(ways: Vec<Result<SocketAddr, Diagnostic>>, only_looks: bool) -> Client {
    let via = Value::object([("provider", "kubernetes".into()), ("id", "host".into())]);
    let connection = object([("address", "http://api.ns.svc:5443".into()), ("via", via)]);
    let options = Options::new(&connection).ok().unwrap();
    Client(Arc::new(Inner::open(options, Arc::new(Host(Lock::new(ways), only_looks))).await.ok().unwrap()), Needed::Yes)
}

/// A server that answers everything alike.
async fn server(status: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok").as_bytes()).await;
                }
            });
        }
    });
    address
}

/// A server that has too much to do once.
async fn busy() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {
                    let status = if asked.swap(true, Ordering::Relaxed) { "200 OK" } else { "429 x" };
                    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok").as_bytes()).await;
                }
            });
        }
    });
    address
}

async fn nobody() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap()
}

fn asks() -> Vec<Ask> {
    let ask = |known: Option<Object>| Ask { resource_type: "t".to_owned(), identity: Object::new(), known, wanted: None, begun: false };
    vec![ask(Some(object([("a", 1i64.into())]))), ask(None)]
}

fn seen() -> Vec<Answer> {
    vec![Ok(Some(object([("a", 2i64.into())]))), Err(Diagnostic::error("Cut", "Cut.").retryable())]
}

#[test]
fn to_who_only_looks_memory_is_no_answer() {
    run(async {
        let client = client_for(vec![Ok(nobody().await)], true).await;
        let answers = observe(&client, &asks(), || async { seen() }).await;
        assert_eq!(answers.len(), 2);
        for why in answers.into_iter().map(Result::unwrap_err) {
            assert_eq!((why.summary.as_str(), why.is_error()), ("Server behind another connection does not answer", false));
            assert_eq!(why.detail, "http://api.ns.svc:5443 does not answer, so nothing is known of what is in it.");
        }
    });
}

#[test]
fn of_a_server_that_is_not_there_the_state_is_believed() {
    run(async {
        let nothing = Diagnostic::error(NOTHING_THERE, "There is no Service.").retryable();
        let lost = Diagnostic::error("Cluster is unreachable", "The host.").retryable();
        let remembered: Vec<Answer> = asks().into_iter().map(|a| Ok(a.known)).collect();
        let check = async |ways: Vec<Result<SocketAddr, Diagnostic>>, expected: Vec<Answer>| {
            let client = client(ways).await;
            let asks = asks();
            assert_eq!(observe(&client, &asks, || async { seen() }).await, expected);
        };
        check(vec![Err(nothing.clone())], remembered.clone()).await;
        check(vec![Ok(nobody().await)], remembered.clone()).await;
        check(vec![Ok(nobody().await), Err(nothing)], remembered.clone()).await;
        check(vec![Ok(server("500 x").await)], remembered.clone()).await;
        check(vec![Ok(server("503 x").await)], remembered.clone()).await;
        check(vec![Ok(server("401 x").await)], remembered).await;
        check(vec![Ok(server("200 OK").await)], seen()).await;
        check(vec![Ok(server("403 x").await)], seen()).await;
        check(vec![Ok(nobody().await), Err(lost.clone())], vec![Err(lost.clone()), Err(lost.clone())]).await;
        check(vec![Err(lost.clone())], vec![Err(lost.clone()), Err(lost)]).await;
    });
}

#[test]
fn who_has_too_much_to_do_is_there_and_asked_again() {
    run(async {
        let of = async |address: SocketAddr| client(vec![Ok(address)]).await.text("/readyz", LOOK_LIMIT).await;
        assert_eq!(of(busy().await).await.unwrap(), "ok");
        assert_eq!(of(server("503 x").await).await.unwrap_err().code(), Some(503));
    });
}

#[test]
fn each_look_may_find_it_there() {
    run(async {
        let nothing = Err(Diagnostic::error(NOTHING_THERE, "There is no Service."));
        let client = client(vec![nothing, Ok(nobody().await), Ok(nobody().await), Ok(server("200 OK").await)]).await;
        let asks = asks();
        for expected in [false, false, true, true] {
            let answers = observe(&client, &asks, || async { seen() }).await;
            assert_eq!(answers == seen(), expected);
        }
    });
}

#[test]
fn what_falls_over_while_it_is_asked_is_not_there() {
    run(async {
        let (up, down) = (server("200 OK").await, nobody().await);
        let client = client(vec![Ok(up), Ok(down)]).await;
        let asks = asks();
        let answers = observe(&client, &asks, || async {
            let Client(inner, _) = &client;
            inner.close().await;
            seen()
        })
        .await;
        assert_eq!(answers, vec![seen().remove(0), Ok(None)]);
    });
}

#[test]
fn an_api_whose_own_server_is_not_there_is_believed_too() {
    run(async {
        let client = client(vec![Ok(server("200 OK").await)]).await;
        let asks = asks();
        let unable = || vec![Err(Diagnostic::error(UNABLE, "503.").retryable()), Err(Diagnostic::error("Refused", "403."))];
        let answers = observe(&client, &asks, || async { unable() }).await;
        assert_eq!(answers, vec![Ok(asks[0].known.clone()), unable().remove(1)]);
    });
}
