//! A cluster that is reached through another connection: a server that karmaform itself manages, and that need not be there yet.
//!
//! Nothing is remembered of its absence: each batch of questions may find it there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{Ask, Connections, Diagnostic, Object};
use tokio::sync::Mutex;

use crate::client::Client;
use crate::connection::{Beyond, Options};
use crate::failure::{Call, Failure, UNABLE};
use crate::forward;

type Answer = Result<Option<Object>, Diagnostic>;

/// The longest wait for the answer to whether a server is there.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// The way to it, opened when it is used.
pub(crate) struct Through {
    options: Options,
    beyond: Beyond,
    connections: Arc<dyn Connections>,
    open: Mutex<Option<(SocketAddr, kube::Client)>>,
}

impl Through {
    /// Not open yet.
    pub(crate) fn new(options: Options, beyond: Beyond, connections: Arc<dyn Connections>) -> Self {
        Self { options, beyond, connections, open: Mutex::default() }
    }

    /// The client; opened, if it is not, or not any more.
    pub(crate) async fn client(&self) -> Result<kube::Client, Failure> {
        let mut open = self.open.lock().await;
        if let Some((_, client)) = &*open {
            return Ok(client.clone());
        }
        let Beyond { via, host, port, .. } = &self.beyond;
        let local = self.connections.forward(via, host, *port).await.map_err(|e| Failure::Way(Box::new(e)))?;
        let config = self.options.config_at(local, host).await.map_err(|e| Failure::Way(Box::new(e)))?;
        let client = kube::Client::try_from(config).map_err(|e| Failure::Kube(Box::new(e)))?;
        *open = Some((local, client.clone()));
        Ok(client)
    }

    /// Forgets the client after a failed connection, so that the next call looks for the way again and says what is in it.
    pub(crate) async fn close(&self) {
        *self.open.lock().await = None;
    }
}

/// Whether a server is there.
enum There {
    Yes,
    /// But what is between is in order.
    No,
    /// It can't be told.
    Untold(Box<Diagnostic>),
}

async fn is_there(client: &Client) -> There {
    // A way that was open may be an old one; a second look is through a new one.
    let mut again = true;
    loop {
        let Err(failure) = client.text("/readyz", LOOK_LIMIT).await else { return There::Yes };
        return match failure {
            Failure::Way(error) if error.summary == forward::NOTHING_THERE => There::No,
            Failure::Way(error) => There::Untold(error),
            ref failure if failure.is_cut() && again => {
                again = false;
                continue;
            }
            // Who can't be trusted and who does not let us in is no one that can be asked: a change of its certificates may be half done.
            ref failure if failure.is_cut() || failure.is_outage() || failure.code() == Some(401) => There::No,
            Failure::Kube(ref error) if matches!(**error, kube::Error::Api(_)) => There::Yes,
            failure => There::Untold(Box::new(failure.diagnostic(client.place(), &Call::none(), &[]))),
        };
    }
}

/// The answers of `look`; but of a server behind another connection that is not there, what the state remembers: a plan that is to bring it
/// back must not fail for want of it.
pub(crate) async fn observe(client: &Client, asks: &[Ask], look: impl Future<Output = Vec<Answer>>) -> Vec<Answer> {
    if !client.is_through() {
        return look.await;
    }
    let remembered = |ask: &Ask| Ok(ask.known.clone());
    match is_there(client).await {
        There::Yes => {}
        There::No => return asks.iter().map(remembered).collect(),
        There::Untold(error) => return asks.iter().map(|_| Err((*error).clone())).collect(),
    }
    let mut answers = look.await;
    // Of an API that it has from a server behind it (an aggregated one) it says 503 as long as that one is not there.
    let unable = |answer: &Answer| answer.as_ref().is_err_and(|e| e.summary == UNABLE);
    let cut = |answer: &Answer| answer.as_ref().is_err_and(|e| e.retryable) && !unable(answer);
    let is_gone = answers.iter().any(cut) && matches!(is_there(client).await, There::No);
    for (answer, ask) in answers.iter_mut().zip(asks).filter(|(a, _)| unable(a) || is_gone && cut(a)) {
        *answer = remembered(ask);
    }
    answers
}

#[cfg(test)]
#[path = "through_tests.rs"]
mod tests;
