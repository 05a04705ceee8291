# What `--node` adds to a cluster: a network namespace that all of it runs in, and one node with its own process and mount namespaces
# (inside.sh), so that containers, mounts and firewall rules end with them. Sourced by kube.sh.

# Prints why no node can run here, and fails; silent success otherwise.
node_possible() {
    local root
    unshare --mount --net --pid --uts --ipc --fork true 2>/dev/null || { echo "namespaces are not permitted"; return 1; }
    unshare --mount sh -c 'mount -t tmpfs tmpfs /mnt && mkdir /mnt/a /mnt/b /mnt/c && mount -t overlay o -o lowerdir=/mnt/a:/mnt/b /mnt/c' \
        2>/dev/null || { echo "mounting is not permitted"; return 1; }
    unshare --net ip link add kf-probe type veth peer name kf-peer 2>/dev/null || { echo "no network devices here"; return 1; }
    [ -n "$(cgroup_roots)" ] || { echo "no control groups here"; return 1; }
    for root in $(cgroup_roots); do
        [ -w "$root" ] || { echo "control groups can't be made in $root"; return 1; }
    done
}

# The roots of the control group hierarchies: one for v2, one for each controller for v1.
cgroup_roots() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo /sys/fs/cgroup
    else
        find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d
    fi
}

# A cable to the cluster's network namespace: .1 is this machine, .2 the cluster. This machine gets routes to pods and services; the cluster
# gets one to this machine's other clusters and none to anywhere else.
make_node_network() {
    ADDRESS=$KUBE_PREFIX.$NUMBER.2
    PODS=$POD_PREFIX.$NUMBER.0/24
    ip netns add "$NET"
    ip link add "kfk$NUMBER" type veth peer name uplink netns "$NET"
    ip addr add "$KUBE_PREFIX.$NUMBER.1/24" dev "kfk$NUMBER"
    ip link set "kfk$NUMBER" up
    # Between clusters this machine forwards; only on their cables, so that nothing changes for the rest of it.
    echo 1 2>/dev/null >"/proc/sys/net/ipv4/conf/kfk$NUMBER/forwarding" || :
    ip -n "$NET" link set lo up
    ip -n "$NET" addr add "$ADDRESS/24" dev uplink
    ip -n "$NET" link set uplink up
    ip -n "$NET" route add "$KUBE_PREFIX.0.0/16" via "$KUBE_PREFIX.$NUMBER.1"
    ip -n "$NET" route add "$SERVICES" via "$KUBE_PREFIX.$NUMBER.1" # kube-proxy sends it elsewhere, but only what has a route at all
    ip route add "$PODS" via "$ADDRESS"
    ip route add "$SERVICES" via "$ADDRESS"
}

make_node_pki() {
    kubeconfig scheduler /CN=system:kube-scheduler
    kubeconfig kubelet "/O=system:nodes/CN=system:node:$NAME"
    kubeconfig proxy /CN=system:kube-proxy
    certificate kubelet-serving ca "/O=system:nodes/CN=system:node:$NAME" serverAuth "DNS:$NAME,IP:$ADDRESS"
}

write_node_config() {
    mkdir "$DIR/node" "$DIR/node/cni" "$DIR/node/etc" "$DIR/logs/pods"
    printf '127.0.0.1 localhost\n%s %s\n' "$ADDRESS" "$NAME" >"$DIR/node/etc/hosts"
    echo "nameserver $ADDRESS" >"$DIR/node/etc/resolv.conf"
    chmod 755 "$DIR/node/etc"
    chmod 644 "$DIR/node/etc/"*
    pack_image "$BUSYBOX" "$DIR/node/busybox.tar" "$TOOLS/usr/bin/busybox"
    cat >"$DIR/node/containerd.toml" <<CONFIG
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$BUSYBOX"
  # Where the kernel refuses lower values, pods otherwise fail with "can't get final child's PID from pipe: EOF".
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "$DIR/node/cni"
CONFIG
    # Routed and not bridged: what goes from pod to pod by a service's address then needs nothing of the kernel's bridge.
    cat >"$DIR/node/cni/lab.conflist" <<CONFIG
{
  "cniVersion": "0.4.0",
  "name": "lab",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": true,
      "ipam": { "type": "host-local", "ranges": [[{ "subnet": "$PODS" }]], "routes": [{ "dst": "0.0.0.0/0" }], "dataDir": "/run/cni" }
    },
    { "type": "portmap", "capabilities": { "portMappings": true } }
  ]
}
CONFIG
    cat >"$DIR/node/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: "$DIR/pki/ca.crt" } }
authorization: { mode: Webhook }
tlsCertFile: "$DIR/pki/kubelet-serving.crt"
tlsPrivateKeyFile: "$DIR/pki/kubelet-serving.key"
clusterDNS: ["$ADDRESS"]
clusterDomain: cluster.local
cgroupDriver: cgroupfs
cgroupRoot: "/$CGROUP"
failSwapOn: false
# Looks every second (and not every ten) whether the node is ready, and tells when that changes.
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 5m
# Goes through each pod every ten seconds (and not every minute): a Secret that has changed is seen in it then.
syncFrequency: 10s
# A full disk of this machine must not evict anything, and images that were imported can't be pulled again.
evictionHard: { memory.available: 100Mi, nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%" }
imageGCHighThresholdPercent: 100
CONFIG
    # From 1.35 on kubelet wants to be told that v1 is meant; before 1.31 it doesn't know the word.
    [ "$MINOR" -lt 31 ] || echo "failCgroupV1: false" >>"$DIR/node/kubelet.yaml"
}

start_node() {
    local runtime
    runtime=$(flag kubelet container-runtime=remote)
    start node env DIR="$DIR" NAME="$NAME" ADDRESS="$ADDRESS" PODS="$PODS" CGROUP="$CGROUP" TOOLS="$TOOLS" KUBERNETES="$KUBERNETES" \
        RUNTIME="$runtime" \
        unshare --mount --pid --uts --ipc --fork --kill-child --mount-proc bash "$HERE/kube/inside.sh"
}

start_scheduler() {
    local insecure
    insecure=$(flag kube-scheduler port=0)
    start kube-scheduler "$KUBERNETES/kube-scheduler" --kubeconfig="$DIR/scheduler.kubeconfig" --bind-address="$ADDRESS" $insecure \
        --leader-elect=false --authentication-kubeconfig="$DIR/scheduler.kubeconfig" --authorization-kubeconfig="$DIR/scheduler.kubeconfig"
}

node_ready() { get "/api/v1/nodes/$NAME" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'; }

# PID 1 of the node as this machine sees it: the child of its unshare.
node_init() {
    local pid init=
    ! pid=$(running "$DIR/pids/node") || read -r init _ <"/proc/$pid/task/$pid/children" || :
    echo "$init"
}

# in_node COMMAND...
in_node() {
    local init
    init=$(node_init)
    [ -n "$init" ] || die "the cluster \"$NAME\" has no node (kube.sh up $NAME --node)"
    nsenter --target "$init" --mount --net --pid --uts --ipc --root --wd -- \
        env PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# After its processes: what doesn't end with them.
drop_node() {
    local root
    ip link del "kfk$1" 2>/dev/null || :
    ip netns del "$NET" 2>/dev/null || :
    for _ in $(seq 50); do # a control group is busy until the last of its dead processes is gone
        for root in $(cgroup_roots); do
            [ ! -d "$root/$CGROUP" ] || find "$root/$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || :
        done
        [ -n "$(find /sys/fs/cgroup -maxdepth 2 -name "$CGROUP")" ] || break
        sleep 0.1
    done
}
