#!/bin/bash
# Workflows of GitHub Actions without a GitHub: read, judged and evaluated by GitHub's own packages, with steps run in shells (github/run.mjs).
#
#   github.sh install            puts the packages into the cache, if they are not there; exit 77 if they can't be had, with the reason
#   github.sh WORKFLOW EVENT     runs a workflow
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

VERSION=0.3.61
FOLDER=$CACHE/github-actions-$VERSION

skip() {
    printf 'SKIPPED (no packages of GitHub Actions): %s\n' "$*" >&2
    exit 77
}

for program in node npm git; do
    command -v $program >/dev/null || skip "there is no $program"
done
mkdir -p "$CACHE"
exec 7>"$CACHE/github-actions.lock"
flock 7
if [ ! -e "$FOLDER/complete" ]; then
    say "fetching GitHub's packages for workflows $VERSION from npm"
    rm -rf "$FOLDER"
    mkdir -p "$FOLDER"
    why=$(npm install --prefix "$FOLDER" --no-audit --no-fund --no-update-notifier --ignore-scripts --loglevel=error \
        "@actions/workflow-parser@$VERSION" "@actions/expressions@$VERSION" "@actions/languageservice@$VERSION" 2>&1) ||
        skip "npm does not give them: ${why##*$'\n'}"
    : >"$FOLDER/complete"
fi
exec 7>&-
if [ "${1:-install}" = install ]; then
    echo "$FOLDER"
else
    exec node "$HERE/github/run.mjs" "$FOLDER" "$@"
fi
