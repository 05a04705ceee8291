//! `state rebuild`: what a lost state knew, from a configuration and a world.

use karmaform_model::Snapshot;

use super::world::{CLUSTER, three_hosts};
use super::{Done, Place};

fn lose(place: &Place) {
    std::fs::remove_file(place.path().join("karmaform.tfstate")).unwrap();
}

fn resources(place: &Place) -> Snapshot {
    let state = Snapshot::from_text(&place.read("karmaform.tfstate")).unwrap();
    Snapshot { serial: 0, lineage: String::new(), ..state }
}

#[test]
fn a_cluster_is_found_again_with_all_its_keys() {
    let world = three_hosts();
    let place = Place::new(CLUSTER).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    let mut before = resources(&place);
    lose(&place);
    let done = place.check(&["state", "rebuild"], 0);
    assert!(done.stdout.contains("No changes.") && !done.stdout.contains("PRIVATE KEY"), "{}", done.stdout);
    assert!(!done.stderr.contains("lost"), "{}", done.stderr);
    assert!(place.check(&["plan"], 0).stdout.contains("No changes."));
    let mut after = resources(&place);
    // What a command printed is not kept anywhere else.
    for state in [&mut before, &mut after] {
        state.resources.values_mut().filter(|r| r.resource_type == "ssh_command").for_each(|r| drop(r.attributes.remove("output")));
    }
    assert!(before.outputs == after.outputs && before.resources.keys().eq(after.resources.keys()));
    for (address, resource) in &before.resources {
        assert!(*resource == after.resources[address], "{address} is not as it was");
    }
}

#[test]
fn what_only_the_state_had_is_said_to_be_lost_and_the_rest_is_found() {
    let world = three_hosts();
    let place = Place::new(
        &CLUSTER.replace("resource \"etcd_cluster\" \"main\" {", "resource \"etcd_cluster\" \"main\" {\n  keep_authority = false"),
    );
    let place = place.over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    let before = resources(&place).resources.len();
    lose(&place);
    let done = place.check(&["state", "rebuild"], 0);
    let text = format!("{}{}", done.stdout, done.stderr);
    assert!(text.contains("private_key of etcd_cluster.main/client_ca, private_key of etcd_cluster.main/peer_ca"), "{text}");
    assert!(text.contains("the next plan can't be made") && text.contains("Certificate authority without its key"), "{text}");
    // The client certificate, and what it is needed for to look at.
    let after = resources(&place).resources.len();
    assert!((before - 4..before).contains(&after), "{before} {after}");
    place.check(&["plan"], 1);
}

#[test]
fn what_can_not_be_looked_at_is_not_left_out() {
    let world = three_hosts();
    let place = Place::new(CLUSTER).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    lose(&place);
    world.fail_host("10.0.0.2:22");
    let done = place.check(&["state", "rebuild"], 1);
    assert!(done.stderr.contains("10.0.0.2") && place.read("karmaform.tfstate").is_empty(), "{}", done.stderr);
}

#[test]
fn a_state_that_is_there_stays_unless_it_is_to_go() {
    let world = three_hosts();
    let place = Place::new(CLUSTER).over(&world);
    let refused = |done: Done, why: &str| assert!(done.stderr.contains(why), "{}", done.stderr);
    refused(place.check(&["state", "rebuild"], 1), "Nothing to make a state of");
    place.check(&["apply", "-auto-approve"], 0);
    let before = place.read("karmaform.tfstate");
    refused(place.check(&["state", "rebuild"], 1), "State is not lost");
    refused(place.check(&["state", "rebuild", "-force", "-input=false"], 1), "State not approved");
    let place = Place { stdin: "no\n".into(), ..place };
    assert!(place.check(&["state", "rebuild", "-force"], 1).stdout.contains("state rebuild cancelled"));
    assert_eq!(place.read("karmaform.tfstate"), before);
    let place = Place { stdin: "yes\n".into(), ..place };
    place.check(&["state", "rebuild", "-force"], 0);
    let (before, after) = (Snapshot::from_text(&before).unwrap(), Snapshot::from_text(&place.read("karmaform.tfstate")).unwrap());
    assert_eq!((after.lineage, after.serial), (before.lineage, before.serial + 1));
}

#[test]
fn what_waits_for_another_file_is_restarted_once_it_is_there() {
    let text = |content: &str| {
        format!(
            r#"
data "ssh_host" "a" {{
  address = "10.0.0.1"
}}
resource "ssh_file" "config" {{
  host    = data.ssh_host.a.connection
  path       = "/etc/some.conf"
  content    = "{content}"
}}
resource "ssh_systemd_unit" "some" {{
  host             = data.ssh_host.a.connection
  name             = "some.service"
  content          = "[Service]\nExecStart=/bin/true\n"
  restart_triggers = {{ config = ssh_file.config.sha256 }}
}}
resource "ssh_systemd_unit" "other" {{
  host             = data.ssh_host.a.connection
  name             = "other.service"
  content          = "[Service]\nExecStart=/bin/true\n"
  restart_triggers = {{ always = "the same" }}
}}
"#
        )
    };
    let world = three_hosts();
    let place = Place::new(&text("old")).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    lose(&place);
    // Written by somebody else, or by a run that ended before it came to the unit.
    place.write("main.kf.hcl", &text("new"));
    place.check(&["state", "rebuild"], 0);
    let plan = place.check(&["plan"], 0).stdout;
    assert!(plan.contains("Plan: 0 to add, 2 to change, 0 to destroy."), "{plan}");
    assert!(plan.contains("ssh_systemd_unit.some will be updated") && !plan.contains("ssh_systemd_unit.other"), "{plan}");
    place.check(&["apply", "-auto-approve"], 0);
    assert!(place.check(&["plan"], 0).stdout.contains("No changes."));
}
