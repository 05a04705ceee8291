# Functions for one package of a host with dpkg and apt; $name is set.

status_of() { dpkg-query -W -f '${db:Status-Status}\n' -- "$1" 2>/dev/null; }

is_installed() {
  if command -v dpkg-query >/dev/null 2>&1; then
    status_of "$1" | grep -qx installed
  else
    # Without dpkg a program of its name counts: whoever put it there is asked no further.
    command -v "$1" >/dev/null 2>&1 || return 1
  fi
}

# Nothing of it is on the disk, but perhaps its configuration.
is_gone() { ! status_of "$1" | grep -qvx -e not-installed -e config-files; }

# One at a time on this host: services are held back by a file that all of them would share.
packaging() {
  if command -v flock >/dev/null 2>&1 && [ -d /var/lib/dpkg ]; then
    ( flock -w 800 8 || fail locked; "$@" ) 8</var/lib/dpkg || exit
  else
    "$@"
  fi
}

# patiently COMMAND...: $said is what it prints. Of the locks of dpkg and apt only some are waited for by the tools themselves. What they make, their lists
# for one, is for everybody to read, unlike what is ours.
patiently() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
    said=$(umask 022; "$@" </dev/null 2>&1) && return
    _status=$?
    case $said in *'Could not get lock'* | *'lock was locked'* | *'lock is locked'*) sleep 10 ;; *) return "$_status" ;; esac
  done
  return "$_status"
}

apt() {
  patiently env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -q -y -o DPkg::Lock::Timeout=120 \
    -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 "$@"
}

# Debian's way to say that packages must not start what they bring: invoke-rc.d(8). One that is there already says what its owner wants.
policy=/usr/sbin/policy-rc.d
hold_services() {
  if [ -e "$policy" ] && ! grep -qs karmaform "$policy"; then return; fi
  printf '#!/bin/sh\n# karmaform is installing a package, and takes this away when it has.\nexit 101\n' | cat >"$policy" && chmod 0755 "$policy" \
    || fail write "$policy"
}
release_services() { if grep -qs karmaform "$policy"; then rm -f "$policy"; fi; }

# disable_services PACKAGE...: what they bring to be started at boot
disable_services() {
  for _package in "$@"; do
    dpkg-query -L -- "$_package" 2>/dev/null \
      | sed -n 's#^\(/usr\)\{0,1\}/lib/systemd/system/\([^/@]*\.\(service\|socket\|timer\)\)$#\2#p' \
      | while read -r _unit; do systemctl -q disable -- "$_unit" >&2 </dev/null; done
  done
}

# say_failed WORD: the last that was said, then the end
say_failed() {
  section said
  printf '%s\n' "$said" | tail -n 12
  fail package "$1"
}

# What would be done, without removing anything; it fails unless it is this package that would come.
simulate() {
  apt install --no-install-recommends --no-remove --simulate -- "$name" || return 1
  printf '%s\n' "$said" | grep -q -e "^Inst $name[: ]" -e "^Conf $name[: ]"
}

install_package() {
  if is_installed "$name"; then
    # The host may have gone down in the middle of it.
    if is_owned ssh_package "$name"; then release_services; fi
    return
  fi
  command -v apt-get >/dev/null 2>&1 || fail package none
  # apt would find out in the middle of it, and leave half of it.
  [ -w /usr ] || fail package sealed
  # So does this: then nothing is installed before it is put right.
  if [ -n "$(ls -A /var/lib/dpkg/updates 2>/dev/null)" ]; then DEBIAN_FRONTEND=noninteractive dpkg --configure -a >&2 </dev/null; fi
  # Lists of what there is may be missing, or so old that what they name is gone. One of many places that does not answer is no reason to
  # give up, so only the outcome counts.
  if ! simulate; then
    apt update
    simulate || say_failed install
  fi
  hold_services
  # What comes along is remembered before it comes, so that it goes again; and what somebody configured before is not ours to delete.
  if [ "$(status_of "$name")" = config-files ] && ! is_owned ssh_package "$name"; then own package_configuration "$name"; fi
  own ssh_package "$name"
  set -- "$name"
  for _new in $(printf '%s\n' "$said" | sed -n 's/^Inst \([^ ]*\) .*/\1/p'); do
    [ "$_new" = "$name" ] || is_installed "$_new" || { own package_dependency "$_new"; set -- "$@" "$_new"; }
  done
  _reason=
  if ! apt install --no-install-recommends --no-remove -- "$name"; then
    # If it is not for old lists, what was said first is the reason.
    _reason=$said
    if apt update && apt install --no-install-recommends --no-remove -- "$name"; then _reason=; fi
  fi
  release_services
  if [ -n "$_reason" ]; then
    said=$_reason
    forget
    say_failed install
  fi
  disable_services "$@"
}

# What is ours and not there any more is ours no more.
forget() {
  if is_gone "$name"; then disown ssh_package "$name"; disown package_configuration "$name"; fi
  for _dependency in $(dependencies); do
    if is_gone "$_dependency"; then disown package_dependency "$_dependency"; fi
  done
}

dependencies() { if [ -f "$kf_owned" ]; then sed -n "s/^package_dependency$kf_tab\\([^$kf_tab]*\\)$kf_tab.*/\\1/p" "$kf_owned"; fi; }

# A unit of this host runs a program of it: that of another control plane, or somebody's own.
is_used() {
  dpkg-query -L -- "$name" 2>/dev/null | grep -E '^(/usr)?/s?bin/.' | while read -r _program; do
    if grep -qsF -- "$_program" /etc/systemd/system/*.service; then echo yes; break; fi
  done | grep -q yes
}

# One that is still used stays, with its line: whoever deletes it last does it.
remove_package() {
  is_owned ssh_package "$name" || return 0
  release_services
  if is_used; then return 0; fi
  _action=--purge
  if is_owned package_configuration "$name"; then _action=--remove; fi
  if ! is_gone "$name" || [ "$_action$(status_of "$name")" = --purgeconfig-files ]; then
    patiently dpkg "$_action" "$name" || say_failed remove
  fi
  # What somebody has asked for meanwhile is theirs.
  for _dependency in $(dependencies); do
    if [ -n "$(apt-mark showmanual "$_dependency" 2>/dev/null)" ]; then disown package_dependency "$_dependency"; fi
  done
  set -- $(dependencies)
  # dpkg, unlike apt, never takes away what others need; it says so and goes on with the rest.
  if [ $# -gt 0 ]; then patiently dpkg --purge "$@" || :; fi
  forget
}
