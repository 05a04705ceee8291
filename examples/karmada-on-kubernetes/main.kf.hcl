# A Karmada control plane with its own etcd cluster, in a Kubernetes cluster.

data "kubernetes_cluster" "host" {
  kubeconfig_file = pathexpand(var.kubeconfig)
  context         = var.context
}

# Made if it is not there yet. One that is there stays as it is, and stays when all the rest goes.
resource "kubernetes_object" "namespace" {
  cluster = data.kubernetes_cluster.host.connection
  shared  = true
  timeout = 300
  manifest = {
    apiVersion = "v1"
    kind       = "Namespace"
    metadata   = { name = var.namespace }
  }
}

resource "etcd_cluster" "main" {
  version = var.etcd_version

  kubernetes {
    cluster      = data.kubernetes_cluster.host
    name         = "${var.name}-etcd"
    namespace    = var.namespace
    members      = var.etcd_members
    registry     = var.kube_registry
    storage      = var.storage
    storage_size = var.storage == "emptyDir" ? null : "10Gi"
    nodes        = var.storage == "hostPath" ? data.kubernetes_cluster.host.nodes[*].name : null
    resources    = var.etcd_resources
  }

  depends_on = [kubernetes_object.namespace]
}

resource "karmada_control_plane" "main" {
  name             = var.name
  version          = var.karmada_version
  kube_version     = var.kube_version
  etcd             = etcd_cluster.main.client
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
