#!/bin/bash
# Installs the Debian packages that building and testing need, if they are missing. A Rust toolchain is assumed.
set -euo pipefail

BUILD="gcc g++ make perl pkg-config protobuf-compiler libprotobuf-dev ca-certificates"
LAB="debootstrap debian-archive-keyring systemd-container dbus iproute2 openssh-client procps util-linux python3-venv curl"
EXTRA="time" # whole-process measurements of `make bench`

missing() {
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

if ! command -v cargo >/dev/null; then
    echo "setup: no cargo on PATH; install a Rust toolchain (the version is rust-version in Cargo.toml, or newer)" >&2
    exit 1
fi
if ! command -v dpkg-query >/dev/null; then
    echo "setup: this is no Debian; make sure that these are there by other means: $BUILD" >&2
    exit 0
fi
wanted=$(missing $BUILD $LAB $EXTRA)
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    needed=$(missing $BUILD)
    echo "setup: not root; these packages are missing:" $wanted >&2
    [ -z "$needed" ] || exit 1
    exit 0
fi
echo "setup: installing" $wanted
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends $wanted >/dev/null
