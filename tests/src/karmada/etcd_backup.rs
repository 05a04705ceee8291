//! `etcd_backup` by pods: into a bucket, encrypted, and into a volume; what fails is told in the apply and is decay later; and from the bucket it comes back.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::Host;
use super::cron::{image, put_there};
use super::plane::host_block;
use crate::parts::{block_on, identity, tell};
use crate::project::Project;
use crate::s3::Server;

/// In a bucket, and in a volume.
const BLOCKS: &str = r#"
resource "etcd_cluster" "main" {
  version = "VERSION"
  kubernetes {
    cluster   = data.kubernetes_cluster.host
    name      = "etcd"
    namespace = "NAMESPACE"
    members   = 1
    storage   = "emptyDir"
    resources = {}
  }
}
resource "etcd_backup" "bucket" {
  cluster        = etcd_cluster.main.client
  version        = "VERSION"
  age_recipients = ["RECIPIENT"]
  schedule       = "0 3 * * *"
BUCKET  kubernetes {
    cluster       = data.kubernetes_cluster.host
    namespace     = "NAMESPACE"
    program_image = "registry.example.com/karmaform-tools:0.1.0"
    registry      = "registry.example.com"
  }
}
resource "etcd_backup" "volume" {
  cluster  = etcd_cluster.main.client
  version  = "VERSION"
  schedule = "weekly"
  kubernetes {
    cluster       = data.kubernetes_cluster.host
    namespace     = "NAMESPACE"
    program_image = "registry.example.com/karmaform-tools:0.1.0"
    registry      = "registry.example.com"
    claim         = "backups"
  }
}
"#;

#[test]
fn pods_back_up_a_cluster() {
    const TEST: &str = "pods_back_up_a_cluster";
    let Some(server) = Server::seaweedfs() else { return tell(&format!("SKIPPED (no S3 server): {TEST}")) };
    let Some(host) = Host::for_test(TEST, "kf-backups") else { return };
    image();
    put_there("etcd", &[&host.etcd_version]);
    let before = host.inventory();
    host.run(&["create", "namespace", &host.namespace]);
    let project = Project::new();
    let disk = disk(&host, &project);
    let (recipient, secret) = identity();
    project.write("identity", &secret);
    let prefix = server.key("backups");
    let write = |endpoint: &Server| {
        let text = BLOCKS.replace("VERSION", &host.etcd_version).replace("NAMESPACE", &host.namespace);
        let text = text.replace("RECIPIENT", &recipient).replace("BUCKET", &endpoint.backups(&prefix));
        project.write("main.kf.hcl", &(host_block(&host) + &text));
    };

    // A bucket that nobody can reach: the first backup says so, and what was made is not thrown away.
    let (gone, way) = server.reached_from(node(&host));
    drop(way);
    write(&gone);
    let refused = project.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains("Waited in vain") && refused.contains("can't be reached"), "{refused}");
    let (reached, _way) = server.reached_from(node(&host));
    write(&reached);
    project.apply();
    project.no_changes();
    let drift = project.run(&["drift"]);
    assert!(!drift.text.contains("etcd_backup"), "{}", drift.text);

    let names: Vec<String> = block_on(server.objects(&prefix).list()).expect("a list").into_iter().map(|o| o.name).collect();
    assert!(names.len() == 3 && names[0].starts_with("bucket-") && names[0].ends_with(".db.age"), "{names:?}");
    // From here it is reached by another address.
    let endpoint = format!("-endpoint={}", server.endpoint);
    let got = project.must(0, &["etcd", "backup", "get", "etcd_backup.bucket", "-out", "got.db", "-identity", "identity", &endpoint]);
    assert!(got.contains("revision"), "{got}");
    project.must(0, &["etcd", "verify", "got.db"]);
    let lies = std::fs::read_dir(disk.path()).expect("the volume").map(|e| e.expect("a file").file_name().to_string_lossy().into_owned());
    let lies: Vec<String> = lies.collect();
    let whole = lies.iter().find(|n| n.ends_with(".db")).expect("a backup");
    assert!(lies.len() == 3 && lies.contains(&"volume.owner".to_owned()) && lies.contains(&format!("{whole}.json")), "{lies:?}");
    project.must(0, &["etcd", "verify", &disk.path().join(whole).to_string_lossy()]);
    let refused = project.must(1, &["etcd", "backup", "list", "etcd_backup.volume"]);
    assert!(refused.contains("not in a bucket"), "{refused}");

    // By the schedule's own template; who comes so soon after another one takes it for done.
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(by_hand(&host, "etcd-backup-bucket", "again").contains("Backed up and proven"));
    project.must(0, &["destroy", "-auto-approve"]);
    assert!(!block_on(server.objects(&prefix).list()).expect("a list").is_empty() && disk.path().join(whole).exists());
    host.run(&["delete", "namespace", &host.namespace]);
    host.run(&["delete", "persistentvolume", "kf-backups"]);
    host.is_as_before(&before);
}

/// A volume that whoever is in the pod may write to, and the claim for it.
fn disk(host: &Host, project: &Project) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let disk = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(disk.path(), std::fs::Permissions::from_mode(0o777)).expect("its mode");
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "storageClassName": "", "hostPath": { "path": disk.path() } });
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "kf-backups", "resources": { "requests": { "storage": "1Gi" } } });
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "kf-backups" }, "spec": spec },
        { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "backups", "namespace": host.namespace }, "spec": claim },
    ] });
    project.write("objects.json", &objects.to_string());
    host.run(&["create", "-f", &project.path().join("objects.json").to_string_lossy()]);
    disk
}

/// An address in the network of the pods' node.
fn node(host: &Host) -> Ipv4Addr {
    let kubeconfig = std::fs::read_to_string(host.kubeconfig()).expect("a kubeconfig");
    let server = kubeconfig.split_once("server: https://").expect("a server").1;
    server.split(':').next().and_then(|a| a.parse().ok()).expect("an address")
}

/// Runs a CronJob now; what its pod printed.
fn by_hand(host: &Host, cron_job: &str, name: &str) -> String {
    let run = |arguments: &[&str]| host.run(&[&["-n", host.namespace.as_str()][..], arguments].concat());
    run(&["create", "job", name, &format!("--from=cronjob/{cron_job}")]);
    let job = || -> Value { serde_json::from_str(&run(&["get", "job", name, "-o", "json"])).expect("JSON") };
    host.eventually(&format!("the job {name} ends"), || job()["status"]["succeeded"] == 1 || job()["status"]["failed"] == 1);
    run(&["logs", &format!("--selector=job-name={name}"), "--tail=-1"])
}
