//! What runs outside: hosts and clusters in a world in memory, locks, and what a dead run left.

use std::sync::Arc;

use karmaform_memory::{Fault, World};
use karmaform_model::{Journal as _, JournalRecord, Value};

use super::{Place, TWO, somebody};

#[test]
fn a_held_lock_names_its_holder() {
    let place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    let backend = karmaform_local::LocalBackend::new(place.path().join("karmaform.tfstate"));
    let who = somebody();
    let executor = crate::runtime::Executor::new().unwrap();
    let id = executor.block_on(karmaform_model::StateBackend::lock(&backend, &who)).unwrap();
    let done = place.check(&["apply", "-auto-approve"], 1);
    for part in ["Error: Error acquiring the state lock", "somebody@elsewhere", "the-lock", "2026-01-01T00:00:00Z", "force-unlock the-lock"]
    {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    place.check(&["apply", "-auto-approve", "-lock-timeout=1s"], 1);
    place.check(&["plan"], 0);
    place.check(&["drift"], 0);
    place.check(&["apply", "-auto-approve", "-lock=false"], 0);
    place.check(&["force-unlock", "-force", "another"], 1);
    executor.block_on(karmaform_model::StateBackend::unlock(&backend, &id)).unwrap();
    place.check(&["apply", "-auto-approve"], 0);
}

pub(super) const CLUSTER: &str = r#"
data "ssh_host" "etcd" {
  for_each = { a = "10.0.0.1", b = "10.0.0.2", c = "10.0.0.3" }
  address  = each.value
}
resource "etcd_cluster" "main" {
  version  = "3.5.16"
  source   = "/tmp/etcd.tar.gz"
  hosts    = data.ssh_host.etcd
  settings = {}
}
output "key" {
  value     = etcd_cluster.main.client_key
  sensitive = true
}
"#;

pub(super) fn three_hosts() -> Arc<World> {
    let world = World::new();
    let hosts: String = (1..=3)
        .map(|n| {
            format!(
                "data ssh_host {{\"address\":\"10.0.0.{n}\"}} = {{\"connection\":{{\"provider\":\"ssh\",\"id\":\"10.0.0.{n}:22\"}},\"hostname\":\"h{n}\",\
                 \"architecture\":\"amd64\",\"os\":\"debian\",\"systemd_version\":252,\"clock_offset\":0}}\n"
            )
        })
        .collect();
    world.preset(&hosts).unwrap();
    let number = |name: &str| name.bytes().next().map_or(0, |b| b - b'a' + 1);
    world.on_fill(move |blank| match (blank.resource_type, blank.attribute) {
        ("etcd_member", "cluster_id") => Some("c1".into()),
        ("etcd_member", "peer_url") => Some(format!("https://10.0.0.{}:2380", number(blank.identity)).into()),
        ("etcd_member", "client_url") => Some(format!("https://10.0.0.{}:2379", number(blank.identity)).into()),
        _ => None,
    });
    world.on_observe(|_, place, object| {
        if place.resource_type == "etcd_member" {
            let is_leader = object.get("name").and_then(Value::as_str) == Some("b");
            object.insert("healthy".into(), true.into());
            object.insert("leader".into(), is_leader.into());
            object.insert("version".into(), "3.5.16".into());
        }
        if place.resource_type == "ssh_systemd_unit" {
            object.insert("active_state".into(), "active".into());
            object.insert("sub_state".into(), "running".into());
        }
    });
    world
}

#[test]
fn a_cluster_of_etcd_members() {
    let world = three_hosts();
    let place = Place::new(CLUSTER).over(&world);
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("  # impact: forms a cluster of 3 members: a, b, c\n"), "{}", done.stdout);
    assert!(done.stdout.contains("      + etcd_cluster.main/member[\"a\"]/unit "), "{}", done.stdout);
    assert!(done.stdout.contains(" wait until formed (at most "), "{}", done.stdout);
    let done = place.check(&["apply", "-auto-approve"], 0);
    assert!(done.stdout.contains("etcd_cluster.main (formed): passed after "), "{}", done.stdout);
    assert!(done.stdout.contains("\nkey = <sensitive>\n"), "{}", done.stdout);
    assert!(place.check(&["plan"], 0).stdout.contains("No changes."));
    let done = place.check(&["status"], 0);
    assert!(done.stdout.contains("│ member[\"b\"]/etcd ┆ https://10.0.0.2:2379 ┆ yes     ┆ yes    ┆ 3.5.16  │"), "{}", done.stdout);
    assert!(!done.stdout.contains("ssh_directory"), "{}", done.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&place.check(&["status", "-json", "etcd_cluster.main/member[\"b\"]"], 0).stdout).unwrap();
    assert_eq!(json["resources"][0]["facts"]["leader"], true);
    place.write("main.kf.hcl", &CLUSTER.replace("settings = {}", "settings = { quota-backend-bytes = \"8589934592\" }"));
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("          + ETCD_QUOTA_BACKEND_BYTES=8589934592\n"), "{}", done.stdout);
    assert!(done.stdout.contains(". wait until healthy after member[\"b\"] (at most 5m)\n"), "{}", done.stdout);
    let secret = place.check(&["output", "-raw", "key"], 0).stdout;
    let line = secret.lines().nth(1).unwrap();
    for arguments in
        [&["show"] as &[&str], &["show", "-json"], &["plan"], &["plan", "-json"], &["plan", "-destroy", "-verbose"], &["graph", "-full"]]
    {
        let done = place.check(arguments, 0);
        assert!(!done.stdout.contains(line) && !done.stderr.contains(line), "{arguments:?}");
    }
    place.check(&["plan", "-out=p"], 0);
    assert!(!place.read("p").contains(line));
    place.check(&["apply", "p"], 0);
    assert!(place.check(&["plan"], 0).stdout.contains("No changes."));
    place.check(&["destroy", "-auto-approve"], 0);
    assert_eq!(world.text(), "");
}

#[test]
fn a_failed_step_is_an_error_and_the_rest_is_kept() {
    let world = World::new();
    let place = Place::new(
        "data \"ssh_host\" \"h\" {\n  address = \"a\"\n}\nresource \"ssh_file\" \"one\" {\n  host = data.ssh_host.h.connection\n  \
         path = \"/one\"\n  content = \"1\"\n}\nresource \"ssh_file\" \"two\" {\n  host = data.ssh_host.h.connection\n  path = \"/two\"\n  \
         content = \"2\"\n}\n",
    )
    .over(&world);
    world
        .preset("data ssh_host {\"address\":\"a\"} = {\"connection\":{\"provider\":\"ssh\",\"id\":\"a:22\"},\"hostname\":\"a\"}\n")
        .unwrap();
    world.inject(Fault::apply_to("ssh_file", "/two"));
    let done = place.check(&["apply", "-auto-approve"], 1);
    assert!(done.stderr.contains("Error: ") && done.stderr.contains("with ssh_file.two"), "{done:#?}");
    assert!(!done.stdout.contains("Apply complete!"), "{}", done.stdout);
    assert!(place.check(&["state", "list"], 0).stdout.contains("ssh_file.one\n"));
    world.heal();
    place.check(&["apply", "-auto-approve"], 0);
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("No changes."), "{}", done.stdout);
}

#[test]
fn a_journal_that_a_dead_run_left_is_made_good() {
    let place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    let state = karmaform_model::Snapshot::from_text(&place.read("karmaform.tfstate")).unwrap();
    let address: karmaform_model::Address = "terraform_data.a".parse().unwrap();
    let mut gone = state.clone();
    let lost = gone.resources.remove(&address);
    place.write("karmaform.tfstate", &gone.to_text());
    let mut journal = karmaform_local::FileJournal::open(place.path().join(".karmaform/journal")).unwrap();
    let begin = JournalRecord::Begin { lineage: state.lineage.clone(), serial: state.serial, version: "0.1.0".into() };
    journal.append(&[begin, JournalRecord::Started { address: address.clone(), planned: lost.clone() }]).unwrap();
    journal.append(&[JournalRecord::Ended { address: address.clone(), state: lost }]).unwrap();
    drop(journal);
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("Warning: An earlier run was cut off"), "{}", done.stdout);
    assert!(done.stdout.contains("No changes."), "{}", done.stdout);
    assert!(!place.read("karmaform.tfstate").contains("\"name\": \"a\""), "plan writes nothing");
    place.check(&["plan", "-out=p"], 0);
    place.check(&["apply", "p"], 0);
    assert!(place.read("karmaform.tfstate").contains("\"name\": \"a\""));
    let done = place.check(&["plan"], 0);
    assert!(!done.stdout.contains("cut off"), "{}", done.stdout);
}

#[test]
fn what_must_stay_is_known_by_its_parts_as_well() {
    let world = three_hosts();
    let config = CLUSTER.replace("  settings = {}\n", "  settings = {}\n  lifecycle {\n    prevent_destroy = true\n  }\n");
    let place = Place::new(&config).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    // An apply that ends early has made parts, and not written the record of the whole.
    let mut state: serde_json::Value = serde_json::from_str(&place.read("karmaform.tfstate")).unwrap();
    let resources = state["resources"].as_array_mut().unwrap();
    let before = resources.len();
    resources.retain(|r| r["name"] != "main");
    assert_eq!(resources.len(), before - 1);
    place.write("karmaform.tfstate", &state.to_string());
    for config in [config.as_str(), ""] {
        place.write("main.kf.hcl", config);
        let done = place.check(&["destroy", "-auto-approve"], 1);
        assert_eq!(done.stderr.matches("Error: Instance cannot be destroyed").count(), 1, "{config}: {}", done.stderr);
        assert!(done.stderr.contains("etcd_cluster.main"), "{config}: {}", done.stderr);
    }
    place.write("main.kf.hcl", "removed {\n  from = etcd_cluster.main\n  lifecycle {\n    destroy = true\n  }\n}\n");
    place.check(&["apply", "-auto-approve"], 0);
}
