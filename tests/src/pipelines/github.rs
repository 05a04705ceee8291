//! `github-actions.yml`: every `run:` in the order of its job, as a runner runs them: bash with `-eo pipefail`, files for the environment, outputs and summary.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::scratch::{Done, Scratch, blocks, file};
use crate::parts::tell;

/// One job: what steps before left to the later ones.
struct Job<'a> {
    scratch: &'a Scratch,
    name: &'static str,
}

impl<'a> Job<'a> {
    fn new(scratch: &'a Scratch, name: &'static str) -> Self {
        scratch.folder(&format!("{name}/temp"));
        Self { scratch, name }
    }

    fn at(&self, name: &str) -> String {
        self.scratch.text_at(&format!("{}/{name}", self.name))
    }

    fn read(&self, name: &str) -> String {
        self.scratch.read(&format!("{}/{name}", self.name))
    }

    /// The script of the step of this name.
    fn step(&self, name: &str, more: &[(&str, &str)]) -> Done {
        let script = script(name);
        fs::write(self.at("script"), script).expect("written");
        let files = ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"].map(|n| (n, self.at(n)));
        let temp = self.at("temp");
        let left = self.read("GITHUB_ENV");
        let path = self.read("GITHUB_PATH").trim().to_owned() + ":" + &self.scratch.environment["PATH"];
        let mut environment: Vec<(&str, &str)> = files.iter().map(|(n, v)| (*n, v.as_str())).collect();
        environment.extend([("RUNNER_TEMP", temp.as_str()), ("PATH", path.as_str())]);
        environment.extend(left.lines().filter_map(|l| l.split_once('=')));
        environment.extend(more);
        let command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", &self.at("script")];
        self.scratch.run(&self.scratch.at("repository"), &command, &environment)
    }

    /// What a step gives to others.
    fn output(&self, name: &str) -> Option<String> {
        self.read("GITHUB_OUTPUT")
            .lines()
            .filter_map(|l| l.split_once('='))
            .filter(|(n, _)| *n == name)
            .map(|(_, v)| v.to_owned())
            .next_back()
    }
}

/// The script of the step of this name.
fn script(name: &str) -> String {
    let text = file("github-actions.yml");
    let (_, after) = text.split_once(&format!("name: {name}\n")).unwrap_or_else(|| panic!("no step {name}"));
    blocks(after, "run: |").first().cloned().expect("a script")
}

#[test]
fn a_plan_is_made_shown_and_applied() {
    let scratch = Scratch::new();
    // The binary comes from an address, and with a sum.
    let program = format!("#!/bin/sh\nexec {} \"$@\"\n", scratch.text_at("bin/karmaform"));
    fs::write(scratch.at("download"), &program).expect("written");
    let sum: String = Sha256::digest(&program).iter().map(|b| format!("{b:02x}")).collect();
    let url = format!("file://{}", scratch.text_at("download"));

    let job = Job::new(&scratch, "plan");
    job.step("Install karmaform", &[("URL", &url), ("SHA256", &"0".repeat(64))]).with(1);
    assert!(!Path::new(&scratch.text_at("home/.local/bin/karmaform")).exists(), "a program of another sum");
    job.step("Install karmaform", &[("URL", &url), ("SHA256", &sum)]).with(0);
    assert_eq!(job.read("GITHUB_PATH").trim(), scratch.text_at("home/.local/bin"));
    job.step("Keys as files, to read", &[("SSH_KEY", "KEY"), ("KUBECONFIG_TEXT", "{}")]).with(0);
    assert_eq!((scratch.mode("plan/temp/ssh"), scratch.read("plan/temp/ssh").as_str()), (0o600, "KEY\n"));
    let text = job.step("Plan", &[]).with(0);
    assert!(text.contains("\nPlan: 2 to add, 0 to change, 0 to destroy.\n"), "{text}");
    assert_eq!(job.output("code").as_deref(), Some("2"));
    assert!(job.read("GITHUB_STEP_SUMMARY").contains("terraform_data.a"), "{}", job.read("GITHUB_STEP_SUMMARY"));

    // Another job, another machine: the artifact is all that it has of the first.
    let apply = Job::new(&scratch, "apply");
    apply.step("Install karmaform", &[("URL", &url), ("SHA256", &sum)]).with(0);
    fs::rename(job.at("temp/plan"), apply.at("temp/plan")).expect("the artifact");
    apply.step("Keys as files, to write", &[("SSH_KEY", "KEY"), ("KUBECONFIG_TEXT", "{}")]).with(0);
    let text = apply.step("Apply", &[]).with(0);
    assert!(text.contains("\nApply complete! Resources: 2 added, 0 changed, 0 destroyed.\n"), "{text}");
    assert!(apply.read("temp/events.jsonl").contains("\"apply_complete\""));

    let again = Job::new(&scratch, "again");
    again.step("Keys as files, to read", &[("SSH_KEY", "KEY"), ("KUBECONFIG_TEXT", "{}")]).with(0);
    again.step("Plan", &[]).with(0);
    assert_eq!(again.output("code").as_deref(), Some("0"), "nobody is asked to approve nothing");
    fs::write(scratch.at("repository/fleet/bad.kf.hcl"), "resource {").expect("written");
    fs::remove_dir_all(again.at("temp/plan")).expect("removed");
    again.step("Plan", &[]).with(1);
    assert_eq!(again.output("code").as_deref(), Some("1"));
}

#[test]
fn drift_is_kept_and_told_by_its_code() {
    let scratch = Scratch::new();
    let job = Job::new(&scratch, "drift");
    job.step("Keys as files, to read", &[("SSH_KEY", "KEY"), ("KUBECONFIG_TEXT", "{}")]).with(0);
    // Nothing was made yet.
    job.step("Drift", &[("DRIFT_SLACK_URL", "")]).with(0);
    assert_eq!(job.output("code").as_deref(), Some("2"));
    assert!(job.read("GITHUB_STEP_SUMMARY").contains("data.a</code>"), "{}", job.read("GITHUB_STEP_SUMMARY"));
    assert!(scratch.at("repository/.drift/previous.json").exists(), "what the cache keeps");
    let sarif: serde_json::Value = serde_json::from_str(&scratch.read("repository/.drift/latest/drift.sarif")).expect("the report");
    let texts = sarif.to_string();
    assert!(texts.contains("\"uri\":\"fleet/main.kf.hcl\""), "paths are from the root of the repository: {texts}");

    for (code, ends, says) in
        [("0", 0, ""), ("3", 0, "::warning::"), ("2", 2, "::error::Drift"), ("1", 1, "::error::"), ("4", 1, "::error::")]
    {
        let text = job.step("What it comes to", &[("CODE", code)]).with(ends);
        assert!(text.starts_with(says) && (says.is_empty() == text.is_empty()), "{code}: {text}");
    }
}

/// What GitHub's step has at hand, as far as the script uses it.
const AROUND: &str = r"
const fs = require('fs');
const comments = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const done = [];
const github = {
  paginate: async (list, options) => { done.push(['list', options]); return comments; },
  rest: { issues: {
    listComments: 'list',
    updateComment: async options => done.push(['update', options]),
    createComment: async options => done.push(['create', options]),
  } },
};
const context = { serverUrl: 'https://github.example.com', repo: { owner: 'o', repo: 'r' }, runId: 7, issue: { number: 5 } };
const run = Object.getPrototypeOf(async () => {}).constructor;
new run('github', 'context', 'require', fs.readFileSync(process.argv[3], 'utf8'))(github, context, require)
  .then(() => console.log(JSON.stringify(done)));
";

#[test]
fn the_comment_is_brought_up_to_date() {
    let scratch = Scratch::new();
    if std::process::Command::new("node").arg("--version").output().is_err() {
        tell("*** SKIPPED (no node): the_comment_is_brought_up_to_date");
        return;
    }
    let [script] = blocks(&file("github-actions.yml"), "script: |").try_into().expect("one script");
    scratch.folder("temp/plan");
    for (name, text) in [("around.js", AROUND), ("script.js", script.as_str())] {
        fs::write(scratch.at(name), text).expect("written");
    }
    let comment = |comments: &serde_json::Value, plan: &str| -> serde_json::Value {
        fs::write(scratch.at("comments.json"), comments.to_string()).expect("written");
        fs::write(scratch.at("temp/plan/plan.md"), plan).expect("written");
        let command = ["node", &scratch.text_at("around.js"), &scratch.text_at("comments.json"), &scratch.text_at("script.js")];
        let text = scratch.run(&scratch.at("temp"), &command, &[("RUNNER_TEMP", &scratch.text_at("temp"))]).with(0);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    let of = |id: u64, kind: &str, body: &str| serde_json::json!({ "id": id, "user": { "type": kind }, "body": body });
    let done = comment(&serde_json::json!([of(1, "User", "<!-- karmaform plan -->\nnot ours")]), "the plan");
    assert_eq!((&done[1][0], &done[1][1]["body"]), (&"create".into(), &"<!-- karmaform plan -->\nthe plan".into()));
    assert_eq!(done[1][1]["issue_number"], 5);
    let ours = serde_json::json!([of(1, "User", "x"), of(2, "Bot", "<!-- karmaform plan -->\nold")]);
    let done = comment(&ours, "the new plan");
    assert_eq!((&done[1][0], &done[1][1]["comment_id"]), (&"update".into(), &2.into()));
    assert_eq!(done[1][1]["body"], "<!-- karmaform plan -->\nthe new plan");
    let done = comment(&ours, &"long ".repeat(20_000));
    assert!(
        done[1][1]["body"].as_str().is_some_and(|b| b.len() < 300 && b.contains("https://github.example.com/o/r/actions/runs/7")),
        "{done}"
    );
}
