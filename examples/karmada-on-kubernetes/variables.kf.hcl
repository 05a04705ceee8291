variable "kubeconfig" {
  description = "A kubeconfig of the host cluster."
  type        = string
  default     = "~/.kube/config"
}

variable "context" {
  description = "The context in it; the current one unless written."
  type        = string
  default     = null
}

variable "namespace" {
  description = "The namespace to run in. It is made if it is not there."
  type        = string
  default     = "karmada-system"
}

variable "name" {
  description = "What this instance is called. Instances in one namespace need different names."
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

variable "etcd_version" {
  description = "The version of etcd, for example 3.6.8."
  type        = string
}

variable "etcd_members" {
  description = "How many members etcd has: 1 for a try, 3 or 5 for use."
  type        = number
  default     = 3

  validation {
    condition     = var.etcd_members >= 1 && var.etcd_members <= 7
    error_message = "An etcd cluster has 1 to 7 members; 3 or 5 are usual."
  }
}

variable "crds" {
  description = "The archive of Karmada's CRDs, crds.tar.gz of that release: a path or a URL."
  type        = string
}

variable "karmada_registry" {
  description = "Where the images of Karmada are."
  type        = string
  default     = "docker.io/karmada"
}

variable "kube_registry" {
  description = "Where the images of Kubernetes and etcd are."
  type        = string
  default     = "registry.k8s.io"
}

variable "etcd_resources" {
  description = "Requests and limits of each etcd member; null for 500m CPU and 512Mi of memory."
  type        = any
  default     = null
}

variable "storage" {
  description = "Where etcd keeps its data: \"emptyDir\" (gone with the pod, for a try), \"hostPath\", or the name of a storage class."
  type        = string
}

variable "addons" {
  description = "Addons to install: search, descheduler, metrics-adapter."
  type        = list(string)
  default     = []
}

variable "service_type" {
  description = "How the Karmada API is exposed: ClusterIP, NodePort or LoadBalancer."
  type        = string
  default     = "ClusterIP"
}
