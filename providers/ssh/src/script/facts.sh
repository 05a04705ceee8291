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
  case $_name in
    MemTotal:) printf 'memory_bytes=%s\n' "$((_value * 1024))" ;;
    SwapTotal:) printf 'swap_bytes=%s\n' "$((_value * 1024))" ;;
  esac
done </proc/meminfo
df -P -k /var/lib 2>/dev/null | while read -r _device _size _used _free _rest; do
  case $_free in *[!0-9]*|'') ;; *) printf 'disk_free_bytes=%s\n' "$((_free * 1024))" ;; esac
done
printf 'disks='
# Each local file system by its mount point; and where these directories are, which may be links to elsewhere.
df -P -k -l 2>/dev/null | while read -r _device _size _used _free _share _mount; do
  case $_device in tmpfs | devtmpfs | udev | none | shm) continue ;; esac
  case $_mount in *" "* | */kubelet/* | */containers/* | */containerd/* | */docker/*) continue ;; esac
  case $_free in *[!0-9]* | '') ;; *) printf ' %s=%s' "$_mount" "$((_free * 1024))" ;; esac
done
set --
for _path in / /etc /opt /usr/local /var /var/lib; do if [ -d "$_path" ]; then set -- "$@" "$_path"; fi; done
df -P -k -- "$@" 2>/dev/null | {
  read -r _header
  while read -r _device _size _used _free _rest && [ $# -gt 0 ]; do
    case $_free in *[!0-9]* | '') ;; *) printf ' %s=%s' "$1" "$((_free * 1024))" ;; esac
    shift
  done
}
printf '\n'
for _name in instances watches; do
  # Not with "read": a shell reads byte by byte, and the kernel gives the first one only.
  printf 'inotify_%s=%s\n' "$_name" "$(cat "/proc/sys/fs/inotify/max_user_$_name" 2>/dev/null)"
done

# keeps_clock: somebody keeps the clock in time. timesyncd says so by a file, chronyd when it is asked; of others the kernel knows.
keeps_clock() {
  if [ -e /run/systemd/timesync/synchronized ]; then echo true; return; fi
  case $(chronyc -n tracking 2>/dev/null) in *"Leap status"*": Normal"*) echo true; return ;; esac
  case $(timeout 5 timedatectl show -p NTPSynchronized --value 2>/dev/null) in yes) echo true ;; no) echo false ;; esac
}
printf 'clock_kept=%s\n' "$(keeps_clock)"
if is_rewritten /etc/hosts; then echo hosts_rewritten=true; fi

# firewall: what keeps others out unless they are let in
firewall() {
  if systemctl is-active --quiet firewalld 2>/dev/null; then echo firewalld; return; fi
  if grep -qs '^ENABLED=yes' /etc/ufw/ufw.conf; then echo ufw; return; fi
  if nft list chains 2>/dev/null | grep -q 'hook input .*policy drop'; then echo nftables; return; fi
  if iptables -S INPUT 2>/dev/null | grep -Eq '^-P INPUT DROP|^-A INPUT -j (DROP|REJECT)'; then echo iptables; fi
}
printf 'firewall=%s\n' "$(firewall)"
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
