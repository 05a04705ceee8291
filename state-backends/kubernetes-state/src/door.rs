//! Requests to the API server: each within a time limit, tried again while it is not known whether it was done.

use std::time::Duration;

use http::{Method, Request};
use karmaform_model::StoreError;
use kube::Client;
use serde_json::Value as Json;
use tokio::sync::Mutex;

use crate::arguments::Way;

/// The longest wait for one answer.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// So often a call is tried that failed for a reason that passes.
const TRIES: u32 = 5;
/// The pause before the second try; it doubles.
const PAUSE: Duration = Duration::from_millis(300);

/// What a request came to.
pub(crate) enum Answer {
    Object(Json),
    /// There is none.
    Missing,
    /// It is there already, or not as expected.
    Conflict,
}

/// A cluster's API.
pub(crate) struct Door {
    way: Way,
    place: String,
    client: Mutex<Option<Client>>,
}

impl Door {
    /// `place` is what it is called in messages.
    pub(crate) fn new(way: Way, place: String) -> Self {
        Self { way, place, client: Mutex::default() }
    }

    async fn client(&self) -> Result<Client, StoreError> {
        let mut client = self.client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let config = self.way.config().await.map_err(|why| StoreError::Refused(format!("{}: {why}", self.place)))?;
        let opened = Client::try_from(config).map_err(|e| StoreError::Refused(format!("{}: {e}", self.place)))?;
        *client = Some(opened.clone());
        Ok(opened)
    }

    /// The names of all objects at this path, without what is in them.
    pub(crate) async fn names(&self, path: &str) -> Result<Vec<String>, StoreError> {
        // https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
        let listed = match self.ask(Method::GET, path, None, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").await? {
            Answer::Object(listed) => listed,
            Answer::Missing | Answer::Conflict => Json::Null,
        };
        let items = listed["items"].as_array().into_iter().flatten();
        Ok(items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect())
    }

    /// Sends a request. Writes are conditional, so one that meets itself changes nothing.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Json>) -> Result<Answer, StoreError> {
        self.ask(method, path, body, "application/json").await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Json>, accept: &str) -> Result<Answer, StoreError> {
        let mut pause = PAUSE;
        let mut last = String::new();
        let mut is_new = false;
        for turn in 0..TRIES {
            if turn > 0 {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            let client = self.client().await?;
            let bytes = body.map(|b| serde_json::to_vec(b).unwrap_or_default()).unwrap_or_default();
            let request = Request::builder().method(&method).uri(path).header("content-type", "application/json").header("accept", accept);
            let request = request.body(bytes);
            let request = request.map_err(|e| StoreError::Refused(format!("{}: no such request: {e}", self.place)))?;
            match tokio::time::timeout(CALL_LIMIT, client.request::<Json>(request)).await {
                Ok(Ok(object)) => return Ok(Answer::Object(object)),
                Ok(Err(kube::Error::Api(status))) => match status.code {
                    404 if status.reason == "NotFound" && !status.message.contains("namespaces ") => return Ok(Answer::Missing),
                    409 => return Ok(Answer::Conflict),
                    408 | 429 | 500 | 502..=504 => last = status.message.clone(),
                    // A run may take longer than what it shows is good for, and the kubeconfig have something newer by now.
                    401 if !is_new => {
                        is_new = true;
                        last = status.message.clone();
                        *self.client.lock().await = None;
                    }
                    _ => return Err(StoreError::Refused(format!("{} refused: {}", self.place, status.message))),
                },
                Ok(Err(error)) => {
                    last = innermost(&error);
                    // A connection that failed may never get well again.
                    *self.client.lock().await = None;
                }
                Err(_) => last = format!("no answer within {} s", CALL_LIMIT.as_secs()),
            }
        }
        Err(StoreError::Unreachable(format!("{} did not answer: {last}", self.place)))
    }
}

/// What is at the bottom of a chain of errors: the others only say that something failed.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
