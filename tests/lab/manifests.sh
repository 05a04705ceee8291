#!/bin/bash
# Files of Tekton and Argo Workflows, judged by programs of others: what each kind may have, and whether what is named is there.
#
#   manifests.sh install           puts them into the cache, if they are not there; exit 77 if they can't be had, with the reason
#   manifests.sh tekton|argo FILE  judges a file: exit 1, and why, if anything is wrong with it
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

LINT=1.1.0

skip() {
    printf 'SKIPPED (no judges of manifests): %s\n' "$*" >&2
    exit 77
}

lint() { from_npm "tekton-lint-$LINT" "" "@ibm/tekton-lint@$LINT"; }
argo() { from_pypi hera "hera-workflows==7.1.0 pyyaml==6.0.3"; }

case ${1:-install} in
    install) lint >/dev/null && argo >/dev/null ;;
    tekton)
        folder=$(lint)
        exec "$folder/node_modules/.bin/tekton-lint" --max-warnings 0 "$2"
        ;;
    argo) exec "$(argo)/python3" "$HERE/argo.py" "$2" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
