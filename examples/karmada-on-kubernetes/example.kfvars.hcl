kubeconfig      = "/root/.kube/config"
karmada_version = "1.19.0"
etcd_version    = "3.6.8"
etcd_members    = 3
crds            = "https://github.com/karmada-io/karmada/releases/download/v1.19.0/crds.tar.gz"
storage         = "hostPath"
addons          = ["search"]
