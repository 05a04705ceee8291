#!/bin/bash
# Prints the variables of examples/etcd-on-hosts for the lab that the environment describes: kfvars.sh [VERSION]
set -euo pipefail
: "${KARMAFORM_TEST_HOSTS:?}" "${KARMAFORM_TEST_KEY:?}" "${KARMAFORM_TEST_KNOWN_HOSTS:?}" "${KARMAFORM_TEST_ETCD:?}"

chosen=
for entry in ${KARMAFORM_TEST_ETCD//,/ }; do # the highest version stands last
    [ -n "${1:-}" ] && [ "${entry%%=*}" != "$1" ] || chosen=$entry
done
[ -n "$chosen" ] || { echo "no etcd $1 in $KARMAFORM_TEST_ETCD" >&2; exit 1; }

echo "hosts = {"
for entry in ${KARMAFORM_TEST_HOSTS//,/ }; do
    echo "  ${entry%%=*} = \"${entry#*=}\""
done
cat <<VARS
}
private_key_file = "$KARMAFORM_TEST_KEY"
known_hosts_file = "$KARMAFORM_TEST_KNOWN_HOSTS"
etcd_version     = "${chosen%%=*}"
etcd_source      = "${chosen#*=}"
VARS
