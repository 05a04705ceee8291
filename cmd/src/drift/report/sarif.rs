//! SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>): what code scanning shows at the blocks' lines.

use karmaform_lang::Sources;
use serde_json::{Value as Json, json};

use super::super::{Finding, Kind, Told};
use super::{difference, note, place};
use crate::app::VERSION;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The report.
pub(super) fn sarif(told: &Told, sources: &Sources) -> Json {
    let rules = Kind::ALL.map(|kind| {
        json!({
            "id": kind.word(),
            "shortDescription": { "text": kind.meaning() },
            "defaultConfiguration": { "level": level(kind) },
        })
    });
    let notes =
        told.notes.iter().map(|d| json!({ "level": if d.is_error() { "error" } else { "warning" }, "message": { "text": note(d) } }));
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "karmaform", "version": VERSION, "rules": rules } },
            "invocations": [{
                "executionSuccessful": !told.notes.has_errors(),
                "exitCode": told.code(),
                "toolExecutionNotifications": notes.collect::<Vec<_>>(),
            }],
            "results": told.findings.iter().map(|f| result(f, sources)).collect::<Vec<_>>(),
        }],
    })
}

fn level(kind: Kind) -> &'static str {
    match kind {
        Kind::Changed | Kind::Missing | Kind::Unreachable => "error",
        Kind::Extra | Kind::Unapplied | Kind::Decay => "warning",
    }
}

fn result(finding: &Finding, sources: &Sources) -> Json {
    let lines: Vec<String> = finding.differences.iter().map(difference).collect();
    let more = if lines.is_empty() { String::new() } else { format!("\n{}", lines.join("\n")) };
    let mut location = json!({ "logicalLocations": [{ "fullyQualifiedName": finding.address.to_string(), "kind": "resource" }] });
    if let Some((file, line)) = place(finding, sources) {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": file }, "region": { "startLine": line } });
    }
    let mut result = json!({
        "ruleId": finding.kind.word(),
        "level": level(finding.kind),
        "message": { "text": format!("{}: {}.{more}", finding.address, finding.says) },
        "locations": [location],
        // The same finding of another run is the same alert.
        "partialFingerprints": { "address/v1": finding.name() },
    });
    if let Some(by) = &finding.ignored {
        result["suppressions"] = json!([{ "kind": "external", "justification": format!("ignored by {by}") }]);
    }
    result
}
