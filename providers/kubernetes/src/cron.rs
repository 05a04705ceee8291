//! What a CronJob says of its runs.

use serde_json::Value as Json;

/// When its newest run was to be, if that is over and was no success; `None` while one is under way, and where nobody says when the last success was (no run
/// was one yet, or the server is older than Kubernetes 1.21). Times are RFC 3339, in UTC. Source: `CronJobStatus` in `k8s.io/api/batch/v1`.
pub(crate) fn missed<'a>(kind: &str, live: &'a Json) -> Option<&'a str> {
    let status = &live["status"];
    let is_running = status["active"].as_array().is_some_and(|jobs| !jobs.is_empty());
    let (scheduled, succeeded) = (status["lastScheduleTime"].as_str()?, status["lastSuccessfulTime"].as_str()?);
    (kind == "CronJob" && !is_running && succeeded < scheduled).then_some(scheduled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_was_no_success_is_told() {
        let (early, late) = ("2026-01-01T00:00:07Z", "2026-01-02T00:00:00Z");
        let of = |scheduled: Option<&str>, succeeded: Option<&str>, active: Json| {
            let live = json!({ "status": { "lastScheduleTime": scheduled, "lastSuccessfulTime": succeeded, "active": active } });
            missed("CronJob", &live).map(str::to_owned)
        };
        assert_eq!(of(Some(late), Some(early), Json::Null).as_deref(), Some(late));
        assert_eq!(of(Some(late), Some(early), json!([{ "name": "x" }])), None, "it is under way");
        assert_eq!(of(Some(late), Some(early), json!([])).as_deref(), Some(late));
        assert_eq!(of(Some(early), Some(late), Json::Null), None);
        assert_eq!(of(Some(late), None, Json::Null), None, "nobody says");
        assert_eq!(of(None, Some(early), Json::Null), None);
        let live = json!({ "status": { "lastScheduleTime": late, "lastSuccessfulTime": early } });
        assert_eq!(missed("Job", &live), None);
    }
}
