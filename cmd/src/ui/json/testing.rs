//! The lines of `test -json`.

use std::collections::BTreeSet;

use karmaform_lang::{Config, Sources};
use karmaform_model::{Catalog, Diagnostic, Plan, Snapshot};
use serde_json::{Map, Value as Json, json};

use super::schema::schemas;
use super::stream::Stream;
use crate::testing::{Shown, Tally};

/// A plan for programs that draw it: what it changes, and the schemas of that.
pub(crate) fn drawn_plan(plan: &Plan, config: &Config, prior: &Snapshot, registry: &Catalog) -> Json {
    let mut whole = super::plan::plan(plan, config, Some(prior), registry);
    let mut out = json!({ "plan_format_version": whole["format_version"].take() });
    for key in ["output_changes", "resource_changes", "resource_drift", "deferred_changes", "relevant_attributes"] {
        if let Some(part) = whole.get_mut(key) {
            out[key] = part.take();
        }
    }
    with_schemas(out, registry)
}

/// A state for programs that draw it.
pub(crate) fn drawn_state(state: &Snapshot, registry: &Catalog) -> Json {
    let mut whole = super::state::state(Some(state), registry);
    let mut out = json!({ "state_format_version": whole["format_version"].take() });
    for key in ["outputs", "root_module"] {
        if let Some(part) = whole.get_mut("values").and_then(|values| values.get_mut(key)) {
            out[key] = part.take();
        }
    }
    with_schemas(out, registry)
}

/// With the schemas of the providers that are named in it.
fn with_schemas(mut out: Json, registry: &Catalog) -> Json {
    let mut named = BTreeSet::new();
    providers_in(&out, &mut named);
    let mut all = schemas(registry);
    let Json::Object(schemas) = all["provider_schemas"].take() else { return out };
    out["provider_format_version"] = all["format_version"].take();
    out["provider_schemas"] = schemas.into_iter().filter(|(name, _)| named.contains(name)).collect::<Map<_, _>>().into();
    out
}

fn providers_in(json: &Json, named: &mut BTreeSet<String>) {
    match json {
        Json::Object(entries) => {
            named.extend(entries.get("provider_name").and_then(Json::as_str).map(str::to_owned));
            entries.values().for_each(|value| providers_in(value, named));
        }
        Json::Array(items) => items.iter().for_each(|item| providers_in(item, named)),
        _ => {}
    }
}

impl Stream {
    /// All files with their runs.
    pub(crate) fn tests_found(self, files: &[(String, Vec<String>)]) -> String {
        let runs: usize = files.iter().map(|(_, runs)| runs.len()).sum();
        let some = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
        let message = format!("Found {} and {}", some(files.len(), "file"), some(runs, "run block"));
        let all: Map<String, Json> = files.iter().map(|(file, runs)| (file.clone(), json!(runs))).collect();
        self.line("info", &message, "test_abstract", &[("test_abstract", Json::Object(all))])
    }

    /// A file that is `starting`, in `teardown`, or `complete` with a status.
    pub(crate) fn test_file(self, path: &str, progress: &str, status: &str) -> String {
        let mut file = json!({ "path": path, "progress": progress });
        let text = match progress {
            "starting" => "in progress",
            "teardown" => "tearing down",
            _ => {
                file["status"] = json!(status);
                words(status)
            }
        };
        self.line("info", &format!("{path}... {text}"), "test_file", &[("test_file", file), ("@testfile", json!(path))])
    }

    /// A run that begins, or is complete with a status.
    pub(crate) fn test_run(self, path: &str, name: &str, status: Option<&str>, elapsed: u64) -> String {
        let mut run = json!({ "path": path, "run": name, "progress": "starting", "elapsed": 0 });
        if let Some(status) = status {
            run["progress"] = json!("complete");
            run["status"] = json!(status);
            run["elapsed"] = json!(elapsed);
        }
        self.of_run(path, name, status.map_or("in progress", words), run)
    }

    /// What a run made begins to be taken away.
    pub(crate) fn test_run_teardown(self, path: &str, name: &str) -> String {
        self.of_run(path, name, "tearing down", json!({ "path": path, "run": name, "progress": "teardown", "elapsed": 0 }))
    }

    /// How far a run is, in words and as `run`.
    fn of_run(self, path: &str, name: &str, words: &str, run: Json) -> String {
        let about = [("test_run", run), ("@testfile", json!(path)), ("@testrun", json!(name))];
        self.line("info", &format!("  \"{name}\"... {words}"), "test_run", &about)
    }

    /// What a run planned, or the state that it left: `test -json -verbose`.
    pub(crate) fn test_shown(self, shown: &Shown, path: &str, name: &str) -> String {
        let (what, kind, body) = match shown {
            Shown::Plan(body) => ("plan", "test_plan", body),
            Shown::State(body) => ("state", "test_state", body),
            Shown::Nothing | Shown::Text(_) => return String::new(),
        };
        let about = [(kind, body.clone()), ("@testfile", json!(path)), ("@testrun", json!(name))];
        self.line("info", &format!("-verbose flag enabled, printing {what}"), kind, &about)
    }

    /// What is said of a file or a run.
    pub(crate) fn test_diagnostic(self, diagnostic: &Diagnostic, sources: &Sources, path: &str, run: Option<&str>) -> String {
        let mut line: Json = serde_json::from_str(&self.diagnostic(diagnostic, sources)).unwrap_or_default();
        line["@testfile"] = json!(path);
        if let Some(run) = run {
            line["@testrun"] = json!(run);
        }
        format!("{line}\n")
    }

    /// What it came to.
    pub(crate) fn test_summary(self, message: &str, tally: Tally) -> String {
        let Tally { passed, failed, errored, skipped, .. } = tally;
        let status = match (tally.is_success(), errored > 0 || tally.is_unclean) {
            (true, _) => "pass",
            (false, true) => "error",
            (false, false) => "fail",
        };
        let summary = json!({ "status": status, "passed": passed, "failed": failed, "errored": errored, "skipped": skipped });
        self.line("info", message, "test_summary", &[("test_summary", summary)])
    }
}

/// A status as it is read: people are told that it failed, whatever kept it from its end.
fn words(status: &str) -> &str {
    if status == "error" { "fail" } else { status }
}
