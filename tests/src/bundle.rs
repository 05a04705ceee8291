//! Bundles as their users make them: the command alone, on a machine that reaches none of the hosts.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::project::Project;

/// Hosts that nobody can reach, and a program for each of them by what it is.
const MAIN: &str = r#"
data "ssh_host" "edge" {
  for_each = { a = "10.255.0.1", b = "10.255.0.2" }

  address          = each.value
  private_key_file = "/none"
  known_hosts_file = "/none"
}

resource "ssh_artifact" "tool" {
  for_each = data.ssh_host.edge

  host   = each.value.connection
  path   = "/usr/local/bin/tool"
  source = "programs/tool-${each.value.architecture}"
}

resource "ssh_artifact" "for_its_kernel" {
  host   = data.ssh_host.edge["a"].connection
  path   = "/usr/local/bin/module"
  source = "programs/module-${data.ssh_host.edge["a"].kernel}"
}
"#;

fn project() -> Project {
    let project = Project::new();
    project.write("main.kf.hcl", MAIN);
    std::fs::create_dir(project.path().join("programs")).expect("a directory");
    for name in ["tool-amd64", "tool-arm64"] {
        project.write(&format!("programs/{name}"), &format!("this is {name}"));
    }
    project
}

#[test]
fn a_bundle_has_what_every_architecture_needs_and_says_what_it_lacks() {
    let project = project();
    let text = project.must(0, &["bundle", "-out=site.kfbundle", "-arch=amd64,arm64"]);
    assert!(text.contains("Wrote site.kfbundle: 2 files") && text.contains("for amd64 and arm64"), "{text}");
    assert!(text.contains("Not everything is known") && text.contains("ssh_artifact.for_its_kernel"), "{text}");
    let mode = std::fs::metadata(project.path().join("site.kfbundle")).expect("the bundle").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    // The sum that it says is that of the file.
    let sum = text.lines().find_map(|l| l.strip_prefix("sha256 ")).expect("a sum").to_owned();
    let output = std::process::Command::new("sha256sum").arg(project.path().join("site.kfbundle")).output().expect("sha256sum");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&sum), "{sum}");
    // Made again it is the same.
    let again = project.must(0, &["bundle", "-out=again.kfbundle", "-arch=amd64,arm64", "-json"]);
    let told: serde_json::Value = serde_json::from_str(&again).expect("one document");
    assert_eq!(told["not_known"][0], "ssh_artifact.for_its_kernel");
    assert_eq!(told["sha256"], sum.as_str());
    let sources: Vec<_> =
        told["contents"]["files"].as_array().expect("files").iter().map(|f| f["source"].as_str().expect("text")).collect();
    assert_eq!(sources, ["programs/tool-amd64", "programs/tool-arm64"]);
}

#[test]
fn what_can_not_be_had_ends_it_and_leaves_nothing() {
    let project = project();
    project.remove("programs/tool-amd64");
    let text = project.must(1, &["bundle", "-out=site.kfbundle"]);
    assert!(text.contains("Error: Source can't be read") && text.contains("programs/tool-amd64 does not exist"), "{text}");
    let text = project.must(1, &["bundle", "-out=no/such/folder/site.kfbundle"]);
    assert!(text.contains("Error: Bundle can't be written"), "{text}");
    let left: Vec<_> = std::fs::read_dir(project.path()).expect("a directory").flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().contains("bundle")), "{left:?}");
}

/// What fails on the way is tried again, as an apply does.
#[test]
fn a_server_that_has_too_much_to_do_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let head = ["503 Service Unavailable\r\nRetry-After: 2", "200 OK"][index.min(1)];
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 {head}\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntool");
        }
    });
    let project = project();
    project.write("main.kf.hcl", &MAIN.replace("programs/tool-", &format!("http://{address}/tool-")));
    let text = project.must(0, &["bundle", "-out=site.kfbundle"]);
    assert!(text.contains("trying again in 2 s after: Source can't be fetched") && text.contains("site.kfbundle: 1 files"), "{text}");
}

#[test]
fn what_is_not_in_a_bundle_is_listed_and_no_secret_is_in_it() {
    let project = project();
    project.write(
        "more.kf.hcl",
        r#"
variable "folder" {
  default   = "programs"
  sensitive = true
}
resource "ssh_artifact" "secret" {
  for_each = data.ssh_host.edge

  host   = each.value.connection
  path   = "/usr/local/bin/secret"
  source = "${var.folder}/hunter2"
}
resource "ssh_package" "vip" {
  host = data.ssh_host.edge["a"].connection
  name = "keepalived"
}
data "kubernetes_cluster" "far" {
  kubeconfig_file = "/none"
}
resource "kubernetes_object" "pod" {
  cluster = data.kubernetes_cluster.far
  manifest = {
    apiVersion = "v1"
    kind       = "Pod"
    metadata   = { name = "p", namespace = "default" }
    spec       = { containers = [{ name = "c", image = "127.0.0.1:1/x/y:v1" }] }
  }
}
"#,
    );
    project.write("programs/hunter2", "a secret place");
    let text = project.must(0, &["bundle", "-out=site.kfbundle"]);
    assert!(text.contains("Packages are not in it") && text.contains("keepalived"), "{text}");
    assert!(text.contains("127.0.0.1:1/x/y:v1") && text.contains("not known") && text.contains("Image without a digest"), "{text}");
    assert!(text.contains("Adding (sensitive)") && !text.contains("hunter2"), "{text}");
    let bytes = std::fs::read(project.path().join("site.kfbundle")).expect("the bundle");
    assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
}

#[test]
fn a_bundle_that_is_none_is_said_with_its_line() {
    let project = project();
    project.write("site.kfbundle", "not at all");
    project.write("bundle.kf.hcl", "variable \"site\" {\n  default = \"site\"\n}\nkarmaform {\n  bundle = \"${var.site}.kfbundle\"\n}\n");
    let text = project.must(1, &["plan"]);
    assert!(text.contains("Error: Bundle can't be read") && text.contains("bundle.kf.hcl:5:12"), "{text}");
    // Who only takes away does not need it.
    assert!(project.must(0, &["destroy", "-auto-approve"]).contains("No objects need to be destroyed"));
    project.write("bundle.kf.hcl", "karmaform {\n  bundle = 7\n}\n");
    assert!(project.must(1, &["plan"]).contains("is the path of a file"));
    project.write("bundle.kf.hcl", "karmaform {\n  bundle = data.ssh_host.edge[\"a\"].hostname\n}\n");
    assert!(project.must(1, &["validate"]).contains("needed before anything is read or planned"));
}

/// Programs of the versions on the way are brought along, too, where it says where they are.
#[test]
fn versions_of_etcd_on_the_way_are_in_it() {
    let project = Project::new();
    for version in ["3.5.33", "3.6.14"] {
        let folder = format!("etcd-v{version}");
        std::fs::create_dir(project.path().join(&folder)).expect("a directory");
        for program in ["etcd", "etcdctl", "etcdutl"] {
            project.write(&format!("{folder}/{program}"), &format!("this is {program} {version}"));
        }
        let archive = format!("{folder}.tar.gz");
        let made = std::process::Command::new("tar").args(["-czf", &archive, &folder]).current_dir(project.path()).status().expect("tar");
        assert!(made.success());
    }
    let main = |through: &str| {
        format!(
            r#"
data "ssh_host" "edge" {{
  for_each         = {{ a = "10.255.0.1" }}
  address          = each.value
  private_key_file = "/none"
  known_hosts_file = "/none"
}}
resource "etcd_cluster" "main" {{
  version = "3.6.14"
  source  = "etcd-v3.6.14.tar.gz"
  hosts   = data.ssh_host.edge
  {through}
}}
"#
        )
    };
    let sources = |through: &str| {
        project.write("main.kf.hcl", &main(through));
        let told = project.must(0, &["bundle", "-out=site.kfbundle", "-json"]);
        let told: serde_json::Value = serde_json::from_str(&told).expect("one document");
        assert_eq!(told["not_known"], serde_json::json!([]), "{told}");
        let files = told["contents"]["files"].as_array().expect("files").clone();
        files.iter().map(|f| f["source"].as_str().expect("text").to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(sources(""), ["etcd-v3.6.14.tar.gz".to_owned()].into());
    let through = r#"through = { "3.5.33" = { source = "etcd-v3.5.33.tar.gz" } }"#;
    assert_eq!(sources(through), ["etcd-v3.5.33.tar.gz", "etcd-v3.6.14.tar.gz"].map(str::to_owned).into());
}
