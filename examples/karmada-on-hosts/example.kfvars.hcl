hosts = {
  a = "10.0.0.11"
  b = "10.0.0.12"
  c = "10.0.0.13"
}
private_key_file   = "/root/.ssh/id_ed25519"
known_hosts_file   = "/root/.ssh/known_hosts"
etcd_version       = "3.6.8"
etcd_source        = "etcd-v3.6.8-linux-amd64.tar.gz"
karmada_version    = "1.19.0"
kube_source        = "https://dl.k8s.io/v{version}/bin/linux/{arch}/{program}"
kube_source_sha256 = "https://dl.k8s.io/v{version}/bin/linux/{arch}/{program}.sha256"
crds               = "https://github.com/karmada-io/karmada/releases/download/v1.19.0/crds.tar.gz"
vip                = "10.0.0.100"
addons             = ["search"]
