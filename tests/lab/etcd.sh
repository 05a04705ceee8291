#!/bin/bash
# Packs Debian's etcd like a release archive, etcd-vX.Y.Z-linux-ARCH.tar.gz with etcd, etcdctl (and etcdutl) in one directory.
#
#   etcd.sh              prints "VERSION PATH" lines, lowest version first; a suite that can't be reached is named and left out
#
# The packages come through an apt with its own lists and sources, so nothing on this machine changes. The archives are cached.
set -euo pipefail
. "$(dirname "$0")/common.sh"

ARCH=$(dpkg --print-architecture)
APT=$CACHE/apt
MIRROR=$(mirror)
[ -n "$MIRROR" ] || die "no Debian mirror found in apt's sources; set KARMAFORM_DEBIAN_MIRROR"

mkdir -p "$CACHE"
exec 9>"$CACHE/etcd.lock"
flock 9
rm -rf "$CACHE"/etcd.?????? # what an interrupted run left

private_apt() {
    local suite=$1 tool=$2
    shift 2
    "$tool" -o Dir::State="$APT/$suite" -o Dir::State::status="$APT/$suite/status" -o Dir::Cache="$APT/$suite/cache" \
        -o Dir::Etc::SourceList="$APT/$suite/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null \
        -o Dir::Etc::PreferencesParts=/dev/null -o APT::Architecture="$ARCH" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

pack() {
    local suite=$1 known=$CACHE/etcd-$1.version work version name
    if [ -e "$known" ] && [ -e "$CACHE/etcd-v$(cat "$known")-linux-$ARCH.tar.gz" ]; then
        return
    fi
    say "fetching etcd of Debian $suite"
    mkdir -p "$APT/$suite/lists/partial" "$APT/$suite/cache/archives/partial"
    : >"$APT/$suite/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $MIRROR $suite main" >"$APT/$suite/sources.list"
    private_apt "$suite" apt-get -qq update
    work=$(mktemp -d "$CACHE/etcd.XXXXXX")
    (cd "$work" && private_apt "$suite" apt-get -qq download etcd-server etcd-client)
    mkdir "$work/all"
    for package in "$work"/*.deb; do
        dpkg -x "$package" "$work/all"
    done
    version=$("$work/all/usr/bin/etcd" --version | sed -n 's/^etcd Version: //p')
    name=etcd-v$version-linux-$ARCH
    mkdir "$work/$name"
    cp "$work"/all/usr/bin/etcd* "$work/$name/"
    tar -C "$work" --owner=0 --group=0 -czf "$CACHE/$name.tar.gz.part" "$name"
    mv "$CACHE/$name.tar.gz.part" "$CACHE/$name.tar.gz"
    echo "$version" >"$known"
    rm -rf "$work"
}

for suite in bookworm trixie; do
    pack "$suite" >&2 & # in the background, because `set -e` has no effect inside a condition
    if wait $!; then
        version=$(cat "$CACHE/etcd-$suite.version")
        echo "$version $CACHE/etcd-v$version-linux-$ARCH.tar.gz"
    else
        say "SKIPPED: Debian $suite's etcd can't be had here"
    fi
done
