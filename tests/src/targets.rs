//! What is taken out of a composite is not taken away in parts: a `-target` that names only such parts meets the same refusals as the whole plan.

use std::fs;

use karmaform_memory::World;

use crate::parts::{command, memory_registry};

const CONFIGURATION: &str = r#"
variable "hosts" {
  type    = map(string)
  default = { a = "10.0.0.11", b = "10.0.0.12", c = "10.0.0.13" }
}
variable "trusted" {
  type    = list(number)
  default = [1, 2]
}
data "ssh_host" "h" {
  for_each = var.hosts
  address  = each.value
}
resource "etcd_cluster" "main" {
  version = "3.6.14"
  source  = "etcd-v3.6.14-linux-amd64.tar.gz"
  hosts   = data.ssh_host.h
  authorities {
    trusted    = var.trusted
    signs_with = 1
  }
}
"#;

#[test]
fn parts_of_members_that_are_taken_out_do_not_go_alone() {
    let (world, directory) = (World::new(), tempfile::tempdir().expect("a directory"));
    let host = |n: u8| {
        format!(
            "data ssh_host {{\"address\":\"10.0.0.{n}\"}} = {{\"address\":\"10.0.0.{n}\",\"connection\":{{\"provider\":\"ssh\",\"id\":\"10.0.0.{n}:22\"}},\"clock_offset\":0}}\n"
        )
    };
    world.preset(&[11, 12, 13].map(host).concat()).expect("a world");
    let registry = memory_registry(&world);
    let run = |arguments: &[&str]| command(directory.path(), &registry, arguments, "");
    fs::write(directory.path().join("main.kf.hcl"), CONFIGURATION).expect("a file");
    let formed = run(&["apply", "-auto-approve"]);
    assert_eq!(formed.code, 0, "{}", formed.stderr);
    let one = "-var=hosts={ a = \"10.0.0.11\" }";
    let data = |member: &str| format!("-target=etcd_cluster.main/member[\"{member}\"]/directory[\"data\"]");
    let before = world.text();
    // That the world in memory answers for no member makes two of three too few to lose one.
    for targets in [
        vec![data("b"), data("c")],
        vec![data("c")],
        vec!["-target=etcd_cluster.main/member[\"c\"]/unit".to_owned()],
        vec!["-target=etcd_cluster.main/member[\"c\"]/etcd".to_owned()],
        vec!["-target=etcd_cluster.main/member[\"c\"]".to_owned()],
    ] {
        let arguments: Vec<&str> = ["apply", "-auto-approve", one].into_iter().chain(targets.iter().map(String::as_str)).collect();
        let refused = run(&arguments);
        assert!(refused.code == 1 && refused.stderr.contains("Error: Too few members would be left"), "{targets:?} {refused:#?}");
        // All of the member would go, and leave the cluster first.
        for part in ["etcd", "unit", "directory[\"data\"]"] {
            let line = format!("- etcd_cluster.main/member[\"c\"]/{part} ");
            assert!(refused.stdout.contains(&line), "{targets:?} {line}\n{}", refused.stdout);
        }
        assert_eq!(world.text(), before, "{targets:?}");
    }
    let refused = run(&["apply", "-auto-approve", "-var=trusted=[1]", "-target=etcd_cluster.main/peer_ca[2]"]);
    assert!(refused.code == 1 && refused.stderr.contains("Error: A CA goes only together with the cluster"), "{refused:#?}");
    assert_eq!(world.text(), before);
}
