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
