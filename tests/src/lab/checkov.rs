//! A policy checker of others reads our plans as they are: parts of composites by their addresses and attributes, and composites themselves.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Lab;
use super::project::Given;
use crate::parts::tell;
use crate::project::Project;

#[test]
fn checkov_reads_a_plan_as_it_is() {
    let name = "checkov_reads_a_plan_as_it_is";
    let Some(checkov) = std::env::var("KARMAFORM_TEST_CHECKOV").ok().filter(|v| !v.is_empty()) else {
        tell(&format!("*** SKIPPED (no checkov): {name}"));
        return;
    };
    let Some(lab) = Lab::fresh(name) else { return };
    let etcd = lab.etcd.last().expect("an etcd");
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd, more: "" });
    project.must(0, &["init"]);
    project.must(0, &["plan", "-out=saved"]);
    let plan = project.must(0, &["show", "-json", "saved"]);
    assert!(!plan.contains("PRIVATE KEY"), "a key is in the plan");
    project.write("plan.json", &plan);
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let changes = plan["resource_changes"].as_array().expect("changes");
    let files: Vec<&Value> = changes.iter().filter(|c| c["type"] == "ssh_file").collect();
    let open = files.iter().filter(|c| c["change"]["after"]["mode"] == "0644").count();
    assert!(open > 0 && open < files.len(), "{open} of {}", files.len());

    let checked = check(&project, &checkov, &[("KF_1", "ssh_file", "mode", "0644"), ("KF_2", "etcd_cluster", "version", &etcd.0)]);
    let results = &checked["results"];
    let failed = |id: &str| results["failed_checks"].as_array().expect("a list").iter().filter(|c| c["check_id"] == id).count();
    let passed = results["passed_checks"].as_array().expect("a list").iter().filter(|c| c["check_id"] == "KF_1").count();
    assert_eq!((failed("KF_1"), passed, failed("KF_2")), (open, files.len() - open, 1), "{checked:#}");
    assert_eq!(checked["summary"]["parsing_errors"], 0, "{checked:#}");
    let resources: Vec<&str> = results["failed_checks"].as_array().into_iter().flatten().filter_map(|c| c["resource"].as_str()).collect();
    assert!(resources.contains(&"etcd_cluster.main"), "{resources:?}");
}

/// What it says of the plan, with policies of ours: that an attribute of a type is not this.
fn check(project: &Project, checkov: &str, policies: &[(&str, &str, &str, &str)]) -> Value {
    std::fs::create_dir(project.path().join("policies")).expect("a folder");
    for (id, resource_type, attribute, value) in policies {
        let policy = json!({
            "metadata": { "id": id, "name": format!("{attribute} is not {value}"), "category": "GENERAL_SECURITY" },
            "definition": { "cond_type": "attribute", "resource_types": [resource_type], "attribute": attribute, "operator": "not_equals", "value": value },
        });
        // What is JSON is YAML.
        project.write(&format!("policies/{id}.yaml"), &policy.to_string());
    }
    let output = Command::new(checkov)
        .args(["-f", "plan.json", "--framework", "terraform_plan", "--external-checks-dir", "policies", "--skip-download", "-o", "json"])
        .args(["-c", &policies.iter().map(|p| p.0).collect::<Vec<_>>().join(",")])
        .current_dir(project.path())
        .stdin(Stdio::null())
        .output()
        .expect("checkov");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}\n{}", String::from_utf8_lossy(&output.stderr)))
}
