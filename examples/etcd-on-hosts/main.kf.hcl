# An etcd cluster with TLS everywhere, on plain Linux hosts that are reached over SSH.

data "ssh_host" "etcd" {
  for_each = var.hosts

  address          = each.value
  user             = var.ssh_user
  private_key_file = pathexpand(var.private_key_file)
  known_hosts_file = pathexpand(var.known_hosts_file)
}

resource "etcd_cluster" "main" {
  version  = var.etcd_version
  source   = var.etcd_source
  hosts    = data.ssh_host.etcd
  settings = var.settings
}
