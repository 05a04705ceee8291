//! A `moved` block on the way through plans, reports, saved plans and drift.

use serde_json::Value as Json;

use super::Place;
use super::world::{CLUSTER, three_hosts};

const BEFORE: &str = "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n";
const AFTER: &str =
    "moved {\n  from = terraform_data.a\n  to   = terraform_data.b\n}\nresource \"terraform_data\" \"b\" {\n  input = \"one\"\n}\n";

fn applied() -> Place {
    let place = Place::new(BEFORE);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", AFTER);
    place
}

#[test]
fn a_move_alone_is_planned_saved_and_applied() {
    let place = applied();
    place.check(&["fmt", "-check"], 0);
    place.check(&["validate"], 0);
    let serial = |place: &Place| serde_json::from_str::<Json>(&place.read("karmaform.tfstate")).unwrap()["serial"].as_u64();
    let before = serial(&place);
    // As in Terraform, there is something to apply.
    let done = place.check(&["plan", "-out=p", "-detailed-exitcode", "-report=markdown=m.md", "-report=html=m.html"], 2);
    assert!(
        done.stdout.contains("\n  # terraform_data.a has moved to terraform_data.b\n    resource \"terraform_data\" \"b\" {\n"),
        "{done:#?}"
    );
    assert!(done.stdout.contains("\nPlan: 0 to add, 0 to change, 0 to destroy.\n"), "{done:#?}");
    assert!(!done.stdout.contains("symbols"), "{done:#?}");
    assert!(place.read("m.md").contains("| 1 | has another address now |"), "{}", place.read("m.md"));
    assert!(place.read("m.html").contains("was terraform_data.a"));
    let json: Json = serde_json::from_str(&place.check(&["show", "-json", "p"], 0).stdout).unwrap();
    let change = &json["resource_changes"][0];
    assert_eq!((&change["address"], &change["previous_address"]), (&"terraform_data.b".into(), &"terraform_data.a".into()));
    assert_eq!(change["change"]["actions"], serde_json::json!(["no-op"]));
    assert_eq!(json["applyable"], true);
    assert_eq!(json["prior_state"]["values"]["root_module"]["resources"][0]["address"], "terraform_data.b");
    let lines = place.check(&["plan", "-json"], 0).stdout;
    let line: Json = lines.lines().map(|l| serde_json::from_str(l).unwrap()).find(|l: &Json| l["type"] == "planned_change").unwrap();
    assert_eq!((&line["change"]["action"], &line["@message"]), (&"move".into(), &"terraform_data.b: Plan to move".into()));
    assert_eq!(line["change"]["previous_resource"]["addr"], "terraform_data.a");
    let done = place.check(&["drift"], 2);
    assert!(done.stdout.contains("it has moved: the state knows it as terraform_data.a"), "{done:#?}");
    let done = place.check(&["apply", "p"], 0);
    assert!(done.stdout.contains("\nApply complete! Resources: 0 added, 0 changed, 0 destroyed.\n"), "{done:#?}");
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.b\n");
    assert_eq!(serial(&place), before.map(|s| s + 1), "it is written once");
    place.check(&["plan", "-detailed-exitcode"], 0);
    place.check(&["drift"], 0);
}

#[test]
fn a_saved_plan_whose_moves_were_touched_is_refused() {
    let place = applied();
    place.check(&["plan", "-out=p"], 0);
    let text = place.read("p");
    assert!(text.contains("\"moved\":{\"terraform_data.b\":\"terraform_data.a\"}"), "{text}");
    place.write("p", &text.replace("\"moved\":{\"terraform_data.b\":\"terraform_data.a\"},", ""));
    assert!(place.check(&["apply", "p"], 1).stderr.contains("Saved plan is stale"));
}

#[test]
fn a_move_with_a_change_says_both_and_refresh_only_takes_it() {
    let place = applied();
    place.write("main.kf.hcl", &AFTER.replace("\"one\"", "\"two\""));
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("  # terraform_data.b will be updated in-place\n  # (moved from terraform_data.a)\n"), "{done:#?}");
    let done = place.check(&["plan", "-refresh-only", "-detailed-exitcode"], 2);
    assert!(done.stdout.contains("  # terraform_data.a has moved to terraform_data.b\n"), "{done:#?}");
    place.check(&["apply", "-refresh-only", "-auto-approve"], 0);
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.b\n");
    place.write("main.kf.hcl", "moved {\n  from = terraform_data.b\n  to   = terraform_data.c\n}\n");
    let done = place.check(&["plan"], 0);
    let because =
        "  # (because terraform_data.b was moved to terraform_data.c, which is not in configuration)\n  # (moved from terraform_data.b)\n";
    assert!(done.stdout.contains(because), "{done:#?}");
    let done = place.check(&["plan", "-destroy"], 0);
    assert!(done.stdout.contains("  # terraform_data.c will be destroyed\n  - resource"), "{done:#?}");
    let done = place.check(&["plan", "-target=terraform_data.x"], 1);
    assert!(done.stderr.contains("Moved resource instances excluded by targeting"), "{done:#?}");
}

#[test]
fn an_etcd_on_hosts_is_not_made_anew_for_its_name() {
    let place = Place::new(CLUSTER).over(&three_hosts());
    place.check(&["apply", "-auto-approve"], 0);
    let text = CLUSTER.replace("etcd_cluster\" \"main\"", "etcd_cluster\" \"prod\"").replace("etcd_cluster.main", "etcd_cluster.prod");
    place.write("main.kf.hcl", &(text + "moved {\n  from = etcd_cluster.main\n  to   = etcd_cluster.prod\n}\n"));
    let done = place.check(&["plan"], 1);
    for part in
        ["Error: Move would make things anew", "main.kf.hcl:1", "call it etcd_cluster.main again", "etcd_cluster.prod/member[\"a\"]"]
    {
        assert!(done.stderr.contains(part), "{part}: {done:#?}");
    }
    assert!(!done.stderr.contains("\"name\""), "there is no such argument: {done:#?}");
    // `count` alone is no reason either.
    place
        .write("main.kf.hcl", &CLUSTER.replace("  version ", "  count   = 1\n  version ").replace("main.client_key", "main[0].client_key"));
    let done = place.check(&["plan"], 1);
    assert!(done.stderr.contains("leave \"count\" as it was"), "{done:#?}");
}
