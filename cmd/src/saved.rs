//! Saved plans: one JSON file with the plan, the configuration it was made from, and the values of variables. It holds no secret.
//!
//! What a secret is missing is made good at apply: by planning again from the same texts, with sensitive and ephemeral variables given again.

use std::collections::BTreeMap;

use karmaform_lang::{Config, MISSING_VARIABLE, SourceFile, Sources, VariableInputs, VariableOrigin, given_as};
use karmaform_model::{Content, Diagnostic, Diagnostics, Plan, SealError, Value, is_sealed, same_and_alike, to_json};
use serde::{Deserialize, Serialize};

use crate::app::{App, Stop, VERSION};
use crate::backend::{seal_of_directory, unsealable};
use crate::disk::{reason, reason_to_write, sha256, write_private};
use crate::flags::{VariableFlag, VariableFlags};
use crate::project::given::{add_flags, add_surroundings};
use crate::project::{HERE, Loading, Project, load_sources};
use crate::redact::{ephemeral_texts_of, redacted, secret_texts, secret_texts_of};
use crate::session::Session;
use crate::workspace;

/// The format of the envelope.
const FORMAT: u32 = 1;
/// What the values of a saved plan are called in messages.
const SAVED_VALUES: &str = "saved plan";

/// What a saved plan's file holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedPlan {
    /// The format; the key says what kind of file this is.
    karmaform_plan: u32,
    /// The version of the tool that wrote it.
    tool_version: String,
    /// The plan, without secrets.
    pub(crate) plan: Plan,
    /// The configuration files.
    sources: Vec<SavedSource>,
    /// Files that expressions read, with their hashes.
    reads: BTreeMap<String, String>,
    /// `-state`, if it was given.
    pub(crate) state: Option<String>,
    /// The workspace it was made in.
    #[serde(default)]
    workspace: String,
}

#[derive(Serialize, Deserialize)]
struct SavedSource {
    path: String,
    sha256: String,
    /// Left out where a secret stands in it; the file in the directory must be the same then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What a plan was made from.
pub(crate) struct From<'a> {
    pub(crate) project: &'a Project,
    pub(crate) session: &'a Session,
    /// `-state`, if it was given.
    pub(crate) state: Option<&'a str>,
}

/// Writes a plan, readable by its owner alone, sealed as the state is.
///
/// # Errors
/// If the file can't be written.
pub(crate) fn write(app: &App, path: &str, plan: &Plan, from: &From<'_>) -> Result<(), Stop> {
    let mut secrets = secret_texts(plan, &from.session.snapshot, &app.wiring.registry);
    secrets.extend(secret_texts_of(&from.project.config));
    // A file that is named by such a value is another one when another value is given.
    let hidden: Vec<String> = secrets.iter().cloned().chain(ephemeral_texts_of(&from.project.config)).collect();
    let sources = app.sources.files.iter().take(from.project.configuration_files).map(|file| SavedSource {
        path: file.path.clone(),
        sha256: sha256(file.text.as_bytes()),
        text: (!secrets.iter().any(|s| file.text.contains(s))).then(|| file.text.clone()),
    });
    let saved = SavedPlan {
        karmaform_plan: FORMAT,
        tool_version: VERSION.to_owned(),
        plan: redacted(plan, &app.wiring.registry),
        sources: sources.collect(),
        reads: from.project.files.reads().into_iter().filter(|(path, _)| !hidden.iter().any(|h| path.contains(h))).collect(),
        state: from.state.map(str::to_owned),
        workspace: from.session.open.workspace.clone(),
    };
    let failed =
        |why: String| Stop::from(Diagnostic::error("Can't save the plan", format!("The file \"{path}\" can't be written: {why}.")));
    let text = serde_json::to_vec(&saved).map_err(|e| failed(e.to_string()))?;
    let bytes = from.session.open.seal.seal(&Content::Plan, text).map_err(|e| unsealable("plan", &e))?;
    write_private(&app.directory.join(path), &bytes).map_err(|e| failed(reason_to_write(&e)))
}

/// Makes room for a plan: an older one in its place must not be taken for it when there comes to be none. One that can't be read now may be
/// read later.
///
/// # Errors
/// If it can't be removed.
pub(crate) fn make_room(app: &mut App, path: &str, flags: &VariableFlags) -> Result<(), Stop> {
    let place = app.directory.join(path);
    if !place.is_file() || matches!(read(app, path, flags), Ok(None)) {
        return Ok(());
    }
    std::fs::remove_file(&place).map_err(|e| {
        Diagnostic::error("Can't save the plan", format!("The older plan \"{path}\" can't be removed: {}.", reason(&e))).into()
    })
}

/// Reads a saved plan. `None`: the file is something else. One that is sealed is opened with what the configuration in the directory says.
///
/// # Errors
/// If it can't be read, or is of another version.
pub(crate) fn read(app: &mut App, path: &str, flags: &VariableFlags) -> Result<Option<SavedPlan>, Stop> {
    let unusable = |why: &str| Diagnostic::error("Can't read the file", format!("The file \"{path}\" can't be used: {why}."));
    let failed = |why: &str| Stop::from(unusable(why));
    let damaged = |why: &str| Stop::from(unusable(why).with_hint("Plan again with -out, and apply what that writes."));
    let mut bytes = std::fs::read(app.directory.join(path)).map_err(|e| failed(&reason(&e)))?;
    if is_sealed(&bytes) {
        let seal = seal_of_directory(app, flags)?;
        bytes = match seal.open(&Content::Plan, &bytes) {
            Ok(bytes) => bytes,
            // Whoever looks at states finds out whether it is one.
            Err(SealError::Damaged) => return Ok(None),
            Err(error) => return Err(unsealable(&format!("file \"{path}\""), &error).into()),
        };
    }
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return Ok(None) };
    let Some(format) = json.get("karmaform_plan").and_then(serde_json::Value::as_u64) else { return Ok(None) };
    let version = json.get("tool_version").and_then(serde_json::Value::as_str).unwrap_or("an unknown version").to_owned();
    if format != u64::from(FORMAT) || version != VERSION {
        let detail = format!("It was made by karmaform {version}; this is {VERSION}. A plan is only good for the version that made it.");
        return Err(Diagnostic::error("Saved plan of another version", detail).with_hint("Plan again with this version.").into());
    }
    let saved: SavedPlan = serde_json::from_value(json).map_err(|e| damaged(&e.to_string()))?;
    if saved.plan.format != Plan::FORMAT {
        return Err(damaged("its plan has another format"));
    }
    // Somebody may have edited it; what is done must be what was shown.
    let steps = if saved.plan.errored { Vec::new() } else { karmaform_engine::check_steps_of(&saved.plan) };
    if let Some(wrong) = steps.into_iter().next() {
        return Err(damaged(&format!("it is damaged: {wrong}")));
    }
    if let Some(source) = saved.sources.iter().find(|s| s.text.as_ref().is_some_and(|t| sha256(t.as_bytes()) != s.sha256)) {
        return Err(damaged(&format!("it is damaged: its copy of \"{}\" is not what was planned with", source.path)));
    }
    Ok(Some(saved))
}

/// Loads the configuration of a saved plan, with the values it was made with. Sensitive and ephemeral ones must be given again.
///
/// # Errors
/// If a file changed since, or a variable is given that the plan has fixed.
pub(crate) fn load(app: &mut App, saved: &SavedPlan, flags: &VariableFlags) -> Result<Project, Stop> {
    let here = workspace::current(app)?;
    if saved.state.is_none() && here != saved.workspace {
        let detail = format!("The plan was made in the workspace \"{}\", and this directory is in \"{here}\".", saved.workspace);
        return Err(Diagnostic::error("Saved plan of another workspace", detail)
            .with_hint(format!("Select it: karmaform workspace select {}", saved.workspace))
            .into());
    }
    let mut sources = Sources::default();
    let mut changed = Diagnostics::new();
    for source in &saved.sources {
        let text = match &source.text {
            Some(text) => text.clone(),
            None => match std::fs::read_to_string(app.directory.join(&source.path)) {
                Ok(text) if sha256(text.as_bytes()) == source.sha256 => text,
                _ => {
                    changed.push(changed_file(&source.path));
                    continue;
                }
            },
        };
        sources.add(SourceFile { path: source.path.clone(), text });
    }
    let configuration_files = sources.files.len();
    let mut inputs = VariableInputs::default();
    add_surroundings(app, &mut sources, &mut inputs)?;
    let mut given = Vec::new();
    for flag in &flags.0 {
        match flag {
            VariableFlag::File(_) => add_flags(app, &VariableFlags(vec![flag.clone()]), &mut sources, &mut inputs)?,
            VariableFlag::Value(name, value) => match saved.plan.variables.get(name) {
                Some(variable) if variable.sensitive || variable.ephemeral => {
                    inputs.text(name.clone(), value.clone(), VariableOrigin::CommandLine)
                }
                Some(_) => given.push((name, value)),
                None => changed.push(fixed_variable(name)),
            },
        }
    }
    // Whatever the environment or a file says, what the plan was made with holds.
    let file = sources.add(SourceFile { path: SAVED_VALUES.to_owned(), text: values_text(&saved.plan) });
    inputs.file(file);
    let disk = crate::disk::Disk::new(&app.directory);
    changed.extend(saved.reads.iter().filter(|(path, hash)| disk.hash(path) != **hash).map(|(path, _)| changed_file(path)));
    if changed.has_errors() {
        return Err(changed.into());
    }
    let how = Loading { ask: true, now: saved.plan.created, directory: HERE };
    let project = load_sources(app, sources, configuration_files, inputs, how)?;
    // Who gives what it has anyway changes nothing.
    let is_same = |name: &str, text: &str| {
        let planned = project.config.variables.get(name).map(|v| &v.value);
        planned.zip(given_as(&project.config, name, text).as_ref()).is_some_and(|(planned, given)| same_and_alike(planned, given))
    };
    let other = given.into_iter().filter(|(name, text)| !is_same(name, text));
    let changed: Diagnostics = other.map(|(name, _)| fixed_variable(name)).collect();
    if changed.has_errors() { Err(changed.into()) } else { Ok(project) }
}

fn changed_file(path: &str) -> Diagnostic {
    Diagnostic::error(
        "A file changed since the plan was made",
        format!("The plan was made from \"{path}\" with other content, so it does not fit any more."),
    )
    .with_hint("Plan again.")
}

fn fixed_variable(name: &str) -> Diagnostic {
    Diagnostic::error(
        "Can't change variable when applying a saved plan",
        format!("The variable \"{name}\" was given with -var, but a saved plan brings its own values. Only sensitive and ephemeral ones, which are not saved, can be given."),
    )
    .with_hint("To apply with another value, plan again.")
}

/// What is ephemeral has no value in the plan: it must be given again if it was given, and must not be if its default was taken, for then
/// something else would be done than was shown.
///
/// # Errors
/// Each variable of which that is not so.
pub(crate) fn check_given(plan: &Plan, config: &Config) -> Result<(), Stop> {
    let mut wrong = Diagnostics::new();
    for (name, planned) in plan.variables.iter().filter(|(_, v)| v.ephemeral) {
        let Some(variable) = config.variables.get(name) else { continue };
        let error = |summary, detail| Diagnostic::error(summary, detail).with_span(Some(variable.span));
        match (planned.given, variable.origin.is_some()) {
            (true, false) => wrong.push(
                error(MISSING_VARIABLE, format!("The ephemeral variable \"{name}\" had a value when the plan was made, and has none now."))
                    .with_hint(format!(
                        "Give it again, with -var {name}=... or by KF_VAR_{name}; another value than that of the plan is fine."
                    )),
            ),
            (false, true) => wrong.push(
                error(
                    "Ephemeral variable was not set during planning",
                    format!("The plan was made with the default of the ephemeral variable \"{name}\", which has another value now."),
                )
                .with_hint("Apply without giving it, or plan again."),
            ),
            _ => {}
        }
    }
    if wrong.has_errors() { Err(wrong.into()) } else { Ok(()) }
}

/// The values as a variables file.
fn values_text(plan: &Plan) -> String {
    let known = plan.variables.iter().filter(|(_, v)| !v.ephemeral).filter_map(|(name, v)| Some((name, v.value.as_ref()?)));
    known.map(|(name, value)| format!("{name} = {}\n", literal(value))).collect()
}

/// JSON is an expression of the language, once nothing in it looks like a template.
fn literal(value: &Value) -> String {
    to_json(value).to_string().replace("${", "$${").replace("%{", "%%{")
}

/// The plan fits the state only if nobody wrote it since.
///
/// # Errors
/// If somebody did.
pub(crate) fn check_fresh(plan: &Plan, lineage: &str, serial: u64) -> Result<(), Stop> {
    let has_same_lineage = plan.lineage.as_deref().unwrap_or_default() == lineage;
    if has_same_lineage && plan.serial == serial {
        return Ok(());
    }
    let why = if has_same_lineage {
        format!("The plan was made from serial {} of the state, which has serial {serial} now.", plan.serial)
    } else {
        "The plan was made from another state.".to_owned()
    };
    Err(Diagnostic::error("Saved plan is stale", format!("{why} Something was applied since, so the plan does not fit any more."))
        .with_hint("Plan again.")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_a_variables_file() {
        assert_eq!(literal(&Value::object([("a", Value::strings(["${x}", "q\""]))])), r#"{"a":["$${x}","q\""]}"#);
        assert_eq!(literal(&Value::null(karmaform_model::Type::Any)), "null");
    }
}
