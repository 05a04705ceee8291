//! What was seen: an answer for every question that was asked. "Not there", "could not look" and "not asked" are three things.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use karmaform_model::{Address, Diagnostic, Object, Value};

use crate::walk::Learned;

/// What is known of one managed resource from looking at it.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is there, and like this. What the provider left out is as the state says.
    Present(Object),
    /// It is not there.
    Absent,
    /// It could not be looked at.
    Failed(Box<Diagnostic>),
    /// Nobody asked: nothing names it yet, it lives in the state alone, or the state was to be trusted.
    NotAsked,
}

/// One answer with its question.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Names the question; another question makes the answer stale.
    pub(crate) key: String,
    /// What named the thing.
    pub(crate) identity: Object,
    /// Whose it is, and which type.
    pub(crate) provider: String,
    pub(crate) resource_type: String,
    /// The attribute and value of the connection it was seen through.
    pub(crate) connection: Option<(&'static str, Value)>,
    pub(crate) answer: Answer,
    /// The connection itself failed: its name, the same for all who share it.
    pub(crate) broken: Option<String>,
}

/// What a data source was asked with, and what it said.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) arguments: Object,
    pub(crate) result: Result<Object, Diagnostic>,
    /// In milliseconds.
    pub(crate) took: u64,
}

/// Somebody was asked, and answered or not. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// When it began.
    pub begin: u64,
    /// When the answer was there.
    pub end: u64,
    /// The provider that asked.
    pub provider: String,
    /// The connection's id; of a data source that has none, or has it for its result, the address.
    pub whom: String,
    /// About how many things.
    pub things: usize,
    /// There was no answer to any of it.
    pub failed: bool,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub(crate) resources: BTreeMap<Address, Seen>,
    pub(crate) data: BTreeMap<Address, Reading>,
    /// What could not be looked at or read, and is an error for that.
    pub(crate) blind: BTreeSet<Address>,
    /// What nobody has answered for, as the look was over before: no trouble of its own.
    pub(crate) cut: BTreeSet<Address>,
    pub(crate) passes: usize,
    pub(crate) last: LastPass,
    pub(crate) asked: Vec<Asked>,
}

/// What the last pass learned, for the plan that follows: with the same inputs it would learn the same again. Taken once.
#[derive(Debug, Default)]
pub(crate) struct LastPass(Mutex<Option<Box<Learned>>>);

impl LastPass {
    pub(crate) fn of(learned: Learned) -> Self {
        Self(Mutex::new(Some(Box::new(learned))))
    }

    pub(crate) fn take(&self) -> Option<Box<Learned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A copy learns for itself.
impl Clone for LastPass {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Observed {
    /// What is known of a managed resource.
    pub fn answer(&self, address: &Address) -> &Answer {
        self.resources.get(address).map_or(&Answer::NotAsked, |s| &s.answer)
    }

    /// What is there, as it was seen.
    pub fn present(&self, address: &Address) -> Option<&Object> {
        match self.answer(address) {
            Answer::Present(object) => Some(object),
            _ => None,
        }
    }

    /// What was looked for and is not there.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &Address> {
        self.resources.iter().filter(|(_, seen)| seen.answer == Answer::Absent).map(|(address, _)| address)
    }

    /// True if the look was over before all were asked ([`crate::Runtime::enough`]).
    pub fn is_cut(&self) -> bool {
        !self.cut.is_empty()
    }

    /// True if nobody has answered for this resource or data source, as the look was over before that.
    pub fn is_unasked(&self, address: &Address) -> bool {
        let was_asked = || self.data.contains_key(address) || *self.answer(address) != Answer::NotAsked;
        self.cut.contains(address) || self.is_cut() && !was_asked()
    }

    /// How often the configuration was evaluated to find the questions.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Who was asked, in no order, and how long it took; not what lives in the state alone.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// What a data source said.
    pub fn data(&self, address: &Address) -> Option<&Object> {
        self.data.get(address).and_then(|r| r.result.as_ref().ok())
    }
}
