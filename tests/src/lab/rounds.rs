//! Rounds of faults: an apply that changes the members of an etcd, something that happens in the middle of it, and the same command again until it ends
//! well. A client at work beside it loses nothing that was acknowledged, and all that it was answered is as if one store had answered.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use super::client::Client;
use crate::parts::{kills, kills_from, tell};
use crate::project::Project;

/// Sizes and moments of the rounds that nobody asked for.
const USUAL_SEED: u64 = 7;
/// How long something lasts that ends again, in seconds.
const SECONDS: std::ops::Range<u64> = 2..12;
/// When it happens, in milliseconds after the apply began.
const MOMENTS: std::ops::Range<u64> = 500..9_000;

/// What is thrown for. The same rounds each time, unless `KARMAFORM_KILLS` says how many by chance (`make kill`: 50); `KARMAFORM_SEED` repeats a run.
pub(crate) struct Rounds<F: 'static> {
    pub(crate) count: usize,
    is_asked_for: bool,
    random: fastrand::Rng,
    faults: &'static [F],
    usual: &'static [(F, usize)],
    places: usize,
    size: usize,
}

/// One of them.
pub(crate) struct Round<F> {
    /// How many members there are to be.
    pub(crate) size: usize,
    pub(crate) fault: F,
    /// Where: two of the places.
    pub(crate) at: [usize; 2],
    pub(crate) lasts: Duration,
    moment: Duration,
}

impl<F: Copy + Debug> Rounds<F> {
    /// `usual` are the faults of the rounds that nobody asks for, each with its place; a member is at each of the places to begin with.
    pub(crate) fn new(faults: &'static [F], usual: &'static [(F, usize)], places: usize) -> Self {
        let is_asked_for = std::env::var_os("KARMAFORM_KILLS").is_some();
        let (count, random) = if is_asked_for { kills(usual.len()) } else { kills_from(usual.len(), USUAL_SEED) };
        Self { count, is_asked_for, random, faults, usual, places, size: places }
    }

    pub(crate) fn next(&mut self, number: usize) -> Round<F> {
        let sizes: Vec<usize> = (1..=self.places).filter(|s| *s != self.size).collect();
        self.size = sizes[self.random.usize(..sizes.len())];
        let by_chance = self.faults[self.random.usize(..self.faults.len())];
        let (moment, lasts) = (Duration::from_millis(self.random.u64(MOMENTS)), Duration::from_secs(self.random.u64(SECONDS)));
        let (place, other) = (self.random.usize(..self.places), self.random.usize(1..self.places));
        let (fault, one) = if self.is_asked_for { (by_chance, place) } else { self.usual[number % self.usual.len()] };
        Round { size: self.size, fault, at: [one, (one + other) % self.places], lasts, moment }
    }
}

/// How long things may take.
pub(crate) struct Limits {
    /// For how long the client may be kept from writing.
    pub(crate) gap: Duration,
    /// From the end of the fault until all is as it was: what it could cost to go on earlier is refused.
    pub(crate) over: Duration,
}

impl<F: Debug> Round<F> {
    /// `strike` does it, and ends it; `None`: karmaform itself ends.
    #[track_caller]
    pub(crate) fn run(&self, number: usize, project: &Project, client: &Client<'_>, limits: &Limits, strike: Option<impl FnOnce()>) {
        let Self { size, fault, at, lasts, moment } = self;
        let what = format!("fault {}: {fault:?} at {at:?} {moment:?} after the way to {size} members began, for {lasts:?}", number + 1);
        tell(&what);
        client.works_within(limits.gap, &what, || {
            let running = project.start(&["apply", "-auto-approve"]);
            std::thread::sleep(*moment);
            let (code, text) = match strike {
                None => (None, running.kill()),
                Some(strike) => {
                    strike();
                    let ended = running.end();
                    (ended.code, ended.text)
                }
            };
            assert!(matches!(code, None | Some(0 | 1)) && !text.contains("panicked"), "{what}\n{text}");
            let until = Instant::now() + limits.over;
            let mut again = project.run(&["apply", "-auto-approve"]);
            while again.code != Some(0) && Instant::now() < until {
                again = project.run(&["apply", "-auto-approve"]);
            }
            assert_eq!(again.code, Some(0), "{what}\n--- that run ---\n{text}\n--- the last after it ---\n{}", again.text);
        });
        project.no_changes();
        client.has_members(*size);
    }
}
