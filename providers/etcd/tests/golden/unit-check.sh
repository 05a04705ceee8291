seen=$(/opt/karmaform/etcd-main/etcd --version 2>&1 | sed -n 's/^etcd Version: //p')
case $seen in
3.5.16 | 3.5.16[!0-9]*) ;;
*)
  if [ -x /opt/karmaform/etcd-main/previous/etcd ]; then cp -p /opt/karmaform/etcd-main/previous/etcd /opt/karmaform/etcd-main/etcd.back && mv /opt/karmaform/etcd-main/etcd.back /opt/karmaform/etcd-main/etcd; fi
  echo "the program from \`source\` is etcd ${seen:-of no version}, and \`version\` says 3.5.16" >&2
  exit 1
  ;;
esac