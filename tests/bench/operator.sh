#!/bin/bash
# A control plane from nothing, beside karmada-operator on the same cluster: operator.sh BINARY KARMADA_BIN KUBE_BIN [ROUNDS]
# Both take the same images, one member of etcd in emptyDir, and the metrics adapter; karmaform has two replicas of each component, its default,
# where the operator has one. Times from the command to its end (karmaform, all gates passed), and to the condition Ready (operator).
# It wants a node cluster of tests/lab/kube.sh in the environment, and CRDs in KARMAFORM_SHARED_DATA; KARMADA_BIN has karmada-operator too.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../lab/common.sh"
. "$HERE/common.sh"
BINARY=$(realpath "${1:?the karmaform binary}") KARMADA_BIN=$(realpath "${2:?a folder with Karmada}") KUBE_BIN=$(realpath "${3:?a folder with a Kubernetes}")
ROUNDS=${4:-3} KARMADA=1.19.0
CRDS=${KARMAFORM_SHARED_DATA:?a folder with the archive of CRDs}/karmada-crds-v1.19.tar.gz
NAME=${KARMAFORM_TEST_KUBE_NAME:?a cluster of tests/lab/kube.sh}
[ -n "${KARMAFORM_TEST_NODES:-}" ] || die "the cluster has no node"
[ -x "$KARMADA_BIN/karmada-operator" ] || die "there is no karmada-operator in $KARMADA_BIN"
KUBE=$("$KUBE_BIN/kube-apiserver" --version) && KUBE=${KUBE##*v}
ETCD=$("$HERE/../lab/etcd.sh" | tail -n 1) && ETCD=${ETCD%% *}
export KUBECONFIG=$KARMAFORM_TEST_KUBECONFIG
kubectl() { "$KARMAFORM_TEST_KUBECTL" "$@"; }
# In the background, in the cluster's network, with its names: as the operator's pod has it. What it keeps in /var/lib goes with it.
within() {
    exec ip netns exec "kf-kube-$NAME" unshare --mount \
        sh -c 'mount --bind "$0" /etc/resolv.conf && mount -t tmpfs none /var/lib && exec "$@"' "$WORK/resolv.conf" "$@"
}

WORK=$(mktemp -d) STARTED=()
finish() {
    local status=$? pid
    [ $status = 0 ] || tail -n 20 "$WORK/operator.log" || :
    for pid in "${STARTED[@]}"; do kill "$pid" 2>/dev/null || :; done
    kubectl delete --ignore-not-found namespace kf-bench-operator >/dev/null 2>&1 || :
    rm -rf "$WORK"
}
trap finish EXIT
"$HERE/../lab/karmada.sh" images "$NAME" "$KARMADA" "$KUBE" "$ETCD" "$KARMADA_BIN" "$KUBE_BIN" >/dev/null
sed -n 's|.*server: https://\([0-9.]*\):.*|nameserver \1|p' "$KUBECONFIG" >"$WORK/resolv.conf"

mkdir "$WORK/www"
cp "$CRDS" "$WORK/www/crds.tar.gz"
within python3 -m http.server --bind 127.0.0.1 --directory "$WORK/www" 8099 >/dev/null 2>&1 &
STARTED+=($!)
kubectl apply --validate=false -f - >/dev/null <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: karmadas.operator.karmada.io }
spec:
  group: operator.karmada.io
  scope: Namespaced
  names: { kind: Karmada, listKind: KarmadaList, plural: karmadas, singular: karmada }
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: { status: {} }
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
YAML
within env HOME="$WORK" "$KARMADA_BIN/karmada-operator" --kubeconfig "$KUBECONFIG" --leader-elect=false >"$WORK/operator.log" 2>&1 &
STARTED+=($!)

image() { echo "{ imageRepository: $1, imageTag: $2, replicas: 1 }"; }
cat >"$WORK/karmada.yaml" <<YAML
apiVersion: operator.karmada.io/v1alpha1
kind: Karmada
metadata: { name: demo, namespace: kf-bench-operator }
spec:
  crdTarball: { httpSource: { url: "http://127.0.0.1:8099/crds.tar.gz" } }
  hostCluster: { networking: { dnsDomain: cluster.local } }
  components:
    etcd: { local: { imageRepository: registry.k8s.io/etcd, imageTag: $ETCD-0, replicas: 1, volumeData: { emptyDir: {} } } }
    karmadaAPIServer: { imageRepository: registry.k8s.io/kube-apiserver, imageTag: v$KUBE, replicas: 1, serviceType: ClusterIP }
    kubeControllerManager: $(image registry.k8s.io/kube-controller-manager "v$KUBE")
    karmadaAggregatedAPIServer: $(image docker.io/karmada/karmada-aggregated-apiserver "v$KARMADA")
    karmadaControllerManager: $(image docker.io/karmada/karmada-controller-manager "v$KARMADA")
    karmadaScheduler: $(image docker.io/karmada/karmada-scheduler "v$KARMADA")
    karmadaWebhook: $(image docker.io/karmada/karmada-webhook "v$KARMADA")
    karmadaMetricsAdapter: $(image docker.io/karmada/karmada-metrics-adapter "v$KARMADA")
YAML
plane_in_pods "$WORK/ours" "$KUBECONFIG" "$KARMADA" "$KUBE" "$ETCD" "$CRDS" metrics-adapter


theirs() {
    kubectl create namespace kf-bench-operator
    kubectl create --validate=false -f "$WORK/karmada.yaml"
    kubectl -n kf-bench-operator wait --for=condition=Ready karmadas.operator.karmada.io/demo --timeout=180s
}
ours() { (cd "$WORK/ours" && "$BINARY" "$@"); }

echo "A control plane from nothing, Karmada $KARMADA and Kubernetes $KUBE in pods, Kubernetes $KARMAFORM_TEST_KUBE_VERSION as host, seconds"
for round in $(seq "$ROUNDS"); do
    timed theirs
    operator=$seconds
    kubectl -n kf-bench-operator delete karmadas.operator.karmada.io/demo >/dev/null
    kubectl delete namespace kf-bench-operator >/dev/null
    timed ours apply -auto-approve
    karmaform=$seconds
    timed ours plan -detailed-exitcode
    plan=$seconds
    timed ours destroy -auto-approve
    awk "BEGIN { printf \"round %d: karmada-operator %.1f, karmaform %.1f (ratio %.2f, at most 0.6), its plan without changes %.1f\\n\", \
        $round, $operator, $karmaform, $karmaform / $operator, $plan }"
done
