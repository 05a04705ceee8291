//! Which kinds and versions a server serves. What is usual is not asked for, until a server turns out to be unusual.

use std::sync::{Arc, PoisonError};

use serde_json::Value as Json;

use super::{Client, Place, root};
use crate::builtin;
use crate::failure::Failure;

/// A kind as the server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// `Deployment`
    pub(crate) kind: String,
    /// `deployments`
    pub(crate) plural: String,
    /// Lives in namespaces.
    pub(crate) namespaced: bool,
}

impl Client {
    /// A server that does not serve what is usual, or not any more what it said, is asked what it serves from now on.
    pub(super) fn mind(&self, place: &Place, failure: &Failure) {
        if failure.is_unserved() {
            self.0.served.lock().unwrap_or_else(PoisonError::into_inner).remove(&place.api_version);
            self.doubt(&place.api_version);
        }
    }

    /// The server is asked what it serves in this version, and not taken to serve what is usual.
    pub(crate) fn doubt(&self, api_version: &str) {
        self.0.unusual.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned());
    }

    /// A kind of a group version; none if it is not served. Asked anew as long as it is not there: a plan may bring it.
    pub(crate) async fn kind(&self, api_version: &str, kind: &str) -> Result<Option<Served>, Failure> {
        let find = |list: &[Served]| list.iter().find(|s| s.kind == kind).cloned();
        let known = self.0.served.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned();
        if let Some(found) = known.as_deref().and_then(|l| find(l)) {
            return Ok(Some(found));
        }
        let is_usual = !self.0.unusual.lock().unwrap_or_else(PoisonError::into_inner).contains(api_version);
        if let Some(found) = builtin::kind(api_version, kind).filter(|_| is_usual) {
            return Ok(Some(found));
        }
        let answer = match self.raw(&root(api_version)).await {
            Ok(answer) => answer,
            Err(failure) if failure.code() == Some(404) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let served = Arc::new(served(&answer));
        let found = find(&served);
        self.0.served.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned(), served);
        Ok(found)
    }

    /// All versions of a group that the server serves: `apps/v1`.
    pub(crate) async fn versions(&self, group: &str) -> Result<Vec<String>, Failure> {
        let answer = self.raw(&format!("/apis/{group}")).await?;
        let versions = answer["versions"].as_array().into_iter().flatten();
        Ok(versions.filter_map(|v| v["groupVersion"].as_str().map(str::to_owned)).collect())
    }

    /// The version that the server prefers for a group: `apps/v1`.
    pub(crate) async fn preferred(&self, group: &str) -> Result<Option<String>, Failure> {
        if group.is_empty() {
            return Ok(Some("v1".to_owned()));
        }
        match self.raw(&format!("/apis/{group}")).await {
            Ok(answer) => Ok(answer["preferredVersion"]["groupVersion"].as_str().map(str::to_owned)),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

fn served(answer: &Json) -> Vec<Served> {
    let resources = answer["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |r: &Json| {
        let plural = r["name"].as_str().filter(|n| !n.contains('/'))?;
        Some(Served { kind: r["kind"].as_str()?.to_owned(), plural: plural.to_owned(), namespaced: r["namespaced"].as_bool()? })
    };
    resources.iter().filter_map(one).collect()
}
