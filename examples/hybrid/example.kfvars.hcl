hosts = {
  a = "10.0.0.11"
  b = "10.0.0.12"
  c = "10.0.0.13"
}
private_key_file = "/root/.ssh/id_ed25519"
known_hosts_file = "/root/.ssh/known_hosts"
etcd_version     = "3.6.8"
etcd_source      = "etcd-v3.6.8-linux-amd64.tar.gz"
kubeconfig       = "/root/.kube/config"
karmada_version  = "1.19.0"
crds             = "https://github.com/karmada-io/karmada/releases/download/v1.19.0/crds.tar.gz"
