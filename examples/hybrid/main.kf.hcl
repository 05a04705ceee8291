# etcd on plain Linux hosts, and the Karmada control plane that uses it in a Kubernetes cluster.

data "ssh_host" "etcd" {
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
  hosts    = data.ssh_host.etcd
  settings = var.settings
}

data "kubernetes_cluster" "host" {
  kubeconfig_file = pathexpand(var.kubeconfig)
}

resource "karmada_control_plane" "main" {
  version      = var.karmada_version
  kube_version = var.kube_version
  etcd         = merge(etcd_cluster.main.client, { prefix = var.etcd_prefix })
  crds         = var.crds

  kubernetes {
    cluster          = data.kubernetes_cluster.host
    namespace        = var.namespace
    create_namespace = true
  }

  dynamic "addon" {
    for_each = toset(var.addons)
    labels   = [addon.value]
    content {}
  }
}
