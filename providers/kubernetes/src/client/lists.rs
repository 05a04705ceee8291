//! Objects of a kind in a place, page by page.

use std::time::Duration;

use kube::api::ListParams;
use kube::core::Request;
use serde_json::Value as Json;

use super::{Client, Place, RACES, read};
use crate::failure::Failure;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// What a server says of the rest of a list that is too old.
pub(super) const EXPIRED: u16 = 410;

impl Client {
    /// All objects of a kind in a place.
    pub(crate) async fn list(&self, place: &Place) -> Result<Vec<Json>, Failure> {
        self.pages(place, ListParams::default()).await
    }

    /// Those of them that this selector of labels chooses.
    pub(crate) async fn labelled(&self, place: &Place, labels: &str) -> Result<Vec<Json>, Failure> {
        self.pages(place, ListParams::default().labels(labels)).await
    }

    async fn pages(&self, place: &Place, parameters: ListParams) -> Result<Vec<Json>, Failure> {
        let first = parameters.limit(PAGE);
        let (mut found, mut parameters, mut tries) = (Vec::new(), first.clone(), 0);
        loop {
            let page = self.call(place.request().list(&parameters)).await;
            let mut page = match page {
                // Its rest is compacted away by now: it is begun anew (kubernetes.io/docs/reference/using-api/api-concepts, section
                // "Retrieving large results sets in chunks").
                Err(failure) if failure.code() == Some(EXPIRED) && parameters.continue_token.is_some() && tries < RACES => {
                    tries += 1;
                    found.clear();
                    parameters = first.clone();
                    continue;
                }
                page => page.inspect_err(|f| self.mind(place, f))?,
            };
            if let Some(Json::Array(items)) = page.get_mut("items").map(Json::take) {
                found.extend(items);
            }
            match page["metadata"]["continue"].as_str().filter(|t| !t.is_empty()) {
                Some(token) => parameters = parameters.continue_token(token),
                None => return Ok(found),
            }
        }
    }

    /// The objects of a kind that these selectors choose; an empty selector chooses all. One page of them.
    pub(crate) async fn select(&self, place: &Place, labels: &str, fields: &str) -> Result<Vec<Json>, Failure> {
        let parameters = ListParams::default().labels(labels).fields(fields).limit(PAGE);
        let mut page = self.call(place.request().list(&parameters)).await?;
        Ok(page
            .get_mut("items")
            .map(Json::take)
            .and_then(|items| if let Json::Array(i) = items { Some(i) } else { None })
            .unwrap_or_default())
    }

    /// What is listed at a path, as a table; a server that makes none gives the list itself.
    pub(crate) async fn table(&self, path: &str, limit: Duration) -> Result<Json, Failure> {
        let request = Request::new(path).list(&ListParams::default().limit(PAGE)).map(|mut request| {
            // https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
            let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
            request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(accept));
            request
        });
        read(&self.send(request, limit).await?)
    }
}
