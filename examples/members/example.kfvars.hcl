karmada_kubeconfig = "/root/.kube/karmada.config"

members = {
  eu1 = {
    kubeconfig = "/root/.kube/eu1.config"
    region     = "eu-west-1"
    labels     = { tier = "prod" }
  }
  us1 = {
    kubeconfig = "/root/.kube/us1.config"
    region     = "us-east-1"
  }
}
