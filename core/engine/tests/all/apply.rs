//! Doing it: what runs when, what is recorded when, and what is left when something goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use karmaform_engine::{ApplyOptions, Options};
use karmaform_model::{EventKind, JournalRecord, Snapshot, Status};

use crate::fake::Fault;
use crate::lab::{Lab, changes};

const CHAIN: &str = r#"
    resource "fake_local" "a" { name = "a" }
    resource "fake_local" "b" {
      name = "b"
      needs = [fake_local.a.id]
    }
    resource "fake_local" "c" {
      name = "c"
      needs = [fake_local.b.id]
    }
    resource "fake_local" "x" { name = "x" }
    resource "fake_note" "n" { input = fake_local.x.id }
    output "c" { value = fake_local.c.id }
    output "x" { value = fake_local.x.id }"#;

fn kinds(lab: &Lab) -> Vec<String> {
    let text = |k: &EventKind| match k {
        EventKind::Started => "started".to_owned(),
        EventKind::Waiting(text) => format!("waiting {}", text.clone().unwrap_or_default()),
        EventKind::Succeeded(_) => "succeeded".into(),
        EventKind::Failed(d) => format!("failed {}", d.summary),
        EventKind::Skipped(because) => format!("skipped {}", because.as_ref().map(ToString::to_string).unwrap_or_default()),
    };
    lab.events.iter().map(|e| format!("{} {}", e.address, text(&e.kind))).collect()
}

#[test]
fn a_failure_stops_only_what_depends_on_it() {
    let mut lab = Lab::new();
    lab.world.lock().fault = Some((1, Fault::Refused));
    lab.apply_options.parallelism = 1;
    let outcome = lab.run(CHAIN);
    assert_eq!((outcome.succeeded, outcome.failed, outcome.skipped, outcome.interrupted), (3, 1, 1, false));
    let error = outcome.diagnostics.iter().next().unwrap();
    assert_eq!((error.summary.as_str(), error.address.as_ref().unwrap().to_string()), ("Refused", "fake_local.b".into()));
    assert!(error.span.is_some());
    assert!(kinds(&lab).contains(&"fake_local.c skipped fake_local.b".to_owned()), "{:?}", kinds(&lab));
    let state = lab.state();
    assert_eq!(state.resources[&"fake_local.b".parse().unwrap()].status, Status::Unfinished);
    assert_eq!(state.outputs.keys().collect::<Vec<_>>(), ["x"], "outputs of what was not reached are not stored");
    lab.converge(CHAIN);
    assert_eq!(lab.world.lock().created, 5, "nothing is made twice");
}

#[test]
fn what_failed_in_the_state_alone_leaves_nothing() {
    let mut lab = Lab::new();
    let text = "resource \"fake_note\" \"a\" { input = \"fail\" }";
    assert_eq!(lab.run(text).failed, 1);
    assert!(lab.state().resources.is_empty());
    assert_eq!(*lab.backend.writes.lock().unwrap(), 0, "nothing changed, nothing is written");
}

#[test]
fn a_plan_without_changes_writes_nothing() {
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let (serial, writes) = (lab.state().serial, *lab.backend.writes.lock().unwrap());
    assert!(lab.run(CHAIN).is_success());
    assert_eq!((lab.state().serial, *lab.backend.writes.lock().unwrap()), (serial, writes));
    assert_eq!(serial, 1, "one write for the whole run");
    assert!(lab.journal.records.lock().unwrap().is_empty());
}

#[test]
fn the_journal_knows_before_dependents_start() {
    let mut lab = Lab::new();
    let planned = lab.plan(CHAIN);
    *lab.backend.broken.lock().unwrap() = true;
    let outcome = lab.apply_plan(&planned);
    assert!(outcome.unsaved && outcome.diagnostics.has_errors());
    assert_eq!(outcome.snapshot.resources.len(), 5, "cmd can still save it elsewhere");
    let records = lab.journal.records.lock().unwrap().clone();
    let place = |wanted: &dyn Fn(&JournalRecord) -> bool| records.iter().position(wanted).unwrap();
    let ended = |name: &str| place(&|r| matches!(r, JournalRecord::Ended { address, state: Some(_) } if address.to_string() == name));
    let started = |name: &str| place(&|r| matches!(r, JournalRecord::Started { address, .. } if address.to_string() == name));
    assert!(matches!(records[0], JournalRecord::Begin { .. }));
    assert!(started("fake_local.a") < ended("fake_local.a") && ended("fake_local.a") < started("fake_local.b"));
    assert!(!records.iter().any(|r| matches!(r, JournalRecord::Started { address, .. } if address.kind == "fake_note")));
    // begin, three layers, and what was left at the end: one append for each tick.
    assert_eq!(lab.journal.appends.lock().unwrap().len(), 6);
    *lab.backend.broken.lock().unwrap() = false;
    lab.converge(CHAIN);
    assert_eq!(lab.world.lock().created, 5);
}

#[test]
fn a_journal_that_refuses_stops_everything_before_it_starts() {
    for full_at in 0..4 {
        let mut lab = Lab::new();
        lab.journal.full_at = Some(full_at);
        let outcome = lab.run(CHAIN);
        assert!(outcome.diagnostics.has_errors());
        let errors: Vec<_> = outcome.diagnostics.iter().filter(|d| d.is_error()).collect();
        assert_eq!((errors.len(), errors[0].summary.as_str()), (1, "Journal could not be written"), "{errors:?}");
        assert_eq!(errors[0].detail, "What is done could not be recorded, so nothing more was started: writing fake: no.");
        assert!(outcome.skipped > 0 && !outcome.interrupted);
        lab.journal.full_at = None;
        lab.journal.records.lock().unwrap().clear();
        *lab.backend.stored.lock().unwrap() = Some(Snapshot { lineage: "history".into(), serial: lab.state().serial, ..outcome.snapshot });
        lab.converge(CHAIN);
    }
}

#[test]
fn an_interrupt_lets_running_steps_end_and_starts_nothing_more() {
    let mut lab = Lab::new();
    let flag = Arc::new(AtomicBool::new(false));
    lab.apply_options = ApplyOptions { interrupt: flag.clone(), parallelism: 1, heartbeat: 0, ..ApplyOptions::default() };
    let set = flag.clone();
    lab.world.lock().hook = Some(Box::new(move |n| set.store(n >= 1, Ordering::Relaxed)));
    let outcome = lab.run(CHAIN);
    assert!(outcome.interrupted && outcome.failed == 0 && !outcome.is_success());
    assert_eq!(outcome.succeeded, 2);
    assert!(kinds(&lab).iter().any(|k| k.ends_with("skipped ")));
    flag.store(false, Ordering::Relaxed);
    lab.world.lock().hook = None;
    lab.converge(CHAIN);
    assert_eq!(lab.world.lock().created, 5);
}

#[test]
fn an_interrupt_ends_the_wait_at_a_gate() {
    let mut lab = Lab::new();
    let flag = Arc::new(AtomicBool::new(false));
    lab.apply_options = ApplyOptions { interrupt: flag.clone(), heartbeat: 0, ..ApplyOptions::default() };
    lab.world.lock().gate_looks.insert("a".into(), 500);
    lab.world.lock().hook = Some(Box::new(move |n| flag.store(n > 1000 && n < 1499, Ordering::Relaxed)));
    let text = r#"
        data "fake_host" "h" {
          for_each = toset(["a"])
          address  = each.key
        }
        resource "fake_cluster" "main" { hosts = data.fake_host.h }"#;
    let outcome = lab.run(text);
    assert!(outcome.interrupted);
    assert_eq!(outcome.diagnostics.iter().next().unwrap().summary, "Interrupted");
    assert!(lab.world.lock().gate_looks["a"] > 490);
    lab.world.lock().gate_looks.clear();
    lab.world.lock().hook = None;
    lab.apply_options.interrupt = Arc::default();
    lab.converge(text);
}

#[test]
fn what_runs_for_long_says_so() {
    let mut lab = Lab::new();
    lab.apply_options.heartbeat = 10_000;
    lab.world.lock().slow = true;
    assert!(lab.run("resource \"fake_local\" \"a\" { name = \"a\" }").is_success());
    assert_eq!(kinds(&lab), ["fake_local.a started", "fake_local.a waiting ", "fake_local.a succeeded"]);
    assert_eq!(lab.events[1].elapsed, 10_000);
}

#[test]
fn what_may_work_later_is_tried_again() {
    let mut lab = Lab::new();
    lab.world.lock().fault = Some((0, Fault::Later));
    let outcome = lab.run("resource \"fake_local\" \"a\" { name = \"a\" }");
    assert!(outcome.is_success(), "{:?}", outcome.diagnostics);
    assert_eq!(kinds(&lab), ["fake_local.a started", "fake_local.a waiting trying again after: Not now", "fake_local.a succeeded"]);
    assert!(lab.clock.waited.load(Ordering::Relaxed) >= 1000);
    // Not before whoever was asked says so; and nobody is waited for longer than a minute.
    for (asked, waited) in [(30, 30), (3_600, 60)] {
        let mut lab = Lab::new();
        lab.world.lock().fault = Some((0, Fault::After(asked)));
        assert!(lab.run("resource \"fake_local\" \"a\" { name = \"a\" }").is_success());
        assert_eq!(kinds(&lab)[1], format!("fake_local.a waiting trying again in {waited} s after: Not now"));
        assert!(lab.clock.waited.load(Ordering::Relaxed) >= waited * 1000);
    }
    // A connection that failed is tried again as well, and nothing was touched before.
    let text = "resource \"fake_thing\" \"t\" {\n name = \"t\"\n host = { provider = \"fake\", id = \"h9\" }\n}";
    let planned = lab.plan(text);
    lab.world.lock().unreachable.insert("h9".into());
    let outcome = lab.apply_plan(&planned);
    assert_eq!(outcome.failed, 1);
    assert!(!lab.state().resources.contains_key(&"fake_thing.t".parse().unwrap()), "nothing was done, so there is nothing to remember");
}

#[test]
fn another_value_than_asked_for_is_an_error_and_recorded() {
    let mut lab = Lab::new();
    lab.world.lock().liars.insert("/a".into());
    let text =
        "resource \"fake_local\" \"a\" {\n name = \"a\"\n content = \"x\"\n}\nresource \"fake_note\" \"n\" { input = fake_local.a.id }";
    let outcome = lab.run(text);
    assert_eq!(outcome.diagnostics.iter().next().unwrap().summary, "Provider gave another value");
    assert_eq!((outcome.failed, outcome.skipped), (1, 1));
    assert_eq!(lab.state().resources.values().next().unwrap().attributes["content"], "something else");
}

#[test]
fn what_the_plan_showed_is_never_changed() {
    // The lookup is read during apply, and by then its key leads elsewhere.
    let text = r#"
        resource "fake_note" "a" { input = "h1" }
        data "fake_host" "h" {
          address = fake_note.a.output
        }
        resource "fake_thing" "t" {
          host = data.fake_host.h.connection
          name = "t"
        }"#;
    let mut lab = Lab::new();
    lab.converge(text);
    let text = text.replace("\"h1\"", "\"h2\"");
    let outcome = lab.run(&text);
    assert_eq!(outcome.failed, 0, "{:?}", outcome.diagnostics);
    // The thing was planned to stay where it is; the next plan knows better.
    assert!(changes(&lab.plan(&text).plan).starts_with("-/+ fake_thing.t"));
    lab.converge(&text);

    let with = |content: &str, host: &str| {
        text.replace("\"h2\"", &format!("\"{host}\"")).replace("name = \"t\"", &format!("name = \"t\"\n content = \"{content}\""))
    };
    let outcome = lab.run(&with("new", "h3"));
    assert_eq!(outcome.diagnostics.iter().next().unwrap().summary, "The plan no longer holds");
    lab.converge(&with("new", "h3"));
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["h3/t"]);
}

#[test]
fn a_stale_plan_is_refused() {
    let mut lab = Lab::new();
    let mut planned = lab.plan(CHAIN);
    lab.converge(CHAIN);
    planned.state = lab.state();
    let outcome = lab.apply_plan(&planned);
    assert_eq!(outcome.diagnostics.iter().next().unwrap().summary, "Saved plan is stale");
    assert_eq!(lab.events, []);
}

#[test]
fn the_state_is_written_on_a_clock_too() {
    let mut lab = Lab::new();
    lab.apply_options = ApplyOptions { checkpoint: 0, parallelism: 1, heartbeat: 0, ..ApplyOptions::default() };
    lab.converge(CHAIN);
    assert!(*lab.backend.writes.lock().unwrap() >= 5);
    assert_eq!(lab.state().serial, *lab.backend.writes.lock().unwrap() as u64);
}

#[test]
fn a_failed_create_first_keeps_the_old_object() {
    let text = |v: i32| format!("resource \"fake_local\" \"a\" {{\n name = \"a{v}\"\n lifecycle {{ create_before_destroy = true }}\n}}");
    let mut lab = Lab::new();
    lab.converge(&text(1));
    lab.world.lock().fault = Some((1, Fault::Lost));
    assert_eq!(lab.run(&text(2)).failed, 1);
    let state = lab.state();
    assert_eq!((state.resources.len(), state.deposed.len()), (1, 1));
    assert_eq!(lab.world.contents().len(), 2);
    lab.converge(&text(2));
    assert!(lab.state().deposed.is_empty());
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/a2"]);
}

#[test]
fn outside_operations_are_bounded_and_reported_while_they_run() {
    let mut lab = Lab::new();
    lab.apply_options.parallelism = 2;
    let text = "resource \"fake_local\" \"a\" {\n count = 5\n name = \"a${count.index}\"\n}\nresource \"fake_note\" \"n\" {\n count = 5\n input = count.index\n}";
    let outcome = lab.run(text);
    assert!(outcome.is_success());
    let first: Vec<_> = lab.events.iter().take_while(|e| e.kind == EventKind::Started).collect();
    assert_eq!(first.iter().filter(|e| e.address.kind == "fake_local").count(), 2);
    assert_eq!(first.iter().filter(|e| e.address.kind == "fake_note").count(), 5, "what lives in the state alone takes nobody's place");
    assert_eq!(Options::default().parallelism, 10);
}

#[test]
fn a_journal_that_can_t_be_emptied_is_worth_a_warning() {
    let mut lab = Lab::new();
    let planned = lab.plan(CHAIN);
    lab.journal.stuck = true;
    let outcome = lab.apply_plan(&planned);
    assert!(outcome.is_success() && !outcome.unsaved);
    let told: Vec<_> = outcome.diagnostics.iter().map(|d| (d.summary.as_str(), d.detail.as_str())).collect();
    assert_eq!(
        told,
        [("Journal not emptied", "The state was written, but the journal could not be emptied: writing fake: no. It does no harm.")]
    );
}

/// A gate that takes long, so that the state is to be written meanwhile.
const SLOW: &str = r#"
    data "fake_host" "h" {
      for_each = toset(["a", "b", "c"])
      address  = each.key
    }
    resource "fake_cluster" "main" {
      hosts   = data.fake_host.h
    }"#;

#[test]
fn a_state_that_can_t_be_written_meanwhile_is_told_once_and_tried_again() {
    let mut lab = Lab::new();
    let planned = lab.plan(SLOW);
    // Each wait is longer than the pause between two writes.
    lab.world.lock().gate_looks.extend([("a".to_owned(), 10), ("b".to_owned(), 10)]);
    *lab.backend.broken.lock().unwrap() = true;
    let outcome = lab.apply_plan(&planned);
    assert!(outcome.unsaved);
    let told: Vec<_> = outcome.diagnostics.iter().map(|d| (d.is_error(), d.summary.as_str())).collect();
    assert_eq!(told, [(false, "State not written meanwhile"), (true, "State could not be written")]);
    let warning = outcome.diagnostics.iter().next().unwrap();
    assert_eq!(warning.detail, "While the run went on, the state could not be written: writing fake: no. It will be tried again.");
}

#[test]
fn who_lost_the_lock_starts_nothing_more() {
    let mut lab = Lab::new();
    let planned = lab.plan(SLOW);
    lab.world.lock().gate_looks.extend([("a".to_owned(), 10), ("b".to_owned(), 10)]);
    *lab.backend.unlocked.lock().unwrap() = true;
    let outcome = lab.apply_plan(&planned);
    assert!(outcome.unsaved && outcome.skipped > 0 && !outcome.interrupted);
    let told: Vec<_> = outcome.diagnostics.iter().map(|d| (d.is_error(), d.summary.as_str())).collect();
    assert_eq!(told, [(true, "The state is not this run's any more"), (true, "State could not be written")]);
    let lost = outcome.diagnostics.iter().next().unwrap();
    assert_eq!(lost.detail, "Somebody else works on this state, or did, so nothing more was started: the lock was lost: it was removed.");
}

#[test]
fn an_answer_that_can_t_be_is_a_failure_and_the_next_run_looks_again() {
    const A: &str = "resource \"fake_local\" \"a\" { name = \"a\" }";
    let failed = |outcome: &karmaform_engine::Outcome| {
        let error = outcome.diagnostics.iter().find(|d| d.is_error()).expect("an error").clone();
        (error.summary, error.address.map(|a| a.to_string()))
    };
    let mut lab = Lab::new();
    lab.world.lock().fault = Some((0, Fault::Contrary));
    let outcome = lab.run(A);
    assert_eq!(failed(&outcome), ("Nothing there after the change".into(), Some("fake_local.a".into())));
    assert_eq!(lab.state().resources[&"fake_local.a".parse().unwrap()].status, Status::Unfinished);
    lab.converge(A);
    let operations = lab.world.lock().operations;
    lab.world.lock().fault = Some((operations, Fault::Contrary));
    let outcome = lab.run("");
    assert_eq!(failed(&outcome), ("Not deleted".into(), Some("fake_local.a".into())));
    assert!(lab.state().resources.contains_key(&"fake_local.a".parse().unwrap()), "it is not forgotten");
    lab.converge("");
}
