hosts = {
  a = "10.0.0.11"
  b = "10.0.0.12"
  c = "10.0.0.13"
}
private_key_file = "/root/.ssh/id_ed25519"
known_hosts_file = "/root/.ssh/known_hosts"
etcd_version     = "3.5.16"
etcd_source      = "etcd-v3.5.16-linux-amd64.tar.gz"

settings = {
  quota-backend-bytes = 4294967296
}
