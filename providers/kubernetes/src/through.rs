//! A cluster that is reached through another connection: a server that karmaform itself manages, and that need not be there yet.
//!
//! Nothing is remembered of its absence: each batch of questions may find it there.

use std::sync::Arc;
use std::time::Duration;

use karmaform_model::{Ask, Connections, Diagnostic, Object, Severity};
use tokio::sync::Mutex;

use crate::client::{Client, Needed};
use crate::connection::{Beyond, Options};
use crate::failure::{Call, Failure, OUTSIDE, UNABLE};
use crate::forward_target::NOTHING_THERE;
use crate::multiplexed::{self, Multiplexed};

type Answer = Result<Option<Object>, Diagnostic>;

/// The longest wait for the answer to whether a server is there.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// So long answers are waited for before it is asked whether anybody is there at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// Requests at a time over one connection.
const AT_ONCE: usize = 16;
/// And to a server where each one beside the others costs a way of its own.
const AT_ONCE_APART: usize = 4;

/// The way to it, opened when it is used.
pub(crate) struct Through {
    options: Options,
    beyond: Beyond,
    connections: Arc<dyn Connections>,
    open: Mutex<Option<Open>>,
}

enum Open {
    /// One connection for all.
    Shared(Multiplexed),
    /// Connections that are opened as they are needed.
    Apart(kube::Client),
}

impl Through {
    /// Not open yet.
    pub(crate) fn new(options: Options, beyond: Beyond, connections: Arc<dyn Connections>) -> Self {
        Self { options, beyond, connections, open: Mutex::default() }
    }

    /// The client; opened, if it is not, or not any more.
    pub(crate) async fn client(&self) -> Result<kube::Client, Failure> {
        let mut open = self.open.lock().await;
        match &*open {
            Some(Open::Shared(shared)) if !shared.is_over() => return Ok(shared.client.clone()),
            Some(Open::Apart(client)) => return Ok(client.clone()),
            _ => *open = None,
        }
        let Beyond { via, host, port, .. } = &self.beyond;
        let local = self.connections.forward(via, host, *port).await.map_err(|e| Failure::Way(Box::new(e)))?;
        let config = self.options.config_at(local, host).await.map_err(|e| Failure::Way(Box::new(e)))?;
        if config.cluster_url.scheme_str() == Some("https")
            && let Some(shared) = multiplexed::connect(&config, local, host, self.options.timeout).await?
        {
            let client = shared.client.clone();
            *open = Some(Open::Shared(shared));
            return Ok(client);
        }
        let client = kube::Client::try_from(config).map_err(|e| Failure::Kube(Box::new(e)))?;
        *open = Some(Open::Apart(client.clone()));
        Ok(client)
    }

    /// Forgets the client after a failed connection, so that the next call looks for the way again and says what is in it.
    pub(crate) async fn close(&self) {
        *self.open.lock().await = None;
    }

    async fn is_shared(&self) -> bool {
        matches!(&*self.open.lock().await, Some(Open::Shared(_)))
    }

    /// How many requests are best under way at the same time.
    pub(crate) async fn at_once(&self) -> usize {
        if self.is_shared().await { AT_ONCE } else { AT_ONCE_APART }
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

/// Asks the server how it is.
async fn is_there(client: &Client) -> There {
    // A way that was open may be an old one; a second look is through a new one.
    let mut again = true;
    loop {
        let Err(failure) = client.text("/readyz", LOOK_LIMIT).await else { return There::Yes };
        if failure.is_cut() && again {
            again = false;
            continue;
        }
        return judged(client, failure);
    }
}

/// Whether it is worth while to ask anything. A connection that all will use says that without a question.
async fn can_be_asked(client: &Client, through: &Through) -> There {
    match through.client().await {
        Ok(_) if through.is_shared().await => There::Yes,
        Ok(_) => is_there(client).await,
        Err(failure) => judged(client, failure),
    }
}

fn judged(client: &Client, failure: Failure) -> There {
    match failure {
        Failure::Way(error) if error.summary == NOTHING_THERE => There::No,
        Failure::Way(error) => There::Untold(error),
        // Who can't be trusted and who does not let us in is no one that can be asked: a change of its certificates may be half done.
        ref failure if failure.is_cut() || failure.is_outage() || failure.code() == Some(401) => There::No,
        Failure::Kube(ref error) if matches!(**error, kube::Error::Api(_)) => There::Yes,
        failure => There::Untold(Box::new(failure.diagnostic(client.place(), &Call::none(), &[]))),
    }
}

/// Of a cluster that may be gone it is only a warning that it can't be asked: what the state remembers stands.
fn excused(mut answer: Answer) -> Answer {
    if let Err(error) = &mut answer
        && (error.retryable || OUTSIDE.contains(&error.summary.as_str()))
    {
        error.severity = Severity::Warning;
        error.detail.push_str(" What the state remembers of what is there is taken to be so.");
    }
    answer
}

/// To who only looks the memory is no answer: nothing is known of what is there.
fn silent(client: &Client) -> Diagnostic {
    let detail = format!("{} does not answer, so nothing is known of what is in it.", client.place());
    Diagnostic::warning("Server behind another connection does not answer", detail)
}

/// The answers of `look`; but of a server behind another connection that is not there, what the state remembers: a plan that is to bring it
/// back must not fail for want of it.
pub(crate) async fn observe<F: Future<Output = Vec<Answer>>>(client: &Client, asks: &[Ask], look: impl Fn() -> F) -> Vec<Answer> {
    let Some(through) = client.through() else {
        let answers = look().await;
        return if client.1 == Needed::No { answers.into_iter().map(excused).collect() } else { answers };
    };
    let remembered = |ask: &Ask| if client.only_looks() { Err(silent(client)) } else { Ok(ask.known.clone()) };
    let none = |there: There| match there {
        There::Yes => None,
        There::No => Some(asks.iter().map(remembered).collect()),
        There::Untold(error) => Some(asks.iter().map(|_| Err((*error).clone())).collect()),
    };
    if let Some(answers) = none(can_be_asked(client, through).await) {
        return answers;
    }
    // Of an API that it has from a server behind it (an aggregated one) it says 503 as long as that one is not there.
    let unable = |answer: &Answer| answer.as_ref().is_err_and(|e| e.summary == UNABLE);
    let cut =
        |answer: &Answer| answer.as_ref().is_err_and(|e| (e.retryable || OUTSIDE.contains(&e.summary.as_str())) && e.summary != UNABLE);
    let mut answers = Vec::new();
    let mut is_gone = false;
    // Its connection may have ended between two looks.
    for again in [true, false] {
        let looking = look();
        futures::pin_mut!(looking);
        answers = match tokio::time::timeout(PATIENCE, &mut looking).await {
            Ok(answers) => answers,
            Err(_) => match none(is_there(client).await) {
                Some(answers) => return answers,
                None => looking.await,
            },
        };
        if !answers.iter().any(cut) {
            break;
        }
        is_gone = match is_there(client).await {
            There::Yes if again => continue,
            There::Yes | There::Untold(_) => false,
            There::No => true,
        };
        break;
    }
    for (answer, ask) in answers.iter_mut().zip(asks).filter(|(a, _)| unable(a) || is_gone && cut(a)) {
        *answer = remembered(ask);
    }
    answers
}

#[cfg(test)]
#[path = "through_tests.rs"]
mod tests;
