//! `fmt`: put configuration files into their usual form.

use std::path::{Component, Path, PathBuf};

use karmaform_lang::{SourceFile, syntax_errors};
use karmaform_model::{Diagnostic, Diagnostics};

use crate::app::{App, Ended};
use crate::disk::reason;
use crate::flags::boolean;
use crate::project::{CONFIGURATION, TESTS, VARIABLES, utf8};
use crate::ui::align::unified;

/// A file would change, with `-check`.
const WOULD_CHANGE: i32 = 3;
/// A file could not be read or parsed.
const BROKEN: i32 = 2;

/// Arguments of `fmt`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Files or directories; - for standard input
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Only say which files would change; exit code 3 if any
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    check: bool,
    /// Show what changes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    diff: bool,
    /// Also directories below
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    recursive: bool,
    /// Name the files that change
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    list: bool,
    /// Write the files that change
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    write: bool,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    if args.paths.iter().any(|p| p == "-") {
        return standard_input(app, args);
    }
    let mut wrong = Diagnostics::new();
    let mut files = Vec::new();
    let paths = if args.paths.is_empty() { vec![String::new()] } else { args.paths.clone() };
    for path in paths {
        if let Err(error) = gather(app, &seen_from(&app.directory, Path::new(&path)), args.recursive, &mut files) {
            wrong.push(error);
        }
    }
    files.sort();
    files.dedup();
    let mut has_changes = false;
    for file in files {
        match one(app, &file, args) {
            Ok(changed) => has_changes |= changed,
            Err(errors) => wrong.extend(errors),
        }
    }
    if wrong.has_errors() {
        app.show(&wrong);
        return Ok(BROKEN);
    }
    Ok(if has_changes && args.check { WOULD_CHANGE } else { 0 })
}

fn one(app: &mut App, file: &Path, args: &Args) -> Result<bool, Diagnostics> {
    let name = file.display().to_string();
    let failed = |why: &str| Diagnostics::from(Diagnostic::error("Can't format a file", format!("The file \"{name}\": {why}.")));
    let path = app.directory.join(file);
    let bytes = std::fs::read(&path).map_err(|e| failed(&reason(&e)))?;
    let text = utf8(bytes).map_err(|why| failed(&why))?;
    let formatted = formatted(app, &text, &name)?;
    // As Terraform: who wants nothing else of it gets the text, changed or not.
    if !args.list && !args.write && !args.diff && !args.check {
        app.output.print(&formatted);
    }
    if formatted == text {
        return Ok(false);
    }
    if args.list {
        app.output.print(&format!("{name}\n"));
    }
    if args.diff {
        app.output.print(&unified(&text, &formatted, &name, &app.theme));
    }
    if args.write && !args.check {
        std::fs::write(&path, formatted).map_err(|e| failed(&reason(&e)))?;
    }
    Ok(true)
}

fn standard_input(app: &mut App, args: &Args) -> Ended {
    let mut text = String::new();
    if std::io::Read::read_to_string(&mut app.output.stdin, &mut text).is_err() {
        return Err(Diagnostic::error("Can't format standard input", "It is not UTF-8 text.").into());
    }
    let formatted = match formatted(app, &text, "<stdin>") {
        Ok(formatted) => formatted,
        Err(errors) => {
            // Standard output is for the text alone.
            app.remark(&errors);
            app.show_errors(&errors);
            return Ok(BROKEN);
        }
    };
    let has_changes = formatted != text;
    if args.diff && has_changes {
        let text = unified(&text, &formatted, "<stdin>", &app.theme);
        app.output.print(&text);
    } else if !args.check {
        // Other than a file, what goes to a terminal or a pipe always ends its last line.
        let end = if formatted.ends_with('\n') { "" } else { "\n" };
        app.output.print(&format!("{formatted}{end}"));
    }
    Ok(if has_changes && args.check { WOULD_CHANGE } else { 0 })
}

/// A text in canonical layout. One that does not parse is left alone: what its tokens belong to can't be told.
fn formatted(app: &mut App, text: &str, name: &str) -> Result<String, Diagnostics> {
    let file = app.sources.add(SourceFile { path: name.to_owned(), text: text.to_owned() });
    let wrong = syntax_errors(file, text);
    if wrong.has_errors() {
        return Err(wrong);
    }
    karmaform_lang::format(text).map_err(|e| {
        Diagnostic::error("Can't format a file", format!("{name}, line {}: {}. The file was left as it is.", e.line, e.message)).into()
    })
}

/// The path as seen from the directory of the run, however it is written: `./a`, `b/../a` and the whole path are `a`. Where a link on the way makes that
/// something else, as written.
fn seen_from(directory: &Path, path: &Path) -> PathBuf {
    let whole = directory.join(path);
    let (base, parts) = (clean(directory), clean(&whole));
    let shared = base.iter().zip(&parts).take_while(|(a, b)| a == b).count();
    let seen: PathBuf = base.iter().skip(shared).map(|_| Component::ParentDir).chain(parts.into_iter().skip(shared)).collect();
    let is_same = match (whole.canonicalize(), directory.join(&seen).canonicalize()) {
        (Ok(meant), Ok(found)) => meant == found,
        // Nothing is there either way, or one of the two is something else.
        (meant, found) => meant.is_err() && found.is_err(),
    };
    if is_same { seen } else { path.to_owned() }
}

/// What a path is made of, without the detours in it.
fn clean(path: &Path) -> Vec<Component<'_>> {
    let mut kept: Vec<Component<'_>> = Vec::new();
    for component in path.components() {
        match (component, kept.last().copied()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                kept.pop();
            }
            _ => kept.push(component),
        }
    }
    kept
}

/// The files of a path, relative to the directory of the run.
fn gather(app: &App, path: &Path, recursive: bool, files: &mut Vec<PathBuf>) -> Result<(), Diagnostic> {
    let absolute = app.directory.join(path);
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => Diagnostic::error("Nothing to format", format!("There is nothing called \"{}\".", path.display()))
            .with_hint("Name a file, a directory, or - for standard input."),
        _ => Diagnostic::error("Can't read the directory", format!("The path \"{}\": {}.", path.display(), reason(&e))),
    };
    if !absolute.is_dir() {
        if !is_ours(path) {
            return Err(if absolute.exists() {
                Diagnostic::error(
                    "Not a configuration file",
                    format!("The file \"{}\" ends in none of .kf.hcl, .kfvars.hcl and .kftest.hcl.", path.display()),
                )
                .with_hint("To format any text: karmaform fmt - with the text as standard input.")
            } else {
                failed(std::io::ErrorKind::NotFound.into())
            });
        }
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(&absolute).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        let below = path.join(&name);
        let is_directory = entry.file_type().map_err(failed)?.is_dir();
        if is_directory && recursive {
            gather(app, &below, true, files)?;
        } else if !is_directory && is_ours(&below) {
            files.push(below);
        }
    }
    Ok(())
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    [CONFIGURATION, VARIABLES, TESTS].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_over_a_link_is_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir_all(folder.join("here/below")).unwrap();
        std::fs::create_dir_all(folder.join("there/below")).unwrap();
        std::os::unix::fs::symlink(folder.join("there/below"), folder.join("here/link")).unwrap();
        for file in ["here/a.kf.hcl", "there/a.kf.hcl", "there/b.kf.hcl"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        let here = folder.join("here");
        let seen = |path: &str| seen_from(&here, Path::new(path)).display().to_string();
        for path in ["a.kf.hcl", "./a.kf.hcl", "below/../a.kf.hcl", "../here/a.kf.hcl"] {
            assert_eq!(seen(path), "a.kf.hcl", "{path}");
        }
        assert_eq!(seen(here.join("a.kf.hcl").to_str().unwrap()), "a.kf.hcl");
        for path in ["link/../a.kf.hcl", "link/../b.kf.hcl"] {
            assert_eq!(seen(path), path, "it is in the folder that the link leads to");
        }
        assert_eq!(seen("below/../none.kf.hcl"), "none.kf.hcl");
        // Nor is anything beside a link beside what that leads to.
        let linked = here.join("link");
        let whole = here.join("a.kf.hcl");
        assert_eq!(seen_from(&linked, &whole), whole);
    }
}
