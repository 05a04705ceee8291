# Container images from programs, without a registry and without a container engine. Sourced by kube.sh.

# pack_image IMAGE ARCHIVE FILE...: a docker-archive with one layer. Programs are in /bin, which /usr/bin and /usr/local/bin lead to; the
# first is the entry point. The libraries of a program that isn't static come along, and busybox with all its names.
pack_image() {
    local image=$1 archive=$2 work file library id arguments
    shift 2
    work=$(mktemp -d "$DIR/image.XXXXXX")
    (
        umask 022
        mkdir -p "$work/root/bin" "$work/root/usr/local" "$work/root/etc" "$work/image"
        mkdir -m 1777 "$work/root/tmp"
        ln -s ../bin "$work/root/usr/bin"
        ln -s ../../bin "$work/root/usr/local/bin"
        echo 'root:x:0:0:root:/:/bin/sh' >"$work/root/etc/passwd"
        for file in "$@"; do
            install -m 755 "$file" "$work/root/bin/"
            for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*'); do
                mkdir -p "$work/root$(dirname "$library")"
                cp -L "$library" "$work/root$library"
            done
            [ "$(basename "$file")" != busybox ] ||
                "$file" --list | grep -vx busybox | sed "s|^|$work/root/bin/|" | xargs -n 1 ln -s busybox
        done
    )
    tar -C "$work/root" --owner=0 --group=0 --numeric-owner --mtime=@0 --sort=name -cf "$work/image/layer.tar" .
    [ "$image" = "$BUSYBOX" ] && arguments='"sleep", "infinity"' || arguments=
    id=$(sha256sum "$work/image/layer.tar" | cut -d' ' -f1)
    cat >"$work/image/config.json" <<CONFIG
{
  "architecture": "$(dpkg --print-architecture)", "os": "linux",
  "config": { "Env": ["PATH=/bin"], "Entrypoint": ["/bin/$(basename "$1")"], "Cmd": [$arguments] },
  "rootfs": { "type": "layers", "diff_ids": ["sha256:$id"] }
}
CONFIG
    echo "[{ \"Config\": \"config.json\", \"RepoTags\": [\"$image\"], \"Layers\": [\"layer.tar\"] }]" >"$work/image/manifest.json"
    tar -C "$work/image" -cf "$archive" manifest.json config.json layer.tar
    rm -rf "$work"
}

# import_image IMAGE FILE...: packs and hands it to the cluster's node.
import_image() {
    local image=$1 archive
    archive=$(mktemp "$DIR/image.XXXXXX.tar")
    pack_image "$image" "$archive" "${@:2}"
    in_node ctr --namespace k8s.io images import "$archive"
    rm -f "$archive"
}
