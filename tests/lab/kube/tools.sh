#!/bin/bash
# Unpacks what a node needs besides Kubernetes itself (containerd, runc, CNI plugins, iptables, conntrack, dnsmasq, busybox, and what
# they need) from Debian bookworm's packages, once, and prints the path of the folder. Nothing is installed; a node mounts it over its /usr.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/apt.sh"

PACKAGES="containerd runc libseccomp2 containernetworking-plugins busybox-static conntrack
    iptables libip4tc2 libip6tc2 libxtables12 libmnl0 libnfnetlink0 libnetfilter-conntrack3 libnftnl11
    dnsmasq-base libdbus-1-3 libgmp10 libhogweed6 libidn2-0 libjansson4 libnettle8 libnftables1 libunistring2"
FOLDER=$CACHE/kube-tools-$( { echo "$PACKAGES"; cat "$0"; } | sha256sum | cut -c1-12)
APT=$CACHE/apt/kube-tools

mkdir -p "$CACHE"
exec 9>"$CACHE/kube-tools.lock"
flock 9
if [ -e "$FOLDER" ]; then
    echo "$FOLDER"
    exit 0
fi
say "fetching containerd and what else a Kubernetes node needs from Debian bookworm"
rm -rf "$CACHE"/kube-tools.?????? # what an interrupted run left
WORK=$(mktemp -d "$CACHE/kube-tools.XXXXXX")
trap 'rm -rf "$WORK" "$APT"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
private_apt_update deb
mkdir "$WORK/packages" "$WORK/root" "$WORK/root/usr"
(cd "$WORK/packages" && private_apt apt-get -qq download $PACKAGES)
for package in "$WORK"/packages/*.deb; do
    rm -rf "$WORK/one"
    dpkg-deb -x "$package" "$WORK/one"
    for folder in bin sbin lib lib64; do # packages may still say /sbin for what is in /usr/sbin
        [ ! -d "$WORK/one/$folder" ] || { mkdir -p "$WORK/root/usr/$folder" && cp -a "$WORK/one/$folder/." "$WORK/root/usr/$folder/"; }
    done
    cp -a "$WORK/one/usr/." "$WORK/root/usr/"
done
rm -rf "$WORK/root/usr/share"
mv "$WORK/root" "$FOLDER"
echo "$FOLDER"
