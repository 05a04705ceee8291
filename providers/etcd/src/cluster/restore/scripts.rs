//! What is done on a host of a member that is restored. Each script may be killed anywhere and run again.

use super::Restore;
use crate::cluster::arguments::Arguments;
use crate::cluster::places::Places;
use crate::cluster::preflight::quota;
use crate::cluster::snapshot::{IS_WHOLE, SPARE};

/// Names, and what is there. `TOKEN` names the restoration. What was restored says so itself (`member/restored`), so that it can be told from
/// what was there before at any moment; `switched-TOKEN` says that there is nothing more to do.
fn look(cluster: &Arguments) -> String {
    let places = Places::of(cluster);
    format!(
        r#"here={restore}
data={data}
unit={unit}
is_switched() {{ [ -e "$here/switched-$TOKEN" ]; }}
is_in_place() {{ [ "$(cat "$data/member/restored" 2>/dev/null)" = "$TOKEN" ]; }}
is_prepared() {{ [ -e "$here/new-$TOKEN/member/restored" ]; }}
runs() {{ case $(systemctl show -p ActiveState --value "$unit") in inactive | failed) return 1 ;; esac; }}
halt() {{
  if runs; then systemctl stop "$unit"; fi
  if runs; then
    echo "$unit does not stop" >&2
    exit 1
  fi
}}
"#,
        restore = places.restore,
        data = places.data,
        unit = cluster.unit(),
    )
}

/// Only root sees what is there, and who sees nothing says nothing.
fn asks(cluster: &Arguments, question: &str) -> String {
    format!("[ \"$(id -u)\" = 0 ] || exit 0\n{}{question}", look(cluster))
}

/// Whether what is to be restored is there.
pub(super) fn is_prepared(cluster: &Arguments) -> String {
    asks(cluster, "is_switched || is_in_place || is_prepared")
}

/// Whether nothing of before runs.
pub(super) fn is_stopped(cluster: &Arguments) -> String {
    asks(cluster, "is_switched || is_in_place || ! runs")
}

/// Whether the member has what was restored.
pub(super) fn is_switched(cluster: &Arguments) -> String {
    asks(cluster, "is_switched")
}

/// The program that restores (etcd's changelog of 3.5: `etcdutl`).
pub(super) fn restorer(cluster: &Arguments) -> &'static str {
    if cluster.version.minor < 5 { "etcdctl" } else { "etcdutl" }
}

/// Restores the snapshot into a directory beside the data. Only who restores the whole cluster says `KARMAFORM_RESTORE`: a member that joins
/// later has nothing to restore.
pub(super) fn prepare(cluster: &Arguments, restore: &Restore) -> String {
    let places = Places::of(cluster);
    let bump = match restore.bump_of(&cluster.version) {
        0 => String::new(),
        bump => format!(" --bump-revision={bump} --mark-compacted"),
    };
    let program = restorer(cluster);
    format!(
        r#"set -eu
umask 077
{IS_WHOLE}{look}if [ "${{KARMAFORM_RESTORE:-}}" != yes ] || is_switched || is_in_place || is_prepared; then exit 0; fi
if [ -e "$data.before-$TOKEN" ]; then
  echo "$data.before-$TOKEN is there: this restoration was done here before" >&2
  exit 1
fi
file=$here/snapshot.db
size=$(stat -c %s "$file")
quota={quota}
if [ "$quota" -gt 0 ] && [ "$size" -gt "$quota" ]; then
  echo "the snapshot has $size bytes, and the cluster may have $quota: raise quota-backend-bytes in its settings" >&2
  exit 1
fi
if ! is_whole "$file"; then
  echo "the file is no whole snapshot: the SHA-256 sum at its end is not that of what is in it" >&2
  exit 1
fi
rm -rf "$here"/new-*
needed=$((size / 1024 + {SPARE}))
room() {{
  free=$(df -Pk "$1" | awk 'NR == 2 {{ print $4 }}')
  if [ "$needed" -ge "$free" ]; then
    echo "what is restored needs $needed KiB in $1, and $free KiB are free" >&2
    exit 1
  fi
}}
# Where the data directory is a disk of its own, data of before is copied beside it, too.
if [ -e "$data/member" ] && [ "$(stat -c %d "$data")" != "$(stat -c %d "$here")" ]; then
  aside=$(du -sk "$data/member" | cut -f1)
else
  aside=0
fi
room "$data"
needed=$((needed + aside))
room "$here"
if ! ETCDCTL_API=3 {programs}/{program} snapshot restore "$file" --name="$MEMBER" --initial-cluster="$MEMBERS" \
  --initial-advertise-peer-urls="$URL" --initial-cluster-token="restored-$TOKEN" --data-dir="$here/new-part"{bump} >"$here/log" 2>&1; then
  tail -n 1 "$here/log" >&2
  rm -rf "$here/new-part"
  exit 1
fi
printf '%s\n' "$TOKEN" >"$here/new-part/member/restored"
chown -R {user}:{user} "$here/new-part"
sync
mv "$here/new-part" "$here/new-$TOKEN""#,
        look = look(cluster),
        quota = quota(cluster),
        programs = places.programs,
        user = cluster.user,
    )
}

/// Stops the member.
pub(super) fn stop(cluster: &Arguments) -> String {
    format!("set -eu\n{}if [ \"${{KARMAFORM_RESTORE:-}}\" != yes ] || is_switched || is_in_place; then exit 0; fi\nhalt", look(cluster))
}

/// Puts what was restored in the place of what was there, and starts the member. Data of before goes aside under a name of this restoration's. Where
/// the data directory is a disk of its own, the two are copied.
pub(super) fn switch(cluster: &Arguments) -> String {
    format!(
        r#"set -eu
umask 077
{look}note() {{
  rm -rf "$here"/new-* "$here"/switched-*
  : >"$here/switched-$TOKEN"
}}
# Moves $1 to $2, which is there only once it is whole.
carry() {{
  if [ "$(stat -c %d "$1")" = "$(stat -c %d "$(dirname "$2")")" ]; then
    mv "$1" "$2"
  else
    rm -rf "$2.part"
    cp -a "$1" "$2.part"
    sync
    mv "$2.part" "$2"
    rm -rf "$1"
  fi
}}
aside() {{
  if [ ! -e "$data/member.before" ]; then return; fi
  if [ -e "$data.before-$1" ]; then rm -rf "$data/member.before"; else carry "$data/member.before" "$data.before-$1"; fi
}}
if is_switched; then exit 0; fi
if [ "${{KARMAFORM_RESTORE:-}}" != yes ]; then
  note
  exit 0
fi
if ! is_in_place; then
  if ! is_prepared; then
    echo "what is to be restored is not on this host" >&2
    exit 1
  fi
  halt
  if [ -e "$data/member" ]; then
    aside "unfinished-$TOKEN"
    mv "$data/member" "$data/member.before"
  fi
  carry "$here/new-$TOKEN/member" "$data/member"
fi
if [ "$(systemctl show -p LoadState --value "$unit")" = loaded ]; then
  systemctl reset-failed "$unit" || :
  # What the last start was told is not for this one.
  rm -f {formation}
  # What is left of the process before can keep systemd from starting a new one for a moment, which then is not tried again.
  for _ in 1 2 3 4 5; do
    systemctl start --no-block "$unit"
    sleep 1
    if runs; then break; fi
  done
fi
aside "$TOKEN"
note"#,
        look = look(cluster),
        formation = Places::of(cluster).formation,
    )
}

/// Notes that the restoration has ended well, and with it whatever there is of those before it: from then on all of that may go.
pub(super) fn note_ended(cluster: &Arguments) -> String {
    let Places { restore, data, .. } = Places::of(cluster);
    format!(
        r#"set -eu
for one in {data}.before-*; do
  if [ -e "$one" ]; then printf '%s\n' "${{one#{data}.before-}}"; fi
done >{restore}/ended.part
mv {restore}/ended.part {restore}/ended"#
    )
}

/// Removes what was noted so.
pub(super) fn remove_before(cluster: &Arguments) -> String {
    let Places { restore, data, .. } = Places::of(cluster);
    format!(
        r#"set -eu
if [ ! -e {restore}/ended ]; then exit 0; fi
while read -r one; do
  rm -rf "{data}.before-$one"
done <{restore}/ended"#
    )
}
