//! What gives values to the variables of a configuration: the environment, variable files, flags, and answers to questions.

use std::path::Path;

use karmaform_lang::{MISSING_VARIABLE, Sources, VariableInputs, VariableOrigin};
use karmaform_model::Diagnostic;

use super::{HERE, names_in, text_of};
use crate::app::{App, Stop};
use crate::flags::{VariableFlag, VariableFlags};
use crate::hidden::Hidden;

/// Read whenever they are there, in this order.
const DEFAULT_VARIABLES: [&str; 2] = ["karmaform.kfvars.hcl", "karmaform.kfvars.json"];
/// Read in the order of their names.
const AUTOMATIC_VARIABLES: [&str; 2] = [".auto.kfvars.hcl", ".auto.kfvars.json"];
/// Environment variables that give values.
const VARIABLE_PREFIX: &str = "KF_VAR_";

/// Values from the environment; the lowest precedence.
pub(super) fn add_environment(app: &App, inputs: &mut VariableInputs) {
    for (name, value) in &app.wiring.environment {
        if let Some(variable) = name.strip_prefix(VARIABLE_PREFIX) {
            inputs.text(variable, value.clone(), VariableOrigin::Environment(name.clone()));
        }
    }
}

/// The variable files of a folder that are read without being asked for.
///
/// # Errors
/// If a file can't be read.
pub(super) fn add_automatic(app: &App, folder: &str, sources: &mut Sources, inputs: &mut VariableInputs) -> Result<(), Stop> {
    let names = names_in(&app.directory.join(folder))?;
    let defaults = DEFAULT_VARIABLES.iter().flat_map(|d| names.iter().filter(move |n| n == d));
    let automatic = names.iter().filter(|n| AUTOMATIC_VARIABLES.iter().any(|end| n.ends_with(end)));
    for name in defaults.chain(automatic) {
        let path = if folder == HERE { name.clone() } else { format!("{folder}/{name}") };
        let file = sources.add(text_of(app, &path)?);
        inputs.file(file);
    }
    Ok(())
}

/// What gives values without flags: the environment, then the variable files of the directory.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn add_surroundings(app: &App, sources: &mut Sources, inputs: &mut VariableInputs) -> Result<(), Stop> {
    add_environment(app, inputs);
    add_automatic(app, HERE, sources, inputs)
}

/// `-var` and `-var-file`, in their order.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn add_flags(app: &App, flags: &VariableFlags, sources: &mut Sources, inputs: &mut VariableInputs) -> Result<(), Stop> {
    for flag in &flags.0 {
        match flag {
            VariableFlag::Value(name, value) => inputs.text(name.clone(), value.clone(), VariableOrigin::CommandLine),
            VariableFlag::File(path) => {
                let file = sources.add(text_of(app, path)?);
                inputs.file(file);
            }
        }
    }
    Ok(())
}

/// Asks for the value of a variable; one that is secret is not seen while it is written.
///
/// # Errors
/// If the input ends before.
pub(super) fn ask_for(app: &mut App, name: &str, description: Option<&str>, sensitive: bool) -> Result<String, Stop> {
    app.output.print(&format!("var.{name}\n"));
    if let Some(description) = description {
        app.output.print(&format!("  {description}\n"));
    }
    app.output.print("\n  Enter a value: ");
    let answer = {
        let _hidden = sensitive.then(Hidden::begin);
        app.output.read_line()
    };
    app.output.print(if sensitive { "\n\n" } else { "\n" });
    answer.ok_or_else(|| {
        Diagnostic::error(MISSING_VARIABLE, format!("The input ended before there was a value for the variable \"{name}\"."))
            .with_hint(format!("Set it with -var {name}=..., in a variables file, or by {VARIABLE_PREFIX}{name}."))
            .into()
    })
}

/// What is said of a file that has the name under which Terraform reads it without being asked, but for its ending.
pub(super) fn left_aside(directory: &Path, name: &str, flags: &VariableFlags) -> Option<Diagnostic> {
    let meant = match name {
        "terraform.kfvars.hcl" => DEFAULT_VARIABLES[0],
        "terraform.kfvars.json" => DEFAULT_VARIABLES[1],
        _ => return None,
    };
    let real = |path: &str| directory.join(path).canonicalize().ok();
    let is_named = |flag: &VariableFlag| matches!(flag, VariableFlag::File(path) if real(path) == real(name));
    let detail = format!("The file \"{name}\" is not read: of this directory it is {meant} that gives values without being named.");
    let warning = Diagnostic::warning("File is not read", detail).with_hint(format!("Rename it to {meant}, or name it with -var-file."));
    (!flags.0.iter().any(is_named)).then_some(warning)
}
