#!/bin/bash
# Images for a Karmada control plane on a node cluster of kube.sh, under the names that everybody's manifests have:
#
#   karmada.sh images NAME VERSION KUBE_VERSION ETCD_VERSION[,ETCD_VERSION...] [KARMADA_BIN] [KUBE_BIN]
#
# gives the cluster NAME docker.io/karmada/karmada-*:vVERSION, registry.k8s.io/kube-{apiserver,controller-manager}:vKUBE_VERSION and
# registry.k8s.io/etcd:ETCD_VERSION-0, with etcdctl in it. Kubernetes is what kubernetes-build.sh has built, or what is in the folder KUBE_BIN; etcd is
# the archive of that version that etcd.sh has. Karmada's own programs are the stand-in of tests/stand-in under seven names, or what is in the
# folder KARMADA_BIN, where those for members may be as well. KARMAFORM_STAND_IN names the stand-in's program; without it, it is built.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"
. "$HERE/kube/image.sh"

COMPONENTS="aggregated-apiserver controller-manager scheduler webhook search descheduler metrics-adapter"

stand_in() {
    local program=${KARMAFORM_STAND_IN:-}
    if [ -z "$program" ]; then
        (cd "$HERE/../.." && cargo build --quiet --locked --package karmaform-stand-in) >&2
        program=${CARGO_TARGET_DIR:-$HERE/../../target}/debug/karmada-stand-in
    fi
    [ -x "$program" ] || die "there is no stand-in at $program"
    echo "$program"
}

# one_program IMAGE FILE: an image with one program.
one_program() {
    add_programs "$WORK/root" "$2"
    add_image "$WORK/image" "$1" "$(basename "$2")" "" "$BASE" "$(add_layer "$WORK/image" "$WORK/root")"
}

# etcd_image VERSION
etcd_image() {
    local version=$1 archive folder="$WORK/etcd-$1"
    archive=$("$HERE/etcd.sh" | sed -n "s/^$version //p")
    [ -n "$archive" ] || die "there is no etcd $version"
    mkdir "$folder"
    tar -C "$folder" --strip-components=1 -xzf "$archive"
    add_programs "$WORK/root" "$folder/etcd" "$folder/etcdctl"
    add_image "$WORK/image" "registry.k8s.io/etcd:$version-0" etcd "" "$BASE" "$(add_layer "$WORK/image" "$WORK/root")"
}

images() {
    local name=$1 version=$2 kube_version=$3 etcd_versions=${4//,/ } karmada=${5:-} kube=${6:-} etcd_version component shared
    [ -n "$kube" ] || kube=$("$HERE/kubernetes-build.sh")
    WORK=$(mktemp -d "$CACHE/karmada.XXXXXX")
    trap 'rm -rf "$WORK"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mkdir "$WORK/image"
    add_base "$WORK/root"
    BASE=$(add_layer "$WORK/image" "$WORK/root")
    if [ -n "$karmada" ]; then
        for component in $COMPONENTS agent scheduler-estimator; do
            [ -x "$karmada/karmada-$component" ] || continue
            one_program "docker.io/karmada/karmada-$component:v$version" "$karmada/karmada-$component"
        done
    else
        # One layer with the program and one with a name for each, so that a component that is run from another one's image is not found.
        install -D "$(stand_in)" "$WORK/karmada-stand-in"
        add_programs "$WORK/root" "$WORK/karmada-stand-in"
        shared=$(add_layer "$WORK/image" "$WORK/root")
        for component in $COMPONENTS; do
            mkdir -p "$WORK/root/bin"
            ln -s karmada-stand-in "$WORK/root/bin/karmada-$component"
            add_image "$WORK/image" "docker.io/karmada/karmada-$component:v$version" "karmada-$component" "" \
                "$BASE" "$shared" "$(add_layer "$WORK/image" "$WORK/root")"
        done
    fi
    for component in kube-apiserver kube-controller-manager; do
        one_program "registry.k8s.io/$component:v$kube_version" "$kube/$component"
    done
    for etcd_version in $etcd_versions; do
        etcd_image "$etcd_version"
    done
    close_archive "$WORK/image" "$WORK/images.tar"
    "$HERE/kube.sh" load "$name" "$WORK/images.tar" >&2
}

case ${1:-}:$# in
    images:[5-7]) images "${@:2}" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
