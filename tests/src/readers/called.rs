//! How tools call the command: Atlantis (`server/core/runtime`: init, workspace, plan, show, apply, version) and tf-summarize (`parser/binary-parser.go`).

use serde_json::Value;

use super::json;
use crate::project::{Ended, Project};

const CONFIG: &str = "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n";

/// With what Atlantis sets.
fn called(project: &Project, arguments: &[&str]) -> Ended {
    project.start_with(arguments, &[("TF_IN_AUTOMATION", "true")]).end()
}

#[track_caller]
fn must(project: &Project, code: i32, arguments: &[&str]) -> String {
    let ended = called(project, arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.text);
    ended.text
}

#[test]
fn atlantis_finds_the_commands_that_it_runs() {
    let project = Project::new();
    project.write("main.kf.hcl", CONFIG);
    must(&project, 0, &["init", "-input=false", "-upgrade"]);
    // Another workspace is selected, or else made.
    assert_eq!(must(&project, 0, &["workspace", "show"]).trim(), "default");
    must(&project, 1, &["workspace", "select", "staging"]);
    must(&project, 0, &["workspace", "new", "staging"]);
    assert_eq!(must(&project, 0, &["workspace", "show"]).trim(), "staging");
    // A path of an owner with a blank in the name; flags and values apart.
    std::fs::create_dir(project.path().join("some one")).expect("a folder");
    let file = project.path().join("some one/staging.tfplan");
    let file = file.to_str().expect("a path");
    let text = must(&project, 0, &["plan", "-input=false", "-refresh", "-out", file]);
    assert!(text.contains("\nPlan: 1 to add, 0 to change, 0 to destroy.\n"), "{text}");
    // What stands above the last of these lines would be cut away.
    assert!(!text.contains("Refreshing state..."), "{text}");
    let shown: Value = serde_json::from_str(&must(&project, 0, &["show", "-json", file])).expect("nothing but JSON in both streams");
    json::plan(&shown, "plan");
    let text = must(&project, 0, &["apply", "-input=false", file]);
    assert!(text.contains("\nApply complete! Resources: 1 added, 0 changed, 0 destroyed.\n"), "{text}");
    let text = must(&project, 0, &["plan", "-input=false", "-refresh", "-out", file]);
    assert!(text.contains("No changes. Your infrastructure matches the configuration."), "{text}");
}

#[test]
fn the_version_is_one_that_tools_go_by() {
    let project = Project::new();
    // The first line, up to a blank or its end.
    let text = must(&project, 0, &["version"]);
    let version = text.lines().next().and_then(|l| l.strip_prefix("Terraform v")).unwrap_or_else(|| panic!("{text}"));
    json::terraform_version(&version.into(), "version");
    let told: Value = serde_json::from_str(&project.must(0, &["version", "-json"])).expect("JSON");
    assert_eq!(told["terraform_version"], version);
    assert!(told["provider_selections"].is_object() && told["terraform_outdated"] == false, "{told}");
    // Who looks at it himself is told what it is.
    assert!(project.must(0, &["version"]).starts_with("karmaform v"));
}
