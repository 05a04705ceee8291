# Clusters as members of a Karmada control plane, whatever made that.

data "kubernetes_cluster" "karmada" {
  kubeconfig_file = pathexpand(var.karmada_kubeconfig)
}

# One that is dead holds up no other.
data "kubernetes_cluster" "member" {
  for_each = var.members

  kubeconfig_file = pathexpand(each.value.kubeconfig)
  context         = each.value.context
  required        = false
}

resource "karmada_member" "this" {
  for_each = var.members

  name          = each.key
  control_plane = data.kubernetes_cluster.karmada.connection
  cluster       = data.kubernetes_cluster.member[each.key].connection
  mode          = each.value.mode
  region        = each.value.region
  labels        = each.value.labels

  dynamic "agent" {
    for_each = each.value.mode == "pull" ? [var.karmada_version] : []
    content {
      version = agent.value
    }
  }
}
