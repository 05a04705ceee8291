//! Another version of etcd under the data of a formed cluster: which ways there are (facts of etcd, "Rolling upgrade and downgrade"; etcd's
//! upgrade guides), and what has to be so before the first step. The steps themselves are those of any change that restarts members.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, Scene, Value};

use super::arguments::Arguments;
use super::condition::{Condition, Member, is_looked_at, is_unchanged, seen, sides};
use super::kubernetes::Kubernetes;
use super::leg::has_old_logs;
use super::membership::Membership;
use super::places::{part, part_of, stateful_set};
use super::snapshot;
use super::way::{FIRST_WAY_DOWN, SOURCES, is_too_old, steps};
use crate::versions::Version;

/// What must be free besides in a volume, in bytes: the log of what is written meanwhile.
const SPARE: i64 = 512 << 20;

/// A cluster on its way from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    /// The lowest version that is there, other than the new one.
    pub(crate) from: Version,
    /// Members that don't have the new one yet, by name.
    pub(crate) members: Vec<String>,
    /// Some have it already: a run before began this.
    pub(crate) begun: bool,
}

/// What a cluster is told before members change their version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It goes down to this minor version.
    Down(u32),
    /// What was begun so is given up.
    Stays,
}

/// Whether the version changes.
///
/// # Errors
/// There is no such way, or not at this moment.
pub(crate) fn upgrade(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
    membership: &Membership,
) -> Result<Option<Upgrade>, Diagnostics> {
    let recorded = scene.before.and_then(|b| b.get("version")?.as_str()).and_then(|text| Version::parse(text).ok());
    let joining: Vec<&str> = membership.joining().collect();
    let staying = members.values().filter(|m| wanted.members.contains_key(&m.name) && !joining.contains(&m.name.as_str()));
    let there: BTreeMap<&str, Known> =
        staying.clone().filter_map(|m| Some((m.name.as_str(), known(scene, wanted, &m.name, &recorded)?))).collect();
    let to = &wanted.version;
    let others: BTreeMap<&str, &Version> =
        there.iter().filter(|(_, k)| k.version.text != to.text).map(|(name, k)| (*name, &k.version)).collect();
    let Some(from) = others.values().min_by_key(|v| (v.minor, v.patch)).map(|v| (*v).clone()) else { return Ok(None) };
    let begun = there.values().any(|k| k.is_sure && k.version.text == to.text);
    let mut found = Diagnostics::new();
    if let Some(never) = others.values().find_map(|version| no_way(version, to, begun)) {
        return Err(never.into());
    }
    if !begun && has_old_logs(scene.before, &from, to) {
        return Err(old_logs(&from, to).into());
    }
    let is_down = |m: &&Member<'_>| m.condition != Condition::Works && is_looked_at(&m.name, scene);
    let down: Vec<&str> = staying.filter(is_down).map(|m| m.name.as_str()).collect();
    if !begun && !down.is_empty() {
        found.push(not_all_work(&down, &from));
    }
    if !begun && !membership.moves.is_empty() {
        found.push(not_together(&from));
    }
    let saver = match &wanted.kubernetes {
        Some(_) => Some(stateful_set()),
        None => snapshot::keeper(wanted).map(snapshot::of),
    };
    let is_whole = wanted.kubernetes.is_none() || wanted.members.keys().all(|name| scene.children.contains_key(&part(name, "pod")));
    let saves = is_whole && saver.is_some_and(|path| scene.children.contains_key(&path));
    if !saves {
        found.push(
            Diagnostic::error(
                "Another version only for the whole cluster",
                "Before another version a snapshot is saved, and what does that is not among the targets.",
            )
            .with_hint("Plan without `-target`, or with the cluster as a whole as the target."),
        );
    }
    found.extend(wanted.kubernetes.as_ref().filter(|_| !begun).and_then(|place| no_room(scene, place, members)));
    if !found.is_empty() {
        return Err(found);
    }
    let members = others.keys().map(|n| (*n).to_owned()).collect();
    Ok(Some(Upgrade { from, members, begun }))
}

/// Down it goes only together: told before the first member changes, by a plan that sees all of them work. Who goes on with that, or takes an upgrade back that
/// is under way, is in a cluster that is at the older version. And nobody stays at a version, or goes to one, that the cluster was told to leave.
pub(crate) fn told(scene: &Scene<'_>, wanted: &Arguments, upgrade: Option<&Upgrade>) -> Option<Course> {
    let to = wanted.version.minor;
    if let Some(upgrade) = upgrade.filter(|upgrade| upgrade.from.minor > to) {
        return (!upgrade.begun).then_some(Course::Down(to));
    }
    let is_healthy = |name: &&String| seen(scene, &part(name, "etcd"), "healthy").and_then(Value::as_bool) == Some(true);
    let healthy = wanted.members.keys().filter(is_healthy);
    let mut was_told = healthy.filter_map(|name| seen(scene, &part(name, "etcd"), "goes_down_to")?.as_i64());
    was_told.any(|minor| minor < i64::from(to)).then_some(Course::Stays)
}

/// The snapshot is on the volume of one member, beside the data and the one of the upgrade before, and etcd writes on.
fn no_room(scene: &Scene<'_>, place: &Kubernetes, members: &BTreeMap<String, Member<'_>>) -> Option<Diagnostic> {
    let size = members.keys().filter_map(|name| seen(scene, &part(name, "etcd"), "size_bytes")?.as_i64()).max()?;
    let room = place.storage_size.as_str().and_then(bytes)?;
    let needed = size.saturating_mul(3).saturating_add(SPARE);
    (room < needed).then(|| {
        Diagnostic::error(
            "There is no room for a snapshot",
            format!(
                "Before another version a snapshot is saved on a member's volume. The database has {} MiB, so that takes {} MiB, and the volume has {} MiB.",
                size >> 20,
                needed >> 20,
                room >> 20
            ),
        )
        .with_hint("Compact and defragment first (`karmaform etcd defrag`).")
        .with_hint("Or raise `storage_size` first.")
    })
}

/// A quantity as Kubernetes has it, with the endings that sizes of volumes have.
pub(crate) fn bytes(quantity: &str) -> Option<i64> {
    let ends = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(ends);
    let factor: i64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let tenths: i64 = part.get(..1)?.parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(factor)?.checked_add(factor / 10 * tenths)
}

/// The version of a member.
struct Known {
    version: Version,
    /// It says so itself, or it has the program that is wanted.
    is_sure: bool,
}

/// One that says nothing may have been restarted a moment ago: then it is what the state has a program of, and of which version that is only others
/// with the same one can tell.
fn known(scene: &Scene<'_>, wanted: &Arguments, name: &str, recorded: &Option<Version>) -> Option<Known> {
    let sure = |version| Some(Known { version, is_sure: true });
    if let Some(version) = running(scene, name) {
        return sure(version);
    }
    if wanted.kubernetes.is_some() {
        // Its container was started with the image of its pod's revision.
        let phase = seen(scene, &part(name, "pod"), "phase").and_then(Value::as_str);
        let is_new = phase == Some("Running") && scene.children.get(&part(name, "pod")).is_some_and(|pod| is_unchanged(pod.change));
        let version = if is_new { Some(wanted.version.clone()) } else { recorded.clone() };
        return version.map(|version| Known { version, is_sure: is_new });
    }
    let program = |name: &str| scene.children.get(&part_of(name, "program", "etcd"));
    let started = scene.children.get(&part(name, "unit")).and_then(|c| sides(c.change, "restart_triggers").0?.get("version")?.as_str());
    if is_unchanged(program(name)?.change) {
        // It was started with it, or it has the old archive and nobody has said what is in that.
        return Some(Known { version: wanted.version.clone(), is_sure: started == Some(wanted.version.text.as_str()) });
    }
    let sum = |name: &str| sides(program(name)?.change, "content_sha256").0?.as_str();
    let twin =
        wanted.members.keys().filter(|other| sum(other).is_some_and(|s| Some(s) == sum(name))).find_map(|other| running(scene, other));
    let version = twin.or_else(|| started.and_then(Version::read)).or_else(|| recorded.clone())?;
    Some(Known { version, is_sure: false })
}

/// What a member says that it runs.
fn running(scene: &Scene<'_>, name: &str) -> Option<Version> {
    Version::read(seen(scene, &part(name, "etcd"), "version").and_then(Value::as_str)?)
}

/// Why one version can't follow the other.
fn no_way(from: &Version, to: &Version, begun: bool) -> Option<Diagnostic> {
    let (old, new) = (&from.text, &to.text);
    match to.minor.cmp(&from.minor) {
        Ordering::Equal => None,
        Ordering::Greater if to.minor > from.minor + 1 => Some(
            Diagnostic::error(
                "etcd goes from one minor version to the next",
                format!("Members run {old}, and {new} does not start on what that has written."),
            )
            .with_hint(format!("Apply these one after the other: {}.", steps(from, to).join(", ")))
            .with_hint(SOURCES),
        ),
        Ordering::Greater => {
            let floor = to.floor().filter(|floor| from.patch < *floor)?;
            Some(
                Diagnostic::error(
                    "A version that can't be upgraded from",
                    format!("Members run {old}, and to go to 3.{} they must run 3.{}.{floor} or a newer patch of it: earlier ones leave data behind that it does not take.", to.minor, from.minor),
                )
                .with_hint(format!("Apply the newest 3.{}, then {new}.", from.minor))
                .with_hint(SOURCES),
            )
        }
        // As long as one member runs the old version the cluster has not left it.
        Ordering::Less if begun && to.minor + 1 == from.minor => None,
        // From 3.6 on members can be told to keep their data as the version before does.
        Ordering::Less if to.minor >= FIRST_WAY_DOWN && to.minor + 1 == from.minor && !is_too_old(from.minor, to) => None,
        Ordering::Less if to.minor >= FIRST_WAY_DOWN => {
            let what = format!("Members run {old}. etcd goes down one minor version at a time, and to a patch that knows of it.");
            Some(
                Diagnostic::error("There is no way back to that version at once", what)
                    .with_hint(format!("Apply these one after the other: {}.", steps(from, to).join(", ")))
                    .with_hint(SOURCES),
            )
        }
        Ordering::Less => {
            let what = format!("Members run {old}. etcd {new} does not start on what that has written.");
            Some(
                Diagnostic::error("There is no way back to that version", what)
                    .with_hint(format!("Write {old} into `version` again."))
                    .with_hint(
                        "Only the snapshot from before the upgrade has data of the old version; what was written since is not in it.",
                    ),
            )
        }
    }
}

fn old_logs(from: &Version, to: &Version) -> Diagnostic {
    let what = format!(
        "Members run {}, and {} ends at its start on a log that 3.5 has written to, which nobody can tell from here.",
        from.text, to.text
    );
    Diagnostic::error("Logs that the next version can't read", what).with_hint(format!(
        "Apply {} with `snapshot-count = \"1\"` in `settings` first, so that members begin their logs anew, then {}.",
        from.text, to.text
    ))
}

fn not_all_work(down: &[&str], from: &Version) -> Diagnostic {
    Diagnostic::error(
        "Not all members work",
        format!(
            "Another version is begun only when every member works, and {} {} not.",
            down.join(", "),
            if down.len() == 1 { "does" } else { "do" }
        ),
    )
    .with_hint(format!(
        "Put `version` and `source` back to {}, plan and apply, so that they are repaired; then change the version.",
        from.text
    ))
}

fn not_together(from: &Version) -> Diagnostic {
    Diagnostic::error("Members and the version can't change in one plan", "Each of the two takes one member of what is to spare.")
        .with_hint(format!(
            "Put `version` and `source` back to {} and apply the change of members first, or the other way round.",
            from.text
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_volumes() {
        for (text, expected) in [
            ("10Gi", Some(10 << 30)),
            ("500M", Some(500_000_000)),
            ("1024", Some(1024)),
            ("512Ki", Some(512 << 10)),
            ("x", None),
            ("1E", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        assert!(bytes("1.5Gi").is_some_and(|b| ((3 << 29) - 16..=3 << 29).contains(&b)));
    }

    #[test]
    fn ways_from_one_version_to_another() {
        let version = |text: &str| Version::parse(text).unwrap();
        for (from, to, begun, expected) in [
            ("3.4.23", "3.5.16", false, ""),
            ("3.5.16", "3.5.33", false, ""),
            ("3.5.33", "3.5.16", false, ""),
            ("3.5.33", "3.6.8", false, ""),
            ("3.5.16", "3.6.8", false, "Apply the newest 3.5, then 3.6.8."),
            ("3.6.8", "3.7.1", false, "Apply the newest 3.6, then 3.7.1."),
            ("3.6.11", "3.7.1", false, ""),
            ("3.4.23", "3.6.8", false, "Apply these one after the other: the newest 3.5, 3.6.8."),
            ("3.5.16", "3.7.1", false, "Apply these one after the other: the newest 3.5, the newest 3.6, 3.7.1."),
            ("3.5.16", "3.4.23", false, "Write 3.5.16 into `version` again."),
            ("3.5.16", "3.4.23", true, ""),
            ("3.6.8", "3.4.23", true, "Write 3.6.8 into `version` again."),
        ] {
            let hint = no_way(&version(from), &version(to), begun).map(|d| d.hints[0].clone()).unwrap_or_default();
            assert_eq!(hint, expected, "{from} to {to}, begun: {begun}");
        }
    }
}
