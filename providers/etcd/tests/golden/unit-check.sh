seen=$(/opt/karmaform/etcd-main/etcd --version 2>&1 | sed -n 's/^etcd Version: //p')
case $seen in
3.5.16 | 3.5.16[!0-9]*) ;;
*)
  echo "the program from \`source\` is etcd ${seen:-of no version}, and \`version\` says 3.5.16" >&2
  exit 1
  ;;
esac