variable "hosts" {
  description = "The hosts of the cluster: a name for each member, and the address the others and the clients reach it by."
  type        = map(string)

  validation {
    condition     = length(var.hosts) >= 1 && length(var.hosts) <= 7
    error_message = "An etcd cluster has 1 to 7 members; 3 or 5 are usual."
  }
}

variable "ssh_user" {
  description = "Who logs in. Anyone but root needs sudo without a password."
  type        = string
  default     = "root"
}

variable "private_key_file" {
  description = "The private key to log in with."
  type        = string
  default     = "~/.ssh/id_ed25519"
}

variable "known_hosts_file" {
  description = "Where the hosts' keys are. A host that is not in it is not talked to."
  type        = string
  default     = "~/.ssh/known_hosts"
}

variable "etcd_version" {
  description = "The version of etcd in the archive, for example 3.5.16."
  type        = string
}

variable "etcd_source" {
  description = "An etcd release archive, by path or URL: etcd-vX.Y.Z-linux-amd64.tar.gz"
  type        = string
}

variable "settings" {
  description = "Settings of etcd by the name of its flag, without the dashes."
  type        = map(string)
  default     = {}
}
