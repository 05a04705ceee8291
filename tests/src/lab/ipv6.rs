//! Hosts that are known by addresses of IPv6 alone.

use super::Lab;
use super::client::Client;
use super::project::Given;
use crate::project::Project;

#[test]
fn a_cluster_by_addresses_of_ipv6() {
    let Some(lab) = Lab::fresh("a_cluster_by_addresses_of_ipv6").map(Lab::by_ipv6) else { return };
    let before = lab.all_files();
    let etcd = lab.etcd.last().expect("an etcd").clone();
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd: &etcd, more: "" });
    project.apply();
    project.no_changes();
    let endpoints = project.must(0, &["output", "-json", "endpoints"]);
    assert!(endpoints.contains(&format!("https://[{}]:2379", lab.hosts[0].1)) && !endpoints.contains('.'), "{endpoints}");
    let client = Client::of(&project, &lab, &etcd);
    client.has_members(3);
    project.settings("snapshot-count = 5000");
    client.works_while("settings roll by IPv6", || drop(project.apply()));
    project.variables(&lab, &Given { hosts: &lab.hosts[..1], etcd: &etcd, more: "" });
    client.works_while("one stays by IPv6", || drop(project.apply()));
    project.variables(&lab, &Given { hosts: &lab.hosts, etcd: &etcd, more: "" });
    client.works_while("three again by IPv6", || drop(project.apply()));
    client.has_members(3);
    project.no_changes();
    project.must(0, &["drift"]);
    project.must(0, &["etcd", "status", "etcd_cluster.main"]);
    project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
}
