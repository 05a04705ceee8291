//! What a cluster that works is in need of, in sentences: room, a defragmentation, members that nobody knows or that it does not know, members
//! that have other data, users. Pure but for what drift alone asks.

use std::collections::{BTreeMap, BTreeSet};

use tokio::task::JoinSet;

use crate::client::{Client, within};
use crate::look::Look;
use crate::versions::Version;

/// Of its quota, in parts of a hundred; etcd's own alert is at 95. Source: etcd's `contrib/mixin`.
pub(crate) const FULL: i64 = 80;
/// A database smaller than this needs no defragmentation, in bytes.
pub(crate) const SMALL: i64 = 100 << 20;
/// What etcd's database may grow to unless a setting says otherwise, in bytes. Source: `--quota-backend-bytes`.
pub(crate) const QUOTA: i64 = 2 << 30;

/// What there is to do about a cluster that asks everybody for a name and a password.
const LOCKED: &str = "authentication was enabled in its cluster, which refuses the certificate by which it is read and written: \
                      `etcdctl --user=root auth disable` ends that";

/// What each member is in need of, by the names that they are asked by. `names`: all members that there should be; `quota` in bytes, where a
/// member does not say it itself; below zero: there is none.
pub(crate) fn care(looks: &BTreeMap<String, Look>, names: &BTreeSet<&str>, quota: i64) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = looks.iter().map(|(name, look)| (name.clone(), of_size(look, quota))).collect();
    for (name, look) in looks {
        found.entry(name.clone()).or_default().extend(unfinished(look));
    }
    // It is enabled for all of a cluster, and told at one place.
    if let Some(name) = looks.iter().find(|(_, look)| look.refuses).map(|(name, _)| name) {
        found.entry(name.clone()).or_default().push(LOCKED.to_owned());
    }
    // Of those who hear each other, any knows all members. It is told at one place, whoever says it.
    let Some((look, at)) = looks.values().find(|look| look.trouble().is_none()).zip(names.first()) else { return found };
    // Where members are called by their URLs, nobody knows their names.
    if names.iter().any(|name| name.contains("://")) {
        return found;
    }
    let ids: BTreeSet<u64> = looks.values().map(|l| l.member_id).collect();
    // One of ours that does not answer is known by its name; one that does answer is a member already, whoever else calls itself so.
    let is_there = |name: &str| looks.get(name).is_some_and(|own| look.members.iter().any(|m| m.id == own.member_id));
    let is_ours = |name: &str| names.contains(name) && !is_there(name);
    let strangers = look.members.iter().filter(|m| !ids.contains(&m.id) && !is_ours(&m.name));
    for stranger in strangers {
        let name = if stranger.name.is_empty() { "(not started)" } else { &stranger.name };
        let line = format!("its cluster has a member that is not in the configuration: {name} at {}", stranger.peer_urls.join(","));
        found.entry((*at).to_owned()).or_default().push(line);
    }
    found
}

/// True if the cluster has let this member go.
pub(crate) fn is_removed(id: &str, looks: &BTreeMap<String, Look>) -> bool {
    let Ok(id) = u64::from_str_radix(id, 16) else { return false };
    let told = looks.values().find(|look| look.trouble().is_none() && look.member_id != id);
    told.is_some_and(|look| !look.members.is_empty() && look.members.iter().all(|m| m.id != id))
}

/// Alarms of members that nobody hears: they are away, or the cluster has removed them, and their alarms are on all the same. They are told at one
/// place. `asked`: whom one looked at; `names`: all members that there should be.
pub(crate) fn orphaned<'a>(
    looks: &'a BTreeMap<String, Look>,
    asked: &BTreeSet<&str>,
    names: &BTreeSet<&str>,
) -> Option<(&'a str, Vec<&'a str>)> {
    // Where members are called by their URLs, nobody knows who was not asked.
    if names.iter().any(|name| name.contains("://")) {
        return None;
    }
    let (at, look) = looks.iter().find(|(_, look)| look.trouble().is_none())?;
    let is_left_out = |name: &str| names.contains(name) && !asked.contains(name);
    let is_told =
        |id: u64| looks.values().any(|l| l.member_id == id) || look.members.iter().any(|m| m.id == id && is_left_out(m.name.as_str()));
    let alarms: Vec<&str> = look.alarms.iter().filter(|(id, _)| !is_told(*id)).map(|(_, alarm)| alarm.as_str()).collect();
    (!alarms.is_empty()).then_some((at.as_str(), alarms))
}

/// A cluster that was told to go down to a version, and of which a member runs the newer one still.
fn unfinished(look: &Look) -> Option<String> {
    let (to, runs) = (look.goes_down_to?, Version::read(&look.version)?.minor);
    (runs > to).then(|| format!("its cluster was told to go down to 3.{to}, and it runs 3.{runs} still: go on with that, or give it up"))
}

fn of_size(look: &Look, quota: i64) -> Vec<String> {
    let quota = if look.quota == 0 { quota } else { look.quota };
    let mut found = Vec::new();
    if quota > 0 && look.size > quota / 100 * FULL {
        let (is, may) = (bytes(look.size), bytes(quota));
        found.push(format!("its database has {is} of the {may} that it may grow to; then all writes end"));
    }
    if is_fragmented(look.size, look.in_use) {
        let (free, all) = (bytes(look.size - look.in_use), bytes(look.size));
        found.push(format!("{free} of its database's {all} are free pages: it is to be defragmented"));
    }
    found
}

/// More than half of a database that is not small is free pages. etcd's own alert is at that, too (`contrib/mixin`).
pub(crate) fn is_fragmented(size: i64, in_use: i64) -> bool {
    size > SMALL && in_use > 0 && in_use < size / 2
}

/// Bytes, for people.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn bytes(bytes: i64) -> String {
    let (unit, name) = if bytes >= 1 << 30 { (1 << 30, "GiB") } else { (1 << 20, "MiB") };
    format!("{:.1} {name}", bytes as f64 / f64::from(unit))
}

/// Members whose data are not those of most: hashes of what all had at one revision. Nothing is said where there is no majority to tell by,
/// or where that revision can't be asked for any more.
pub(crate) async fn unlike(client: &Client, looks: &BTreeMap<String, Look>) -> BTreeMap<String, String> {
    let voters: BTreeMap<&String, &Look> = looks.iter().filter(|(_, look)| look.trouble().is_none()).collect();
    let Some(revision) = voters.values().map(|l| l.revision).min().filter(|_| voters.len() > 1) else { return BTreeMap::new() };
    let mut running = JoinSet::new();
    for name in voters.into_keys().cloned() {
        let client = client.clone();
        running.spawn(async move {
            let hash = match client.open(&name).await {
                Ok(mut connection) => within(connection.hash_kv(revision)).await.ok(),
                Err(_) => None,
            };
            (name, hash.map(|h| (h.hash(), h.compact_version())))
        });
    }
    let mut hashes = BTreeMap::new();
    while let Some(done) = running.join_next().await {
        if let Ok((name, Some(hash))) = done {
            hashes.insert(name, hash);
        }
    }
    odd(&hashes, revision)
}

/// Users that somebody made, told at one member. Without one authentication can't be enabled; where it is, and the certificate that asks is such a
/// user's, nothing else tells.
pub(crate) async fn users(client: &Client, looks: &BTreeMap<String, Look>) -> Option<(String, String)> {
    // A cluster of others, which is known by its URLs alone, may well have some.
    let is_asked = |(name, look): &(&String, &Look)| look.trouble().is_none() && !look.refuses && !name.contains("://");
    let (name, _) = looks.iter().find(is_asked)?;
    let mut connection = client.open(name).await.ok()?;
    let answer = within(connection.user_list()).await.ok()?;
    let users = answer.users().join(", ");
    let line = format!(
        "its cluster has users that nobody configured ({users}): where authentication is enabled (`etcdctl auth status`), whoever reads or writes \
         must be one of them; `etcdctl auth disable` and `etcdctl user delete` take that back"
    );
    (!users.is_empty()).then(|| (name.clone(), line))
}

/// Who has another hash than most. Only hashes of one compaction can be compared.
fn odd(hashes: &BTreeMap<String, (u32, i64)>, revision: i64) -> BTreeMap<String, String> {
    let compactions: BTreeSet<i64> = hashes.values().map(|(_, compacted)| *compacted).collect();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    hashes.values().for_each(|(hash, _)| *counts.entry(*hash).or_default() += 1);
    if compactions.len() != 1 || counts.len() < 2 {
        return BTreeMap::new();
    }
    let most = counts.iter().find(|(_, n)| **n * 2 > hashes.len()).map(|(hash, _)| *hash);
    let unlike = hashes.iter().filter(|(_, (hash, _))| most != Some(*hash));
    let whom = if most.is_some() { "most members" } else { "other members" };
    unlike
        .map(|(name, _)| {
            (name.clone(), format!("its data are not those of {whom} at revision {revision}: do not write, and save its files"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Known;

    fn look(id: u64, members: &[(u64, &str)]) -> Look {
        let known = |(id, name): &(u64, &str)| Known {
            id: *id,
            name: (*name).to_owned(),
            learner: false,
            peer_urls: vec![format!("https://10.0.0.{id}:2380")],
            client_urls: vec![],
        };
        Look {
            member_id: id,
            cluster_id: 1,
            leader: 1,
            version: "3.6.8".into(),
            storage: None,
            goes_down_to: None,
            learner: false,
            size: 20 << 20,
            in_use: 1 << 20,
            quota: 0,
            revision: 9,
            read: Ok(()),
            refuses: false,
            alarms: vec![],
            members: members.iter().map(known).collect(),
        }
    }

    #[test]
    fn sizes_are_told_near_the_quota_and_where_half_is_free() {
        let told = |size: i64, in_use: i64, own: i64| of_size(&Look { size, in_use, quota: own, ..look(1, &[]) }, QUOTA).join("; ");
        assert_eq!(told(99 << 20, 1, 0), "");
        assert_eq!(told(300 << 20, 100 << 20, 0), "200.0 MiB of its database's 300.0 MiB are free pages: it is to be defragmented");
        assert_eq!(told(1 << 30, 1 << 30, 0), "");
        assert_eq!(told(1800 << 20, 1800 << 20, 0), "its database has 1.8 GiB of the 2.0 GiB that it may grow to; then all writes end");
        // Below zero there is no limit.
        assert_eq!(of_size(&Look { size: 1 << 33, in_use: 1 << 33, ..look(1, &[]) }, -1), Vec::<String>::new());
        // What the member says of its quota itself counts more.
        assert_eq!(told(1800 << 20, 1800 << 20, 8 << 30), "");
    }

    #[test]
    fn members_that_one_side_alone_knows_are_told_once() {
        let list = [(1, "a"), (2, "b"), (3, "c"), (4, "")];
        let looks: BTreeMap<String, Look> = [("a", 1), ("b", 2)].map(|(name, id)| (name.to_owned(), look(id, &list))).into();
        // One of ours does not answer, and is no stranger for that.
        let told = care(&looks, &["a", "b", "c"].into(), QUOTA);
        assert_eq!(told["b"], Vec::<String>::new());
        assert_eq!(told["a"].len(), 1);
        assert!(told["a"][0].ends_with("configuration: (not started) at https://10.0.0.4:2380"), "{told:?}");
        // Somebody else has the name of one that works.
        let list = [(1, "a"), (2, "b"), (3, "c"), (5, "b")];
        let twice: BTreeMap<String, Look> = [("a", 1), ("b", 2)].map(|(name, id)| (name.to_owned(), look(id, &list))).into();
        let told = care(&twice, &["a", "b", "c"].into(), QUOTA);
        assert!(told["a"].len() == 1 && told["a"][0].ends_with("configuration: b at https://10.0.0.5:2380"), "{told:?}");
        // One that answers and is none of the members is told of as another one itself.
        let list = [(1, "a"), (5, "b")];
        let other: BTreeMap<String, Look> = [("a", 1), ("b", 2)].map(|(name, id)| (name.to_owned(), look(id, &list))).into();
        assert!(care(&other, &["a", "b"].into(), QUOTA).values().all(Vec::is_empty));
        let urls = care(&looks, &["https://10.0.0.1:2379", "https://10.0.0.2:2379"].into(), QUOTA);
        assert!(urls.values().all(Vec::is_empty), "{urls:?}");
        assert!(is_removed("5", &looks) && !is_removed("3", &looks) && !is_removed("x", &looks));
        // Nobody who hears the others says anything of removals.
        let alone: BTreeMap<String, Look> = [("a".to_owned(), Look { leader: 0, ..look(1, &list) })].into();
        assert!(!is_removed("5", &alone) && care(&alone, &["a"].into(), QUOTA)["a"].is_empty());
    }

    #[test]
    fn authentication_is_told_once_and_hides_no_strangers() {
        let told = |refuse: &[u64], list: &[(u64, &str)]| -> Vec<(String, usize)> {
            let one = |(name, id): (&str, u64)| (name.to_owned(), Look { refuses: refuse.contains(&id), ..look(id, list) });
            let found = care(&[("a", 1), ("b", 2)].map(one).into(), &["a", "b"].into(), QUOTA);
            assert_eq!(found.values().flatten().filter(|line| line.as_str() == LOCKED).count(), usize::from(!refuse.is_empty()));
            found.into_iter().map(|(name, lines)| (name, lines.len())).collect()
        };
        let of = |a: usize, b: usize| vec![("a".to_owned(), a), ("b".to_owned(), b)];
        let list = [(1, "a"), (2, "b")];
        assert_eq!(told(&[], &list), of(0, 0));
        assert_eq!(told(&[1, 2], &list), of(1, 0));
        // One has not heard of it yet.
        assert_eq!(told(&[2], &list), of(0, 1));
        assert_eq!(told(&[1, 2], &[(1, "a"), (2, "b"), (4, "")]), of(2, 0));
        // Where the list is refused, too, nobody is a stranger, and nobody was removed.
        assert_eq!(told(&[1, 2], &[]), of(1, 0));
    }

    #[test]
    fn alarms_of_whom_nobody_hears_are_told_once() {
        let list = [(1, "a"), (2, "b"), (3, "c")];
        let with = |alarms: &[u64]| -> BTreeMap<String, Look> {
            let alarms: Vec<(u64, String)> = alarms.iter().map(|id| (*id, "NOSPACE".to_owned())).collect();
            [("a", 1), ("b", 2)].map(|(name, id)| (name.to_owned(), Look { alarms: alarms.clone(), ..look(id, &list) })).into()
        };
        let all: BTreeSet<&str> = ["a", "b", "c"].into();
        assert_eq!(orphaned(&with(&[1, 2]), &all, &all), None, "they say it themselves");
        assert_eq!(orphaned(&with(&[3]), &all, &all), Some(("a", vec!["NOSPACE"])), "it is away");
        assert_eq!(orphaned(&with(&[9]), &all, &all), Some(("a", vec!["NOSPACE"])), "it was removed");
        assert_eq!(orphaned(&with(&[3]), &["a", "b"].into(), &all), None, "nobody looked at it");
        assert_eq!(orphaned(&with(&[9]), &all, &["https://10.0.0.1:2379"].into()), None);
    }

    #[test]
    fn the_odd_one_is_named() {
        let of = |hashes: &[(&str, u32, i64)]| -> Vec<String> {
            odd(&hashes.iter().map(|(n, h, c)| ((*n).to_owned(), (*h, *c))).collect(), 7).into_keys().collect()
        };
        assert_eq!(of(&[("a", 1, 0), ("b", 1, 0), ("c", 1, 0)]), Vec::<String>::new());
        assert_eq!(of(&[("a", 1, 0), ("b", 2, 0), ("c", 1, 0)]), ["b"]);
        assert_eq!(of(&[("a", 1, 0), ("b", 2, 0)]), ["a", "b"]);
        // One has compacted meanwhile: nothing can be told.
        assert_eq!(of(&[("a", 1, 0), ("b", 2, 5), ("c", 1, 0)]), Vec::<String>::new());
    }
}
