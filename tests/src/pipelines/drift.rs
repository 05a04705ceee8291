//! That `drift.sh` tells what is new, and that once, with the real command and a webhook on loopback.

use std::process::Command;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::webhook::Webhook;
use crate::parts::root;
use crate::project::Project;

const CONFIG: &str = "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n";

/// Runs the script as cron would, and gives its exit code.
fn drift(project: &Project, hooks: &[(&str, &Webhook)]) -> Option<i32> {
    let urls = hooks.iter().map(|(name, hook)| (format!("DRIFT_{name}_URL"), format!("http://127.0.0.1:{}", hook.port)));
    let output = Command::new("sh")
        .arg(root().join("docs/pipelines/drift.sh"))
        .current_dir(project.path())
        .env("KARMAFORM", env!("CARGO_BIN_EXE_karmaform-under-test"))
        .env("DRIFT_DIR", project.path().join("reports"))
        .env("DRIFT_TEXTFILE", project.path().join("drift.prom"))
        .env("DRIFT_MAX_TIME", "5")
        .envs(urls)
        .output()
        .expect("sh");
    output.status.code()
}

#[test]
fn drift_is_told_once_and_what_was_not_heard_is_told_again() {
    let project = Project::new();
    project.write("main.kf.hcl", CONFIG);
    project.must(0, &["init"]);
    project.apply();
    let (slack, alerts, plain) = (Webhook::start(), Webhook::start(), Webhook::start());
    let hooks = [("SLACK", &slack), ("ALERTMANAGER", &alerts), ("WEBHOOK", &plain)];
    assert_eq!(drift(&project, &hooks), Some(0));
    assert_eq!((slack.told(), plain.told(), alerts.told()), (vec![], vec![], vec!["[]\n".to_owned()]));

    project.write("main.kf.hcl", &CONFIG.replace("one", "two"));
    // Slack is away: who heard it hears it again, rather than nobody.
    slack.status.store(500, Ordering::SeqCst);
    assert_eq!(drift(&project, &hooks), Some(2));
    assert_eq!((slack.told().len(), plain.told().len(), alerts.told().len()), (0, 1, 1));
    slack.status.store(200, Ordering::SeqCst);
    assert_eq!(drift(&project, &hooks), Some(2));
    let told = slack.told();
    assert!(told.len() == 1 && told[0].contains("1 new, 0 gone") && told[0].contains("terraform_data.a"), "{told:?}");
    let report: Value = serde_json::from_str(&plain.told()[0]).expect("the report");
    assert_eq!(report["findings"][0]["new"], true);

    alerts.told();
    assert_eq!(drift(&project, &hooks), Some(2));
    assert_eq!(
        (slack.told().len(), plain.told().len(), alerts.told().len()),
        (0, 0, 1),
        "nothing is new, and Alertmanager decides by itself"
    );
    project.apply();
    assert_eq!(drift(&project, &hooks), Some(0));
    assert!(slack.told()[0].contains("0 new, 1 gone"));
    assert!(std::fs::read_to_string(project.path().join("drift.prom")).is_ok_and(|t| t.contains("karmaform_drift_exit_code 0")));

    // A configuration that can't be read: everybody hears that, each time, and what was told last stays.
    let read = |name: &str| std::fs::read_to_string(project.path().join(name)).expect("a file");
    let last = read("reports/previous.json");
    project.write("main.kf.hcl", "resource {");
    alerts.told();
    plain.told();
    for _ in 0..2 {
        assert_eq!(drift(&project, &hooks), Some(1));
        let (message, report, alert) = (slack.told(), plain.told(), alerts.told());
        assert!(message.len() == 1 && message[0].contains("Nothing could be looked at"), "{message:?}");
        let report: Value = serde_json::from_str(&report[0]).expect("the report");
        assert_eq!((&report["looked"], &report["exit_code"]), (&false.into(), &1.into()));
        assert!(alert[0].contains("KarmaformDriftFailed"), "{alert:?}");
        assert_eq!(read("reports/previous.json"), last);
    }
    let metrics = read("drift.prom");
    assert!(metrics.contains("karmaform_drift_failed 1\n") && !metrics.contains("karmaform_drift_findings"), "{metrics}");
    project.write("main.kf.hcl", &CONFIG.replace("one", "two"));
    assert_eq!(drift(&project, &hooks), Some(0));
    assert_eq!((slack.told(), plain.told()), (vec![], vec![]));
    assert!(read("drift.prom").contains("karmaform_drift_failed 0\n"));
}

#[test]
fn the_file_that_code_scanning_gets_names_files_that_are_there() {
    let project = Project::new();
    std::fs::create_dir_all(project.path().join("fleets/eu")).expect("folders");
    std::fs::create_dir(project.path().join(".git")).expect("a folder");
    project.write("fleets/eu/main.kf.hcl", CONFIG);
    // As the workflow runs it, from the top of the repository.
    let script = Command::new("sh")
        .arg(root().join("docs/pipelines/drift.sh"))
        .current_dir(project.path())
        .env("KARMAFORM", env!("CARGO_BIN_EXE_karmaform-under-test"))
        .env("DRIFT_CHDIR", "fleets/eu")
        .output()
        .expect("sh");
    assert_eq!(script.status.code(), Some(2), "{script:?}");
    let workflow = std::fs::read_to_string(root().join("docs/pipelines/github-actions.yml")).expect("the workflow");
    let file = workflow.lines().find_map(|line| line.trim().strip_prefix("sarif_file: ")).expect("a file");
    let text = std::fs::read_to_string(project.path().join(file)).expect("the file that is sent");
    let sarif: Value = serde_json::from_str(&text).expect("JSON");
    let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(project.path().join(location.as_str().expect("a place")).is_file(), "{location}");
}
