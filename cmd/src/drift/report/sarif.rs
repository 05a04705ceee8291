//! SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>): what code scanning shows at the blocks' lines.

use karmaform_lang::Sources;
use serde_json::{Value as Json, json};

use super::super::{Finding, Kind, Told};
use super::{difference, note, place};
use crate::app::VERSION;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The report. `folder`: where the configuration is, from where code scanning counts.
pub(super) fn sarif(told: &Told, sources: &Sources, folder: &str) -> Json {
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
            "results": told.findings.iter().map(|f| result(f, sources, folder)).collect::<Vec<_>>(),
        }],
    })
}

fn level(kind: Kind) -> &'static str {
    match kind {
        Kind::Changed | Kind::Missing | Kind::Unreachable => "error",
        Kind::Extra | Kind::Unapplied | Kind::Decay => "warning",
    }
}

/// The address of a file as a reference, which has no `..` in it as far as that can be, and no sign that means something else in one.
fn uri(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let from_root = file.starts_with('/');
    let folder = if from_root { "" } else { folder };
    for part in folder.split('/').chain(file.split('/')).filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut out = if from_root { "/".to_owned() } else { String::new() };
    for byte in parts.join("/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn result(finding: &Finding, sources: &Sources, folder: &str) -> Json {
    let lines: Vec<String> = finding.differences.iter().map(difference).collect();
    let more = if lines.is_empty() { String::new() } else { format!("\n{}", lines.join("\n")) };
    let mut location = json!({ "logicalLocations": [{ "fullyQualifiedName": finding.address.to_string(), "kind": "resource" }] });
    // Code scanning refuses a whole report for one result without a file, as has what no block names any more.
    let first = || sources.files.first().map(|file| (file.path.as_str(), 1));
    if let Some((file, line)) = place(finding, sources).or_else(first) {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": uri(folder, file) }, "region": { "startLine": line } });
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

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_file_is_named_from_the_top() {
        assert_eq!(uri("", "main.kf.hcl"), "main.kf.hcl");
        assert_eq!(uri("fleets/eu", "./main.kf.hcl"), "fleets/eu/main.kf.hcl");
        assert_eq!(uri("fleets/eu", "../../modules/site/main.kf.hcl"), "modules/site/main.kf.hcl");
        assert_eq!(uri("fleet", "../../out/main.kf.hcl"), "../out/main.kf.hcl");
        assert_eq!(uri("fleet", "/etc/a/../main.kf.hcl"), "/etc/main.kf.hcl");
        assert_eq!(uri("a b", "50%#\u{e9}?.kf.hcl"), "a%20b/50%25%23%C3%A9%3F.kf.hcl");
    }
}
