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
  echo "etcd_cluster.main a" > "$marker"
  rm -f "$formation"
  ;;
*)
  echo "usage: $0 check|formed" >&2
  exit 2
  ;;
esac
