//! OpenTelemetry's traces in OTLP's JSON form: what a collector takes as a POST to `/v1/traces`.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, and for `TRACEPARENT` <https://www.w3.org/TR/trace-context/>.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{Profile, Timed, Whole};
use crate::disk::sha256;

/// What of the run's caller a trace goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    trace: String,
    span: String,
    is_kept: bool,
}

impl Parent {
    /// Somebody keeps what belongs to this trace.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Reads `00-TRACE-SPAN-FLAGS`; what has another form is as if it were not there, as the standard wants it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace, span, flags] = parts[..] else { return None };
        let is = |text: &str, digits: usize| {
            text.len() == digits
                && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
                && text.bytes().any(|b| b != b'0')
        };
        let fits = version.len() == 2 && version != "ff" && is(trace, 32) && is(span, 16);
        let flags = u8::from_str_radix(flags, 16).ok()?;
        // The last bit says "sampled".
        let is_kept = flags & 1 == 1;
        fits.then(|| Self { trace: trace.to_owned(), span: span.to_owned(), is_kept })
    }
}

/// The spans: the run, its phases, who was asked what is there, and the steps. `resource` says whose they are; `seed` makes the ids of a trace that has no parent.
pub(super) fn spans(profile: &Profile, resource: &BTreeMap<String, String>, parent: Option<&Parent>, seed: &str, version: &str) -> Json {
    let id = |what: &str, digits: usize| sha256(format!("{seed} {what}").as_bytes()).chars().take(digits).collect::<String>();
    let trace = parent.map_or_else(|| id("trace", 32), |p| p.trace.clone());
    let root = id("run", 16);
    let (begin, end) = profile.span();
    let mut run = span(&trace, &root, "karmaform", (begin, end), failed(profile));
    run["attributes"] = profile.whole.as_ref().map_or_else(|| json!([]), of_run);
    if let Some(parent) = parent {
        run["parentSpanId"] = json!(parent.span);
    }
    let mut spans = vec![run];
    for (place, phase) in profile.phases.iter().enumerate() {
        let mut one = span(&trace, &id(&format!("phase {place}"), 16), phase.name, (phase.begin, phase.end), None);
        one["parentSpanId"] = json!(root);
        spans.push(one);
    }
    for (place, asked) in profile.asked.iter().enumerate() {
        let name = format!("look {}", asked.provider);
        let failed = asked.failed.then_some("no answer");
        let mut one = span(&trace, &id(&format!("look {place}"), 16), &name, (asked.begin, asked.end), failed);
        one["parentSpanId"] = json!(root);
        one["attributes"] = json!([text("karmaform.place", &asked.whom), number("karmaform.things", asked.things)]);
        spans.push(one);
    }
    for (place, step) in profile.steps.iter().enumerate() {
        let name = format!("{} {}", step.what, step.resource_type);
        let mut one = span(&trace, &id(&format!("step {place}"), 16), &name, (step.begin, step.end), step.failed.as_deref());
        one["parentSpanId"] = json!(root);
        one["attributes"] = attributes(step);
        one["events"] = step.waits.iter().map(|(at, text)| json!({ "timeUnixNano": nanoseconds(*at), "name": text })).collect();
        spans.push(one);
    }
    let resource = json!({ "attributes": resource.iter().map(|(name, value)| text(name, value)).collect::<Vec<_>>() });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "scope": { "name": "karmaform", "version": version }, "spans": spans }] }] })
}

/// Why the run counts as failed. Exit codes other than 1 are answers: there are changes, there is drift.
fn failed(profile: &Profile) -> Option<&str> {
    let whole = profile.whole.as_ref();
    let of_steps = || profile.steps.iter().any(|s| s.failed.is_some()).then_some("a step failed");
    whole.and_then(|w| w.failed.as_deref()).or_else(of_steps).or_else(|| whole.filter(|w| w.code == 1).map(|_| "exit code 1"))
}

/// Names by the conventions for spans of command lines.
fn of_run(whole: &Whole) -> Json {
    json!([text("process.executable.name", "karmaform"), text("karmaform.command", whole.command), number("process.exit.code", whole.code)])
}

fn span(trace: &str, id: &str, name: &str, (begin, end): (u64, u64), failed: Option<&str>) -> Json {
    // 1: well; 2: an error. Kind 1: inside one program.
    let status = failed.map_or_else(|| json!({ "code": 1 }), |why| json!({ "code": 2, "message": why }));
    json!({
        "traceId": trace,
        "spanId": id,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": nanoseconds(begin),
        "endTimeUnixNano": nanoseconds(end),
        "status": status,
    })
}

fn attributes(step: &Timed) -> Json {
    let mut all = vec![text("karmaform.address", &step.name), text("karmaform.do", step.what), text("karmaform.type", &step.resource_type)];
    all.extend(step.place.as_deref().map(|place| text("karmaform.place", place)));
    all.push(number("karmaform.attempts", step.attempts));
    Json::Array(all)
}

fn text(key: &str, value: &str) -> Json {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// 64-bit numbers are texts in this form of JSON.
fn number(key: &str, value: impl std::fmt::Display) -> Json {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanoseconds(milliseconds: u64) -> String {
    format!("{}", u128::from(milliseconds) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::app::Stop;

    #[test]
    fn spans_hang_together() {
        let parent = Parent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let trace = spans(&super::super::tests::profile(), &BTreeMap::new(), parent.as_ref(), "seed", "1.2.3");
        let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        assert_eq!(spans.len(), 6);
        assert!(spans.iter().all(|s| s["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"), "{trace:#}");
        assert_eq!(spans[0]["parentSpanId"], "00f067aa0ba902b7");
        assert!(spans[1..].iter().all(|s| s["parentSpanId"] == spans[0]["spanId"]), "{trace:#}");
        let ids: BTreeSet<&str> = spans.iter().map(|s| s["spanId"].as_str().unwrap()).collect();
        assert!(ids.len() == 6 && ids.iter().all(|id| id.len() == 16), "{ids:?}");
        assert_eq!((&spans[4]["status"]["code"], &spans[4]["status"]["message"]), (&json!(2), &json!("Refused")));
        assert_eq!(spans[5]["endTimeUnixNano"], "9500000000");
    }

    #[test]
    fn a_run_says_how_it_ended() {
        let root = |profile: &Profile| {
            spans(profile, &BTreeMap::new(), None, "seed", "1")["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone()
        };
        let mut profile = Profile::default();
        profile.over("plan", 1_000, 2_000, &Ok(2));
        let run = root(&profile);
        assert_eq!(
            (&run["status"]["code"], &run["startTimeUnixNano"], &run["endTimeUnixNano"]),
            (&json!(1), &json!("1000000000"), &json!("2000000000"))
        );
        let attributes =
            json!([text("process.executable.name", "karmaform"), text("karmaform.command", "plan"), number("process.exit.code", 2)]);
        assert_eq!(run["attributes"], attributes);
        let why = karmaform_model::Diagnostic::error("Not so", "The name is hunter2.");
        profile.over("plan", 1_000, 2_000, &Err(Stop::Because(why.into())));
        assert_eq!(root(&profile)["status"], json!({ "code": 2, "message": "Not so" }));
        profile.over("apply", 1_000, 2_000, &Err(Stop::Code(1)));
        assert_eq!(root(&profile)["status"], json!({ "code": 2, "message": "exit code 1" }));
    }

    #[test]
    fn who_began_a_trace_says_whether_it_is_kept() {
        let kept =
            |flags: &str| Parent::parse(&format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}")).map(|p| p.is_kept());
        assert_eq!((kept("01"), kept("03"), kept("00"), kept("02")), (Some(true), Some(true), Some(false), Some(false)));
    }

    #[test]
    fn a_parent_of_another_form_is_none() {
        let zeros = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        for text in ["", "00-x-y-01", zeros.as_str(), "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"] {
            assert_eq!(Parent::parse(text), None, "{text}");
        }
    }
}
