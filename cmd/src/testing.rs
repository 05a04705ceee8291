//! Runs the test files of a configuration. What they make is in states that live in memory, and goes with them.

mod discover;
mod expected;
mod file;
mod junit;
mod made_up;
mod memory;
mod mock;
mod mock_spec;
mod place;
mod run;
mod stages;
mod stand_ins;
mod told;
mod validate;
mod values;

use karmaform_model::Diagnostics;

pub(crate) use discover::{Filter, discover};
pub(crate) use file::{Suite, test};
pub(crate) use junit::junit;
pub(crate) use told::{Tally, found, summary};
pub(crate) use validate::validate_tests;
pub(crate) use values::Instances;

/// How a run or a file ended, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// It was not begun, as something before it went wrong.
    Skipped,
    /// All is as it should be.
    Passed,
    /// Something asserted does not hold.
    Failed,
    /// It could not be brought to its end.
    Errored,
}

impl Status {
    /// As Terraform writes it for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skip",
            Self::Passed => "pass",
            Self::Failed => "fail",
            Self::Errored => "error",
        }
    }
}

/// What became of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunReport {
    pub(crate) name: String,
    pub(crate) status: Status,
    /// What there was to say, already as text: file, line and all.
    pub(crate) says: String,
    /// The same in one line, of asserts that do not hold.
    pub(crate) summary: String,
    /// When it began, in milliseconds since 1970.
    pub(crate) began: u64,
    /// Milliseconds.
    pub(crate) elapsed: u64,
}

/// What became of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileReport {
    pub(crate) path: String,
    pub(crate) status: Status,
    pub(crate) runs: Vec<RunReport>,
    /// What was said of the file as a whole.
    pub(crate) says: String,
}

/// How a run ended, and what there is to say and to show of it.
struct Ended {
    status: Status,
    /// Which asserts do not hold, in one line.
    summary: String,
    diagnostics: Diagnostics,
    shown: Shown,
}

/// What a run plans or made, if that is wanted.
pub(crate) enum Shown {
    Nothing,
    /// For people.
    Text(String),
    /// A plan for programs.
    Plan(serde_json::Value),
    /// A state for programs.
    State(serde_json::Value),
}
