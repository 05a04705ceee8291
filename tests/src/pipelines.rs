//! `docs/pipelines`: that `drift.sh` tells what is new, and that once, with the real command and a webhook on loopback; and that the files there
//! give the command no flag that it does not have.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::parts::root;
use crate::project::Project;

const CONFIG: &str = "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n";

/// A webhook on loopback: what it is sent, and what it answers.
struct Webhook {
    port: u16,
    bodies: Arc<Mutex<Vec<String>>>,
    status: Arc<AtomicU16>,
}

impl Webhook {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (bodies, status) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(AtomicU16::new(200)));
        let (told, answers) = (Arc::clone(&bodies), Arc::clone(&status));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    let header = line.to_ascii_lowercase();
                    length = header.strip_prefix("content-length:").and_then(|v| v.trim().parse().ok()).unwrap_or(length);
                    line.clear();
                }
                let mut body = vec![0; length];
                let status = answers.load(Ordering::SeqCst);
                if reader.read_exact(&mut body).is_ok() && status == 200 {
                    told.lock().expect("the list").push(String::from_utf8_lossy(&body).into_owned());
                }
                let _ = write!(reader.get_mut(), "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        Self { port, bodies, status }
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.bodies.lock().expect("the list"))
    }
}

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

    // A configuration that can't be read: no report, no news, and what was told last stays.
    project.write("main.kf.hcl", "resource {");
    assert_eq!(drift(&project, &hooks), Some(1));
    assert!(slack.told().is_empty() && project.path().join("reports/previous.json").exists());
}

/// The words of a line of shell that begin with a dash, up to `=` or a quote.
fn flags(line: &str) -> impl Iterator<Item = String> + '_ {
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '[' | ']' | ',' | '(' | ')'));
    words.filter(|w| w.starts_with('-') && w.len() > 2 && !w.starts_with("--")).map(|w| w.split('=').next().unwrap_or(w).to_owned())
}

#[test]
fn pipelines_use_flags_that_there_are() {
    let project = Project::new();
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("docs/pipelines")).expect("the files").flatten().filter(|e| e.path().is_file()) {
        // A command that goes on in the next line is one.
        let text = std::fs::read_to_string(entry.path()).expect("text").replace("\\\n", " ");
        for line in text.lines().filter(|l| !l.trim_start().starts_with('#')) {
            for command in ["plan", "apply", "drift", "show", "init"] {
                let Some((_, rest)) = line
                    .split_once(&format!(" {command} "))
                    .filter(|(before, _)| before.contains("karmaform") && !before.contains("CronJob"))
                else {
                    continue;
                };
                for flag in flags(rest.split(['|', ';', '&']).next().unwrap_or(rest)) {
                    seen.insert((command, flag, entry.file_name().to_string_lossy().into_owned()));
                }
            }
        }
    }
    assert!(seen.len() > 15, "{seen:?}");
    for (command, flag, file) in seen {
        let help = project.must(0, &[command, "-help"]);
        let is_there = help.split(|c: char| c.is_whitespace() || c == '=' || c == ',' || c == '[').any(|word| word == flag);
        assert!(is_there, "{file}: {command} has no {flag}:\n{help}");
    }
}
