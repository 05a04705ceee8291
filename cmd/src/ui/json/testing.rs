//! The lines of `test -json`.

use karmaform_lang::Sources;
use karmaform_model::Diagnostic;
use serde_json::{Map, Value as Json, json};

use super::stream::Stream;
use crate::testing::Tally;

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
                status
            }
        };
        self.line("info", &format!("{path}... {text}"), "test_file", &[("test_file", file), ("@testfile", json!(path))])
    }

    /// A run that begins, or is complete with a status.
    pub(crate) fn test_run(self, path: &str, name: &str, status: Option<&str>, elapsed: u64) -> String {
        let mut run = json!({ "path": path, "run": name, "progress": "starting" });
        if let Some(status) = status {
            run["progress"] = json!("complete");
            run["status"] = json!(status);
            run["elapsed"] = json!(elapsed);
        }
        let message = format!("  \"{name}\"... {}", status.unwrap_or("in progress"));
        let about = [("test_run", run), ("@testfile", json!(path)), ("@testrun", json!(name))];
        self.line("info", &message, "test_run", &about)
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
            (true, _) if passed == 0 => "skip",
            (true, _) => "pass",
            (false, true) => "error",
            (false, false) => "fail",
        };
        let summary = json!({ "status": status, "passed": passed, "failed": failed, "errored": errored, "skipped": skipped });
        self.line("info", message, "test_summary", &[("test_summary", summary)])
    }
}
