#!/bin/bash
# Builds Kubernetes from Debian bookworm's source package, once, and prints the path of the folder with the static binaries:
# kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, kubectl, and `version` ("1.20.2").
#
# Sources and compiler come through an apt with its own lists and sources and are unpacked, never installed, so nothing on this machine
# changes. Takes 3 to 6 minutes on two cores and some 3 GB below the cache, of which 0.3 GB stay. Two runs at a time build once.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/kube/apt.sh"

RECIPE=3 # to be raised when what is done below changes what comes out
KNOWN=$CACHE/kubernetes-r$RECIPE.folder
BINARIES="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl"
APT=$CACHE/apt/kubernetes-source
LOG=$CACHE/kubernetes-build.log

mkdir -p "$CACHE"
exec 9>"$CACHE/kubernetes.lock"
flock 9
if [ -e "$KNOWN" ] && [ -e "$(cat "$KNOWN")/version" ]; then
    cat "$KNOWN"
    exit 0
fi
for tool in make gcc perl dpkg-deb; do
    command -v $tool >/dev/null || die "building Kubernetes needs $tool (make setup installs it)"
done
rm -rf "$CACHE"/kubernetes.?????? # what an interrupted run left
WORK=$(mktemp -d "$CACHE/kubernetes.XXXXXX")
trap 'rm -rf "$WORK" "$APT"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say "fetching Kubernetes and Go from Debian bookworm"
private_apt_update deb deb-src
cd "$WORK"
private_apt apt-get -qq download golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev
private_apt apt-get -qq source --download-only kubernetes
VERSION=$(sed -n 's/^Version: //p' kubernetes_*.dsc)
FOLDER=$CACHE/kubernetes-$VERSION-r$RECIPE
for package in *.deb; do
    dpkg-deb -x "$package" "$WORK/root"
done
TREE=$WORK/go/src/k8s.io/kubernetes # its makefiles want to stand there in a GOPATH
mkdir -p "$TREE"
tar -C "$TREE" --strip-components=1 -xzf kubernetes_*.orig.tar.gz

# The vendored reflect2 1.0.1 reads maps as no Go since 1.18 lays them out: the apiserver dies of it at the first custom resource.
rm -rf "$TREE/vendor/github.com/modern-go/reflect2"
cp -r "$WORK/root/usr/share/gocode/src/github.com/modern-go/reflect2" "$TREE/vendor/github.com/modern-go/"
# Up to 1.20.5 an APIService can't be applied server-side: the apiserver panics, for the aggregator is not told what its fields are.
# Mended as later versions did (https://github.com/kubernetes/kubernetes/pull/98576).
sed -i '/c.GenericConfig.OpenAPIConfig = nil/d' "$TREE/staging/src/k8s.io/kube-aggregator/pkg/apiserver/apiserver.go"
# rsync serves for nothing but to put the finished binaries in their place: `rsync -pc FROM TO`.
mkdir "$WORK/bin"
printf '#!/bin/sh\nexec cp -p "$2" "$3"\n' >"$WORK/bin/rsync"
chmod +x "$WORK/bin/rsync"

say "building Kubernetes $VERSION (once, 3 to 6 minutes)"
mkdir "$WORK/tmp"
# In an environment of its own: no Go settings of this machine's, no module proxy, nothing written to the home folder. Clouds and Docker, which
# no test has, would be half of it.
in_tree() {
    env -i PATH="$WORK/bin:$WORK/root/usr/lib/go-1.19/bin:$PATH" HOME="$WORK" TMPDIR="$WORK/tmp" GOROOT="$WORK/root/usr/lib/go-1.19" \
        GOPATH="$WORK/go" GOCACHE="$WORK/tmp/cache" GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 LC_ALL=C.UTF-8 \
        GOFLAGS=-tags=providerless,dockerless KUBE_VERBOSE=1 GOGC="$GOGC" "$@" >>"$LOG" 2>&1 </dev/null
}
# The one generated file that the sources come without; `make all` would make all the others again, with what its variables say here.
OPENAPI=pkg/generated/openapi/zz_generated.openapi.go
: >"$LOG"
cd "$TREE"
if ! in_tree make -f Makefile.generated_files CALLED_FROM_MAIN_MAKEFILE=1 OUT_DIR=_output BIN_DIR=_output/bin META_DIR=.make \
    PRJ_SRC_PATH=k8s.io/kubernetes GENERATED_FILE_PREFIX=zz_generated. $OPENAPI ||
    ! in_tree hack/make-rules/build.sh $(printf 'cmd/%s ' $BINARIES); then
    tail -n 20 "$LOG" >&2
    die "building Kubernetes failed; the whole log is $LOG"
fi
mkdir "$WORK/out"
for binary in $BINARIES; do
    mv "$TREE/_output/bin/$binary" "$WORK/out/"
done
"$WORK/out/kube-apiserver" --version | sed -n 's/^Kubernetes v//p' >"$WORK/out/version"
[ -s "$WORK/out/version" ] || die "the kube-apiserver that was built doesn't tell its version"
rm -rf "$FOLDER"
mv "$WORK/out" "$FOLDER"
echo "$FOLDER" >"$KNOWN.part"
mv "$KNOWN.part" "$KNOWN"
echo "$FOLDER"
