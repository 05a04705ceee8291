# A Karmada control plane with its own etcd cluster, in a Kubernetes cluster.

data "kubernetes_cluster" "host" {
  kubeconfig_file = pathexpand(var.kubeconfig)
  context         = var.context
}

resource "etcd_cluster" "main" {
  # The key is a part of the cluster's name, so that several instances can share a namespace.
  for_each = toset([var.name])

  version = var.etcd_version
  members = var.etcd_members

  kubernetes {
    cluster      = data.kubernetes_cluster.host
    namespace    = var.namespace
    registry     = var.kube_registry
    storage      = var.storage
    storage_size = "10Gi"
  }
}

resource "karmada_control_plane" "main" {
  name             = var.name
  version          = var.karmada_version
  kube_version     = var.kube_version
  etcd             = etcd_cluster.main[var.name].client
  crds             = var.crds
  karmada_registry = var.karmada_registry
  kube_registry    = var.kube_registry

  kubernetes {
    cluster   = data.kubernetes_cluster.host
    namespace = var.namespace
  }

  service {
    type = var.service_type
  }

  dynamic "addon" {
    for_each = toset(var.addons)
    labels   = [addon.value]
    content {}
  }
}
