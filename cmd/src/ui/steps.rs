//! The steps of one composite in the order they run, as a short numbered list.

use std::collections::BTreeMap;

use karmaform_model::{Action, Address, ChildStep, Key, Plan, StepKind};

/// What a numbered line is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    word: &'static str,
    /// The path above the last step, keys left out.
    parent: Vec<String>,
    /// Keys on the way, joined.
    keys: Option<String>,
}

/// What may happen at the same time: waits in words, and changes.
type Round<'a> = (Vec<String>, Vec<(&'static str, &'a Address)>);
/// The same verb, parent and names under different keys.
type Alike = (&'static str, Vec<String>, Vec<String>);

/// The numbered lines for a composite; nothing if its order needs no gate, as the order then is the usual one.
pub(crate) fn ordered(plan: &Plan, composite: &Address) -> Vec<String> {
    // Most have none, and there may be thousands of composites: only of those with a gate all steps are looked at.
    let is_gate = |kind: &StepKind| matches!(kind, StepKind::Gate { composite: c, .. } if c == composite);
    if !plan.steps.iter().any(|step| is_gate(&step.kind)) {
        return Vec::new();
    }
    let mut levels: Vec<usize> = Vec::with_capacity(plan.steps.len());
    let mut rounds: BTreeMap<usize, Round<'_>> = BTreeMap::new();
    let mut own: Vec<bool> = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let level = step.after.iter().filter_map(|d| Some(levels.get(*d)? + usize::from(*own.get(*d)?))).max().unwrap_or(0);
        levels.push(level);
        let is_own = match &step.kind {
            StepKind::Gate { composite: c, gate } if c == composite => {
                let verb = if gate.acts { "" } else { "wait until " };
                let text = format!("{verb}{} (at most {})", gate.name, duration(gate.limit));
                rounds.entry(level).or_default().0.push(text);
                true
            }
            StepKind::Change { resource, part } => match plan.resources.get(*resource) {
                Some(r) if r.address.composite().as_ref() == Some(composite) => {
                    rounds.entry(level).or_default().1.push((word(*part), &r.address));
                    true
                }
                _ => false,
            },
            _ => false,
        };
        own.push(is_own);
    }
    rounds
        .into_values()
        .enumerate()
        .map(|(i, (waits, changes))| {
            let parts: Vec<String> = grouped(&changes).into_iter().chain(waits).collect();
            format!("{}. {}", i + 1, parts.join("; "))
        })
        .collect()
}

fn word(part: Action) -> &'static str {
    match part {
        Action::NoOp => "keep",
        Action::Read => "read",
        Action::Create | Action::DestroyThenCreate | Action::CreateThenDestroy => "create",
        Action::Update => "update",
        Action::Delete => "destroy",
        Action::Forget => "forget",
    }
}

/// `create member["a", "b"]: data, unit`: the same parts of several members on one line.
fn grouped(changes: &[(&'static str, &Address)]) -> Vec<String> {
    // For each parent path with its keys, the leaves; then parents with equal leaves become one.
    let mut leaves: BTreeMap<Part, Vec<String>> = BTreeMap::new();
    for (word, address) in changes {
        let Some((last, above)) = address.child.split_last() else { continue };
        let keys: Vec<String> = above.iter().filter_map(|s| s.key.as_ref()).map(key_text).collect();
        let part = Part { word, parent: above.iter().map(|s| s.name.clone()).collect(), keys: (!keys.is_empty()).then(|| keys.join("/")) };
        leaves.entry(part).or_default().push(last.to_string());
    }
    let mut merged: BTreeMap<Alike, Vec<String>> = BTreeMap::new();
    for (part, mut names) in leaves {
        names.sort();
        merged.entry((part.word, part.parent, names)).or_default().extend(part.keys);
    }
    let mut texts: Vec<String> = Vec::new();
    for ((word, parent, names), keys) in merged {
        let names = merge_keyed(names).join(", ");
        if parent.is_empty() {
            texts.push(format!("{word} {names}"));
        } else if keys.is_empty() {
            texts.push(format!("{word} {}/{names}", parent.join("/")));
        } else {
            texts.push(format!("{word} {}[{}]: {names}", parent.join("/"), keys.join(", ")));
        }
    }
    texts
}

/// `member["a"]`, `member["b"]` as `member["a", "b"]`.
fn merge_keyed(names: Vec<String>) -> Vec<String> {
    let mut merged: Vec<(String, Vec<String>)> = Vec::new();
    for name in names {
        let (base, key) = match name.strip_suffix(']').and_then(|n| n.split_once('[')) {
            Some((base, key)) => (base.to_owned(), vec![key.to_owned()]),
            None => (name, Vec::new()),
        };
        match merged.last_mut() {
            Some((last, keys)) if *last == base && !keys.is_empty() && !key.is_empty() => keys.extend(key),
            _ => merged.push((base, key)),
        }
    }
    merged.into_iter().map(|(base, keys)| if keys.is_empty() { base } else { format!("{base}[{}]", keys.join(", ")) }).collect()
}

fn key_text(key: &Key) -> String {
    let step = ChildStep { name: String::new(), key: Some(key.clone()) };
    step.to_string().trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// Seconds in words: `90s`, `5m`, `2h30m`.
pub(crate) fn duration(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, 0, 0) => format!("{h}h"),
        (h, m, _) => format!("{h}h{m}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_several_members_share_a_line() {
        let addresses: Vec<Address> = [
            "c.m/ca",
            "c.m/member[\"a\"]/data",
            "c.m/member[\"a\"]/unit",
            "c.m/member[\"b\"]/data",
            "c.m/member[\"b\"]/unit",
            "c.m/node[\"a\"]",
            "c.m/node[\"b\"]",
        ]
        .iter()
        .map(|a| a.parse().unwrap())
        .collect();
        let changes: Vec<_> = addresses.iter().map(|a| ("create", a)).collect();
        assert_eq!(grouped(&changes), ["create ca, node[\"a\", \"b\"]", "create member[\"a\", \"b\"]: data, unit"]);
        assert_eq!(grouped(&changes[1..2]), ["create member[\"a\"]: data"]);
    }

    #[test]
    fn durations_read_easily() {
        assert_eq!([5, 60, 90, 3600, 9000].map(duration), ["5s", "1m", "1m30s", "1h", "2h30m"]);
    }
}
