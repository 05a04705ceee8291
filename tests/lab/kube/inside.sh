#!/bin/bash
# PID 1 of a lab cluster's node, in process, mount and network namespaces of its own: containerd, kubelet, kube-proxy and name service.
# Started by node.sh, which gives DIR, NAME, ADDRESS, PODS, CGROUP, TOOLS, KUBERNETES and RUNTIME. Ends, and thereby all of the node, when one of
# them ends. What is mounted here nobody else sees.
set -euo pipefail
umask 022
CPUS=16 # at least so many are what pods may ask for
hostname "$NAME"

# ---- a file system of its own ------------------------------------------------------------------------------------------

# Tools stand where they would be if they were installed; state goes where containerd and kubelet always keep it, but in memory.
mount -t overlay kf-tools -o "lowerdir=$TOOLS/usr:/usr" /usr
mount -t overlay kf-etc -o "lowerdir=$DIR/node/etc:/etc" /etc # its own hosts and resolv.conf
mkdir "$DIR/node/kubernetes"
mount --bind "$KUBERNETES" "$DIR/node/kubernetes"
# Other labs' mounts are let go, or their disks and networks would live on in here after they have ended.
cover() { # cover FOLDER NAME: an empty file system in its place
    awk -v folder="$1/" 'index($5, folder) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r mount; do
        umount --lazy "$mount" 2>/dev/null || :
    done
    mount -t tmpfs -o mode=755 "$2" "$1"
}
cover /var/lib kf-lib
cover /var/log kf-log
mkdir /var/lib/keep
mount --rbind "$DIR" /var/lib/keep
cover /run kf-run
mkdir -p "$DIR" /run/lock /run/netns /run/tmp /var/log/pods
mount --move /var/lib/keep "$DIR"
rmdir /var/lib/keep
mount --bind "$DIR/logs/pods" /var/log/pods
mount --make-rshared /
export AWS_EC2_METADATA_DISABLED=true # kubelet would look for registry credentials there
export TMPDIR=/run/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd "$DIR"

# kubelet sets these for the whole machine, unless it finds them as it likes them.
mkdir /run/sysctl
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=/run/sysctl/$(tr / . <<<"${setting%=*}")
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${setting%=*}"
done

# kubelet counts processors here, and the scheduler by that what pods ask for. Ask they may as on a node of the usual size; they share what
# there is. Whatever more kubelet finds out about processors is the truth.
cpus=/sys/devices/system/node
if [ -e "$cpus/node0/cpu0" ]; then
    mkdir -p /run/node
    cp "$cpus/node0/meminfo" /run/node/
    mount -t tmpfs -o mode=755 kf-cpus "$cpus"
    mkdir -p "$cpus/node0/hugepages"
    cp /run/node/meminfo "$cpus/node0/"
    for ((cpu = 0; cpu < CPUS || cpu < $(nproc); cpu++)); do
        mkdir -p "$cpus/node0/cpu$cpu/topology"
        echo 1 >"$cpus/node0/cpu$cpu/online"
        echo 0 >"$cpus/node0/cpu$cpu/topology/physical_package_id"
        echo "$cpu" >"$cpus/node0/cpu$cpu/topology/core_id"
    done
fi

# The control group that kubelet makes those of pods in.
for root in /sys/fs/cgroup/*/; do
    [ ! -e /sys/fs/cgroup/cgroup.controllers ] || root=/sys/fs/cgroup/
    [ ! -L "${root%/}" ] || continue
    mkdir -p "$root$CGROUP"
    for file in cpuset.cpus cpuset.mems; do # of v1: empty, and then no process may enter
        [ ! -s "$root$file" ] || [ -n "$(cat "$root$CGROUP/$file" 2>/dev/null)" ] || cat "$root$file" >"$root$CGROUP/$file"
    done
    [ ! -e /sys/fs/cgroup/cgroup.controllers ] || break
done

# Whichever of the kernel's two firewalls works.
kind=nft
iptables-nft -t nat -S >/dev/null 2>&1 || kind=legacy
mkdir /run/bin
for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -s "/usr/sbin/${name/tables/tables-$kind}" "/run/bin/$name"
done
PATH=/run/bin:$PATH

# ---- its processes -----------------------------------------------------------------------------------------------------

NAMES=" "
daemon() {
    "${@:2}" >>"$DIR/logs/$1.log" 2>&1 </dev/null &
    NAMES="$NAMES$!=$1 "
}

# The cluster's names, kept as dnsmasq reads them from Services and Endpoints. (No SRV and no ExternalName: nobody has asked for them yet.)
kubectl() { "$DIR/node/kubernetes/kubectl" --kubeconfig="$DIR/admin.kubeconfig" --cache-dir=/run/kubectl "$@"; }
TEMPLATE='{{range .items}}{{$name := printf "%s.%s.svc.cluster.local" .metadata.name .metadata.namespace -}}
{{if eq .kind "Service"}}{{printf "service %s %s\n" $name (or .spec.clusterIP "-")}}
{{- else}}{{range .subsets}}{{range .addresses}}{{printf "endpoint %s %s %s\n" $name .ip (or .hostname "-")}}{{end}}{{end}}
{{- end}}{{end}}'
write_names() {
    kubectl get services,endpoints --all-namespaces -o go-template="$TEMPLATE" | awk '
        $1 == "service" && $3 == "None" { headless[$2] = 1 }
        $1 == "service" && $3 ~ /^[0-9]/ { print $3, $2 }
        $1 == "endpoint" && $2 in headless { print $3, $2 (($4 == "-") ? "" : " " $4 "." $2) }' >/run/names.new || return
    if ! cmp -s /run/names.new /run/names; then
        mv /run/names.new /run/names
        kill -HUP "$(cat /run/dnsmasq.pid)"
    fi
}
changes() {
    while :; do
        kubectl get "$1" --all-namespaces --watch -o name || :
        sleep 1
    done
}
keep_names() {
    { changes services & changes endpoints; } | while read -r _; do
        while read -r -t 0.05 _; do :; done # many at a time
        until write_names; do sleep 0.2; done # or the change would only be seen with the next one
    done
}

daemon containerd containerd --config "$DIR/node/containerd.toml"
until ctr version >/dev/null 2>&1; do
    kill -0 $! || { echo "containerd ended; see logs/containerd.log"; exit 1; }
    sleep 0.1
done
ctr --namespace k8s.io images import "$DIR/node/busybox.tar" >/dev/null
daemon kubelet "$DIR/node/kubernetes/kubelet" --config="$DIR/node/kubelet.yaml" --kubeconfig="$DIR/kubelet.kubeconfig" \
    --hostname-override="$NAME" --node-ip="$ADDRESS" --volume-plugin-dir=/var/lib/kubelet/volumeplugins \
    $RUNTIME --container-runtime-endpoint=unix:///run/containerd/containerd.sock
# Connection tracking's limits are this machine's.
daemon kube-proxy "$DIR/node/kubernetes/kube-proxy" --kubeconfig="$DIR/proxy.kubeconfig" --hostname-override="$NAME" --proxy-mode=iptables \
    --bind-address="$ADDRESS" --cluster-cidr="$PODS" \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
: >/run/names
daemon dns dnsmasq --conf-file=/dev/null --keep-in-foreground --user=root --pid-file=/run/dnsmasq.pid \
    --bind-interfaces --listen-address="$ADDRESS" --no-resolv --no-hosts --addn-hosts=/run/names --local=/cluster.local/ --log-facility=-
daemon dns keep_names

code=0
wait -n -p ended || code=$?
[[ $NAMES =~ \ $ended=([^ ]*) ]]
echo "${BASH_REMATCH[1]} ended with $code; see logs/${BASH_REMATCH[1]}.log"
