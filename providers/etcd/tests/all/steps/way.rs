//! All places where a run of a plan may stop, met on one way: to begin anew for each of them does the same first steps again and again.

use super::run::Random;
use super::{Outside, Plan, Policy, Stage, Stop};

/// How far a run has come.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) policy: Policy,
    /// How many steps it has done, failed ones among them.
    pub(super) done: usize,
    pub(super) failures: Vec<String>,
    /// By step: it is still to be done.
    pub(super) open: Vec<bool>,
    /// By step: it has failed.
    pub(super) blocked: Vec<bool>,
    pub(super) random: Random,
}

impl Way {
    pub(super) fn new(plan: &Plan, policy: Policy) -> Self {
        let count = plan.graph.nodes.len();
        Self { policy, done: 0, failures: Vec::new(), open: vec![true; count], blocked: vec![false; count], random: Random::new(policy) }
    }
}

/// A run that stands before a step, or after the last one.
pub(crate) struct Halt<'a, W> {
    /// How many steps were done.
    pub(crate) at: usize,
    lab: &'a Stage<W>,
    plan: &'a Plan,
    way: &'a Way,
}

impl<W: Outside> Halt<'_, W> {
    /// It is killed here: what [`Stop::After`] leaves.
    pub(crate) fn killed(&self) -> Stage<W> {
        self.lab.clone()
    }

    /// A member crashes here, and it goes on: what [`Stop::CrashAfter`] leaves.
    pub(crate) fn crashed(&self, member: &str) -> Stage<W> {
        let mut lab = self.lab.clone();
        lab.go_on(self.plan, self.way.clone(), &Stop::CrashAfter(self.at, member.to_owned()), &mut |_, _| {});
        lab
    }
}

impl<W: Outside> Stage<W> {
    /// Runs a plan, and halts before each step and after the last one.
    pub(crate) fn halts(&self, plan: &Plan, policy: Policy, mut each: impl FnMut(&Halt<'_, W>)) {
        let mut lab = self.clone();
        lab.world.begin(plan.wanted.is_none());
        lab.go_on(plan, Way::new(plan, policy), &Stop::Never, &mut |lab, way| each(&Halt { at: way.done, lab, plan, way }));
    }
}
