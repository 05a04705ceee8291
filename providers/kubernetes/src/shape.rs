//! When two spellings of an object are the same, and which spelling is shown.

use serde_json::{Map, Value as Json, json};

/// Places where numbers have units.
const QUANTITIES: &[&str] = &["limits", "requests", "hard", "capacity", "default", "defaultRequest", "min", "max"];

/// True if what is wanted is what is there. Never true for what the server would see as different; but what it would see as the same,
/// in other fields than quantities, only its dry run tells.
pub(crate) fn same(wanted: &Json, live: &Json) -> bool {
    alike(wanted, live, false)
}

fn alike(a: &Json, b: &Json, holds_quantities: bool) -> bool {
    match (a, b) {
        (Json::Object(x), Json::Object(y)) => {
            // Servers write null for a time that does not apply, in what things are made of for one: that is as good as nothing.
            let is_said = |(name, value): &(&String, &Json)| !(*name == "creationTimestamp" && value.is_null());
            x.len() == y.iter().filter(is_said).count()
                && x.iter().all(|(name, p)| {
                    let is_holder = QUANTITIES.contains(&name.as_str());
                    y.get(name).is_some_and(|q| alike(p, q, is_holder) || (holds_quantities && same_quantity(p, q)))
                })
        }
        (Json::Array(x), Json::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(p, q)| alike(p, q, false)),
        (a, b) => a == b,
    }
}

fn same_quantity(a: &Json, b: &Json) -> bool {
    let text = |v: &Json| match v {
        Json::String(s) => Some(s.clone()),
        Json::Number(n) => Some(n.to_string()),
        _ => None,
    };
    match (text(a), text(b)) {
        (Some(x), Some(y)) => x == y || quantity(&x).is_some_and(|p| quantity(&y) == Some(p)),
        _ => a == b,
    }
}

/// What Kubernetes calls a quantity, in thousandths; none if it is no quantity, or finer, or too large.
pub(crate) fn quantity(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}").parse::<i128>().ok()?;
    let scale = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let binary = |power: u32| 1000i128.checked_mul(1024i128.checked_pow(power)?);
    let unit = match unit {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => binary(1)?,
        "Mi" => binary(2)?,
        "Gi" => binary(3)?,
        "Ti" => binary(4)?,
        _ => return None,
    };
    let product = digits.checked_mul(unit)?;
    (product % scale == 0).then_some(product / scale)
}

/// What is there, in the spelling of what is wanted wherever the server would make the same of it. `made` is what it would make.
pub(crate) fn respelled(live: &Json, wanted: &Json, made: &Json) -> Json {
    if live == made {
        return wanted.clone();
    }
    match (live, wanted, made) {
        (Json::Object(l), Json::Object(w), Json::Object(m)) => {
            let mut all = Map::new();
            for name in l.keys().chain(w.keys()) {
                let value = match (l.get(name), w.get(name), m.get(name)) {
                    (Some(l), Some(w), Some(m)) => Some(respelled(l, w, m)),
                    // The server has it, and would still, although it is not wanted: not ours to show.
                    (Some(l), None, Some(m)) if l == m => None,
                    (Some(l), _, _) => Some(l.clone()),
                    // The server drops it every time.
                    (None, Some(w), None) => Some(w.clone()),
                    (None, _, _) => None,
                };
                if let Some(value) = value {
                    all.insert(name.clone(), value);
                }
            }
            Json::Object(all)
        }
        (Json::Array(l), Json::Array(w), Json::Array(m)) => {
            let items = (0..l.len()).map(|i| match (counterpart(w, l, i), counterpart(m, l, i)) {
                (Some(w), Some(m)) => respelled(&l[i], w, m),
                _ => l[i].clone(),
            });
            Json::Array(items.collect())
        }
        _ => live.clone(),
    }
}

/// What stands in the one list for an item of the other: what has its name, or else its place.
fn counterpart<'a>(list: &'a [Json], other: &[Json], index: usize) -> Option<&'a Json> {
    match other[index].get("name") {
        Some(name) => list.iter().find(|i| i.get("name") == Some(name)),
        None => list.get(index).filter(|_| list.len() == other.len()),
    }
}

/// What is there, where nobody may ask the server what it would make of what is wanted: without what it has beyond that, which is as a rule
/// its defaults, and in the same spelling. If nothing else differs, what is beyond is the difference, and stays.
pub(crate) fn trimmed(live: &Json, like: &Json) -> Json {
    let trimmed = within(live, like);
    if trimmed == *like { live.clone() } else { trimmed }
}

fn within(live: &Json, like: &Json) -> Json {
    match (live, like) {
        (Json::Object(live), Json::Object(like)) => {
            let kept = like.iter().filter_map(|(name, like)| {
                let live = live.get(name)?;
                // Under its name, which says whether it is a quantity.
                let is_same = same(&json!({ name: live }), &json!({ name: like }));
                Some((name.clone(), if is_same { like.clone() } else { within(live, like) }))
            });
            Json::Object(kept.collect())
        }
        (Json::Array(live), Json::Array(like)) => {
            let item = |i: usize| counterpart(like, live, i).map_or_else(|| live[i].clone(), |like| within(&live[i], like));
            Json::Array((0..live.len()).map(item).collect())
        }
        _ => live.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_the_same_in_any_unit_but_only_where_they_are_quantities() {
        let resources = |cpu: Json| json!({ "resources": { "limits": { "cpu": cpu, "memory": "1Gi" } } });
        assert!(same(&resources(json!("1000m")), &resources(json!("1"))));
        assert!(same(&resources(json!(1)), &resources(json!("1"))));
        assert!(same(&resources(json!("0.5")), &resources(json!("500m"))));
        assert!(!same(&resources(json!("1001m")), &resources(json!("1"))));
        assert!(!same(&json!({ "annotations": { "a": "1000m" } }), &json!({ "annotations": { "a": "1" } })));
        assert!(!same(&json!({ "a": 1, "b": 2 }), &json!({ "a": 1 })));
        let template = |metadata: Json| json!({ "volumeClaimTemplates": [{ "metadata": metadata }] });
        let plain = template(json!({ "name": "data" }));
        assert!(same(&plain, &template(json!({ "name": "data", "creationTimestamp": null }))));
        assert!(!same(&plain, &template(json!({ "name": "data", "creationTimestamp": "2026-01-01T00:00:00Z" }))));
        assert!(!same(&plain, &template(json!({ "name": "data", "labels": null }))));
        assert_eq!((quantity("1024Mi"), quantity("1x"), quantity("0.0001")), (quantity("1Gi"), None, None));
    }

    #[test]
    fn what_the_server_adds_by_itself_is_not_shown() {
        let like = json!({ "replicas": 2, "list": [{ "name": "x", "resources": { "limits": { "cpu": "1000m" } } }], "map": { "a": "1" } });
        let live = |replicas: i64, map: Json| json!({ "replicas": replicas, "list": [{ "name": "x", "policy": "File", "resources": { "limits": { "cpu": "1" } } }], "map": map });
        let mut changed = like.clone();
        changed["replicas"] = 0.into();
        assert_eq!(trimmed(&live(0, json!({ "a": "1" })), &like), changed);
        let more = live(2, json!({ "a": "1", "b": "2" }));
        assert_eq!(trimmed(&more, &like), more, "it is the difference");
        let gone = trimmed(&json!({ "list": [] }), &like);
        assert_eq!(gone, json!({ "list": [] }));
    }

    #[test]
    fn only_what_would_change_is_shown_as_it_is() {
        let live = json!({ "cpu": "1", "image": "a", "list": [{ "name": "x", "v": "1" }], "extra": 1, "gone": 2 });
        let made = json!({ "cpu": "1", "image": "b", "list": [{ "name": "y", "v": "7" }, { "name": "x", "v": "1" }], "extra": 1 });
        let wanted =
            json!({ "cpu": "1000m", "image": "b", "list": [{ "name": "y", "v": "7" }, { "name": "x", "v": "1000m" }], "dropped": {} });
        assert_eq!(
            respelled(&live, &wanted, &made),
            json!({ "cpu": "1000m", "image": "a", "list": [{ "name": "x", "v": "1000m" }], "dropped": {}, "gone": 2 })
        );
    }
}
