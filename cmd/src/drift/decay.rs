//! What is as it was made and will not stay well by itself: certificates that end, and what says of itself that it is not well. Pure.

use std::collections::BTreeMap;

use karmaform_model::{Address, Caveat, Object, Snapshot, Upkeep, Value};

/// A certificate that ends sooner is told of, whether an apply would renew it or not: seconds.
const NEAR: i64 = 14 * DAY;
const DAY: i64 = 24 * 3600;
/// The computed attribute with the end of a certificate, RFC 3339.
const END: &str = "not_after";

/// When a certificate ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certificate {
    /// Seconds since 1970.
    pub(super) end: i64,
}

impl Certificate {
    /// True if it ends soon.
    pub(super) fn is_near(self, now: i64) -> bool {
        self.end - now < NEAR
    }

    /// What to say of it.
    pub(super) fn is_due(self, now: i64) -> String {
        let end = crate::ui::json::timestamp(self.end);
        let left = self.end - now;
        if left <= 0 {
            return format!("its certificate ended at {end}");
        }
        let days = left / DAY;
        let unit = if days == 1 { "day" } else { "days" };
        format!("its certificate is to be renewed: it ends at {end}, in {days} {unit}")
    }
}

/// What to say of a version that gets no patches any more, or not for long, or that is not that of what it works with. `now` in seconds since 1970.
pub(super) fn unkept(upkeep: &Upkeep, now: i64) -> Option<String> {
    let what = &upkeep.what;
    let day = |end: i64| crate::ui::json::timestamp(end).split('T').next().unwrap_or_default().to_owned();
    let end = match &upkeep.caveat {
        Caveat::Fellow(fellow) => return Some(format!("{what} works with {fellow}, and should be of its version")),
        Caveat::Patches(end) => *end,
    };
    match end {
        None => Some(format!("{what} gets no patches any more")),
        Some(end) if end <= now => Some(format!("{what} gets no patches any more, since {}", day(end))),
        Some(end) if end - now < NEAR => Some(format!("{what} gets patches until {}, and none after that", day(end))),
        Some(_) => None,
    }
}

/// All certificates of which the state knows when they end.
pub(super) fn certificates(state: &Snapshot) -> BTreeMap<&Address, Certificate> {
    let end = |text: &str| text.parse::<jiff::Timestamp>().ok().map(|t| Certificate { end: t.as_second() });
    state.resources.iter().filter_map(|(address, r)| Some((address, end(r.attributes.get(END)?.as_str()?)?))).collect()
}

/// The facts that say how a thing is.
const HEALTH: [&str; 2] = ["healthy", "ready"];

fn is_not(facts: &Object, name: &str) -> bool {
    facts.get(name).is_some_and(|v| v.as_bool() == Some(false) || matches!(v.as_str(), Some("False" | "Unknown")))
}

/// What something says of itself that is not well, a sentence each.
pub(super) fn troubles(facts: &Object) -> Vec<String> {
    let mut found = Vec::new();
    let text = |name: &str| facts.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
    let why = text("problem").or_else(|| text("error")).map(|w| format!(": {w}")).unwrap_or_default();
    found.extend(HEALTH.iter().filter(|name| is_not(facts, name)).map(|name| format!("it is not {name}{why}")));
    if let Some(state) = text("active_state").filter(|s| *s == "failed") {
        found.push(format!("its unit is {state}"));
    }
    let alarms: Vec<&str> = facts.get("alarms").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str).collect();
    if !alarms.is_empty() {
        // Of a member that is away, or gone, another one tells.
        found.push(format!("the alarm {} is on", alarms.join(" and ")));
    }
    found.extend(facts.get("care").and_then(Value::as_items).unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned));
    for item in facts.get("items").and_then(Value::as_items).unwrap_or_default() {
        let part = |name: &str| item.get(name).and_then(Value::as_str);
        if let Some(ready) = part("ready").filter(|r| *r != "True") {
            found.push(format!("{} is not ready ({ready})", part("name").unwrap_or("one of its entries")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(entries: &[(&str, Value)]) -> Object {
        entries.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect()
    }

    #[test]
    fn what_is_not_well_is_said() {
        let told = |entries: &[(&str, Value)]| troubles(&facts(entries)).join("; ");
        assert_eq!(told(&[("healthy", true.into()), ("ready", "True".into()), ("active_state", "active".into())]), "");
        assert_eq!(told(&[("healthy", false.into()), ("error", "no leader".into())]), "it is not healthy: no leader");
        assert_eq!(told(&[("ready", "Unknown".into()), ("problem", "silent".into())]), "it is not ready: silent");
        assert_eq!(told(&[("alarms", Value::strings(["NOSPACE", "CORRUPT"]))]), "the alarm NOSPACE and CORRUPT is on");
        assert_eq!(told(&[("care", Value::strings(["it has no room"]))]), "it has no room");
        let member = |name: &str, ready: &str| Value::object([("name", name.into()), ("ready", ready.into())]);
        let items = Value::tuple(vec![member("eu1", "True"), member("eu2", "False")]);
        assert_eq!(told(&[("items", items)]), "eu2 is not ready (False)");
    }

    #[test]
    fn versions_end() {
        let now = 1_000 * DAY;
        let of = |end| unkept(&Upkeep { attribute: "version", what: "X 1.2".into(), caveat: Caveat::Patches(end) }, now);
        assert_eq!(of(None).unwrap(), "X 1.2 gets no patches any more");
        assert_eq!(of(Some(now)).unwrap(), "X 1.2 gets no patches any more, since 1972-09-27");
        assert_eq!(of(Some(now + 13 * DAY)).unwrap(), "X 1.2 gets patches until 1972-10-10, and none after that");
        assert_eq!(of(Some(now + 15 * DAY)), None);
    }

    #[test]
    fn certificates_end() {
        let now = 1_000_000;
        let ends = |days: i64| Certificate { end: now + days * DAY };
        assert!(ends(13).is_near(now) && !ends(15).is_near(now));
        assert_eq!(ends(1).is_due(now), "its certificate is to be renewed: it ends at 1970-01-13T13:46:40Z, in 1 day");
        assert!(ends(-1).is_due(now).starts_with("its certificate ended at 1970-01-11"));
    }
}
