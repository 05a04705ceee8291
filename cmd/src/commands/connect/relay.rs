//! One local port for an API that several hosts lead to: each connection goes through the host that the last one went through or, where that one is
//! gone, through the next.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use karmaform_engine::Pool;
use karmaform_model::{BoxFuture, Connections as _, Diagnostic, Object, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// What is kept of a client's first words, in bytes, to be said again on another way. A hello of TLS has less.
const KEPT: usize = 64 << 10;
/// Read at once, in bytes.
const PIECE: usize = 16 << 10;
/// The wait after a connection that this machine had no file for.
const BREATH: Duration = Duration::from_millis(100);

/// Where a way leads by now.
type Found = BoxFuture<'static, Result<SocketAddr, Diagnostic>>;
/// Finds where the n-th way leads.
type Find = Arc<dyn Fn(usize) -> Found + Send + Sync>;

/// Ways to one place.
pub(super) struct Ways {
    find: Find,
    count: usize,
    /// The one that worked last.
    last: AtomicUsize,
}

impl Ways {
    fn new(find: Find, count: usize) -> Self {
        Self { find, count, last: AtomicUsize::new(0) }
    }

    /// Those of a connection that has several (`any_of`) to a host and port.
    pub(super) fn of(pool: &Arc<Pool>, via: &Object, host: &str, port: u16) -> Option<Self> {
        let ways = via.get("any_of").and_then(Value::as_items)?.iter().filter_map(Value::as_entries);
        let ways: Arc<[Object]> = ways.cloned().collect();
        let (pool, host, count) = (Arc::clone(pool), host.to_owned(), ways.len());
        let find: Find = Arc::new(move |index| -> Found {
            let (pool, ways, host) = (Arc::clone(&pool), Arc::clone(&ways), host.clone());
            Box::pin(async move {
                let way = ways.get(index).ok_or_else(no_way)?;
                pool.forward(way, &host, port).await
            })
        });
        (count > 0).then(|| Self::new(find, count))
    }

    /// The one that worked last, and then all others.
    fn order(&self) -> Vec<usize> {
        let last = self.last.load(Ordering::Relaxed);
        (0..self.count).map(|ahead| (last + ahead) % self.count).collect()
    }

    /// Finds one that works.
    async fn first(&self) -> Result<(), Diagnostic> {
        let mut why = no_way();
        for index in self.order() {
            match (self.find)(index).await {
                Ok(_) => {
                    self.last.store(index, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Leads a connection on. One through a host that has just died may be closed without a word: then the next one is tried.
    async fn lead(&self, mut near: TcpStream) {
        let mut said = Vec::new();
        for index in self.order() {
            let Ok(address) = (self.find)(index).await else { continue };
            let Ok(mut far) = TcpStream::connect(address).await else { continue };
            match is_answered(&mut near, &mut far, &mut said).await {
                Ok(true) => {
                    self.last.store(index, Ordering::Relaxed);
                    // How it ends is for the two to see.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                    return;
                }
                Ok(false) => {}
                Err(_) => return,
            }
        }
    }
}

fn no_way() -> Diagnostic {
    Diagnostic::error("No way there", "None of the hosts leads to the API.")
}

/// Hands on what is said until there is an answer, and the beginning of that. `said` is what was said so far, and is said first.
///
/// # Errors
/// Whoever speaks has gone.
async fn is_answered(near: &mut TcpStream, far: &mut TcpStream, said: &mut Vec<u8>) -> io::Result<bool> {
    if far.write_all(said).await.is_err() {
        return Ok(false);
    }
    let (mut heard, mut answer) = (vec![0; PIECE], vec![0; PIECE]);
    while said.len() < KEPT {
        tokio::select! {
            read = near.read(&mut heard) => {
                let count = read?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                said.extend_from_slice(&heard[..count]);
                if far.write_all(&heard[..count]).await.is_err() {
                    return Ok(false);
                }
            }
            read = far.read(&mut answer) => {
                let Ok(count @ 1..) = read else { return Ok(false) };
                near.write_all(&answer[..count]).await?;
                return Ok(true);
            }
        }
    }
    Ok(true)
}

/// Listens on a port of this machine for as long as this process runs.
///
/// # Errors
/// None of the ways works, and why the last one does not.
pub(super) async fn listen(ways: Ways) -> Result<SocketAddr, Diagnostic> {
    ways.first().await?;
    let broken = |e: io::Error| Diagnostic::error("No local port", format!("A port of this machine to listen on can't be opened: {e}."));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(broken)?;
    let address = listener.local_addr().map_err(broken)?;
    let ways = Arc::new(ways);
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((near, _)) => {
                    let ways = Arc::clone(&ways);
                    tokio::spawn(async move { ways.lead(near).await });
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
    });
    Ok(address)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A server that says back what it hears, or ends each connection as soon as it hears something.
    async fn served(answers: bool) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut heard = [0; 100];
                    while let Ok(count @ 1..) = stream.read(&mut heard).await {
                        if !answers || stream.write_all(&heard[..count]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    /// What comes back of these words.
    async fn said_back(address: SocketAddr, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut heard = Vec::new();
        for word in words {
            stream.write_all(word.as_bytes()).await.unwrap();
            let mut piece = vec![0; word.len()];
            if stream.read_exact(&mut piece).await.is_ok() {
                heard.extend(piece);
            }
        }
        String::from_utf8(heard).unwrap()
    }

    #[test]
    fn a_connection_goes_the_next_way_where_one_is_gone() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let (dying, well) = (served(false).await, served(true).await);
            let asked = Arc::new(Mutex::new(Vec::new()));
            let noted = Arc::clone(&asked);
            let find: Find = Arc::new(move |index| -> Found {
                noted.lock().unwrap().push(index);
                Box::pin(async move { [None, Some(dying), Some(well)][index].ok_or_else(|| Diagnostic::error("Gone", "")) })
            });
            let address = listen(Ways::new(Arc::clone(&find), 3)).await.unwrap();
            assert_eq!(said_back(address, &["one, ", "two"]).await, "one, two", "what the first host heard is said to the next");
            assert_eq!(said_back(address, &["three"]).await, "three");
            assert_eq!(*asked.lock().unwrap(), [0, 1, 1, 2, 2], "whoever worked last is asked first");
            // Where none works there is no port, and one that all have left closes what comes.
            assert_eq!(listen(Ways::new(Arc::clone(&find), 1)).await.unwrap_err().summary, "Gone");
            let none = Ways::new(find, 2);
            none.last.store(1, Ordering::Relaxed);
            assert_eq!(said_back(listen(none).await.unwrap(), &["four"]).await, "");
        });
    }
}
