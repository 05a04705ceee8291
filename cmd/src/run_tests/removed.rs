//! A `removed` block on the way through a saved plan.

use serde_json::Value as Json;

use super::Place;

const BEFORE: &str =
    "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\nresource \"terraform_data\" \"b\" {\n  input = \"two\"\n}\n";
const AFTER: &str = "removed {\n  from = terraform_data.a\n  lifecycle {\n    destroy = false\n  }\n}\nresource \"terraform_data\" \"b\" {\n  input = \"two\"\n}\n";

#[test]
fn what_is_let_go_is_in_the_saved_plan_and_counted() {
    let place = Place::new(BEFORE);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", AFTER);
    place.check(&["fmt", "-check"], 0);
    place.check(&["validate"], 0);
    let done = place.check(&["plan", "-out=p", "-detailed-exitcode"], 2);
    assert!(done.stdout.contains("# terraform_data.a will no longer be managed by karmaform, but will not be destroyed\n"), "{done:#?}");
    assert!(done.stdout.contains("\nPlan: 0 to add, 0 to change, 0 to destroy, 1 to forget.\n"), "{done:#?}");
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(all.contains("Warning: Some objects will no longer be managed"), "{all}");
    let json: Json = serde_json::from_str(&place.check(&["show", "-json", "p"], 0).stdout).unwrap();
    let changes = json["resource_changes"].as_array().unwrap();
    let of = |address: &str| changes.iter().find(|c| c["address"] == address).map(|c| c["change"]["actions"].to_string());
    assert_eq!(of("terraform_data.a").as_deref(), Some("[\"forget\"]"));
    let lines = place.check(&["plan", "-json"], 0).stdout;
    assert!(lines.contains("\"forget\":1") && lines.contains("\"action\":\"remove\""), "{lines}");
    let done = place.check(&["apply", "p"], 0);
    assert!(done.stdout.contains("\nApply complete! Resources: 0 added, 0 changed, 0 destroyed, 1 forgotten.\n"), "{done:#?}");
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.b\n");
    place.check(&["plan", "-detailed-exitcode"], 0);
}
