#!/bin/bash
# Fetches and builds what a lab is made of, all at the same time, while a command runs: prepare.sh COMMAND...
# What comes from elsewhere is waited for beside what computes. Ends as the command does; what can't be had here is no failure, for whoever
# needs it says so later.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

PARTS=() # process groups
finish() {
    local part
    for part in "${PARTS[@]}"; do kill -- "-$part" 2>/dev/null || :; done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# part SCRIPT ARGUMENTS...: in the background, in a process group of its own.
part() {
    set -m
    (
        if "$HERE/$1" "${@:2}" >/dev/null; then say "$* is there after $SECONDS s"; else say "$* can't be had, found out after $SECONDS s"; fi
    ) </dev/null &
    PARTS+=($!)
    set +m
}

part readers.sh install
part checkov.sh install
part gitlab.sh install
part github.sh install
part manifests.sh install
part s3.sh install seaweedfs
part s3.sh install moto
if lab_possible >/dev/null; then
    part kubernetes-build.sh
    part kube/tools.sh
    part base.sh
    part etcd.sh
fi
"$@"
wait "${PARTS[@]}" || :
PARTS=()
