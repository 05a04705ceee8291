variable "hosts" {
  description = "The hosts of etcd: a name for each member, and the address that the others and the pods reach it by."
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
  description = "The version of etcd in the archive, for example 3.6.8."
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

variable "karmada_version" {
  description = "The version of Karmada, for example 1.19.0."
  type        = string
}

variable "kube_version" {
  description = "The version of the API server behind Karmada; the one that goes with that Karmada unless written."
  type        = string
  default     = null
}

variable "crds" {
  description = "The archive of Karmada's CRDs, crds.tar.gz of that release: a path or a URL."
  type        = string
}

variable "addons" {
  description = "Addons to install: search, descheduler, metrics-adapter."
  type        = list(string)
  default     = []
}

variable "etcd_prefix" {
  description = "The prefix of all keys, which several control planes on one etcd must not share."
  type        = string
  default     = "/registry"
}

variable "kubeconfig" {
  description = "A kubeconfig of the host cluster."
  type        = string
  default     = "~/.kube/config"
}

variable "namespace" {
  description = "The namespace to run in. It is made if it is not there."
  type        = string
  default     = "karmada-system"
}
