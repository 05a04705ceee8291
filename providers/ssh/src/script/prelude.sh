# Functions of every script. POSIX shell; no "local", so a function's own names begin with an underscore.
export LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 077
cd /
kf_tab='	'
kf_line='
'
# A user without sudo can't write there, but has a place of its own. Whom the first process belongs to is root, and
# need not start a program to know it.
if [ -n "$HOME" ] && [ ! -O /proc/1 ] && [ "$(id -u)" != 0 ]; then kf_directory=$HOME/.local/state/karmaform; else kf_directory=/var/lib/karmaform; fi
kf_owned=$kf_directory/owned
# What arrived so far of files that are large.
kf_parts=$kf_directory/parts
# Who works here. With root's it goes with a reboot, as does whoever was at work.
if [ "$kf_directory" = /var/lib/karmaform ]; then kf_run=/run/karmaform.run; else kf_run=$kf_directory/run; fi

# section NAME: what follows belongs to it
section() { printf '\n%s %s\n' "$kf" "$1"; }

# fail WORD [TEXT]: says why, and ends
fail() {
  case $1 in write | useradd | usermod | userdel | enable) say_full "$2" ;; esac
  printf '\n%s fail %s %s\n' "$kf" "$1" "$2"
  exit 3
}

# say_full PATH: where no space is left, if so. What is built into a shell only says "I/O error" then. Before anything is removed: what was
# written in part may be all that there was room for.
say_full() {
  case $1 in /*) _place=$1 ;; *) _place=/etc ;; esac
  while [ -n "$_place" ] && [ ! -d "$_place" ]; do _place=${_place%/*}; done
  for _count in -k -i; do
    df -P "$_count" -- "${_place:-/}" 2>/dev/null | while read -r _device _size _used _free _share _mount; do
      if [ "$_free" = 0 ] && [ "$_size" != 0 ]; then section nospace; printf '%s\n' "$_mount"; fi
    done
  done
}

# locked COMMAND...: one at a time on this host. The lock is on a directory that is always there, so nothing is left behind. Whoever has it goes on.
kf_locked=
locked() {
  if [ -z "$kf_locked" ] && command -v flock >/dev/null 2>&1; then
    ( take_lock 30 9 || fail locked; kf_locked=1; "$@" ) 9</var/lib || exit
  else
    "$@"
  fi
}

# take_lock SECONDS DESCRIPTOR: who has it is waited for so long. Not every flock knows how long to wait: that of busybox does not. Most often
# nobody has it.
take_lock() { flock -n "$2" || timeout "$1" flock "$2"; }

# is_owned KIND IDENTITY
is_owned() {
  [ -f "$kf_owned" ] || return 1
  while IFS= read -r _line; do
    case $_line in "$1$kf_tab$2$kf_tab"*) return 0 ;; esac
  done <"$kf_owned"
  return 1
}

# is_rewritten FILE: cloud-init is told to write it anew at each boot, which it says at the top. One that is switched off does nothing.
# Source: cloud-init's `templates/hosts.*.tmpl`. Only tests set kf_root.
is_rewritten() {
  [ -d "$kf_root/var/lib/cloud" ] && [ ! -e "$kf_root/etc/cloud/cloud-init.disabled" ] && grep -qs "'manage_etc_hosts' as True" "$1"
}

# has_group USER: the group of a user is there; where it is not, whoever made the user was cut off between the two
has_group() { getent group "$(id -g -- "$1")" >/dev/null; }

# own KIND IDENTITY [NOTE]: remembers on the host that this is ours, before it is made, so that nothing of ours is ever unknown; and a note with it
own() { if [ -n "$3" ] || ! is_owned "$1" "$2"; then locked _own "$@"; fi; }
_own() {
  if is_owned "$1" "$2"; then _is_known=1; else _is_known=; fi
  if [ -n "$_is_known" ] && [ -z "$3" ]; then return 0; fi
  [ -d "$kf_directory" ] || mkdir -p -m 0755 "$kf_directory" || fail write "$kf_directory"
  # By a program, which says why it can't write. The shell itself says "I/O error", and what was full may have room again when it is looked at.
  # What is new goes to the end of the others, which the shell would read byte by byte.
  if [ -z "$_is_known" ] && [ -f "$kf_owned" ]; then
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" | { umask 022 && cat "$kf_owned" - >"$kf_owned.new"; }
  else
    { _others "$1" "$2" && printf '%s\t%s\t%s\n' "$1" "$2" "$3"; } | { umask 022 && cat >"$kf_owned.new"; }
  fi && mv -f "$kf_owned.new" "$kf_owned" || { say_full "$kf_owned"; rm -f "$kf_owned.new"; rmdir "$kf_directory" 2>/dev/null; fail write "$kf_owned"; }
}

# disown KIND IDENTITY: forgets it; with the last line goes all that karmaform keeps on the host
disown() { if is_owned "$1" "$2"; then locked _disown "$1" "$2"; fi; }
_disown() {
  is_owned "$1" "$2" || return 0
  _others "$1" "$2" | { umask 022 && cat >"$kf_owned.new"; } || { say_full "$kf_owned"; rm -f "$kf_owned.new"; fail write "$kf_owned"; }
  if [ -s "$kf_owned.new" ]; then
    mv -f "$kf_owned.new" "$kf_owned" || fail write "$kf_owned"
  else
    rm -rf "$kf_parts"
    rm -f "$kf_owned.new" "$kf_owned" && rmdir "$kf_directory" 2>/dev/null || :
  fi
}

# _others KIND IDENTITY: the lines of everything else that is ours
_others() {
  [ -f "$kf_owned" ] || return 0
  while IFS= read -r _line; do
    case $_line in
      "$1$kf_tab$2$kf_tab"*) ;;
      *) printf '%s\n' "$_line" || return ;;
    esac
  done <"$kf_owned"
}

# claim KIND IDENTITY PATH: owns it before it is made; cleanup takes that back if it was not
claim() {
  kf_kind=$1 kf_identity=$2 kf_path=$3
  own "$1" "$2"
  make_parents "$3"
}

# refuse_links PATH: what is written there is elsewhere where a link has taken the place of a directory of ours above it. Only for what tells
# that of itself before.
refuse_links() {
  case $1 in /*/*) ;; *) return 0 ;; esac
  if [ -h "${1%/*}" ] && { is_owned parent "${1%/*}" || is_owned ssh_directory "${1%/*}"; }; then fail link "${1%/*}"; fi
  refuse_links "${1%/*}"
}

# refuse_foreign KIND IDENTITY PATH: what is there already must be ours
refuse_foreign() { if { [ -e "$3" ] || [ -h "$3" ]; } && ! is_owned "$1" "$2"; then fail exists "$3"; fi; }

# release KIND IDENTITY PATH: it is gone, and so are the directories that were made for it
release() {
  disown "$1" "$2"
  remove_parents "$3"
}

# cleanup: runs at the end of every script, however it ends
kf_new= kf_kind= kf_identity= kf_path= kf_part= kf_held= kf_written=
cleanup() {
  if [ -n "$kf_new" ]; then rm -f "$kf_new"; fi
  cleanup_claim
  # Where nothing is ours there is nothing to hold.
  if [ -n "$kf_held" ] && [ ! -e "$kf_owned" ]; then ( locked let_go ) >/dev/null 2>&1; fi
}
cleanup_claim() {
  # What has arrived in part is ours until the rest has.
  if [ -n "$kf_part" ] && [ -s "$kf_part" ]; then return; fi
  if [ -n "$kf_path" ] && [ ! -e "$kf_path" ] && [ ! -h "$kf_path" ]; then release "$kf_kind" "$kf_identity" "$kf_path"; fi
}

# guard: cleanup runs even if the connection breaks. A subshell forgets this, so each one that makes something begins with it.
guard() {
  trap cleanup EXIT
  trap 'exit 1' HUP INT TERM PIPE
}

# owns_below PATH: something of ours is inside
owns_below() {
  [ -f "$kf_owned" ] || return 1
  while IFS= read -r _line; do
    case $_line in *"$kf_tab$1/"*) return 0 ;; esac
  done <"$kf_owned"
  return 1
}

# is_empty PATH: nothing is in this directory, but for what every new file system has. Of one that we may not look into nobody knows.
is_empty() {
  if [ -d "$1" ] && ! { [ -r "$1" ] && [ -x "$1" ]; }; then return 1; fi
  for _entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    case $_entry in "$1/lost+found") continue ;; esac
    if [ -e "$_entry" ] || [ -h "$_entry" ]; then return 1; fi
  done
}

# unmounted [noauto]: where /etc/fstab mounts a file system when the host starts, and none is; with the word also where it is mounted by hand alone. What
# is mounted is read once, and not by a shell, which reads byte by byte: there may be thousands.
unmounted() {
  if [ ! -r "${kf_fstab:-/etc/fstab}" ] || [ ! -r /proc/self/mounts ]; then return 0; fi
  _mounts=$kf_line$(sed 's/^[^ ]* \([^ ]*\) .*/\1/' /proc/self/mounts)$kf_line
  while read -r _device _mount _type _options _rest || [ -n "$_device" ]; do
    case $_device in '' | '#'*) continue ;; esac
    case $_mount in / | '') continue ;; /*) ;; *) continue ;; esac
    case ",$_options," in *,noauto,*) if [ "$1" != noauto ]; then continue; fi ;; esac
    _mount=${_mount%/}
    # Where a link leads there, it is mounted where that leads.
    if ! is_mounted_at "$_mount" && ! is_mounted_at "$(readlink -f -- "$_mount" 2>/dev/null)"; then printf '%s\n' "$_mount"; fi
  done <"${kf_fstab:-/etc/fstab}"
}

# is_mounted_at PATH: it is the root of a file system
is_mounted_at() { case $_mounts in *"$kf_line$1$kf_line"*) [ -n "$1" ] ;; *) return 1 ;; esac; }

# make_parents PATH: makes the directories above it that are missing, and remembers them
make_parents() {
  case $1 in /*/*) ;; *) return 0 ;; esac
  [ -d "${1%/*}" ] && return 0
  make_parents "${1%/*}"
  own parent "${1%/*}"
  mkdir "${1%/*}" && chmod 0755 "${1%/*}" || [ -d "${1%/*}" ] || fail write "${1%/*}"
}

# remove_parents PATH: removes the directories above it that were made for it, if nothing is in them
remove_parents() {
  _above=${1%/*}
  while [ -n "$_above" ] && is_owned parent "$_above"; do
    if rmdir "$_above" 2>/dev/null || [ ! -d "$_above" ] || ! owns_below "$_above"; then
      disown parent "$_above"
    else
      return 0
    fi
    _above=${_above%/*}
  done
}

# install_file PATH SHA256 OWNER:GROUP MODE [READER] [CHECK]: standard input, as the reader gives it on, becomes the file, whole or not at all,
# and only if the check lets it
install_file() {
  stage_file "$@"
  place_file "$1"
}

# stage_file, of the same words: everything but taking its place
stage_file() {
  [ -d "$1" ] && [ ! -h "$1" ] && fail kind "$1"
  _name=${1##*/}
  for _left in "${1%/*}/.karmaform.$_name."??????; do
    if [ -e "$_left" ] || [ -h "$_left" ]; then rm -f "$_left"; fi
  done
  kf_new=$(mktemp "${1%/*}/.karmaform.$_name.XXXXXX") || fail write "$1"
  # With a reader what fails to be written is the disk's fault, and what fails to be read is no more than not what was sent, which the sum tells.
  if [ -n "$5" ]; then $5 | cat >"$kf_new"; else cat >"$kf_new"; fi || fail write "$1"
  _sum=$(sha256sum <"$kf_new") || fail write "$1"
  [ "${_sum%% *}" = "$2" ] || fail checksum "${_sum%% *}"
  chown "$3" "$kf_new" || fail owner "$3"
  chmod "$4" "$kf_new" || fail write "$1"
  if [ -n "$6" ]; then try_file "$6"; fi
  sync "$kf_new" 2>/dev/null || sync
}

# place_file PATH: what was staged for it
place_file() {
  # A link to a directory would take it in.
  if [ -h "$1" ]; then rm -f "$1"; fi
  mv -f "$kf_new" "$1" || fail write "$1"
  kf_new=
  sync "${1%/*}/" 2>/dev/null || :
}

# try_file COMMAND: it finds what was staged as $FILE; what one that fails says is told
try_file() {
  _said=$(FILE=$kf_new timeout 30 sh -c "$1" 2>&1 </dev/null)
  _status=$?
  if [ "$_status" = 0 ]; then return 0; fi
  section said
  printf '%s\n' "$_said" | tail -n 20
  fail check "$_status"
}

# stamp PATH: what changes whenever a file does: its inode and size, the times of its content and of itself
stamp() { stat -c '%i:%s:%.9Y:%.9Z' -- "$1" 2>/dev/null; }

# hold RUN SECONDS WHO: for so long, and some more, no other run works here, unless the connection and all scripts end before
hold() {
  # Most often it is ours for long enough.
  if work_is_of "$1" && [ "$_until" -ge "$((kf_now + $2))" ] && is_at_work; then
    stay "$1"
    return
  fi
  # Whoever was killed a moment ago is still on its way out.
  _tries=25
  while [ "$_tries" -gt 0 ] && works_elsewhere "$1"; do
    sleep 0.2
    _tries=$((_tries - 1))
  done
  find_connection
  locked _hold "$@"
  stay "$1"
}
_hold() {
  if works_elsewhere "$1"; then fail held "$((_until - kf_now)) $_who"; fi
  mkdir -p "${kf_run%/*}"
  # In place: whoever stays here has a lock on this very file.
  printf '%s %s %s %s %s\n' "$1" "$((kf_now + $2 + 900))" "$_process" "$_born" "$3" >"$kf_run" || fail write "$kf_run"
}

# stay RUN: as long as this script runs, whatever becomes of the connection, its run is at work here
stay() {
  kf_held=$1
  if [ -f "$kf_run" ] && command -v flock >/dev/null 2>&1; then
    # With "command" the script goes on if the file went away just now: then there is nothing to hold.
    command exec 8<"$kf_run" && { flock -s -n 8 || timeout 1 flock -s 8; }
  fi
}

# let_go: forgets who works here, if it is this run and no other script of it. Whoever goes last finds nobody else: each one gives up its own
# lock first.
let_go() {
  work_is_of "$kf_held" || return 0
  if command -v flock >/dev/null 2>&1; then
    flock -u 8
    flock -x -n 8 || return 0
  fi
  rm -f "$kf_run"
  rmdir "$kf_directory" 2>/dev/null
}

# work_is_of RUN: reads who works here, and when it is. Time is what has passed since the boot: no clock is set back in between.
work_is_of() {
  read -r kf_now _rest </proc/uptime
  kf_now=${kf_now%%.*} _run= _until=0
  if [ -f "$kf_run" ]; then read -r _run _until _its_process _its_birth _who <"$kf_run" || :; fi
  [ "$_run" = "$1" ]
}

# works_elsewhere RUN: another one works here. One whose connection has ended does not.
works_elsewhere() {
  if work_is_of "$1" || [ -z "$_run" ]; then return 1; fi
  # A script of it may go on without its connection.
  if command -v flock >/dev/null 2>&1 && ! flock -x -n "$kf_run" true; then return 0; fi
  # So long ahead is of before a boot.
  if [ "$_until" -le "$kf_now" ] || [ "$((_until - kf_now))" -gt 21600 ]; then return 1; fi
  is_at_work
}

# is_at_work: the connection of whoever works here is still there, as far as can be told. A process number alone may be another's by now.
is_at_work() { [ "$_its_process" = 0 ] || { process "$_its_process" && [ "$_began" = "$_its_birth" ]; }; }

# process NUMBER: reads its name, who started it, and when
process() {
  { read -r _stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  _name=${_stat#*(}
  _name=${_name%%)*}
  set -- ${_stat##*) }
  _parent=$2 _began=${20}
}

# find_connection: the process of the server that our connection ends with; 0 if it can't be told
find_connection() {
  _process=$$ _born=0
  while process "$_process"; do
    case $_name in sshd* | dropbear*) _born=$_began; return ;; esac
    _process=$_parent
  done
  _process=0
}
