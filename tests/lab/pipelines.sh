#!/bin/bash
# Images that pipelines and CronJobs run, on a node cluster of kube.sh, without a registry and without a container engine:
#
#   pipelines.sh image NAME KARMAFORM
#   pipelines.sh etcd NAME KARMAFORM VERSION
#
# The first gives the cluster NAME registry.example.com/karmaform-tools:0.1.0 with the program KARMAFORM, docs/pipelines/drift.sh, a shell and curl: what the
# target "tools" of docs/pipelines/Dockerfile has, as far as drift.sh needs it. The second gives it registry.example.com/etcd:VERSION-0: etcd's programs, no
# shell, and the libraries that KARMAFORM is linked with, since one under test is not static.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"
. "$HERE/kube/image.sh"

image() {
    local name=$1 program=$2
    WORK=$(mktemp -d "$CACHE/pipelines.XXXXXX")
    trap 'rm -rf "$WORK"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mkdir "$WORK/image"
    # What a debugger needs is most of it.
    strip -g -o "$WORK/karmaform" "$program"
    add_base "$WORK/root"
    add_programs "$WORK/root" "$WORK/karmaform" "$("$HERE/kube/tools.sh")/usr/bin/busybox" "$(command -v curl)"
    install -m 755 "$HERE/../../docs/pipelines/drift.sh" "$WORK/root/bin/drift.sh"
    add_image "$WORK/image" registry.example.com/karmaform-tools:0.1.0 sh "" "$(add_layer "$WORK/image" "$WORK/root")"
    close_archive "$WORK/image" "$WORK/image.tar"
    "$HERE/kube.sh" load "$name" "$WORK/image.tar" >&2
}

etcd() {
    local name=$1 program=$2 version=$3 archive
    WORK=$(mktemp -d "$CACHE/pipelines.XXXXXX")
    trap 'rm -rf "$WORK"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mkdir "$WORK/image" "$WORK/etcd"
    archive=$("$HERE/etcd.sh" | sed -n "s/^$version //p")
    [ -n "$archive" ] || die "there is no etcd $version"
    tar -C "$WORK/etcd" --strip-components=1 -xzf "$archive"
    add_base "$WORK/root"
    add_libraries "$WORK/root" "$program"
    add_programs "$WORK/root" "$WORK"/etcd/etcd*
    add_image "$WORK/image" "registry.example.com/etcd:$version-0" etcd "" "$(add_layer "$WORK/image" "$WORK/root")"
    close_archive "$WORK/image" "$WORK/image.tar"
    "$HERE/kube.sh" load "$name" "$WORK/image.tar" >&2
}

case ${1:-}:$# in
    etcd:4) etcd "${@:2}" ;;
    image:3) image "${@:2}" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
