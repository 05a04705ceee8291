//! `-exclude` on the command line and through a saved plan.

use serde_json::Value as Json;

use super::Place;

const CHAIN: &str = "resource \"terraform_data\" \"a\" {\n  input = 1\n}\nresource \"terraform_data\" \"b\" {\n  input = terraform_data.a.output\n}\nmodule \"m\" {\n  source = \"./m\"\n}\n";
const MODULE: &str = "resource \"terraform_data\" \"in\" {\n  input = 1\n}\n";

fn place() -> Place {
    let place = Place::new(CHAIN);
    std::fs::create_dir(place.path().join("m")).unwrap();
    place.write("m/main.kf.hcl", MODULE);
    place
}

#[test]
fn what_is_excluded_is_left_out_of_plans_saved_ones_too() {
    let place = place();
    let done = place.check(&["plan", "-exclude=terraform_data.a", "-out=p", "-detailed-exitcode"], 2);
    assert!(done.stdout.contains("\nPlan: 1 to add, 0 to change, 0 to destroy.\n"), "{done:#?}");
    assert!(format!("{}{}", done.stdout, done.stderr).contains("Warning: Resource exclusion is in effect"), "{done:#?}");
    let json: Json = serde_json::from_str(&place.check(&["show", "-json", "p"], 0).stdout).unwrap();
    assert_eq!(json["complete"], false);
    place.check(&["apply", "p"], 0);
    assert_eq!(place.check(&["state", "list"], 0).stdout, "module.m.terraform_data.in\n");
    place.check(&["apply", "-auto-approve", "-exclude=module.m"], 0);
    assert_eq!(place.check(&["state", "list"], 0).stdout.lines().count(), 3);
    place.check(&["destroy", "-auto-approve", "-exclude=terraform_data.b"], 0);
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.a\nterraform_data.b\n");
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let place = place();
    for (arguments, expected) in [
        (&["plan", "-exclude=terraform_data.a", "-target=terraform_data.b"] as &[&str], "Flags that don't go together"),
        (&["plan", "-exclude=a"], "Invalid address"),
        (&["plan", "-exclude=terraform_data.x"], "Nothing is excluded"),
        (&["destroy", "-auto-approve", "-exclude=module.x"], "Nothing is excluded"),
    ] {
        let done = place.check(arguments, 1);
        assert!(done.stderr.contains(expected), "{arguments:?}: {done:#?}");
    }
    place.check(&["plan", "-out=p"], 0);
    let done = place.check(&["apply", "-exclude=terraform_data.a", "p"], 1);
    assert!(done.stderr.contains("Can't set planning options"), "{done:#?}");
}

#[test]
fn policies_see_what_is_left_out() {
    let place = place();
    let policy = "policy \"whole\" {\n  condition     = length(plan.excludes) == 0\n  error_message = \"Without ${join(\", \", plan.excludes)}.\"\n}\n";
    place.write("policy.kf.hcl", policy);
    place.check(&["plan"], 0);
    let done = place.check(&["plan", "-exclude=terraform_data.a"], 1);
    assert!(done.stderr.contains("Without terraform_data.a."), "{done:#?}");
}
