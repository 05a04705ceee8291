#!/bin/bash
# Real Kubernetes clusters on this machine, from Debian's sources: etcd, kube-apiserver and kube-controller-manager with TLS throughout.
#
#   kube.sh check [--node]              says whether this machine can carry a cluster; exit 77 if not, with the reason
#   kube.sh up NAME [NUMBER] [--node]   starts a cluster and prints the path of its env file
#   kube.sh env NAME                    prints the env file's path
#   kube.sh image NAME IMAGE FILE...    makes an image of these programs (the first is its entry point) and gives it to the node
#   kube.sh load NAME ARCHIVE           gives the node all images of a docker-archive
#   kube.sh exec NAME COMMAND...        runs a command on the node (ctr, iptables, ps, busybox)
#   kube.sh down NAME                   ends this cluster and nothing else
#
# Each cluster has a number of its own (the first free one, unless given) and thereby an address, 10.212.NUMBER.1, on the loopback device.
# Without nodes no pod ever starts: for what needs an API server and its controllers, that is quicker and smaller. With --node there is one
# node, named like the cluster, with containerd, kube-proxy and name service; pods start from images given to it, for no registry can be
# reached, and reach the API servers of other clusters. Such a cluster is at 10.212.NUMBER.2 in a network of its own; this machine reaches its
# pods and services.
# KARMAFORM_KUBE_BIN names a folder with the programs of another Kubernetes, which runs in place of Debian's (1.36 was tried).
# The image karmaform.test/busybox:1 is always there: busybox, which sleeps unless told otherwise.
# `up` starts from nothing: what an earlier run left under the same name, running or not, is ended first.
# The env file exports KARMAFORM_TEST_KUBECONFIG (an administrator), KARMAFORM_TEST_KUBE_VERSION, KARMAFORM_TEST_KUBECTL (a fitting kubectl),
# KARMAFORM_TEST_KUBE (this script), KARMAFORM_TEST_KUBE_NAME (NAME), KARMAFORM_TEST_KUBE_AUDIT (the log of users' requests), and
# KARMAFORM_TEST_NODES=1 if there is a node.
# Everything of a cluster is in /run/karmaform-kube/NAME; logs/ has what its processes say, and stays where `up` failed.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"
. "$HERE/kube/pki.sh"
. "$HERE/kube/image.sh"
. "$HERE/kube/node.sh"

BUSYBOX=karmaform.test/busybox:1
IN=() # what puts a process into the cluster's network

first_service() { echo "${SERVICES%.0/24}.1"; }

# ---- processes ---------------------------------------------------------------------------------------------------------

# start PROCESS COMMAND...: in the cluster's network, with its log and its process id in the cluster's folder.
start() { spawn "pids/$1" "logs/$1.log" "${IN[@]}" "${@:2}"; }

# Killed rather than asked: nothing of a cluster outlives it.
stop_processes() {
    local init
    init=$(node_init)
    stop_spawned "$DIR"/pids/*
    while [ -n "$init" ] && [ -e "/proc/$init/cwd" ]; do sleep 0.05; done # PID 1 of a node: the last of its processes
}

# await PROCESS SECONDS COMMAND...: until the command succeeds; says what the process said if it doesn't in time or the process ends.
await() {
    local process=$1 until=$((SECONDS + $2)) why=
    shift 2
    until "$@" >/dev/null 2>&1; do
        if [ -s "$DIR/pids/$process" ] && ! running "$DIR/pids/$process" >/dev/null; then
            why="ended"
        elif [ $SECONDS -ge $until ]; then
            why="is not ready in time"
        else
            sleep 0.1
            continue
        fi
        tail -n 20 "$DIR/logs/$process.log" >&2 || :
        die "$process of \"$NAME\" $why; its last words are above, the whole log is $DIR/logs/$process.log"
    done
}

# ---- the control plane -------------------------------------------------------------------------------------------------

# The newest etcd of Debian's that there is, unpacked in the cache.
etcd_folder() {
    local archive folder
    archive=$("$HERE/etcd.sh" | tail -n 1 | cut -d' ' -f2)
    [ -n "$archive" ] || die "no etcd to be had"
    folder=$CACHE/kube-$(basename "$archive" .tar.gz)
    if [ ! -e "$folder" ]; then
        rm -rf "$folder.part"
        mkdir "$folder.part"
        tar -C "$folder.part" --strip-components=1 -xzf "$archive"
        mv "$folder.part" "$folder"
    fi
    echo "$folder"
}

start_etcd() {
    local fast=--unsafe-no-fsync help # what is in it is gone with the cluster
    help=$("$ETCD/etcd" --help 2>&1)
    grep -q -e "$fast" <<<"$help" || fast=
    start etcd "$ETCD/etcd" --name=etcd --data-dir="$DIR/etcd" $fast --heartbeat-interval=20 --election-timeout=200 \
        --listen-client-urls="https://$ADDRESS:2379" --advertise-client-urls="https://$ADDRESS:2379" \
        --listen-peer-urls="https://$ADDRESS:2380" --initial-advertise-peer-urls="https://$ADDRESS:2380" \
        --initial-cluster="etcd=https://$ADDRESS:2380" \
        --cert-file="$DIR/pki/etcd.crt" --key-file="$DIR/pki/etcd.key" --trusted-ca-file="$DIR/pki/etcd-ca.crt" --client-cert-auth \
        --peer-cert-file="$DIR/pki/etcd.crt" --peer-key-file="$DIR/pki/etcd.key" --peer-trusted-ca-file="$DIR/pki/etcd-ca.crt" \
        --peer-client-cert-auth
}

# What users of their own ask for, one line per request: tests count by it. What belongs to the cluster itself would be most of it.
write_audit_policy() {
    cat >"$DIR/audit.yaml" <<'POLICY'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    userGroups: ["system:serviceaccounts", "system:nodes", "system:unauthenticated"]
  - level: None
    users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy"]
  - level: Metadata
POLICY
}

start_apiserver() {
    write_audit_policy
    start kube-apiserver "$KUBERNETES/kube-apiserver" --bind-address="$ADDRESS" --secure-port=6443 --advertise-address="$ADDRESS" \
        --tls-cert-file="$DIR/pki/apiserver.crt" --tls-private-key-file="$DIR/pki/apiserver.key" --client-ca-file="$DIR/pki/ca.crt" \
        --etcd-servers="https://$ADDRESS:2379" --etcd-cafile="$DIR/pki/etcd-ca.crt" \
        --etcd-certfile="$DIR/pki/apiserver-etcd.crt" --etcd-keyfile="$DIR/pki/apiserver-etcd.key" \
        --service-cluster-ip-range="$SERVICES" --service-account-issuer=https://kubernetes.default.svc.cluster.local \
        --service-account-key-file="$DIR/pki/service-accounts.pub" --service-account-signing-key-file="$DIR/pki/service-accounts.key" \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth --allow-privileged \
        --requestheader-client-ca-file="$DIR/pki/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
        --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
        --requestheader-extra-headers-prefix=X-Remote-Extra- \
        --proxy-client-cert-file="$DIR/pki/front-proxy.crt" --proxy-client-key-file="$DIR/pki/front-proxy.key" \
        --kubelet-certificate-authority="$DIR/pki/ca.crt" --kubelet-client-certificate="$DIR/pki/apiserver-kubelet.crt" \
        --kubelet-client-key="$DIR/pki/apiserver-kubelet.key" --kubelet-preferred-address-types=InternalIP \
        --audit-policy-file="$DIR/audit.yaml" --audit-log-path="$DIR/logs/audit.log" "$@"
}

# Prints a program's flag if it knows it: they come and go with versions. flag PROGRAM NAME[=VALUE]
flag() {
    local help
    help=$("$KUBERNETES/$1" --help 2>&1) # whole: a pipe that ends early is a failure here
    ! grep -q -e "^ *--${2%%=*} " <<<"$help" || echo "--$2"
}

start_controller_manager() {
    local insecure
    insecure=$(flag kube-controller-manager port=0)
    start kube-controller-manager "$KUBERNETES/kube-controller-manager" --kubeconfig="$DIR/controller-manager.kubeconfig" \
        --authentication-kubeconfig="$DIR/controller-manager.kubeconfig" --authorization-kubeconfig="$DIR/controller-manager.kubeconfig" \
        --bind-address="$ADDRESS" $insecure --leader-elect=false --kube-api-qps=500 --kube-api-burst=1000 --cluster-name="$NAME" \
        --use-service-account-credentials --flex-volume-plugin-dir="$DIR/flexvolume" \
        --controllers='*,bootstrapsigner,tokencleaner' --service-cluster-ip-range="$SERVICES" --root-ca-file="$DIR/pki/ca.crt" \
        --client-ca-file="$DIR/pki/ca.crt" --requestheader-client-ca-file="$DIR/pki/front-proxy-ca.crt" \
        --service-account-private-key-file="$DIR/pki/service-accounts.key" \
        --cluster-signing-cert-file="$DIR/pki/ca.crt" --cluster-signing-key-file="$DIR/pki/ca.key" "$@"
}

# A GET as the administrator; no discovery, so nothing is cached in the home folder.
get() { "$KUBERNETES/kubectl" --kubeconfig="$DIR/admin.kubeconfig" --request-timeout=5s get --raw "$1"; }
answers() { (exec 3<>"/dev/tcp/$ADDRESS/$1") 2>/dev/null; }
# Pods can be created from the moment on when the controller-manager has made the default account, and up to 1.23 given it its token.
has_account() { get /api/v1/namespaces/default/serviceaccounts/default | { [ "$MINOR" -ge 24 ] && cat >/dev/null || grep -q '"secrets":'; }; }

# ---- a cluster ---------------------------------------------------------------------------------------------------------

# Prints why no cluster can run here, and fails; silent success otherwise.
cluster_possible() {
    [ "$(id -u)" = 0 ] || { echo "not root"; return 1; }
    command -v ip openssl flock setsid dpkg-deb >/dev/null || { echo "ip, openssl, flock, setsid or dpkg-deb is missing"; return 1; }
    ip link set lo up 2>/dev/null || { echo "the loopback device can't be given addresses"; return 1; }
}

# Takes the number wanted, or the first free one, and with it the address. Numbers are free again when their cluster's folder is gone.
take_number() {
    local number
    exec 9<"$CLUSTERS"
    flock 9
    for number in ${1:-$(seq 1 250)}; do
        ! grep -qsx "$number" "$CLUSTERS"/*/number || continue
        [ -z "$(ip -o addr show to "$KUBE_PREFIX.$number.0/24")" ] || continue
        echo "$number" >"$DIR/number"
        exec 9<&-
        return
    done
    [ -z "$1" ] || die "the number $1 or an address of $KUBE_PREFIX.$1.0/24 is taken"
    die "all networks of $KUBE_PREFIX.0.0/16 are taken"
}

make_address() {
    ADDRESS=$KUBE_PREFIX.$NUMBER.1
    ip addr add "$ADDRESS/32" dev lo
}

write_env() {
    cat >"$DIR/env" <<ENV
export KARMAFORM_TEST_KUBECONFIG="$DIR/admin.kubeconfig"
export KARMAFORM_TEST_KUBE_VERSION="$VERSION"
export KARMAFORM_TEST_KUBECTL="$KUBERNETES/kubectl"
export KARMAFORM_TEST_KUBE="$HERE/kube.sh"
export KARMAFORM_TEST_KUBE_NAME="$NAME"
export KARMAFORM_TEST_NODES="${1:-}"
export KARMAFORM_TEST_KUBE_AUDIT="$DIR/logs/audit.log"
ENV
}

up() {
    local wanted=$1 node=$2 why
    trap 'stop_cluster; rmdir "$DIR" "$CLUSTERS" 2>/dev/null || :' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    why=$(cluster_possible && { [ -z "$node" ] || node_possible; }) || die "no cluster here: $why"
    KUBERNETES=${KARMAFORM_KUBE_BIN:-$("$HERE/kubernetes-build.sh")}
    VERSION=$("$KUBERNETES/kube-apiserver" --version | sed -n 's/^Kubernetes v//p')
    [[ $VERSION =~ ^1\.([0-9]+)\. ]] || die "there is no Kubernetes in $KUBERNETES"
    MINOR=${BASH_REMATCH[1]}
    [ -z "$node" ] || TOOLS=$("$HERE/kube/tools.sh")
    ETCD=$(etcd_folder)
    stop_cluster
    find "$DIR" -mindepth 1 -delete
    umask 077
    chmod 700 "$DIR"
    mkdir -p "$DIR/pids" "$DIR/logs"
    take_number "$wanted"
    NUMBER=$(cat "$DIR/number")
    SERVICES=$SERVICE_PREFIX.$NUMBER.0/24
    if [ -n "$node" ]; then
        make_node_network
        IN=(nsenter --net="/run/netns/$NET")
    else
        make_address
    fi
    make_pki
    start_etcd
    await etcd 30 answers 2379
    # Without kube-proxy only the endpoints of a service can be reached, and not its address.
    start_apiserver --enable-aggregator-routing="$([ -n "$node" ] && echo false || echo true)"
    if [ -n "$node" ]; then
        make_node_pki
        write_node_config
        start_node # its first five seconds need no API server: kubelet asks five times whether there is no Docker
    fi
    await kube-apiserver 120 get /readyz
    start_controller_manager
    if [ -n "$node" ]; then
        start_scheduler
        await node 120 node_ready
    fi
    await kube-controller-manager 120 has_account
    write_env ${node:+1}
    trap - EXIT
    echo "$DIR/env"
}

# Ends what runs and gives address and number back; the logs stay.
stop_cluster() {
    local number
    rm -f "$DIR/env"
    stop_processes
    number=$(cat "$DIR/number" 2>/dev/null) || return 0
    drop_node "$number"
    ip addr del "$KUBE_PREFIX.$number.1/32" dev lo 2>/dev/null || :
    rm -rf "$DIR/number" "$DIR/etcd" "$DIR/pki" "$DIR/node" "$DIR"/*.kubeconfig
}

down() {
    stop_cluster
    find "$DIR" -mindepth 1 -delete
    rmdir "$DIR"
    rmdir "$CLUSTERS" 2>/dev/null || : # the last one
}

command=${1:-}
shift || :
NODE= WORDS=()
if [ "$command" = up ] || [ "$command" = check ]; then
    for word in "$@"; do
        if [ "$word" = --node ]; then NODE=yes; else WORDS+=("$word"); fi
    done
    set -- "${WORDS[@]}"
fi
NAME=${1:-}
shift || :
case $NAME in *[!a-z0-9-]*) die "a cluster's name is made of a-z, 0-9 and -" ;; esac
DIR=$CLUSTERS/$NAME
NET=kf-kube-$NAME
CGROUP=karmaform-kube-$NAME
case $command:$NAME in
    check:*)
        why=$(cluster_possible && { [ -z "$NODE" ] || node_possible; }) || { echo "SKIPPED (no Kubernetes): $why" >&2; exit 77; }
        ;;
    up:?* | down:?*)
        lock # one at a time for each name
        case $command in
            up) up "${1:-}" "$NODE" ;;
            down) down ;;
        esac
        ;;
    env:?* | image:?* | load:?* | exec:?*)
        [ -e "$DIR/env" ] || die "the cluster \"$NAME\" is not up"
        case $command in
            env) echo "$DIR/env" ;;
            image) import_image "${1:?which image?}" "${2:?which programs?}" "${@:3}" ;;
            load) import_archive "${1:?which archive?}" ;;
            exec) in_node "${@:?which command?}" ;;
        esac
        ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
