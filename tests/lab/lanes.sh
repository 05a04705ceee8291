#!/bin/bash
# Every test, in lanes beside each other: what waits for hosts or for a cluster most of the time leaves the processor to what computes.
# with.sh lanes.sh: inside of a lab, if there can be one. Each line says which lane it is of, and when. Ends with 1 if a lane failed, when all have ended.
#
#   hosts    what is done to real hosts; all of them are one test's at a time, or each is one's that needs no other
#   cluster  what is done to a real Kubernetes: some tests look at all that is in it, and at all that it is asked
#   second   what takes longest of both, in a second lab: so that no lane takes much longer than another
#   models   everything else
#
# lanes.sh in_lab: what is done in a second lab, in the one that there is.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The test binaries of the whole workspace, each with its package's folder. Built together: a package alone would be built with other features.
export KARMAFORM_BUILT_TESTS=${KARMAFORM_BUILT_TESTS:-$(cargo test --workspace --locked --no-run --message-format=json 2>/dev/null |
    sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p')}
hosts_of='/providers/ssh [^ ]*/hosts-'
clusters_of='/providers/kubernetes [^ ]*/clusters-|/state-backends/kubernetes-state [^ ]*/kubernetes-'
all_of='/tests [^ ]*/all-'
binaries() { grep -E "$@" <<<"$KARMAFORM_BUILT_TESTS"; }
# Tests in the binary of all, by what their names hold: that ask a real Kubernetes, and those that are for the second lab.
on_cluster=(karmada:: kubernetes_state:: kubernetes_proxy:: workspaces:: places:: conformance::)
in_second=(members:: karmada::etcd_restore:: karmada::hybrid:: karmada_on_hosts::ipv6:: karmada_on_hosts::kill:: karmada_on_hosts::life::)

# Runs these binaries, of lines from the input, with these arguments.
run() {
    local folder binary code=0
    while read -r folder binary; do
        echo "running ${binary##*/}"
        (cd "$folder" && "$binary" "$@" </dev/null) || { code=1; echo "FAILED: ${binary##*/} $*"; }
    done
    return $code
}

# Each line of the input, with the lane and the seconds since the start: what takes long is seen in the log. Where a test failed, and with which
# words, is kept.
told() {
    local line rest=0
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s %4d s: %s\n' "$1" "$SECONDS" "$line"
        case $line in *"panicked at "*) rest=4 ;; esac
        [ $rest = 0 ] || { rest=$((rest - 1)); printf '%s %4d s: %.400s\n' "$1" "$SECONDS" "$line" >>"$failures"; }
    done
}

skipping() { printf -- '--skip %s ' "$@"; }

hosts() {
    local code=0
    binaries "$hosts_of" | run || code=1
    binaries "$all_of" | run $(skipping "${on_cluster[@]}" "${in_second[@]}") || code=1
    return $code
}
cluster() {
    local code=0
    binaries "$clusters_of" | run || code=1
    binaries "$all_of" | run "${on_cluster[@]}" $(skipping "${in_second[@]}") || code=1
    return $code
}
# Where there is no cluster, or the hosts are somebody's, there is no second lab either: what it is for says what it misses, or takes turns in the
# lab that there is.
second() { if [ -n "${KARMAFORM_TEST_KUBE:-}" ]; then second_lab; else in_lab; fi; }
in_lab() { binaries "$all_of" | run "${in_second[@]}"; }
# With hosts and a cluster of its own; the S3 servers are the first one's.
second_lab() (
    for name in HOSTS KEY KNOWN_HOSTS LAB BLACKHOLE ETCD KUBE KUBECONFIG KUBECTL KUBE_AUDIT KUBE_NAME KUBE_VERSION NODES; do
        unset "KARMAFORM_TEST_$name"
    done
    KARMAFORM_LAB=${KARMAFORM_LAB:-t$$}x tests/lab/with.sh tests/lab/lanes.sh in_lab
)
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
if [ $# != 0 ]; then
    "$1"
    exit
fi
declare -A lanes=()
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT
for lane in hosts cluster second models; do
    (
        set +e
        [ $lane != models ] || renice -n 19 -p $BASHPID >/dev/null
        $lane
        code=$?
        echo "took $SECONDS s, exit code $code"
        exit $code
    ) 2>&1 | told "$lane" &
    lanes[$lane]=$!
done
failed=0
for lane in "${!lanes[@]}"; do
    wait "${lanes[$lane]}" || { failed=1; printf '\n*** FAILED: the lane "%s"\n\n' "$lane"; }
done
# Thousands of lines may lie between a failure and the end.
[ $failed = 0 ] || cat "$failures"
exit $failed
