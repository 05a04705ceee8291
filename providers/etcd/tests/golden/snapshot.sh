set -eu
umask 077
is_whole() {
  set -- "$1" "$(stat -c %s "$1")"
  [ "$(($2 % 512))" = 32 ] || return 1
  [ "$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')" = "$(head -c "$(($2 - 32))" "$1" | sha256sum | cut -c1-64)" ]
}
kept=/var/lib/etcd/main.snapshots
was= from=
if [ -e "$kept/version" ]; then read -r was from <"$kept/version" || :; fi
for programs in /opt/karmaform/etcd-main /opt/karmaform/etcd-main-[0-9]*; do
  if [ -x "$programs/etcdctl" ]; then break; fi
done
seen=$("$programs/etcd" --version 2>/dev/null | sed -n 's/^etcd Version: //p' || :)
is_there() { case $seen in "$ETCD_VERSION" | "$ETCD_VERSION"[!0-9]*) ;; *) return 1 ;; esac; }
is_fresh() { [ -n "$(find "$kept" -name "before-$ETCD_VERSION-*.db" -mmin -60 2>/dev/null)" ]; }
mkdir -p "$kept"
note() {
  printf '%s %s\n' "$ETCD_VERSION" "$1" >"$kept/version.part"
  mv "$kept/version.part" "$kept/version"
}
if [ "$was" = "$ETCD_VERSION" ]; then
  if [ -z "$from" ] || is_there || is_fresh; then exit 0; fi
fi
as=/etc/etcd/main/pki/server
if [ -e /etc/etcd/main/pki/authority/client.crt ]; then as=/etc/etcd/main/pki/authority/client; fi
ctl() {
  limit=$1
  shift
  ETCDCTL_API=3 "$programs/etcdctl" --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/main/pki/client-ca.crt --cert="$as.crt" --key="$as.key" \
    --dial-timeout=10s --command-timeout="$limit" "$@"
}
none_runs_it() {
  ! is_there && told=$(ctl 10s endpoint status --cluster 2>/dev/null) && ! printf '%s\n' "$told" | grep -q ", $ETCD_VERSION[^0-9]"
}
# A step to the next minor version that is taken back while somebody runs the old one, or nobody can be asked, has lost nothing yet.
if [ "$from" = "$ETCD_VERSION" ] && [ "${from%.*}" != "${was%.*}" ] && ! none_runs_it; then note ''; exit 0; fi
set -- /var/lib/etcd/main/member/wal/*.wal
if [ ! -e "$1" ]; then note ''; exit 0; fi
if [ -z "$was" ] && is_there; then note ''; exit 0; fi
# It does not run. Nobody begins another version then; who goes on with one has what was saved when it was begun.
if ! systemctl -q is-active etcd-main.service; then exit 0; fi

needed=$(du -k /var/lib/etcd/main/member/snap/db | cut -f1)
free=$(df -Pk "$kept" | awk 'NR == 2 { print $4 }')
if [ "$((needed + 1048576))" -ge "$free" ]; then
  echo "a snapshot needs $needed KiB in $kept, etcd needs room to go on, and $free KiB are free" >&2
  exit 1
fi
file=$kept/before-$ETCD_VERSION-$(date -u +%Y%m%dT%H%M%SZ).db
if ! ctl 1740s snapshot save "$file" >"$kept/log" 2>&1; then
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
ls -1t "$kept"/before-*.db | grep -vxF "$file" | tail -n +3 | while read -r old; do rm -f "$old"; done
note "$seen"
echo "saved $file, $(stat -c %s "$file") bytes"