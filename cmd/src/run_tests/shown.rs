//! What `show -json` says of a plan, in places where outside readers count on a word.

use serde_json::{Value as Json, json};

use super::Place;

const PLAIN: &str = "resource \"terraform_data\" \"a\" {\n  triggers_replace = 1\n}\n";

/// The plan of what is written now, with these flags.
fn planned(place: &Place, flags: &[&str]) -> Json {
    let flags: Vec<&str> = ["plan", "-out=p"].into_iter().chain(flags.iter().copied()).collect();
    place.check(&flags, 0);
    serde_json::from_str(&place.check(&["show", "-json", "p"], 0).stdout).unwrap()
}

#[test]
fn a_replacement_that_is_asked_for_tells_what_needs_it_too() {
    let place = Place::new(PLAIN);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &PLAIN.replace('1', "2"));
    let plan = planned(&place, &["-replace=terraform_data.a"]);
    let change = &plan["resource_changes"][0];
    assert_eq!(
        (&change["action_reason"], &change["change"]["replace_paths"]),
        (&json!("replace_by_request"), &json!([["triggers_replace"]]))
    );
}

#[test]
fn what_is_let_go_stays_where_it_is() {
    let place = Place::new(PLAIN);
    place.check(&["apply", "-auto-approve"], 0);
    let removed = |name: &str| format!("removed {{\n  from = terraform_data.{name}\n  lifecycle {{\n    destroy = false\n  }}\n}}\n");
    for (text, address, reason) in [
        (removed("a"), "terraform_data.a", "delete_because_no_resource_config"),
        (
            format!("moved {{\n  from = terraform_data.a\n  to   = terraform_data.b\n}}\n{}", removed("b")),
            "terraform_data.b",
            "delete_because_no_move_target",
        ),
    ] {
        place.write("main.kf.hcl", &text);
        let plan = planned(&place, &[]);
        assert_eq!(plan["resource_changes"][0]["action_reason"], json!(reason));
        let there = &plan["planned_values"]["root_module"]["resources"][0];
        assert_eq!((&there["address"], &there["sensitive_values"]), (&json!(address), &json!(false)));
        assert!(there.get("values").is_none());
    }
}

#[test]
fn outputs_that_are_secret_or_were_are_there_without_their_values() {
    let output = |more: &str| format!("output \"o\" {{\n  value = \"x\"\n{more}}}\n");
    let place = Place::new(&output("  sensitive = true\n"));
    let secret = json!({ "sensitive": true, "type": "string", "value": null });
    let plan = planned(&place, &[]);
    assert_eq!(plan["prior_state"]["values"]["outputs"]["o"], secret);
    place.check(&["apply", "p"], 0);
    place.write("main.kf.hcl", &output(""));
    assert_eq!(planned(&place, &[])["planned_values"]["outputs"]["o"], secret);
    place.check(&["apply", "p"], 0);
    place.write("main.kf.hcl", &output("  sensitive = true\n"));
    assert_eq!(planned(&place, &[])["prior_state"]["values"]["outputs"]["o"], secret);
}

#[test]
fn an_object_that_was_left_over_is_told_from_the_one_that_is_there() {
    let text = |value: u8, holds: bool| {
        let condition = if holds { "true" } else { "self.id == \"\"" };
        format!(
            "resource \"terraform_data\" \"a\" {{\n  triggers_replace = {value}\n  lifecycle {{\n    create_before_destroy = true\n    postcondition {{\n      \
             condition     = {condition}\n      error_message = \"no\"\n    }}\n  }}\n}}\n"
        )
    };
    let place = Place::new(&text(1, true));
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &text(2, false));
    place.check(&["apply", "-auto-approve"], 1);
    place.write("main.kf.hcl", &text(2, true));
    let plan = planned(&place, &[]);
    let all = plan["resource_changes"].as_array().unwrap();
    let keys: Vec<_> = all.iter().map(|change| change.get("deposed").is_some_and(Json::is_string)).collect();
    assert_eq!(keys, [false, true], "{plan:#}");
}

#[test]
fn the_state_that_was_planned_from_tells_what_is_needed_by_now() {
    let text = |value: u8, needed: &str| {
        format!(
            "resource \"terraform_data\" \"a\" {{}}\nresource \"terraform_data\" \"b\" {{}}\n\
             resource \"terraform_data\" \"changes\" {{\n  input      = {value}\n  depends_on = [terraform_data.{needed}]\n}}\n\
             resource \"terraform_data\" \"stays\" {{\n  depends_on = [terraform_data.{needed}]\n}}\n"
        )
    };
    let place = Place::new(&text(1, "a"));
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &format!("resource \"terraform_data\" \"new\" {{\n  input = terraform_data.b.id\n}}\n{}", text(2, "new")));
    let needs = |flags: &[&str]| {
        let plan = planned(&place, flags);
        let resources = plan["prior_state"]["values"]["root_module"]["resources"].as_array().cloned().unwrap();
        let of = |address: &str| resources.iter().find(|r| r["address"] == *address).unwrap()["depends_on"].clone();
        (of("terraform_data.changes"), of("terraform_data.stays"))
    };
    let (before, now) = (json!(["terraform_data.a"]), json!(["terraform_data.b", "terraform_data.new"]));
    let both = json!(["terraform_data.a", "terraform_data.b", "terraform_data.new"]);
    assert_eq!(needs(&[]), (both, now.clone()));
    assert_eq!(needs(&["-refresh=false"]), (before, now));
    let (_, looked_at) = needs(&["-refresh-only"]);
    let is_told = |address: &str| looked_at.as_array().is_some_and(|all| all.contains(&json!(address)));
    assert!(is_told("terraform_data.a") && is_told("terraform_data.new"), "{looked_at}");
}

#[test]
fn an_output_that_was_secret_is_one_in_the_events_of_its_plan() {
    let place = Place::new("output \"o\" {\n  value     = \"x\"\n  sensitive = true\n}\n");
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", "output \"o\" {\n  value = \"y\"\n}\n");
    let lines = place.check(&["plan", "-json"], 0).stdout;
    let line: Json = lines.lines().map(|l| serde_json::from_str(l).unwrap()).find(|l: &Json| l["type"] == "outputs").unwrap();
    assert_eq!(line["outputs"]["o"], json!({ "action": "update", "sensitive": true }));
}

#[test]
fn what_is_planned_and_modules_are_ordered_by_what_their_addresses_look_like() {
    let place = Place::new("resource \"terraform_data\" \"a\" {\n  count = 11\n}\nmodule \"m\" {\n  source = \"./m\"\n  count  = 11\n}\n");
    std::fs::create_dir(place.path().join("m")).unwrap();
    place.write("m/main.kf.hcl", "resource \"terraform_data\" \"b\" {}\n");
    let addresses = |of: &Json| -> Vec<String> {
        of.as_array().unwrap().iter().take(4).map(|one| one["address"].as_str().unwrap().to_owned()).collect()
    };
    let plan = planned(&place, &[]);
    let root = &plan["planned_values"]["root_module"];
    assert_eq!(addresses(&root["resources"]), ["a[0]", "a[10]", "a[1]", "a[2]"].map(|a| format!("terraform_data.{a}")));
    assert_eq!(addresses(&root["child_modules"]), ["module.m[0]", "module.m[10]", "module.m[1]", "module.m[2]"]);
    assert_eq!(addresses(&plan["resource_changes"]), ["a[0]", "a[1]", "a[2]", "a[3]"].map(|a| format!("terraform_data.{a}")));
    place.check(&["apply", "p"], 0);
    let state: Json = serde_json::from_str(&place.check(&["show", "-json"], 0).stdout).unwrap();
    let root = &state["values"]["root_module"];
    assert_eq!(addresses(&root["resources"]), ["a[0]", "a[1]", "a[2]", "a[3]"].map(|a| format!("terraform_data.{a}")));
    assert_eq!(addresses(&root["child_modules"]), ["module.m[0]", "module.m[10]", "module.m[1]", "module.m[2]"]);
}

#[test]
fn behind_a_splat_all_that_a_module_gives_is_relevant() {
    let place = Place::new("module \"m\" {\n  source = \"./m\"\n  count  = 1\n}\noutput \"all\" {\n  value = module.m[*].first\n}\n");
    std::fs::create_dir(place.path().join("m")).unwrap();
    let output = |name: &str, from: &str| format!("output \"{name}\" {{\n  value = terraform_data.a.{from}\n}}\n");
    let text = format!("resource \"terraform_data\" \"a\" {{}}\n{}{}", output("first", "id"), output("second", "input"));
    place.write("m/main.kf.hcl", &text);
    let relevant = planned(&place, &[])["relevant_attributes"].clone();
    for (resource, attribute) in [("module.m", "id"), ("module.m", "input"), ("module.m[0]", "id"), ("module.m[0]", "input")] {
        let one = json!({ "resource": format!("{resource}.terraform_data.a"), "attribute": [attribute] });
        assert!(relevant.as_array().is_some_and(|all| all.contains(&one)), "{one}: {relevant}");
    }
}
