//! For programs: everything, by the schema in `docs/schemas/drift.schema.json`.

use karmaform_lang::Sources;
use serde_json::{Value as Json, json};

use super::super::{Finding, Kind, Told};
use super::place;
use crate::ui::json::timestamp;

/// The version of the format; the second number grows when something is added, the first when something is not as before.
const FORMAT: &str = "1.4";

/// The report.
pub(super) fn json(told: &Told, sources: &Sources) -> Json {
    let counts: serde_json::Map<String, Json> = Kind::ALL.iter().map(|k| (k.word().to_owned(), told.count(*k).into())).collect();
    json!({
        "format_version": FORMAT,
        "timestamp": timestamp(told.now),
        "exit_code": told.code(),
        "looked": !told.is_blind,
        "interrupted": told.is_interrupted,
        "resources": told.resources,
        "counts": counts,
        "ignored": told.ignored(),
        "findings": told.findings.iter().map(|f| finding(f, sources)).collect::<Vec<_>>(),
        "gone": told.news.as_ref().map(|n| n.gone.as_slice()).unwrap_or_default(),
        "carried": told.news.as_ref().map(|n| n.carried.as_slice()).unwrap_or_default(),
        "certificates": told.certificates.iter().map(|(a, end)| json!({ "address": a.to_string(), "not_after": timestamp(*end) })).collect::<Vec<_>>(),
        "diagnostics": told.notes.iter().map(|d| json!({
            "severity": if d.is_error() { "error" } else { "warning" },
            "summary": d.summary,
            "detail": d.detail,
            "address": d.address.as_ref().map(ToString::to_string),
            "hints": d.hints,
        })).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding, sources: &Sources) -> Json {
    let differences = finding.differences.iter().map(|d| json!({ "path": d.path, "is": d.is, "should": d.should }));
    json!({
        "kind": finding.kind.word(),
        "address": finding.address.to_string(),
        "composite": finding.address.composite().map(|c| c.to_string()),
        "type": finding.resource_type,
        "says": finding.says,
        "differences": differences.collect::<Vec<_>>(),
        "ignored_by": finding.ignored,
        "new": finding.is_new,
        "place": place(finding, sources).map(|(file, line)| json!({ "file": file, "line": line })),
    })
}
