//! Outputs of other configurations: ours, and those that a real Terraform wrote.

use crate::project::Project;
use crate::s3::Server;
use crate::s3::terraform::{run, terraform};

const OUTPUTS: &str =
    "output \"open\" {\n  value = { a = [1, \"two\"] }\n}\n\noutput \"hidden\" {\n  value     = \"hunter2\"\n  sensitive = true\n}\n";

/// Reads a state under both names of the data source.
fn reader(backend: &str, config: &str) -> Project {
    let project = Project::new();
    project.write(
        "main.kf.hcl",
        &format!(
            "data \"terraform_remote_state\" \"one\" {{\n  backend = \"{backend}\"\n  config = {{\n{config}  }}\n}}\n\n\
             data \"remote_state\" \"two\" {{\n  backend  = \"{backend}\"\n  config = {{\n{config}  }}\n  defaults = {{ missing = \"default\", open = \"hidden by the state\" }}\n}}\n\n\
             output \"seen\" {{\n  value = \"${{data.terraform_remote_state.one.outputs.open.a[1]}} ${{data.remote_state.two.outputs.missing}}\"\n}}\n\n\
             output \"secret\" {{\n  value     = data.remote_state.two.outputs.hidden\n  sensitive = true\n}}\n"
        ),
    );
    project
}

fn reads(project: &Project) {
    let text = project.apply();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(project.output("seen"), "two default");
    assert_eq!(project.output("secret"), "hunter2");
    project.no_changes();
    // What is sensitive there can't be told here by mistake.
    let source = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("read");
    project.write("main.kf.hcl", &source.replace("  sensitive = true\n", ""));
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("sensitive") && !refused.contains("hunter2"), "{refused}");
}

#[test]
fn outputs_of_a_local_state_are_read() {
    let source = Project::new();
    source.write("main.kf.hcl", OUTPUTS);
    let config = format!("    path = \"{}\"\n", source.path().join("karmaform.tfstate").display());
    let project = reader("local", &config);
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("Unable to find remote state"), "{refused}");
    source.apply();
    reads(&project);
    for (from, to, words) in [
        ("backend = \"local\"", "backend = \"locla\"", "There is no backend \"locla\""),
        ("path =", "pth =", "has no argument \"pth\""),
        ("data.terraform_remote_state.one.outputs.open.a[1]", "data.terraform_remote_state.one.outputs.nothing", "nothing"),
    ] {
        let text = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("read");
        let other = Project::new();
        other.write("main.kf.hcl", &text.replace(from, to));
        let refused = other.must(1, &["plan"]);
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn outputs_of_a_terraform_are_read() {
    if !terraform("outputs that terraform wrote") {
        return;
    }
    let source = Project::new();
    source.write("main.tf", OUTPUTS);
    let (code, text) = run(&source, &["apply", "-auto-approve"]);
    assert_eq!(code, Some(0), "{text}");
    reads(&reader("local", &format!("    path = \"{}\"\n", source.path().join("terraform.tfstate").display())));
    for server in Server::all("outputs that terraform wrote to S3") {
        let key = server.key("theirs");
        let backend = server.backend(&key);
        let source = Project::new();
        source.write("main.tf", &format!("terraform {{\n{backend}}}\n{OUTPUTS}"));
        for arguments in [&["init"][..], &["apply", "-auto-approve"]] {
            let (code, text) = run(&source, arguments);
            assert_eq!(code, Some(0), "{text}");
        }
        let inside: String = backend.lines().skip(1).take_while(|l| *l != "  }").map(|l| format!("{l}\n")).collect();
        reads(&reader("s3", &inside));
    }
}
