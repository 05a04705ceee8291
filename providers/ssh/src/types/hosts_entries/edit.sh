# edit: puts what is on file descriptor 3 in the place of a block, or takes the block away; run it under the host's lock.
# "hosts" is the file, "pattern" the block's name as a regular expression, "put" true or false.
#
# Everything else in the file stays as it is, byte for byte. A block is whole lines, and a new one goes behind the last whole line: where
# the file has no newline at its end, its last words stay its last words, and are all that is left of it when the block goes.
edit() {
  guard
  if [ -h "$hosts" ]; then hosts=$(readlink -f "$hosts") || fail kind /etc/hosts; fi
  if [ ! -e "$hosts" ]; then
    $put || return 0
    : >"$hosts" && chmod 0644 "$hosts" || fail write "$hosts"
  fi
  [ -f "$hosts" ] || fail kind "$hosts"
  begin=$(sed -n "/^# BEGIN karmaform $pattern\$/ { =; q; }" "$hosts") || fail write "$hosts"
  if [ -n "$begin" ]; then
    end=$(sed -n "$begin,\$ { /^# END karmaform $pattern\$/ { =; q; }; }" "$hosts")
    [ -n "$end" ] || fail damaged "$hosts"
    # What begins before it ends has lost its end, and what follows is somebody else's.
    [ "$(sed -n "$begin,$end { /^# BEGIN karmaform /p; }" "$hosts" | wc -l)" -eq 1 ] || fail damaged "$hosts"
  else
    $put || return 0
    end=$(wc -l <"$hosts") || fail write "$hosts"
    begin=$((end + 1))
  fi
  rm -f "${hosts%/*}/.karmaform.hosts-entries."??????
  kf_new=$(mktemp "${hosts%/*}/.karmaform.hosts-entries.XXXXXX") || fail write "$hosts"
  # owner, mode and labels come along
  cp -a "$hosts" "$kf_new" || fail write "$hosts"
  {
    { [ "$begin" = 1 ] || head -n "$((begin - 1))" "$hosts"; } \
      && { ! $put || cat <&3; } \
      && tail -n "+$((end + 1))" "$hosts"
  } >"$kf_new" || fail write "$hosts"
  sync "$kf_new" 2>/dev/null || sync
  # In a container it is a mount of its own, which nothing can be moved onto. It is written over then, and cut where it got shorter, so that
  # nobody who reads it in the meantime finds it empty.
  if ! mv -f "$kf_new" "$hosts" 2>/dev/null; then
    size=$(wc -c <"$kf_new")
    cat "$kf_new" 1<>"$hosts" && dd if=/dev/null of="$hosts" bs=1 seek="$size" 2>/dev/null || fail write "$hosts"
    rm -f "$kf_new"
  fi
  kf_new=
  sync "${hosts%/*}/" 2>/dev/null || :
}
