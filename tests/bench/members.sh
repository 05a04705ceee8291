#!/bin/bash
# Members joining and leaving, beside a loop of karmadactl: members.sh BINARY KARMADA_BIN KUBE_BIN [MEMBERS] [DEAD]
# Both join the same clusters to the same control plane, in push mode. A loop's time is that of its commands, which wait for nothing; karmaform's
# is until every member is Ready. DEAD members each are joined and then ended, and leave with at most LIMIT seconds for each.
# It wants a node cluster of tests/lab/kube.sh in the environment, and CRDs in KARMAFORM_SHARED_DATA. A member takes about 400 MB of memory.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../lab/common.sh"
. "$HERE/common.sh"
BINARY=$(realpath "${1:?the karmaform binary}") KARMADA_BIN=$(realpath "${2:?a folder with Karmada}") KUBE_BIN=$(realpath "${3:?a folder with a Kubernetes}")
MEMBERS=${4:-12} DEAD=${5:-4} LIMIT=10 KARMADA=1.19.0
CRDS=${KARMAFORM_SHARED_DATA:?a folder with the archive of CRDs}/karmada-crds-v1.19.tar.gz
NAME=${KARMAFORM_TEST_KUBE_NAME:?a cluster of tests/lab/kube.sh} HOST=$KARMAFORM_TEST_KUBECONFIG
[ -n "${KARMAFORM_TEST_NODES:-}" ] || die "the cluster has no node"
[ -x "$KARMADA_BIN/karmadactl" ] || die "there is no karmadactl in $KARMADA_BIN"
[ "$MEMBERS" -ge $((2 * DEAD)) ] || die "of $MEMBERS members $DEAD can't die twice"
KUBE=$("$KUBE_BIN/kube-apiserver" --version) && KUBE=${KUBE##*v}
ETCD=$("$HERE/../lab/etcd.sh" | tail -n 1) && ETCD=${ETCD%% *}
WORK=$(mktemp -d) UP=() ROUTES=()

member() { echo "$NAME-m$1"; }
kubeconfig() { echo "$WORK/m$1.config"; }
up() { cp "$(dirname "$("$HERE/../lab/kube.sh" up "$(member "$1")")")/admin.kubeconfig" "$(kubeconfig "$1")"; }
down() { "$HERE/../lab/kube.sh" down "$(member "$1")" >/dev/null; }
# One that is dead: nobody asks for its address outside this machine.
die_off() {
    local address
    address=$(sed -n 's|.*server: https://\([0-9.]*\):.*|\1|p' "$(kubeconfig "$1")")
    ROUTES+=("$address")
    ip route add unreachable "$address/32"
    down "$1"
}
plane() { (cd "$WORK/plane" && "$BINARY" "$@"); }
finish() {
    local number address
    for number in "${UP[@]}"; do down "$number" || :; done
    for address in "${ROUTES[@]}"; do ip route del unreachable "$address/32" || :; done
    plane destroy -auto-approve >/dev/null 2>&1 || :
    rm -rf "$WORK"
}
trap finish EXIT

"$HERE/../lab/karmada.sh" images "$NAME" "$KARMADA" "$KUBE" "$ETCD" "$KARMADA_BIN" "$KUBE_BIN" >/dev/null
mkdir "$WORK/members"
plane_in_pods "$WORK/plane" "$HOST" "$KARMADA" "$KUBE" "$ETCD" "$CRDS"
cat >"$WORK/members/main.kf.hcl" <<HCL
variable "members" {
  type = map(string)
}
data "kubernetes_cluster" "karmada" {
  kubeconfig_file = "$WORK/karmada.config"
}
data "kubernetes_cluster" "member" {
  for_each        = var.members
  kubeconfig_file = each.value
  required        = false
}
resource "karmada_member" "this" {
  for_each      = var.members
  name          = each.key
  control_plane = data.kubernetes_cluster.karmada.connection
  cluster       = data.kubernetes_cluster.member[each.key].connection
  force         = true
  leave_timeout = $LIMIT
}
HCL

# ours COMMAND FIRST LAST: with the members of these numbers, and no others.
ours() {
    local number
    {
        echo "members = {"
        for number in $(seq "$2" "$3"); do echo "  m$number = \"$(kubeconfig "$number")\""; done
        echo "}"
    } >"$WORK/members/bench.auto.kfvars.hcl"
    (cd "$WORK/members" && exec "$BINARY" $1)
}
# theirs join|unjoin FIRST LAST [OPTION...]
theirs() {
    local number
    for number in $(seq "$2" "$3"); do
        HOME=$WORK "$KARMADA_BIN/karmadactl" "$1" "m$number" --kubeconfig "$WORK/karmada.config" --cluster-kubeconfig "$(kubeconfig "$number")" \
            --cluster-context "$(member "$number")" "${@:4}" || return 1
    done
}
ready() { HOME=$WORK "$KARMAFORM_TEST_KUBECTL" --kubeconfig "$WORK/karmada.config" wait --for=condition=Ready clusters.cluster.karmada.io --all --timeout=120s; }
# What karmadactl takes away in a member is gone a while after it says so.
gone() {
    local number
    for number in $(seq "$1" "$2"); do
        for _ in $(seq 120); do
            [ -n "$("$KARMAFORM_TEST_KUBECTL" --kubeconfig "$(kubeconfig "$number")" get namespace karmada-cluster --ignore-not-found -o name)" ] || continue 2
            sleep 0.5
        done
        return 1
    done
}
row() { awk "BEGIN { printf \"%-34s karmadactl %6.1f  karmaform %6.1f  (%.1f times as fast%s)\\n\", \"$1\", $2, $3, $2 / $3, \"$4\" }"; }

say "a control plane and $MEMBERS members"
started=()
timed plane apply -auto-approve
# From outside the cluster by the Service's address, and its own name.
plane output -raw kubeconfig >"$WORK/karmada.config"
server=$(sed -n 's|^ *server: *"*https://\([^:"]*\).*|\1|p' "$WORK/karmada.config")
address=$("$KARMAFORM_TEST_KUBECTL" --kubeconfig "$HOST" -n kf-bench get service "${server%%.*}" -o jsonpath='{.spec.clusterIP}')
sed -i "s|^\( *\)\(server: .*\)$server|\1tls-server-name: $server\n\1\2$address|" "$WORK/karmada.config"
for number in $(seq "$MEMBERS"); do
    UP+=("$number")
    up "$number" &
    started+=($!)
    if [ ${#started[@]} = 2 ] || [ "$number" = "$MEMBERS" ]; then
        for pid in "${started[@]}"; do wait "$pid" || die "a member did not start"; done
        started=()
    fi
done

echo "$MEMBERS members of Karmada $KARMADA, Kubernetes $KARMAFORM_TEST_KUBE_VERSION, seconds"
timed theirs join 1 "$MEMBERS"
join=$seconds
timed ready
timed theirs unjoin 1 "$MEMBERS"
unjoin=$seconds
timed gone 1 "$MEMBERS"
timed ours "apply -auto-approve" 1 "$MEMBERS"
row "join" "$join" "$seconds" ", at least 5"
timed ours "plan -detailed-exitcode" 1 "$MEMBERS"
printf '%-34s %34.1f\n' "plan without changes" "$seconds"
timed ours "drift -ignore=*::health" 1 "$MEMBERS"
printf '%-34s %34.1f\n' "drift" "$seconds"
timed ours "apply -auto-approve" 1 0
row "leave" "$unjoin" "$seconds" ""
[ "$DEAD" -gt 0 ] || exit 0
timed theirs join $((DEAD + 1)) $((2 * DEAD))
timed ready
timed ours "apply -auto-approve" 1 "$DEAD"
for number in $(seq $((2 * DEAD))); do die_off "$number"; done
timed theirs unjoin $((DEAD + 1)) $((2 * DEAD)) --force --wait="${LIMIT}s"
unjoin=$seconds
timed ours "apply -auto-approve" 1 0
row "leave, dead, limit $LIMIT s" "$unjoin" "$seconds" ", $DEAD each"
