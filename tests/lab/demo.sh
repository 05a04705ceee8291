#!/bin/bash
# The whole story on three real hosts, each command shown with what it prints: demo.sh BINARY
#   plan, apply, health, no changes; three people break three hosts; plan, repair; a changed setting rolls; destroy; the hosts as before.
# What is booted and written here is gone afterwards, however it ends.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"
BINARY=$(realpath "${1:?the karmaform binary}")
export KARMAFORM_LAB=${KARMAFORM_LAB:-demo$$}
LAB=$HERE/lab.sh
WORK=
START=$SECONDS

why=$(lab_possible) || die "the demo needs real hosts, and this machine can't carry them: $why"
finish() {
    "$LAB" down
    [ -z "$WORK" ] || rm -rf "$WORK"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap : PIPE # whoever reads our output may be gone, and the lab must end all the same

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' blue=$'\e[34;1m' plain=$'\e[0m'; else bold='' blue='' plain=''; fi
part() { printf '\n%s=== %s%s\n' "$blue" "$*" "$plain"; }
# Shows a command as typed and runs it.
run() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
# The same on a host, from below ssh.
on() { local host=$1; shift; printf '\n%s%s# %s%s\n' "$bold" "$host" "$*" "$plain"; "$LAB" exec "$host" sh -c "$*"; }
karmaform() { "$BINARY" "$@"; }

part "Three hosts: systemd machines with sshd and addresses of their own"
. "$("$LAB" up a b c)"
archives=$("$HERE/etcd.sh")
export KARMAFORM_TEST_ETCD=$(awk '{ printf "%s%s=%s", sep, $1, $2; sep = "," }' <<<"$archives")
archive=${KARMAFORM_TEST_ETCD##*=}
WORK=$(mktemp -d)
for host in a b c; do "$LAB" files $host >"$WORK/before.$host"; done
mkdir "$WORK/etcd"
cp "$HERE"/../../examples/etcd-on-hosts/*.kf.hcl "$WORK/etcd/"
"$HERE/kfvars.sh" >"$WORK/etcd/karmaform.kfvars.hcl"
cd "$WORK/etcd"
run cat main.kf.hcl
run cat karmaform.kfvars.hcl

part "From nothing"
run karmaform plan -out=next.kfplan
run karmaform apply next.kfplan
run karmaform status
run karmaform plan

part "etcdctl with the outputs"
mkdir ../bin
tar -xzf "$archive" --strip-components=1 -C ../bin
etcdctl() {
    ETCDCTL_API=3 ../bin/etcdctl --endpoints="$(karmaform output -json endpoints | tr -d '[]" \n')" \
        --cacert=ca.crt --cert=client.crt --key=client.key "$@"
}
karmaform output -raw ca_certificate >ca.crt
karmaform output -raw client_certificate >client.crt
(umask 077 && karmaform output -raw client_key >client.key)
run etcdctl put greeting "hello from karmaform"
run etcdctl member list

part "Three people do three things on three hosts"
on a "sed -i 's/^LimitNOFILE=.*/LimitNOFILE=1024/' /etc/systemd/system/etcd-main.service"
on b "rm /etc/etcd/main/pki/server.crt"
on c "systemctl stop etcd-main.service"
run karmaform plan -out=next.kfplan
run karmaform apply next.kfplan
run karmaform status
run karmaform plan

part "A changed setting rolls through the cluster, the leader last"
printf '\n%s$ echo %s >settings.auto.kfvars.hcl%s\n' "$bold" "'settings = { quota-backend-bytes = 4294967296 }'" "$plain"
echo 'settings = { quota-backend-bytes = 4294967296 }' >settings.auto.kfvars.hcl
run karmaform plan -out=next.kfplan
run karmaform apply next.kfplan
run karmaform status
run etcdctl get greeting

part "And away again"
run karmaform plan -destroy -out=next.kfplan
run karmaform apply next.kfplan
for host in a b c; do
    "$LAB" files $host >"$WORK/after.$host"
    if diff "$WORK/before.$host" "$WORK/after.$host"; then
        echo "host $host is as it was: $(wc -l <"$WORK/after.$host") lines of names, modes and checksums, not one differs"
    else
        die "host $host is not as it was"
    fi
done
printf '\n%sThe whole story took %s seconds.%s\n' "$blue" "$((SECONDS - START))" "$plain"
