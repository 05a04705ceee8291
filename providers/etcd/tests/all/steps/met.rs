//! Places that were met before: a lab, what is wanted of it, what is planned for that, and where it led.
//!
//! A plan is a function of the lab and of what is wanted; a run is one of the lab, the plan and the order; and what is looked at after each of them is one of
//! the lab. None of them knows the time, chance or anything outside. So from two labs that are equal in all that they are made of, the whole world with all
//! its counters and the whole state, all ways are the same, and each is gone once. Runs that were stopped or disturbed at different steps soon meet.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use karmaform_model::{Diagnostics, Kind, Object};

use super::{Outside, Plan, Policy, Stage};

/// After so many plans there is nothing to do.
pub(crate) const MOST_PLANS: usize = 8;

/// How many places are kept: enough for all that one check meets, and no more memory than that.
const MOST: usize = 250;
/// Longer texts, as whole files, tell labs apart no better than the short ones do.
const SHORT: usize = 64;

/// A lab and what is wanted of it.
pub(crate) struct Place<W> {
    lab: Stage<W>,
    wanted: Option<Object>,
    /// What is planned there.
    pub(crate) plan: Result<Plan, Diagnostics>,
    ends: RefCell<Vec<End<W>>>,
}

/// Where runs in this order lead from a place.
struct End<W> {
    policy: Policy,
    /// Nothing is left to do there.
    lab: Rc<Stage<W>>,
    /// How many plans that takes.
    plans: usize,
}

/// All places that were met.
pub(crate) struct Met<W> {
    by_print: BTreeMap<u64, Vec<Rc<Place<W>>>>,
    count: usize,
}

impl<W> Met<W> {
    pub(crate) const fn new() -> Self {
        Self { by_print: BTreeMap::new(), count: 0 }
    }
}

impl<W: Outside> Met<W> {
    /// The place of this lab.
    pub(crate) fn place(&mut self, lab: &Stage<W>, wanted: Option<&Object>) -> Rc<Place<W>> {
        let print = print(lab);
        let is_it = |place: &&Rc<Place<W>>| place.wanted.as_ref() == wanted && place.lab == *lab;
        if let Some(known) = self.by_print.get(&print).and_then(|places| places.iter().find(is_it)) {
            return Rc::clone(known);
        }
        if self.count == MOST {
            (self.by_print, self.count) = (BTreeMap::new(), 0);
        }
        let mut plan = lab.plan(wanted);
        if let Ok(plan) = &mut plan {
            // The graph has them all, and there are thousands.
            plan.choreography.orderings = Vec::new();
        }
        let place = Rc::new(Place { lab: lab.clone(), wanted: wanted.cloned(), plan, ends: RefCell::default() });
        self.by_print.entry(print).or_default().push(Rc::clone(&place));
        self.count += 1;
        place
    }
}

/// Labs that differ have other ones of these most of the time.
fn print<W: Outside>(lab: &Stage<W>) -> u64 {
    let mut hasher = DefaultHasher::new();
    lab.world.print(&mut hasher);
    lab.state.children.len().hash(&mut hasher);
    for (_, object) in lab.state.children.values() {
        for value in object.values() {
            match &value.kind {
                Kind::String(text) if text.len() <= SHORT => text.hash(&mut hasher),
                _ => {}
            }
        }
    }
    hasher.finish()
}

/// The places on a way, and how it goes on.
pub(crate) struct Trail<W> {
    policy: Policy,
    places: Vec<Rc<Place<W>>>,
}

impl<W: Outside> Trail<W> {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, places: Vec::new() }
    }

    /// The way comes to another place. If it is known where it ends, and that this takes no more plans than any way may, that is where it is.
    pub(crate) fn comes_to(&mut self, place: Rc<Place<W>>) -> Option<Stage<W>> {
        let known = place.ends.borrow().iter().find(|end| end.policy == self.policy).map(|end| (Rc::clone(&end.lab), end.plans));
        let Some((end, plans)) = known.filter(|(_, plans)| self.places.len() + plans <= MOST_PLANS) else {
            self.places.push(place);
            return None;
        };
        self.is_noted(&end, plans);
        Some((*end).clone())
    }

    /// The last place has nothing left to do, and the lab is this.
    pub(crate) fn ends(&self, lab: &Stage<W>) {
        self.is_noted(&Rc::new(lab.clone()), 0);
    }

    fn is_noted(&self, end: &Rc<Stage<W>>, more: usize) {
        for (index, place) in self.places.iter().rev().enumerate() {
            place.ends.borrow_mut().push(End { policy: self.policy, lab: Rc::clone(end), plans: more + index + 1 });
        }
    }
}
