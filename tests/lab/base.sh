#!/bin/bash
# Builds the root file system that every lab host boots from, once, and prints its path.
# A Debian bookworm with systemd and sshd, and three ways to log in: root, `ops` (sudo without a password), `guest` (no sudo).
set -euo pipefail
. "$(dirname "$0")/common.sh"

PACKAGES=systemd,systemd-sysv,dbus,openssh-server,iproute2,ca-certificates,procps,sudo
KEY=$( { echo "$PACKAGES"; cat "$0"; } | sha256sum | cut -c1-12)
ROOT=$CACHE/root-$KEY

mkdir -p "$CACHE"
exec 9>"$CACHE/root.lock"
flock 9
if [ -e "$ROOT/.complete" ]; then
    echo "$ROOT"
    exit 0
fi

say "building the hosts' root file system in $ROOT (once, about a minute)"
rm -rf "$ROOT" "$ROOT.part"
if ! debootstrap --variant=minbase --include="$PACKAGES" bookworm "$ROOT.part" $(mirror) >"$CACHE/debootstrap.log" 2>&1; then
    tail -n 20 "$CACHE/debootstrap.log" >&2
    die "debootstrap failed; the whole log is $CACHE/debootstrap.log"
fi

inside() { chroot "$ROOT.part" "$@"; }

# Debian's own etcd would start by itself and preallocate 130 MB a host; timers and consoles only cost boot time.
for unit in etcd.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer systemd-networkd.service systemd-resolved.service console-getty.service getty.target \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service; do
    ln -sf /dev/null "$ROOT.part/etc/systemd/system/$unit"
done
inside systemctl enable ssh.service >/dev/null 2>&1
inside useradd --create-home --shell /bin/bash ops
inside useradd --create-home --shell /bin/bash guest
echo 'ops ALL=(ALL) NOPASSWD: ALL' >"$ROOT.part/etc/sudoers.d/ops"
chmod 440 "$ROOT.part/etc/sudoers.d/ops"
# Keys and the machine id belong to a host, not to the image.
rm -f "$ROOT.part"/etc/ssh/ssh_host_* "$ROOT.part/var/lib/dbus/machine-id"
: >"$ROOT.part/etc/machine-id"
rm -rf "$ROOT.part"/var/cache/apt/archives/*.deb "$ROOT.part"/var/lib/apt/lists/*
# One line per run that asks whether systemd is up must not wait for name service.
printf 'UseDNS no\nMaxStartups 100\nMaxSessions 100\n' >"$ROOT.part/etc/ssh/sshd_config.d/lab.conf"

touch "$ROOT.part/.complete"
mv "$ROOT.part" "$ROOT"
echo "$ROOT"
