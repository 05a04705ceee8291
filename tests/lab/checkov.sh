#!/bin/bash
# A policy checker that many pipelines have between plan and apply, for plans as JSON:
#
#   checkov.sh install        puts it into the cache, if it is not there; prints its path. Exit 77 if it can't be had, with the reason
#   checkov.sh ARGUMENTS...   runs it. Without a network: it would ask its maker's servers
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

skip() {
    printf 'SKIPPED (no checkov): %s\n' "$*" >&2
    exit 77
}

unshare --net true 2>/dev/null || skip "network namespaces are not permitted"
bin=$(from_pypi checkov "checkov==3.3.30")
if [ "${1:-install}" = install ]; then
    echo "$bin/checkov"
else
    exec unshare --net "$bin/checkov" "$@"
fi
