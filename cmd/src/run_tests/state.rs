//! Commands that change the state, or look into what earlier runs left.

use karmaform_memory::World;
use karmaform_model::Snapshot;
use serde_json::Value as Json;

use super::world::{CLUSTER, three_hosts};
use super::{Place, TWO};

fn dependencies(place: &Place, address: &str) -> Vec<String> {
    let state = Snapshot::from_text(&place.read("karmaform.tfstate")).unwrap();
    state.resources[&address.parse().unwrap()].dependencies.iter().map(ToString::to_string).collect()
}

#[test]
fn what_runs_left_in_a_local_file_can_be_seen_and_brought_back() {
    let place = Place::new(TWO);
    assert!(place.check(&["state", "history"], 0).stdout.contains("No run has left a generation yet"));
    place.check(&["plan"], 0);
    for input in ["one", "two", "two"] {
        place.write("main.kf.hcl", &TWO.replace("one", input));
        place.check(&["apply", "-auto-approve"], 0);
    }
    let listed = || -> Vec<Json> { serde_json::from_str(&place.check(&["state", "history", "-json"], 0).stdout).unwrap() };
    let all = listed();
    assert_eq!(all.len(), 2, "a run without changes leaves none: {all:?}");
    assert!(all.iter().all(|g| g["operation"] == "OperationTypeApply" && g["who"] == "user@host" && g["resources"] == 2), "{all:?}");
    let first = all[0]["serial"].to_string();
    let flag = format!("-generation={first}");
    assert!(place.check(&["state", "show", &flag, "terraform_data.a"], 0).stdout.contains("\"one\""));
    assert!(place.check(&["state", "pull", &flag], 0).stdout.contains("\"one\""));
    let refused = place.check(&["state", "restore", "4711"], 1).stderr;
    assert!(refused.contains("serial 4711 is not kept") && refused.contains(&format!("Kept are {first}, ")), "{refused}");
    assert!(place.check(&["state", "restore", &first], 0).stdout.contains("2 resources"));
    assert!(place.check(&["plan"], 0).stdout.contains("~ input  = \"one\" -> \"two\""));
    assert_eq!(listed().last().unwrap()["operation"], "state-restore");
    // Each state has a history of its own.
    std::fs::copy(place.path().join("karmaform.tfstate"), place.path().join("other.tfstate")).unwrap();
    place.check(&["state", "rm", "-state=other.tfstate", "terraform_data.a"], 0);
    let other: Vec<Json> = serde_json::from_str(&place.check(&["state", "history", "-json", "-state=other.tfstate"], 0).stdout).unwrap();
    assert_eq!((other.len(), &other[0]["operation"], &other[0]["resources"]), (1, &"state-rm".into(), &1.into()));
    let flag = format!("-generation={}", other[0]["serial"]);
    place.check(&["state", "show", "-state=other.tfstate", &flag, "terraform_data.b"], 0);
    place.check(&["state", "show", &flag, "terraform_data.b"], 1);
    assert_eq!(listed().len(), 3);
}

#[test]
fn a_resource_with_another_address_is_the_same_thing() {
    let place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    let before = place.read("karmaform.tfstate");
    let done = place.check(&["state", "mv", "-dry-run", "terraform_data.a", "terraform_data.first"], 0);
    assert_eq!(done.stdout, "Would move \"terraform_data.a\" to \"terraform_data.first\"\n");
    assert_eq!(place.read("karmaform.tfstate"), before);
    let refused = place.check(&["state", "mv", "terraform_data.a", "terraform_data.b"], 1).stderr;
    assert!(refused.contains("Error: Invalid target address"), "{refused}");
    place.check(&["state", "mv", "terraform_data.a", "no address"], 1);
    place.check(&["state", "mv", "terraform_data.a"], 1);
    assert_eq!(place.read("karmaform.tfstate"), before);
    let done = place.check(&["state", "mv", "terraform_data.a", "terraform_data.first[\"x\"]"], 0);
    assert_eq!(done.stdout, "Move \"terraform_data.a\" to \"terraform_data.first[\\\"x\\\"]\"\nSuccessfully moved 1 object(s).\n");
    assert_eq!(dependencies(&place, "terraform_data.b"), ["terraform_data.first[\"x\"]"]);
    let config = TWO
        .replace("\"a\" {", "\"first\" {\n  for_each = toset([\"x\"])")
        .replace("terraform_data.a.output", "terraform_data.first[\"x\"].output");
    place.write("main.kf.hcl", &config);
    place.check(&["plan", "-detailed-exitcode"], 0);
    let history: Vec<Json> = serde_json::from_str(&place.check(&["state", "history", "-json"], 0).stdout).unwrap();
    assert_eq!(history.last().unwrap()["operation"], "state-mv");
    place.check(&["destroy", "-auto-approve"], 0);
}

#[test]
fn a_composite_takes_its_parts_along_and_nobody_takes_them_for_another_s() {
    let world = three_hosts();
    let place = Place::new(CLUSTER).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    let (there, before) = (world.text(), place.check(&["state", "list"], 0).stdout);
    let done = place.check(&["state", "mv", "etcd_cluster.main", "etcd_cluster.prod[\"eu\"]"], 0);
    assert!(done.stdout.contains("Successfully moved 1 object(s).\n") && done.stdout.contains("run plan before"), "{}", done.stdout);
    let listed = place.check(&["state", "list"], 0).stdout;
    assert!(listed.contains("etcd_cluster.prod[\"eu\"]/member[\"a\"]/unit\n"), "{listed}");
    assert_eq!(listed, before.replace("etcd_cluster.main", "etcd_cluster.prod[\"eu\"]"));
    assert_eq!(world.text(), there, "nothing outside was touched");
    // On hosts its parts are called after it. Nothing is taken for a stranger's, and no data is given up for a name.
    place.write(
        "main.kf.hcl",
        &CLUSTER.replace("\"main\" {", "\"prod\" {\n  for_each = toset([\"eu\"])").replace(".main.", ".prod[\"eu\"]."),
    );
    let refused = place.check(&["plan"], 1).stderr;
    assert!(
        refused.contains("Error: A CA of a formed cluster can't be replaced in place") && !refused.contains("Exists already"),
        "{refused}"
    );
    place.write("main.kf.hcl", CLUSTER);
    // Back again it is as it was.
    place.check(&["state", "mv", "etcd_cluster.prod[\"eu\"]", "etcd_cluster.main"], 0);
    place.check(&["plan", "-detailed-exitcode"], 0);
    place.check(&["destroy", "-auto-approve"], 0);
    assert_eq!(world.text(), "");
}

#[test]
fn a_file_on_a_host_stays_ours_under_another_address() {
    let world = World::new();
    let host = "data ssh_host {\"address\":\"a\"} = {\"connection\":{\"provider\":\"ssh\",\"id\":\"a:22\"},\"hostname\":\"a\"}\n";
    world.preset(host).unwrap();
    let config = "data \"ssh_host\" \"h\" {\n  address = \"a\"\n}\nresource \"ssh_file\" \"one\" {\n  host = data.ssh_host.h.connection\n  \
                  path = \"/one\"\n  content = \"1\"\n}\n";
    let place = Place::new(config).over(&world);
    place.check(&["apply", "-auto-approve"], 0);
    place.check(&["state", "mv", "ssh_file.one", "ssh_file.two"], 0);
    place.write("main.kf.hcl", &config.replace("\"one\"", "\"two\""));
    place.check(&["plan", "-detailed-exitcode"], 0);
    place.check(&["destroy", "-auto-approve"], 0);
    assert!(!world.text().contains("ssh_file"), "{}", world.text());
}
