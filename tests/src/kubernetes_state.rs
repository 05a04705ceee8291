//! State in a Kubernetes cluster, as people run it, and a real Terraform beside us.

use crate::asking::Asking;
use crate::parts::tell;
use crate::project::Project;
use crate::s3::terraform::{run, terraform};

/// The block, for a Secret of this name.
pub(crate) fn backend(suffix: &str, kubeconfig: &str) -> String {
    format!(
        "  backend \"kubernetes\" {{\n    secret_suffix = \"{suffix}\"\n    config_path   = \"{kubeconfig}\"\n    namespace     = \"default\"\n  }}\n"
    )
}

/// A project with its state there, and outputs.
fn project(backend: &str, count: usize) -> Project {
    let project = Project::new();
    crate::places::configure(&project, backend, count);
    project
}

#[test]
fn a_state_in_a_secret_and_its_lock_are_terraforms_too() {
    let Ok(kubeconfig) = std::env::var("KARMAFORM_TEST_KUBECONFIG") else {
        return tell("SKIPPED (no Kubernetes): a state in a Secret");
    };
    let suffix = format!("life-{:016x}", fastrand::u64(..));
    let backend = backend(&suffix, &kubeconfig);
    let ours = project(&backend, 3);
    assert!(ours.must(0, &["init"]).contains(&format!("The state will be kept in Secret default/tfstate-default-{suffix}")));
    ours.apply();
    project(&backend, 3).no_changes();
    assert!(ours.must(0, &["doctor"]).contains("exactly one won"));
    assert_eq!(ours.must(0, &["state", "history"]).matches("OperationTypeApply").count(), 1);
    if !terraform("terraform and karmaform on one Secret") {
        return;
    }
    let theirs = Project::new();
    let inside: String = backend.lines().skip(1).take_while(|l| *l != "  }").map(|l| format!("{l}\n")).collect();
    theirs.write(
        "main.tf",
        &format!(
            "terraform {{\n{}}}\n\ndata \"terraform_remote_state\" \"ours\" {{\n  backend = \"kubernetes\"\n  config = {{\n{inside}  }}\n}}\n\n\
             output \"seen\" {{\n  value = join(\"+\", data.terraform_remote_state.ours.outputs.things)\n}}\n",
            backend.replace(&suffix, &format!("{suffix}-theirs"))
        ),
    );
    for arguments in [&["init"][..], &["apply", "-auto-approve"]] {
        let (code, text) = run(&theirs, arguments);
        assert_eq!(code, Some(0), "{text}");
        assert!(arguments[0] == "init" || text.contains("seen = \"n0+n1+n2\""), "{text}");
    }
    // On one state: each keeps the other out.
    let sharing = Project::new();
    sharing
        .write("main.tf", &format!("terraform {{\n{backend}}}\n\nresource \"terraform_data\" \"theirs\" {{\n  input = \"theirs\"\n}}\n"));
    let (code, text) = run(&sharing, &["init"]);
    assert_eq!(code, Some(0), "{text}");
    let more = project(&backend, 4);
    let held = Asking::start(&more).asks();
    let (code, text) = run(&sharing, &["plan"]);
    assert!(code == Some(1) && text.contains("Error acquiring the state lock") && text.contains("OperationTypeApply"), "{text}");
    held.end("no\n");
    let held = Asking::of("terraform", &sharing, &[]).asks();
    let refused = more.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains("Error acquiring the state lock") && refused.contains("Version:   1."), "{refused}");
    held.end("no\n");
    more.apply();
}
