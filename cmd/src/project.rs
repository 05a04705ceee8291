//! Loads the configuration of a directory: which files, and with which values for variables.

pub(crate) mod given;

use std::path::Path;
use std::sync::Arc;

use karmaform_engine::{Expanded, Observed};
use karmaform_lang::{Config, Context, NothingKnown, OUTPUT_PRECONDITION, SourceFile, Sources, VariableInputs, VariableOrigin, load_with};
use karmaform_model::{Catalog, Diagnostic, Diagnostics};

use self::given::{add_automatic, add_environment, add_flags, add_surroundings, ask_for, left_aside};
use crate::app::{App, Stop, VERSION};
use crate::disk::{Disk, reason};
use crate::distinct::in_order;
use crate::expanding::Texts;
use crate::flags::VariableFlags;
use crate::workspace;

/// A configuration's files in HCL end so.
pub(crate) const CONFIGURATION: &str = ".kf.hcl";
/// Variable files in HCL end so.
pub(crate) const VARIABLES: &str = ".kfvars.hcl";
/// The same in JSON.
const CONFIGURATION_JSON: &str = ".kf.json";
const VARIABLES_JSON: &str = ".kfvars.json";
/// The directory of the run.
pub(crate) const HERE: &str = ".";

/// True for a file of a configuration, by its name. All others may hold secrets: values of variables.
pub(crate) fn is_configuration(name: &str) -> bool {
    name.ends_with(CONFIGURATION) || name.ends_with(CONFIGURATION_JSON)
}

/// Test files in HCL end so.
pub(crate) const TESTS: &str = ".kftest.hcl";
/// The same in JSON.
const TESTS_JSON: &str = ".kftest.json";

/// True for a file with tests, by its name.
pub(crate) fn is_test(name: &str) -> bool {
    name.ends_with(TESTS) || name.ends_with(TESTS_JSON)
}

/// True for a file whose lines may be shown with what is said of them.
pub(crate) fn is_shown(name: &str) -> bool {
    is_configuration(name) || is_test(name)
}

/// A loaded configuration.
pub(crate) struct Project {
    /// What it says.
    pub(crate) config: Config,
    /// What was found wrong with it, and warnings.
    pub(crate) diagnostics: Diagnostics,
    /// Those of them that are about the directory: they are found once, however often the texts are read.
    beside: Diagnostics,
    /// The files it read.
    pub(crate) files: Arc<Disk>,
    /// How many of the sources are configuration files; the rest are variable files.
    pub(crate) configuration_files: usize,
    /// What it was read from, if it has to be read again with what is there: something stands so often, or is imported by what, the text
    /// does not say.
    pub(crate) texts: Option<Arc<Texts>>,
    /// The same, if there is something of which nothing stands.
    absent: Option<Arc<Texts>>,
    /// What was seen to tell how often things stand.
    pub(crate) observed: Observed,
}

impl Project {
    /// The configuration, or all that is wrong with it. What is not known to stand how often is wrong, too; what is not known to be imported is
    /// not, as it is all the same to who goes by the text alone.
    ///
    /// # Errors
    /// If there is an error among the diagnostics.
    pub(crate) fn checked(mut self) -> Result<Self, Stop> {
        self.diagnostics.extend(self.config.open.clone());
        self.config.open_imports.clear();
        self.readable()
    }

    /// Goes on with what is known by now of how often things stand.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn take(&mut self, expanded: Expanded) -> Result<(), Diagnostics> {
        let Expanded { config, observed, mut wrong } = expanded;
        wrong.extend(self.beside.clone());
        if wrong.has_errors() {
            return Err(wrong);
        }
        (self.config, self.diagnostics, self.observed) = (config, wrong, observed);
        Ok(())
    }

    /// The same for who expands it with what is there.
    ///
    /// # Errors
    /// If there is an error among the diagnostics.
    pub(crate) fn readable(self) -> Result<Self, Stop> {
        if !self.diagnostics.has_errors() {
            return Ok(self);
        }
        let deeper = karmaform_lang::validate_beside(&self.config, &self.diagnostics);
        Err(in_order(self.diagnostics.into_iter().chain(deeper)).into())
    }

    /// The same for who plans, and is told what is wrong where nothing stands, too (`count = 0`), as by Terraform: it would be found only when
    /// somebody switches it on.
    ///
    /// # Errors
    /// If there is an error among the diagnostics, or what is wrong there.
    pub(crate) fn plannable(self, registry: &Catalog) -> Result<Self, Stop> {
        let mut project = self.readable()?;
        let Some(texts) = project.absent.take() else { return Ok(project) };
        let Texts { sources, inputs, context } = Arc::unwrap_or_clone(texts);
        let (config, _) = load_with(&sources, &inputs.any_values(), &context, registry, &NothingKnown);
        // What does not hold is told by the plan, if it is asked there.
        let is_told = |d: &Diagnostic| d.is_error() && d.summary != OUTPUT_PRECONDITION;
        let wrong: Diagnostics = karmaform_lang::validate(&config).into_iter().filter(is_told).collect();
        if wrong.has_errors() { Err(in_order(wrong).into()) } else { Ok(project) }
    }
}

/// Loads what is in the directory. `ask`: values of missing variables may be asked for.
///
/// # Errors
/// If there is nothing, or files can't be read. What is wrong inside them is in [`Project::diagnostics`].
pub(crate) fn load_directory(app: &mut App, flags: &VariableFlags, ask: bool) -> Result<Project, Stop> {
    some(load_if_any(app, flags, ask)?)
}

/// A project that has files.
fn some(project: Project) -> Result<Project, Stop> {
    if project.configuration_files > 0 {
        return Ok(project);
    }
    Err(Diagnostic::error(
        "No configuration files",
        "This directory holds no file that ends in .kf.hcl or .kf.json, so there is nothing to work on.",
    )
    .with_hint("Change into the directory of the configuration, or name it with -chdir=DIR before the command.")
    .into())
}

/// The same for tests.
///
/// # Errors
/// If there is nothing, or files can't be read. What is wrong inside them is in [`Project::diagnostics`].
pub(crate) fn load_for_tests(app: &mut App, flags: &VariableFlags) -> Result<Project, Stop> {
    some(load_here(app, flags, false, VariableInputs::default().for_tests())?)
}

/// The same for commands that have something to do even where there is no configuration: destroying what the state holds, for one.
///
/// # Errors
/// If files can't be read. What is wrong inside them is in [`Project::diagnostics`].
pub(crate) fn load_if_any(app: &mut App, flags: &VariableFlags, ask: bool) -> Result<Project, Stop> {
    load_here(app, flags, ask, VariableInputs::default())
}

/// The same, whatever the values of its variables are: none is held against its type and its rules, as in Terraform's `validate` and
/// `init`. A variable without a value is told all the same.
///
/// # Errors
/// If files can't be read. What is wrong inside them is in [`Project::diagnostics`].
pub(crate) fn load_unjudged(app: &mut App, flags: &VariableFlags) -> Result<Project, Stop> {
    load_here(app, flags, false, VariableInputs::default().unjudged())
}

/// The same, meant for whatever values its variables may have, to be held against that.
///
/// # Errors
/// If files can't be read. What is wrong inside them is in [`Project::diagnostics`].
pub(crate) fn load_for_any_values(app: &mut App, flags: &VariableFlags) -> Result<Project, Stop> {
    load_here(app, flags, false, VariableInputs::default().any_values())
}

fn load_here(app: &mut App, flags: &VariableFlags, ask: bool, mut inputs: VariableInputs) -> Result<Project, Stop> {
    let names = names_in(&app.directory)?;
    let mut sources = Sources::default();
    for name in names.iter().filter(|n| is_configuration(n)) {
        sources.add(text_of(app, name)?);
    }
    let configuration_files = sources.files.len();
    add_environment(app, &mut inputs);
    add_automatic(app, HERE, &mut sources, &mut inputs)?;
    add_flags(app, flags, &mut sources, &mut inputs)?;
    let now = app.now_seconds();
    let mut project = load_sources(app, sources, configuration_files, inputs, Loading { ask, now, directory: HERE })?;
    project.beside = names.iter().filter_map(|name| left_aside(&app.directory, name, flags)).collect();
    project.diagnostics.extend(project.beside.clone());
    Ok(project)
}

/// Loads what is in another directory, for any values of its variables. What was loaded before stays among the sources: diagnostics
/// of both can be shown together.
///
/// # Errors
/// If files can't be read. What is wrong inside them is in [`Project::diagnostics`].
pub(crate) fn load_beside(app: &mut App, directory: &str) -> Result<Project, Stop> {
    let mut sources = app.sources.clone();
    let mut inputs = VariableInputs::default().any_values();
    sources.ids().for_each(|file| inputs.aside(file));
    add_configuration(app, directory, &mut sources)?;
    let files = sources.files.len();
    let now = app.now_seconds();
    load_sources(app, sources, files, inputs, Loading { ask: false, now, directory })
}

/// How to load texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loading<'a> {
    /// Values of missing variables may be asked for.
    pub(crate) ask: bool,
    /// Seconds since 1970, for `plantimestamp()`.
    pub(crate) now: i64,
    /// Where the configuration stands, from the directory of the run.
    pub(crate) directory: &'a str,
}

/// Loads these texts.
///
/// # Errors
/// If a question is not answered.
pub(crate) fn load_sources(
    app: &mut App,
    sources: Sources,
    configuration_files: usize,
    mut inputs: VariableInputs,
    how: Loading<'_>,
) -> Result<Project, Stop> {
    app.sources = sources;
    let files = Arc::new(Disk::new(&app.directory));
    let context = context(app, files.clone(), how.directory, how.now)?;
    let registry = Arc::clone(&app.wiring.registry);
    let (mut config, mut diagnostics) = load_with(&app.sources, &inputs, &context, &registry, &NothingKnown);
    if how.ask && !config.missing_variables.is_empty() && app.can_ask(true) {
        for name in config.missing_variables.clone() {
            let variable = config.variables.get(&name);
            let description = variable.and_then(|v| v.description.clone());
            let value = ask_for(app, &name, description.as_deref(), variable.is_some_and(|v| v.marks().any()))?;
            inputs.text(name, value, VariableOrigin::CommandLine);
        }
        (config, diagnostics) = load_with(&app.sources, &inputs, &context, &registry, &NothingKnown);
    }
    let is_open = !config.open.is_empty() || !config.open_imports.is_empty();
    let is_absent = config.has_absent() && !diagnostics.has_errors();
    let texts = (is_open || is_absent).then(|| Arc::new(Texts { sources: app.sources.clone(), inputs, context }));
    let absent = texts.clone().filter(|_| is_absent);
    let texts = texts.filter(|_| is_open);
    app.sources.files.extend(config.module_files.iter().cloned());
    let (beside, observed) = (Diagnostics::new(), Observed::default());
    Ok(Project { config, diagnostics, beside, files, configuration_files, texts, absent, observed })
}

/// What expressions may ask of the outside, in the configuration of this directory.
///
/// # Errors
/// If the workspace can't be told.
pub(crate) fn context(app: &App, files: Arc<Disk>, directory: &str, now: i64) -> Result<Context, Stop> {
    Ok(Context {
        files,
        now,
        directory: directory.to_owned(),
        working_directory: app.directory.display().to_string(),
        workspace: workspace::current(app)?,
        home: app.wiring.home.as_ref().map(|h| h.display().to_string()),
        tool_version: VERSION.to_owned(),
    })
}

/// The texts of a configuration in a directory, and what gives values to its variables, from the directory of the run. `aside`: a text that
/// is no part of it, and is the first.
///
/// # Errors
/// If files can't be read.
pub(crate) fn texts(app: &App, directory: &str, aside: &SourceFile, flags: &VariableFlags) -> Result<(Sources, VariableInputs), Stop> {
    let (mut sources, mut inputs) = (Sources::default(), VariableInputs::default().for_tests());
    inputs.aside(sources.add(aside.clone()));
    add_configuration(app, directory, &mut sources)?;
    add_surroundings(app, &mut sources, &mut inputs)?;
    add_flags(app, flags, &mut sources, &mut inputs)?;
    // Those beside a test that stands in a folder for tests are for the tests there, and win over all that is for others too.
    if let Some((folder, _)) = aside.path.rsplit_once('/') {
        add_automatic(app, folder, &mut sources, &mut inputs)?;
    }
    Ok((sources, inputs))
}

/// The configuration files of a directory.
fn add_configuration(app: &App, directory: &str, sources: &mut Sources) -> Result<(), Stop> {
    for name in names_in(&app.directory.join(directory))?.iter().filter(|n| is_configuration(n)) {
        let path = if directory == HERE { name.clone() } else { format!("{directory}/{name}") };
        sources.add(text_of(app, &path)?);
    }
    Ok(())
}

/// All names in a directory that a configuration may be made of, sorted.
fn names_in(directory: &Path) -> Result<Vec<String>, Stop> {
    let failed = |e: std::io::Error| {
        Stop::from(Diagnostic::error(
            "Can't read the directory",
            format!("The directory of the configuration can't be listed: {}.", reason(&e)),
        ))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = is_configuration(&name) || name.ends_with(VARIABLES) || name.ends_with(VARIABLES_JSON);
        let is_left_over = name.starts_with(['.', '#']) || name.ends_with('~');
        if is_ours && !is_left_over && !entry.path().is_dir() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The text of a file.
///
/// # Errors
/// If it can't be read.
pub(crate) fn text_of(app: &App, name: &str) -> Result<SourceFile, Stop> {
    let failed = |why: &str| {
        let detail = format!("The file \"{name}\" can't be read: {why}.");
        Stop::from(Diagnostic::error("Can't read a file", detail))
    };
    let bytes = std::fs::read(app.directory.join(name)).map_err(|e| failed(&reason(&e)))?;
    let text = utf8(bytes).map_err(|why| failed(&why))?;
    Ok(SourceFile { path: name.to_owned(), text })
}

/// Bytes as text.
///
/// # Errors
/// Which line is none.
pub(crate) fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        format!("line {line} is not UTF-8 text")
    })
}
