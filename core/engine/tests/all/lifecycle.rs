//! Replacing, destroying, ignoring, targeting: what users ask for beside the plain difference.

use karmaform_engine::Options;
use karmaform_model::{Action, ModeOfPlan, Status, Value};

use crate::lab::{Lab, changes, steps};

fn targets(list: &[&str]) -> Options {
    Options { targets: list.iter().map(|a| a.parse().unwrap()).collect(), ..Options::default() }
}

fn mode(mode: ModeOfPlan) -> Options {
    Options { mode, ..Options::default() }
}

/// Applies `first`, then plans `second`.
fn check(first: &str, second: &str, expected: &str) {
    let mut lab = Lab::new();
    lab.converge(first);
    let planned = lab.plan(second);
    assert_eq!(changes(&planned.plan), expected.trim(), "{second}");
    lab.converge(second);
}

#[test]
fn replacement_on_demand() {
    let text = |n: i32, more: &str| {
        format!(
            r#"
            resource "fake_note" "trigger" {{ input = {n} }}
            resource "fake_local" "a" {{
              name = "a"
              lifecycle {{ {more} }}
            }}"#
        )
    };
    let (triggered, attribute) =
        (text(2, "replace_triggered_by = [fake_note.trigger]"), text(2, "replace_triggered_by = [fake_note.trigger.id]"));
    check(
        &text(1, ""),
        &triggered,
        "-/+ fake_local.a ReplaceByTriggers(Address { module: [], mode: Managed, kind: \"fake_note\", name: \"trigger\", key: None, child: [] })\n~ fake_note.trigger",
    );
    check(&text(1, ""), &attribute, "~ fake_note.trigger");
    let mut lab = Lab::new();
    lab.converge(&text(1, ""));
    let options = Options { replace: vec!["fake_local.a".parse().unwrap()], ..Options::default() };
    assert_eq!(changes(&lab.plan_with(&text(1, ""), &options).plan), "-/+ fake_local.a ReplaceByRequest");
    let missing = Options { replace: vec!["fake_local.zzz".parse().unwrap()], ..Options::default() };
    assert_eq!(lab.plan_with(&text(1, ""), &missing).plan.warnings.len(), 1);

    let mut state = lab.state();
    state.resources.get_mut(&"fake_local.a".parse().unwrap()).unwrap().status = Status::Tainted;
    *lab.backend.stored.lock().unwrap() = Some(state);
    assert_eq!(changes(&lab.plan(&text(1, "")).plan), "-/+ fake_local.a ReplaceBecauseTainted");
    lab.converge(&text(1, ""));
}

/// What was seen of a thing and is in no state is known to whoever says what a change does, and to whoever does it.
#[test]
fn facts_of_the_moment_come_with_a_change() {
    let text = |content: &str, size: &str| {
        format!("resource \"fake_local\" \"a\" {{\n name = \"a\"\n content = \"{content}\"\n size = \"{size}\"\n}}")
    };
    let mut lab = Lab::new();
    lab.converge(&text("x", "1"));
    assert!(lab.world.lock().ages.is_empty());
    let planned = lab.plan(&text("aged", "1")).plan;
    assert_eq!(planned.resources[0].impact, ["Update touches it", "it is of age 7"]);
    assert!(planned.resources[0].change.before().unwrap().get("age").is_none(), "the change itself has none");
    for (content, size, ages) in [("aged", "1", 1), ("aged", "2", 2)] {
        lab.converge(&text(content, size));
        assert_eq!(lab.world.lock().ages, vec![7; ages], "{content} {size}");
    }
    lab.converge("");
    assert_eq!(lab.world.lock().ages, [7, 7, 7]);
    assert!(lab.state().resources.is_empty());
}

#[test]
fn create_before_destroy_spreads_and_orders() {
    let text = |v: i32, first: bool| {
        format!(
            r#"
            resource "fake_local" "a" {{
              name = "a{v}"
              size = "{v}"
            }}
            resource "fake_local" "b" {{
              name  = "b{v}"
              needs = [fake_local.a.id]
              lifecycle {{ create_before_destroy = {first} }}
            }}
            resource "fake_local" "c" {{
              name    = "c"
              content = fake_local.b.id
            }}"#
        )
    };
    let mut lab = Lab::new();
    lab.converge(&text(1, true));
    let planned = lab.plan(&text(2, true));
    let a: Vec<_> = planned.plan.resources.iter().map(|r| r.change.action()).collect();
    assert_eq!(a, [Action::CreateThenDestroy, Action::CreateThenDestroy, Action::Update]);
    assert_eq!(
        steps(&planned.plan),
        [
            "0: Create fake_local.a after []",
            "1: Create fake_local.b after [0]",
            "2: Update fake_local.c after [1]",
            "3: Delete fake_local.b after [1, 2]",
            "4: Delete fake_local.a after [0, 1, 3]"
        ]
    );
    lab.converge(&text(2, true));
    assert!(lab.state().deposed.is_empty());
    let planned = lab.plan(&text(3, false));
    assert_eq!(planned.plan.resources[0].change.action(), Action::DestroyThenCreate);
    lab.converge(&text(3, false));
}

#[test]
fn what_has_one_name_is_never_created_before_it_is_destroyed() {
    let text = |size: &str| {
        format!("resource \"fake_local\" \"a\" {{\n name = \"a\"\n size = \"{size}\"\n lifecycle {{ create_before_destroy = true }}\n}}")
    };
    let mut lab = Lab::new();
    lab.converge(&text("1"));
    assert_eq!(lab.plan(&text("2")).plan.resources[0].change.action(), Action::DestroyThenCreate);
    lab.converge(&text("2"));
    assert!(lab.world.contents().contains_key("/a"));
}

#[test]
fn prevent_destroy_refuses_until_somebody_says_that_it_is_to_go() {
    let text = |size: &str| {
        format!("resource \"fake_local\" \"a\" {{\n name = \"a\"\n size = \"{size}\"\n lifecycle {{ prevent_destroy = true }}\n}}")
    };
    let mut lab = Lab::new();
    lab.converge(&text("1"));
    for options in [Options::default(), mode(ModeOfPlan::Destroy)] {
        let planned = lab.try_plan(&text("2"), &options);
        let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap();
        assert_eq!(error.summary, "Instance cannot be destroyed");
        assert!(error.span.is_some() && !error.hints.is_empty());
    }
    // The block may be gone by mistake.
    let planned = lab.try_plan("", &Options::default());
    assert!(planned.diagnostics.iter().any(|d| d.summary == "Instance cannot be destroyed"), "{:?}", planned.diagnostics);
    let removed = "removed {\n from = fake_local.a\n lifecycle {\n  destroy = true\n }\n}";
    assert_eq!(changes(&lab.plan(removed).plan), "- fake_local.a DeleteBecauseNoResourceConfig");
    lab.converge(&text("1").replace("true", "false"));
    assert_eq!(changes(&lab.plan("").plan), "- fake_local.a DeleteBecauseNoResourceConfig");
}

#[test]
fn ignored_changes_stay_as_they_are() {
    let text = |content: &str, tag: &str, ignored: &str| {
        format!(
            r#"resource "fake_local" "a" {{
              name    = "a"
              content = "{content}"
              tags    = {{ x = "{tag}", y = "{tag}" }}
              lifecycle {{ ignore_changes = {ignored} }}
            }}"#
        )
    };
    check(&text("1", "1", "[]"), &text("2", "1", "[content]"), "");
    check(&text("1", "1", "[]"), &text("2", "2", "all"), "");
    let mut lab = Lab::new();
    lab.converge(&text("1", "1", "[]"));
    let second = text("1", "2", "[tags[\"x\"]]");
    let planned = lab.plan(&second);
    assert_eq!(format!("{:?}", planned.plan.resources[0].change.after().unwrap()["tags"]), r#"map{"x": "1", "y": "2"}"#);
    lab.converge(&second);
}

#[test]
fn destroying_goes_backwards_by_what_the_state_remembers() {
    let text = r#"
        resource "fake_local" "a" { name = "a" }
        resource "fake_local" "b" {
          name = "b"
          needs = [fake_local.a.id]
        }
        resource "fake_note" "n" { input = fake_local.b.id }
        output "o" { value = fake_note.n.id }"#;
    let mut lab = Lab::new();
    lab.converge(text);
    let planned = lab.plan_with(text, &mode(ModeOfPlan::Destroy));
    assert_eq!(
        steps(&planned.plan),
        ["0: Delete fake_note.n after []", "1: Delete fake_local.b after [0]", "2: Delete fake_local.a after [1]"]
    );
    assert!(planned.plan.outputs["o"].after.is_none());
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.state().resources.is_empty() && lab.state().outputs.is_empty() && lab.world.contents().is_empty());

    // The configuration turned round meanwhile; the state still knows what was made from what.
    lab.converge(text);
    let other = r#"
        resource "fake_local" "b" { name = "b" }
        resource "fake_local" "a" {
          name = "a"
          content = fake_local.b.id
        }"#;
    let planned = lab.plan_with(other, &mode(ModeOfPlan::Destroy));
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.world.contents().is_empty());
}

#[test]
fn targets_take_what_they_need() {
    let text = r#"
        resource "fake_local" "a" { name = "a" }
        resource "fake_local" "b" {
          name = "b"
          needs = [fake_local.a.id]
        }
        resource "fake_local" "c" {
          name = "c"
          needs = [fake_local.b.id]
        }
        resource "fake_local" "d" { name = "d" }
        output "c" { value = fake_local.c.name }
        output "a" { value = fake_local.a.name }"#;
    let mut lab = Lab::new();
    let planned = lab.plan_with(text, &targets(&["fake_local.b"]));
    assert_eq!(changes(&planned.plan), "+ fake_local.a\n+ fake_local.b\noutput a: None -> Some(\"a\")");
    assert_eq!(planned.plan.warnings.iter().next().unwrap().summary, "Resource targeting is in effect");
    assert!(lab.apply_plan(&planned).is_success());
    lab.converge(text);
    let options = Options { mode: ModeOfPlan::Destroy, ..targets(&["fake_local.b"]) };
    let planned = lab.plan_with(text, &options);
    assert_eq!(changes(&planned.plan), "- fake_local.b\n- fake_local.c", "what was made from it goes first");
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.world.contents().len(), 2);
    assert!(lab.plan_with(text, &targets(&["fake_local.zzz"])).plan.warnings.len() == 2);
}

#[test]
fn targets_take_what_is_too_many_of_a_block() {
    let text = |count: usize| {
        format!(
            r#"
            resource "fake_local" "a" {{
              count = {count}
              name  = "a${{count.index}}"
            }}
            resource "fake_local" "b" {{
              name = "b"
              needs = fake_local.a[*].id
            }}
            output "a" {{ value = fake_local.a[*].name }}"#
        )
    };
    let mut lab = Lab::new();
    let planned = lab.plan_with(&text(2), &targets(&["fake_local.a[0]"]));
    let told = planned.plan.outputs["a"].after.clone();
    assert_eq!(told, Some(Value::tuple(vec!["a0".into()])), "what is neither there nor planned is no part of its block");
    assert!(lab.apply_plan(&planned).is_success());
    lab.converge(&text(2));
    let deleted = |target: &str| {
        let planned = lab.plan_with(&text(1), &targets(&[target]));
        let deleted = planned.plan.resources.iter().filter(|r| r.change.action() == Action::Delete);
        deleted.map(|r| r.address.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(deleted("fake_local.b"), ["fake_local.a[1]"]);
    assert!(deleted("fake_local.a[0]").is_empty());
}

#[test]
fn a_renamed_block_keeps_the_thing() {
    let text = |label: &str| format!("resource \"fake_local\" \"{label}\" {{\n name = \"a\"\n content = \"x\"\n}}");
    let mut lab = Lab::new();
    lab.converge(&text("old"));
    let planned = lab.plan(&text("new"));
    assert_eq!(changes(&planned.plan), "~ fake_local.new\n. fake_local.old DeleteBecauseNoResourceConfig");
    assert_eq!(planned.plan.resources[1].impact, ["is managed as fake_local.new from now on"]);
    lab.converge(&text("new"));
    assert_eq!(lab.world.contents().len(), 1);
    let both = format!("{}\n{}", text("new"), text("other"));
    let planned = lab.plan(&both);
    assert_eq!(planned.plan.warnings.iter().next().unwrap().summary, "Two resources for one thing");
}

#[test]
fn a_deposed_object_is_deleted_at_last() {
    let mut lab = Lab::new();
    let text = "resource \"fake_local\" \"a\" { name = \"new\" }";
    lab.converge("resource \"fake_local\" \"a\" { name = \"old\" }");
    let mut state = lab.state();
    let address = "fake_local.a".parse().unwrap();
    let old = state.resources.remove(&address).unwrap();
    state.deposed.insert((address, "0a1b2c3d".into()), old);
    *lab.backend.stored.lock().unwrap() = Some(state);
    let planned = lab.plan(text);
    assert_eq!(changes(&planned.plan), "+ fake_local.a\n- fake_local.a (deposed)");
    assert_eq!(steps(&planned.plan), ["0: Create fake_local.a after []", "1: Delete fake_local.a after [0]"]);
    lab.converge(text);
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/new"]);
}

#[test]
fn a_deleted_thing_goes_after_those_that_stop_using_it() {
    let first = r#"
        resource "fake_local" "a" { name = "a" }
        resource "fake_local" "b" {
          name = "b"
          content = fake_local.a.id
        }"#;
    let mut lab = Lab::new();
    lab.converge(first);
    let planned = lab.plan("resource \"fake_local\" \"b\" {\n name = \"b\"\n content = \"alone\"\n}");
    assert_eq!(steps(&planned.plan), ["0: Update fake_local.b after []", "1: Delete fake_local.a after [0]"]);
}
