//! `test`: run the test files of a configuration.

use std::sync::Arc;

use karmaform_lang::{Config, MISSING_VARIABLE, SourceFile, Sources, TestFile, read_tests};
use karmaform_model::{Diagnostic, Diagnostics, FileId, Object};

use crate::app::{App, Ended, Stop, VERSION};
use crate::disk::{Disk, reason, write_replaced};
use crate::flags::{ParallelismFlags, VariableFlags, boolean};
use crate::project::{HERE, Loading, context, load_for_tests, load_sources, texts};
use crate::testing::{Filter, Suite, Tally, discover, found, junit, summary, test};

/// What is said of a value that a variable refuses. A run may give another one.
const REFUSED: &str = "Invalid value for a variable";

/// Arguments of `test`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only this test file. May be repeated
    #[arg(long, value_name = "FILE", action = clap::ArgAction::Append)]
    filter: Vec<String>,
    /// The folder for tests, beside the configuration
    #[arg(long, value_name = "DIR", default_value = "tests")]
    test_directory: String,
    /// Also show what each run plans, or what is there after it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    verbose: bool,
    /// Lines of JSON instead of text
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    /// Also write what became of the tests into this file, as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit_xml: Option<String>,
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    parallelism: ParallelismFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    app.lines.only = args.json;
    app.tell(|stream| stream.version(VERSION));
    let filter = Filter { directory: &args.test_directory, files: &args.filter };
    let sources = discover(app, &filter)?;
    let mut files = read(app, sources)?;
    files.retain(|(source, _)| filter.wants(&source.path));
    let config = check(app, args)?;
    let names: Vec<_> = files.iter().map(|(s, t)| (s.path.clone(), t.runs.iter().map(|r| r.name.clone()).collect())).collect();
    found(app, &names);
    let suite = Suite { variables: args.variables.clone(), verbose: args.verbose, parallelism: usize::from(args.parallelism.most) };
    let mut reports = Vec::new();
    for (source, tests) in &files {
        let (base, given) = base(app, args, source, tests, &config)?;
        reports.push(test(app, &suite, source, tests, base, given));
    }
    let tally = Tally { is_interrupted: app.interrupt.is_set(), ..Tally::of(&reports) };
    summary(app, tally);
    if let Some(file) = &args.junit_xml {
        write_replaced(&app.directory.join(file), junit(&reports).as_bytes())
            .map_err(|e| Diagnostic::error("Report can't be written", format!("The file \"{file}\" can't be written: {}.", reason(&e))))?;
    }
    Ok(i32::from(!tally.is_success()))
}

/// Reads all files before anything is run, so that a mistake in the last one costs nothing; also those that nobody wants to run, as in
/// Terraform.
fn read(app: &mut App, sources: Vec<SourceFile>) -> Result<Vec<(SourceFile, TestFile)>, Stop> {
    let around = context(app, Arc::new(Disk::new(&app.directory)), HERE, app.now_seconds())?;
    let registry = Arc::clone(&app.wiring.registry);
    let mut files = Vec::new();
    let mut is_broken = false;
    for source in sources {
        let (tests, diagnostics) = read_tests(FileId(0), &source, &around, &registry);
        app.sources = Sources { files: vec![source.clone()] };
        app.show(&diagnostics);
        is_broken |= diagnostics.has_errors();
        files.push((source, tests));
    }
    if is_broken { Err(Stop::Code(1)) } else { Ok(files) }
}

/// What is wrong with the configuration whatever its variables are is told once.
fn check(app: &mut App, args: &Args) -> Result<Config, Stop> {
    let project = load_for_tests(app, &args.variables)?;
    let found = project.diagnostics.into_iter();
    let wrong: Diagnostics = found.filter(|d| d.is_error() && ![MISSING_VARIABLE, REFUSED].contains(&d.summary.as_str())).collect();
    if wrong.has_errors() { Err(wrong.into()) } else { Ok(project.config) }
}

/// The configuration with the values that hold for the whole file, and what is given to its variables from outside of the file, if
/// something in it is made of that. What is wrong with the values of the file is told by its first run.
fn base(app: &mut App, args: &Args, source: &SourceFile, tests: &TestFile, config: &Config) -> Result<(Config, Object), Stop> {
    let how = Loading { ask: false, now: app.now_seconds(), directory: HERE };
    let (sources, mut inputs) = texts(app, HERE, source, &args.variables)?;
    let files = sources.files.len();
    let mut given = Object::new();
    if !tests.used().is_empty() {
        given = load_sources(app, sources.clone(), files, inputs.clone(), how)?.config.given();
    }
    drop(tests.variables(&mut inputs, config, &given, None));
    Ok((load_sources(app, sources, files, inputs, how)?.config, given))
}
