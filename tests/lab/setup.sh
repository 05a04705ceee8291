#!/bin/bash
# Installs the Debian packages that building and testing need, if they are missing. A Rust toolchain is assumed.
set -euo pipefail

BUILD="gcc g++ make perl pkg-config protobuf-compiler libprotobuf-dev ca-certificates"
LAB="debootstrap debian-archive-keyring systemd-container dbus iproute2 openssh-client procps util-linux python3-venv curl jq rsync"
REGISTRY="docker-registry" # run by tests, on ports of their own
EXTRA="time chromium chromium-driver" # whole-process measurements of `make bench`; reports are looked at in a browser

missing() {
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# Debian would start the registry's service as soon as it is there, and whenever this machine boots. Nobody here wants it.
install_registry() {
    local policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\ncase $1 in docker-registry*) exit 101 ;; esac\n' >$policy
        chmod 755 $policy
    fi
    apt-get -qq install --yes --no-install-recommends $REGISTRY >/dev/null
    update-rc.d $REGISTRY disable
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
registry=$(missing $REGISTRY)
[ -n "$wanted$registry" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    needed=$(missing $BUILD)
    echo "setup: not root; these packages are missing:" $wanted $registry >&2
    [ -z "$needed" ] || exit 1
    exit 0
fi
echo "setup: installing" $wanted $registry
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
[ -z "$wanted" ] || apt-get -qq install --yes --no-install-recommends $wanted >/dev/null
[ -z "$registry" ] || install_registry
