//! `github-actions.yml` as a whole: read, judged and evaluated by GitHub's own packages, its jobs in their order with what they hand on, for each event that starts it.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::scratch::{Scratch, TOKEN, file};
use crate::parts::tell;

struct Runner {
    scratch: Scratch,
    script: String,
    sum: String,
}

impl Runner {
    /// `None`, and that is said, where there are no such packages.
    fn new(test: &str) -> Option<Self> {
        let Some(script) = std::env::var("KARMAFORM_TEST_GITHUB").ok().filter(|v| !v.is_empty()) else {
            tell(&format!("*** SKIPPED (no packages of GitHub Actions): {test}"));
            return None;
        };
        let scratch = Scratch::new();
        let program = format!("#!/bin/sh\nexec {} \"$@\"\n", scratch.text_at("bin/karmaform"));
        fs::write(scratch.at("download"), &program).expect("written");
        let sum = Sha256::digest(&program).iter().map(|b| format!("{b:02x}")).collect();
        scratch.folder("kept");
        fs::write(scratch.at("workflow.yml"), file("github-actions.yml")).expect("written");
        Some(Self { scratch, script, sum })
    }

    /// What became of each job of the run of this number, which an event of this name started, of a branch in this repository.
    fn run(&self, number: u32, name: &str, branch_of: &str) -> Value {
        let text = self.told(number, name, branch_of);
        let told = text.lines().next_back().unwrap_or_default();
        serde_json::from_str(told).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    fn told(&self, number: u32, name: &str, branch_of: &str) -> String {
        let place = |name: &str| self.scratch.text_at(name);
        let secrets =
            |of: &str| json!({ format!("{of}_SSH_KEY"): "KEY", format!("{of}_KUBECONFIG"): "{}", "TOKEN": TOKEN, "SLACK_URL": "" });
        self.scratch.folder(&format!("run-{number}"));
        let event = json!({
            "github": {
                "event_name": name, "ref": "refs/heads/main", "repository": "o/r", "run_id": number.to_string(), "run_attempt": "1",
                "event": { "pull_request": { "head": { "repo": { "full_name": branch_of } } } },
            },
            "vars": {
                "KARMAFORM_URL": format!("file://{}", place("download")), "KARMAFORM_SHA256": self.sum, "CONFIGURATION": "fleet",
                "AWS_REGION": "eu-west-1", "READ_ROLE_ARN": "read",
            },
            "secrets": secrets("READ"),
            "environments": { "production": { "vars": { "WRITE_ROLE_ARN": "write" }, "secrets": secrets("WRITE") } },
            "repository": place("repository"), "store": place(&format!("run-{number}")), "kept": place("kept"),
            "env": { "PATH": self.scratch.environment["PATH"], "HOME": place("home") },
        });
        fs::write(self.scratch.at("event.json"), event.to_string()).expect("written");
        let command = [self.script.as_str(), &place("workflow.yml"), &place("event.json")];
        self.scratch.run_fetched(&command).text
    }

    fn comments(&self) -> Vec<String> {
        let kept: Vec<Value> = serde_json::from_str(&self.scratch.read("kept/comments.json")).unwrap_or_default();
        kept.iter().map(|c| c["body"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// The jobs by what became of them.
fn results(jobs: &Value) -> [&str; 4] {
    ["plan", "comment", "apply", "drift"].map(|job| jobs[job]["result"].as_str().unwrap_or("?"))
}

#[test]
fn each_event_starts_its_jobs_and_these_do_what_they_are_for() {
    let Some(runner) = Runner::new("each_event_starts_its_jobs_and_these_do_what_they_are_for") else { return };
    // A pull request gets a comment, a second push to it another text in that, and somebody else's nothing.
    let jobs = runner.run(1, "pull_request", "o/r");
    assert_eq!(results(&jobs), ["success", "success", "skipped", "skipped"], "{jobs:#}");
    assert_eq!(jobs["plan"]["role"], "read");
    assert!(jobs["plan"]["summary"].as_str().is_some_and(|s| s.contains("Plan: 2 to add")), "{jobs:#}");
    runner.scratch.configure("two");
    runner.scratch.commit();
    runner.run(2, "pull_request", "o/r");
    let comments = runner.comments();
    assert!(comments.len() == 1 && comments[0].contains("\"two\"") && !comments[0].contains("\"one\""), "{comments:?}");
    assert_eq!(results(&runner.run(3, "pull_request", "fork/r")), ["skipped"; 4]);

    // What is merged is planned by who reads and applied by who writes; where there is nothing to do, nobody is asked.
    let jobs = runner.run(4, "push", "");
    assert_eq!(results(&jobs), ["success", "skipped", "success", "skipped"], "{jobs:#}");
    assert_eq!((&jobs["plan"]["role"], &jobs["apply"]["role"]), (&"read".into(), &"write".into()));
    assert!(jobs["apply"]["log"].as_str().is_some_and(|l| l.contains("Apply complete! Resources: 2 added")), "{jobs:#}");
    assert!(runner.scratch.read("run-4/artifacts/events/events.jsonl").contains("apply_complete"));
    let jobs = runner.run(5, "push", "");
    assert_eq!(results(&jobs), ["success", "skipped", "skipped", "skipped"], "{jobs:#}");
    assert_eq!(jobs["plan"]["outputs"]["code"], "0");

    // By the hour: nothing, and then drift, which is new once.
    let jobs = runner.run(6, "schedule", "");
    assert_eq!(results(&jobs), ["skipped", "skipped", "skipped", "success"], "{jobs:#}");
    runner.scratch.configure("three");
    runner.scratch.commit();
    let drift = |number: u32| {
        let jobs = runner.run(number, "schedule", "");
        assert_eq!(jobs["drift"]["result"], "failure", "{jobs:#}");
        let report = runner.scratch.read(&format!("run-{number}/artifacts/drift/drift.json"));
        assert!(runner.scratch.read(&format!("run-{number}/sarif/karmaform-drift")).contains("fleet/main.kf.hcl"));
        let report: Value = serde_json::from_str(&report).unwrap_or_else(|e| panic!("{e}: {report}"));
        report["findings"].as_array().expect("findings").iter().map(|f| f["new"].as_bool()).collect::<Vec<_>>()
    };
    assert_eq!(drift(7), [Some(true)]);
    assert_eq!(drift(8), [Some(false)]);
}

/// Who reads it would see what is wrong with it.
#[test]
fn a_wrong_workflow_is_refused_by_who_reads_it() {
    let Some(runner) = Runner::new("a_wrong_workflow_is_refused_by_who_reads_it") else { return };
    for (right, wrong, said) in [
        ("    needs: plan\n", "    needs: nope\n", "nope"),
        ("steps.plan.outputs.code }}", "stepz.plan.outputs.code }}", "stepz"),
        ("cron: \"17 * * * *\"", "cron: \"17 * * *\"", "cron"),
        ("      contents: read\n", "      content: read\n", "content"),
    ] {
        let text = file("github-actions.yml");
        assert!(text.contains(right), "{right}");
        fs::write(runner.scratch.at("workflow.yml"), text.replace(right, wrong)).expect("written");
        let told = runner.told(1, "push", "");
        assert!(told.contains(said) && !told.contains("\"result\""), "{wrong}: {told}");
    }
}
