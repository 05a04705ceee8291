//! Trace events, as Chromium's `about:tracing`, Perfetto and speedscope read them.
//!
//! Source: the "Trace Event Format" of Chromium's tracing.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Profile;

/// The trace: phases in a lane of their own, steps in as many as were at work at once.
pub(super) fn trace(profile: &Profile) -> Json {
    let critical: BTreeSet<usize> = profile.critical().into_iter().collect();
    let mut events: Vec<Json> = profile.phases.iter().map(|p| event(p.name, "phase", (p.begin, p.end), 0, &json!({}))).collect();
    // When each lane is free again.
    let mut lanes: Vec<u64> = Vec::new();
    for (place, step) in profile.steps.iter().enumerate() {
        let free = lanes.iter().position(|end| *end <= step.begin).unwrap_or(lanes.len());
        if free == lanes.len() {
            lanes.push(0);
        }
        if let Some(lane) = lanes.get_mut(free) {
            *lane = step.end.max(step.begin + 1);
        }
        let arguments = json!({
            "do": step.what,
            "type": step.resource_type,
            "place": step.place,
            "attempts": step.attempts,
            "waited_for": step.waits.iter().map(|(_, text)| text).collect::<Vec<_>>(),
            "failed": step.failed,
            "critical": critical.contains(&place),
        });
        events.push(event(&step.name, step.what, (step.begin, step.end), free + 1, &arguments));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

/// A complete event; times in microseconds.
fn event(name: &str, category: &str, (begin, end): (u64, u64), lane: usize, arguments: &Json) -> Json {
    let (begin, length) = (begin.saturating_mul(1000), end.saturating_sub(begin).saturating_mul(1000));
    json!({ "name": name, "cat": category, "ph": "X", "ts": begin, "dur": length, "pid": 1, "tid": lane, "args": arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_lane_do_not_overlap() {
        let trace = trace(&super::super::tests::profile());
        let events = trace["traceEvents"].as_array().unwrap();
        let lanes: Vec<(&str, u64)> = events.iter().map(|e| (e["name"].as_str().unwrap(), e["tid"].as_u64().unwrap())).collect();
        assert_eq!(lanes, [("plan", 0), ("x.a", 1), ("x.b", 2), ("x.d", 3), ("x.c", 1)]);
        assert_eq!(
            (&events[4]["ts"], &events[4]["dur"], &events[4]["args"]["critical"]),
            (&json!(5_000_000), &json!(4_500_000), &json!(true))
        );
    }
}
