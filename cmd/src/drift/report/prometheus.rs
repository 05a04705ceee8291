//! Metrics in Prometheus' text format, for node_exporter's textfile collector.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::{Kind, Told};

/// The metrics.
pub(super) fn prometheus(told: &Told) -> String {
    let mut out = String::new();
    let mut family = |name: &str, help: &str, samples: Vec<(String, String)>| {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for (labels, value) in samples {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    };
    family(
        "karmaform_drift_failed",
        "1: nothing could be looked at, or not all before it was interrupted, and there are no counts.",
        vec![(String::new(), u8::from(told.is_blind || told.is_interrupted).to_string())],
    );
    family(
        "karmaform_drift_exit_code",
        "0 clean, 2 drift, 1 could not look, 3 only decay.",
        vec![(String::new(), told.code().to_string())],
    );
    family("karmaform_drift_timestamp_seconds", "When it was looked, or tried, since 1970.", vec![(String::new(), told.now.to_string())]);
    // Zeros would say that all is well.
    if told.is_blind {
        return out;
    }
    // Nor are the counts of a part those of everything.
    if !told.is_interrupted {
        let counts = Kind::ALL.map(|kind| (format!("{{kind=\"{}\"}}", kind.word()), told.count(kind).to_string()));
        family("karmaform_drift_findings", "Findings that count, by kind.", counts.to_vec());
        family("karmaform_drift_ignored", "Findings that are ignored.", vec![(String::new(), told.ignored().to_string())]);
        family("karmaform_drift_resources", "Resources looked at.", vec![(String::new(), told.resources.to_string())]);
    }
    // Of one thing there may be several findings of a kind; a series is there once.
    let each: BTreeSet<String> =
        told.counted().map(|f| format!("{{address=\"{}\",kind=\"{}\"}}", label(&f.address.to_string()), f.kind.word())).collect();
    family("karmaform_drift", "1 for each thing that is not as it should be.", each.into_iter().map(|l| (l, "1".to_owned())).collect());
    let ends = told.certificates.iter().map(|(a, end)| (format!("{{address=\"{}\"}}", label(&a.to_string())), end.to_string()));
    family("karmaform_certificate_not_after_seconds", "The end of a certificate, since 1970.", ends.collect());
    out
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
