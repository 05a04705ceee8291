//! One test file: its runs in their order, and then everything that they made is undone.

use std::collections::BTreeMap;

use karmaform_lang::{Config, SourceFile, TestFile};
use karmaform_model::{Diagnostic, Diagnostics, Object};

use super::run::{Scene, run};
use super::told::{Progress, show, tell_file, tell_run, tell_run_teardown, tell_shown};
use super::{FileReport, RunReport, Status};
use crate::app::App;
use crate::flags::VariableFlags;
use crate::ui::diagnostics::errors_text;
use crate::ui::style::Theme;

/// How to test.
pub(crate) struct Suite {
    pub(crate) variables: VariableFlags,
    pub(crate) verbose: bool,
    pub(crate) parallelism: usize,
}

/// Runs a file. `base` is the configuration under test with the values that the file gives, `given` what is given from outside of it.
pub(crate) fn test(app: &mut App, suite: &Suite, source: &SourceFile, tests: &TestFile, base: Config, given: Object) -> FileReport {
    let path = source.path.as_str();
    // Whatever it is at: what was made is taken away again.
    let _asking = app.interrupt.ask_first();
    tell_file(app, path, Progress::Starting, Status::Skipped);
    let seed = (app.wiring.ids)();
    let mut scene = Scene { source, tests, suite, base, given, places: BTreeMap::new(), seed, ran: Object::new() };
    let mut report = FileReport { path: path.to_owned(), status: Status::Skipped, runs: Vec::new(), says: String::new() };
    let mut told = Vec::new();
    for one in &tests.runs {
        let began = app.now();
        // What can't be brought to its end leaves something that later runs know nothing of; that something is not as asserted, they do.
        if report.status == Status::Errored || app.interrupt.is_set() {
            tell_run(app, path, &one.name, Some(Status::Skipped), 0);
            let (says, summary) = (String::new(), String::new());
            report.runs.push(RunReport { name: one.name.clone(), status: Status::Skipped, says, summary, began, elapsed: 0 });
            continue;
        }
        tell_run(app, path, &one.name, None, 0);
        let ended = run(app, &mut scene, one);
        let elapsed = app.now().saturating_sub(began);
        tell_run(app, path, &one.name, Some(ended.status), elapsed);
        tell_shown(app, path, &one.name, &ended.shown);
        let news = without(ended.diagnostics, &mut told);
        show(app, &news, path, Some(&one.name));
        let says = said(app, &news);
        report.status = report.status.max(ended.status);
        let (status, summary) = (ended.status, ended.summary);
        report.runs.push(RunReport { name: one.name.clone(), status, says, summary, began, elapsed });
    }
    // As in Terraform: where there is nothing to run, nothing went wrong.
    if tests.runs.is_empty() {
        report.status = Status::Passed;
    }
    tell_file(app, path, Progress::Teardown, report.status);
    let mut places: Vec<_> = scene.places.into_values().collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.used));
    for mut place in places {
        if let Some(last) = &place.last {
            app.sources = last.sources.clone();
            if place.holds_something() {
                tell_run_teardown(app, path, &last.run);
            }
        }
        let wrong = place.destroy(app, suite.parallelism);
        if wrong.has_errors() {
            report.status = Status::Errored;
        }
        show(app, &wrong, path, None);
        report.says.push_str(&said(app, &wrong));
    }
    app.interrupt.leaves_nothing();
    tell_file(app, path, Progress::Complete, report.status);
    report
}

/// Warnings are told once in a file.
fn without(diagnostics: Diagnostics, told: &mut Vec<Diagnostic>) -> Diagnostics {
    let mut news = Diagnostics::new();
    for diagnostic in diagnostics {
        if diagnostic.is_error() || !told.contains(&diagnostic) {
            told.push(diagnostic.clone());
            news.push(diagnostic);
        }
    }
    news
}

/// The errors as text, for a file.
fn said(app: &App, diagnostics: &Diagnostics) -> String {
    errors_text(diagnostics.iter(), &app.sources, &Theme { width: None, color: false, ..app.theme.clone() })
}
