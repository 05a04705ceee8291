//! What took how long in a run: its phases and steps, and which of them the whole run had to wait for. Written and sent on request ([`asked`]).

mod asked;
mod chrome;
mod collector;
mod otlp;
mod page;
mod variables;

use std::collections::BTreeMap;

use karmaform_engine::Asked;
use karmaform_model::{Catalog, Event, EventKind, Plan, PlannedResource, Step, StepKind};

use crate::app::{Ended, Stop};
use crate::ui::attributes::connection_of;
use crate::ui::progress::subject;
use crate::ui::resource::schema_of;
pub(crate) use asked::{ProfileFlags, profiled, send};

/// The phase in which somebody is asked.
pub(crate) const APPROVAL: &str = "approval";
/// A retry says so in these words.
const AGAIN: &str = "trying again";

/// A part of a run. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// `plan`
    pub(crate) name: &'static str,
    /// When it began.
    pub(crate) begin: u64,
    /// When it ended.
    pub(crate) end: u64,
}

/// The whole run. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    /// `plan`
    pub(crate) command: &'static str,
    /// When it began.
    pub(crate) begin: u64,
    /// When it ended.
    pub(crate) end: u64,
    /// With this exit code.
    pub(crate) code: i32,
    /// What kept it from its end, in words without a name or a value.
    pub(crate) failed: Option<String>,
}

/// A step. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    /// The resource, or the composite with the gate.
    pub(crate) name: String,
    /// `create`; `wait` for a gate.
    pub(crate) what: &'static str,
    /// The resource type, or the composite's.
    pub(crate) resource_type: String,
    /// The host or cluster that it works on.
    pub(crate) place: Option<String>,
    /// When it began.
    pub(crate) begin: u64,
    /// When it ended.
    pub(crate) end: u64,
    /// How often it was tried.
    pub(crate) attempts: usize,
    /// What it waited for, and since when.
    pub(crate) waits: Vec<(u64, String)>,
    /// Why it failed.
    pub(crate) failed: Option<String>,
    /// Place in [`Profile::steps`] of the one that it had to wait for longest.
    pub(crate) held_by: Option<usize>,
}

impl Timed {
    /// How long it took, in milliseconds.
    pub(crate) fn took(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// Once it is over.
    pub(crate) whole: Option<Whole>,
    /// In their order.
    pub(crate) phases: Vec<Phase>,
    /// Who was asked what is there, in the order in which that began.
    pub(crate) asked: Vec<Asked>,
    /// In the order in which they began.
    pub(crate) steps: Vec<Timed>,
    /// Places of the steps by their ids.
    places: BTreeMap<usize, usize>,
}

impl Profile {
    /// The run is over.
    pub(crate) fn over(&mut self, command: &'static str, begin: u64, end: u64, ended: &Ended) {
        let (code, failed) = match ended {
            Ok(code) | Err(Stop::Code(code)) => (*code, None),
            Err(Stop::Because(why)) => (1, why.iter().find(|d| d.is_error()).map(|d| d.summary.clone())),
        };
        self.whole = Some(Whole { command, begin, end: end.max(begin), code, failed });
    }

    /// A phase that ended now.
    pub(crate) fn phase(&mut self, name: &'static str, begin: u64, end: u64) {
        self.phases.push(Phase { name, begin, end: end.max(begin) });
    }

    /// These were asked. What an earlier look had asked already may be among them again.
    pub(crate) fn ask(&mut self, asked: &[Asked]) {
        self.asked.extend_from_slice(asked);
        self.asked.sort();
        self.asked.dedup();
    }

    /// Something happened to a step.
    pub(crate) fn event(&mut self, event: &Event, plan: &Plan, catalog: &Catalog, now: u64) {
        if matches!(event.kind, EventKind::Started) {
            self.places.insert(event.step, self.steps.len());
            self.steps.push(timed(event, plan, catalog, now));
            return;
        }
        let Some(step) = self.places.get(&event.step).and_then(|place| self.steps.get_mut(*place)) else { return };
        // A clock may be set back.
        step.end = now.max(step.begin);
        match &event.kind {
            EventKind::Waiting(Some(text)) => {
                step.attempts += usize::from(text.starts_with(AGAIN));
                if step.waits.last().is_none_or(|(_, last)| last != text) {
                    step.waits.push((now, text.clone()));
                }
            }
            EventKind::Failed(error) => step.failed = Some(error.summary.clone()),
            _ => {}
        }
    }

    /// Finds out who held up whom. A step's id is larger than those of all that it comes after, so once over the plan is enough, however many
    /// meet in one of the steps that only join others.
    pub(crate) fn connect(&mut self, steps: &[Step]) {
        let mut last: Vec<Option<usize>> = Vec::with_capacity(steps.len());
        for (id, step) in steps.iter().enumerate() {
            let before = step.after.iter().filter_map(|d| *last.get(*d)?).max_by_key(|place| self.steps.get(*place).map(|s| s.end));
            let own = self.places.get(&id).copied();
            if let Some(step) = own.and_then(|place| self.steps.get_mut(place)) {
                step.held_by = before;
            }
            last.push(own.or(before));
        }
    }

    /// The chain of steps that the whole run had to wait for, first to last.
    pub(crate) fn critical(&self) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut next = (0..self.steps.len()).max_by_key(|place| self.steps.get(*place).map(|s| s.end));
        while let Some(place) = next {
            chain.push(place);
            next = self.steps.get(place).and_then(|s| s.held_by);
        }
        chain.reverse();
        chain
    }

    /// How long it took, but for waiting for a person.
    pub(crate) fn took(&self) -> u64 {
        let (begin, end) = self.span();
        let asked: u64 = self.phases.iter().filter(|p| p.name == APPROVAL).map(|p| p.end - p.begin).sum();
        (end - begin).saturating_sub(asked)
    }

    /// When it began and ended.
    pub(crate) fn span(&self) -> (u64, u64) {
        let begins =
            self.phases.iter().map(|p| p.begin).chain(self.steps.iter().map(|s| s.begin)).chain(self.whole.iter().map(|w| w.begin));
        let ends = self.phases.iter().map(|p| p.end).chain(self.steps.iter().map(|s| s.end)).chain(self.whole.iter().map(|w| w.end));
        let begin = begins.min().unwrap_or(0);
        (begin, ends.max().unwrap_or(0).max(begin))
    }
}

fn timed(event: &Event, plan: &Plan, catalog: &Catalog, now: u64) -> Timed {
    let planned = match plan.steps.get(event.step).map(|s| &s.kind) {
        Some(StepKind::Change { resource, .. } | StepKind::Finish { resource }) => plan.resources.get(*resource),
        _ => None,
    };
    Timed {
        name: subject(event),
        what: event.action.map_or("wait", |action| crate::ui::json::plan::actions(action).last().copied().unwrap_or_default()),
        resource_type: planned.map_or_else(|| event.address.kind.clone(), |r| r.resource_type.clone()),
        place: planned.and_then(|r| place(r, catalog)),
        begin: now.saturating_sub(event.elapsed),
        end: now,
        attempts: 1,
        waits: Vec::new(),
        failed: None,
        held_by: None,
    }
}

fn place(resource: &PlannedResource, catalog: &Catalog) -> Option<String> {
    let object = resource.change.after().or_else(|| resource.change.before())?;
    connection_of(schema_of(catalog, resource.address.mode, &resource.resource_type)?, object)
}

/// `0.4 s`, `12 s`, `3 min 20 s`
pub(crate) fn long(milliseconds: u64) -> String {
    match milliseconds {
        0..10_000 => format!("{}.{} s", milliseconds / 1000, milliseconds / 100 % 10),
        10_000..120_000 => format!("{} s", milliseconds / 1000),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` and `b` meet in a join; `c` comes after it. `b` takes longer. `d` is alone.
    pub(super) fn profile() -> Profile {
        let mut profile = Profile::default();
        profile.phase("plan", 1_000, 2_000);
        for (place, (name, begin, end)) in
            [("x.a", 2_000, 3_000), ("x.b", 2_000, 5_000), ("x.d", 2_100, 4_000), ("x.c", 5_000, 9_500)].into_iter().enumerate()
        {
            let id = [0, 1, 4, 3][place];
            profile.places.insert(id, place);
            let place = (name == "x.c").then(|| "10.0.0.1:22".to_owned());
            profile.steps.push(Timed {
                name: name.into(),
                what: "create",
                resource_type: "x".into(),
                place,
                begin,
                end,
                attempts: 1,
                waits: vec![(begin + 100, "a <port>".into())],
                failed: (name == "x.d").then(|| "Refused".into()),
                held_by: None,
            });
        }
        let step = |after: &[usize]| Step { kind: StepKind::Join, after: after.to_vec() };
        profile.connect(&[step(&[]), step(&[]), step(&[0, 1]), step(&[2]), step(&[])]);
        profile
    }

    #[test]
    fn the_chain_that_all_waited_for_is_found_through_joins() {
        let profile = profile();
        let names: Vec<&str> = profile.critical().iter().map(|place| profile.steps[*place].name.as_str()).collect();
        assert_eq!(names, ["x.b", "x.c"]);
        assert_eq!(profile.span(), (1_000, 9_500));
    }

    #[test]
    fn who_is_asked_takes_the_time_he_likes() {
        let mut profile = Profile::default();
        profile.phase("decide", 1_000, 2_000);
        profile.phase(APPROVAL, 2_000, 62_000);
        profile.phase("apply", 62_000, 65_000);
        assert_eq!(profile.took(), 4_000);
        // A clock that was set back.
        profile.phase("apply", 65_000, 3_000);
        assert_eq!(profile.took(), 4_000);
    }

    #[test]
    fn times_are_read_easily() {
        assert_eq!([40, 1_250, 12_900, 200_000].map(long), ["0.0 s", "1.2 s", "12 s", "3 min 20 s"]);
    }
}
