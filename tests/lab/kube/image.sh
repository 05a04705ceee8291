# Container images from programs, without a registry and without a container engine. Sourced by kube.sh and karmada.sh.
#
# A docker-archive is put together in a folder: layers first, then images of them. Images may share layers, and one archive holds many
# images, so that giving them to a node is one step.

# add_programs ROOT FILE...: programs into ROOT/bin, with the libraries of those that aren't static, and busybox with all its names.
add_programs() {
    local root=$1 file
    shift
    (
        umask 022
        mkdir -p "$root/bin"
        for file in "$@"; do
            install -m 755 "$file" "$root/bin/"
            add_libraries "$root" "$file"
            [ "$(basename "$file")" != busybox ] ||
                "$file" --list | grep -vx busybox | sed "s|^|$root/bin/|" | xargs -n 1 ln -s busybox
        done
    )
}

# add_libraries ROOT FILE: those that a program is linked with, if it isn't static.
add_libraries() {
    local library
    for library in $(ldd "$2" 2>/dev/null | grep -o '/[^ ]*'); do
        (umask 022 && mkdir -p "$1$(dirname "$library")" && cp -L "$library" "$1$library")
    done
}

# add_base ROOT: what every image has. Programs are in /bin, which /usr/bin and /usr/local/bin lead to.
add_base() {
    (
        umask 022
        mkdir -p "$1/bin" "$1/usr/local" "$1/etc"
        mkdir -m 1777 "$1/tmp"
        ln -s ../bin "$1/usr/bin"
        ln -s ../../bin "$1/usr/local/bin"
        echo 'root:x:0:0:root:/:/bin/sh' >"$1/etc/passwd"
    )
}

# add_layer FOLDER ROOT: the tree ROOT as a layer; prints its id. ROOT is gone then.
add_layer() {
    local id part=$1/layer.part
    tar -C "$2" --owner=0 --group=0 --numeric-owner --mtime=@0 --sort=name -cf "$part" .
    id=$(sha256sum "$part" | cut -d' ' -f1)
    mv "$part" "$1/$id.tar"
    rm -rf "$2"
    echo "$id"
}

# add_image FOLDER IMAGE PROGRAM ARGUMENTS LAYER...: an image whose entry point is /bin/PROGRAM; ARGUMENTS are words in quotes, with commas.
add_image() {
    local folder=$1 image=$2 program=$3 arguments=$4 ids layers config
    shift 4
    ids=$(printf '"sha256:%s",' "$@")
    layers=$(printf '"%s.tar",' "$@")
    config=$(basename "$(mktemp "$folder/config.XXXXXX.json")")
    cat >"$folder/$config" <<CONFIG
{
  "architecture": "$(dpkg --print-architecture)", "os": "linux",
  "config": { "Env": ["PATH=/bin", "GOGC=$GOGC"], "Entrypoint": ["/bin/$program"], "Cmd": [$arguments] },
  "rootfs": { "type": "layers", "diff_ids": [${ids%,}] }
}
CONFIG
    echo "{ \"Config\": \"$config\", \"RepoTags\": [\"$image\"], \"Layers\": [${layers%,}] }" >>"$folder/images"
}

# close_archive FOLDER ARCHIVE: all images in one file. FOLDER is gone then.
close_archive() {
    echo "[$(paste -sd, "$1/images")]" >"$1/manifest.json"
    rm "$1/images"
    tar -C "$1" -cf "$2" manifest.json $(cd "$1" && ls | grep -vx manifest.json)
    rm -rf "$1"
}

# pack_image IMAGE ARCHIVE FILE...: a docker-archive with one image of one layer; the first program is the entry point.
pack_image() {
    local image=$1 archive=$2 work layer arguments=
    shift 2
    work=$(mktemp -d "$DIR/image.XXXXXX")
    mkdir "$work/root" "$work/image"
    add_base "$work/root"
    add_programs "$work/root" "$@"
    layer=$(add_layer "$work/image" "$work/root")
    [ "$image" != "$BUSYBOX" ] || arguments='"sleep", "infinity"'
    add_image "$work/image" "$image" "$(basename "$1")" "$arguments" "$layer"
    close_archive "$work/image" "$archive"
    rm -rf "$work"
}

# import_image IMAGE FILE...: packs and hands it to the cluster's node.
import_image() {
    local image=$1 archive
    archive=$(mktemp "$DIR/image.XXXXXX.tar")
    pack_image "$image" "$archive" "${@:2}"
    import_archive "$archive"
    rm -f "$archive"
}

# import_archive ARCHIVE: every image in it. A file elsewhere is handed in as the standard input, for the node sees little of this machine.
import_archive() {
    in_node ctr --namespace k8s.io images import - <"$1"
}
