//! `tekton.yaml` and `argo-workflows.yaml`: every script in its order, by the shell that the file names, with volumes as folders.

use std::fs;

use sha2::{Digest as _, Sha256};

use super::scratch::{Done, Scratch, TOKEN, blocks, file};
use crate::parts::tell;

/// The secrets as files, the volumes as folders.
fn scratch() -> Scratch {
    let mut scratch = Scratch::new();
    let secrets = scratch.folder("secrets");
    for (name, text) in [("ssh", "KEY\n"), ("kubeconfig", "{}\n"), ("variables", &format!("# a comment\nOTHER=1\nKF_VAR_token={TOKEN}"))] {
        fs::write(secrets.join(name), text).expect("written");
    }
    scratch.folder("work");
    scratch.folder("results");
    let given = [
        ("HOME", scratch.folder("tmp").display().to_string()),
        ("URL", format!("file://{}", scratch.text_at("repository"))),
        ("REVISION", "main".to_owned()),
        ("WORK", scratch.text_at("work")),
        ("SECRETS", secrets.display().to_string()),
        ("DRIFT_DIR", scratch.text_at("reports")),
        ("DRIFT_SLACK_URL_FILE", scratch.text_at("secrets/slack")),
        ("KF_VAR_private_key_file", scratch.text_at("secrets/ssh")),
        ("KF_VAR_kubeconfig", scratch.text_at("secrets/kubeconfig")),
    ];
    scratch.environment.extend(given.map(|(n, v)| (n.to_owned(), v)));
    scratch
}

/// A script with places of the pod for those here.
fn here(scratch: &Scratch, script: &str) -> String {
    let argo = file("argo-workflows.yaml");
    let mounted = argo.lines().find_map(|l| l.trim().strip_prefix("- { name: work, mountPath: ")?.strip_suffix(" }")).expect("its volume");
    let mounted = format!("{mounted}/");
    let places = [
        ("$(results.code.path)", scratch.text_at("results/code")),
        ("$(results.plan-sha256.path)", scratch.text_at("results/sum")),
        ("/tmp/", scratch.text_at("tmp/")),
        (&*mounted, scratch.text_at("work/")),
    ];
    let (mut out, mut rest) = (String::new(), script);
    while let Some(next) = rest.chars().next() {
        if let Some((from, to)) = places.iter().find(|(from, _)| rest.starts_with(from)) {
            out.push_str(to);
            rest = &rest[from.len()..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

#[test]
fn tekton_plans_and_applies_the_plan_that_was_looked_at() {
    let mut scratch = scratch();
    // It comes with the secrets.
    scratch.environment.remove("KF_VAR_token");
    let [plan, apply, drift] = blocks(&file("tekton.yaml"), "script: |").try_into().expect("three scripts");
    let run = |script: &str, more: &[(&str, &str)]| -> Done {
        assert!(script.starts_with("#!/bin/sh\n"), "{script}");
        fs::write(scratch.at("script"), here(&scratch, script)).expect("written");
        scratch.run(&scratch.at("tmp"), &["/bin/sh", &scratch.text_at("script")], more)
    };
    run(&plan, &[]).with(0);
    assert_eq!(scratch.read("results/code"), "2");
    let sum: String =
        Sha256::digest(fs::read(scratch.at("work/plan/plan.kfplan")).expect("the plan")).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(scratch.read("results/sum"), sum, "without a line end");
    assert!(scratch.read("work/plan/plan.md").contains("terraform_data.a"));

    let text = run(&apply, &[("SUM", &"0".repeat(64))]).with(1);
    assert!(!text.contains("Apply complete!"), "another plan than was looked at: {text}");
    let text = run(&apply, &[("SUM", &sum)]).with(0);
    assert!(text.contains("\nApply complete! Resources: 2 added, 0 changed, 0 destroyed.\n"), "{text}");

    // A second run over the same claim, with what is on the branch by then.
    run(&plan, &[]).with(0);
    assert_eq!(scratch.read("results/code"), "0");
    run(&drift, &[]).with(0);
    fs::remove_dir_all(scratch.at("tmp/source")).expect("the pod is gone");
    scratch.configure("two");
    scratch.commit();
    run(&drift, &[]).with(2);
    assert!(scratch.read("reports/latest/drift.md").contains("data.a</code>"));
    // An error of the plan fails the task, and gives no result.
    fs::write(scratch.at("repository/fleet/bad.kf.hcl"), "resource {").expect("written");
    scratch.commit();
    fs::remove_file(scratch.at("results/code")).expect("removed");
    run(&plan, &[]).with(1);
    assert!(!scratch.at("results/code").exists());
}

#[test]
fn argo_plans_and_applies() {
    let scratch = scratch();
    let text = file("argo-workflows.yaml");
    let scripts = blocks(&text, "- |");
    let [plan, drift] = scripts.as_slice() else { panic!("{scripts:?}") };
    assert_eq!(text.matches("command: [/bin/sh, -euc]").count(), 2);
    let shell = |script: &str| scratch.run(&scratch.at("tmp"), &["/bin/sh", "-euc", &here(&scratch, script)], &[]);
    shell(plan).with(0);
    assert_eq!(scratch.read("tmp/code"), "2");

    let (_, line) = text.split_once("args: [\"-chdir=").expect("what apply is given");
    let line = format!("-chdir={}", line.split_once(']').expect("its end").0);
    let line = line.replace("{{workflow.parameters.configuration}}", "fleet");
    let arguments: Vec<String> = line.split(',').map(|a| here(&scratch, a.trim().trim_matches('"'))).collect();
    let command: Vec<&str> = std::iter::once("karmaform").chain(arguments.iter().map(String::as_str)).collect();
    let text = scratch.run(&scratch.at("tmp"), &[&["/usr/bin/env"], command.as_slice()].concat(), &[]).with(0);
    assert!(text.contains("\nApply complete! Resources: 2 added, 0 changed, 0 destroyed.\n"), "{text}");

    shell(drift).with(0);
    scratch.configure("two");
    scratch.commit();
    fs::remove_dir_all(scratch.at("tmp/source")).expect("the pod is gone");
    shell(drift).with(2);
    assert!(scratch.read("reports/latest/drift.md").contains("data.a</code>"));
}

/// Who reads them knows all that stands there.
#[test]
fn manifests_are_as_their_kinds_are() {
    let Some(judge) = std::env::var("KARMAFORM_TEST_MANIFESTS").ok().filter(|v| !v.is_empty()) else {
        tell("*** SKIPPED (no judges of manifests): manifests_are_as_their_kinds_are");
        return;
    };
    let scratch = scratch();
    let judged = |kind: &str, text: &str| {
        fs::write(scratch.at("manifests.yaml"), text).expect("written");
        let command = [judge.as_str(), kind, &scratch.text_at("manifests.yaml")];
        scratch.run_fetched(&command)
    };
    for (kind, name, wrong) in [
        (
            "tekton",
            "tekton.yaml",
            [("- name: revision\n", "- name: revisiom\n", "revision"), ("value: $(params.url)", "value: $(params.uri)", "uri")],
        ),
        (
            "argo",
            "argo-workflows.yaml",
            [("  schedules:", "  schedulez:", "schedules"), ("template: approve", "template: approved", "approved")],
        ),
    ] {
        let text = file(name);
        judged(kind, &text).with(0);
        for (right, wrong, said) in wrong {
            assert!(text.contains(right), "{right}");
            let told = judged(kind, &text.replace(right, wrong)).with(1);
            assert!(told.contains(said), "{wrong}: {told}");
        }
    }
}
