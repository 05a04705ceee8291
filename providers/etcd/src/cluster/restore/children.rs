//! What restoring puts on a member's host, and what the state remembers of it.

use karmaform_model::{Arg, Child, ChildStep, Object, Type, Value};

use super::{Restore, scripts};
use crate::choice;
use crate::cluster::arguments::Arguments;
use crate::cluster::children::{child, command, program, with};
use crate::cluster::places::{Places, chosen, part_of, restored, restoring, starting, stopping};
use crate::cluster::snapshot::LIMIT;

/// How long a member may take to stop, in seconds: its unit gives it 60.
const STOP_LIMIT: i64 = 120;
/// How long data of before may take to be removed, in seconds: 8 GiB in few files.
const REMOVAL_LIMIT: i64 = 300;

/// What the state remembers: what is restored, made when that begins, with an id that is new for each restoration, and with what all its members
/// have to begin alike; that it was, made when the members were seen to work with it; and of pods, which no child stands for that stops and starts them, that they
/// were stopped, and that they were started. Of a backup in a bucket it is which one was chosen, too.
pub(crate) fn records(cluster: &Arguments, restore: &Restore) -> Vec<Child> {
    let begun = || Arg::child(&restoring(restore), "id");
    let noted = |path| child(path, "terraform_data", [("input", begun())]);
    let mut records = vec![child(restoring(restore), "terraform_data", [("input", alike(cluster, restore))]), noted(restored())];
    if cluster.kubernetes.is_some() {
        records.extend([noted(stopping()), noted(starting())]);
    }
    if let Some(shelved) = &restore.shelved {
        let before = shelved.before.as_deref().map_or_else(|| Value::null(Type::String), Value::from);
        records.push(child(chosen(restore), choice::KIND, [("from", shelved.from.as_str().into()), ("before", before.into())]));
    }
    records
}

/// What goes into every member's data when it is restored: with another of these it is another cluster, or one that differs from host to host.
fn alike(cluster: &Arguments, restore: &Restore) -> Arg {
    let url = |(name, host): (&String, _)| (name.clone(), Arg::Text(cluster.url(host, cluster.peer_port).map(Arg::Value).into()));
    let mut alike = Arg::object([
        ("bump_revision", restore.bump_of(&cluster.version).into()),
        ("members", Arg::Object(cluster.members.iter().map(url).collect())),
        ("minor_version", i64::from(cluster.version.minor).into()),
    ]);
    // A sum that is written is in the name.
    if restore.is_named_by_place() {
        alike.set(&["sha256"], restore.sum());
    }
    if cluster.kubernetes.is_some() {
        // Not alike: who takes the block out needs it once more.
        alike.set(&["program_image"], restore.program_image.clone().into());
    }
    alike
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
                    // Whatever a restoration that was given up has left in it.
                    ("purge", true.into()),
                ],
            ),
            vec![part_of(member, "directory", "data")],
        ),
        (
            child(
                of("snapshot"),
                "ssh_artifact",
                [
                    ("source", restore.source()),
                    ("sha256", restore.sum()),
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
    let step = |key: &str, text: String, token: Arg, limit: i64| command(of(key), text, Arg::object([("TOKEN", token)]), limit);
    let begun = || Arg::child(&restoring(restore), "id");
    let prepare = step("data", scripts::prepare(cluster, restore), begun(), LIMIT);
    let prepare = with(prepare, [("check", scripts::is_prepared(cluster))]);
    all.push((prepare, vec![of("snapshot"), part_of(member, "program", restorer), part_of(member, "directory", "data")]));
    let stop = with(step("stop", scripts::stop(cluster), begun(), STOP_LIMIT), [("check", scripts::is_stopped(cluster))]);
    all.push((stop, vec![of("data")]));
    let switch = with(step("switch", scripts::switch(cluster), begun(), LIMIT), [("check", scripts::is_switched(cluster))]);
    all.push((switch, [&[of("stop")], unit_needs].concat()));
    // What takes data of before away is there only once the restoration has ended: nothing else ever does.
    let mut ended = step("before", scripts::note_ended(cluster), Arg::child(&restored(), "input"), REMOVAL_LIMIT);
    if !cluster.keeps_data {
        ended = with(ended, [("undo", scripts::remove_before(cluster))]);
    }
    all.push((ended, vec![of("switch")]));
    all
}

/// Which restoration a part of a member on its host was of.
pub(super) fn token(of: &Object) -> Option<&str> {
    of.get("environment")?.get("TOKEN")?.as_str()
}
