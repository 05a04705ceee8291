#!/bin/sh
# Backs up an etcd cluster, proves the backup by a restore, and removes old ones. Written by karmaform; it undoes changes made here.
#
# All hosts that may do it are started at the same time. They queue for a lock in etcd: the first does it, the others find it done. What became of
# it stands in etcd, below /karmaform.io/backups/NAME: `last` is the newest backup that was proven, `failed` why none was made since.
#
# From its unit's environment: NAME, ADDRESS, HOST, RANK, DIRECTORY, PROGRAMS, RESTORE, ENDPOINTS, KEEP_HOURLY, KEEP_DAILY, KEEP_WEEKLY, and
# ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY. It needs etcd's own programs, sh and coreutils.
set -eu
umask 077
export ETCDCTL_API=3
record=/karmaform.io/backups/$NAME
ctl() { "$PROGRAMS/etcdctl" --endpoints="$ENDPOINTS" --dial-timeout=5s --command-timeout=10s "$@"; }
at() { endpoint=$1; shift; "$PROGRAMS/etcdctl" --endpoints="$endpoint" --dial-timeout=5s --command-timeout=10s "$@"; }
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }

if [ "${1:-}" != holding ]; then
  began=$(date -u +%s)
  # Always the same one first, so that backups don't lie here and there.
  sleep "$((RANK * 3))"
  case $(ctl alarm list 2>/dev/null || true) in
    # A cluster that is full takes no lock, and is to be saved all the same.
    *NOSPACE*) if [ "$RANK" = 0 ]; then exec "$0" holding "$began"; else exit 0; fi ;;
  esac
  exec "$PROGRAMS/etcdctl" --endpoints="$ENDPOINTS" --dial-timeout=5s lock "$record/lock" "$0" holding "$began"
fi

# Clocks of hosts differ by a little.
taken=$(ctl get "$record/last" --print-value-only | field epoch)
if [ "${taken:-0}" -gt "$(($2 - 5))" ]; then
  echo "another host has done it"
  exit 0
fi

stamp=$(date -u +%Y%m%dT%H%M%SZ)
final=$DIRECTORY/$NAME-$stamp.db
part=$DIRECTORY/.part-$NAME
scratch=$DIRECTORY/.drill-$NAME
why="it ended early"
pid=
fail() {
  why=$*
  echo "no backup: $why" >&2
  exit 1
}
ended() {
  code=$?
  trap - EXIT
  if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || true; fi
  rm -rf "$part" "$part.part" "$scratch"
  if [ "$code" != 0 ]; then
    text=$(printf %s "$why" | tr -d '\000-\037"\\' | cut -c1-300)
    ctl put "$record/failed" "{\"epoch\":$(date -u +%s),\"host\":\"$HOST\",\"why\":\"$text\"}" >/dev/null 2>&1 || true
  fi
  exit "$code"
}
trap ended EXIT
trap 'exit 1' INT TERM
# The newest of each hour, day and week, so many of each; the newest of all always stays.
tidy() {
  hours='' days='' weeks='' h=0 d=0 w=0 keep=1
  for file in $(ls -1r "$DIRECTORY/$NAME"-????????T??????Z.db 2>/dev/null); do
    stamp=${file##*-}
    hour=$(echo "$stamp" | cut -c1-11) day=$(echo "$stamp" | cut -c1-8)
    week=$(date -u -d "$day" +%G%V)
    case " $hours " in *" $hour "*) ;; *) if [ "$h" -lt "$KEEP_HOURLY" ]; then hours="$hours $hour" h=$((h + 1)) keep=1; fi ;; esac
    case " $days " in *" $day "*) ;; *) if [ "$d" -lt "$KEEP_DAILY" ]; then days="$days $day" d=$((d + 1)) keep=1; fi ;; esac
    case " $weeks " in *" $week "*) ;; *) if [ "$w" -lt "$KEEP_WEEKLY" ]; then weeks="$weeks $week" w=$((w + 1)) keep=1; fi ;; esac
    if [ -z "$keep" ]; then rm -f "$file" "$file.json"; fi
    keep=
  done
}
mkdir -p "$DIRECTORY"
rm -rf "$part" "$part.part" "$scratch"

# From a follower through which a read goes; from the leader if there is no other.
source='' leader=''
for one in $(echo "$ENDPOINTS" | tr , ' '); do
  status=$(at "$one" endpoint status -w json 2>/dev/null) || continue
  at "$one" get health --keys-only >/dev/null 2>&1 || continue
  case $status in *'"isLearner":true'*) continue ;; esac
  if [ "$(echo "$status" | field member_id)" = "$(echo "$status" | field leader)" ]; then
    leader=$one
  else
    source=$one
    break
  fi
done
source=${source:-$leader}
[ -n "$source" ] || fail "no member answers a read"
status=$(at "$source" endpoint status -w json) || fail "$source does not say how it is"
revision=$(echo "$status" | field revision)
version=$(echo "$status" | field version)
# Of one member: `env printf`, because the shell's own can't write all of 64 bits.
id=$(env printf %x "$(echo "$status" | field member_id)")
cluster=$(env printf %x "$(echo "$status" | field cluster_id)")
member=$(ctl member list | sed -n "s/^$id, [^,]*, \([^,]*\),.*/\1/p")
# For the file, for the scratch etcd, and for the etcd that may live on the same disk: without room nothing is begun.
needed=$((2 * $(echo "$status" | field dbSize) / 1024 + 1048576))
free() { df -Pk "$DIRECTORY" | awk 'NR == 2 { print $4 }'; }
if [ "$(free)" -lt "$needed" ]; then tidy; fi
[ "$(free)" -ge "$needed" ] || fail "there is no room: $needed KiB are needed in $DIRECTORY, and $(free) are free"
hashes=$(at "$source" endpoint hashkv --rev "$revision" -w json 2>/dev/null || true)
hash=$(echo "$hashes" | field hash)
compacted=$(echo "$hashes" | field compact_revision)

"$PROGRAMS/etcdctl" --endpoints="$source" --dial-timeout=5s snapshot save "$part" >/dev/null 2>&1 || fail "$source gave no snapshot, or it could not be written"
latest=$(at "$source" endpoint status -w json 2>/dev/null | field revision)
[ -n "$latest" ] || fail "$source does not say how it is any more"

# Its own seal: the SHA-256 sum of the database in its last 32 bytes.
size=$(stat -c %s "$part")
[ "$((size % 512))" = 32 ] || fail "the snapshot of $source was cut: $size bytes"
sum=$(head -c -32 "$part" | sha256sum | cut -c1-64)
[ "$sum" = "$(tail -c 32 "$part" | od -An -v -tx1 | tr -d ' \n')" ] || fail "the snapshot of $source is damaged"

# The proof: a scratch etcd on sockets in a directory of its own is made from it, and asked.
mkdir "$scratch"
peer=http://127.0.0.1:1
cd "$scratch"
"$PROGRAMS/$RESTORE" snapshot restore "$part" --data-dir data --name drill --initial-cluster "drill=$peer" \
  --initial-advertise-peer-urls "$peer" >restore.log 2>&1 || fail "the snapshot does not restore: $(tail -n 1 restore.log)"
env -i "$PROGRAMS/etcd" --name drill --data-dir data --logger zap --listen-client-urls unix://drill:1 --advertise-client-urls unix://drill:1 \
  --listen-peer-urls unix://peer:1 --initial-advertise-peer-urls "$peer" --initial-cluster "drill=$peer" --initial-cluster-state existing \
  --quota-backend-bytes=-1 >etcd.log 2>&1 &
pid=$!
drill() { env -u ETCDCTL_CACERT -u ETCDCTL_CERT -u ETCDCTL_KEY "$PROGRAMS/etcdctl" --endpoints=unix://drill:1 "$@"; }
limit=$((60 + size / 20000000))
until found=$(drill get "" --from-key --limit=1 --keys-only -w json 2>asked.log); do
  # Where clients need a name and a password, so does who asks what was restored: that it asks for them says that it serves.
  if grep -q -e 'user name is empty' -e 'permission denied' asked.log && found=$(drill endpoint status -w json 2>/dev/null); then break; fi
  kill -0 "$pid" 2>/dev/null || fail "a scratch etcd ended by itself: $(tail -n 1 etcd.log)"
  [ "$limit" -gt 0 ] || fail "a scratch etcd answers no read: $(tail -n 1 etcd.log)"
  limit=$((limit - 1))
  sleep 1
done
back=$(echo "$found" | field revision)
keys=$(echo "$found" | field count)
if [ "$back" -lt "$revision" ] || [ "$back" -gt "$latest" ]; then fail "a scratch etcd came back at revision $back, and not at $revision to $latest"; fi
again=$(drill endpoint hashkv --rev "$revision" -w json 2>/dev/null || true)
if [ -n "$hash" ] && [ "$(echo "$again" | field compact_revision)" = "$compacted" ]; then
  [ "$(echo "$again" | field hash)" = "$hash" ] || fail "a scratch etcd came back with other keys and values than the member had"
else
  hash=
fi
kill "$pid"
wait "$pid" 2>/dev/null || true
pid=
cd /
rm -rf "$scratch"

# The manifest is as `karmaform etcd snapshot` writes it; `karmaform etcd verify` reads it.
whole=$(sha256sum "$part" | cut -c1-64)
created=$(date -u +%Y-%m-%dT%H:%M:%SZ)
kv=null
if [ -n "$hash" ]; then kv="{ \"hash\": $hash, \"revision\": $revision, \"compact_revision\": $compacted }"; fi
cat >"$part.part" <<EOF
{
  "format": "karmaform etcd snapshot",
  "format_version": "1.0",
  "size": $size,
  "sha256": "$whole",
  "revision": $revision,
  "revision_at_most": $latest,
  "hash_kv": $kv,
  "cluster_id": "$cluster",
  "member": { "name": "$member", "id": "$id" },
  "etcd_version": "$version",
  "created": "$created",
  "address": "$ADDRESS",
  "belongs": []
}
EOF
sync "$part" "$part.part"
mv "$part.part" "$final.json"
mv "$part" "$final"
sync "$DIRECTORY"

# Under NOSPACE etcd takes no note of it; the backup is there all the same.
ctl put "$record/last" "{\"epoch\":$(date -u +%s),\"created\":\"$created\",\"host\":\"$HOST\",\"file\":\"$final\",\"size\":$size,\"revision\":$revision,\"keys\":${keys:-0},\"sha256\":\"$whole\"}" >/dev/null &&
  ctl del "$record/failed" >/dev/null || echo "etcd takes no note of it" >&2
echo "backed up and proven: $final, $size bytes, revision $revision, ${keys:-0} keys, from $source"

tidy
