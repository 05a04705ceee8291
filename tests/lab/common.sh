# What the lab's scripts share: places, messages, and how to tell that this machine can't carry a lab.
# Sourced by bash; knows nothing of karmaform.

CACHE=${KARMAFORM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/karmaform}
LABS=/run/karmaform-lab                     # one directory per running lab
PREFIX=${KARMAFORM_LAB_PREFIX:-10.211}      # labs are PREFIX.K.0/24, K is taken at start so that two labs never clash

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The Debian mirror this machine already uses, so that the lab asks nobody new. Empty: debootstrap's own default.
mirror() {
    if [ -n "${KARMAFORM_DEBIAN_MIRROR:-}" ]; then
        echo "$KARMAFORM_DEBIAN_MIRROR"
        return
    fi
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n 's/^bookworm \(.*\/debian\)\/*$/\1/p' | head -n 1
}

# Prints why no lab can run here, and fails; silent success otherwise.
lab_possible() {
    [ "$(id -u)" = 0 ] || { echo "not root"; return 1; }
    command -v systemd-nspawn debootstrap ip ssh-keygen >/dev/null ||
        { echo "systemd-nspawn, debootstrap, ip or ssh-keygen is missing (make setup installs them)"; return 1; }
    unshare --mount --net --pid --uts --ipc --fork true 2>/dev/null || { echo "namespaces are not permitted"; return 1; }
    mkdir -p "$LABS" && unshare --mount mount -t tmpfs tmpfs "$LABS" 2>/dev/null || { echo "mounting is not permitted"; return 1; }
    unshare --net ip link add kf-probe type bridge 2>/dev/null || { echo "no network bridges here"; return 1; }
}
