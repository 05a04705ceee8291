//! Conditions of blocks and outputs: when they are asked, what they stop, and what is left.

use karmaform_model::{CheckStatus, EventKind, Status};

use crate::lab::{Lab, changes};

fn skipped(lab: &Lab) -> Vec<String> {
    lab.events.iter().filter(|e| matches!(e.kind, EventKind::Skipped(_))).map(|e| e.address.to_string()).collect()
}

fn pair(conditions: &str) -> String {
    format!(
        r#"
        resource "fake_local" "a" {{
          name = "a"
          lifecycle {{
{conditions}
}}
        }}
        resource "fake_local" "b" {{
          name  = "b"
          needs = [fake_local.a.id]
        }}
        resource "fake_local" "other" {{ name = "other" }}"#
    )
}

const NEVER: &str = "postcondition {\n condition = self.id == \"\"\n error_message = \"no ${self.name}\"\n}";

#[test]
fn what_a_broken_postcondition_made_stays_and_nothing_goes_on_from_it() {
    let mut lab = Lab::new();
    let outcome = lab.run(&pair(NEVER));
    assert_eq!((outcome.succeeded, outcome.failed, outcome.skipped), (1, 1, 1));
    let told: Vec<_> = outcome.diagnostics.iter().map(|d| (d.summary.clone(), d.detail.clone(), d.span.is_some())).collect();
    assert_eq!(told, [("Postcondition failed".into(), "no a".into(), true)]);
    assert_eq!(skipped(&lab), ["fake_local.b"]);
    let state = lab.state();
    assert_eq!(state.resources[&"fake_local.a".parse().unwrap()].status, Status::Ready, "it is what was asked for, and is made once");
    assert_eq!(state.checks[0].status, CheckStatus::Fail);
    let again = lab.try_plan(&pair(NEVER), &Default::default());
    assert!(again.diagnostics.has_errors(), "it is known by now");
    assert_eq!(changes(&lab.plan(&pair("")).plan), "+ fake_local.b");
    lab.converge(&pair(""));
    assert_eq!(lab.world.lock().created, 3);
}

#[test]
fn what_needs_a_broken_one_is_not_judged_by_it() {
    let mut lab = Lab::new();
    lab.converge(&pair(""));
    let text = pair(NEVER).replace(
        "needs = [fake_local.a.id]",
        "needs = [fake_local.a.id]\n lifecycle {\n precondition {\n condition = fake_local.a.id == \"\"\n error_message = \"b\"\n }\n }",
    );
    let planned = lab.try_plan(&text, &Default::default());
    let told: Vec<_> = planned.diagnostics.iter().map(|d| d.detail.as_str()).collect();
    assert_eq!(told, ["no a"]);
}

#[test]
fn a_precondition_that_only_an_apply_can_tell_keeps_its_step_from_being_started() {
    let mut lab = Lab::new();
    let condition = "precondition {\n condition = fake_local.other.id == \"\"\n error_message = \"not beside this\"\n}";
    let outcome = lab.run(&pair(condition));
    assert_eq!((outcome.succeeded, outcome.failed, outcome.skipped), (1, 1, 1));
    assert_eq!(outcome.diagnostics.iter().next().unwrap().detail, "not beside this");
    assert_eq!(lab.world.lock().created, 1, "all arguments were known, and still nothing was made");
    assert_eq!(lab.state().resources.len(), 1);
}

#[test]
fn what_is_to_be_made_anew_does_not_go_before_it_may_be_made() {
    let mut lab = Lab::new();
    lab.converge(&pair(""));
    let condition = "precondition {\n condition = timestamp() == \"\"\n error_message = \"not today\"\n}";
    let text = pair(condition).replace("name = \"a\"", "name = \"a2\"");
    assert!(changes(&lab.plan(&text).plan).contains("-/+ fake_local.a"), "{}", changes(&lab.plan(&text).plan));
    let outcome = lab.run(&text);
    assert_eq!(outcome.diagnostics.iter().next().unwrap().detail, "not today");
    assert_eq!(lab.state().resources[&"fake_local.a".parse().unwrap()].status, Status::Ready, "the old one is there");
    assert_eq!(changes(&lab.plan(&pair("")).plan), "+ fake_local.b", "only what needs it had to go before it");
}

#[test]
fn what_needs_something_that_is_gone_needs_what_that_needed() {
    let text = |name: &str, operator: &str| {
        format!(
            r#"
            resource "fake_local" "a" {{ name = "{name}" }}
            resource "fake_local" "b" {{
              name  = "b"
              needs = [fake_local.a.id]
              lifecycle {{
                precondition {{
                  condition     = fake_local.a.id {operator} ""
                  error_message = "not beside this"
                }}
              }}
            }}
            resource "fake_note" "c" {{ input = fake_local.b.id }}"#
        )
    };
    let mut lab = Lab::new();
    lab.converge(&text("a", "!="));
    let outcome = lab.run(&text("a2", "=="));
    assert_eq!(outcome.diagnostics.iter().next().unwrap().detail, "not beside this");
    let state = lab.state();
    assert!(!state.resources.contains_key(&"fake_local.b".parse().unwrap()));
    let note = &state.resources[&"fake_note.c".parse().unwrap()];
    let needed: Vec<String> = note.dependencies.iter().map(ToString::to_string).collect();
    assert_eq!(needed, ["fake_local.a", "fake_local.b"]);
}

#[test]
fn a_composite_is_judged_when_its_record_is_there_and_its_parts_wait_for_what_must_hold_before() {
    let text = |conditions: &str| {
        format!(
            r#"
            data "fake_host" "h" {{
              for_each = toset(["a"])
              address  = each.key
            }}
            resource "fake_local" "other" {{ name = "other" }}
            resource "fake_cluster" "main" {{
              hosts   = data.fake_host.h
              version = "1"
              lifecycle {{
{conditions}
}}
            }}
            resource "fake_note" "user" {{ input = fake_cluster.main.ids }}"#
        )
    };
    let mut lab = Lab::new();
    let after = "postcondition {\n condition = self.ids[\"a\"] == \"\"\n error_message = \"not ${self.ids[\"a\"]}\"\n}";
    let outcome = lab.run(&text(after));
    assert_eq!((outcome.failed, outcome.skipped), (1, 1), "{:?}", outcome.diagnostics);
    assert!(outcome.diagnostics.iter().next().unwrap().detail.starts_with("not unit#"));
    assert_eq!(skipped(&lab), ["fake_note.user"]);
    assert!(lab.state().resources.contains_key(&"fake_cluster.main".parse().unwrap()));

    let mut lab = Lab::new();
    let before = "precondition {\n condition = fake_local.other.id == \"\"\n error_message = \"no cluster beside this\"\n}";
    let outcome = lab.run(&text(before));
    assert!(outcome.diagnostics.iter().all(|d| d.detail == "no cluster beside this"), "{:?}", outcome.diagnostics);
    assert_eq!(lab.world.lock().created, 1, "no part of it was made");
}
