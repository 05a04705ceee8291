//! Finds the test files: those that stand beside the configuration, then those in the folder for tests.

use karmaform_lang::SourceFile;
use karmaform_model::{Diagnostic, Diagnostics, nearest};

use crate::app::{App, Stop};
use crate::disk::reason;
use crate::project::{is_test, text_of};

/// The folder for tests that need not be there.
pub(crate) const USUAL: &str = "tests";
/// So do those of another tool, which are not read.
const OTHERS: [(&str, &str); 2] = [
    (".tftest.hcl", "Give it a name that ends in .kftest.hcl; what is written in it means the same."),
    (".tftest.json", "Give it a name that ends in .kftest.json; what is written in it means the same."),
];

/// Which of them are wanted.
pub(crate) struct Filter<'a> {
    /// The folder for tests.
    pub(crate) directory: &'a str,
    /// Only these files; all if there are none.
    pub(crate) files: &'a [String],
}

impl Filter<'_> {
    /// True if this file is to be run.
    pub(crate) fn wants(&self, path: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|f| plain(f) == path)
    }
}

/// The texts of all test files, wanted or not, in the order of their names.
///
/// # Errors
/// If they can't be read, or one that is wanted is not there.
pub(crate) fn discover(app: &App, filter: &Filter<'_>) -> Result<Vec<SourceFile>, Stop> {
    let mut others = Diagnostics::new();
    let names = names(app, filter.directory, &mut others)?;
    let mut wrong = Diagnostics::new();
    for file in filter.files {
        if !names.contains(&plain(file)) {
            let error = Diagnostic::error("Unknown test file", format!("-filter names \"{file}\", which is none of the test files."));
            wrong.push(match nearest(file, names.iter().map(String::as_str)) {
                Some(name) => error.with_hint(format!("Did you mean \"{name}\"?")),
                None if names.is_empty() => error.with_hint("There are none: their names end in .kftest.hcl or .kftest.json."),
                None => error.with_hint(format!("There are {}.", names.join(", "))),
            });
        }
    }
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    if !others.is_empty() && names.is_empty() {
        return Err(others.into());
    }
    names.iter().map(|name| text_of(app, name)).collect()
}

/// The same for who runs none of them, and so misses none.
///
/// # Errors
/// If they can't be read.
pub(super) fn discover_any(app: &App, directory: &str) -> Result<Vec<SourceFile>, Stop> {
    names(app, directory, &mut Diagnostics::new())?.iter().map(|name| text_of(app, name)).collect()
}

fn plain(file: &str) -> String {
    file.trim_start_matches("./").to_owned()
}

fn names(app: &App, directory: &str, others: &mut Diagnostics) -> Result<Vec<String>, Stop> {
    let mut names = names_in(app, ".", others)?;
    let directory = directory.trim_start_matches("./").trim_end_matches('/');
    let is_there = app.directory.join(directory).is_dir();
    if !is_there && directory != USUAL {
        let detail = format!("-test-directory names \"{directory}\", and there is no such folder beside the configuration.");
        return Err(Diagnostic::error("No folder for tests", detail).into());
    }
    if is_there && !directory.is_empty() && directory != "." {
        names.extend(names_in(app, directory, others)?);
    }
    names.sort();
    Ok(names)
}

fn names_in(app: &App, directory: &str, others: &mut Diagnostics) -> Result<Vec<String>, Stop> {
    let failed = |e: std::io::Error| {
        let detail = format!("The folder \"{directory}\" can't be listed: {}.", reason(&e));
        Stop::from(Diagnostic::error("Can't read the directory", detail))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(app.directory.join(directory)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(['.', '#']) || name.ends_with('~') || entry.path().is_dir() {
            continue;
        }
        let path = if directory == "." { name.clone() } else { format!("{directory}/{name}") };
        if is_test(&name) {
            names.push(path);
        } else if let Some((_, hint)) = OTHERS.iter().find(|(end, _)| name.ends_with(end)) {
            let error = Diagnostic::error("Test file of another form", format!("The file \"{path}\" is not read as it is."));
            others.push(error.with_hint(*hint));
        }
    }
    Ok(names)
}
