//! Several states of one configuration.

use super::Place;

const CONFIGURATION: &str = "resource \"terraform_data\" \"where\" {\n  input = terraform.workspace\n}\noutput \"where\" {\n  value = terraform_data.where.output\n}\n";

#[test]
fn each_workspace_has_a_state_of_its_own() {
    let mut place = Place::new(CONFIGURATION);
    assert_eq!(place.check(&["workspace", "show"], 0).stdout, "default\n");
    assert_eq!(place.check(&["workspace", "list"], 0).stdout, "* default\n\n");
    place.check(&["apply", "-auto-approve"], 0);
    let made = place.check(&["workspace", "new", "dev"], 0).stdout;
    assert!(made.starts_with("Created and switched to workspace \"dev\"!\n"), "{made}");
    assert_eq!(place.check(&["workspace", "list"], 0).stdout, "  default\n* dev\n\n");
    assert_eq!(place.read(".karmaform/environment"), "dev");
    // A new one begins empty.
    assert!(place.check(&["plan"], 0).stdout.contains("1 to add"));
    place.stdin = "yes\n".into();
    place.is_terminal = true;
    let asked = place.check(&["apply"], 0).stdout;
    assert!(asked.contains("Do you want to perform these actions in workspace \"dev\"?"), "{asked}");
    place.is_terminal = false;
    assert_eq!(place.check(&["output", "-raw", "where"], 0).stdout, "dev");
    assert!(place.read("karmaform.tfstate.d/dev/karmaform.tfstate").contains("\"dev\""));
    let listed = place.check(&["state", "history", "-json"], 0).stdout;
    assert_eq!(listed.matches("\"serial\"").count(), 1, "{listed}");

    assert_eq!(place.check(&["workspace", "select", "default"], 0).stdout, "Switched to workspace \"default\".\n");
    assert_eq!(place.check(&["output", "-raw", "where"], 0).stdout, "default");
    // The environment chooses for one run, and then nothing can be selected.
    place.set("KF_WORKSPACE", "dev");
    assert_eq!(place.check(&["workspace", "show"], 0).stdout, "dev\n");
    let listed = place.check(&["workspace", "list"], 0).stdout;
    assert_eq!(listed, "  default\n* dev\n\nKF_WORKSPACE chooses the workspace, whatever is selected.\n");
    for command in ["workspace", "state"] {
        assert!(place.check(&[command], 1).stdout.contains("Usage: "));
    }
    assert_eq!(place.check(&["output", "-raw", "where"], 0).stdout, "dev");
    for arguments in [&["workspace", "select", "default"], &["workspace", "new", "x"]] {
        assert!(place.check(arguments, 1).stderr.contains("KF_WORKSPACE"));
    }
    place.set("KF_WORKSPACE", "");
    // Others read its outputs.
    let reader = Place::new(&format!(
        "data \"terraform_remote_state\" \"dev\" {{\n  backend   = \"local\"\n  workspace = \"dev\"\n  config    = {{ workspace_dir = \"{}\" }}\n}}\noutput \"seen\" {{\n  value = data.terraform_remote_state.dev.outputs.where\n}}\n",
        place.path().join("karmaform.tfstate.d").display()
    ));
    reader.check(&["apply", "-auto-approve"], 0);
    assert_eq!(reader.check(&["output", "-raw", "seen"], 0).stdout, "dev");
}

#[test]
fn a_workspace_with_resources_is_not_deleted_by_mistake() {
    let place = Place::new(CONFIGURATION);
    place.check(&["workspace", "new", "dev"], 0);
    place.check(&["apply", "-auto-approve"], 0);
    assert!(place.check(&["workspace", "delete", "dev"], 1).stderr.contains("is the one that is selected"));
    assert!(place.check(&["workspace", "delete", "-force", "default"], 1).stderr.contains("always there"));
    place.check(&["workspace", "select", "default"], 0);
    let refused = place.check(&["workspace", "delete", "dev"], 1).stderr;
    assert!(refused.contains("holds 1 resource,"), "{refused}");
    assert!(place.read("karmaform.tfstate.d/dev/karmaform.tfstate").contains("where"));
    let deleted = place.check(&["workspace", "delete", "-force", "dev"], 0).stdout;
    assert!(deleted.starts_with("Deleted workspace \"dev\"!\n"), "{deleted}");
    assert!(!place.path().join("karmaform.tfstate.d/dev").exists());
    for arguments in [&["workspace", "delete", "dev"], &["workspace", "select", "dev"]] {
        assert!(place.check(arguments, 1).stderr.contains("Workspace \"dev\" doesn't exist"));
    }
    assert_eq!(place.check(&["workspace", "list"], 0).stdout, "* default\n\n");
}

#[test]
fn a_workspace_that_is_not_there_is_not_taken_for_an_empty_one() {
    let mut place = Place::new(CONFIGURATION);
    place.set("KF_WORKSPACE", "dve");
    for arguments in [&["plan"] as &[&str], &["apply", "-auto-approve"], &["state", "list"]] {
        let refused = place.check(arguments, 1).stderr;
        assert!(refused.contains("Workspace \"dve\" doesn't exist") && refused.contains("workspace new dve"), "{refused}");
    }
    for name in ["a/b", "..", "", "ü", "a b"] {
        let arguments = ["workspace", "new", name];
        place.set("KF_WORKSPACE", "");
        assert!(place.check(&arguments, 1).stderr.contains("Invalid workspace name"), "{name:?}");
        place.set("KF_WORKSPACE", name);
        assert!(name.is_empty() || place.check(&["plan"], 1).stderr.contains("Invalid workspace name"), "{name:?}");
    }
}

#[test]
fn a_new_one_can_begin_with_a_copy_and_is_made_when_it_is_selected() {
    let place = Place::new(CONFIGURATION);
    place.check(&["apply", "-auto-approve"], 0);
    place.check(&["workspace", "new", "-state=karmaform.tfstate", "copy"], 0);
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.where\n");
    assert!(place.check(&["workspace", "new", "copy"], 1).stderr.contains("already exists"));
    assert!(place.check(&["workspace", "select", "other"], 1).stderr.contains("doesn't exist"));
    place.check(&["workspace", "select", "-or-create", "other"], 0);
    place.check(&["workspace", "select", "-or-create", "copy"], 0);
    assert_eq!(place.check(&["workspace", "list"], 0).stdout, "  default\n* copy\n  other\n\n");
}

#[test]
fn a_plan_is_for_the_workspace_it_was_made_in() {
    let place = Place::new(CONFIGURATION);
    place.check(&["workspace", "new", "dev"], 0);
    place.check(&["plan", "-out=p"], 0);
    place.check(&["workspace", "select", "default"], 0);
    let refused = place.check(&["apply", "p"], 1).stderr;
    assert!(refused.contains("made in the workspace \"dev\""), "{refused}");
    place.check(&["workspace", "select", "dev"], 0);
    place.check(&["apply", "p"], 0);
    assert_eq!(place.check(&["output", "-raw", "where"], 0).stdout, "dev");
}
