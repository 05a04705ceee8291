#!/bin/bash
# Workflows of GitHub Actions without a GitHub: read, judged and evaluated by GitHub's own packages, with steps run in shells (github/run.mjs).
#
#   github.sh install            puts the packages into the cache, if they are not there; exit 77 if they can't be had, with the reason
#   github.sh WORKFLOW EVENT     runs a workflow
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

VERSION=0.3.61

skip() {
    printf 'SKIPPED (no packages of GitHub Actions): %s\n' "$*" >&2
    exit 77
}

command -v git >/dev/null || skip "there is no git"
FOLDER=$(from_npm "github-actions-$VERSION" "" \
    "@actions/workflow-parser@$VERSION" "@actions/expressions@$VERSION" "@actions/languageservice@$VERSION")
if [ "${1:-install}" = install ]; then
    echo "$FOLDER"
else
    exec node "$HERE/github/run.mjs" "$FOLDER" "$@"
fi
