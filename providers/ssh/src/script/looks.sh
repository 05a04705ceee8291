# sums PATH...: SHA-256 of those that are regular files. One whose sum was noted when it was installed is not read again while it is the same, and one
# of more than 4 GiB is not read at all: nobody makes such ones here, and it would take longer than a connection waits for a sign of life. What was
# written just now is none of them.
sums() {
  _huge=
  if [ -z "$kf_written" ]; then _huge=$kf_line$(find "$@" -maxdepth 0 -type f -size +4194304k 2>/dev/null)$kf_line; fi
  _noted=$kf_line
  if [ -f "$kf_owned" ]; then _noted=$kf_line$(sed -n "s/^ssh_artifact$kf_tab\([^$kf_tab]*$kf_tab..*\)/\1/p" "$kf_owned")$kf_line; fi
  for _path do
    shift
    if [ ! -f "$_path" ] || [ -h "$_path" ] || noted_sum "$_path"; then continue; fi
    case $_huge in *"$kf_line$_path$kf_line"*)
      printf '%064d  %s\n' 0 "$_path"
      continue
      ;;
    esac
    set -- "$@" "$_path"
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

# sealed PATH...: those that not even root may change (`chattr +i`), or only add to (`chattr +a`); nothing where the host can't tell. What was
# written just now is none of them.
sealed() {
  if [ -n "$kf_written" ]; then return 0; fi
  command -v lsattr >/dev/null 2>&1 || return 0
  lsattr -d -- "$@" </dev/null 2>/dev/null | sed -n 's/^[^ ]*[ai][^ ]* *//p'
}

# among PATH ENDING...: those that have something in them whose name ends so. What nobody may look into may have it.
among() {
  while [ $# -gt 1 ]; do
    if [ -d "$1" ] && ! { [ -r "$1" ] && [ -x "$1" ]; }; then printf '%s\n' "$1"; fi
    for _entry in "$1"/*"$2"; do
      if [ -e "$_entry" ] || [ -h "$_entry" ]; then printf '%s\n' "$1" && break; fi
    done
    shift 2
  done
}

# drop_ins UNIT...: files of an administrator that change what these units are, UNIT/FILE a line; whether systemd has read them by now or not.
# Those that are not in /etc/systemd/system, of `systemctl set-property` and of `edit --runtime` for two, with their whole path.
drop_ins() {
  for _name do
    for _path in /etc/systemd/system/"$_name".d/*.conf; do
      if [ -f "$_path" ] || [ -h "$_path" ]; then printf '%s/%s\n' "$_name" "${_path##*/}"; fi
    done
    # Another unit of this name goes before ours.
    for _path in /etc/systemd/system.control/"$_name" /run/systemd/system.control/"$_name" /run/systemd/transient/"$_name"; do
      if [ -f "$_path" ] || [ -h "$_path" ]; then printf '%s/%s\n' "$_name" "$_path"; fi
    done
    for _path in /run/systemd/system/"$_name".d/*.conf /etc/systemd/system.control/"$_name".d/*.conf /run/systemd/system.control/"$_name".d/*.conf; do
      if [ -f "$_path" ] || [ -h "$_path" ]; then printf '%s/%s\n' "$_name" "$_path"; fi
    done
  done
}

# starters UNIT...: what has links of an administrator to these units, and so starts them: `UNIT multi-user.target.wants` a line
starters() {
  for _name do
    for _path in /etc/systemd/system/*.wants/"$_name" /etc/systemd/system/*.requires/"$_name" /run/systemd/system/*.wants/"$_name" /run/systemd/system/*.requires/"$_name"; do
      if [ ! -h "$_path" ]; then continue; fi
      _path=${_path%/*}
      printf '%s %s\n' "$_name" "${_path##*/}"
    done
  done
}

# processes UNIT...: of those whose main process is there: `stopped UNIT` if somebody has stopped it (SIGSTOP), it does nothing; `older UNIT` if it was
# started with other arguments than its file has, which was changed since; `replaced UNIT` if its program is another one by now.
processes() {
  { TZ=UTC systemctl show -p Id,Type,MainPID,ExecStart,FragmentPath,ExecMainStartTimestamp -- "$@" 2>/dev/null; echo; } | while IFS= read -r _line; do
    _value=${_line#*=}
    case $_line in
      Id=*) _id=$_value ;;
      Type=*) _type=$_value ;;
      MainPID=*) _pid=$_value ;;
      ExecStart=*) _start=$_value ;;
      FragmentPath=*) _file=$_value ;;
      ExecMainStartTimestamp=*) _since=$_value ;;
      '')
        if [ "${_pid:-0}" != 0 ] && { read -r _stat </proc/"$_pid"/stat; } 2>/dev/null; then
          case ${_stat##*) } in T*) printf 'stopped %s\n' "$_id" ;; esac
          compare_process
        fi
        _pid= _type= _start= _file= _since=
        ;;
    esac
  done
}

# compare_process: $_pid with $_start. Only a process that is called as its program: others are called by an interpreter.
compare_process() {
  case $_type in simple | exec | notify | notify-reload) ;; *) return ;; esac
  case $_start in '{ path=/'*' ; argv[]='*' ; ignore_errors='*) ;; *) return ;; esac
  _program=${_start#'{ path='}
  _program=${_program%%' ; argv[]='*}
  _argv=${_start#*' ; argv[]='}
  _argv=${_argv%%' ; ignore_errors='*}
  # What is in a variable, or not written as it is, is known to systemd alone.
  case $_argv in *'$'* | *\\*) return ;; esac
  _runs=$(tr '\0' ' ' 2>/dev/null <"/proc/$_pid/cmdline") || return
  [ "${_runs%% *}" = "$_program" ] || return
  # Many programs write something else in place of their arguments; those were started by the file as it is.
  if [ "$(unquoted "${_runs% }")" != "$(unquoted "$_argv")" ] && is_changed_since_start; then printf 'older %s\n' "$_id"; fi
  case $(readlink "/proc/$_pid/exe" 2>/dev/null) in *' (deleted)') ;; *) return ;; esac
  # Written anew and the same is the same.
  cmp -s "/proc/$_pid/exe" "$_program"
  if [ $? = 1 ]; then printf 'replaced %s\n' "$_id"; fi
}

# Marks of quoting are shown by one version of systemd, and not by another.
unquoted() { printf %s "$1" | tr -d "\"'"; }

# is_changed_since_start: something was done to the unit's file after its process was started
is_changed_since_start() {
  _changed=$(stat -c %Z -- "$_file" 2>/dev/null) && _began=$(date -d "$_since" +%s 2>/dev/null) && [ "$_changed" -gt "$_began" ]
}

# health UNIT URL ...: asks each address how its unit is, all at the same time: `UNIT STATUS` a line, 000 where nobody answers. Certificates are
# those of programs of ours, and not what is asked about. A host without curl says nothing of it.
health() {
  command -v curl >/dev/null 2>&1 || return 0
  while [ $# -gt 1 ]; do
    { _status=$(curl -q -s -k --noproxy '*' --max-time 5 -o /dev/null -w '%{http_code}' "$2" </dev/null 2>/dev/null); printf '%s %s\n' "$1" "${_status:-000}"; } &
    shift 2
  done
  wait
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

# user_groups NAME...: all groups of those that are there: `NAME: GROUP GROUP`
user_groups() {
  for _name do
    if _groups=$(id -Gn -- "$_name" 2>/dev/null) || [ -n "$_groups" ]; then printf '%s: %s\n' "$_name" "$_groups"; fi
  done
}

# hosts_blocks FILE: the blocks of ours in it, each from its first line to its last
hosts_blocks() {
  if [ -f "$1" ]; then sed -n '/^# BEGIN karmaform /,/^# END karmaform /p' "$1" 2>&1; fi
}

# hosts_beside FILE: its mode, whether cloud-init writes it anew at each boot, and the lines in it that are nobody's of karmaform
hosts_beside() {
  if [ -f "$1" ]; then
    stat -c 'mode %a' "$1"
    if is_rewritten "$1"; then echo rewritten; fi
    sed '/^# BEGIN karmaform /,/^# END karmaform /d; /^[[:space:]]*#/d' "$1" 2>/dev/null
  fi
}
