variable "hosts" {
  description = "The hosts: a name for each, and the address that the others reach it by. etcd has a member on each of them."
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

variable "etcd_source_sha256" {
  description = "The SHA-256 sum of that archive, or the path or URL of a file that says it; not checked unless written."
  type        = string
  default     = null
}

variable "settings" {
  description = "Settings of etcd by the name of its flag, without the dashes."
  type        = map(string)
  default     = {}
}

variable "name" {
  description = "What this instance is called. Instances on one host need different names and ports."
  type        = string
  default     = "karmada"
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

variable "karmada_source" {
  description = "Where Karmada's programs come from; out of its published images unless written."
  type        = string
  default     = null
}

variable "karmada_source_sha256" {
  description = "The SHA-256 sum of that archive, or the path or URL of a file of sums, with the same words in braces; not checked unless written."
  type        = string
  default     = null
}

variable "kube_source" {
  description = "Where kube-apiserver and kube-controller-manager come from; out of the published images unless written."
  type        = string
  default     = null
}

variable "kube_source_sha256" {
  description = "The SHA-256 sum of that archive, or the path or URL of a file of sums, with the same words in braces; not checked unless written."
  type        = string
  default     = null
}

variable "crds" {
  description = "The archive of Karmada's CRDs, crds.tar.gz of that release: a path or a URL."
  type        = string
}

variable "vip" {
  description = "A free IP address of the hosts' network, which leads to the API servers of all hosts that work; none unless written."
  type        = string
  default     = null
}

variable "addons" {
  description = "Addons to install: search, descheduler, metrics-adapter."
  type        = list(string)
  default     = []
}
