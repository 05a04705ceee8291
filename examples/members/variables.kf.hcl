variable "karmada_kubeconfig" {
  description = "A kubeconfig of the Karmada API, of a user who may do everything there."
  type        = string
}

variable "karmada_version" {
  description = "The version of the control plane, which the agents of members in pull mode are to have, for example 1.19.0."
  type        = string
  default     = null
}

variable "members" {
  description = "The members, by name: how each is reached, and what placement may choose it by."

  type = map(object({
    kubeconfig = string
    context    = optional(string)
    mode       = optional(string, "push")
    region     = optional(string)
    labels     = optional(map(string), {})
  }))
}
