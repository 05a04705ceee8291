# sums PATH...: SHA-256 of those that are regular files. One whose sum was noted when it was installed is not read again while it is the same.
sums() {
  _noted=$kf_line
  if [ -f "$kf_owned" ]; then _noted=$kf_line$(sed -n "s/^ssh_artifact$kf_tab\([^$kf_tab]*$kf_tab..*\)/\1/p" "$kf_owned")$kf_line; fi
  for _path do
    shift
    if [ -f "$_path" ] && [ ! -h "$_path" ] && ! noted_sum "$_path"; then set -- "$@" "$_path"; fi
  done
  if [ $# -gt 0 ]; then sha256sum -- "$@" 2>&1; fi
}

# noted_sum PATH: the sum that was noted, if the file is the same since
noted_sum() {
  case $_noted in *"$kf_line$1$kf_tab"*) ;; *) return 1 ;; esac
  _note=${_noted#*"$kf_line$1$kf_tab"}
  _note=${_note%%"$kf_line"*}
  [ "${_note%% *}" = "$(stamp "$1")" ] && printf '%s  %s\n' "${_note#* }" "$1"
}

# full PATH...: those that are directories with something in them
full() {
  for _path do is_empty "$_path" || printf '%s\n' "$_path"; done
}

# drop_ins UNIT...: files in /etc that change what these units are, UNIT/FILE a line; whether systemd has read them by now or not
drop_ins() {
  for _name do
    for _path in /etc/systemd/system/"$_name".d/*.conf; do
      if [ -f "$_path" ] || [ -h "$_path" ]; then printf '%s/%s\n' "$_name" "${_path##*/}"; fi
    done
  done
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
