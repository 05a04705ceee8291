# sums PATH...: SHA-256 of those that are regular files
sums() {
  for _path do
    shift
    if [ -f "$_path" ] && [ ! -h "$_path" ]; then set -- "$@" "$_path"; fi
  done
  if [ $# -gt 0 ]; then sha256sum -- "$@" 2>&1; fi
}

# full PATH...: those that are directories with something in them
full() {
  for _path do is_empty "$_path" || printf '%s\n' "$_path"; done
}

# users NAME...: those that are there. One without its group was not made to its end, and is not there.
users() {
  for _name do
    _entry=$(getent passwd "$_name")
    case $? in
      0) if has_group "$_name"; then printf '%s\n' "$_entry"; fi ;;
      2) ;;
      *) echo failed ;;
    esac
  done
}

# hosts_blocks FILE: the blocks of ours in it, each from its first line to its last
hosts_blocks() {
  if [ -e "$1" ]; then sed -n '/^# BEGIN karmaform /,/^# END karmaform /p' "$1" 2>&1; fi
}
