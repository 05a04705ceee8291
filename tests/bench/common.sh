# What the comparisons with other tools share. Sourced by bash, after lab/common.sh; $WORK is a folder of theirs.

# timed COMMAND...: runs it and sets `seconds`. What it says is in $WORK/out, and shown if it fails.
timed() {
    local start=$EPOCHREALTIME
    "$@" >"$WORK/out" 2>&1 || { tail -n 60 "$WORK/out"; die "failed: $*"; }
    seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $start }")
}

# plane_in_pods FOLDER KUBECONFIG KARMADA KUBE ETCD CRDS [ADDON]: the example of a control plane on Kubernetes, with one member of etcd whose data
# goes with its pod.
plane_in_pods() {
    local addons=
    [ -z "${7:-}" ] || addons="\"$7\""
    mkdir "$1"
    cp "$HERE"/../../examples/karmada-on-kubernetes/*.kf.hcl "$1"
    cat >"$1/bench.auto.kfvars.hcl" <<HCL
kubeconfig      = "$2"
namespace       = "kf-bench"
name            = "demo"
karmada_version = "$3"
kube_version    = "$4"
etcd_version    = "$5"
etcd_members    = 1
crds            = "$6"
storage         = "emptyDir"
service_type    = "ClusterIP"
addons          = [$addons]
HCL
}
