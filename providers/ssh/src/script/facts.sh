# Facts as NAME=VALUE lines. What a host can't say is left empty.
clock() { _now=$(date +%s.%N); case $_now in *N*) _now=${_now%%.*} ;; esac; printf '%s=%s\n' "$1" "$_now"; }
clock begin
printf 'hostname=%s\n' "$(hostname 2>/dev/null || cat /proc/sys/kernel/hostname)"
printf 'machine=%s\nkernel=%s\n' "$(uname -m)" "$(uname -r)"
( ID= VERSION_ID=; [ -f /etc/os-release ] && . /etc/os-release; printf 'os=%s\nos_version=%s\n' "$ID" "$VERSION_ID" )
if [ -d /run/systemd/system ]; then
  set -- $(systemctl --version 2>/dev/null)
  printf 'systemd_version=%s\n' "$2"
fi
if [ -f /etc/machine-id ]; then printf 'machine_id=%s\n' "$(cat /etc/machine-id)"; fi
while read -r _name _value _unit; do
  if [ "$_name" = MemTotal: ]; then printf 'memory_bytes=%s\n' "$((_value * 1024))"; break; fi
done </proc/meminfo
df -P -k /var/lib 2>/dev/null | while read -r _device _size _used _free _rest; do
  case $_free in *[!0-9]*|'') ;; *) printf 'disk_free_bytes=%s\n' "$((_free * 1024))" ;; esac
done
printf 'cpus=%s\n' "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
if command -v ip >/dev/null 2>&1; then
  _addresses= _interfaces=
  # One that is deprecated is about to go, and one with the mark ":kf" goes from host to host: neither is the host's own.
  while read -r _index _device _family _address _rest; do
    case " $_rest " in *" deprecated"* | *[a-z0-9]:kf[!a-z0-9]*) continue ;; esac
    _addresses="$_addresses ${_address%/*}"
    _interfaces="$_interfaces ${_address%/*}=$_device"
  done <<END
$(ip -o addr show 2>/dev/null)
END
else
  _addresses=$(hostname -I 2>/dev/null) _interfaces=
fi
printf 'addresses=%s\ninterfaces=%s\n' "$_addresses" "$_interfaces"
clock end
# 0A is "listens". One process for what may be many thousand lines.
printf 'listening=%s\n' "$(sed -n 's/^ *[0-9]*: \([0-9A-F]*:[0-9A-F]*\) [0-9A-F]*:[0-9A-F]* 0A .*/\1/p' /proc/net/tcp /proc/net/tcp6 2>/dev/null | tr '\n' ' ')"
