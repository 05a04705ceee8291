//! What a world remembers, behind its lock.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Change, Object, Schema, same};

use crate::world::{ApplyHook, FillHook, GateHook, ObserveHook};
use crate::{Fault, Moment, Place};

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) schemas: BTreeMap<String, Schema>,
    pub(crate) data_schemas: BTreeMap<String, Schema>,
    pub(crate) things: BTreeMap<Place, Object>,
    pub(crate) data: Vec<(String, Object, Object)>,
    pub(crate) log: Vec<String>,
    pub(crate) applies: usize,
    pub(crate) observes: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) broken_hosts: BTreeSet<String>,
    pub(crate) repeat: bool,
    pub(crate) delay: u64,
    pub(crate) on_apply: Option<ApplyHook>,
    pub(crate) on_gate: Option<GateHook>,
    pub(crate) on_observe: Option<ObserveHook>,
    pub(crate) on_fill: Option<FillHook>,
    rounds: BTreeMap<Place, Round>,
}

#[derive(Default)]
struct Round {
    number: u64,
    last: Option<Change>,
}

impl Inner {
    /// Counts and logs an apply; gives what goes wrong with it.
    pub(crate) fn begin_apply(&mut self, verb: &str, place: &Place) -> Option<Fault> {
        self.applies += 1;
        let number = self.applies;
        let fault = self.faults.iter().find(|f| f.hits_apply(number, place)).cloned();
        self.note(verb, place, fault.as_ref());
        fault
    }

    /// Counts and logs an observation; gives what goes wrong with it.
    pub(crate) fn begin_observe(&mut self, place: &Place) -> Option<Fault> {
        self.observes += 1;
        let number = self.observes;
        let fault = self.faults.iter().find(|f| f.hits_observe(number, place)).cloned();
        self.note("observe", place, fault.as_ref());
        fault
    }

    fn note(&mut self, verb: &str, place: &Place, fault: Option<&Fault>) {
        let outcome = match fault.map(|f| f.moment) {
            None => "",
            Some(Moment::Before) => " (fails before)",
            Some(Moment::After) => " (fails after)",
            Some(Moment::HangBefore) => " (hangs before)",
            Some(Moment::HangAfter) => " (hangs after)",
        };
        self.log.push(format!("{verb} {place}{outcome}"));
    }

    /// Which round of values a change is for, and the thing whose values stay because the change was done before: by a repetition, or by
    /// a run that was not heard of again.
    pub(crate) fn round(&mut self, place: &Place, change: &Change, wants_values: bool) -> (u64, Option<Object>) {
        let existing = self.things.get(place).cloned();
        let round = self.rounds.entry(place.clone()).or_default();
        let repeated = existing.is_some() && (matches!(change, Change::Create { .. }) || round.last.as_ref() == Some(change));
        if wants_values && !repeated {
            round.number += 1;
        }
        round.last = Some(change.clone());
        (round.number, existing.filter(|_| repeated))
    }

    /// A thing is found at another place from now on.
    pub(crate) fn rename(&mut self, from: &Place, to: &Place) {
        if from != to
            && let Some(thing) = self.things.remove(from)
        {
            self.things.insert(to.clone(), thing);
        }
    }

    /// What was done to a place last does not count as repeated any more.
    pub(crate) fn forget_last(&mut self, place: &Place) {
        if let Some(round) = self.rounds.get_mut(place) {
            round.last = None;
        }
    }

    /// The results that a data source has for these arguments.
    pub(crate) fn answer(&self, data_source: &str, arguments: &Object) -> Option<Object> {
        let fits = |matching: &Object| matching.iter().all(|(n, v)| same(Some(v), arguments.get(n)));
        self.data.iter().rev().find(|(name, matching, _)| name == data_source && fits(matching)).map(|(_, _, results)| results.clone())
    }
}
