//! A real Terraform beside us: it reads our outputs, and each keeps the other out.

use std::process::{Command, Stdio};

use super::Server;
use crate::asking::Asking;
use crate::project::Project;

/// The command, if the machine has one. It is in no registry, so where it is missing this is skipped.
pub(crate) fn terraform(test: &str) -> bool {
    let is_there = Command::new("terraform").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if !is_there {
        crate::parts::tell(&format!("SKIPPED (no terraform on PATH): {test}"));
    }
    is_there
}

/// Runs it, with nothing but loopback to talk to.
pub(crate) fn run(project: &Project, arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new("terraform").args(arguments).arg("-no-color").current_dir(project.path()).env("CHECKPOINT_DISABLE", "1").output();
    let output = output.expect("terraform");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// A Terraform project with its state at this key.
fn terraform_project(server: &Server, key: &str) -> Project {
    let project = Project::new();
    let backend = server.backend(key);
    project
        .write("main.tf", &format!("terraform {{\n{backend}}}\n\nresource \"terraform_data\" \"theirs\" {{\n  input = \"theirs\"\n}}\n"));
    let (code, text) = run(&project, &["init"]);
    assert_eq!(code, Some(0), "{text}");
    project
}

#[test]
fn terraform_reads_our_outputs() {
    if !terraform("terraform reads our outputs") {
        return;
    }
    for server in Server::all("terraform reads our outputs") {
        let key = server.key("outputs");
        let project = server.project(&key);
        project.apply();
        let reader = Project::new();
        let inside: String = server.backend(&key).lines().skip(1).take_while(|l| *l != "  }").map(|l| format!("{l}\n")).collect();
        reader.write(
            "main.tf",
            &format!(
                "data \"terraform_remote_state\" \"ours\" {{\n  backend = \"s3\"\n  config = {{\n{inside}  }}\n}}\n\n\
                 output \"seen\" {{\n  value = join(\"+\", data.terraform_remote_state.ours.outputs.things)\n}}\n"
            ),
        );
        for arguments in [&["init"][..], &["apply", "-auto-approve"]] {
            let (code, text) = run(&reader, arguments);
            assert_eq!(code, Some(0), "{}: {text}", server.name);
            if arguments[0] == "apply" {
                assert!(text.contains("seen = \"n0+n1+n2\""), "{text}");
            }
        }
    }
}

#[test]
fn each_keeps_the_other_out() {
    if !terraform("terraform and karmaform keep each other out") {
        return;
    }
    for server in Server::all("terraform and karmaform keep each other out") {
        let key = server.key("exclusion");
        let (ours, theirs) = (server.project(&key), terraform_project(&server, &key));

        let held = Asking::start(&ours).asks();
        let (code, text) = run(&theirs, &["plan"]);
        assert!(code == Some(1) && text.contains("Error acquiring the state lock") && text.contains("OperationTypeApply"), "{text}");
        held.end("no\n");
        let (code, text) = run(&theirs, &["plan"]);
        assert_eq!(code, Some(0), "{text}");

        let held = Asking::of("terraform", &theirs, &[]).asks();
        let refused = ours.must(1, &["apply", "-auto-approve"]);
        assert!(refused.contains("Error acquiring the state lock") && refused.contains("Version:   1."), "{refused}");
        // It gives no signs of life, so it is never taken for dead.
        let refused = ours.must(1, &["apply", "-auto-approve", "-lock-timeout=3s"]);
        assert!(!refused.contains("taken over"), "{refused}");
        held.end("no\n");
        ours.apply();
    }
}
