# Moves a directory with what is in it. $path is where it is to be, $owner whose it is, $unit the unit that uses it (or nothing), $needed whether it
# must be somewhere, $endings those of what stands beside it and comes along, $spare the KiB that must be free besides.
#
# Names alone say what counts, and each changes at once or not at all:
#
#   PLACE          where something is in it, that counts, and in one place at a time
#   PLACE.moved    where it counts in none, this does, and it is whole. Whoever uses it finds nothing at PLACE, and does not start.
#   PLACE.coming   what has come so far: never counts
#   PLACE.gone     what is being deleted: never counts
#
# So what was cut off begins again from what counts. The lines `moving ONE OTHER` and `moving OTHER ONE` in the list of what is ours, from before
# anything is touched until all of it is done, only say which places to look at.
kf_moved=.karmaform-moved
kf_coming=.karmaform-coming
kf_gone=.karmaform-gone
kf_probe=.karmaform.probe

# has PATH: a directory with something in it
has() { [ -d "$1" ] && [ ! -h "$1" ] && ! is_empty "$1"; }

# is_there PATH: anything
is_there() { [ -e "$1" ] || [ -h "$1" ]; }

# to_disk PATH: before anything follows that counts on it
to_disk() {
  if sync -f "$1" 2>/dev/null; then return 0; fi
  # Some know no file systems, and say so of each; else it is the disk that says no.
  if sync -f /proc 2>/dev/null; then fail write "$1"; fi
  sync
}

# is_mount PATH: a file system's root, which can't be renamed
is_mount() {
  if [ ! -d "$1" ] || [ -h "$1" ]; then return 1; fi
  if command -v mountpoint >/dev/null 2>&1; then mountpoint -q -- "$1"; return; fi
  set -- $(stat -c %d -- "$1" "$1/..")
  [ "$1" != "$2" ]
}

# linked PLACE...: these, and those that this unit's notes name with them: `moving`, and `moved PLACE OTHER UNIT` of where what was there was brought, for
# whoever has not heard of it. A line each.
linked() {
  _places=$(printf '%s\n' "$@")
  while [ -f "$kf_owned" ]; do
    _more=$_places
    while IFS=$kf_tab read -r _kind _one _other _whose; do
      if [ -z "$_one" ] || [ -z "$_other" ] || [ "$_whose" != "$unit" ]; then continue; fi
      case $_kind in
      moving)
        if is_line "$_one" "$_more"; then add_line "$_other"; fi
        if is_line "$_other" "$_more"; then add_line "$_one"; fi
        ;;
      # Where something is by now it is not elsewhere. (It may have gone on after it was planned: whoever is killed leaves a script that goes on.)
      moved) if is_line "$_one" "$_more" && ! has "$_one"; then add_line "$_other"; fi ;;
      esac
    done <"$kf_owned"
    if [ "$_more" = "$_places" ]; then break; fi
    _places=$_more
  done
  printf '%s\n' "$_places"
}
add_line() { if ! is_line "$1" "$_more"; then _more=$_more$kf_line$1; fi; }

# is_moving PLACE: what this unit uses is on its way there, or from there
is_moving() { is_noted moving "$1"; }
# is_moved PLACE: what this unit uses was brought away from there
is_moved() { is_noted moved "$1"; }
is_noted() {
  [ -f "$kf_owned" ] || return 1
  while IFS=$kf_tab read -r _kind _one _other _whose; do
    if [ "$_kind" = "$1" ] && [ "$_one" = "$2" ] && [ "$_whose" = "$unit" ]; then return 0; fi
  done <"$kf_owned"
  return 1
}
# is_line LINE TEXT: it is a line of it
is_line() { case $kf_line$2$kf_line in *"$kf_line$1$kf_line"*) return 0 ;; esac; return 1; }

# ending_in PATH PATTERN: what there is beside it with one of the endings, and this behind that, a line each
ending_in() {
  set -f
  set -- "$1" "$2" $endings
  set +f
  _base=$1 _behind=$2
  shift 2
  for _ending do
    for _one in "$_base".$_ending$_behind; do if is_there "$_one"; then printf '%s\n' "$_one"; fi; done
  done
}

# beside PATH: what stands beside it and comes along, a line each
beside() {
  ending_in "$1" '' | while IFS= read -r _one; do
    case $_one in *"$kf_moved" | *"$kf_coming" | *"$kf_gone"*) ;; *) printf '%s\n' "$_one" ;; esac
  done
}

# delete PATH: it does not count any more. Where that fails everything else goes on: the next move tries again.
delete() {
  if rm --help 2>&1 | grep -q -- --one-file-system; then
    rm -rf --one-file-system -- "$1"
  else
    ! grep -qF -- " $1/" /proc/self/mounts && rm -rf -- "$1"
  fi || echo "karmaform: $1 could not be deleted" >&2
}

# discard PATH [NAME]: what counted a moment ago does not any more, at once; then it is deleted. It goes by PATH's name, or that.
discard() {
  _gone=${2:-$1}$kf_gone
  while is_there "$_gone"; do _gone=$_gone.more; done
  rename "$1" "$_gone"
  delete "$_gone"
}

# is_running: anything but a clear no is a yes
is_running() { case $(systemctl show -p ActiveState --value -- "$unit" </dev/null) in inactive | failed) return 1 ;; esac; }
has_unit() { [ -n "$unit" ] && [ -d "${kf_systemd:-/run/systemd/system}" ]; }

# can_rename ONE OTHER: between these two directories. Between file systems, and between two views of one, nobody can; a link says so without a trace.
can_rename() {
  rm -f -- "$1/$kf_probe" "$2/$kf_probe.to"
  touch -- "$1/$kf_probe" 2>/dev/null && ln -T -- "$1/$kf_probe" "$2/$kf_probe.to" 2>/dev/null
  _can=$?
  rm -f -- "$1/$kf_probe" "$2/$kf_probe.to"
  return $_can
}

# rename FROM TO: at once, or not at all. Where nobody can, `mv` would copy and then delete, and could be cut off in between: it may not write.
rename() {
  free "$2"
  if ! ( ulimit -c 0; ulimit -f 0; mv -T -- "$1" "$2" ) >/dev/null 2>&1; then
    # What it may have made before it could not write must not have a name that counts. There was nothing before.
    if is_there "$1" && is_there "$2"; then mv -T -- "$2" "$2$kf_gone"; fi
    fail write "$2"
  fi
  to_disk "${2%/*}/"
}

# alike ONE OTHER: all files of both have the same names, sizes and times, as those of a copy have
alike() { [ "$(listed "$1")" = "$(listed "$2")" ]; }
listed() {
  if [ ! -d "$1" ] || [ -h "$1" ]; then stat -c '%s %Y' -- "$1"; return; fi
  ( cd -- "$1" && find . ! -type d -exec stat -c '%n %s %Y' -- {} + | sort )
}

# free PATH: nothing is there; an empty directory makes room
free() {
  if ! is_there "$1"; then return 0; fi
  if [ -h "$1" ] || [ ! -d "$1" ] || ! rmdir -- "$1" 2>/dev/null; then fail exists "$1"; fi
}

# copy FROM TO: its name is there when it is whole
copy() {
  rm -rf -- "$2$kf_coming" && cp -a -- "$1" "$2$kf_coming" || fail write "$2"
  to_disk "$2$kf_coming"
  free "$2"
  mv -T -- "$2$kf_coming" "$2" || fail write "$2"
  to_disk "$2"
}

# carry_beside FROM: what stands beside it stands beside the new place. Who uses the directory does not use these, and may run.
carry_beside() {
  _all=$(beside "$1")
  while IFS= read -r _thing <&6; do
    if [ -z "$_thing" ]; then continue; fi
    _its_place=$path${_thing#"$1"}
    if is_there "$_its_place"; then
      # It was brought, all of it, and is not gone where it was; or somebody else has something there by now.
      alike "$_thing" "$_its_place" || fail twice "$_thing and $_its_place"
      to_disk "$_its_place"
    elif can_rename "${_thing%/*}" "${path%/*}"; then
      rename "$_thing" "$_its_place"
      continue
    else
      copy "$_thing" "$_its_place"
    fi
    discard "$_thing"
  done 6<<END
$_all
END
}

# sweep PLACE: what was cut off has left there, and does not count
sweep() {
  for _one in "$1$kf_gone"* "$1$kf_coming"; do if is_there "$_one"; then delete "$_one"; fi; done
  if is_there "$1$kf_moved"; then discard "$1$kf_moved" "$1"; fi
  { ending_in "$1" "$kf_gone*"; ending_in "$1" "$kf_coming"; } | while IFS= read -r _one; do delete "$_one" </dev/null; done
}

# settle PLACE...: of what was cut off, one place has it, $live, or none has
settle() {
  live=
  for _place do
    if ! has "$_place"; then continue; fi
    if [ -n "$live" ]; then
      # What is not ours is not moved upon; and of two nobody can say which counts.
      if has "$path" && ! is_moving "$path" && ! is_owned ssh_directory "$path"; then fail exists "$path"; fi
      fail twice "$live and $_place"
    fi
    live=$_place
  done
  for _place do
    if ! has "$_place$kf_moved"; then continue; fi
    if [ -z "$live" ]; then
      rename "$_place$kf_moved" "$_place"
      live=$_place
    else
      # It counts, unless this is its copy, which nobody has used yet.
      alike "$_place$kf_moved" "$live" || fail twice "$_place$kf_moved and $live"
      to_disk "$live"
    fi
  done
  for _place do sweep "$_place"; done
}

# room DIRECTORY PLACE...: there is in this directory, if it has to be copied
room() {
  _parent=$1
  shift
  if can_rename "${live%/*}" "$_parent"; then return 0; fi
  _kib=$({ printf '%s\n' "$live"; for _place do beside "$_place"; done; } | while IFS= read -r _one; do du -skx -- "$_one"; done | awk '{ all += $1 } END { print all + 0 }')
  _free=$(df -Pk -- "$_parent" | awk 'NR == 2 { print $4 }')
  if [ "$((_kib + spare))" -ge "$_free" ]; then
    fail room "$_kib KiB and $spare KiB to go on with are needed in $_parent, and $_free KiB are free"
  fi
}

# may_enter DIRECTORY: whoever it belongs to
may_enter() {
  if [ "$(id -u)" != 0 ] || ! command -v runuser >/dev/null 2>&1; then return 0; fi
  # Users that root has not made yet are looked at when it gets its owner.
  if ! id -- "${owner%%:*}" >/dev/null 2>&1; then return 0; fi
  runuser -u "$(id -un -- "${owner%%:*}")" -- test -x "$1/" || fail closed "$1"
}

# put_back: if it did not get to its new place it is where it was, and who used it goes on. If it did, whoever moves it starts them.
kf_left= kf_halted=
put_back() {
  trap '' HUP INT TERM PIPE
  if [ -n "$kf_left" ] && ! is_there "$kf_left"; then
    if ! is_there "$kf_left$kf_moved" || { has "$path" && alike "$kf_left$kf_moved" "$path"; }; then return; fi
    mv -T -- "$kf_left$kf_moved" "$kf_left" >&2
  fi
  if [ -n "$kf_halted" ]; then systemctl start --no-block -- "$unit" >&2 </dev/null; fi
  if [ -n "$kf_left" ]; then rm -rf -- "$path$kf_coming" >&2; fi
}

# leave: nobody uses what is in $live any more, and nobody can
leave() {
  if has_unit && is_running; then
    kf_halted=1
    systemctl stop -- "$unit" >&2 </dev/null
    if is_running; then fail running "$unit"; fi
  fi
  kf_left=$live
  rename "$live" "$live$kf_moved"
  # Somebody may have started it in between.
  if has_unit && is_running; then fail running "$unit"; fi
}

# arrive: it is at its new place, and not at the old one
arrive() {
  if can_rename "${live%/*}" "${path%/*}"; then rename "$live$kf_moved" "$path"; else copy "$live$kf_moved" "$path"; fi
  kf_left= kf_halted=
  sweep "$live"
}

# forget PLACE: nothing is there any more. What was there before it was ours stays, empty.
forget() {
  if has "$1"; then return 0; fi
  if [ -d "$1" ] && is_owned ssh_directory "$1" && ! is_owned adopted "$1"; then rmdir -- "$1" 2>/dev/null; fi
  disown adopted "$1"
  disown ssh_directory "$1"
  if ! is_there "$1"; then remove_parents "$1"; fi
}

# is_mounted PATH: every file system that this host mounts on the way there is, so that nothing goes below where one will be
is_mounted() {
  _unmounted=$(unmounted noauto)
  while IFS= read -r _mount; do
    if [ -z "$_mount" ]; then continue; fi
    case $1 in "$_mount" | "$_mount"/*) fail unmounted "$_mount" ;; esac
  done <<END
$_unmounted
END
}

# note_moved PLACE...: the state may never hear of it. Who has not heard of the move before this one either is led here at once.
note_moved() {
  if is_moved "$path"; then disown moved "$path"; fi
  for _place do
    if [ "$_place" = "$path" ]; then continue; fi
    while IFS=$kf_tab read -r _kind _one _other _whose <&5; do
      if [ "$_kind" = moved ] && [ "$_other" = "$_place" ] && [ "$_one" != "$path" ]; then own moved "$_one" "$path$kf_tab$_whose"; fi
    done 5<"$kf_owned"
    own moved "$_place" "$path$kf_tab$unit"
  done
}

# move PLACE...: from that of these that has it
move() {
  guard
  trap 'put_back; cleanup' EXIT
  # What is noted of the new place is of somebody else, maybe, unless it is where this was.
  kf_places=$path
  if [ $# -gt 0 ]; then
    _more=$(linked "$@")
    add_line "$path"
    kf_places=$_more
  fi
  set -f
  _ifs=$IFS
  IFS=$kf_line
  set -- $kf_places
  IFS=$_ifs
  set +f
  if [ -h "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; }; then fail kind "$path"; fi
  if is_moving "$path"; then
    # What was begun was not with nothing.
    if [ "$kf_places" != "$path" ]; then needed=true; fi
  elif is_owned moving "$path"; then
    fail unit "$path"
  elif is_there "$path$kf_moved"; then
    fail left "$path$kf_moved"
  fi
  if $needed; then for _place do is_mounted "$_place"; done; fi
  settle "$@"
  if [ -z "$live" ] && $needed; then
    # With everything mounted there is nothing to go on with either.
    for _place do
      if is_moving "$_place"; then disown moving "$_place"; fi
      if is_moved "$_place"; then disown moved "$_place"; fi
      if [ ! -f "$kf_owned" ]; then continue; fi
      while IFS=$kf_tab read -r _kind _one _other _whose <&5; do
        if [ "$_kind" = moved ] && [ "$_other" = "$_place" ] && [ "$_whose" = "$unit" ]; then disown moved "$_one"; fi
      done 5<"$kf_owned"
    done
    fail nothing "$path"
  fi
  if [ -n "$live" ] && [ "$live" != "$path" ]; then
    for _place in "$live" "$path"; do if is_mount "$_place"; then fail root "$_place"; fi; done
    if [ -f /proc/self/mounts ] && grep -qF -- " $live/" /proc/self/mounts; then fail mounted "$live"; fi
    if [ -d "$path" ] && [ -n "$(ls -A -- "$path")" ]; then fail exists "$path"; fi
    if ! is_moving "$path"; then
      _beside=$(beside "$path")
      if [ -n "$_beside" ]; then fail exists "${_beside%%"$kf_line"*}"; fi
    fi
    _above=${path%/*}
    while [ -n "$_above" ] && [ ! -d "$_above" ]; do _above=${_above%/*}; done
    # By whatever links lead there.
    _above=$(readlink -f -- "${_above:-/}")
    is_mounted "$_above"
    case $_above/ in "$(readlink -f -- "$live")"/*) fail inside "$_above" ;; esac
    may_enter "${_above:-/}"
    room "${_above:-/}" "$@"
    own moving "$path" "$live$kf_tab$unit"
    own moving "$live" "$path$kf_tab$unit"
    # One that was there, empty, is not ours to remove.
    if [ -d "$path" ] && ! is_owned ssh_directory "$path" && ! is_owned parent "$path"; then own adopted "$path"; else claim ssh_directory "$path" "$path"; fi
    to_disk "$kf_owned"
  fi
  for _place do if [ "$_place" != "$path" ]; then carry_beside "$_place"; fi; done
  if [ -n "$live" ] && [ "$live" != "$path" ]; then
    leave
    arrive
  fi
  for _place do if [ "$_place" != "$path" ]; then forget "$_place"; fi; done
  if is_moving "$path" && has "$path"; then note_moved "$@"; fi
  for _place do if [ "$_place" != "$path" ] && is_moving "$_place"; then disown moving "$_place"; fi; done
  if is_moving "$path"; then disown moving "$path"; fi
}
