//! Trace events, as Chromium's `about:tracing`, Perfetto and speedscope read them.
//!
//! Source: the "Trace Event Format" of Chromium's tracing.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Profile;

/// The trace: phases in a lane of their own, looks and steps in as many as were at work at once.
pub(super) fn trace(profile: &Profile) -> Json {
    let critical: BTreeSet<usize> = profile.critical().into_iter().collect();
    let mut events: Vec<Json> = profile.phases.iter().map(|p| event(p.name, "phase", (p.begin, p.end), 0, &json!({}))).collect();
    let mut lanes = Lanes::default();
    for asked in &profile.asked {
        let arguments = json!({ "provider": asked.provider, "things": asked.things, "failed": asked.failed });
        let lane = lanes.free(asked.begin, asked.end);
        events.push(event(&asked.whom, "look", (asked.begin, asked.end), lane, &arguments));
    }
    for (place, step) in profile.steps.iter().enumerate() {
        let arguments = json!({
            "do": step.what,
            "type": step.resource_type,
            "place": step.place,
            "attempts": step.attempts,
            "waited_for": step.waits.iter().map(|(_, text)| text).collect::<Vec<_>>(),
            "failed": step.failed,
            "critical": critical.contains(&place),
        });
        let lane = lanes.free(step.begin, step.end);
        events.push(event(&step.name, step.what, (step.begin, step.end), lane, &arguments));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

/// When each lane is free again.
#[derive(Default)]
struct Lanes(Vec<u64>);

impl Lanes {
    /// The first that is free then; the lane of the phases is before all of these.
    fn free(&mut self, begin: u64, end: u64) -> usize {
        let free = self.0.iter().position(|busy| *busy <= begin).unwrap_or(self.0.len());
        if free == self.0.len() {
            self.0.push(0);
        }
        if let Some(lane) = self.0.get_mut(free) {
            *lane = end.max(begin + 1);
        }
        free + 1
    }
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
