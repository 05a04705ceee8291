#!/bin/bash
# Builds the root file system that every lab host boots from, once, and prints its path.
# A Debian bookworm with systemd and sshd, and three ways to log in: root, `ops` (sudo without a password), `guest` (no sudo).
# Hosts have no way to any mirror: /srv/packages is the one place their apt knows, and has what tests install there.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"
. "$HERE/kube/apt.sh"

PACKAGES=systemd,systemd-sysv,dbus,openssh-server,iproute2,ca-certificates,curl,procps,sudo
OFFERED="haproxy keepalived" # in /srv/packages, with all they need that the root doesn't have
KEY=$(cat "$0" "$HERE/kube/apt.sh" | sha256sum | cut -c1-12)
ROOT=$CACHE/root-$KEY
BARE=$ROOT-bare # without /srv/packages, for as long as they can't be fetched
APT=$CACHE/apt/root

inside() { chroot "$ROOT.part" "$@"; }

build() {
    say "building the hosts' root file system in $ROOT (once, about a minute)"
    if ! debootstrap --variant=minbase --include="$PACKAGES" bookworm "$ROOT.part" $(mirror) >"$CACHE/debootstrap.log" 2>&1; then
        tail -n 20 "$CACHE/debootstrap.log" >&2
        die "debootstrap failed; the whole log is $CACHE/debootstrap.log"
    fi

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
    install -d "$ROOT.part/etc/systemd/system.conf.d"
    printf '[Manager]\nDefaultEnvironment=GOGC=%s\n' "$GOGC" >"$ROOT.part/etc/systemd/system.conf.d/lab.conf"
    touch "$ROOT.part/.complete"
}

# An apt repository for hosts. What they miss is told by what is installed in the new root, not on this machine.
offer_packages() {
    local package
    private_apt_update deb
    cp "$ROOT.part/var/lib/dpkg/status" "$APT/status"
    private_apt apt-get -qq install --download-only --no-install-recommends $OFFERED
    cd "$APT/cache/archives"
    for package in *%3a*.deb; do # apt would look for a colon there; without the epoch, names are those of the mirror
        [ ! -e "$package" ] || mv "$package" "${package/_*%3a/_}"
    done
    for package in *.deb; do
        dpkg-deb -f "$package"
        printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' \
            "$package" "$(stat -c %s "$package")" "$(sha256sum <"$package" | cut -d' ' -f1)"
    done >Packages
    install -D -m 644 -t "$ROOT.part/srv/packages" ./*.deb Packages
    echo 'deb [trusted=yes] file:/srv/packages ./' >"$ROOT.part/etc/apt/sources.list"
}

mkdir -p "$CACHE"
exec 9>"$CACHE/root.lock"
flock 9
if [ -e "$ROOT/.complete" ]; then
    echo "$ROOT"
    exit 0
fi

rm -rf "$ROOT" "$ROOT.part" "$APT"
trap 'rm -rf "$APT"' EXIT
if [ -e "$BARE/.complete" ]; then
    cp -a "$BARE" "$ROOT.part" # and not moved: hosts may be running on it
else
    build
fi
offer_packages >&2 & # in the background, because `set -e` has no effect inside a condition
if wait $!; then
    mv "$ROOT.part" "$ROOT"
    echo "$ROOT"
    exit 0
fi
say "SKIPPED: hosts have no packages of a load balancer ($OFFERED can't be fetched from Debian bookworm); tried again next time"
if [ -e "$BARE/.complete" ]; then
    rm -rf "$ROOT.part"
else
    mv "$ROOT.part" "$BARE"
fi
echo "$BARE"
