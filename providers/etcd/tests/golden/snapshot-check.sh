kept=/var/lib/etcd/main.snapshots
[ -r "$kept/version" ] || exit 0
read -r was from <"$kept/version" || :
[ "$was" = "$ETCD_VERSION" ] || exit 0
[ -n "$from" ] || exit 0
seen=$(/opt/karmaform/etcd-main/etcd --version 2>/dev/null | sed -n 's/^etcd Version: //p' || :)
[ "$seen" = "$ETCD_VERSION" ] || [ -n "$(find "$kept" -name "before-$ETCD_VERSION-*.db" -mmin -60)" ]