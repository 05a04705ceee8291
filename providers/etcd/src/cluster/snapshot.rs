//! The snapshot before another version: on the host of one member, taken by that member's own `etcdctl` the moment before the first program is
//! changed. What is read back of it is what etcd itself checks before it restores: the sum at its end (facts of etcd: `snapshot status` does
//! not notice a flipped bit).

use karmaform_model::{Child, ChildStep, Type, Value};

use super::arguments::Arguments;
use super::children;
use super::places::{Places, part};

/// A shell function: whether a file is a whole snapshot. Its last 32 bytes are the SHA-256 sum of what is before them.
pub(crate) const IS_WHOLE: &str = r#"is_whole() {
  set -- "$1" "$(stat -c %s "$1")"
  [ "$(($2 % 512))" = 32 ] || return 1
  [ "$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')" = "$(head -c "$(($2 - 32))" "$1" | sha256sum | cut -c1-64)" ]
}
"#;

/// How long saving or restoring may take, in seconds: 8 GiB, the most that etcd is meant for, written and read once on a slow disk.
pub(crate) const LIMIT: i64 = 1_800;

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

/// It runs again whenever another version is wanted. What was saved outlives it: that goes with the member (`traces`).
pub(crate) fn child(cluster: &Arguments, member: &str) -> Child {
    let places = Places::of(cluster);
    let environment = Value::map(Type::String, [("ETCD_VERSION".to_owned(), cluster.version.text.as_str().into())].into());
    let made = children::command(of(member), command(&places, cluster), environment.into(), LIMIT);
    children::with(made, [("check", check(&places)), ("undo", format!("rm -f {0}/version {0}/log", places.snapshots))])
}

/// What was saved is of the moment before for so long, in minutes; then, if nothing came of that version yet, it is saved once more.
const FRESH: u32 = 60;

/// What must be free besides, in KiB: etcd writes on.
pub(crate) const SPARE: u32 = 1 << 20;

/// Reads what the last run noted (the version that it ran for, and the one before), and which version the programs are. Names of builds may stand
/// behind that. Programs used to be at a place for each version.
fn look(places: &Places) -> String {
    format!(
        r#"kept={kept}
was= from=
if [ -e "$kept/version" ]; then read -r was from <"$kept/version" || :; fi
for programs in {programs} {programs}-[0-9]*; do
  if [ -x "$programs/etcdctl" ]; then break; fi
done
seen=$("$programs/etcd" --version 2>/dev/null | sed -n 's/^etcd Version: //p' || :)
is_there() {{ case $seen in "$ETCD_VERSION" | "$ETCD_VERSION"[!0-9]*) ;; *) return 1 ;; esac; }}
is_fresh() {{ [ -n "$(find "$kept" -name "before-$ETCD_VERSION-*.db" -mmin -{FRESH} 2>/dev/null)" ]; }}
"#,
        kept = places.snapshots,
        programs = places.programs,
    )
}

/// Whether there is nothing to do for this version: it is there, or all was saved a moment ago. Only root sees that, and who sees nothing says nothing.
fn check(places: &Places) -> String {
    format!(
        r#"[ "$(id -u)" = 0 ] || exit 0
{}[ "$was" = "$ETCD_VERSION" ] || exit 1
[ -z "$from" ] || is_there || is_fresh"#,
        look(places)
    )
}

/// The command. It remembers for which version it ran, and from which one that went away, so that it neither saves twice nor stands in the way of
/// who takes an upgrade back while some member runs the older version still, or nobody can be asked.
fn command(places: &Places, cluster: &Arguments) -> String {
    format!(
        r#"set -eu
umask 077
{IS_WHOLE}{look}mkdir -p "$kept"
note() {{
  printf '%s %s\n' "$ETCD_VERSION" "$1" >"$kept/version.part"
  mv "$kept/version.part" "$kept/version"
}}
if [ "$was" = "$ETCD_VERSION" ]; then
  if [ -z "$from" ] || is_there || is_fresh; then exit 0; fi
fi
as={pki}/server
if [ -e {authority}/client.crt ]; then as={authority}/client; fi
ctl() {{
  limit=$1
  shift
  ETCDCTL_API=3 "$programs/etcdctl" --endpoints=https://127.0.0.1:{port} --cacert={pki}/client-ca.crt --cert="$as.crt" --key="$as.key" \
    --dial-timeout=10s --command-timeout="$limit" "$@"
}}
none_runs_it() {{
  ! is_there && told=$(ctl 10s endpoint status --cluster 2>/dev/null) && ! printf '%s\n' "$told" | grep -q ", $ETCD_VERSION[^0-9]"
}}
# A step to the next minor version that is taken back while somebody runs the old one, or nobody can be asked, has lost nothing yet.
if [ "$from" = "$ETCD_VERSION" ] && [ "${{from%.*}}" != "${{was%.*}}" ] && ! none_runs_it; then note ''; exit 0; fi
set -- {data}/member/wal/*.wal
if [ ! -e "$1" ]; then note ''; exit 0; fi
if [ -z "$was" ] && is_there; then note ''; exit 0; fi
# It does not run. Nobody begins another version then; who goes on with one has what was saved when it was begun.
if ! systemctl -q is-active {unit}; then exit 0; fi

needed=$(du -k {data}/member/snap/db | cut -f1)
free=$(df -Pk "$kept" | awk 'NR == 2 {{ print $4 }}')
if [ "$((needed + {SPARE}))" -ge "$free" ]; then
  echo "a snapshot needs $needed KiB in $kept, etcd needs room to go on, and $free KiB are free" >&2
  exit 1
fi
file=$kept/before-$ETCD_VERSION-$(date -u +%Y%m%dT%H%M%SZ).db
if ! ctl {limit}s snapshot save "$file" >"$kept/log" 2>&1; then
  tail -n 1 "$kept/log" >&2
  rm -f "$file" "$file.part"
  exit 1
fi
if ! is_whole "$file"; then
  rm -f "$file"
  echo "the snapshot that was written is damaged; look at the disk under $kept" >&2
  exit 1
fi
sync "$file"
# The one that was just saved stays, also where the clock was set back since the others were.
ls -1t "$kept"/before-*.db | grep -vxF "$file" | tail -n +{too_many} | while read -r old; do rm -f "$old"; done
note "$seen"
echo "saved $file, $(stat -c %s "$file") bytes""#,
        look = look(places),
        unit = cluster.unit(),
        data = places.data,
        pki = places.pki,
        authority = places.authority,
        port = cluster.client_port,
        limit = LIMIT - 60,
        too_many = KEPT,
    )
}
