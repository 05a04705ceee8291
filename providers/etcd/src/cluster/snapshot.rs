//! The snapshot before another version: on the host of one member, taken by that member's own `etcdctl` the moment before the first program is
//! changed. What is read back of it is what etcd itself checks before it restores: the sum at its end (facts of etcd: `snapshot status` does
//! not notice a flipped bit).

use karmaform_model::{Child, ChildStep, Object, Type, Value};

use super::arguments::Arguments;
use super::children;
use super::places::{Places, part};

/// How long it may take, in seconds: 8 GiB, the most that etcd is meant for, written and read once on a slow disk.
const LIMIT: i64 = 1_800;

/// How many are kept.
const KEPT: usize = 3;

/// The member whose host has them.
pub(crate) fn keeper(cluster: &Arguments) -> Option<&str> {
    cluster.members.keys().next().map(String::as_str)
}

/// The part of a member that saves.
pub(crate) fn of(member: &str) -> Vec<ChildStep> {
    part(member, "snapshot")
}

/// It runs again whenever another version is wanted.
pub(crate) fn child(cluster: &Arguments, member: &str) -> Child {
    let places = Places::of(cluster);
    // Kept data is kept with what it was.
    let undo = if cluster.keeps_data {
        format!("rm -f {0}/version {0}/log; rmdir {0} 2>/dev/null || :", places.snapshots)
    } else {
        format!("rm -rf {}", places.snapshots)
    };
    children::child(
        of(member),
        "ssh_command",
        [
            ("command", command(&places, cluster.client_port).into()),
            ("check", check(&places).into()),
            ("undo", undo.into()),
            ("triggers", Value::map(Type::String, Object::new()).into()),
            ("environment", Value::map(Type::String, [("ETCD_VERSION".to_owned(), cluster.version.text.as_str().into())].into()).into()),
            ("timeout", LIMIT.into()),
        ],
    )
}

/// What was saved is of the moment before for so long, in minutes; then, if nothing came of that version yet, it is saved once more.
const FRESH: u32 = 60;

/// Whether there is nothing to save: the version that it was saved for is there, or it was saved a moment ago. Who may not read that says nothing.
fn check(places: &Places) -> String {
    format!(
        r#"kept={kept}
[ -r "$kept/version" ] || exit 0
read -r was from <"$kept/version" || :
[ "$was" = "$ETCD_VERSION" ] || exit 0
[ -n "$from" ] || exit 0
{seen}
[ "$seen" = "$ETCD_VERSION" ] || [ -n "$(find "$kept" -name "before-$ETCD_VERSION-*.db" -mmin -{FRESH})" ]"#,
        kept = places.snapshots,
        seen = seen(places),
    )
}

/// Reads the version of the program on the host.
fn seen(places: &Places) -> String {
    format!("seen=$({} --version 2>/dev/null | sed -n 's/^etcd Version: //p' || :)", places.program)
}

/// The command. It remembers for which version it ran, and from which one that went away, so that it neither saves twice nor stands in the way of
/// who takes an upgrade back.
fn command(places: &Places, port: u16) -> String {
    format!(
        r#"set -eu
umask 077
kept={kept}
mkdir -p "$kept"
was= from=
if [ -e "$kept/version" ]; then read -r was from <"$kept/version" || :; fi
note() {{
  printf '%s %s\n' "$ETCD_VERSION" "$1" >"$kept/version.part"
  mv "$kept/version.part" "$kept/version"
}}
{seen}
if [ "$was" = "$ETCD_VERSION" ]; then
  if [ -z "$from" ] || [ "$seen" = "$ETCD_VERSION" ]; then exit 0; fi
  if [ -n "$(find "$kept" -name "before-$ETCD_VERSION-*.db" -mmin -{FRESH})" ]; then exit 0; fi
fi
# An upgrade is taken back while it is under way: nothing was lost yet.
if [ "$from" = "$ETCD_VERSION" ]; then note ''; exit 0; fi
set -- {data}/member/wal/*.wal
if [ ! -e "$1" ]; then note ''; exit 0; fi

as={pki}/server
if [ -e {authority}/client.crt ]; then as={authority}/client; fi
ask() {{
  ETCDCTL_API=3 {etcdctl} --endpoints=https://127.0.0.1:{port} --cacert={pki}/client-ca.crt --cert="$as.crt" --key="$as.key" \
    --dial-timeout=10s --command-timeout={limit}s "$@" >"$kept/log" 2>&1
}}
# The member does not run, and nobody has asked for another version.
if [ -z "$was" ] && ! ask endpoint status; then note ''; exit 0; fi
needed=$(du -k {data}/member/snap/db | cut -f1)
free=$(df -Pk "$kept" | awk 'NR == 2 {{ print $4 }}')
if [ "$needed" -ge "$free" ]; then
  echo "a snapshot needs $needed KiB in $kept, and $free are free" >&2
  exit 1
fi
file=$kept/before-$ETCD_VERSION-$(date -u +%Y%m%dT%H%M%SZ).db
if ! ask snapshot save "$file"; then
  tail -n 1 "$kept/log" >&2
  rm -f "$file" "$file.part"
  exit 1
fi
size=$(stat -c %s "$file")
said=$(tail -c 32 "$file" | od -An -v -tx1 | tr -d ' \n')
real=$(head -c "$((size - 32))" "$file" | sha256sum | cut -c1-64)
if [ "$((size % 512))" -ne 32 ] || [ "$said" != "$real" ]; then
  rm -f "$file"
  echo "the snapshot that was written is damaged; look at the disk under $kept" >&2
  exit 1
fi
sync "$file"
ls -1t "$kept"/before-*.db | tail -n +{too_many} | while read -r old; do rm -f "$old"; done
note "$seen"
echo "saved $file, $size bytes""#,
        kept = places.snapshots,
        data = places.data,
        pki = places.pki,
        authority = places.authority,
        etcdctl = format_args!("{}/etcdctl", places.programs),
        seen = seen(places),
        limit = LIMIT - 60,
        too_many = KEPT + 1,
    )
}
