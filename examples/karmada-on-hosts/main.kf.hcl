# A Karmada control plane with its own etcd cluster, on plain Linux hosts that are reached over SSH.

data "ssh_host" "cp" {
  for_each = var.hosts

  address          = each.value
  user             = var.ssh_user
  private_key_file = pathexpand(var.private_key_file)
  known_hosts_file = pathexpand(var.known_hosts_file)
  required         = false # one that is away is told of, and holds up nothing that is to be done elsewhere
}

resource "etcd_cluster" "main" {
  version  = var.etcd_version
  source   = var.etcd_source
  hosts    = data.ssh_host.cp
  settings = var.settings

  source_sha256 = var.etcd_source_sha256
}

resource "karmada_control_plane" "main" {
  name           = var.name
  version        = var.karmada_version
  kube_version   = var.kube_version
  etcd           = etcd_cluster.main.client
  crds           = var.crds
  hosts          = data.ssh_host.cp
  karmada_source = var.karmada_source
  kube_source    = var.kube_source

  karmada_source_sha256 = var.karmada_source_sha256
  kube_source_sha256    = var.kube_source_sha256

  dynamic "load_balancer" {
    for_each = var.vip == null ? [] : [var.vip]
    content {
      vip = load_balancer.value
    }
  }

  dynamic "addon" {
    for_each = toset(var.addons)
    labels   = [addon.value]
    content {}
  }
}
