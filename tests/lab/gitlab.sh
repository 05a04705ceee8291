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
FOLDER=$CACHE/gitlab-ci-local-$VERSION

skip() {
    printf 'SKIPPED (no gitlab-ci-local): %s\n' "$*" >&2
    exit 77
}

for program in node npm rsync git jq; do
    command -v $program >/dev/null || skip "there is no $program"
done
mkdir -p "$CACHE"
exec 7>"$CACHE/gitlab-ci-local.lock"
flock 7
if [ ! -e "$FOLDER/complete" ]; then
    say "fetching gitlab-ci-local $VERSION from npm"
    rm -rf "$FOLDER"
    mkdir -p "$FOLDER"
    why=$(npm install --prefix "$FOLDER" --no-audit --no-fund --no-update-notifier --ignore-scripts --loglevel=error "gitlab-ci-local@$VERSION" 2>&1) ||
        skip "npm does not give it: ${why##*$'\n'}"
    why=$("$FOLDER/node_modules/.bin/gitlab-ci-local" --version 2>&1) || skip "it does not run here: ${why%%$'\n'*}"
    : >"$FOLDER/complete"
fi
exec 7>&-
if [ "${1:-install}" = install ]; then
    echo "$FOLDER"
else
    exec "$FOLDER/node_modules/.bin/gitlab-ci-local" "$@"
fi
