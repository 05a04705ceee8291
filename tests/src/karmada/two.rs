//! Two control planes in one namespace, made and taken away in one run each: nothing of one is called like anything of the other.

use std::collections::BTreeSet;

use super::plane::{Plane, etcd_block, host_block};
use super::{Host, KARMADA};
use crate::project::Project;

/// The namespace belongs to neither, and each has an etcd of its own.
fn configuration(host: &Host) -> String {
    let (namespace, crds, kube) = (&host.namespace, host.crds.display(), &host.kube_version);
    let mut text = host_block(host);
    text += &format!(
        r#"
resource "kubernetes_object" "namespace" {{
  cluster  = data.kubernetes_cluster.host.connection
  manifest = {{ apiVersion = "v1", kind = "Namespace", metadata = {{ name = "{namespace}" }} }}
}}
"#
    );
    for name in ["one", "two"] {
        text += &etcd_block(host, name, "depends_on = [kubernetes_object.namespace]");
        text += &format!(
            r#"
resource "karmada_control_plane" "{name}" {{
  version      = "{KARMADA}"
  kube_version = "{kube}"
  etcd         = etcd_cluster.{name}.client
  crds         = "{crds}"
  kubernetes {{
    cluster   = data.kubernetes_cluster.host
    namespace = "{namespace}"
  }}
  defaults {{
    replicas = 1
  }}
  depends_on = [kubernetes_object.namespace]
}}

output "{name}" {{
  value     = karmada_control_plane.{name}.kubeconfig
  sensitive = true
}}
"#
        );
    }
    text
}

#[test]
fn two_instances_in_one_namespace() {
    let Some(host) = Host::for_test("two_instances_in_one_namespace", "kf-two") else { return };
    let before = host.inventory();
    let plane = Plane { host: &host, project: Project::new() };
    plane.project.write("main.kf.hcl", &configuration(&host));
    plane.converge();

    // Each has an API of its own, and what is in one is not in the other.
    let (one, two) = (plane.kubectl("one"), plane.kubectl("two"));
    one.run(&["create", "namespace", "only-here"]);
    assert!(one.run(&["get", "namespaces", "-o", "name"]).contains("only-here"));
    assert!(!two.run(&["get", "namespaces", "-o", "name"]).contains("only-here"));
    for kubectl in [&one, &two] {
        assert_eq!(kubectl.condition("apiservice", "v1alpha1.cluster.karmada.io", "Available"), "True");
    }
    // A change of one leaves the other alone.
    plane.with_block("component \"scheduler\" {\n  extra_args = { v = \"4\" }\n}");
    let instances: BTreeSet<_> = plane.planned().iter().filter_map(|p| Some(p.split('/').next()?.to_owned())).collect();
    assert_eq!(instances, BTreeSet::from(["karmada_control_plane.one".to_owned()]));
    plane.with_block("");

    // One goes, and the other still answers.
    plane.project.must(0, &["destroy", "-auto-approve", "-target=karmada_control_plane.one"]);
    two.run(&["get", "clusters.cluster.karmada.io"]);
    plane.project.must(0, &["destroy", "-auto-approve"]);
    host.is_as_before(&before);
}
