//! A real Terraform beside us: each reads the other's outputs, and keeps the other out.

use super::gitlab::GitLab;
use super::project;
use crate::asking::Asking;
use crate::project::Project;
use crate::s3::terraform::{run, terraform};

/// The lines within a block.
fn inside(backend: &str) -> String {
    backend.lines().skip(1).take_while(|l| *l != "  }").map(|l| format!("{l}\n")).collect()
}

#[track_caller]
fn must(project: &Project, arguments: &[&str]) -> String {
    let (code, text) = run(project, arguments);
    assert_eq!(code, Some(0), "{text}");
    text
}

#[test]
fn each_reads_the_others_outputs() {
    if !terraform("terraform and karmaform read each other on GitLab") {
        return;
    }
    let server = GitLab::start();
    let (ours, theirs) = (server.backend("ours"), server.backend("theirs"));
    project(&ours, 3).apply();
    let reader = Project::new();
    let text = format!(
        "terraform {{\n{theirs}}}\n\ndata \"terraform_remote_state\" \"ours\" {{\n  backend = \"http\"\n  config = {{\n{}  }}\n}}\n\n\
         output \"seen\" {{\n  value = join(\"+\", data.terraform_remote_state.ours.outputs.things)\n}}\n",
        inside(&ours)
    );
    reader.write("main.tf", &text);
    must(&reader, &["init"]);
    let said = must(&reader, &["apply", "-auto-approve"]);
    assert!(said.contains("seen = \"n0+n1+n2\""), "{said}");

    let reader = Project::new();
    let text = format!(
        "data \"remote_state\" \"theirs\" {{\n  backend = \"http\"\n  config = {{\n{}  }}\n}}\n\n\
         output \"again\" {{\n  value = data.remote_state.theirs.outputs.seen\n}}\n",
        inside(&theirs)
    );
    reader.write("main.kf.hcl", &text);
    reader.apply();
    assert_eq!(reader.output("again"), "n0+n1+n2");
}

#[test]
fn each_keeps_the_other_out() {
    if !terraform("terraform and karmaform keep each other out on GitLab") {
        return;
    }
    let server = GitLab::start();
    let backend = server.backend("exclusion");
    let (ours, theirs) = (project(&backend, 3), Project::new());
    theirs.write("main.tf", &format!("terraform {{\n{backend}}}\n\nresource \"terraform_data\" \"theirs\" {{\n  input = \"theirs\"\n}}\n"));
    must(&theirs, &["init"]);

    let held = Asking::start(&ours).asks();
    let id = server.states()["exclusion"].lock.clone().expect("a lock");
    let (code, text) = run(&theirs, &["plan"]);
    assert!(code == Some(1) && text.contains("Error acquiring the state lock") && text.contains(&id), "{text}");
    held.end("no\n");
    must(&theirs, &["plan"]);

    let held = Asking::of("terraform", &theirs, &[]).asks();
    let id = server.states()["exclusion"].lock.clone().expect("a lock");
    let refused = ours.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains("Error acquiring the state lock") && refused.contains(&id), "{refused}");
    // One that it left behind is removed by us.
    held.kill();
    ours.must(0, &["force-unlock", "-force", &id]);
    ours.apply();
    // And they go on with what we wrote.
    let text = must(&theirs, &["state", "list"]);
    assert_eq!(text.matches("terraform_data.thing[").count(), 3, "{text}");
    must(&theirs, &["apply", "-auto-approve"]);
    let text = must(&theirs, &["state", "list"]);
    assert!(text.contains("terraform_data.theirs") && !text.contains("thing"), "{text}");
    assert!(ours.must(0, &["plan"]).contains("3 to add"));
}
