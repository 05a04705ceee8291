# An apt of its own for Debian bookworm: own sources, own lists, nothing installed, so nothing on this machine changes.
# Sourced after common.sh; the caller names a folder of its own in APT and removes it when done.

private_apt() {
    local tool=$1
    shift
    "$tool" -o Dir::State="$APT" -o Dir::State::status="$APT/status" -o Dir::Cache="$APT/cache" \
        -o Dir::Etc::SourceList="$APT/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
        -o APT::Architecture="$(dpkg --print-architecture)" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

# private_apt_update KIND...: reads the lists of packages (deb) or of sources (deb-src).
private_apt_update() {
    local kind mirror
    mirror=$(mirror)
    [ -n "$mirror" ] || die "no Debian mirror found in apt's sources; set KARMAFORM_DEBIAN_MIRROR"
    mkdir -p "$APT/lists/partial" "$APT/cache/archives/partial"
    : >"$APT/status"
    for kind in "$@"; do
        echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main"
    done >"$APT/sources.list"
    private_apt apt-get -qq update
}
