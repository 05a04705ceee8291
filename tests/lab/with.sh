#!/bin/bash
# Runs a command with a lab of three hosts around it: with.sh COMMAND...
# The lab's facts are in the command's environment (KARMAFORM_TEST_*); the lab ends with the command, however that ends.
# Where no lab can be, the command runs without it, and what needs one says so.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

if [ -n "${KARMAFORM_TEST_HOSTS:-}" ]; then
    say "using the hosts given: $KARMAFORM_TEST_HOSTS"
    exec "$@"
fi
export KARMAFORM_LAB=${KARMAFORM_LAB:-t$$}
if ! why=$(lab_possible); then
    printf '\n*** SKIPPED (no lab): everything that needs real hosts, because: %s\n\n' "$why" >&2
    exec "$@"
fi
trap '"$HERE/lab.sh" down' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap : PIPE # whoever reads our output may be gone, and the lab must end all the same
. "$("$HERE/lab.sh" up a b c)"
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
    trap '"$HERE/kube.sh" down "$KARMAFORM_LAB"; "$HERE/lab.sh" down' EXIT
    . "$kube"
    say "Kubernetes $KARMAFORM_TEST_KUBE_VERSION${KARMAFORM_TEST_NODES:+ with a node}"
else
    printf '\n*** SKIPPED (no Kubernetes): everything that needs a Kubernetes API, because: %s\n\n' "${why:-it did not start}" >&2
fi
"$@"
