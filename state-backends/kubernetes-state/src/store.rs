//! The store: an item is a Secret and its version a resourceVersion; the lock is a Lease.

use std::collections::BTreeMap;
use std::path::Path;

use http::Method;
use karmaform_model::{BoxFuture, Diagnostic, Found, Item, Object, Serial, StateStore, StoreError, Version};
use serde_json::{Value as Json, json};

use crate::arguments::Settings;
use crate::door::{Answer, Door};
use crate::lease::{held, lease, version};
use crate::names;
use crate::secret::{Packed, Parts, labels, parts, piece, unpacked};

/// So often a large value is read anew because somebody replaced it meanwhile.
const READS: usize = 5;

/// A state in a cluster.
pub struct KubernetesStore {
    workspace: String,
    suffix: String,
    namespace: String,
    labels: BTreeMap<String, String>,
    door: Door,
}

impl KubernetesStore {
    /// The state of a workspace, over arguments that fit [`schema`](crate::schema). Paths are relative to `directory`; nothing is asked yet.
    ///
    /// # Errors
    /// For arguments that make no sense.
    pub fn open(
        arguments: &Object,
        workspace: &str,
        environment: &BTreeMap<String, String>,
        directory: &Path,
        home: Option<&Path>,
    ) -> Result<Self, Diagnostic> {
        let Settings { suffix, namespace, labels, way } = Settings::read(arguments, environment, directory, home)?;
        let place = format!("The API server that has the Secret {}/{}", namespace, names::name(workspace, &suffix, &Item::State));
        Ok(Self { workspace: workspace.to_owned(), suffix, namespace, labels, door: Door::new(way, place) })
    }

    fn name(&self, item: &Item) -> String {
        names::name(&self.workspace, &self.suffix, item)
    }

    fn secrets(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/secrets{}{name}", self.namespace, if name.is_empty() { "" } else { "/" })
    }

    fn leases(&self, name: &str) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases{}{name}", self.namespace, if name.is_empty() { "" } else { "/" })
    }

    async fn object(&self, path: &str) -> Result<Option<Json>, StoreError> {
        match self.door.send(Method::GET, path, None).await? {
            Answer::Object(object) => Ok(Some(object)),
            Answer::Missing | Answer::Conflict => Ok(None),
        }
    }

    async fn get_now(&self, item: &Item) -> Result<Option<Found>, StoreError> {
        let name = self.name(item);
        if *item == Item::Lock {
            return Ok(self.object(&self.leases(&name)).await?.as_ref().and_then(held));
        }
        for _ in 0..READS {
            let Some(secret) = self.object(&self.secrets(&name)).await? else { return Ok(None) };
            let Some(mut pieces) = piece(&secret) else { break };
            let mut is_whole = true;
            if let Some(Parts { id, count }) = parts(&secret) {
                for number in 1..=count {
                    let part = self.object(&self.secrets(&names::part(&name, &id, number))).await?;
                    match part.as_ref().and_then(piece) {
                        Some(part) => pieces.extend(part),
                        None => is_whole = false,
                    }
                }
            }
            if let (true, Some(bytes), Some(version)) = (is_whole, unpacked(&secret, &pieces), version(&secret)) {
                return Ok(Some(Found { bytes, version }));
            }
        }
        Err(StoreError::Refused(format!("the Secret {}/{name} is no state, or its parts are not what was written", self.namespace)))
    }

    async fn put_now(&self, item: &Item, bytes: Vec<u8>, expected: Option<&Version>) -> Result<Version, StoreError> {
        let name = self.name(item);
        if *item == Item::Lock {
            return self.put_lock(&name, Some(&bytes), expected).await;
        }
        let before = match expected {
            Some(_) => self.object(&self.secrets(&name)).await?.as_ref().and_then(parts),
            None => None,
        };
        let packed = Packed::of(&bytes, format!("{:08x}", fastrand::u32(..))).map_err(|e| StoreError::Refused(e.to_string()))?;
        let labels = |is_state| labels(&self.workspace, &self.suffix, is_state, &self.labels);
        if let Some(Parts { id, count }) = &packed.parts {
            for number in 1..=*count {
                let part = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": packed.data(number),
                    "metadata": { "name": names::part(&name, id, number), "labels": labels(false) },
                });
                self.door.send(Method::POST, &self.secrets(""), Some(&part)).await?;
            }
        }
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": packed.data(0),
            "metadata": { "name": name, "labels": labels(*item == Item::State), "annotations": packed.annotations() },
        });
        let answer = match expected {
            None => self.door.send(Method::POST, &self.secrets(""), Some(&secret)).await,
            Some(over) => {
                secret["metadata"]["resourceVersion"] = json!(over.0);
                self.door.send(Method::PUT, &self.secrets(&name), Some(&secret)).await
            }
        };
        match answer {
            Ok(Answer::Object(object)) => {
                self.clean(&name, before.as_ref()).await;
                version(&object).ok_or_else(|| StoreError::Refused("the API server gave no resourceVersion".to_owned()))
            }
            Ok(Answer::Conflict | Answer::Missing) => {
                // A try that was repeated may have met itself: then the parts are the state's.
                let now = self.object(&self.secrets(&name)).await?.as_ref().and_then(parts);
                if now != packed.parts {
                    self.clean(&name, packed.parts.as_ref()).await;
                }
                Err(StoreError::Changed)
            }
            Err(error) => Err(error),
        }
    }

    /// What can't be removed stays; it does no harm.
    async fn clean(&self, name: &str, parts: Option<&Parts>) {
        if let Some(Parts { id, count }) = parts {
            for number in 1..=*count {
                let _ = self.door.send(Method::DELETE, &self.secrets(&names::part(name, id, number)), None).await;
            }
        }
    }

    /// A Lease that nobody holds is as good as none.
    async fn put_lock(&self, name: &str, information: Option<&[u8]>, expected: Option<&Version>) -> Result<Version, StoreError> {
        let free = match expected {
            Some(_) => None,
            None => {
                let found = self.object(&self.leases(name)).await?;
                if found.as_ref().is_some_and(|l| held(l).is_some()) {
                    return Err(StoreError::Changed);
                }
                found.as_ref().and_then(version)
            }
        };
        let over = expected.or(free.as_ref());
        let labels = labels(&self.workspace, &self.suffix, false, &self.labels);
        let now = jiff::Timestamp::now();
        let now = format!("{now:.6}");
        let lease = lease(name, &labels, information, over, &now);
        let answer = match over {
            None => self.door.send(Method::POST, &self.leases(""), Some(&lease)).await?,
            Some(_) => self.door.send(Method::PUT, &self.leases(name), Some(&lease)).await?,
        };
        match answer {
            Answer::Object(object) => {
                version(&object).ok_or_else(|| StoreError::Refused("the API server gave no resourceVersion".to_owned()))
            }
            Answer::Conflict | Answer::Missing => Err(StoreError::Changed),
        }
    }

    async fn delete_now(&self, item: &Item, expected: &Version) -> Result<(), StoreError> {
        let name = self.name(item);
        if *item == Item::Lock {
            return match self.object(&self.leases(&name)).await?.as_ref().and_then(held) {
                None => Ok(()),
                Some(_) => self.put_lock(&name, None, Some(expected)).await.map(drop),
            };
        }
        let Some(secret) = self.object(&self.secrets(&name)).await? else { return Ok(()) };
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "resourceVersion": expected.0 } });
        match self.door.send(Method::DELETE, &self.secrets(&name), Some(&options)).await? {
            Answer::Conflict => Err(StoreError::Changed),
            Answer::Object(_) | Answer::Missing => {
                self.clean(&name, parts(&secret).as_ref()).await;
                Ok(())
            }
        }
    }

    async fn list(&self) -> Result<Vec<Serial>, StoreError> {
        let path = format!("{}?labelSelector=tfstateSecretSuffix%3D{}", self.secrets(""), self.suffix);
        let all = self.door.names(&path).await?;
        let mut serials: Vec<_> = all.iter().filter_map(|n| names::generation(&self.workspace, &self.suffix, n)).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    async fn list_workspaces(&self) -> Result<Vec<String>, StoreError> {
        let path = format!("{}?labelSelector=tfstate%3Dtrue%2CtfstateSecretSuffix%3D{}", self.secrets(""), self.suffix);
        let all = self.door.names(&path).await?;
        let mut found: Vec<_> = all.iter().filter_map(|n| names::workspace(&self.suffix, n)).map(str::to_owned).collect();
        found.sort_unstable();
        Ok(found)
    }
}

impl StateStore for KubernetesStore {
    fn place(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.name(&Item::State))
    }

    fn get<'a>(&'a self, item: &'a Item) -> BoxFuture<'a, Result<Option<Found>, StoreError>> {
        Box::pin(self.get_now(item))
    }

    fn put<'a>(&'a self, item: &'a Item, bytes: Vec<u8>, expected: Option<&'a Version>) -> BoxFuture<'a, Result<Version, StoreError>> {
        Box::pin(self.put_now(item, bytes, expected))
    }

    fn delete<'a>(&'a self, item: &'a Item, expected: &'a Version) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.delete_now(item, expected))
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<Serial>, StoreError>> {
        Box::pin(self.list())
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.list_workspaces())
    }
}
