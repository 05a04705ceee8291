//! What is not as it should be, and why: changed outside, missing, extra, not applied yet, about to decay, out of reach. Whatever is here was handed
//! no door that writes: providers by their looking half, the state by a view of it.

mod backups;
mod compare;
mod decay;
mod findings;
mod ignore;
mod look;
mod news;
pub(crate) mod report;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Diagnostics, Span};

use crate::planning::halted;
use crate::ui::style::Tone;
pub(crate) use backups::{look_for, noted};
pub(crate) use findings::findings;
pub(crate) use ignore::{Rule, apply_rules, rules_of};
pub(crate) use look::{Cut, Looked, Sight, look};
pub(crate) use news::{News, Past, news, past};

/// In which way something is not as it should be. In the order in which a report names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It is there, and not as it was made.
    Changed,
    /// It was made, and is not there.
    Missing,
    /// It has the marks of what karmaform made, and is in no state.
    Extra,
    /// The configuration says something that was not applied yet.
    Unapplied,
    /// It is as it was made, and will not stay well by itself.
    Decay,
    /// It could not be looked at: nothing is known of it.
    Unreachable,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [Self::Changed, Self::Missing, Self::Extra, Self::Unapplied, Self::Decay, Self::Unreachable];

    /// Its name in every report.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Unapplied => "unapplied",
            Self::Decay => "decay",
            Self::Unreachable => "unreachable",
        }
    }

    /// What it means, for who reads it the first time.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Changed => "changed outside of karmaform",
            Self::Missing => "deleted outside of karmaform",
            Self::Extra => "marked as karmaform's, and in no state",
            Self::Unapplied => "in the configuration and not applied yet",
            Self::Decay => "as it should be, and in need of care",
            Self::Unreachable => "could not be looked at",
        }
    }

    /// How it is marked.
    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Changed | Self::Extra | Self::Unapplied | Self::Decay => Tone::Change,
            Self::Missing | Self::Unreachable => Tone::Remove,
        }
    }

    /// Several may be told of one thing: a report that names them needs a part's name, too.
    pub(crate) fn comes_in_numbers(self) -> bool {
        matches!(self, Self::Extra | Self::Decay)
    }

    /// True if the world, or the state, is not as the configuration says.
    pub(crate) fn is_drift(self) -> bool {
        matches!(self, Self::Changed | Self::Missing | Self::Extra | Self::Unapplied)
    }
}

/// One part of a thing that is not as it should be. The texts hold no secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// `manifest.spec.replicas`
    pub(crate) path: String,
    /// As it is; `None`: not there.
    pub(crate) is: Option<String>,
    /// As it should be; `None`: not there.
    pub(crate) should: Option<String>,
    /// Nobody writes it: it only tells of the thing, and changes with what is written.
    pub(crate) follows: bool,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// In which way.
    pub(crate) kind: Kind,
    /// What.
    pub(crate) address: Address,
    /// Its resource type.
    pub(crate) resource_type: String,
    /// What is to be said of it, in a sentence.
    pub(crate) says: String,
    /// The parts.
    pub(crate) differences: Vec<Difference>,
    /// The rule that says that it does not matter.
    pub(crate) ignored: Option<String>,
    /// An earlier look did not tell it; `None`: none was named.
    pub(crate) is_new: Option<bool>,
    /// Where its block stands, if there is one.
    pub(crate) span: Option<Span>,
}

/// What a look at everything told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// By kind, and then by address.
    pub(crate) findings: Vec<Finding>,
    /// How many resources are in the state or the configuration.
    pub(crate) resources: usize,
    /// Everything that was looked at, with what it needs.
    pub(crate) graph: BTreeMap<Address, Vec<Address>>,
    /// What nobody knows the truth of, as it hangs on something that could not be looked at.
    pub(crate) unsure: BTreeSet<Address>,
    /// Only a part was looked at.
    pub(crate) is_partial: bool,
    /// Everything that is extra is told.
    pub(crate) knows_strays: bool,
    /// But for what is called so: how its names begin.
    pub(crate) unlisted: Vec<String>,
    /// Of which it could not be seen what somebody did to their pods.
    pub(crate) without_pods: BTreeSet<Address>,
    /// Ends of certificates, in seconds since 1970.
    pub(crate) certificates: Vec<(Address, i64)>,
    /// What is not told any more, if an earlier look was named.
    pub(crate) news: Option<News>,
    /// An error came before anything was looked at: all of the above is empty, as nothing is known.
    pub(crate) is_blind: bool,
    /// A signal came before everything was looked at: there may be more than is told.
    pub(crate) is_interrupted: bool,
    /// What else was met: why something could not be looked at, warnings.
    pub(crate) notes: Diagnostics,
    /// When it was looked, in seconds since 1970.
    pub(crate) now: i64,
}

impl Finding {
    /// Kind and address, and what tells it from others of the same.
    pub(crate) fn name(&self) -> String {
        let part = self.differences.first().filter(|_| self.kind.comes_in_numbers()).map(|d| format!(" {}", d.path));
        format!("{} {}{}", self.kind.word(), self.address, part.unwrap_or_default())
    }
}

impl Told {
    /// What there is to tell where an error came first. What an earlier look told (`past`, if it could be read) is neither gone nor seen again.
    pub(crate) fn blind(why: Diagnostics, past: Option<Vec<Past>>, now: i64) -> Self {
        let news = past.map(|carried| News { gone: Vec::new(), carried });
        let is_interrupted = why.iter().any(|d| *d == halted());
        Self { is_blind: true, is_interrupted, notes: why, news, now, ..Self::default() }
    }

    /// What counts: all that no rule says does not matter.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.ignored.is_none())
    }

    /// How many of a kind count.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.counted().filter(|f| f.kind == kind).count()
    }

    /// How many don't matter.
    pub(crate) fn ignored(&self) -> usize {
        self.findings.iter().filter(|f| f.ignored.is_some()).count()
    }

    /// The exit code: 0 nothing, 2 drift, 1 something could not be looked at, 3 nothing but decay. What was interrupted is no answer, whatever was seen.
    pub(crate) fn code(&self) -> i32 {
        if self.is_interrupted {
            1
        } else if self.counted().any(|f| f.kind.is_drift()) {
            2
        } else if self.is_blind || self.count(Kind::Unreachable) > 0 || self.notes.has_errors() {
            1
        } else if self.count(Kind::Decay) > 0 {
            3
        } else {
            0
        }
    }
}
