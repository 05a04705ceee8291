//! Replays what an earlier run left in its journal. Knows no backend: records in, snapshot out.

use karmaform_model::{Address, Diagnostic, Diagnostics, JournalRecord, ResourceState, Snapshot, Status};

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Instances that are different now.
    pub changed: Vec<Address>,
    /// Of these, the ones whose last step was not heard of again.
    pub unfinished: Vec<Address>,
    /// What the user should know; nothing if there was nothing to do.
    pub diagnostics: Diagnostics,
}

/// A step on this instance starts: until it is heard of again, what is written about it is not to be trusted.
pub(crate) fn mark_started(snapshot: &mut Snapshot, address: &Address, planned: Option<&ResourceState>) {
    match (snapshot.resources.get_mut(address), planned) {
        (Some(existing), planned) => {
            existing.status = Status::Unfinished;
            // What must stay is not to be lost with the step.
            existing.protected |= planned.is_some_and(|p| p.protected);
        }
        (None, Some(planned)) => {
            snapshot.resources.insert(address.clone(), ResourceState { status: Status::Unfinished, ..planned.clone() });
        }
        (None, None) => {}
    }
}

/// Brings a snapshot up to what the journal knows. Replaying records that are in the snapshot already changes nothing, so it does not
/// matter at which of them the state was last written. Only where somebody else wrote the state meanwhile is their word kept, and the
/// journal just tells what else there is to look at.
pub fn recover(snapshot: &mut Snapshot, records: &[JournalRecord]) -> Recovery {
    let mut recovery = Recovery::default();
    let Some(JournalRecord::Begin { lineage, .. }) = records.first() else {
        if !records.is_empty() {
            recovery.diagnostics.push(
                Diagnostic::warning(
                    "Journal of an earlier run ignored",
                    "The journal does not begin as one does, so it can't be said which state it belongs to. It was not used.",
                )
                .with_hint("Run plan and compare it with what the earlier run did before you apply."),
            );
        }
        return recovery;
    };
    if !snapshot.lineage.is_empty() && *lineage != snapshot.lineage {
        recovery.diagnostics.push(
            Diagnostic::warning(
                "Journal of another state ignored",
                "An earlier run in this directory left a journal, but of a state with another lineage. It was not used.",
            )
            .with_hint("If the backend was changed by mistake, change it back and run plan before anything else."),
        );
        return recovery;
    }
    let before = snapshot.clone();
    if snapshot.lineage.is_empty() {
        snapshot.lineage.clone_from(lineage);
    }
    // The state may have been written once more than the journal knows, if the crash came right between the two.
    let known = last_serial(records);
    let is_overtaken = snapshot.serial > known.saturating_add(1);
    for record in records {
        if is_overtaken { look_again(snapshot, record) } else { replay(snapshot, record) }
    }
    report(&before, snapshot, &mut recovery);
    if !recovery.changed.is_empty() && (is_overtaken || snapshot.serial < known) {
        let relation = if is_overtaken { "newer" } else { "older" };
        let detail = format!(
            "An earlier run knew the state with serial {known}, and it has serial {} now: it is {relation} than the journal.",
            snapshot.serial
        );
        let warning = Diagnostic::warning("State and journal are of different times", detail);
        recovery.diagnostics.push(warning.with_hint("Look at the plan closely before you apply."));
    }
    recovery
}

fn last_serial(records: &[JournalRecord]) -> u64 {
    let serial = |record: &JournalRecord| match record {
        JournalRecord::Begin { serial, .. } | JournalRecord::Written { serial } => Some(*serial),
        _ => None,
    };
    records.iter().rev().find_map(serial).unwrap_or(0)
}

fn replay(snapshot: &mut Snapshot, record: &JournalRecord) {
    match record {
        JournalRecord::Begin { .. } | JournalRecord::Written { .. } => {}
        JournalRecord::Started { address, planned } => mark_started(snapshot, address, planned.as_ref()),
        JournalRecord::Ended { address, state: Some(state) } => {
            snapshot.resources.insert(address.clone(), state.clone());
        }
        JournalRecord::Ended { address, state: None } => {
            snapshot.resources.remove(address);
        }
        JournalRecord::Deposed { address, key, state: Some(state) } => {
            snapshot.deposed.insert((address.clone(), key.clone()), state.clone());
        }
        JournalRecord::Deposed { address, key, state: None } => {
            snapshot.deposed.remove(&(address.clone(), key.clone()));
        }
        JournalRecord::Outputs(outputs) => snapshot.outputs.clone_from(outputs),
    }
}

/// What the state does not know may have been left over by the run that was cut off; what it knows was written later.
fn look_again(snapshot: &mut Snapshot, record: &JournalRecord) {
    if let JournalRecord::Started { address, planned: Some(state) } | JournalRecord::Ended { address, state: Some(state) } = record
        && !snapshot.resources.contains_key(address)
    {
        mark_started(snapshot, address, Some(state));
    }
}

fn report(before: &Snapshot, after: &Snapshot, recovery: &mut Recovery) {
    let touched = before.resources.keys().chain(after.resources.keys()).collect::<std::collections::BTreeSet<_>>();
    for address in touched {
        let now = after.resources.get(address);
        if before.resources.get(address) != now {
            recovery.changed.push(address.clone());
            if now.is_some_and(|r| r.status == Status::Unfinished) {
                recovery.unfinished.push(address.clone());
            }
        }
    }
    let deposed = before.deposed.keys().chain(after.deposed.keys()).filter(|k| before.deposed.get(*k) != after.deposed.get(*k));
    recovery.changed.extend(deposed.map(|(address, _)| address.clone()));
    recovery.changed.sort();
    recovery.changed.dedup();
    if !recovery.changed.is_empty() {
        let unfinished = match recovery.unfinished.len() {
            0 => "All of its steps that had started are known to have ended.".to_owned(),
            1 if recovery.changed.len() == 1 => "It is not known whether its last step was done; it will be looked at first.".to_owned(),
            n => format!("Of {n} of them it is not known whether the last step was done; they will be looked at first."),
        };
        let brought = match recovery.changed.len() {
            1 => "1 resource was".to_owned(),
            n => format!("{n} resources were"),
        };
        recovery.diagnostics.push(Diagnostic::warning(
            "An earlier run was cut off",
            format!("It left a journal, from which {brought} brought up to date in the state. {unfinished}"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(id: &str) -> ResourceState {
        ResourceState {
            resource_type: "t".into(),
            provider: "p".into(),
            schema_version: 0,
            attributes: [("id".to_owned(), serde_json::json!(id))].into_iter().collect(),
            secret_paths: Vec::new(),
            dependencies: Vec::new(),
            create_before_destroy: false,
            protected: false,
            status: Status::Ready,
        }
    }

    fn begin(serial: u64) -> JournalRecord {
        JournalRecord::Begin { lineage: "l".into(), serial, version: String::new() }
    }

    fn started(name: &str, planned: Option<&str>) -> JournalRecord {
        JournalRecord::Started { address: Address::managed("t", name), planned: planned.map(resource) }
    }

    fn ended(name: &str, state: Option<&str>) -> JournalRecord {
        JournalRecord::Ended { address: Address::managed("t", name), state: state.map(resource) }
    }

    /// The state holds `a`, at serial 5; the result is `name=id` with `?` behind what is unfinished, then the summaries.
    fn check(serial: u64, records: &[JournalRecord], expected: &str) {
        let mut snapshot = Snapshot { lineage: "l".into(), serial, ..Snapshot::default() };
        snapshot.resources.insert(Address::managed("t", "a"), resource("old"));
        let recovery = recover(&mut snapshot, records);
        let text = |(address, r): (&Address, &ResourceState)| {
            let mark = if r.status == Status::Unfinished { "?" } else { "" };
            format!("{}={}{mark}", address.name, r.attributes["id"].as_str().unwrap_or_default())
        };
        let mut words: Vec<String> = snapshot.resources.iter().map(text).collect();
        words.extend(snapshot.deposed.keys().map(|(a, key)| format!("{}#{key}", a.name)));
        words.extend(recovery.diagnostics.iter().map(|d| format!("[{}]", d.summary)));
        assert_eq!(words.join(" "), expected, "{records:?}");
    }

    #[test]
    fn each_record_has_its_effect() {
        let cut = "[An earlier run was cut off]";
        check(5, &[], "a=old");
        check(5, &[begin(5)], "a=old");
        check(5, &[begin(5), started("a", Some("new"))], &format!("a=old? {cut}"));
        check(5, &[begin(5), started("b", Some("new"))], &format!("a=old b=new? {cut}"));
        check(5, &[begin(5), started("b", Some("x")), ended("b", Some("new"))], &format!("a=old b=new {cut}"));
        check(5, &[begin(5), started("a", None)], &format!("a=old? {cut}"));
        check(5, &[begin(5), started("a", None), ended("a", None)], cut);
        let deposed = JournalRecord::Deposed { address: Address::managed("t", "a"), key: "0a".into(), state: Some(resource("old")) };
        let gone = JournalRecord::Deposed { address: Address::managed("t", "a"), key: "0a".into(), state: None };
        check(5, &[begin(5), deposed.clone(), ended("a", None), started("a", Some("new"))], &format!("a=new? a#0a {cut}"));
        check(5, &[begin(5), deposed, ended("a", Some("new")), gone], &format!("a=new {cut}"));
        check(6, &[begin(5), ended("a", Some("old")), JournalRecord::Written { serial: 6 }], "a=old");
    }

    #[test]
    fn what_does_not_belong_to_the_state_is_not_used() {
        let other = JournalRecord::Begin { lineage: "other".into(), serial: 5, version: String::new() };
        check(5, &[other, ended("a", None)], "a=old [Journal of another state ignored]");
        check(5, &[ended("a", None)], "a=old [Journal of an earlier run ignored]");
    }

    #[test]
    fn a_state_that_others_wrote_later_keeps_its_word() {
        let times = "[An earlier run was cut off] [State and journal are of different times]";
        check(6, &[begin(5), ended("a", Some("new"))], "a=new [An earlier run was cut off]");
        check(9, &[begin(5), ended("a", Some("new"))], "a=old");
        check(9, &[begin(5), started("a", None), ended("a", None)], "a=old");
        check(9, &[begin(5), started("b", Some("new"))], &format!("a=old b=new? {times}"));
        check(3, &[begin(5), ended("a", Some("new"))], &format!("a=new {times}"));
    }
}
