#!/bin/bash
# Every test, in lanes beside each other: what waits for hosts or for a cluster most of the time leaves the processor to what computes.
# with.sh lanes.sh: inside of a lab, if there can be one. Each line says which lane it is of. Ends with 1 if a lane failed, when all have ended.
#
#   hosts    what is done to real hosts, one test at a time
#   cluster  what is done to a real Kubernetes, one test at a time
#   models   everything else
set -euo pipefail
cd "$(dirname "$0")/../.."

# The test binaries of the whole workspace, each with its package's folder. Built together: a package alone would be built with other features.
built=$(cargo test --workspace --locked --no-run --message-format=json 2>/dev/null |
    sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p')
binaries() { grep "$@" <<<"$built"; }
hosts_of() { binaries "/providers/ssh [^ ]*/hosts-"; }
all_of() { binaries "/tests [^ ]*/all-"; }

# Runs these binaries, of lines from the input, with these arguments.
run() {
    local folder binary code=0
    while read -r folder binary; do
        echo "running ${binary##*/}"
        (cd "$folder" && "$binary" "$@" </dev/null) || { code=1; echo "FAILED: ${binary##*/} $*"; }
    done
    return $code
}

hosts() {
    local code=0
    hosts_of | run || code=1
    all_of | run --skip karmada:: || code=1
    return $code
}
cluster() { all_of | run karmada::; }
models() {
    local code=0
    binaries -v -e "/providers/ssh [^ ]*/hosts-" -e "/tests [^ ]*/all-" | run || code=1
    cargo test --workspace --locked --doc --no-fail-fast --quiet || code=1
    return $code
}

[ -n "$(hosts_of)" ] && [ -n "$(all_of)" ] || { echo "lanes.sh: the tests are not built" >&2; exit 1; }
declare -A lanes=()
for lane in hosts cluster models; do
    (
        set +e
        [ $lane != models ] || renice -n 10 -p $BASHPID >/dev/null
        $lane
        code=$?
        echo "took $SECONDS s, exit code $code"
        exit $code
    ) > >(sed -u "s/^/$lane: /") 2>&1 &
    lanes[$lane]=$!
done
failed=0
for lane in "${!lanes[@]}"; do
    wait "${lanes[$lane]}" || { failed=1; printf '\n*** FAILED: the lane "%s"\n\n' "$lane"; }
done
exit $failed
