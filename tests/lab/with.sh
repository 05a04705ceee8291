#!/bin/bash
# Runs a command with a lab of three hosts, a Kubernetes and S3 servers around it: with.sh COMMAND...
# The lab's facts are in the command's environment (KARMAFORM_TEST_*); the lab ends with the command, however that ends.
# Where no lab can be, the command runs without it, and what needs one says so.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

export KARMAFORM_LAB=${KARMAFORM_LAB:-t$$}
STARTED=() S3=()
finish() {
    local what
    trap : INT TERM HUP # who asks twice would leave hosts behind that run on
    wait # what is still being started would outlive us
    for what in "${STARTED[@]}"; do
        case $what in
            kube) "$HERE/kube.sh" down "$KARMAFORM_LAB" || : ;;
            lab) "$HERE/lab.sh" down || : ;;
            s3) "$HERE/s3.sh" down "$KARMAFORM_LAB" || : ;;
        esac
    done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap : PIPE # whoever reads our output may be gone, and the lab must end all the same

# S3 servers need no more than PyPI, once; they start while the hosts boot.
for server in seaweedfs moto; do
    given=KARMAFORM_TEST_S3_${server^^}
    [ -z "${!given:-}" ] || continue
    "$HERE/s3.sh" up "$server" "$KARMAFORM_LAB" >/dev/null &
    S3+=("$server:$!")
    STARTED=(s3)
done
"$HERE/checkov.sh" install >/dev/null &
CHECKOV=$!
"$HERE/readers.sh" install >/dev/null &
READERS=$!
"$HERE/gitlab.sh" install >/dev/null &
GITLAB=$!
"$HERE/github.sh" install >/dev/null &
GITHUB=$!
"$HERE/manifests.sh" install >/dev/null &
MANIFESTS=$!
await_s3() {
    local one env
    ! wait "$CHECKOV" || export KARMAFORM_TEST_CHECKOV=$HERE/checkov.sh
    ! wait "$READERS" || export KARMAFORM_TEST_READERS=$HERE/readers.sh
    ! wait "$GITLAB" || export KARMAFORM_TEST_GITLAB=$HERE/gitlab.sh
    ! wait "$GITHUB" || export KARMAFORM_TEST_GITHUB=$HERE/github.sh
    ! wait "$MANIFESTS" || export KARMAFORM_TEST_MANIFESTS=$HERE/manifests.sh
    for one in "${S3[@]}"; do
        if wait "${one#*:}" && env=$("$HERE/s3.sh" env "${one%:*}" "$KARMAFORM_LAB"); then
            . "$env"
        else
            printf '\n*** SKIPPED (no %s): everything that needs this S3 server; why is said above\n\n' "${one%:*}" >&2
        fi
    done
}

if [ -n "${KARMAFORM_TEST_HOSTS:-}" ]; then
    say "using the hosts given: $KARMAFORM_TEST_HOSTS"
    await_s3
    "$@"
    exit
fi
if ! why=$(lab_possible); then
    printf '\n*** SKIPPED (no lab): everything that needs real hosts, because: %s\n\n' "$why" >&2
    await_s3
    "$@"
    exit
fi
STARTED=(lab "${STARTED[@]}")
. "$("$HERE/lab.sh" up a b c)"
await_s3
archives=$("$HERE/etcd.sh") || archives=
export KARMAFORM_TEST_ETCD=
while read -r version path; do
    [ -z "$version" ] || KARMAFORM_TEST_ETCD=$KARMAFORM_TEST_ETCD${KARMAFORM_TEST_ETCD:+,}$version=$path
done <<<"$archives"
say "hosts $KARMAFORM_TEST_HOSTS; etcd $KARMAFORM_TEST_ETCD"
# Without a Kubernetes the rest is tested all the same. Its first build takes minutes. Where there can be a node there is one: what needs an
# API alone works on it too.
node=--node
if ! why=$("$HERE/kube.sh" check --node 2>&1); then
    node=
    printf '\n*** SKIPPED (no node): everything that needs pods, because: %s\n\n' "$why" >&2
fi
if why=$("$HERE/kube.sh" check $node 2>&1) && kube=$("$HERE/kube.sh" up "$KARMAFORM_LAB" $node); then
    STARTED=(kube "${STARTED[@]}")
    . "$kube"
    say "Kubernetes $KARMAFORM_TEST_KUBE_VERSION${KARMAFORM_TEST_NODES:+ with a node}"
else
    printf '\n*** SKIPPED (no Kubernetes): everything that needs a Kubernetes API, because: %s\n\n' "${why:-it did not start}" >&2
fi
"$@"
