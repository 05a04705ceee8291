//! A look that a signal ends: what was seen by then is told, and that there may be more.

use std::sync::Arc;
use std::time::Duration;

use karmaform_memory::World;
use karmaform_model::{BackendError, Clear};
use serde_json::Value as Json;

use super::{Done, Place};
use crate::app::{App, Stop};
use crate::cli::{Parsed, parse};
use crate::output::Output;
use crate::planning::halted;
use crate::runtime::Interrupt;
use crate::view::StateView;
use crate::wiring::{DEFAULT_WORKSPACE, OpenBackend};

/// A file on each of two hosts.
const TWO_HOSTS: &str = r#"
data "ssh_host" "h" {
  for_each = { a = "10.0.0.1", b = "10.0.0.2" }
  address  = each.value
}
resource "ssh_file" "motd" {
  for_each = toset(["a", "b"])
  host     = data.ssh_host.h[each.key].connection
  path     = "/etc/motd"
  content  = "good"
}
"#;

/// Both files there, and both changed by somebody.
fn changed() -> (Arc<World>, Place) {
    let world = World::new();
    let place = Place::new(TWO_HOSTS).over(&world);
    for n in 1..=2 {
        let host = format!("{{\"connection\":{{\"provider\":\"ssh\",\"id\":\"10.0.0.{n}:22\"}},\"hostname\":\"h{n}\"}}");
        world.preset(&format!("data ssh_host {{\"address\":\"10.0.0.{n}\"}} = {host}\n")).unwrap();
    }
    place.check(&["apply", "-auto-approve"], 0);
    let files = world.list("ssh_file");
    assert_eq!(files.len(), 2);
    for (file, _) in files {
        world.change(&file, |object| drop(object.insert("content".into(), "bad".into())));
    }
    (world, place)
}

/// Runs a command, with a hand on what a signal sets.
fn with_signal(place: &Place, arguments: &[&str], signal: impl FnOnce(Interrupt)) -> Done {
    let (output, captured) = Output::captured("");
    let mut app = App::new(place.wiring(), output).unwrap();
    let Parsed::Run(cli) = parse(std::iter::once(&"karmaform").chain(arguments).map(Into::into).collect()) else { panic!("{arguments:?}") };
    signal(app.interrupt.clone());
    let ended = crate::start(&mut app, *cli);
    let code = app.end(ended);
    Done { code, stdout: captured.stdout(), stderr: captured.stderr() }
}

fn count(report: &Json, list: &str) -> usize {
    report[list].as_array().unwrap().len()
}

#[test]
fn what_was_seen_before_the_signal_is_told_and_that_it_is_not_all() {
    let (world, place) = changed();
    place.check(&["drift", "-report=json=last.json"], 2);
    let forms = ["human", "json", "junit", "sarif", "markdown", "prometheus", "html", "slack", "alertmanager"];
    let reports = forms.map(|f| format!("-report={f}={f}.out"));
    let arguments: Vec<&str> = ["drift", "-previous=last.json"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    // Whoever is asked first answers to the end; the other one is not asked any more.
    let done = with_signal(&place, &arguments, |interrupt| world.on_observe(move |_, _, _| interrupt.set()));
    assert_eq!(done.code, 1, "{done:#?}");
    assert!(done.stdout.ends_with("\nThe look was interrupted: 1 changed; 2 resources in all.\n"), "{done:#?}");
    assert!(done.stdout.contains("Of 2 resources 1 were not looked at by then"), "{done:#?}");
    for form in forms.iter().filter(|f| **f != "prometheus") {
        let report = place.read(&format!("{form}.out")).replace('\\', "");
        assert!(report.to_lowercase().contains("the look was interrupted"), "{form}:\n{report}");
        assert!(*form == "slack" || report.contains("ssh_file.motd["), "{form}:\n{report}");
    }
    let json: Json = serde_json::from_str(&place.read("json.out")).unwrap();
    assert_eq!((&json["looked"], &json["interrupted"], &json["exit_code"]), (&true.into(), &true.into(), &1.into()));
    assert!(
        json["diagnostics"].as_array().unwrap().iter().any(|d| d["summary"] == "The look was interrupted" && d["severity"] == "error"),
        "{json:#}"
    );
    // What was not looked at is not unreachable, and what was told of it before is not gone.
    assert_eq!((count(&json, "findings"), count(&json, "carried"), count(&json, "gone")), (1, 1, 0), "{json:#}");
    assert_eq!((&json["findings"][0]["kind"], &json["findings"][0]["new"]), (&"changed".into(), &false.into()));
    let metrics = place.read("prometheus.out");
    assert!(metrics.contains("karmaform_drift_failed 1\n") && metrics.contains("karmaform_drift_exit_code 1\n"), "{metrics}");
    assert!(metrics.contains("karmaform_drift{address=") && !metrics.contains("karmaform_drift_findings"), "{metrics}");
    let alerts: Json = serde_json::from_str(&place.read("alertmanager.out")).unwrap();
    let names: Vec<&str> = alerts.as_array().unwrap().iter().map(|a| a["labels"]["alertname"].as_str().unwrap()).collect();
    assert_eq!(names, ["KarmaformDriftFailed", "KarmaformDrift", "KarmaformDrift"]);
}

#[test]
fn who_never_answers_holds_up_no_report() {
    let (world, place) = changed();
    world.set_delay(600_000);
    let done = with_signal(&place, &["drift", "-report=json=json.out"], |interrupt| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            interrupt.set();
        });
    });
    assert_eq!(done.code, 1, "{done:#?}");
    assert!(done.stdout.contains("Of 2 resources 2 were not looked at by then") && !done.stdout.contains("nreachable"), "{done:#?}");
    let json: Json = serde_json::from_str(&place.read("json.out")).unwrap();
    assert_eq!((&json["interrupted"], count(&json, "findings")), (&true.into(), 0), "{json:#}");
}

#[test]
fn a_signal_before_the_look_is_told_as_such() {
    let (_, place) = changed();
    let done = with_signal(&place, &["drift", "-report=json=json.out", "-report=human=human.out"], |interrupt| interrupt.set());
    assert!(done.code == 1 && done.stderr.contains("The run was interrupted"), "{done:#?}");
    let json: Json = serde_json::from_str(&place.read("json.out")).unwrap();
    assert_eq!((&json["looked"], &json["interrupted"], &json["exit_code"]), (&false.into(), &true.into(), &1.into()));
    assert!(place.read("human.out").ends_with("\nThe look was interrupted.\n"), "{}", place.read("human.out"));
}

#[test]
fn a_journal_that_does_not_answer_holds_up_no_signal() {
    let place = Place::new("");
    let (output, _) = Output::captured("");
    let app = App::new(place.wiring(), output).unwrap();
    let open = OpenBackend {
        kind: "local",
        backend: Arc::new(karmaform_local::LocalBackend::new(place.path().join("state"))),
        store: None,
        place: "state".to_owned(),
        workspace: DEFAULT_WORKSPACE.to_owned(),
        unlocked: None,
        journal: Box::new(|| {
            std::thread::sleep(Duration::from_secs(600));
            Err(BackendError::NotLocked)
        }),
        seal: Arc::new(Clear),
        record: None,
    };
    let interrupt = app.interrupt.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        interrupt.set();
    });
    assert_eq!(StateView::of(open).read(&app).err(), Some(Stop::from(halted())));
}

#[test]
fn a_signal_in_an_apply_ends_it_with_what_was_done() {
    let world = World::new();
    let two = "resource \"memory_thing\" \"a\" {\n  name = \"a\"\n}\nresource \"memory_thing\" \"b\" {\n  name  = \"b\"\n  value = memory_thing.a.id\n}\n";
    let place = Place::new(two).over(&world);
    let done = with_signal(&place, &["apply", "-auto-approve"], |interrupt| {
        world.on_apply(move |_, _| {
            interrupt.set();
            Ok(())
        });
    });
    assert!(done.code == 1 && done.stderr.contains("Error: execution halted"), "{done:#?}");
    // What was begun came to its end and is in the state; the other one was not begun.
    assert_eq!(place.check(&["state", "list"], 0).stdout, "memory_thing.a\n");
}
