//! Credentials when they are needed: got from where they come from, and kept until shortly before they end.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use karmaform_model::{BoxFuture, StoreError};
use object_store::aws::AwsCredential;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::http::Client;
use crate::source::{IdentityToken, Keys, Source, checked};
use crate::{metadata, process, sso, sts};

/// Credentials are got anew when they have less than this left. Amazon's tools do the same.
const EARLY: Duration = Duration::from_secs(300);

/// What credentials are got with.
pub(crate) struct Tools {
    /// For services on the network.
    pub(crate) client: Client,
    /// STS and its region.
    pub(crate) sts: sts::Place,
    /// IAM Identity Center, unless it is Amazon's.
    pub(crate) sso: Option<String>,
    /// For programs that print credentials.
    pub(crate) environment: BTreeMap<String, String>,
}

/// Credentials and their end.
pub(crate) struct Issued {
    pub(crate) keys: Keys,
    pub(crate) until: Option<Timestamp>,
}

struct Held {
    credential: Arc<AwsCredential>,
    until: Option<Instant>,
}

/// A source with what it gave last.
pub(crate) struct Credentials {
    source: Source,
    tools: Tools,
    held: Mutex<Option<Held>>,
}

impl Credentials {
    /// Nothing is asked yet.
    pub(crate) fn new(source: Source, tools: Tools) -> Self {
        Self { source, tools, held: Mutex::new(None) }
    }

    /// Credentials that are valid now.
    pub(crate) async fn get(&self) -> Result<Arc<AwsCredential>, StoreError> {
        let mut held = self.held.lock().await;
        let left = |h: &Held| h.until.map_or(Duration::MAX, |u| u.saturating_duration_since(Instant::now()));
        if let Some(fresh) = held.as_ref().filter(|h| left(h) > EARLY) {
            return Ok(Arc::clone(&fresh.credential));
        }
        let issued = match issue(&self.source, &self.tools).await {
            Ok(issued) => issued,
            // The old ones are good for some minutes more, and whoever gives new ones may be back by then.
            Err(error) => match held.as_ref().filter(|h| left(h) > Duration::ZERO) {
                Some(old) => return Ok(Arc::clone(&old.credential)),
                None => return Err(error),
            },
        };
        let Keys { access, secret, token } = issued.keys;
        let credential = Arc::new(AwsCredential { key_id: access, secret_key: secret, token });
        let until = issued.until.map(|at| Instant::now() + Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
        *held = Some(Held { credential: Arc::clone(&credential), until });
        Ok(credential)
    }

    /// Forgets what it has: the store says that it is not valid any more.
    pub(crate) async fn forget(&self) {
        *self.held.lock().await = None;
    }

    /// True if asking again can give other credentials.
    pub(crate) fn can_change(&self) -> bool {
        !matches!(self.source, Source::Keys(_))
    }
}

/// Asks. What comes back can be signed with: whatever signs ends at keys that can't stand in a header.
fn issue<'a>(source: &'a Source, tools: &'a Tools) -> BoxFuture<'a, Result<Issued, StoreError>> {
    Box::pin(async move {
        let Issued { keys, until } = ask(source, tools).await?;
        let keys = checked(keys, "the answer").map_err(|d| StoreError::Refused(d.detail))?;
        Ok(Issued { keys, until })
    })
}

fn ask<'a>(source: &'a Source, tools: &'a Tools) -> BoxFuture<'a, Result<Issued, StoreError>> {
    Box::pin(async move {
        match source {
            Source::Keys(keys) => Ok(Issued { keys: keys.clone(), until: None }),
            Source::Role(base, role) => {
                let base = issue(base, tools).await?.keys;
                sts::assume_role(tools, base, role).await
            }
            Source::WebIdentity(token, role) => sts::assume_role_with_web_identity(tools, &token.read()?, role).await,
            Source::Process(command) => process::credentials(command, &tools.environment).await,
            Source::Sso { profile, cache, region, account, role } => {
                sso::credentials(tools, &sso::Login { profile, cache, region }, account, role).await
            }
            Source::Container { url, authorization } => {
                let authorization = authorization.as_ref().map(IdentityToken::read).transpose()?;
                metadata::of_container(url, authorization).await
            }
            Source::Machine(endpoint) => metadata::of_machine(endpoint).await,
        }
    })
}

impl IdentityToken {
    /// The token. Files are read each time: whoever writes them renews them.
    fn read(&self) -> Result<String, StoreError> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|e| StoreError::Refused(format!("The token file {} can't be read: {e}.", path.display())))
        };
        match self {
            Self::Inline(token) => Ok(token.clone()),
            Self::File(path) => Ok(read(path)?.trim().to_owned()),
        }
    }
}
