#!/bin/sh
# Whether etcd member a of etcd_cluster.main may start. Written by karmaform.
#
# A member without data must not start as a part of a cluster that was formed before: if its peers don't answer at that moment, it forms an
# empty cluster with the same id, and the two live side by side with different contents.
set -eu
data=/var/lib/etcd/main
marker=/etc/etcd/main/formed
formation=/run/karmaform/etcd-main.service.env

case "${1:-check}" in
check)
  # While data is moved, what says where it is changes in several files.
  if [ "${ETCD_DATA_DIR:-$data}" != "$data" ]; then
    echo "etcd member a is to start in $ETCD_DATA_DIR, and this guard looks at $data: data is being moved. Run karmaform apply." >&2
    exit 1
  fi
  # The cluster was told a moment ago that this member comes. If it takes the place of another one, data of that one goes aside, once.
  replaces=${KARMAFORM_JOINS:-}
  if [ -n "$replaces" ]; then
    aside=$data.replaced-$replaces
    if [ "$replaces" != empty ] && [ -e "$data/member" ] && [ ! -e "$aside" ]; then
      # On another file system this is a copy, which may be cut short; only the second name says that it is whole.
      rm -rf "$aside.part"
      mv "$data/member" "$aside.part"
      mv "$aside.part" "$aside"
    fi
    # Whatever is there at the next try is its own.
    if [ -e "$formation" ]; then sed -i 's/^KARMAFORM_JOINS=.*/KARMAFORM_JOINS=empty/' "$formation"; fi
    exit 0
  fi
  for log in "$data"/member/wal/*.wal; do
    if [ -e "$log" ]; then exit 0; fi
  done
  if [ -e "$marker" ]; then
    echo "etcd member a was part of a formed cluster and its data in $data is gone. It does not start empty, because that could split the cluster. Replace the member, or put its data back." >&2
    exit 1
  fi
  if [ "${ETCD_INITIAL_CLUSTER_STATE:-}" = new ]; then exit 0; fi
  echo "etcd member a has no data in $data, and its cluster is not being formed just now. Run karmaform apply." >&2
  exit 1
  ;;
formed)
  rm -f "$formation"
  echo "etcd_cluster.main a" > "$marker"
  ;;
*)
  echo "usage: $0 check|formed" >&2
  exit 2
  ;;
esac
