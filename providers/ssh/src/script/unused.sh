# Who on the network has an address: $address, asked for through $device, which the addresses in "$@" may rightly have. Nothing is written: a packet goes
# there, and the kernel finds out for itself whose it is, anew where it may be told to forget what it has found before.

# ask ADDRESS: sends a packet; true only if there is an answer
ask() {
  if command -v ping >/dev/null 2>&1; then
    ping -c 1 -W 1 -I "$device" "$1" >/dev/null 2>&1 </dev/null
    return
  fi
  case $1 in *:*) _url=http://[$1]:9/ ;; *) _url=http://$1:9/ ;; esac
  # What it says would be the same of nobody and of a firewall.
  curl -q -s -o /dev/null --noproxy '*' --connect-timeout 1 --max-time 1 --interface "$device" "$_url" >/dev/null 2>&1 </dev/null
  return 1
}

# hardware ADDRESS: of whom the kernel takes it to be
hardware() { ip neigh show to "$1" dev "$device" 2>/dev/null | sed -n 's/.*lladdr \([^ ]*\).*/\1/p' | head -n 1; }

# is_state ADDRESS STATE...: the kernel's word on it is one of these
is_state() {
  _seen=" $(ip neigh show to "$1" dev "$device" 2>/dev/null | tr '\n' ' ') "
  shift
  for _state do case $_seen in *" $_state "*) return 0 ;; esac; done
  return 1
}

# who: in a word
who() {
  if ! command -v ip >/dev/null 2>&1 || ! { command -v ping || command -v curl; } >/dev/null 2>&1; then echo unknown; return; fi
  case $(ip -o addr show 2>/dev/null) in *" $address/"*) echo own; return ;; esac
  # For up to 45 seconds the kernel goes by what it knows without asking, and whoever had the address may have left it since. What an administrator has
  # written (PERMANENT) stays.
  if is_state "$address" REACHABLE STALE DELAY PROBE; then ip neigh del "$address" dev "$device" >/dev/null 2>&1; fi
  _answers=
  for _try in 1 2 3; do
    if ask "$address"; then _answers=1; break; fi
  done
  # Where that may not be forgotten, whoever had it before is asked by the kernel whether it still has.
  _tries=10
  while [ -z "$_answers" ] && [ "$_tries" -gt 0 ] && is_state "$address" STALE DELAY PROBE; do
    sleep 1
    _tries=$((_tries - 1))
  done
  if [ -z "$_answers" ] && ! is_state "$address" REACHABLE; then echo nobody; return; fi
  _hardware=$(hardware "$address")
  if [ -n "$_hardware" ]; then
    for _other do
      ask "$_other"
      if [ "$(hardware "$_other")" = "$_hardware" ]; then echo "ours $_other"; return; fi
    done
  fi
  # A router may answer in the place of everybody.
  set -- $({ ip route show default dev "$device"; ip -6 route show default dev "$device"; } 2>/dev/null | sed -n 's/.*via \([^ ]*\).*/\1/p')
  for _router do
    if [ -z "$_answers" ] && [ "$(hardware "$_router")" = "$_hardware" ]; then echo router; return; fi
  done
  echo "taken $_hardware"
}
section unused
who "$@"
