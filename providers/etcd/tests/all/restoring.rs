//! Clusters that begin anew with a snapshot: of every size, stopped at every step, with crashes; from what has lost its majority or never was; and
//! members that come later. Nobody of the old cluster serves beside the new one.

use std::collections::BTreeSet;

use karmaform_model::{Object, Type, Value};

use crate::lab::{Lab, POLICIES, check, check_some, converge, formed, names, refused, refused_without, sane};
use crate::model;
use crate::steps::{self, Policy, Stop, arguments};

/// The arguments with a restoration of this name.
fn restored(mut arguments: Object, id: &str) -> Object {
    let block = Value::object([("from", "backup.db".into()), ("sha256", "ab".repeat(32).into()), ("id", id.into())]);
    arguments.insert("restore".to_owned(), block);
    arguments
}

/// The arguments with a restoration of what is in a bucket.
fn out_of_a_bucket(mut arguments: Object, more: &[(&str, Value)]) -> Object {
    let mut block = Object::from([("from".to_owned(), "s3://fleet-backups/prod/etcd/main".into())]);
    block.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    arguments.insert("restore".to_owned(), block.into());
    arguments
}

fn at(members: usize, version: &str) -> Object {
    let mut all = arguments(members);
    all.insert("version".to_owned(), version.into());
    all.insert("source".to_owned(), format!("etcd-v{version}-linux-amd64.tar.gz").into());
    all
}

/// The restorations that the members' data is from.
fn origins(lab: &Lab) -> BTreeSet<Option<String>> {
    lab.world.hosts.values().filter_map(|h| h.data.as_ref()).map(|d| d.restored.clone()).collect()
}

#[test]
fn every_size_begins_anew() {
    for members in 1..=5 {
        let start = formed(members);
        let wanted = restored(arguments(members), "");
        check_some(&start, Some(&wanted), &format!("{members} restored"));
        let mut lab = start.clone();
        converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "restored");
        assert!(lab.world.hosts.values().all(|h| h.before.len() == 1), "what was there before is kept");
        assert_eq!(origins(&lab).len(), 1);
    }
}

#[test]
fn three_of_them_at_every_step() {
    check(&formed(3), Some(&restored(arguments(3), "")), "3 restored");
}

#[test]
fn a_part_of_them_is_not_restored() {
    for left_out in ["member[\"b\"]/restore[\"switch\"]", "member[\"c\"]/unit", "/restored"] {
        refused_without(left_out, &formed(3), &restored(arguments(3), ""), "A cluster is restored only as a whole");
    }
}

#[test]
fn a_new_cluster_begins_with_a_snapshot() {
    for members in [1, 3] {
        check(&Lab::default(), Some(&restored(arguments(members), "")), &format!("{members} from a snapshot"));
    }
}

/// What is left of a cluster without a majority, whoever is left of it; also without those that are gone.
#[test]
fn what_has_lost_its_majority_is_rescued() {
    for lost in [["b", "c"], ["a", "c"], ["a", "b"]] {
        for wiped in [true, false] {
            let mut start = formed(3);
            for name in lost {
                if wiped { start.world.wipe(name) } else { start.world.crash(name) }
            }
            start.world.settle();
            check_some(&start, Some(&restored(arguments(3), "")), &format!("{lost:?} lost, wiped: {wiped}"));
        }
    }
    let mut start = formed(3);
    start.world.wipe("b");
    start.world.wipe("c");
    refused(&start, &arguments(1), "The cluster has lost its majority");
    check_some(&start, Some(&restored(arguments(1), "")), "only a is left");
    check_some(&start, Some(&restored(arguments(5), "")), "a and four others");
}

#[test]
fn who_comes_later_has_nothing_to_restore() {
    let mut lab = formed(3);
    let policy = Policy::Shuffled(3);
    converge(&mut lab, Some(&restored(arguments(3), "")), policy, "restored");
    let before = lab.world.formed.as_ref().unwrap().id.clone();
    check_some(&lab, Some(&restored(arguments(5), "")), "5 of 3, with the block");
    converge(&mut lab, Some(&restored(arguments(5), "")), policy, "two more");
    assert_eq!(lab.world.formed.as_ref().unwrap().id, before);
    assert_eq!(origins(&lab).len(), 2, "the two have what the others told them");
    lab.world.wipe("b");
    converge(&mut lab, Some(&restored(arguments(5), "")), policy, "one that lost its disk is replaced as ever");
    assert_eq!(lab.world.formed.as_ref().unwrap().id, before);
}

#[test]
fn the_block_goes_and_nobody_is_restarted() {
    let mut lab = formed(3);
    converge(&mut lab, Some(&restored(arguments(3), "")), Policy::UnitsLast, "restored");
    let once = origins(&lab);
    let started = |lab: &Lab| lab.world.hosts.values().map(|h| h.process.clone()).collect::<Vec<_>>();
    let running = started(&lab);
    for policy in POLICIES {
        let mut lab = lab.clone();
        converge(&mut lab, Some(&arguments(3)), policy, "without the block");
        assert_eq!(started(&lab), running);
        assert!(lab.world.hosts.values().all(|h| h.before.is_empty()), "what was there before goes with the block");
        assert!(lab.world.hosts.values().all(|h| h.prepared.is_none() && h.switched.is_none()), "so does what it was done with");
        // Written again it is meant again.
        converge(&mut lab, Some(&restored(arguments(3), "")), policy, "again");
        assert!(origins(&lab).is_disjoint(&once));
    }
    converge(&mut lab, Some(&restored(arguments(3), "second")), Policy::UnitsLast, "another one");
    assert!(origins(&lab).is_disjoint(&once));
}

/// Nothing is stopped before all is ready on every host.
#[test]
fn what_can_not_be_made_ready_stops_nobody() {
    let wanted = restored(arguments(3), "");
    for name in names(3) {
        for policy in POLICIES {
            let mut lab = formed(3);
            let before = lab.world.formed.as_ref().unwrap().id.clone();
            lab.world.host_mut(&name).unwrap().has_no_room = true;
            let plan = lab.plan(Some(&wanted)).unwrap();
            let (_, failures) = lab.run(&plan, policy, &Stop::Never);
            assert!(failures.iter().any(|f| f.contains("there is no room")), "{failures:?}");
            sane(&lab, "no room");
            assert!(names(3).iter().all(|n| lab.world.is_healthy(n)));
            assert_eq!(lab.world.formed.as_ref().unwrap().id, before);
        }
    }
}

/// Stops a run after each of its steps, with one order and another.
fn stopped_everywhere(start: &Lab, wanted: &Object, check: impl Fn(Lab, &str)) {
    let plan = start.plan(Some(wanted)).unwrap();
    for policy in [Policy::UnitsFirst, Policy::Shuffled(5)] {
        start.halts(&plan, policy, |halt| {
            let mut lab = halt.killed();
            lab.world.settle();
            check(lab, &format!("{policy:?}, stopped after step {}", halt.at));
        });
    }
}

/// Applies it, whatever fails of a host that is gone.
fn converge_but_for(lab: &mut Lab, wanted: &Object, policy: Policy) {
    let before = origins(lab);
    let plan = lab.plan(Some(wanted)).unwrap();
    let (_, failures) = lab.run(&plan, policy, &Stop::Never);
    assert!(failures.iter().all(|f| f.ends_with("does not answer")), "{failures:?}");
    sane(lab, "but for a host");
    assert!(["a", "b"].iter().all(|name| lab.world.is_healthy(name)) && origins(lab) != before);
}

fn summaries(lab: &Lab, wanted: &Object) -> Vec<String> {
    lab.plan(Some(wanted)).err().into_iter().flatten().map(|d| d.summary.clone()).collect()
}

/// Everybody still has what there was before any restoration, in its place or aside.
fn nothing_is_lost(lab: &Lab, what: &str) {
    for host in lab.world.hosts.values() {
        let mut all = host.data.iter().chain(host.before.iter().map(|(_, data)| data));
        assert!(all.any(|data| data.restored.is_none()), "{what}: {} has lost what was before", host.member);
    }
}

#[test]
fn the_block_goes_before_it_has_ended() {
    let (with, without) = (restored(arguments(3), ""), arguments(3));
    stopped_everywhere(&formed(3), &with, |mut lab, what| {
        let is_noted = lab.state.children.keys().any(|path| path[0].name == "restored");
        match summaries(&lab, &without)[..] {
            [] if is_noted => converge(&mut lab, Some(&without), Policy::UnitsFirst, what),
            [] => {
                converge(&mut lab, Some(&without), Policy::UnitsFirst, what);
                nothing_is_lost(&lab, what);
            }
            _ => {
                refused(&lab, &without, "A restoration has begun and has not ended");
                nothing_is_lost(&lab, what);
                converge(&mut lab, Some(&with), Policy::UnitsLast, what);
                assert!(lab.world.hosts.values().all(|h| h.before.len() == 1), "{what}");
                converge(&mut lab, Some(&without), Policy::UnitsLast, what);
            }
        }
        converge(&mut lab, None, Policy::Shuffled(3), &format!("{what}, destroyed"));
    });
}

#[test]
fn given_up_at_any_moment_for_another_one() {
    stopped_everywhere(&formed(3), &restored(arguments(3), ""), |mut lab, what| {
        converge(&mut lab, Some(&restored(arguments(3), "second")), Policy::UnitsLast, what);
        nothing_is_lost(&lab, what);
        converge(&mut lab, Some(&arguments(3)), Policy::UnitsLast, what);
    });
}

/// Some members would begin with other things than the rest.
#[test]
fn what_has_begun_goes_on_as_it_began() {
    let (with, unfit) = (restored(arguments(3), ""), "A restoration that has begun can't be changed");
    let mut bump = with.clone();
    if let Some(block) = bump.get("restore").and_then(Value::as_entries) {
        let mut block = block.clone();
        block.insert("bump_revision".to_owned(), 5i64.into());
        bump.insert("restore".to_owned(), block.into());
    }
    let others = [bump, restored(at(3, "3.4.23"), ""), restored(arguments(2), ""), restored(arguments(4), "")];
    stopped_everywhere(&formed(3), &with, |mut lab, what| {
        let of = |name: &str| lab.state.children.keys().any(|path| path[0].name == name);
        if of("restoring") && !of("restored") {
            others.iter().for_each(|other| refused(&lab, other, unfit));
            converge(&mut lab, Some(&restored(arguments(4), "second")), Policy::Shuffled(9), what);
        } else {
            assert!(others.iter().all(|other| !summaries(&lab, other).iter().any(|s| s == unfit)), "{what}");
        }
    });
}

/// The others count on what it has said to them.
#[test]
fn who_has_lost_what_was_restored_does_not_begin_again_alone() {
    let with = restored(arguments(3), "");
    stopped_everywhere(&formed(3), &with, |mut lab, what| {
        let is_noted = lab.state.children.keys().any(|path| path[0].name == "restored");
        let was_read = lab.state.children.values().any(|(_, of)| of.get("restoration").is_some_and(|v| !v.is_null()));
        lab.world.wipe("c");
        lab.world.host_mut("c").unwrap().switched = None;
        lab.world.settle();
        if was_read && !is_noted {
            refused(&lab, &with, "A member has lost what was restored");
            converge(&mut lab, Some(&restored(arguments(3), "second")), Policy::UnitsLast, what);
        }
    });
}

/// Some may have the second one already: the first is not what is there.
#[test]
fn back_to_the_first_one_half_way_in_the_second() {
    let (first, second) = (restored(arguments(3), ""), restored(arguments(3), "second"));
    let mut start = formed(3);
    converge(&mut start, Some(&first), Policy::UnitsFirst, "the first");
    let begun = origins(&start);
    let is_record = |path: &&steps::Path| path[0].name == "restoring";
    let record = start.state.children.keys().find(is_record).cloned().unwrap();
    let of_first = start.state.children[&record].clone();
    stopped_everywhere(&start, &second, |mut lab, what| {
        let is_whole = lab.world.hosts.values().all(|h| h.process.is_running());
        let second_ended =
            lab.state.children.iter().any(|(path, (_, of))| path[0].name == "restored" && of.get("input") != of_first.1.get("id"));
        if origins(&lab) != begun && !second_ended {
            // What there is of the first goes at the end.
            let mut lab = lab.clone();
            lab.state.children.insert(record.clone(), of_first.clone());
            assert_eq!(summaries(&lab, &first), ["A restoration has begun and has not ended"], "{what}");
        } else if !second_ended {
            assert!(summaries(&lab, &first).is_empty() || !is_whole, "{what}");
        }
        converge(&mut lab, Some(&second), Policy::UnitsLast, what);
        assert!(origins(&lab).is_disjoint(&begun), "{what}");
    });
}

/// Data of before stays with `on_destroy = "keep"`, also when that is written later.
#[test]
fn what_is_to_be_kept_is_kept() {
    let keep = |mut arguments: Object| {
        arguments.insert("on_destroy".to_owned(), "keep".into());
        arguments
    };
    for later in [restored(arguments(3), ""), arguments(3), restored(arguments(3), "second")] {
        let mut lab = formed(3);
        converge(&mut lab, Some(&restored(arguments(3), "")), Policy::UnitsFirst, "restored");
        converge(&mut lab, Some(&keep(restored(arguments(3), ""))), Policy::UnitsFirst, "to be kept");
        converge(&mut lab, Some(&keep(later)), Policy::UnitsFirst, "later");
        nothing_is_lost(&lab, "kept");
    }
}

/// Nobody waits for it, and the plan says what that means.
#[test]
fn a_host_that_is_gone_leaves() {
    for policy in POLICIES {
        let mut lab = formed(3);
        converge(&mut lab, Some(&restored(arguments(3), "")), policy, "the first");
        lab.world.lose("c");
        lab.world.settle();
        // What c had of the first stays in the state; with other members and written again it must not pass for done.
        let mut left = lab.clone();
        let plan = left.plan(Some(&arguments(2))).unwrap();
        left.run(&plan, policy, &Stop::Never);
        left.world.settle();
        refused(&left, &restored(arguments(2), ""), "This restoration was done before");
        let wanted = restored(arguments(2), "two");
        let plan = lab.plan(Some(&wanted)).unwrap();
        assert!(plan.choreography.impact.iter().any(|line| line.starts_with("c can't be reached")), "{:?}", plan.choreography.impact);
        let (_, failures) = lab.run(&plan, policy, &Stop::Never);
        assert!(!failures.is_empty() && failures.iter().all(|f| f.ends_with("does not answer")), "{failures:?}");
        sane(&lab, "without c");
        assert!(["a", "b"].iter().all(|name| lab.world.is_healthy(name)));
        assert!(lab.state.children.keys().any(|path| path[0].name == "restored"));
        // The block goes while c is away, and what is planned after that is not refused for what the record says.
        for _ in 0..2 {
            let plan = lab.plan(Some(&arguments(2))).unwrap();
            lab.run(&plan, policy, &Stop::Never);
            sane(&lab, "without the block");
        }
        refused(&lab, &restored(arguments(2), ""), "A restoration that has begun can't be changed");
        converge_but_for(&mut lab, &restored(arguments(2), "again"), policy);
        lab.world.away.clear();
        converge(&mut lab, Some(&restored(arguments(2), "again")), policy, "c is back");
    }
}

/// What is only read at a start changes when nobody of the old cluster runs any more, and everything else while all of them do.
#[test]
fn who_crashes_meanwhile_comes_back_as_it_was() {
    let mut start = Lab::default();
    converge(&mut start, Some(&at(3, "3.4.23")), Policy::Shuffled(7), "forming");
    converge(&mut start, Some(&at(3, "3.5.16")), Policy::Shuffled(7), "upgrading");
    let old = start.world.formed.as_ref().unwrap().id.clone();
    let wanted = steps::with_setting(restored(at(3, "3.4.23"), ""), "log-level", "warn");
    stopped_everywhere(&start, &wanted, |lab, what| {
        let runs = |host: &&model::Host| matches!(&host.process, model::Process::Running { cluster, .. } if *cluster == old);
        let running = lab.world.hosts.values().filter(runs).count();
        let is_new = |host: &model::Host| host.version().is_some_and(|v| v.0 == 4) || host.setting("ETCD_LOG_LEVEL").is_some();
        assert!(running == 0 || !lab.world.hosts.values().any(is_new), "{what}: what is to be started is there, and {running} run");
        if running < 3 {
            let plan = lab.plan(Some(&wanted)).unwrap();
            let open = plan.changes.iter().filter(|(_, (kind, change))| kind.starts_with("ssh_") && !change.is_no_op());
            let late = ["unit", "environment", "guard", "program", "restore"];
            let early: Vec<_> = open.map(|(path, _)| path).filter(|path| !late.contains(&path[1].name.as_str())).collect();
            assert!(early.is_empty(), "{what}: not ready, and {running} run: {early:?}");
        }
    });
}

#[test]
fn nobody_begins_on_what_is_of_others() {
    let lab = formed(3);
    let mut renamed = restored(arguments(3), "");
    let mut hosts = renamed["hosts"].as_entries().unwrap().clone();
    let moved = hosts.remove("c").unwrap();
    hosts.insert("z".to_owned(), moved);
    renamed.insert("hosts".to_owned(), hosts.into());
    refused(&lab, &renamed, "A member can't get another name");
}

/// The only way back from a newer version.
#[test]
fn an_older_version_with_its_own_data() {
    let mut start = Lab::default();
    converge(&mut start, Some(&at(3, "3.4.23")), Policy::Shuffled(7), "forming");
    converge(&mut start, Some(&at(3, "3.5.16")), Policy::Shuffled(7), "upgrading");
    refused(&start, &at(3, "3.4.23"), "There is no way back to that version");
    check_some(&start, Some(&restored(at(3, "3.4.23"), "")), "back to 3.4 with a snapshot of it");
}

#[test]
fn plans_say_what_is_lost_and_ask() {
    let plan = formed(3).plan(Some(&restored(arguments(3), ""))).unwrap();
    assert_eq!(
        plan.choreography.impact,
        [
            "restores a, b, c, from backup.db (SHA-256 abababababab...): what was written since that was saved is lost",
            "stops all members at once: etcd is unavailable until they have started with what was restored",
            "the revision is raised by 1000000000, so that whoever watches or caches begins anew",
            "data of before is kept in /var/lib/etcd/main.before-*, until the block `restore` is taken out",
        ]
    );
    assert!(plan.choreography.risk.confirm.is_some());
    let new = Lab::default().plan(Some(&restored(arguments(3), ""))).unwrap();
    assert!(new.choreography.risk.confirm.is_none() && new.choreography.risk.data_loss.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = formed(3);
    let mut bad = restored(arguments(3), "");
    bad.insert("restore".to_owned(), Value::object([("from", "x".into()), ("sha256", "abc".into())]));
    refused(&lab, &bad, "Bad sum");
    refused(&lab, &restored(arguments(3), "a b"), "Bad word");
    let sum = ("sha256", Value::from("ab".repeat(32)));
    let with = |more: &[(&str, Value)]| out_of_a_bucket(arguments(3), more);
    refused(&lab, &with(&[("from", "main-20261125T030000Z.db.age".into()), sum.clone()]), "A backup that has to be got first");
    refused(&lab, &with(&[("from", "main.db".into())]), "Bad sum");
    refused(&lab, &with(&[("from", "main.db".into()), sum.clone(), ("before", "2026-11-25T03:00:00Z".into())]), "A time for nothing");
    refused(&lab, &with(&[("from", Value::from("s3://fleet-backups/prod/etcd/main").secret())]), "A place that is secret");
    refused(&lab, &with(&[("sha256", "abc".into())]), "Bad sum");
    let unknown = ("from", Value::unknown(Type::String));
    refused(&lab, &with(&[unknown, sum.clone()]), "A value that must be known when planning");
    refused(&lab, &with(&[sum]), "The backup has another sum");
    refused_without("/chosen", &lab, &with(&[]), "The backup is not chosen yet");
}

#[test]
fn what_is_in_a_bucket_is_chosen_once() {
    let wanted = out_of_a_bucket(arguments(3), &[]);
    let plan = formed(3).plan(Some(&wanted)).unwrap();
    assert_eq!(
        plan.choreography.impact[0],
        "restores a, b, c, from s3://fleet-backups/prod/etcd/main-20261125T030000Z.db.age (of 2026-11-25T03:00:00Z, revision 4711, etcd 3.5.16, \
         20512 bytes, encrypted, SHA-256 cdcdcdcdcdcd...): what was written since that was saved is lost"
    );
    check_some(&formed(3), Some(&wanted), "3 out of a bucket");
    let mut lab = formed(3);
    converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "out of a bucket");
    let kept = lab.world.hosts.values().flat_map(|host| host.things.values()).filter(|thing| thing.get("source").is_some());
    let sources: BTreeSet<_> = kept.filter_map(|thing| thing["source"].as_str()).filter(|source| source.starts_with("s3:")).collect();
    assert_eq!(sources, BTreeSet::from(["s3://fleet-backups/prod/etcd/main-20261125T030000Z.db.age"]));
    assert!(!lab.plan(Some(&wanted)).unwrap().has_changes());
    for more in [("before", "2026-11-25T12:00:00Z"), ("id", "again")] {
        let again = out_of_a_bucket(arguments(3), &[(more.0, more.1.into())]);
        assert!(lab.plan(Some(&again)).unwrap().choreography.risk.confirm.is_some(), "{}", more.0);
    }
}

/// What has a sum that is written is called by that, wherever it lies.
#[test]
fn what_was_restored_from_a_file_is_not_restored_again_from_its_bucket() {
    let with = |from: &str, more: &[(&str, Value)]| {
        let named: [(&str, Value); 2] = [("from", from.into()), ("sha256", "cd".repeat(32).into())];
        out_of_a_bucket(arguments(3), &[&named[..], more].concat())
    };
    let (file, shelved) = (with("main.db", &[]), with("s3://fleet-backups/prod/etcd/main", &[]));
    let mut lab = formed(3);
    converge(&mut lab, Some(&file), Policy::UnitsFirst, "from a file");
    let told = lab.plan(Some(&shelved)).unwrap().choreography;
    assert!(told.risk.confirm.is_none() && told.risk.data_loss.is_empty(), "{:?}", told.impact);
    let before = origins(&lab);
    converge(&mut lab, Some(&shelved), Policy::UnitsFirst, "named in its bucket");
    assert_eq!(origins(&lab), before);
    let again = with("s3://fleet-backups/prod/etcd/main", &[("id", "again".into())]);
    assert!(lab.plan(Some(&again)).unwrap().choreography.risk.confirm.is_some());
}
