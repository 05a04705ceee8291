//! How tests go, told to people and to programs.

use karmaform_model::Diagnostics;

use super::{FileReport, Shown, Status};
use crate::app::App;
use crate::ui::style::Tone;

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Starting,
    Teardown,
    Complete,
}

impl Progress {
    fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Teardown => "teardown",
            Self::Complete => "complete",
        }
    }
}

/// How many runs ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) errored: usize,
    pub(crate) skipped: usize,
    /// Something went wrong that was in no run.
    pub(crate) is_unclean: bool,
    /// A signal came before all was run.
    pub(crate) is_interrupted: bool,
}

impl Tally {
    /// Of all files.
    pub(crate) fn of(reports: &[FileReport]) -> Self {
        let mut tally = Self::default();
        for report in reports {
            let count = |status: Status| report.runs.iter().filter(|r| r.status == status).count();
            tally.passed += count(Status::Passed);
            tally.failed += count(Status::Failed);
            tally.errored += count(Status::Errored);
            tally.skipped += count(Status::Skipped);
            tally.is_unclean |= report.status == Status::Errored && count(Status::Errored) == 0;
        }
        tally
    }

    /// True if all is well.
    pub(crate) fn is_success(&self) -> bool {
        self.failed + self.errored == 0 && !self.is_unclean && !self.is_interrupted
    }

    fn text(&self) -> String {
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        let Self { passed, failed, errored, .. } = self;
        let word = if self.is_success() { "Success!" } else { "Failure!" };
        let ended = if self.is_interrupted { ", and a signal has ended it" } else { "" };
        let left = if self.is_unclean { ", and not all of it could be undone" } else { "" };
        format!("{word} {passed} passed, {} failed{skipped}{left}{ended}.", failed + errored)
    }
}

/// What there is to run.
pub(crate) fn found(app: &mut App, files: &[(String, Vec<String>)]) {
    app.tell(|stream| stream.tests_found(files));
}

/// A file begins, ends, or is cleaned up after.
pub(super) fn tell_file(app: &mut App, path: &str, progress: Progress, status: Status) {
    app.tell(|stream| stream.test_file(path, progress.word(), status.word()));
    let text = match progress {
        Progress::Starting => "in progress".to_owned(),
        Progress::Teardown => "tearing down".to_owned(),
        Progress::Complete => word(app, status),
    };
    app.say(&format!("{path}... {text}\n"));
}

/// A run begins, or ends with a status.
pub(super) fn tell_run(app: &mut App, path: &str, name: &str, status: Option<Status>, elapsed: u64) {
    app.tell(|stream| stream.test_run(path, name, status.map(Status::word), elapsed));
    if let Some(status) = status {
        let text = word(app, status);
        app.say(&format!("  run \"{name}\"... {text}\n"));
    }
}

/// What a run made begins to be taken away: for programs alone.
pub(super) fn tell_run_teardown(app: &mut App, path: &str, name: &str) {
    app.tell(|stream| stream.test_run_teardown(path, name));
}

/// What a run plans, or the state that it left.
pub(super) fn tell_shown(app: &mut App, path: &str, name: &str, shown: &Shown) {
    match shown {
        Shown::Nothing => {}
        Shown::Text(text) => app.say(&format!("\n{}\n", text.trim_end())),
        Shown::Plan(_) | Shown::State(_) => app.tell(|stream| stream.test_shown(shown, path, name)),
    }
}

fn word(app: &App, status: Status) -> String {
    match status {
        Status::Passed => app.theme.paint(Tone::Add, "pass"),
        Status::Failed | Status::Errored => app.theme.paint(Tone::Remove, "fail"),
        Status::Skipped => app.theme.paint(Tone::Faint, "skip"),
    }
}

/// What is said of a file or a run.
pub(super) fn show(app: &mut App, diagnostics: &Diagnostics, path: &str, run: Option<&str>) {
    if !app.lines.only {
        return app.show(diagnostics);
    }
    let sources = std::mem::take(&mut app.sources);
    for diagnostic in diagnostics.iter() {
        app.tell(|stream| stream.test_diagnostic(diagnostic, &sources, path, run));
    }
    app.sources = sources;
}

/// The last line.
pub(crate) fn summary(app: &mut App, tally: Tally) {
    let text = tally.text();
    app.tell(|stream| stream.test_summary(&text, tally));
    let (tone, first) = if tally.is_success() { (Tone::Add, "Success!") } else { (Tone::Remove, "Failure!") };
    let text = match text.strip_prefix(first) {
        Some(rest) => format!("{}{rest}", app.theme.strong(tone, first)),
        None => text,
    };
    app.say(&format!("\n{text}\n"));
}
