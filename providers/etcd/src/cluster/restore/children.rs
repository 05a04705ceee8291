//! What restoring puts on a member's host, and what the state remembers of it.

use karmaform_model::{Arg, Child, ChildStep};

use super::{Restore, scripts};
use crate::cluster::arguments::Arguments;
use crate::cluster::children::{child, command, program, with};
use crate::cluster::places::{Places, part_of, restored, restoring};
use crate::cluster::snapshot::LIMIT;

/// How long a member may take to stop, in seconds: its unit gives it 60.
const STOP_LIMIT: i64 = 120;

/// What the state remembers: what is restored, made when that begins, with an id that is new for each restoration; and that it was, made when the
/// members were seen to work with it.
pub(crate) fn records(restore: &Restore) -> [Child; 2] {
    let name = restore.name();
    [
        child(restoring(), "terraform_data", [("triggers_replace", name.into())]),
        child(restored(), "terraform_data", [("input", Arg::child(&restoring(), "id"))]),
    ]
}

/// The parts of one member, each with what comes before it on its host. `unit_needs`: what the member needs to start.
pub(crate) fn children(
    cluster: &Arguments,
    restore: &Restore,
    member: &str,
    unit_needs: &[Vec<ChildStep>],
) -> Vec<(Child, Vec<Vec<ChildStep>>)> {
    let places = Places::of(cluster);
    let of = |key: &str| part_of(member, "restore", key);
    let directory = part_of(member, "directory", "restore");
    let mut all = vec![
        (
            child(
                directory.clone(),
                "ssh_directory",
                [
                    ("path", places.restore.as_str().into()),
                    ("owner", "root".into()),
                    ("group", "root".into()),
                    ("mode", "0700".into()),
                    ("purge", false.into()),
                ],
            ),
            vec![part_of(member, "directory", "data")],
        ),
        (
            child(
                of("snapshot"),
                "ssh_artifact",
                [
                    ("source", restore.from.clone().into()),
                    ("sha256", restore.sha256.as_str().into()),
                    ("path", format!("{}/snapshot.db", places.restore).into()),
                    ("owner", "root".into()),
                    ("group", "root".into()),
                    ("mode", "0600".into()),
                ],
            ),
            vec![directory.clone()],
        ),
    ];
    let restorer = scripts::restorer(cluster);
    if restorer != "etcdctl" {
        all.push((program(cluster, &places, member, restorer), vec![part_of(member, "directory", "programs")]));
    }
    let step = |key: &str, text: String, check: String, limit: i64| {
        let environment = Arg::object([("TOKEN", Arg::child(&restoring(), "id"))]);
        with(command(of(key), text, environment, limit), [("check", check)])
    };
    let prepare = step("data", scripts::prepare(cluster, restore), scripts::is_prepared(cluster), LIMIT);
    all.push((prepare, vec![of("snapshot"), part_of(member, "program", restorer), part_of(member, "directory", "data")]));
    let stop = step("stop", scripts::stop(cluster), scripts::is_stopped(cluster), STOP_LIMIT);
    all.push((stop, vec![of("data")]));
    let switch = step("switch", scripts::switch(cluster), scripts::is_switched(cluster), LIMIT);
    all.push((with(switch, [("undo", scripts::undo(cluster))]), [&[of("stop")], unit_needs].concat()));
    all
}
