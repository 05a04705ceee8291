output "kubeconfig" {
  description = "A kubeconfig of Karmada's administrator."
  value       = karmada_control_plane.main.kubeconfig
  sensitive   = true
}

output "endpoint" {
  description = "Where that kubeconfig reaches the Karmada API."
  value       = karmada_control_plane.main.endpoint
}
