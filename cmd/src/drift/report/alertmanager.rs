//! Alerts, for a POST to `/api/v2/alerts`. Alertmanager tells of new ones only, and again after a while, by its own rules.
//!
//! Source: <https://prometheus.io/docs/alerting/latest/alerts_api/>.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::super::{Kind, Told};
use super::{difference, note};
use crate::ui::json::timestamp;

/// An alert ends by itself if it is not sent again within so many seconds: three times what lies between two checks by the hour.
const LASTS: i64 = 3 * 3600;

/// What there is to say of one thing in one way; labels name an alert, so there is one for both.
#[derive(Default)]
struct Alert {
    resource_type: String,
    lines: Vec<String>,
    is_gone: bool,
}

/// The alerts: of all that counts, and of what is gone, which end now. Where nothing could be looked at, or not all before a signal, one of that.
pub(super) fn alertmanager(told: &Told) -> Json {
    let mut alerts: BTreeMap<(String, String), Alert> = BTreeMap::new();
    for past in told.news.iter().flat_map(|n| &n.gone) {
        let alert = alerts.entry((past.kind.clone(), past.address.clone())).or_default();
        (alert.resource_type, alert.is_gone) = (past.resource_type.clone(), true);
        alert.lines.push(past.says.clone());
    }
    // What could not be looked at now goes on as it was.
    for past in told.news.iter().flat_map(|n| &n.carried) {
        let alert = alerts.entry((past.kind.clone(), past.address.clone())).or_default();
        *alert = Alert { resource_type: past.resource_type.clone(), lines: vec![past.says.clone()], is_gone: false };
    }
    for finding in told.counted() {
        let alert = alerts.entry((finding.kind.word().to_owned(), finding.address.to_string())).or_default();
        if std::mem::take(&mut alert.is_gone) {
            alert.lines.clear();
        }
        alert.resource_type.clone_from(&finding.resource_type);
        alert.lines.push(finding.says.clone());
        alert.lines.extend(finding.differences.iter().map(difference));
    }
    let failed = (told.is_blind || told.is_interrupted).then(|| failed(told));
    failed.into_iter().chain(alerts.into_iter().map(|((kind, address), alert)| one(&kind, &address, &alert, told.now))).collect()
}

/// By another name: it is not about a thing, and whoever is to know of things may not be who repairs the look.
fn failed(told: &Told) -> Json {
    let summary = if told.is_interrupted { "the look was interrupted" } else { "nothing could be looked at" };
    let errors: Vec<String> = told.notes.iter().filter(|d| d.is_error()).map(note).collect();
    json!({
        "labels": { "alertname": "KarmaformDriftFailed", "severity": "critical" },
        "annotations": { "summary": summary, "description": errors.join("\n") },
        "endsAt": timestamp(told.now + LASTS),
    })
}

fn one(kind: &str, address: &str, alert: &Alert, now: i64) -> Json {
    let is_grave = [Kind::Missing, Kind::Unreachable].iter().any(|k| k.word() == kind);
    let end = if alert.is_gone { now } else { now + LASTS };
    json!({
        "labels": {
            "alertname": "KarmaformDrift",
            "kind": kind,
            "address": address,
            "type": alert.resource_type,
            "severity": if is_grave { "critical" } else { "warning" },
        },
        "annotations": { "summary": format!("{address}: {kind}"), "description": alert.lines.join("\n") },
        "endsAt": timestamp(end),
    })
}
