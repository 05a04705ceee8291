//! `kubernetes_job` on a real cluster: it runs once and again when something changes, one that fails says why, and goes with the rest.

use super::Host;
use super::cron::image;
use super::plane::host_block;
use crate::project::Project;

const BLOCK: &str = r#"
variable "code" { default = 0 }
resource "kubernetes_job" "one" {
  cluster = data.kubernetes_cluster.host.connection
  manifest = {
    apiVersion = "batch/v1"
    kind       = "Job"
    metadata   = { name = "one", namespace = "NAMESPACE" }
    spec = {
      backoffLimit = 0
      template = {
        spec = {
          restartPolicy = "Never"
          containers    = [{ name = "c", image = "registry.example.com/karmaform-tools:0.1.0", command = ["sh", "-c", "echo bye; exit ${var.code}"] }]
        }
      }
    }
  }
}
"#;

#[test]
fn a_job_runs_once_and_one_that_fails_says_why() {
    let Some(host) = Host::for_test("a_job_runs_once_and_one_that_fails_says_why", "kf-job") else { return };
    image();
    let before = host.inventory();
    host.run(&["create", "namespace", &host.namespace]);
    let project = Project::new();
    project.write("main.kf.hcl", &(host_block(&host) + &BLOCK.replace("NAMESPACE", &host.namespace)));
    let of_job = |arguments: &[&str]| host.run(&[&["-n", host.namespace.as_str()][..], arguments].concat());

    // Somebody else's is neither run again nor removed.
    of_job(&["create", "job", "one", "--image=registry.example.com/karmaform-tools:0.1.0", "--", "sh", "-c", "true"]);
    let refused = project.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains("karmaform did not make it") && !refused.contains("force"), "{refused}");
    of_job(&["delete", "job", "one"]);

    let refused = project.must(1, &["apply", "-auto-approve", "-var", "code=3"]);
    assert!(refused.contains("ends with code 3; it said last: bye"), "{refused}");
    // One that failed is ours all the same: it goes, or makes room for the next one.
    project.must(0, &["destroy", "-auto-approve", "-var", "code=3"]);
    assert_eq!(of_job(&["get", "jobs", "-o", "name"]).trim(), "");
    project.must(1, &["apply", "-auto-approve", "-var", "code=3"]);
    project.apply();
    project.no_changes();
    // It ran; that it is there no more is no reason to run it again.
    of_job(&["delete", "job", "one"]);
    project.no_changes();
    project.must(0, &["destroy", "-auto-approve"]);
    host.run(&["delete", "namespace", &host.namespace]);
    host.is_as_before(&before);
}
