//! An etcd in pods that grows, goes to the next version and to other volumes, loses one, has a member taken out by hand, and shrinks, with a client at work all the time: what was acknowledged
//! is there, and every read is of the last write. And runs that are killed on the way.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::plane::host_block;
use super::{Host, etcd_versions, variable};
use crate::lab::client::Client;
use crate::lab::project::Etcdctl;
use crate::parts::{kills, tell};
use crate::project::Project;

/// A class without a provisioner: its volumes are made by the test.
const CLASS: &str = "kf-disks";
/// Another one.
const OTHER_CLASS: &str = "kf-other-disks";
/// The longest that the client may get no write through. It asks by the Service: one that has just lost a pod leads there for some seconds, and a request that
/// is caught by that is given up after ten.
const LONGEST_GAP: Duration = Duration::from_secs(25);
/// How many volumes there are of each class: for each member, for those that lose theirs, and for whoever was killed on the way to one and takes another.
const VOLUMES: usize = 12;
/// So many more for each time that one is killed on the way to another size: two join, and both may have to begin anew.
const OF_A_KILL: usize = 4;
/// So many of the first class are as small as claims first ask for.
const SMALL: usize = 3;

pub(super) struct Cluster<'a> {
    pub(super) host: &'a Host,
    pub(super) project: Project,
    /// What is on the volumes.
    pub(super) disks: tempfile::TempDir,
    size: Cell<&'static str>,
    class: Cell<&'static str>,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(host: &'a Host) -> Self {
        Self::with_volumes(host, VOLUMES)
    }

    /// With so many of each class.
    pub(super) fn with_volumes(host: &'a Host, volumes: usize) -> Self {
        let disks = tempfile::tempdir().expect("a temporary directory");
        let cluster = Self { host, project: Project::new(), disks, size: Cell::new("1Gi"), class: Cell::new(CLASS) };
        cluster.host.run(&["create", "namespace", &host.namespace]);
        let mut objects = Vec::new();
        for class in [CLASS, OTHER_CLASS] {
            objects.push(json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": class },
                "provisioner": "kubernetes.io/no-provisioner" }));
            objects.extend((0..volumes).map(|i| cluster.volume(class, i)));
        }
        cluster.make(&json!({ "apiVersion": "v1", "kind": "List", "items": objects }));
        cluster
    }

    fn make(&self, object: &Value) {
        self.project.write("objects.json", &object.to_string());
        self.host.run(&["create", "-f", &self.project.path().join("objects.json").to_string_lossy()]);
    }

    /// Whoever is in the pod may write there.
    fn volume(&self, class: &str, number: usize) -> Value {
        use std::os::unix::fs::PermissionsExt as _;
        let name = format!("{class}-{number}");
        let path = self.disks.path().join(&name);
        std::fs::create_dir_all(&path).expect("a folder");
        for folder in [self.disks.path(), &path] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).expect("its mode");
        }
        json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name }, "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": if class == CLASS && number < SMALL { "1Gi" } else { "2Gi" } },
            "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": path },
        } })
    }

    pub(super) fn gone(self) {
        self.host.run(&["delete", "persistentvolume,storageclass", "--all"]);
        self.host.run(&["delete", "namespace", &self.host.namespace]);
    }

    /// So many members of a version.
    fn of(&self, members: usize, version: &str) {
        self.of_with(members, version, ("", ""));
    }

    /// With more in the block `kubernetes`, and in the block of the cluster.
    pub(super) fn of_with(&self, members: usize, version: &str, (of_pods, more): (&str, &str)) {
        let (namespace, size, class) = (&self.host.namespace, self.size.get(), self.class.get());
        let text = host_block(self.host)
            + &format!(
                r#"
resource "etcd_cluster" "main" {{
  version = "{version}"
  kubernetes {{
    cluster      = data.kubernetes_cluster.host
    name         = "etcd"
    namespace    = "{namespace}"
    members      = {members}
    storage      = "{class}"
    storage_size = "{size}"
    resources    = {{}}
{of_pods}  }}
{more}}}
output "ca_certificate" {{
  value = etcd_cluster.main.ca_certificate
}}
output "client_certificate" {{
  value = etcd_cluster.main.client_certificate
}}
output "client_key" {{
  value     = etcd_cluster.main.client_key
  sensitive = true
}}
"#
            );
        self.project.write("main.kf.hcl", &text);
    }

    pub(super) fn converge(&self) {
        self.project.apply();
        self.project.no_changes();
    }

    /// After a run that was killed. What that has just started may not be there yet, or come between a plan and its steps; then the next run says so, and
    /// the same command is given again.
    fn goes_on(&self) {
        let until = Instant::now() + Duration::from_secs(600);
        loop {
            let ended = self.project.run(&["apply", "-auto-approve"]);
            if ended.code == Some(0) {
                break;
            }
            assert!(Instant::now() < until, "it does not converge:\n{}", ended.text);
        }
        self.project.no_changes();
    }

    /// As larger as a class lets them be; what makes volumes larger elsewhere is the test here.
    fn volumes_grow(&self, client: &Client<'_>, version: &str) {
        self.size.set("2Gi");
        self.of(3, version);
        let refused = self.project.must(1, &["plan"]);
        assert!(refused.contains("storageclass"), "{refused}");
        self.host.run(&["patch", "storageclass", CLASS, "-p", r#"{"allowVolumeExpansion":true}"#]);
        self.plans("volumes grow from 1Gi to 2Gi");
        let before = self.uids();
        client.works_within(LONGEST_GAP, "volumes grow", || {
            let mut apply = self.project.start(&["apply", "-auto-approve"]);
            for (number, claim) in (0..3).map(|i| (i, format!("data-etcd-{i}"))) {
                let asks = || self.host.object("pvc", &claim)["spec"]["resources"]["requests"]["storage"] == "2Gi";
                self.host.eventually("a claim asks for more", asks);
                // Whose volumes are all as large as they should be has nothing to wait for.
                assert!(number != 2 || apply.says("has 1Gi of 2Gi"), "{}", apply.text());
                let mut grown = self.host.object("pvc", &claim);
                grown["status"]["capacity"]["storage"] = "2Gi".into();
                self.project.write("grown.json", &grown.to_string());
                let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/{claim}/status", self.host.namespace);
                self.host.run(&["replace", "--raw", &path, "-f", &self.project.path().join("grown.json").to_string_lossy()]);
            }
            let ended = apply.end();
            assert!(ended.code == Some(0), "{}", ended.text);
            self.project.no_changes();
        });
        assert_eq!(self.uids(), before);
    }

    /// One member after the other, killed on the way, and gone on with.
    fn goes_to_other_volumes(&self, client: &Client<'_>, version: &str) {
        let before = self.uids();
        let classes = "-o=jsonpath={range .items[*]}{.spec.storageClassName}{\"\\n\"}{end}";
        let of_other = || self.host.run(&["-n", &self.host.namespace, "get", "pvc", classes]).matches(OTHER_CLASS).count();
        self.class.set(OTHER_CLASS);
        self.of(3, version);
        self.plans(&format!("new volumes of \"{OTHER_CLASS}\" for members"));
        client.works_within(LONGEST_GAP, "the way to other volumes is killed", || {
            let apply = self.project.start(&["apply", "-auto-approve"]);
            self.host.eventually("a claim of the other class", || of_other() > 0);
            apply.kill();
        });
        self.host.eventually("all that are there are up, and can be asked", || !self.project.run(&["plan"]).text.contains("Error"));
        client.works_within(LONGEST_GAP, "it is gone on with", || self.goes_on());
        client.has_members(3);
        assert_eq!(of_other(), 3);
        assert!(self.uids().iter().all(|uid| !before.contains(uid)), "nobody has kept its pod");
    }

    /// Begun, killed and taken back; and done.
    fn upgrades(&self, client: &Client<'_>, old: &str, new: &str) {
        self.of(3, new);
        self.plans(&format!("upgrades etcd from {old} to {new}"));
        self.plans("saves a snapshot first, on the volume of etcd-0 as /var/lib/etcd/before-upgrade.db");
        let images = "-o=jsonpath={range .items[*]}{.spec.containers[0].image}{\"\\n\"}{end}";
        let of_new = || self.host.run(&["-n", &self.host.namespace, "get", "pods", images]).matches(new).count();
        client.works_within(LONGEST_GAP, "an upgrade is killed", || {
            let apply = self.project.start(&["apply", "-auto-approve"]);
            self.host.eventually("a pod of the new version", || of_new() > 0);
            apply.kill();
        });
        self.of(3, old);
        self.host.eventually("all are up, and can be asked", || !self.project.run(&["plan"]).text.contains("Error"));
        client.works_within(LONGEST_GAP, "it is taken back", || self.converge());
        assert_eq!(of_new(), 0);
        self.of(3, new);
        client.works_within(LONGEST_GAP, "it is done", || self.converge());
        assert_eq!(of_new(), 3);
        self.of(3, old);
        let refused = self.project.must(1, &["plan"]);
        assert!(refused.contains("There is no way back to that version"), "{refused}");
        // What was saved is a snapshot, as etcd itself sees it.
        let saved = ["exec", "etcd-0", "--", "etcdctl", "snapshot", "status", "/var/lib/etcd/before-upgrade.db", "-w", "json"];
        let told = self.host.run(&[&["-n", self.host.namespace.as_str()][..], &saved].concat());
        assert!(told.contains("\"totalKey\""), "{told}");
    }

    pub(super) fn uids(&self) -> Vec<String> {
        let uids = "-o=jsonpath={range .items[*]}{.metadata.uid}{\"\\n\"}{end}";
        self.host.run(&["-n", &self.host.namespace, "get", "pods", uids]).lines().map(str::to_owned).collect()
    }

    /// Waits until a plan says this.
    #[track_caller]
    pub(super) fn plans(&self, words: &str) {
        let until = Instant::now() + Duration::from_secs(90);
        loop {
            let ended = self.project.run(&["plan"]);
            if ended.text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words) {
                return;
            }
            assert!(Instant::now() < until, "no plan says {words:?}:\n{}", ended.text);
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Who fails leaves no volumes behind that the next test's claims would take.
impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for of in [["namespace", self.host.namespace.as_str()], ["persistentvolume,storageclass", "--all"]] {
            let _ = self.host.command(&[&["delete", "--timeout=120s"][..], &of].concat()).output();
        }
    }
}

#[test]
fn members_in_pods_come_and_go_under_a_client() {
    const TEST: &str = "members_in_pods_come_and_go_under_a_client";
    let Some(host) = Host::for_test(TEST, "kf-members") else { return };
    let before = host.inventory();
    let (kills, mut random) = kills(1);
    let cluster = Cluster::with_volumes(&host, VOLUMES + OF_A_KILL * kills);
    let versions = etcd_versions();
    let (old, new) = (versions.first().expect("an etcd"), versions.last().expect("an etcd"));
    cluster.of(1, old);
    cluster.converge();
    let client = client(&cluster);
    let first = cluster.uids();

    cluster.of(3, old);
    cluster.plans("3 members instead of 1");
    client.works_within(LONGEST_GAP, "1 becomes 3", || cluster.converge());
    client.has_members(3);
    assert!(first.iter().all(|uid| cluster.uids().contains(uid)), "who stays was restarted");
    cluster.volumes_grow(&client, old);
    if old == new {
        tell("*** SKIPPED (one version of etcd alone): another version under the data of a cluster in pods");
    } else {
        cluster.upgrades(&client, old, new);
    }

    cluster.goes_to_other_volumes(&client, new);

    cluster.of(5, new);
    client.works_within(LONGEST_GAP, "3 become 5", || cluster.converge());
    client.has_members(5);

    // As it is done everywhere when a volume is broken: claim and pod are deleted. What Kubernetes makes in their place has no data.
    let of = |name: &str| ["-n", &host.namespace, "delete", "--wait=false", name].map(str::to_owned);
    let delete = |kind: &str, name: &str| {
        let arguments = [&of(kind)[..], &[name.to_owned()]].concat();
        host.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    };
    delete("pvc", "data-etcd-1");
    delete("pod", "etcd-1");
    cluster.plans("replaces member etcd-1: its data is gone");
    client.works_within(LONGEST_GAP, "a volume is lost", || cluster.converge());
    client.has_members(5);

    let id = client.id_of("etcd-2");
    client.ctl.removes(&id);
    cluster.plans("the volume of etcd-2 is made anew");
    client.works_within(LONGEST_GAP, "one was removed by hand", || cluster.converge());
    client.has_members(5);

    // Killed on the way to other sizes; the same command again.
    for kill in 0..kills {
        let members = [3, 5][kill % 2];
        cluster.of(members, new);
        let moment = Duration::from_secs_f64(1.0 + 25.0 * random.f64());
        client.works_within(LONGEST_GAP, &format!("killed after {moment:.1?} on the way to {members}"), || {
            let running = cluster.project.start(&["apply", "-auto-approve"]);
            std::thread::sleep(moment);
            running.kill();
            cluster.goes_on();
        });
        client.has_members(members);
    }

    cluster.of(1, new);
    cluster.plans("data of the members that leave will be deleted with their volumes");
    client.works_within(LONGEST_GAP, "one stays", || cluster.converge());
    client.has_members(1);
    cluster.project.must(0, &["destroy", "-auto-approve"]);
    cluster.gone();
    host.is_as_before(&before);
}

pub(super) fn client<'a>(cluster: &'a Cluster<'_>) -> Client<'a> {
    let given = variable("KARMAFORM_TEST_ETCD").expect("an etcd");
    let archive = given.rsplit(',').next().and_then(|e| e.split_once('=')).map(|(_, archive)| archive.to_owned()).expect("its archive");
    let service = cluster.host.object("service", "etcd-client");
    let address = service["spec"]["clusterIP"].as_str().expect("an address");
    tell(&format!("a client of {address}, by {}", Path::new(&archive).file_name().unwrap_or_default().to_string_lossy()));
    Client { ctl: Etcdctl::by_service(&cluster.project, &archive, address) }
}
