//! What deletes objects, and only those that were seen.

use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use tokio::time::sleep;

use super::{Client, Place, RACE_PAUSE, RACES};
use crate::failure::Failure;

impl Client {
    /// Asks to delete an object; true if there was one of this uid.
    /// A refusal because of a race with others says nothing of the object: then it is looked at.
    pub(crate) async fn delete(&self, place: &Place, name: &str, uid: Option<&str>, policy: PropagationPolicy) -> Result<bool, Failure> {
        let parameters = DeleteParams { propagation_policy: Some(policy), ..deletion_of(uid) };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.call(place.request().delete(name, &parameters)).await {
                Err(failure) if failure.code() == Some(404) => return Ok(false),
                Err(failure) if failure.code() == Some(409) => {
                    let live = self.get(place, name).await?;
                    // Gone, or another one under the same name.
                    if !live.is_some_and(|live| uid.is_none_or(|uid| live["metadata"]["uid"] == uid)) {
                        return Ok(false);
                    }
                    if tries > RACES {
                        return Err(failure);
                    }
                    sleep(RACE_PAUSE * tries).await;
                }
                other => return other.map(|_| true),
            }
        }
    }

    /// Deletes a pod that its node does not end: without waiting for it, and only if it is this one.
    pub(crate) async fn delete_at_once(&self, place: &Place, name: &str, uid: Option<&str>) -> Result<(), Failure> {
        self.delete_within(place, name, uid, 0).await
    }

    /// Deletes a pod, if it is this one, and gives it so many seconds to end, whatever it would have had.
    pub(crate) async fn delete_within(&self, place: &Place, name: &str, uid: Option<&str>, seconds: u32) -> Result<(), Failure> {
        let parameters = DeleteParams { grace_period_seconds: Some(seconds), ..deletion_of(uid) };
        match self.call(place.request().delete(name, &parameters)).await {
            Err(failure) if failure.code() == Some(404) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// A deletion of this one alone, and not of another one under the same name.
fn deletion_of(uid: Option<&str>) -> DeleteParams {
    let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None });
    DeleteParams { preconditions, ..DeleteParams::default() }
}
