//! The lock: Terraform's lock content in the body of a request. A server has no way to say who holds it but to refuse it.

use karmaform_model::{BackendError, LockId, LockInfo, StoreError};
use reqwest::StatusCode;
use serde_json::Value as Json;

use crate::arguments::Locking;
use crate::backend::HttpBackend;
use crate::http::{Patience, Reply};
use crate::words;

/// What became of a try to lock.
enum Taken {
    /// It is ours now.
    Ours,
    /// It was ours before.
    Still,
    /// Somebody has it. What the server says of that, as far as it is the content of a lock.
    Theirs(Option<Box<Holder>>),
}

/// A holder of the lock.
struct Holder {
    info: LockInfo,
    /// As the server gave it.
    body: Vec<u8>,
}

const ARGUMENTS: &str = "lock_address and lock_method";

impl HttpBackend {
    /// Takes the lock, or says who holds it. Where there are no locks, everybody gets one.
    pub(crate) async fn lock_now(&self, who: &LockInfo) -> Result<LockId, BackendError> {
        if let Some(locking) = &self.settings.locking
            && let Taken::Theirs(holder) = self.take(locking, who, Patience::Usual).await?
        {
            return Err(BackendError::Locked(holder.map(|h| Box::new(h.info))));
        }
        let mut memory = self.memory();
        memory.held = Some(who.clone());
        memory.thief = None;
        Ok(LockId(who.id.clone()))
    }

    /// Releases the lock with this id, whoever took it.
    pub(crate) async fn unlock_now(&self, id: &LockId) -> Result<(), BackendError> {
        let held = self.memory().held.clone().filter(|held| held.id == id.0);
        let Some(locking) = &self.settings.locking else {
            self.forget(id);
            return if held.is_some() { Ok(()) } else { Err(BackendError::NotLocked) };
        };
        let is_ours = held.is_some();
        let body = match held {
            Some(held) => content(&held),
            // There are servers that release whatever lock there is. So it is made sure that it is this one.
            None => match self.look(locking).await? {
                Taken::Ours | Taken::Still => return Err(BackendError::NotLocked),
                Taken::Theirs(Some(holder)) if holder.info.id != id.0 => return Err(other(id, &holder)),
                Taken::Theirs(Some(holder)) => holder.body,
                Taken::Theirs(None) => serde_json::json!({ "ID": id.0 }).to_string().into_bytes(),
            },
        };
        let reply = self.release(locking, body, Patience::Usual).await?;
        let refused = || self.refused_release(locking, &reply);
        match reply.status.as_u16() {
            _ if reply.status.is_success() => {}
            400 | 404 | 409 | 410 | 412 | 422 | 423 => match self.look(locking).await? {
                // An earlier try of ours did it, and its answer was lost.
                Taken::Ours | Taken::Still if is_ours && reply.repeated => {}
                Taken::Theirs(Some(holder)) if is_ours && reply.repeated && holder.info.id != id.0 => {}
                Taken::Ours | Taken::Still => return Err(BackendError::NotLocked),
                Taken::Theirs(Some(holder)) if holder.info.id != id.0 => return Err(other(id, &holder)),
                Taken::Theirs(_) => return Err(refused()),
            },
            _ => return Err(refused()),
        }
        self.forget(id);
        Ok(())
    }

    /// After a write that was refused: `None` if this run holds its lock all the same, as far as can be told; else who has it, if somebody has.
    pub(crate) async fn lost(&self) -> Option<Option<LockInfo>> {
        let (locking, held) = (self.settings.locking.as_ref()?, self.memory().held.clone()?);
        // Who takes a lock again that it holds is told of itself.
        match self.take(locking, &held, Patience::None).await.ok()? {
            Taken::Still | Taken::Theirs(None) => None,
            Taken::Ours => Some(None),
            Taken::Theirs(Some(holder)) => {
                // What is not held is not released either: there are servers that release whatever there is.
                let mut memory = self.memory();
                memory.held = None;
                memory.thief = Some(holder.info.clone());
                Some(Some(holder.info))
            }
        }
    }

    fn forget(&self, id: &LockId) {
        let mut memory = self.memory();
        memory.held = memory.held.take().filter(|held| held.id != id.0);
    }

    /// Who holds the lock. Nobody can be asked that, so it is taken, and released again at once if that worked.
    async fn look(&self, locking: &Locking) -> Result<Taken, BackendError> {
        let scratch = LockInfo {
            id: format!("look-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..)),
            operation: "unlock".to_owned(),
            info: "only to see who holds it".to_owned(),
            who: "karmaform".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created: jiff::Timestamp::now().to_string(),
            path: self.place(),
            lease: None,
            renewed: None,
        };
        let taken = self.take(locking, &scratch, Patience::Usual).await?;
        if matches!(taken, Taken::Ours | Taken::Still) {
            let reply = self.release(locking, content(&scratch), Patience::Usual).await?;
            // A second try is refused where the first one did it.
            if !reply.status.is_success() && !reply.repeated {
                return Err(self.refused_release(locking, &reply));
            }
        }
        Ok(taken)
    }

    async fn take(&self, locking: &Locking, info: &LockInfo, patience: Patience) -> Result<Taken, BackendError> {
        let door = &locking.lock;
        let asked = self.asked("lock the state", &door.url, ARGUMENTS);
        let sent = self.client.send(&self.client.request(&door.method, &door.url, Some(content(info))), patience).await;
        let error = match sent {
            Ok(reply) if reply.status.is_success() => return Ok(Taken::Ours),
            Ok(reply) if matches!(reply.status, StatusCode::CONFLICT | StatusCode::LOCKED) => {
                let holder = holder(reply.body);
                // The answer to a try of ours was lost, and the next try met it.
                let is_ours = holder.as_ref().is_some_and(|h| h.info.id == info.id);
                return Ok(if is_ours { Taken::Still } else { Taken::Theirs(holder) });
            }
            Ok(reply) => words::refused(asked, &reply),
            Err(failure) => words::unreachable(asked, &failure),
        };
        // It may be ours all the same, and nobody would release it.
        if matches!(error, StoreError::Unreachable(_)) && patience == Patience::Usual {
            let _ = self.release(locking, content(info), Patience::None).await;
        }
        Err(self.failed("locking")(error))
    }

    async fn release(&self, locking: &Locking, body: Vec<u8>, patience: Patience) -> Result<Reply, BackendError> {
        let door = &locking.unlock;
        let sent = self.client.send(&self.client.request(&door.method, &door.url, Some(body)), patience).await;
        let asked = self.asked("unlock the state", &door.url, "unlock_address and unlock_method");
        sent.map_err(|failure| self.failed("unlocking")(words::unreachable(asked, &failure)))
    }

    fn refused_release(&self, locking: &Locking, reply: &Reply) -> BackendError {
        let asked = self.asked("unlock the state", &locking.unlock.url, "unlock_address and unlock_method");
        self.failed("unlocking")(words::refused(asked, reply))
    }
}

fn other(id: &LockId, holder: &Holder) -> BackendError {
    BackendError::OtherLock { given: id.0.clone(), held: holder.info.id.clone() }
}

fn content(info: &LockInfo) -> Vec<u8> {
    serde_json::to_vec(info).unwrap_or_default()
}

/// Reads the content of a lock, with as little in it as the server likes. A lock here has no lease, whatever it says.
fn holder(body: Vec<u8>) -> Option<Box<Holder>> {
    let json: Json = serde_json::from_slice(&body).ok()?;
    let text = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let id = Some(text("ID")).filter(|id| !id.is_empty())?;
    let info = LockInfo {
        id,
        operation: text("Operation"),
        info: text("Info"),
        who: text("Who"),
        version: text("Version"),
        created: text("Created"),
        path: text("Path"),
        lease: None,
        renewed: None,
    };
    Some(Box::new(Holder { info, body }))
}
