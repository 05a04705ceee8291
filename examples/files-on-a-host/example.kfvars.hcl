address          = "10.0.0.11"
private_key_file = "/root/.ssh/id_ed25519"
known_hosts_file = "/root/.ssh/known_hosts"
