output "ids" {
  description = "What tells each cluster from all others, by member."
  value       = { for name, member in karmada_member.this : name => member.id }
}

output "uids" {
  description = "The UID of each Cluster object, by member: another one means that it was joined anew."
  value       = { for name, member in karmada_member.this : name => member.uid }
}
