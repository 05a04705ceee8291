#!/bin/bash
# Real hosts on this machine: systemd-nspawn machines with systemd, sshd and their own addresses.
#
#   lab.sh check                 says whether this machine can carry a lab; exit 77 if not, with the reason
#   lab.sh up NAME...            boots hosts with these names and prints the lab's env file
#   lab.sh env                   prints the env file's path
#   lab.sh exec HOST COMMAND...  runs a command on a host, from below (works without ssh and without network)
#   lab.sh files HOST            every file there with kind, mode, owner and content, but for logs and what systemd and dpkg remember
#   lab.sh reboot HOST           restarts it, disk kept
#   lab.sh reset HOST            boots it with a fresh disk and a whole cable, keys kept
#   lab.sh kill HOST             pulls the plug; `lab.sh start HOST` boots it again, disk kept
#   lab.sh freeze HOST | thaw HOST         stops every process on it: the address answers, sshd does not
#   lab.sh blackhole HOST | heal HOST      its packets vanish, in both directions
#   lab.sh reach CLUSTER...      from now on the hosts and these clusters of kube.sh reach each other, pods too, and nobody else
#   lab.sh down                  ends this lab and nothing else
#
# KARMAFORM_LAB names the lab (default "default"): labs with different names don't touch each other.
# Every lab has an address where nobody is: PREFIX.K.99 is a black hole.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

LAB=${KARMAFORM_LAB:-default}
DIR=$LABS/$LAB
case $LAB in *[!a-z0-9-]* | "") die "a lab's name is made of a-z, 0-9 and -" ;; esac

# ---- one host ----------------------------------------------------------------------------------------------------------

index_of() { cat "$DIR/hosts/$1/index" 2>/dev/null || die "there is no host \"$1\" in the lab \"$LAB\""; }
address_of() { echo "$PREFIX.$K.$((10 + $(index_of "$1")))"; }
# Hosts have an address of each family, with the same numbers in it; but no 0, as that is left out of addresses as they are usually written.
prefix6() { echo "fd00:${PREFIX#*.}:$((K + 1))"; }
address6_of() { echo "$(prefix6)::$((10 + $(index_of "$1")))"; }
mac_of() { printf '02:00:00:d3:%02x:%02x' "$K" "$((10 + $(index_of "$1")))"; }
# PID 1 of the host as this machine sees it: the child of its nspawn.
init_of() { pgrep -P "$(cat "$DIR/hosts/$1/nspawn.pid")" 2>/dev/null | head -n 1; }

# Its addresses and no other ones, and its ways to clusters. The network namespace outlives the host, and what address the host gave itself
# would, too.
own_address() {
    ip -n "kf-$LAB-$1" -4 addr flush dev eth0
    ip -n "kf-$LAB-$1" -6 addr flush dev eth0 scope global
    ip -n "kf-$LAB-$1" addr add "$(address_of "$1")/24" dev eth0
    ip -n "kf-$LAB-$1" addr add "$(address6_of "$1")/64" dev eth0 nodad
    [ ! -e "$DIR/routes" ] || ip -n "kf-$LAB-$1" -batch "$DIR/routes"
}

# A disk of its own: an overlay over the shared root, on a tmpfs of limited size.
make_disk() {
    local name=$1 host=$DIR/hosts/$1 home
    mount -t tmpfs -o size=2g,mode=755 kf-disk "$host/disk"
    mkdir -p "$host/disk/upper/etc/ssh" "$host/disk/work"
    cp -p "$host/ssh_host_ed25519_key" "$host/ssh_host_ed25519_key.pub" "$host/disk/upper/etc/ssh/"
    mount -t overlay kf-root -o "lowerdir=$(cat "$DIR/base"),upperdir=$host/disk/upper,workdir=$host/disk/work" "$host/root"
    for home in root home/ops home/guest; do
        install -d -m 700 "$host/root/$home/.ssh"
        install -m 600 "$DIR/key.pub" "$host/root/$home/.ssh/authorized_keys"
        chown -R --reference="$host/root/$home" "$host/root/$home/.ssh"
    done
    printf '127.0.0.1 localhost\n%s %s\n' "$(address_of "$name")" "$name" >"$host/root/etc/hosts"
    echo "$name" >"$host/root/etc/hostname"
}

drop_disk() {
    umount "$DIR/hosts/$1/root" 2>/dev/null || umount -l "$DIR/hosts/$1/root" 2>/dev/null || :
    umount "$DIR/hosts/$1/disk" 2>/dev/null || umount -l "$DIR/hosts/$1/disk" 2>/dev/null || :
}

# Identity, disk, and a network namespace with one cable to the bridge.
make_host() {
    local name=$1 number=$2 host=$DIR/hosts/$1 ns=kf-$LAB-$1 cable=kf$K.$2
    mkdir -p "$host/disk" "$host/root"
    echo "$number" >"$host/index"
    tr -d - </proc/sys/kernel/random/uuid >"$host/machine-id"
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$host/ssh_host_ed25519_key"
    printf '%s %s\n' "$(address_of "$name")" "$(cut -d' ' -f1,2 "$host/ssh_host_ed25519_key.pub")" \
        "$(address6_of "$name")" "$(cut -d' ' -f1,2 "$host/ssh_host_ed25519_key.pub")" >>"$DIR/known_hosts"
    make_disk "$name"

    ip netns add "$ns"
    ip -n "$NET" link add "$cable" type veth peer name eth0 netns "$ns" address "$(mac_of "$name")"
    ip -n "$NET" link set "$cable" master br0 up
    own_address "$name"
    ip -n "$ns" link set lo up
    ip -n "$ns" link set eth0 up
    # A fixed neighbour entry: a host that vanishes is then a black hole, and not "no route to host" after three seconds.
    ip neigh replace "$(address_of "$name")" lladdr "$(mac_of "$name")" dev "kf$K" nud permanent
}

# Boots it and keeps it: nspawn ends with 133 when the host reboots. CAP_NET_ADMIN: it may give itself addresses, as hosts can.
boot() {
    local host=$DIR/hosts/$1
    rm -f "$host/nspawn.pid"
    setsid bash -c '
        host=$1 name=$2 ns=$3
        while :; do
            systemd-nspawn --quiet --directory="$host/root" --machine="$name" --hostname="$name" --uuid="$(cat "$host/machine-id")" \
                --network-namespace-path="/run/netns/$ns" --capability=CAP_NET_ADMIN --register=no --keep-unit --boot \
                --link-journal=no --console=pipe --resolv-conf=off --timezone=off &
            echo $! >"$host/nspawn.pid"
            code=0
            wait $! || code=$?
            [ $code = 133 ] || break
        done
    ' karmaform-lab "$host" "$1" "kf-$LAB-$1" >>"$host/console.log" 2>&1 </dev/null &
    echo $! >"$host/keeper.pid"
}

# Waits until sshd greets. Boot takes a second or two; a minute means that it never will.
await_ssh() {
    local address until=$((SECONDS + 60))
    address=$(address_of "$1")
    while [ $SECONDS -lt $until ]; do
        if timeout 1 bash -c "exec 3<>/dev/tcp/$address/22 && read -r -t 1 line <&3 && [[ \$line == SSH-* ]]" 2>/dev/null; then
            return
        fi
        sleep 0.1
    done
    tail -n 20 "$DIR/hosts/$1/console.log" >&2
    die "host \"$1\" did not come up within a minute; its console is above"
}

# Pulls the plug: PID 1 dies, so everything in its namespace dies with it.
kill_host() {
    local init nspawn
    nspawn=$(cat "$DIR/hosts/$1/nspawn.pid" 2>/dev/null) || return 0
    # After the machine itself was restarted, that number may be somebody else's.
    if [ "$(cat "/proc/$nspawn/comm" 2>/dev/null)" = systemd-nspawn ]; then
        init=$(init_of "$1") || :
        [ -z "$init" ] || kill -KILL "$init" 2>/dev/null || :
        for _ in $(seq 50); do
            kill -0 "$nspawn" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$nspawn" 2>/dev/null || :
    fi
    own_address "$1" 2>/dev/null || :
    rm -f "$DIR/hosts/$1/nspawn.pid"
}

# A command on it, with only the environment that a login would have.
inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        nsenter --target "$(init_of "$1")" --mount --uts --ipc --net --pid --root --wd -- "${@:2}"
}

# Every process of the host, told by its PID namespace.
signal_all() {
    local init space pid
    init=$(init_of "$1")
    [ -n "$init" ] || die "host \"$1\" is not running"
    space=$(readlink "/proc/$init/ns/pid")
    for pid in /proc/[0-9]*; do
        [ "$(readlink "$pid/ns/pid" 2>/dev/null)" != "$space" ] || kill "-$2" "${pid#/proc/}" 2>/dev/null || :
    done
}

# ---- the lab -----------------------------------------------------------------------------------------------------------

# Takes the first free number K. A number whose lab is gone is free again.
take_number() {
    local k
    for k in $(seq 0 250); do
        if ! mkdir "$LABS/.number-$k" 2>/dev/null; then
            [ ! -d "$LABS/$(cat "$LABS/.number-$k/lab" 2>/dev/null)" ] || continue
        fi
        [ -z "$(ip -o addr show to "$PREFIX.$k.0/24")" ] || continue
        echo "$LAB" >"$LABS/.number-$k/lab"
        echo "$k" >"$DIR/number"
        return
    done
    die "all networks of $PREFIX.0.0/16 are taken"
}

# The bridge has a namespace of its own, so that no firewall of this machine decides what hosts may say to each other.
make_network() {
    ip netns add "$NET"
    ip -n "$NET" link add br0 type bridge
    ip -n "$NET" link set br0 up
    ip link add "kf$K" type veth peer name uplink netns "$NET"
    ip -n "$NET" link set uplink master br0 up
    ip addr add "$PREFIX.$K.1/24" dev "kf$K"
    ip addr add "$(prefix6)::1/64" dev "kf$K" nodad
    ip link set "kf$K" up
    ip neigh replace "$PREFIX.$K.99" lladdr 02:00:00:d3:ff:99 dev "kf$K" nud permanent
}

# A cluster without a node is on this machine itself. A node gets a cable to the hosts' bridge: this machine forwards nothing.
reach() {
    local cluster number space host
    for cluster in "$@"; do
        number=$(cat "$CLUSTERS/$cluster/number" 2>/dev/null) || die "the cluster \"$cluster\" is not up"
        space=kf-kube-$cluster
        if [ -e "/run/netns/$space" ]; then
            ! ip -n "$NET" link show "kf$K.node" up >/dev/null 2>&1 || ! ip -n "$space" link show hosts >/dev/null 2>&1 || continue
            ip -n "$NET" link add "kf$K.node" type veth peer name hosts netns "$space" 2>/dev/null ||
                die "the lab \"$LAB\" reaches a cluster with a node already, or \"$cluster\" a lab"
            ip -n "$NET" link set "kf$K.node" master br0 up
            ip -n "$space" addr add "$PREFIX.$K.98/24" dev hosts
            ip -n "$space" link set hosts up
            printf 'route replace %s via %s\n' "$KUBE_PREFIX.$number.2/32" "$PREFIX.$K.98" "$POD_PREFIX.$number.0/24" "$PREFIX.$K.98"
        else
            printf 'route replace %s via %s\n' "$KUBE_PREFIX.$number.1/32" "$PREFIX.$K.1"
        fi >>"$DIR/routes"
    done
    for host in "$DIR"/hosts/*/; do
        ip -n "kf-$LAB-$(basename "$host")" -batch "$DIR/routes"
    done
}

write_env() {
    local hosts= name
    for name in "$@"; do
        hosts=$hosts${hosts:+,}$name=$(address_of "$name")
    done
    cat >"$DIR/env" <<ENV
export KARMAFORM_LAB="$LAB"
export KARMAFORM_TEST_HOSTS="$hosts"
export KARMAFORM_TEST_KEY="$DIR/key"
export KARMAFORM_TEST_KNOWN_HOSTS="$DIR/known_hosts"
export KARMAFORM_TEST_BLACKHOLE="$PREFIX.$K.99"
export KARMAFORM_TEST_LAB="$HERE/lab.sh"
ENV
}

up() {
    [ $# -gt 0 ] || die "which hosts?"
    local why name number=0
    why=$(lab_possible) || die "no lab here: $why"
    mkdir -p "$LABS"
    mkdir "$DIR" 2>/dev/null || die "the lab \"$LAB\" is already up (lab.sh down ends it)"
    local base
    base=$("$HERE/base.sh") || { rmdir "$DIR"; exit 1; }
    trap 'down' ERR
    echo "$base" >"$DIR/base"
    chmod 700 "$DIR"
    mkdir "$DIR/hosts"
    take_number
    K=$(cat "$DIR/number")
    make_network
    ssh-keygen -q -t ed25519 -N '' -C karmaform-lab -f "$DIR/key"
    for name in "$@"; do
        number=$((number + 1))
        case $name in *[!a-z0-9-]* | "") die "a host's name is made of a-z, 0-9 and -" ;; esac
        make_host "$name" "$number"
        boot "$name"
    done
    for name in "$@"; do
        await_ssh "$name"
    done
    write_env "$@"
    trap - ERR
    echo "$DIR/env"
}

down() {
    [ -d "$DIR" ] || return 0
    local host name keeper
    K=$(cat "$DIR/number" 2>/dev/null || :)
    for host in "$DIR"/hosts/*/; do
        [ -d "$host" ] || continue
        name=$(basename "$host")
        kill_host "$name"
        keeper=$(cat "$host/keeper.pid" 2>/dev/null || :)
        if grep -qs karmaform-lab "/proc/$keeper/cmdline"; then kill -KILL "$keeper" 2>/dev/null || :; fi
        drop_disk "$name"
        ip netns del "kf-$LAB-$name" 2>/dev/null || :
    done
    if [ -n "$K" ]; then
        ip link del "kf$K" 2>/dev/null || :
        ip netns del "$NET" 2>/dev/null || :
        rm -rf "$LABS/.number-$K"
    fi
    rm -rf "$DIR"
}

NET=kf-$LAB.net
K=$(cat "$DIR/number" 2>/dev/null || :)
command=${1:-}
shift || :
case $command in
    check)
        why=$(lab_possible) || { echo "SKIPPED (no lab): $why" >&2; exit 77; }
        ;;
    up) up "$@" ;;
    down) down ;;
    env | reach | exec | files | reboot | reset | kill | start | freeze | thaw | blackhole | heal)
        [ -e "$DIR/env" ] || die "the lab \"$LAB\" is not up"
        case $command in env | reach) ;; *) index_of "${1:?which host?}" >/dev/null ;; esac
        case $command in
            env) echo "$DIR/env" ;;
            reach) reach "$@" ;;
            exec) inside "$@" ;;
            files)
                # Backups of /etc/passwd and the like have names that end with a dash.
                inside "$1" sh -euc 'cd /
                    set -- etc home opt root srv usr/local var -xdev "(" -path var/log -o -path var/lib/systemd -o -path var/tmp \
                        -o -path var/cache -o -path var/lib/apt -o -path var/lib/dpkg -o -path var/lib/ucf -o -name .pwd.lock -o -name "*-" ")" -prune -o
                    { find "$@" -printf "%p %y %m %u %g %l\n"; find "$@" -type f -print0 | xargs -0 sha256sum | sed "s/\(.*\)  \(.*\)/\2 sha256 \1/"; } |
                        LC_ALL=C sort'
                ;;
            reboot)
                nspawn=$(cat "$DIR/hosts/$1/nspawn.pid")
                inside "$1" systemctl reboot
                while kill -0 "$nspawn" 2>/dev/null; do sleep 0.1; done
                await_ssh "$1"
                ;;
            reset)
                kill_host "$1"
                ip -n "$NET" link set "kf$K.$(index_of "$1")" master br0
                drop_disk "$1"
                make_disk "$1"
                boot "$1"
                await_ssh "$1"
                ;;
            kill) kill_host "$1" ;;
            start) boot "$1" && await_ssh "$1" ;;
            freeze) signal_all "$1" STOP ;;
            thaw) signal_all "$1" CONT ;;
            blackhole) ip -n "$NET" link set "kf$K.$(index_of "$1")" nomaster ;;
            heal) ip -n "$NET" link set "kf$K.$(index_of "$1")" master br0 ;;
        esac
        ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d' >&2; exit 2 ;;
esac
