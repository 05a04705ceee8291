# The certificates and kubeconfigs of one lab cluster: as many authorities, and as different, as kubeadm makes.
# Sourced by kube.sh; reads DIR, NAME, ADDRESS and SERVICES, writes DIR/pki and DIR/*.kubeconfig.

# openssl req needs a configuration; the machine's own would add extensions of its own.
openssl_req() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 365 -config "$DIR/pki/openssl.cnf" "$@" \
        2>>"$DIR/logs/openssl.log"
}

# authority FILE COMMON_NAME
authority() {
    openssl_req -keyout "$DIR/pki/$1.key" -out "$DIR/pki/$1.crt" -subj "/CN=$2" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign
}

# certificate FILE AUTHORITY SUBJECT USAGE [SUBJECT_ALTERNATIVE_NAMES]
certificate() {
    openssl_req -keyout "$DIR/pki/$1.key" -out "$DIR/pki/$1.crt" -CA "$DIR/pki/$2.crt" -CAkey "$DIR/pki/$2.key" -subj "$3" \
        -addext basicConstraints=critical,CA:FALSE -addext keyUsage=critical,digitalSignature,keyEncipherment \
        -addext extendedKeyUsage="$4" ${5:+-addext subjectAltName="$5"}
}

# kubeconfig FILE SUBJECT: a user of the cluster, everything inline so that the file can be handed on.
kubeconfig() {
    certificate "$1" ca "$2" clientAuth
    cat >"$DIR/$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters:
- name: $NAME
  cluster:
    server: https://$ADDRESS:6443
    certificate-authority-data: $(base64 -w0 "$DIR/pki/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$DIR/pki/$1.crt")
    client-key-data: $(base64 -w0 "$DIR/pki/$1.key")
contexts:
- name: $NAME
  context:
    cluster: $NAME
    user: $1
current-context: $NAME
CONFIG
}

make_pki() {
    local local_names=DNS:localhost,IP:127.0.0.1,IP:$ADDRESS
    mkdir "$DIR/pki"
    printf '[req]\ndistinguished_name = name\n[name]\n' >"$DIR/pki/openssl.cnf"
    authority ca kubernetes
    authority etcd-ca etcd-ca
    authority front-proxy-ca front-proxy-ca
    certificate etcd etcd-ca /CN=etcd serverAuth,clientAuth "$local_names"
    certificate apiserver-etcd etcd-ca /CN=kube-apiserver-etcd-client clientAuth
    certificate apiserver ca /CN=kube-apiserver serverAuth "$local_names,DNS:$NAME,IP:$(first_service)$(printf ',DNS:kubernetes%s' \
        '' .default .default.svc .default.svc.cluster.local)"
    certificate apiserver-kubelet ca /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
    certificate front-proxy front-proxy-ca /CN=front-proxy-client clientAuth
    openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$DIR/pki/service-accounts.key" 2>>"$DIR/logs/openssl.log"
    openssl pkey -in "$DIR/pki/service-accounts.key" -pubout -out "$DIR/pki/service-accounts.pub"
    kubeconfig admin /O=system:masters/CN=kubernetes-admin
    kubeconfig controller-manager /CN=system:kube-controller-manager
}
