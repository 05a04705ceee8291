# A directory, a file and a service on one host: the small resource types that the composites are made of.

variable "address" {
  description = "The host."
  type        = string
}

variable "private_key_file" {
  description = "The private key to log in with."
  type        = string
  default     = "~/.ssh/id_ed25519"
}

variable "known_hosts_file" {
  description = "Where the host's key is."
  type        = string
  default     = "~/.ssh/known_hosts"
}

variable "greeting" {
  description = "What the file says."
  type        = string
  default     = "hello"
}

data "ssh_host" "one" {
  address          = var.address
  private_key_file = pathexpand(var.private_key_file)
  known_hosts_file = pathexpand(var.known_hosts_file)
}

resource "ssh_directory" "greetings" {
  host = data.ssh_host.one.connection
  path = "/srv/greetings"
}

resource "ssh_file" "greeting" {
  host    = data.ssh_host.one.connection
  path    = "${ssh_directory.greetings.path}/today"
  content = "${var.greeting} from ${data.ssh_host.one.hostname}\n"
}

resource "ssh_systemd_unit" "greeter" {
  host    = data.ssh_host.one.connection
  name    = "greeter.service"
  content = <<-EOT
    [Unit]
    Description=Says what ${ssh_file.greeting.path} holds, once

    [Service]
    Type=oneshot
    RemainAfterExit=yes
    ExecStart=/bin/cat ${ssh_file.greeting.path}

    [Install]
    WantedBy=multi-user.target
  EOT

  restart_triggers = { greeting = ssh_file.greeting.sha256 }
}

output "os" {
  value = "${data.ssh_host.one.os} ${data.ssh_host.one.os_version}"
}
