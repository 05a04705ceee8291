//! What changes objects: server-side apply, and what stands in for it, and patches.

use std::sync::atomic::Ordering;

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::Value as Json;
use tokio::time::sleep;

use super::{CALL_LIMIT, Client, MANAGER, Place, RACE_PAUSE, RACES, read};
use crate::failure::Failure;

/// How to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct How {
    /// Take fields over from others.
    pub(crate) force: bool,
    /// Only tell what would be.
    pub(crate) dry_run: bool,
}

impl Client {
    /// Server-side apply under our name.
    pub(crate) async fn apply(&self, place: &Place, name: &str, manifest: &Json, how: How) -> Result<Json, Failure> {
        let mut parameters = PatchParams::apply(MANAGER);
        parameters.force = how.force;
        parameters.dry_run = how.dry_run;
        let mut tries = 0;
        let applied = loop {
            tries += 1;
            match self.merge(place, name, manifest, how, &parameters).await {
                // Others write to the same object.
                Err(failure) if failure.is_race() && tries <= RACES => sleep(RACE_PAUSE * tries).await,
                applied => break applied,
            }
        };
        applied.map_err(|failure| {
            self.mind(place, &failure);
            if failure.is_unserved() { Failure::Unserved(place.served.kind.clone(), place.api_version.clone()) } else { failure }
        })
    }

    async fn merge(&self, place: &Place, name: &str, manifest: &Json, how: How, parameters: &PatchParams) -> Result<Json, Failure> {
        let request = || place.request().patch(name, parameters, &Patch::Apply(manifest));
        if place.served.kind != "APIService" {
            return self.call(request()).await;
        }
        // Servers of 1.20 panic over it and cut the connection (kubernetes#98576). Once may be an accident.
        let mut cuts = 0;
        while cuts < 2 && !self.0.no_services.load(Ordering::Relaxed) {
            match self.once(request(), self.0.connect + CALL_LIMIT).await {
                Err(failure) if failure.is_cut() && !failure.is_refused_connection() && !matches!(failure, Failure::Timeout) => cuts += 1,
                Err(failure) if failure.is_trouble() => return self.call(request()).await,
                other => return other.and_then(|text| read(&text)),
            }
        }
        let written = self.write(place, name, manifest, how).await?;
        self.0.no_services.store(true, Ordering::Relaxed);
        Ok(written)
    }

    /// Makes an object, or merges a manifest into it: for a server that keeps no account of who owns which field.
    async fn write(&self, place: &Place, name: &str, manifest: &Json, how: How) -> Result<Json, Failure> {
        let manager = Some(MANAGER.to_owned());
        if self.get(place, name).await?.is_some() {
            let parameters = PatchParams { dry_run: how.dry_run, field_manager: manager, ..PatchParams::default() };
            return self.call(place.request().patch(name, &parameters, &Patch::Merge(manifest))).await;
        }
        let parameters = PostParams { dry_run: how.dry_run, field_manager: manager };
        self.call(place.request().create(&parameters, manifest.to_string().into_bytes())).await
    }

    /// Takes parts of an object away by a strategic merge patch, if it is still as it was seen.
    pub(crate) async fn strip(&self, place: &Place, live: &Json, mut patch: Json) -> Result<Json, Failure> {
        patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        self.call(place.request().patch(name, &parameters, &Patch::Strategic(patch))).await
    }

    /// Merges a patch into an object under our name (RFC 7396: null takes away).
    pub(crate) async fn patch(&self, place: &Place, name: &str, patch: &Json) -> Result<Json, Failure> {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.call(place.request().patch(name, &parameters, &Patch::Merge(patch))).await
    }

    /// The same for a part of it that is served by itself.
    pub(crate) async fn patch_part(&self, place: &Place, name: &str, part: &str, patch: &Json) -> Result<Json, Failure> {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.call(place.request().patch_subresource(part, name, &parameters, &Patch::Merge(patch))).await
    }
}
