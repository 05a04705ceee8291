//! Workspaces where others keep them too: in Terraform's places, and gone when they are deleted.

use crate::project::Project;
use crate::s3::Server;
use crate::s3::terraform::{run, terraform};

const OUTPUT: &str =
    "output \"where\" {\n  value = terraform.workspace\n}\n\nresource \"terraform_data\" \"thing\" {\n  input = terraform.workspace\n}\n";

/// Makes two, works in each, deletes one.
fn come_and_go(settings: &str) -> Project {
    let project = Project::new();
    project.write("main.kf.hcl", &format!("karmaform {{\n{settings}}}\n\n{OUTPUT}"));
    project.apply();
    for name in ["dev", "staging-2"] {
        project.must(0, &["workspace", "new", name]);
        assert!(project.must(0, &["plan"]).contains("1 to add"));
        project.apply();
        assert_eq!(project.output("where"), name);
    }
    assert_eq!(project.must(0, &["workspace", "list"]), "  default\n  dev\n* staging-2\n\n");
    project.must(0, &["workspace", "select", "dev"]);
    project.no_changes();
    assert!(project.must(1, &["workspace", "delete", "staging-2"]).contains("holds 1 resource,"));
    project.must(0, &["workspace", "delete", "-force", "staging-2"]);
    assert_eq!(project.must(0, &["workspace", "list"]), "  default\n* dev\n\n");
    assert!(project.must(1, &["workspace", "select", "staging-2"]).contains("doesn't exist"));
    // Its history is gone too: one of the same name begins with nothing.
    project.must(0, &["workspace", "new", "staging-2"]);
    assert!(project.must(0, &["state", "history"]).contains("No run has left a generation yet"));
    project.must(0, &["workspace", "select", "default"]);
    project.must(0, &["workspace", "delete", "staging-2"]);
    assert_eq!(project.output("where"), "default");
    project.no_changes();
    project
}

#[test]
fn on_s3_terraform_sees_them_and_they_are_taken_along() {
    for server in Server::all("workspaces on S3") {
        let key = server.key("workspaces");
        let backend = server.backend(&key);
        let project = come_and_go(&backend);
        if terraform("workspaces that both see") {
            let theirs = Project::new();
            theirs.write("main.tf", &format!("terraform {{\n{backend}}}\n\n{OUTPUT}"));
            let (code, text) = run(&theirs, &["init"]);
            assert_eq!(code, Some(0), "{text}");
            let (_, listed) = run(&theirs, &["workspace", "list"]);
            assert!(listed.contains("* default") && listed.contains("  dev"), "{listed}");
            for arguments in [&["workspace", "select", "dev"][..], &["plan", "-detailed-exitcode"], &["workspace", "new", "theirs"]] {
                let (code, text) = run(&theirs, arguments);
                assert_eq!(code, Some(0), "{arguments:?} {text}");
            }
            assert_eq!(project.must(0, &["workspace", "list"]), "* default\n  dev\n  theirs\n\n");
            project.must(0, &["workspace", "delete", "theirs"]);
        }
        // Into files, all of them.
        project.write("main.kf.hcl", OUTPUT);
        let keys = [("AWS_ACCESS_KEY_ID", server.access_key.as_str()), ("AWS_SECRET_ACCESS_KEY", &server.secret_key)];
        let moved = project.start_with(&["init", "-migrate-state"], &keys).end();
        assert!(
            moved.code == Some(0) && moved.text.contains("The state of the workspace \"dev\" (1 resources) was copied"),
            "{}",
            moved.text
        );
        for name in ["dev", "default"] {
            project.must(0, &["workspace", "select", name]);
            project.no_changes();
            assert_eq!(project.output("where"), name);
        }
        assert!(project.path().join("karmaform.tfstate.d/dev/karmaform.tfstate").is_file());
    }
}

#[test]
fn in_etcd() {
    let Some(etcd) = crate::etcd_server::EtcdServer::start("workspaces in etcd") else { return };
    come_and_go(&format!("  backend \"etcd\" {{\n    endpoints = [\"{}\"]\n    prefix    = \"karmaform/workspaces\"\n  }}\n", etcd.url));
}

#[test]
fn on_kubernetes() {
    let Ok(kubeconfig) = std::env::var("KARMAFORM_TEST_KUBECONFIG") else {
        return crate::parts::tell("SKIPPED (no Kubernetes): workspaces on Kubernetes");
    };
    let suffix = format!("workspaces-{:08x}", fastrand::u32(..));
    come_and_go(&format!("  backend \"kubernetes\" {{\n    secret_suffix = \"{suffix}\"\n    config_path   = \"{kubeconfig}\"\n  }}\n"));
}

#[test]
fn over_http_there_are_none() {
    let project = Project::new();
    project.write(
        "main.kf.hcl",
        &format!("karmaform {{\n  backend \"http\" {{\n    address = \"http://127.0.0.1:1/state\"\n  }}\n}}\n\n{OUTPUT}"),
    );
    let refused = project.must(1, &["workspace", "new", "dev"]);
    assert!(refused.contains("The backend \"http\" has no workspaces"), "{refused}");
    let refused = project.start_with(&["plan"], &[("KF_WORKSPACE", "dev")]).end();
    assert!(refused.code == Some(1) && refused.text.contains("has no workspaces"), "{}", refused.text);
}
