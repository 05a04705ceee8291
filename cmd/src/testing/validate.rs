//! What can be said of test files without running them: for `validate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_lang::{Run, TestFile, read_tests, validate_beside};
use karmaform_model::Diagnostics;

use super::discover::discover_any;
use super::run::{directory_of, no_directory};
use crate::app::{App, Stop};
use crate::disk::Disk;
use crate::project::{HERE, Project, context, load_beside};
use crate::reading::without_missing_variables;

/// What is wrong with the test files beside a configuration and in the folder for tests, and with the configurations that only they run.
///
/// # Errors
/// If files can't be read.
pub(crate) fn validate_tests(app: &mut App, directory: &str, project: &Project) -> Result<Diagnostics, Stop> {
    let around = context(app, Arc::new(Disk::new(&app.directory)), HERE, app.now_seconds())?;
    let registry = Arc::clone(&app.wiring.registry);
    let mut found = Diagnostics::new();
    let mut files = Vec::new();
    for source in discover_any(app, directory)? {
        let file = app.sources.add(source.clone());
        let (tests, diagnostics) = read_tests(file, &source, &around, &registry);
        found.extend(diagnostics);
        files.push(tests);
    }
    if without_missing_variables(project).has_errors() {
        return Ok(found);
    }
    let mut others = BTreeMap::new();
    for tests in &files {
        for run in &tests.runs {
            found.extend(run.wrong.clone());
            match no_directory(app, run) {
                Some(error) => found.push(error),
                None => found.extend(of_run(app, tests, run, project, &mut others)?),
            }
        }
    }
    Ok(found)
}

/// What is wrong with the configuration that a run is about, if it is another one, told once; and what is overridden and is not there.
fn of_run(
    app: &mut App,
    tests: &TestFile,
    run: &Run,
    project: &Project,
    others: &mut BTreeMap<String, Project>,
) -> Result<Diagnostics, Stop> {
    if run.module.is_none() {
        return Ok(tests.overrides_of_nothing(run, &project.config));
    }
    let directory = directory_of(run);
    let mut found = Diagnostics::new();
    if !others.contains_key(&directory) {
        let other = load_beside(app, &directory)?;
        let told = without_missing_variables(&other);
        let deeper = validate_beside(&other.config, &told).into_iter();
        found.extend(told);
        found.extend(deeper.filter(|d| d.summary != karmaform_lang::MISSING_VARIABLE));
        others.insert(directory.clone(), other);
    }
    if let Some(other) = others.get(&directory) {
        found.extend(tests.overrides_of_nothing(run, &other.config));
    }
    Ok(found)
}
