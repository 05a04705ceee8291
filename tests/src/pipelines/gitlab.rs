//! `gitlab-ci.yml`, run by a program that reads it as GitLab does, each job in a folder of its own with the artifacts of those it needs. Its shells have no images, so
//! that line is left out; all else is as it stands.

use std::fs;

use serde_json::Value;

use super::scratch::{Done, Scratch, file};
use super::webhook::Webhook;
use crate::parts::tell;

struct Runner {
    scratch: Scratch,
    script: String,
}

impl Runner {
    /// `None`, and that is said, where there is no such program.
    fn new(test: &str) -> Option<Self> {
        let Some(script) = std::env::var("KARMAFORM_TEST_GITLAB").ok().filter(|v| !v.is_empty()) else {
            tell(&format!("*** SKIPPED (no gitlab-ci-local): {test}"));
            return None;
        };
        let scratch = Scratch::new();
        let text = file("gitlab-ci.yml");
        let image = "  image:\n    name: registry.example.com/karmaform-tools:0.1.0\n    entrypoint: [\"\"]\n";
        assert!(text.contains(image), "the image");
        fs::write(scratch.at("repository/.gitlab-ci.yml"), text.replace(image, "")).expect("written");
        fs::write(scratch.at("repository/.gitignore"), ".gitlab-ci-local/\n.work/\n.drift/\n").expect("written");
        scratch.git(&["remote", "add", "origin", "https://git.example.com/fleet/karmada.git"]);
        scratch.commit();
        Some(Self { scratch, script })
    }

    /// Runs the jobs of a pipeline that this started.
    fn pipeline(&self, source: &str, more: &[String]) -> Done {
        let key = self.scratch.text_at("home/key");
        fs::write(&key, "KEY\n").expect("written");
        let mut variables = vec![
            format!("CI_PIPELINE_SOURCE={source}"),
            "CONFIGURATION=fleet".to_owned(),
            format!("KF_VAR_private_key_file={key}"),
            "READ_ROLE_ARN=arn:aws:iam::1:role/read".to_owned(),
            "WRITE_ROLE_ARN=arn:aws:iam::1:role/write".to_owned(),
        ];
        variables.extend_from_slice(more);
        let mut command = vec![self.script.as_str(), "--shell-isolation", "--color=false", "--manual=apply"];
        let given: Vec<String> = variables.iter().map(|v| format!("--variable={v}")).collect();
        command.extend(given.iter().map(String::as_str));
        self.scratch.run_fetched(&command)
    }

    /// What a job left in its folder.
    fn left(&self, job: &str, name: &str) -> String {
        self.scratch.read(&format!("repository/.gitlab-ci-local/builds/{}/{name}", job.replace(':', "Og")))
    }
}

#[test]
fn what_is_on_main_is_planned_applied_and_looked_after() {
    let Some(runner) = Runner::new("what_is_on_main_is_planned_applied_and_looked_after") else { return };
    let text = runner.pipeline("push", &[]).with(0);
    assert!(text.contains("Plan: 2 to add, 0 to change, 0 to destroy.") && text.contains("Apply complete! Resources: 2 added"), "{text}");
    let counts: Value = serde_json::from_str(&runner.left("plan:main", ".work/counts.json")).expect("what GitLab counts");
    assert_eq!(counts, serde_json::json!({ "create": 2, "update": 0, "delete": 0 }));
    assert!(runner.left("apply", ".work/events.jsonl").contains("apply_complete"));

    let text = runner.pipeline("schedule", &[]).with(0);
    assert!(text.contains("PASS  drift"), "{text}");
    runner.scratch.configure("two");
    runner.scratch.commit();
    let text = runner.pipeline("schedule", &[]);
    assert!(text.text.contains("FAIL  drift") && text.text.contains("finished in") && text.text.contains("FAIL 2"), "{}", text.text);
    assert!(runner.left("drift", ".drift/latest/drift.xml").contains("terraform_data.a"));
}

#[test]
fn a_merge_request_gets_a_note_that_is_brought_up_to_date() {
    let Some(runner) = Runner::new("a_merge_request_gets_a_note_that_is_brought_up_to_date") else { return };
    let notes = |hook: &Webhook| {
        let own = [
            format!("CI_API_V4_URL=http://127.0.0.1:{}/api/v4", hook.port),
            "CI_PROJECT_ID=1217".to_owned(),
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID=1217".to_owned(),
            "CI_MERGE_REQUEST_IID=5".to_owned(),
            "NOTE_TOKEN=n0te".to_owned(),
        ];
        let text = runner.pipeline("merge_request_event", &own).with(0);
        assert!(text.contains("PASS  note") && !text.contains("apply  "), "{text}");
        hook.requests()
    };
    let path = "/api/v4/projects/1217/merge_requests/5/notes";
    let hook = Webhook::answering("[{\"id\": 3, \"body\": \"of somebody\"}]".to_owned());
    let sent = notes(&hook);
    let lines: Vec<&str> = sent.iter().map(|r| r.line.as_str()).collect();
    assert_eq!(lines, [&format!("GET {path}?per_page=100&order_by=created_at&sort=asc"), &format!("POST {path}")]);
    assert!(sent.iter().all(|r| r.headers.iter().any(|h| h == "private-token: n0te")), "{sent:?}");
    let body: Value = serde_json::from_str(&sent[1].body).expect("a note");
    assert!(body["body"].as_str().is_some_and(|b| b.starts_with("<!-- karmaform plan -->\n") && b.contains("terraform_data.a")), "{body}");

    let hook = Webhook::answering("[{\"id\": 3, \"body\": \"x\"}, {\"id\": 4, \"body\": \"<!-- karmaform plan -->\\nold\"}]".to_owned());
    let sent = notes(&hook);
    assert_eq!(sent[1].line, format!("PUT {path}/4"), "{sent:?}");
}

#[test]
fn a_fork_gets_no_plan() {
    let Some(runner) = Runner::new("a_fork_gets_no_plan") else { return };
    let own = ["CI_PROJECT_ID=1217".to_owned(), "CI_MERGE_REQUEST_SOURCE_PROJECT_ID=99".to_owned(), "NOTE_TOKEN=n0te".to_owned()];
    let done = runner.pipeline("merge_request_event", &own);
    assert!(!done.text.contains("karmaform -chdir"), "{}", done.text);
}
