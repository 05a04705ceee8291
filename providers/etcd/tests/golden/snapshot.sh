set -eu
umask 077
kept=/var/lib/etcd/main.snapshots
mkdir -p "$kept"
was= from=
if [ -e "$kept/version" ]; then read -r was from <"$kept/version" || :; fi
note() {
  printf '%s %s\n' "$ETCD_VERSION" "$1" >"$kept/version.part"
  mv "$kept/version.part" "$kept/version"
}
seen=$(/opt/karmaform/etcd-main/etcd --version 2>/dev/null | sed -n 's/^etcd Version: //p' || :)
if [ "$was" = "$ETCD_VERSION" ]; then
  if [ -z "$from" ] || [ "$seen" = "$ETCD_VERSION" ]; then exit 0; fi
  if [ -n "$(find "$kept" -name "before-$ETCD_VERSION-*.db" -mmin -60)" ]; then exit 0; fi
fi
# An upgrade is taken back while it is under way: nothing was lost yet.
if [ "$from" = "$ETCD_VERSION" ]; then note ''; exit 0; fi
set -- /var/lib/etcd/main/member/wal/*.wal
if [ ! -e "$1" ]; then note ''; exit 0; fi

as=/etc/etcd/main/pki/server
if [ -e /etc/etcd/main/pki/authority/client.crt ]; then as=/etc/etcd/main/pki/authority/client; fi
ask() {
  ETCDCTL_API=3 /opt/karmaform/etcd-main/etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/main/pki/client-ca.crt --cert="$as.crt" --key="$as.key" \
    --dial-timeout=10s --command-timeout=1740s "$@" >"$kept/log" 2>&1
}
# The member does not run, and nobody has asked for another version.
if [ -z "$was" ] && ! ask endpoint status; then note ''; exit 0; fi
needed=$(du -k /var/lib/etcd/main/member/snap/db | cut -f1)
free=$(df -Pk "$kept" | awk 'NR == 2 { print $4 }')
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
ls -1t "$kept"/before-*.db | tail -n +4 | while read -r old; do rm -f "$old"; done
note "$seen"
echo "saved $file, $size bytes"