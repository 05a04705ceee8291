//! Tools that can be had read our plans: policies in Rego with an interpreter of that language, as conftest and OPA have one, and terraform-compliance.

use std::process::{Command, Stdio};

use super::life::step;
use crate::parts::{root, tell};
use crate::project::Project;

/// What conftest's users write: over changes, over values, over what refers to what.
const POLICY: &str = r#"package main

deny contains msg if {
  some change in input.resource_changes
  "delete" in change.change.actions
  msg := sprintf("%s goes", [change.address])
}

deny contains msg if {
  some change in input.resource_changes
  change.type == "local_file"
  change.change.after.file_permission != "0600"
  msg := sprintf("%s may be read by all", [change.address])
}

warn contains msg if {
  some change in input.resource_changes
  change.change.after_unknown.input == true
  msg := sprintf("%s is not known", [change.address])
}

uses contains msg if {
  some resource in input.configuration.root_module.resources
  some reference in resource.expressions[_].references
  startswith(reference, "terraform_data.")
  count(split(reference, ".")) == 2
  msg := sprintf("%s of %s", [resource.address, reference])
}

kinds contains resource.type if some resource in input.planned_values.root_module.resources
"#;

const FEATURE: &str = "Feature: what there may be
  Scenario: files are for one
    Given I have local_file defined
    Then it must contain file_permission
    And its value must be 0600
  Scenario: all data is of something
    Given I have terraform_data defined
    Then it must contain input
";

/// The script with the tools; without them that is said aloud.
fn tools(test: &str) -> Option<()> {
    let there = std::env::var("KARMAFORM_TEST_READERS").is_ok_and(|v| !v.is_empty());
    if !there {
        tell(&format!("*** SKIPPED (no readers of plans): {test}"));
    }
    there.then_some(())
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let script = root().join("tests/lab/readers.sh");
    let output = Command::new(script).args(arguments).stdin(Stdio::null()).output().expect("the script");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn policies_in_rego_judge_a_plan() {
    let Some(()) = tools("policies_in_rego_judge_a_plan") else { return };
    let project = Project::new();
    project.write("policy.rego", POLICY);
    let file = |name: &str| project.path().join(name).display().to_string();
    let ask = |name: &str, rule: &str| {
        project.write("plan.json", &step(name).plan.as_ref().expect("a plan").to_string());
        let (code, text) = run(&["rego", &file("policy.rego"), &file("plan.json"), &format!("data.main.{rule}")]);
        assert_eq!(code, Some(0), "{text}");
        text.trim().to_owned()
    };
    let answer = |messages: &[&str]| format!("{{\"expressions\":[{}]}}", serde_json::json!(messages));
    assert_eq!(ask("made", "deny"), answer(&["local_file.f may be read by all"]));
    assert_eq!(ask("made", "warn"), answer(&["terraform_data.many[0] is not known", "terraform_data.many[1] is not known"]));
    assert_eq!(ask("made", "uses"), answer(&["terraform_data.many of terraform_data.base"]));
    assert_eq!(ask("made", "kinds"), answer(&["local_file", "terraform_data"]));
    let gone = ["local_file.f may be read by all", "terraform_data.base goes", "terraform_data.first goes"];
    assert_eq!(ask("replaced", "deny"), answer(&gone));
    assert_eq!(ask("what was deferred", "deny"), answer(&[]));
}

#[test]
fn terraform_compliance_judges_a_plan() {
    let Some(()) = tools("terraform_compliance_judges_a_plan") else { return };
    let project = Project::new();
    std::fs::create_dir(project.path().join("features")).expect("a folder");
    project.write("features/files.feature", FEATURE);
    let judge = |plan: &str| {
        project.write("plan.json", plan);
        let file = |name: &str| project.path().join(name).display().to_string();
        run(&["compliance", &file("features"), &file("plan.json")])
    };
    let plan = step("made").plan.as_ref().expect("a plan").to_string();
    // What is not known yet is found by what it refers to.
    let (code, text) = judge(&plan);
    assert!(text.contains("file_permission property in local_file.f resource does not match with ^0600$"), "{text}");
    assert!(code == Some(1) && text.contains("2 scenarios (1 passed, 1 failed)"), "{code:?} {text}");
    let (code, text) = judge(&plan.replace("\"0644\"", "\"0600\""));
    assert!(code == Some(0) && text.contains("2 scenarios (2 passed)"), "{code:?} {text}");
}
