#!/bin/bash
# GitLab's pipelines without a GitLab: a program of others that reads a .gitlab-ci.yml as GitLab does, and runs its jobs in shells.
#
#   gitlab.sh install        puts it into the cache, if it is not there; exit 77 if it can't be had, with the reason
#   gitlab.sh ARGUMENTS...   runs it
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

# A newer one wants a newer Node than Debian has.
VERSION=4.61.1

skip() {
    printf 'SKIPPED (no gitlab-ci-local): %s\n' "$*" >&2
    exit 77
}

for program in rsync git jq; do
    command -v $program >/dev/null || skip "there is no $program"
done
FOLDER=$(from_npm "gitlab-ci-local-$VERSION" gitlab-ci-local "gitlab-ci-local@$VERSION")
if [ "${1:-install}" = install ]; then
    echo "$FOLDER"
else
    exec "$FOLDER/node_modules/.bin/gitlab-ci-local" "$@"
fi
