//! What is to go wrong.

use karmaform_model::Diagnostic;

use crate::Place;

/// At which moment of a call it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before anything is done.
    Before,
    /// It is done, but the answer is lost.
    After,
    /// It never answers, and nothing was done: stands for a process that is killed before the call.
    HangBefore,
    /// It never answers, but it is done: stands for a process that is killed during the call.
    HangAfter,
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    which: Which,
    pub(crate) moment: Moment,
    retryable: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Which {
    Apply(usize),
    Observe(usize),
    ApplyTo(String, String),
    ObserveOf(String, String),
}

impl Fault {
    fn new(which: Which) -> Self {
        Self { which, moment: Moment::Before, retryable: false }
    }

    /// The `number`th apply of the world, counted from 1. Happens once.
    pub fn apply(number: usize) -> Self {
        Self::new(Which::Apply(number))
    }

    /// The `number`th observation of the world, counted from 1. Happens once.
    pub fn observe(number: usize) -> Self {
        Self::new(Which::Observe(number))
    }

    /// Every apply to the thing of this type and identity, until [`crate::World::heal`].
    pub fn apply_to(resource_type: &str, identity: &str) -> Self {
        Self::new(Which::ApplyTo(resource_type.to_owned(), identity.to_owned()))
    }

    /// Every observation of the thing of this type and identity, until [`crate::World::heal`].
    pub fn observe_of(resource_type: &str, identity: &str) -> Self {
        Self::new(Which::ObserveOf(resource_type.to_owned(), identity.to_owned()))
    }

    /// At this moment; [`Moment::Before`] unless said.
    #[must_use]
    pub fn at(mut self, moment: Moment) -> Self {
        self.moment = moment;
        self
    }

    /// The error says that it is worth another try.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    pub(crate) fn hits_apply(&self, number: usize, place: &Place) -> bool {
        match &self.which {
            Which::Apply(n) => *n == number,
            Which::ApplyTo(kind, identity) => *kind == place.resource_type && *identity == place.identity,
            Which::Observe(_) | Which::ObserveOf(..) => false,
        }
    }

    pub(crate) fn hits_observe(&self, number: usize, place: &Place) -> bool {
        match &self.which {
            Which::Observe(n) => *n == number,
            Which::ObserveOf(kind, identity) => *kind == place.resource_type && *identity == place.identity,
            Which::Apply(_) | Which::ApplyTo(..) => false,
        }
    }

    pub(crate) fn diagnostic(&self, place: &Place) -> Diagnostic {
        let what = match self.moment {
            Moment::Before | Moment::HangBefore => "nothing was done",
            Moment::After | Moment::HangAfter => "it was done, but the answer is lost",
        };
        let diagnostic = Diagnostic::error("Injected failure", format!("{place}: {what}."));
        if self.retryable { diagnostic.retryable() } else { diagnostic }
    }
}
