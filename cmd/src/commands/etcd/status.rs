//! `etcd status`: each member closely, and whether all is well. Only looks.
//!
//! Exit codes: 0 all is well, 2 something is not, 1 nobody could be asked.

use karmaform_etcd::{Facts, Hashes, Survey, hashes, survey};
use karmaform_model::{Diagnostic, Diagnostics};
use serde_json::{Value as Json, json};

use super::reach::{Target, look};
use crate::app::{App, Ended};
use crate::planning::looking;
use crate::ui::style::{Theme, Tone};
use crate::ui::table::table;

/// Something is not well.
pub(super) const NOT_WELL: i32 = 2;

/// Arguments of `etcd status`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let reached = look(app, &args.target)?;
    let cluster = &reached.cluster;
    let (seen, hashes) = looking(app, async { (survey(cluster).await, hashes(cluster, None).await) })?;
    let hashes = hashes?;
    let mut wrong = seen.troubles();
    wrong.extend(seen.alarm_words());
    wrong.extend(odd(&hashes));
    let cares = seen.cares();
    if args.target.json {
        app.output.print(&format!("{:#}\n", to_json(&seen, &hashes, &wrong, &cares)));
    } else {
        let text = text(&seen, &hashes, &app.theme);
        app.output.print(&text);
        let told = wrong.iter().chain(&cares).map(|w| warning(w));
        app.show(&told.collect::<Diagnostics>());
    }
    Ok(if wrong.is_empty() && cares.is_empty() { 0 } else { NOT_WELL })
}

fn warning(what: &str) -> Diagnostic {
    let mut letters = what.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    Diagnostic::warning("The cluster is not well", format!("{first}{}.", letters.as_str()))
}

/// Who has other data.
pub(super) fn odd(hashes: &Hashes) -> Option<String> {
    let odd = hashes.odd();
    (!odd.is_empty()).then(|| format!("other data at revision {} on member {}", hashes.revision, odd.join(", ")))
}

/// Whether all have the same data, in a word or two.
pub(super) fn agreement(hashes: &Hashes) -> (&'static str, Tone) {
    match hashes.agree() {
        Some(true) => ("same", Tone::Add),
        Some(false) => ("different", Tone::Remove),
        None => ("can't be told", Tone::Change),
    }
}

fn text(seen: &Survey, hashes: &Hashes, theme: &Theme) -> String {
    let header = ["member", "id", "version", "role", "term", "index", "lag", "size", "in use", "quota", "free", "alarms", "data"];
    let rows: Vec<Vec<(String, Tone)>> = seen
        .members
        .iter()
        .map(|(name, found)| match found {
            Ok(facts) => row(name, facts, seen, hashes),
            Err(why) => {
                let mut row = vec![(name.clone(), Tone::Bold), (why.clone(), Tone::Remove)];
                row.resize(header.len(), (String::new(), Tone::Plain));
                row
            }
        })
        .collect();
    let (word, tone) = agreement(hashes);
    let cluster = seen.answered().next().map(|(_, f)| format!("{:x}", f.cluster_id)).unwrap_or_default();
    let data = theme.paint(tone, word);
    format!("{}Cluster {cluster}; data at revision {}: {data}\n", table(&header.map(str::to_owned), &rows, theme), hashes.revision)
}

fn row(name: &str, facts: &Facts, seen: &Survey, hashes: &Hashes) -> Vec<(String, Tone)> {
    let plain = |text: String| (text, Tone::Plain);
    let lag = seen.lag(facts);
    let role = match (facts.leads(), facts.learner) {
        (true, _) => ("leader", Tone::Add),
        (_, true) => ("learner", Tone::Change),
        _ => ("follower", Tone::Plain),
    };
    let alarms: Vec<&str> = seen.alarms.iter().filter(|a| a.member_id == facts.member_id).map(|a| a.kind).collect();
    let alarms = if alarms.is_empty() { ("-".to_owned(), Tone::Faint) } else { (alarms.join(", "), Tone::Remove) };
    let data = match hashes.members.get(name) {
        Some(Ok(hash)) => (format!("{:08x}", hash.hash), if hashes.odd().contains(&name) { Tone::Remove } else { Tone::Plain }),
        _ => ("-".to_owned(), Tone::Faint),
    };
    let free = if facts.size > 0 { facts.free() * 100 / facts.size } else { 0 };
    vec![
        (name.to_owned(), Tone::Bold),
        plain(format!("{:x}", facts.member_id)),
        plain(facts.version.clone()),
        (role.0.to_owned(), role.1),
        plain(facts.term.to_string()),
        plain(facts.index.to_string()),
        plain(lag.to_string()),
        plain(bytes(facts.size)),
        plain(bytes(facts.in_use)),
        plain(if facts.quota > 0 { bytes(facts.quota) } else { "none".to_owned() }),
        plain(format!("{free} %")),
        alarms,
        data,
    ]
}

/// Bytes, for people.
#[allow(clippy::cast_precision_loss)]
pub(super) fn bytes(bytes: i64) -> String {
    let (unit, name) = match bytes {
        b if b >= 1 << 30 => (1 << 30, "GiB"),
        b if b >= 1 << 20 => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    };
    format!("{:.1} {name}", bytes as f64 / f64::from(unit))
}

fn to_json(seen: &Survey, hashes: &Hashes, wrong: &[String], cares: &[String]) -> Json {
    let member = |(name, found): (&String, &Result<Facts, String>)| match found {
        Ok(f) => json!({
            "name": name, "id": format!("{:x}", f.member_id), "cluster_id": format!("{:x}", f.cluster_id), "version": f.version,
            "storage_version": f.storage_version, "leader": f.leads(), "learner": f.learner, "raft_term": f.term, "raft_index": f.index,
            "raft_applied_index": f.applied, "lag": seen.lag(f), "size_bytes": f.size, "size_in_use_bytes": f.in_use, "quota_bytes": f.quota,
            "revision": f.revision, "errors": f.errors, "healthy": f.read.is_ok() && f.leader != 0 && !f.learner,
            "error": f.read.as_ref().err(),
        }),
        Err(why) => json!({ "name": name, "healthy": false, "error": why }),
    };
    json!({
        "format_version": "1.0", "members": seen.members.iter().map(member).collect::<Vec<_>>(), "alarms": alarms_json(seen),
        "hash": super::hashkv::to_json(hashes), "troubles": wrong, "care": cares,
    })
}

/// Alarms, for programs.
pub(super) fn alarms_json(seen: &Survey) -> Json {
    let one =
        |a: &karmaform_etcd::Alarm| json!({ "alarm": a.kind, "member": seen.called(a.member_id), "id": format!("{:x}", a.member_id) });
    seen.alarms.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!([bytes(20_480), bytes(3 << 20), bytes(5 << 29)], ["20.0 KiB", "3.0 MiB", "2.5 GiB"]);
        assert_eq!(warning("member b: no leader").detail, "Member b: no leader.");
    }
}
