#!/bin/bash
# Every test, in lanes beside each other: what waits for hosts or for a cluster most of the time leaves the processor to what computes.
# with.sh lanes.sh: inside of a lab, if there can be one. Each line says which lane it is of, and when. Ends with 1 if a lane failed, when all have ended.
#
#   hosts    what is done to real hosts, one test at a time
#   cluster  what is done to a real Kubernetes: some tests look at all that is in it, and at all that it is asked
#   models   everything else
set -euo pipefail
cd "$(dirname "$0")/../.."

# The test binaries of the whole workspace, each with its package's folder. Built together: a package alone would be built with other features.
built=$(cargo test --workspace --locked --no-run --message-format=json 2>/dev/null |
    sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p')
hosts_of='/providers/ssh [^ ]*/hosts-'
clusters_of='/providers/kubernetes [^ ]*/clusters-|/state-backends/kubernetes-state [^ ]*/kubernetes-'
all_of='/tests [^ ]*/all-'
binaries() { grep -E "$@" <<<"$built"; }
# Tests in the binary of all, by what their names hold, that ask a real Kubernetes.
on_cluster=(karmada:: members:: kubernetes_state:: kubernetes_proxy:: workspaces:: places:: conformance::)

# Runs these binaries, of lines from the input, with these arguments.
run() {
    local folder binary code=0
    while read -r folder binary; do
        echo "running ${binary##*/}"
        (cd "$folder" && "$binary" "$@" </dev/null) || { code=1; echo "FAILED: ${binary##*/} $*"; }
    done
    return $code
}

# Each line of the input, with the lane and the seconds since the start: what takes long is seen in the log.
told() {
    local line
    while IFS= read -r line || [ -n "$line" ]; do printf '%s %4d s: %s\n' "$1" "$SECONDS" "$line"; done
}

hosts() {
    local code=0
    binaries "$hosts_of" | run || code=1
    binaries "$all_of" | run $(printf -- '--skip %s ' "${on_cluster[@]}") || code=1
    return $code
}
cluster() {
    local code=0
    binaries "$clusters_of" | run || code=1
    binaries "$all_of" | run "${on_cluster[@]}" || code=1
    return $code
}
models() {
    local code=0
    binaries -v "$hosts_of|$clusters_of|$all_of" | run || code=1
    cargo test --workspace --locked --doc --no-fail-fast --quiet || code=1
    return $code
}

# A lane that found nothing to run would pass.
for some in "$hosts_of" "$clusters_of" "$all_of"; do
    binaries -q "$some" || { echo "lanes.sh: no test binary is like $some" >&2; exit 1; }
done
declare -A lanes=()
for lane in hosts cluster models; do
    (
        set +e
        [ $lane != models ] || renice -n 19 -p $BASHPID >/dev/null
        $lane
        code=$?
        echo "took $SECONDS s, exit code $code"
        exit $code
    ) > >(told "$lane") 2>&1 &
    lanes[$lane]=$!
done
failed=0
for lane in "${!lanes[@]}"; do
    wait "${lanes[$lane]}" || { failed=1; printf '\n*** FAILED: the lane "%s"\n\n' "$lane"; }
done
exit $failed
