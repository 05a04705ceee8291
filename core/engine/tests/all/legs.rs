//! Ways that one plan can't go: each plan goes a leg, says what is left, and the next goes on from what is there.

use karmaform_engine::Options;
use karmaform_model::{DeferredReason, ModeOfPlan, Plan, Value};

use crate::fake::Fault;
use crate::lab::{Lab, changes};

fn text(version: &str, more: &str) -> String {
    format!(
        r#"
        data "fake_host" "h" {{
          for_each = toset(["a", "b"])
          address  = each.key
        }}
        resource "fake_cluster" "main" {{
          hosts   = data.fake_host.h
          version = {version}
          {more}
        }}
        output "version" {{
          value     = fake_cluster.main.version
          sensitive = true
        }}"#
    )
}

/// What is left of things of which a part is decided.
fn rests(plan: &Plan) -> Vec<String> {
    let told = |d: &karmaform_model::Deferred| {
        assert!(d.reason == DeferredReason::AbsentPrereq && !d.is_whole() && !d.is_open());
        format!("{}: {}", d.address, d.rest.clone().unwrap_or_default())
    };
    plan.deferred.iter().map(told).collect()
}

fn version(lab: &Lab) -> String {
    let state = lab.state();
    let record = &state.resources[&"fake_cluster.main".parse().unwrap()];
    record.attributes["version"].as_str().unwrap().to_owned()
}

#[test]
fn each_plan_goes_one_leg_and_says_what_is_left() {
    let mut lab = Lab::new();
    // What is new is made as it is wanted.
    lab.converge(&text("\"leg-1\"", ""));
    let wanted = text("\"leg-4\"", "");
    for (left, there) in [("2 first, then 4", "leg-2"), ("3 first, then 4", "leg-3")] {
        let planned = lab.plan(&wanted);
        assert_eq!(rests(&planned.plan), [format!("fake_cluster.main: {left}")]);
        assert!(changes(&planned.plan).contains("~ fake_cluster.main/member[\"a\"]/unit"));
        assert!(lab.apply_plan(&planned).is_success());
        assert_eq!(version(&lab), there);
        assert_eq!(lab.state().outputs["version"].value, Value::from(there).secret());
    }
    let planned = lab.plan(&wanted);
    assert_eq!(rests(&planned.plan), [""; 0]);
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(version(&lab), "leg-4");
    assert!(lab.plan(&wanted).plan.is_empty());
}

/// What ended half-way goes the same leg again, whoever was there already.
#[test]
fn a_leg_that_fails_is_gone_again() {
    let mut lab = Lab::new();
    lab.converge(&text("\"leg-1\"", ""));
    let wanted = text("\"leg-3\"", "");
    let second = lab.world.lock().operations + 1;
    lab.world.lock().fault = Some((second, Fault::Refused));
    let planned = lab.plan(&wanted);
    assert!(!lab.apply_plan(&planned).is_success());
    assert_eq!(version(&lab), "leg-1");
    lab.world.lock().fault = None;
    let planned = lab.plan(&wanted);
    assert_eq!(rests(&planned.plan), ["fake_cluster.main: 2 first, then 3"]);
    let found = changes(&planned.plan);
    assert!(found.contains("member[\"b\"]/unit") && !found.contains("~ fake_cluster.main/member[\"a\"]/unit"), "{found}");
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.run(&wanted).is_success());
    assert_eq!(version(&lab), "leg-3");
}

#[test]
fn only_changes_go_in_legs() {
    let mut lab = Lab::new();
    lab.converge(&text("\"leg-1\"", ""));
    let wanted = text("\"leg-3\"", "");
    for mode in [ModeOfPlan::RefreshOnly, ModeOfPlan::Destroy] {
        let planned = lab.plan_with(&wanted, &Options { mode, ..Options::default() });
        assert_eq!(rests(&planned.plan), [""; 0], "{mode:?}");
    }
}

#[test]
fn what_is_secret_of_the_arguments_is_so_on_the_way() {
    let mut lab = Lab::new();
    lab.converge(&text("sensitive(\"leg-1\")", ""));
    let planned = lab.plan(&text("sensitive(\"leg-3\")", ""));
    let record = planned.plan.resources.iter().find(|r| r.address.to_string() == "fake_cluster.main").unwrap();
    let version = &record.change.after().unwrap()["version"];
    assert!(version.as_str() == Some("leg-2") && version.contains_secret());
}

/// What nobody has written is told with why it is wanted.
#[test]
fn what_fails_on_the_way_is_told_with_what_the_way_is() {
    let mut lab = Lab::new();
    lab.converge(&text("\"leg-1\"", ""));
    let told = |lab: &Lab, version: &str| {
        let planned = lab.try_plan(&text(version, ""), &Options::default());
        let all = planned.diagnostics.iter().map(|d| (d.summary.clone(), d.hints.clone()));
        all.collect::<Vec<_>>()
    };
    let hint = || vec!["Get 2, which is between 1 and 3.".to_owned()];
    lab.world.lock().unreadable.extend(["a/unit".to_owned(), "b/unit".to_owned()]);
    assert_eq!(told(&lab, "\"leg-3\""), [("Can't look".to_owned(), hint())], "once for both");
    assert_eq!(told(&lab, "\"leg-2\""), [("Can't look".to_owned(), vec![])]);
    // A connection that fails is no matter of what goes through it.
    lab.world.lock().unreadable.clear();
    lab.world.lock().unreachable.insert("a".to_owned());
    let told = told(&lab, "\"leg-3\"");
    assert!(!told.is_empty() && told.iter().all(|(_, hints)| !hints.contains(&hint()[0])), "{told:?}");
}

/// What `ignore_changes` keeps would stay for ever as it was on the way.
#[test]
fn what_is_ignored_must_not_change_on_the_way() {
    let mut lab = Lab::new();
    lab.converge(&text("\"leg-1\"", "label = \"mine\""));
    let ignoring = |version: &str| text(version, "label = \"mine\"\nlifecycle {\nignore_changes = [label]\n}");
    let planned = lab.try_plan(&ignoring("\"leg-3\""), &Options::default());
    let told: Vec<_> = planned.diagnostics.iter().map(|d| d.summary.clone()).collect();
    assert_eq!(told, ["A way of several plans that would leave something behind"]);
    assert!(lab.run(&ignoring("\"leg-2\"")).is_success());
}
