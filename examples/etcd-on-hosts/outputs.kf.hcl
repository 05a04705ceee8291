output "endpoints" {
  description = "Where clients connect: https://ADDRESS:2379, one per member."
  value       = etcd_cluster.main.endpoints
}

output "ca_certificate" {
  description = "The CA that signed the members' certificates."
  value       = etcd_cluster.main.ca_certificate
}

output "client_certificate" {
  description = "A client certificate that the cluster accepts."
  value       = etcd_cluster.main.client_certificate
}

output "client_key" {
  description = "Its private key."
  value       = etcd_cluster.main.client_key
  sensitive   = true
}
