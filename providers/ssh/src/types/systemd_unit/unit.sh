# Functions for one unit; $name, $path, $pending and $limit are set.

need_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1 || fail systemd; }

property() { systemctl show -p "$1" --value -- "$name" </dev/null; }

# A file at our path, or a unit of a package by this name, is not ours to replace.
refuse_foreign_unit() {
  is_owned ssh_systemd_unit "$name" && return
  if [ -e "$path" ] || [ -h "$path" ]; then fail exists "$path"; fi
  _fragment=$(property FragmentPath)
  if [ -n "$_fragment" ]; then fail exists "$_fragment"; fi
}

reload() { systemctl daemon-reload >&2 || fail reload; }

# keep_drop_ins FILE...: all others that change the unit go; with them it was another one than ours
keep_drop_ins() {
  _control=/run/systemd/system.control/$name.d
  for _path in "$path".d/*.conf /run/systemd/system/"$name".d/*.conf /etc/systemd/system.control/"$name".d/*.conf "$_control"/*.conf; do
    if [ ! -f "$_path" ] && [ ! -h "$_path" ]; then continue; fi
    for _allowed do
      if [ "$_path" = "$path.d/$_allowed" ]; then continue 2; fi
    done
    rm -f "$_path" || fail write "$_path"
    newer=true
  done
  # Another unit of this name goes before ours.
  for _path in /etc/systemd/system.control/"$name" /run/systemd/system.control/"$name" /run/systemd/transient/"$name"; do
    if [ ! -f "$_path" ] && [ ! -h "$_path" ]; then continue; fi
    rm -f "$_path" || fail write "$_path"
    newer=true
  done
  rmdir "$path.d" /run/systemd/system/"$name".d /etc/systemd/system.control/"$name".d "$_control" 2>/dev/null || :
}

# Its main process is there, and somebody has stopped it (SIGSTOP).
is_stopped() {
  _pid=$(property MainPID)
  [ "${_pid:-0}" != 0 ] && { read -r _stat </proc/"$_pid"/stat; } 2>/dev/null || return 1
  case ${_stat##*) } in T*) return 0 ;; *) return 1 ;; esac
}

# What is linked is read with the unit itself, in one go: each reading starts a dozen of programs, and takes all that systemd knows anew.
enable_unit() { systemctl -q --no-reload enable -- "$name" >&2 || fail enable; }

# The links of a file that was there before go: its [Install] section may have been another one. Of a template those of all instances would, and only one came back.
reenable_unit() {
  case $name in *@.*) enable_unit ;; *) systemctl -q --no-reload reenable -- "$name" >&2 || fail enable ;; esac
}

disable_unit() { systemctl -q --no-reload disable -- "$name" >&2 || fail disable; }

# What is in /run/karmaform is changed under the host's lock: the script of a run that was killed may still be at work, and takes the directory
# away when it has done its part.
run_directory() { mkdir -p /run/karmaform && chmod 0700 /run/karmaform || fail write /run/karmaform; }
leave_run_directory() { rmdir /run/karmaform 2>/dev/null || :; }

# Between writing the file and running with it lies a gap in which we may be cut off; the mark tells the next run. It says whose it is.
mark_pending() { locked _mark_pending; }
_mark_pending() {
  run_directory
  printf '%s\n' "$kf" | cat >"$pending" || fail write "$pending"
}

# clear_pending own|all: our own mark, or anybody's
clear_pending() { locked _clear_pending "$1"; }
_clear_pending() {
  if [ "$1" = all ] || [ "$(cat "$pending" 2>/dev/null)" = "$kf" ]; then rm -f "$pending"; fi
  leave_run_directory
}

write_environment() {
  kf_new=/run/karmaform/$name.env.new
  locked _write_environment
  kf_new=
}
_write_environment() {
  run_directory
  cat <&3 >"$kf_new" && chmod 0600 "$kf_new" && mv -f "$kf_new" "/run/karmaform/$name.env" || fail write "/run/karmaform/$name.env"
}

drop_environment() { locked _drop_environment; }
_drop_environment() {
  rm -f "/run/karmaform/$name.env" "/run/karmaform/$name.env.new"
  leave_run_directory
}

# report WORD: what systemd and the journal say, then the end
report() {
  # The journal gets to know a little later what a process said.
  sleep 0.2
  section status
  systemctl status --no-pager --full --lines=0 -- "$name" 2>&1
  section journal
  journalctl --no-pager --quiet --output=cat --lines=100 --since="@$since" --unit="$name" 2>/dev/null
  fail unit "$1"
}

# check_start COMMAND: before anything is touched; what it says is told as what the unit said
check_start() {
  _said=$(timeout "$limit" sh -c "$1" 2>&1 </dev/null) && return
  section status
  printf '%s\n' "$_said" | tail -n 20
  fail unit check
}

# job start|restart|stop: its status as systemctl's, 124 if it took too long. systemd cancels a job when another comes for the same unit, and
# the script of a run that was killed may still be at work on it for as long as one of its own jobs takes; ours is asked for again.
job() {
  for _ in 1 2 3 4 5; do
    _said=$(timeout "$limit" systemctl "$1" -- "$name" 2>&1 </dev/null)
    _status=$?
    printf '%s\n' "$_said" >&2
    case $_said in *'Job for '*' canceled.'*) ;; *) break ;; esac
  done
  return "$_status"
}

# Between a stop and its start a connection that breaks must not end us: what was stopped would stay so.
deaf() { trap '' HUP PIPE; }
hearing() { trap 'exit 1' HUP PIPE; }

# is_settled: its main process has been there for a while, as that of a unit whose start waits for something. Both times are counted from the boot,
# in hundredths of a second.
is_settled() {
  _pid=$(property MainPID)
  process "${_pid:-0}" && read -r _up _rest </proc/uptime && [ "$((${_up%.*}${_up#*.} - _began))" -ge 70 ]
}

# start_unit start|restart WAIT
start_unit() {
  since=$(date +%s)
  # To systemd it runs. What it is stopped with wakes it, too.
  if is_stopped; then set -- restart "$2"; fi
  systemctl reset-failed -- "$name" >/dev/null 2>&1
  deaf
  # systemd lets a start wait until the next attempt is due, which may be long.
  case $(property SubState) in auto-restart*) stop_unit ;; esac
  if [ "$2" = false ]; then
    # The old process must be gone when this step ends: else whoever asks for its health next gets the answer of the one that is to go.
    if [ "$1" = restart ]; then stop_unit; fi
    # What the old process said at its end tells nothing about the new one.
    since=$(date +%s)
    systemctl --no-block start -- "$name" >&2 || report start
    hearing
    # What dies at once (of a port that is taken, of a value that it does not understand) is told here, with what it said. Who is slow is
    # left to whoever asks for its health.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      sleep 0.1
      case $(systemctl show -p ActiveState,SubState,NRestarts -- "$name" </dev/null) in
        *ActiveState=active*) return 0 ;;
        *SubState=auto-restart* | *ActiveState=failed* | *NRestarts=[1-9]*)
          # What is left of the process before can keep systemd from making a new one's control group (status 219): then nothing has run yet.
          if [ "$(property ExecMainStatus)" != 219 ]; then report died; fi
          deaf
          stop_unit
          systemctl reset-failed -- "$name" >/dev/null 2>&1
          systemctl --no-block start -- "$name" >&2 || report start
          hearing
          ;;
        *ActiveState=inactive*)
          # A condition that could not be asked for the same reason is no condition that said no.
          case $(property ExecCondition) in *status=219*) systemctl --no-block start -- "$name" >&2 || report start ;; esac
          ;;
      esac
    done
    return 0
  fi
  job "$1"
  _status=$?
  hearing
  if [ "$_status" = 124 ]; then report timeout; fi
  if [ "$_status" != 0 ]; then report start; fi
  # These types count as started as soon as there is a process; one that dies at once has not started for anybody.
  case $name in *.service) ;; *) return 0 ;; esac
  case $(property Type) in
    simple | exec | idle)
      is_settled || sleep 0.7
      case $(property ActiveState)/$(property SubState) in
        active/*) ;;
        */auto-restart* | failed/* | inactive/*) report died ;;
      esac
      ;;
  esac
}

stop_unit() {
  since=$(date +%s)
  case $(property ActiveState) in inactive | failed | '') return 0 ;; esac
  job stop || report stop
}

remove_unit() {
  stop_unit
  # While the file is still there: asking systemd about a unit without a file makes it remember one that is not found.
  systemctl reset-failed -- "$name" >/dev/null 2>&1
  if [ -e "$path" ] || [ -h "$path" ]; then
    systemctl -q --no-reload disable -- "$name" >/dev/null 2>&1
    rm -f "$path" || fail write "$path"
  fi
  reload
  clear_pending all
  drop_environment
}
