//! An etcd in pods that begins anew with a snapshot: what was saved is there, what was written since is not, and what there was before is kept until it is
//! not needed; a wrong file stops nobody; runs that are killed are gone on with; a majority that was lost; and a new cluster from a file.

use std::time::Instant;

use sha2::{Digest as _, Sha256};

use super::cron::{image, put_there};
use super::etcd_members::{Cluster, client};
use super::{Host, etcd_versions};
use crate::parts::tell;

const CONFIRMED: [&str; 3] = ["apply", "-auto-approve", "-confirm=etcd_cluster.main"];

/// Where images of etcd are that have what a program of this build needs.
const REGISTRY: &str = "    registry     = \"registry.example.com\"\n";

/// The block for a file of the project.
fn block(cluster: &Cluster<'_>, file: &str, id: &str) -> String {
    let content = std::fs::read(cluster.project.path().join(file)).expect("a snapshot");
    let sum: String = Sha256::digest(&content).iter().map(|b| format!("{b:02x}")).collect();
    let image = "registry.example.com/karmaform-tools:0.1.0";
    format!(
        "  restore {{\n    from          = \"{file}\"\n    sha256        = \"{sum}\"\n    id            = \"{id}\"\n    program_image = \"{image}\"\n  }}\n"
    )
}

/// Names of directories of before, in all volumes; and of what belongs to a restoration that has not ended.
fn beside(cluster: &Cluster<'_>) -> (usize, Vec<String>) {
    let volumes = std::fs::read_dir(cluster.disks.path()).expect("volumes").map(|v| v.expect("a volume").path());
    let names = volumes
        .flat_map(|v| std::fs::read_dir(v).expect("a volume").map(|e| e.expect("a file").file_name().to_string_lossy().into_owned()));
    let names: Vec<String> = names.collect();
    let before = names.iter().filter(|n| n.starts_with("data.before-")).count();
    (before, names.into_iter().filter(|n| n.starts_with("data.restore")).collect())
}

#[test]
fn a_cluster_in_pods_is_restored() {
    const TEST: &str = "a_cluster_in_pods_is_restored";
    let Some(host) = Host::for_test(TEST, "kf-restores") else { return };
    image();
    let before = host.inventory();
    let cluster = Cluster::new(&host);
    let version = etcd_versions().last().expect("an etcd").clone();
    put_there("etcd", &[&version]);
    let project = &cluster.project;
    let of_with = |members: usize, block: &str| cluster.of_with(members, &version, (REGISTRY, block));
    of_with(3, "");
    cluster.converge();
    let of = client(&cluster);
    let get = |key: &str| of.ctl.run(&["get", key, "--print-value-only"]).trim().to_owned();
    of.ctl.run(&["put", "kept", "1"]);
    // More than fits into one piece on the way into a pod.
    let large = "x".repeat(100_000);
    for i in 0..40 {
        of.ctl.run(&["put", &format!("large/{i}"), &large]);
    }
    project.must(0, &["etcd", "snapshot", "etcd_cluster.main", "-out", "s.db"]);
    of.ctl.run(&["put", "since", "1"]);
    let first = cluster.uids();

    // Another file than the one that is meant: it is found before anybody is stopped, and given up.
    std::fs::copy(project.path().join("s.db"), project.path().join("other.db")).expect("a copy");
    let right = block(&cluster, "other.db", "");
    std::fs::write(project.path().join("other.db"), "not a snapshot").expect("another file");
    of_with(3, &right);
    let asked = project.must(1, &["apply", "-auto-approve"]);
    assert!(asked.contains("-confirm=etcd_cluster.main"), "{asked}");
    let refused = project.must(1, &CONFIRMED);
    assert!(refused.contains("SHA-256 sum"), "{refused}");
    assert_eq!(get("since"), "1");
    of_with(3, "");
    cluster.plans("gives up the restoration");
    cluster.converge();
    // A helper that was told to go may take its time to end, and no member has been made anew.
    host.eventually("there are the members that there were, and nobody else", || cluster.uids() == first);
    assert_eq!(beside(&cluster), (0, Vec::new()));

    // Killed on the way; then to its end.
    of_with(3, &block(&cluster, "s.db", ""));
    cluster.plans("what was written since that was saved is lost");
    for moment in ["(all members are stopped): passed", "has no helper any more): passed", "(all members start): passed"] {
        let mut running = project.start(&CONFIRMED);
        assert!(running.says(moment), "{}", running.text());
        tell(&format!("killed when it said {moment:?}"));
        running.kill();
        if moment.contains("stopped") {
            let drift = project.run(&["drift"]);
            assert_eq!(drift.code, Some(2), "{}", drift.text);
        }
    }
    let began = Instant::now();
    project.must(0, &CONFIRMED);
    tell(&format!("restored in {:.1?}", began.elapsed()));
    project.no_changes();
    assert_eq!((get("kept").as_str(), get("since").as_str()), ("1", ""));
    of.has_members(3);
    assert!(cluster.uids().iter().all(|uid| !first.contains(uid)));
    assert_eq!(beside(&cluster), (3, Vec::new()));
    let helpers = host.run(&["-n", &host.namespace, "get", "pods", "-l", "app.kubernetes.io/name=etcd-restore", "-o", "name"]);
    assert_eq!(helpers.trim(), "");
    of.ctl.run(&["put", "after", "1"]);
    let second = cluster.uids();
    of_with(3, "");
    cluster.plans("deletes data of before the restoration");
    cluster.converge();
    host.eventually("the members were left alone", || cluster.uids() == second);
    assert_eq!((beside(&cluster), get("after").as_str()), ((0, Vec::new()), "1"));

    // Two of three have lost their volumes: what the last one has is saved, and all begin with that.
    let uids = || host.run(&["-n", &host.namespace, "get", "pvc", "-o=jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}"]);
    let before_it = uids();
    let claims: Vec<String> = before_it.split_whitespace().filter(|c| !c.starts_with("data-etcd-0=")).map(str::to_owned).collect();
    for name in ["etcd-1", "etcd-2"] {
        host.run(&["-n", &host.namespace, "delete", "--wait=false", "pvc", &format!("data-{name}")]);
        host.run(&["-n", &host.namespace, "delete", "--wait=false", "pod", name]);
    }
    let lost = || project.run(&["etcd", "snapshot", "etcd_cluster.main", "-out", "none.db"]).code != Some(0);
    host.eventually("the majority is lost", lost);
    // What comes in their place is there before anything is planned with it.
    host.eventually("the claims are gone", || !claims.iter().any(|old| uids().contains(old)));
    host.eventually("claims are made anew", || ["etcd-1", "etcd-2"].iter().all(|name| uids().contains(&format!("data-{name}="))));
    project.must(0, &["etcd", "snapshot", "etcd_cluster.main", "-member=etcd-0", "-force", "-out", "last.db"]);
    of_with(3, &block(&cluster, "last.db", ""));
    project.must(0, &CONFIRMED);
    project.no_changes();
    assert_eq!((get("kept").as_str(), get("after").as_str()), ("1", "1"));
    of.has_members(3);
    project.must(0, &["destroy", "-auto-approve"]);

    // One that there never was begins with the file.
    of_with(1, &block(&cluster, "s.db", "new"));
    cluster.plans("forms a cluster that begins with what is in s.db");
    cluster.converge();
    let of = client(&cluster);
    assert_eq!(of.ctl.run(&["get", "kept", "--print-value-only"]).trim(), "1");
    project.must(0, &["destroy", "-auto-approve"]);
    cluster.gone();
    host.is_as_before(&before);
}
