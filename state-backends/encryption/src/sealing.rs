//! Sealing and opening, with one key for what is written and up to two ways to keys for what is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karmaform_model::{Content, Diagnostic, KeyService, Object, Seal, SealError, is_sealed};

use crate::age_keys::Age;
use crate::arguments::{self, Way};
use crate::envelope::{self, Envelope};
use crate::key::{Key, Origin};
use crate::passphrase;

/// Opens a client of AWS KMS for these arguments.
pub type OpenKms<'a> = &'a dyn Fn(&Object) -> Result<Arc<dyn KeyService>, Diagnostic>;

/// What an `encryption` block says.
pub struct Encryption {
    first: Door,
    fallback: Option<Door>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// What this run seals with.
    writing: Option<(Origin, Key)>,
    /// Keys that were had once. Getting one costs time, or a question to somebody.
    keys: BTreeMap<Origin, Key>,
}

/// A way to keys.
enum Door {
    Passphrase(String),
    KeyFile(Key),
    Age(Age),
    AwsKms(Arc<dyn KeyService>),
    Command(Arc<dyn KeyService>),
    Clear,
}

impl Encryption {
    /// Over arguments that fit [`schema`](crate::schema). Files are read, relative to `directory`; nobody is asked yet.
    ///
    /// # Errors
    /// For arguments that make no sense, and files that can't be read.
    pub fn open(arguments: &Object, directory: &Path, home: Option<&Path>, kms: OpenKms<'_>) -> Result<Self, Diagnostic> {
        let (first, fallback) = arguments::read(arguments, directory, home)?;
        let door = |way| Door::behind(way, kms);
        Ok(Self { first: door(first)?, fallback: fallback.map(door).transpose()?, held: Mutex::default() })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> Result<(Origin, Key), SealError> {
        if let Some(writing) = &self.held().writing {
            return Ok(writing.clone());
        }
        let made = self.first.make()?;
        Ok(self.held().writing.insert(made).clone())
    }

    /// The key that an envelope was sealed with.
    fn key(&self, envelope: &Envelope) -> Result<Key, SealError> {
        let origin = envelope.origin();
        let known = self.held().keys.get(origin).cloned();
        if let Some(key) = known {
            return if envelope.fits(&key) { Ok(key) } else { Err(SealError::Damaged) };
        }
        let mut given = Vec::new();
        for (door, is_first) in [(Some(&self.first), true), (self.fallback.as_ref(), false)] {
            let Some(door) = door else { continue };
            match door.fetch(origin)? {
                Ok(key) if envelope.fits(&key) => {
                    let mut held = self.held();
                    held.keys.insert(origin.clone(), key.clone());
                    // Deriving another one from the same passphrase would only cost time.
                    if is_first && matches!(origin, Origin::Passphrase { .. }) && held.writing.is_none() {
                        held.writing = Some((origin.clone(), key.clone()));
                    }
                    return Ok(key);
                }
                Ok(_) => given.push(format!("{} is another one", door.what())),
                Err(why) => given.push(why),
            }
        }
        Err(SealError::OtherKey { with: origin.name(), given: given.join(", and ") })
    }
}

impl Door {
    fn behind(way: Way, kms: OpenKms<'_>) -> Result<Self, Diagnostic> {
        Ok(match way {
            Way::Passphrase(passphrase) => Self::Passphrase(passphrase),
            Way::KeyFile(key) => Self::KeyFile(key),
            Way::Age(age) => Self::Age(age),
            Way::AwsKms(arguments) => Self::AwsKms(kms(&arguments)?),
            Way::Command(program) => Self::Command(Arc::new(program)),
            Way::Clear => Self::Clear,
        })
    }

    /// What it is called in messages.
    fn what(&self) -> &'static str {
        match self {
            Self::Passphrase(_) => "the passphrase that is given",
            Self::KeyFile(_) => "the key file that is given",
            Self::Age(_) => "what the age identities open",
            Self::AwsKms(_) => "what AWS KMS unwraps",
            Self::Command(_) => "what the command unwraps",
            Self::Clear => "\"unencrypted\"",
        }
    }

    /// A key to seal with, and how it is had again.
    fn make(&self) -> Result<(Origin, Key), SealError> {
        let random = || Key::random().ok_or_else(|| SealError::Failed("there are no random bytes".to_owned()));
        match self {
            Self::Passphrase(_) => {
                let origin = passphrase::new_origin()?;
                let key = self.fetch(&origin)?.map_err(SealError::Failed)?;
                Ok((origin, key))
            }
            Self::KeyFile(key) => Ok((Origin::KeyFile { id: key.id() }, key.clone())),
            Self::Age(age) => {
                let key = random()?;
                Ok((age.wrap(&key)?, key))
            }
            Self::AwsKms(service) | Self::Command(service) => {
                let key = random()?;
                let wrapped = wait(service.wrap(key.bytes()))?;
                let origin = if matches!(self, Self::AwsKms(_)) { Origin::AwsKms { wrapped } } else { Origin::Command { wrapped } };
                Ok((origin, key))
            }
            Self::Clear => Err(SealError::Failed("there is no key".to_owned())),
        }
    }

    /// The key of this origin. The inner `Err` says why this way does not lead to it.
    fn fetch(&self, origin: &Origin) -> Result<Result<Key, String>, SealError> {
        match (self, origin) {
            (Self::Passphrase(passphrase), Origin::Passphrase { salt, memory, passes, lanes }) => {
                passphrase::derive(passphrase, salt, *memory, *passes, *lanes).map(Ok)
            }
            (Self::KeyFile(key), Origin::KeyFile { id }) if key.id() == *id => Ok(Ok(key.clone())),
            (Self::KeyFile(key), Origin::KeyFile { .. }) => Ok(Err(format!("the key file that is given has the id {}", key.id()))),
            (Self::Age(age), Origin::Age { wrapped }) => {
                Ok(age.unwrap(wrapped)?.ok_or_else(|| "none of the age identities that are given opens it".to_owned()))
            }
            (Self::AwsKms(service), Origin::AwsKms { wrapped }) | (Self::Command(service), Origin::Command { wrapped }) => {
                let bytes = wait(service.unwrap(wrapped))?;
                Ok(Key::new(&bytes).ok_or_else(|| format!("{} is no key", self.what())))
            }
            (Self::Clear, _) => Ok(Err("\"unencrypted\" opens nothing".to_owned())),
            (other, _) => Ok(Err(format!("{} does not fit that", other.what()))),
        }
    }
}

/// Waits for somebody's answer, wherever this is called. Once a run or less often; the thread keeps it apart from whatever drives the rest.
fn wait<T: Send>(answer: impl Future<Output = Result<T, SealError>> + Send) -> Result<T, SealError> {
    let failed = || SealError::Failed("the key could not be asked for".to_owned());
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|_| failed())?;
        runtime.block_on(answer)
    };
    std::thread::scope(|scope| scope.spawn(run).join().map_err(|_| failed())?)
}

impl Seal for Encryption {
    fn seal(&self, content: &Content, plain: Vec<u8>) -> Result<Vec<u8>, SealError> {
        if !self.encrypts() {
            return Ok(plain);
        }
        let (origin, key) = self.writing()?;
        envelope::seal(&key, &origin, content, plain)
    }

    fn open(&self, content: &Content, stored: &[u8]) -> Result<Vec<u8>, SealError> {
        if !is_sealed(stored) {
            let may_be_plain = !self.encrypts() || matches!(self.fallback, Some(Door::Clear));
            return if may_be_plain { Ok(stored.to_vec()) } else { Err(SealError::Plain) };
        }
        let envelope = Envelope::parse(stored)?;
        let key = self.key(&envelope)?;
        envelope.open(&key, content)
    }

    fn encrypts(&self) -> bool {
        !matches!(self.first, Door::Clear)
    }
}

#[cfg(test)]
#[path = "sealing_tests.rs"]
mod tests;
