#!/bin/bash
# A Karmada control plane on three hosts, from nothing and without changes, beside Ansible: ansible.sh BINARY
# Both put the same programs under systemd on the same hosts, which are as fresh for one as for the other, and the same objects into the
# Karmada API: those that karmaform has made there are what the playbook applies. ansible/playbook.yml is what an administrator would
# write, with Ansible's own advice for speed (pipelining, no facts, as many forks as there are hosts).
# It wants a lab of three hosts in the environment (with.sh), and CRDs in KARMAFORM_SHARED_DATA. KARMAFORM_STAND_IN names the stand-in for
# Karmada's programs; KARMAFORM_TEST_KARMADA_BIN and KARMAFORM_TEST_KUBE_BIN, folders with real ones.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../lab/common.sh"
. "$HERE/common.sh"
BINARY=$(realpath "${1:?the karmaform binary}") KARMADA=1.19.0
CRDS=${KARMAFORM_SHARED_DATA:?a folder with the archive of CRDs}/karmada-crds-v1.19.tar.gz
IFS=, read -r -a HOSTS <<<"${KARMAFORM_TEST_HOSTS:?a lab of hosts}"
LAB=$KARMAFORM_TEST_LAB
KUBE_BIN=${KARMAFORM_TEST_KUBE_BIN:-$("$HERE/../lab/kubernetes-build.sh")}
KUBE=$("$KUBE_BIN/kube-apiserver" --version) && KUBE=${KUBE##*v}
read -r ETCD ARCHIVE <<<"$("$HERE/../lab/etcd.sh" | tail -n 1)"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

reset() {
    local host
    for host in "${HOSTS[@]}"; do "$LAB" reset "${host%%=*}"; done
}

# The same small program under all names, as the tests have it.
KARMADA_BIN=${KARMAFORM_TEST_KARMADA_BIN:-$WORK/karmada}
if [ -z "${KARMAFORM_TEST_KARMADA_BIN:-}" ]; then
    mkdir "$KARMADA_BIN"
    strip -o "$KARMADA_BIN/stand-in" "${KARMAFORM_STAND_IN:?the stand-in for the programs of Karmada}"
    for name in aggregated-apiserver controller-manager scheduler webhook; do ln "$KARMADA_BIN/stand-in" "$KARMADA_BIN/karmada-$name"; done
fi

ANSIBLE=$CACHE/ansible
[ -x "$ANSIBLE/bin/ansible-playbook" ] || { python3 -m venv "$ANSIBLE" && "$ANSIBLE/bin/pip" install --quiet ansible-core; }

# Python on a host, from this machine: Ansible can't do without it, and hosts have no mirror.
give_python() {
    local python libraries
    python=$(basename "$(realpath /usr/bin/python3)")
    mapfile -t libraries < <(ldd "/usr/bin/$python" "/usr/lib/$python"/lib-dynload/*.so | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u)
    tar -C / --exclude='*/test' --exclude=__pycache__ --dereference -cf - "usr/bin/$python" "usr/lib/$python" "${libraries[@]#/}" 2>/dev/null |
        "$LAB" exec "$1" tar -C / --skip-old-files -xf -
    "$LAB" exec "$1" ln -sf "$python" /usr/bin/python3
}

# ---- karmaform ---------------------------------------------------------------------------------------------------------

mkdir "$WORK/ours" "$WORK/objects"
cp "$HERE"/../../examples/karmada-on-hosts/*.kf.hcl "$WORK/ours"
{
    echo "hosts = {"
    for host in "${HOSTS[@]}"; do echo "  ${host%%=*} = \"${host#*=}\""; done
    cat <<HCL
}
private_key_file = "$KARMAFORM_TEST_KEY"
known_hosts_file = "$KARMAFORM_TEST_KNOWN_HOSTS"
etcd_version     = "$ETCD"
etcd_source      = "$ARCHIVE"
name             = "demo"
karmada_version  = "$KARMADA"
kube_version     = "$KUBE"
karmada_source   = "$KARMADA_BIN/{program}"
kube_source      = "$KUBE_BIN/{program}"
crds             = "$CRDS"
HCL
} >"$WORK/ours/bench.auto.kfvars.hcl"
ours() { (cd "$WORK/ours" && "$BINARY" "$@"); }

say "karmaform"
reset
timed ours apply -auto-approve
install=$seconds
timed ours plan -detailed-exitcode
same=$seconds

# What is inside the Karmada API, for the playbook to make.
ours output -raw kubeconfig >"$WORK/kubeconfig"
get() { HOME=$WORK "$KUBE_BIN/kubectl" --kubeconfig "$WORK/kubeconfig" get -A -o json "$@"; }
MADE="--selector=app.kubernetes.io/managed-by=karmaform"
get namespaces $MADE >"$WORK/objects/1.json"
get customresourcedefinitions >"$WORK/objects/2.json"
get services,configmaps,apiservices,validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles,clusterrolebindings,roles,rolebindings \
    $MADE >"$WORK/objects/3.json"

# ---- Ansible -----------------------------------------------------------------------------------------------------------

say "Ansible"
reset
mkdir "$WORK/pki"
for host in "${HOSTS[@]}"; do give_python "${host%%=*}"; done
cat >"$WORK/ansible.cfg" <<CFG
[defaults]
inventory = $WORK/hosts.ini
forks = ${#HOSTS[@]}
gathering = explicit
interpreter_python = /usr/bin/python3
local_tmp = $WORK/tmp
[ssh_connection]
pipelining = True
ssh_args = -o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile=$KARMAFORM_TEST_KNOWN_HOSTS
control_path_dir = $WORK/cp
CFG
{
    echo "[planes]"
    for host in "${HOSTS[@]}"; do echo "${host%%=*} ansible_host=${host#*=}"; done
    cat <<INI
[planes:vars]
ansible_user=root
ansible_ssh_private_key_file=$KARMAFORM_TEST_KEY
INI
} >"$WORK/hosts.ini"
# The authority is the playbook's own, and the objects must know it.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=ca -keyout "$WORK/pki/ca.key" -out "$WORK/pki/ca.crt" 2>/dev/null
CA=$(base64 -w0 "$WORK/pki/ca.crt") python3 - "$WORK/objects"/*.json <<'PYTHON'
import json, os, re, sys

for path in sys.argv[1:]:
    with open(path) as file:
        listed = json.load(file)
    for item in listed["items"]:
        item.pop("status", None)
        for name in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"]:
            item["metadata"].pop(name, None)
    text = json.dumps(listed)
    text = re.sub(r'("caBundle": |certificate-authority-data: )"?[A-Za-z0-9+/=]{400,}"?',
                  lambda m: m[1] + (f'"{os.environ["CA"]}"' if m[1].startswith('"') else os.environ["CA"]), text)
    with open(path, "w") as file:
        file.write(text)
PYTHON
cat >"$WORK/given.json" <<JSON
{ "pki": "$WORK/pki", "etcd_archive": "$ARCHIVE", "karmada_bin": "$KARMADA_BIN", "kube_bin": "$KUBE_BIN", "kubectl": "$KUBE_BIN/kubectl",
  "objects": ["$WORK/objects/1.json", "$WORK/objects/2.json", "$WORK/objects/3.json"] }
JSON
theirs() {
    HOME=$WORK ANSIBLE_CONFIG=$WORK/ansible.cfg "$ANSIBLE/bin/ansible-playbook" -e "@$WORK/given.json" "$HERE/ansible/playbook.yml"
}
timed theirs
their_install=$seconds
timed theirs
their_same=$seconds
grep -q 'changed=[1-9]' "$WORK/out" && { tail -n 20 "$WORK/out"; die "the second run of the playbook changes something"; }

row() { awk "BEGIN { printf \"%-20s Ansible %6.1f s  karmaform %6.1f s  (%.1f times as fast, at least 10)\\n\", \"$1\", $2, $3, $2 / $3 }"; }
echo "A Karmada control plane on ${#HOSTS[@]} hosts, Kubernetes $KUBE, $("$ANSIBLE/bin/ansible" --version | sed -n '1s/ansible //p')"
row "from nothing" "$their_install" "$install"
row "without changes" "$their_same" "$same"
