//! What is planned, and why.

use karmaform_engine::Options;
use karmaform_model::{Action, Change, ModeOfPlan, Value};

use crate::lab::{Lab, changes, show};

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
fn each_kind_of_change() {
    let base = r#"resource "fake_local" "a" {
        name = "a"
        content = "x"
    }"#;
    check("", base, "+ fake_local.a");
    check(base, base, "");
    check(base, &base.replace("\"x\"", "\"y\""), "~ fake_local.a");
    check(
        base,
        &base.replace("content = \"x\"", "content = \"x\"\nsize = \"2\""),
        r#"-/+ fake_local.a ReplaceBecauseCannotUpdate([Path([Name("size")])])"#,
    );
    check(base, &base.replace("name = \"a\"", "name = \"b\""), r#"-/+ fake_local.a ReplaceBecauseCannotUpdate([Path([Name("name")])])"#);
    check(base, "", "- fake_local.a DeleteBecauseNoResourceConfig");
}

#[test]
fn instances_go_with_their_keys() {
    let counted = |n: usize| format!("resource \"fake_note\" \"a\" {{\n count = {n}\n input = count.index\n}}");
    check(&counted(2), &counted(3), "+ fake_note.a[2]");
    check(&counted(2), &counted(1), "- fake_note.a[1] DeleteBecauseCountIndex");
    let each = |keys: &str| format!("resource \"fake_note\" \"a\" {{\n for_each = toset({keys})\n input = each.key\n}}");
    check(&each(r#"["x", "y"]"#), &each(r#"["y"]"#), r#"- fake_note.a["x"] DeleteBecauseEachKey"#);
    check(&counted(1), &each(r#"["y"]"#), "- fake_note.a[0] DeleteBecauseWrongRepetition\n+ fake_note.a[\"y\"]");
}

#[test]
fn dependents_see_what_will_be() {
    let text = |input: &str| {
        format!(
            r#"
            resource "fake_note" "a" {{ input = "{input}" }}
            resource "fake_local" "b" {{
              name = "b"
              content = fake_note.a.output
            }}
            output "o" {{ value = "${{fake_local.b.content}}!" }}"#
        )
    };
    let mut lab = Lab::new();
    let planned = lab.plan(&text("x"));
    assert_eq!(changes(&planned.plan), "+ fake_local.b\n+ fake_note.a\noutput o: None -> Some(unknown(string))");
    lab.converge(&text("x"));
    assert_eq!(lab.state().outputs["o"].value, "x!".into());
    let planned = lab.plan(&text("y"));
    assert_eq!(changes(&planned.plan), "~ fake_local.b\n~ fake_note.a\noutput o: Some(\"x!\") -> Some(unknown(string))");
    lab.converge(&text("y"));
    assert_eq!(lab.world.contents()["/b"], "y -");
}

#[test]
fn what_is_gone_is_made_again_and_what_drifted_is_repaired() {
    let text = r#"
        resource "fake_local" "a" {
          name = "a"
          content = "x"
        }
        resource "fake_local" "b" {
          name = "b"
          content = "x"
        }"#;
    let mut lab = Lab::new();
    lab.converge(text);
    lab.world.lock().things.remove("/a");
    lab.world.lock().things.get_mut("/b").unwrap().insert("content".into(), "changed".into());
    let planned = lab.plan(text);
    assert_eq!(changes(&planned.plan), "+ fake_local.a CreateBecauseMissing\n~ fake_local.b");
    let drift: Vec<_> = planned.plan.drift.iter().map(|d| (d.address.to_string(), d.after.is_some())).collect();
    assert_eq!(drift, [("fake_local.a".to_owned(), false), ("fake_local.b".to_owned(), true)]);
    assert!(!planned.plan.drift[1].after.as_ref().unwrap().contains_key("age"), "facts of the moment are no drift");

    let trusting = Options { refresh: false, ..Options::default() };
    assert_eq!(changes(&lab.plan_with(text, &trusting).plan), "", "the state says that all is well");
    lab.converge(text);

    // Gone, and not wanted any more: only the record goes, nobody is asked to delete it.
    lab.world.lock().things.remove("/a");
    let planned = lab.plan("");
    assert_eq!(changes(&planned.plan), ". fake_local.a DeleteBecauseNoResourceConfig\n- fake_local.b DeleteBecauseNoResourceConfig");
    lab.converge("");
    assert!(lab.state().resources.is_empty());
}

#[test]
fn refresh_only_takes_what_is_seen_into_the_state() {
    let text = r#"
        resource "fake_local" "a" {
          name = "a"
          content = "x"
        }
        resource "fake_local" "b" { name = "b" }
        output "o" { value = fake_local.a.content }"#;
    let mut lab = Lab::new();
    lab.converge(text);
    lab.world.lock().things.remove("/b");
    lab.world.lock().things.get_mut("/a").unwrap().insert("content".into(), "changed".into());
    let planned = lab.plan_with(&text.replace("\"x\"", "\"z\""), &mode(ModeOfPlan::RefreshOnly));
    assert_eq!(changes(&planned.plan), "output o: Some(\"x\") -> Some(\"changed\")");
    assert_eq!(planned.plan.steps, []);
    assert_eq!(planned.plan.drift.len(), 2);
    let before = lab.world.lock().operations;
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.world.lock().operations, before);
    let state = lab.state();
    assert_eq!(state.resources.len(), 1);
    assert_eq!(state.resources.values().next().unwrap().attributes["content"], "changed");
    assert_eq!(state.outputs["o"].value, "changed".into());
    assert_eq!(changes(&lab.plan_with(text, &mode(ModeOfPlan::RefreshOnly)).plan), "");
}

#[test]
fn what_is_there_already_is_adopted_and_recorded() {
    let text = r#"resource "fake_local" "a" {
        name = "a"
        content = "x"
    }"#;
    let mut lab = Lab::new();
    lab.converge(text);
    *lab.backend.stored.lock().unwrap() = None;
    let planned = lab.plan(text);
    assert_eq!(changes(&planned.plan), "~ fake_local.a", "the state has to learn it, or it would be an orphan one day");
    lab.converge(text);
    assert_eq!(lab.world.lock().created, 1);
}

#[test]
fn secrets_stay_secret_on_both_sides() {
    let text = |v: &str| {
        format!(
            r#"
            variable "v" {{
              default = "{v}"
              sensitive = true
            }}
            resource "fake_local" "a" {{
              name = "a"
              content = var.v
              password = "pw-{v}"
            }}
            resource "fake_note" "n" {{ input = {{ x = var.v }} }}"#
        )
    };
    let mut lab = Lab::new();
    lab.converge(&text("topsecret1"));
    let planned = lab.plan(&text("topsecret2"));
    let text_of = format!("{:?}", planned.plan.resources);
    assert!(!text_of.contains("topsecret"), "{text_of}");
    assert_eq!(changes(&planned.plan), "~ fake_local.a\n~ fake_note.n");
    let state = lab.state();
    let stored = &state.resources[&"fake_local.a".parse().unwrap()];
    let marked: Vec<String> = stored.secret_paths.iter().map(ToString::to_string).collect();
    assert_eq!(marked, ["content", "digest"], "the schema marks the password itself");
    // The content is in the world and in the plan's other side, and was not marked there by anyone.
    *lab.backend.stored.lock().unwrap() = None;
    let planned = lab.plan(&text("topsecret1"));
    let text_of = format!("{:?}", planned.plan.resources);
    assert!(!text_of.contains("topsecret"), "{text_of}");
}

#[test]
fn mistakes_are_errors_with_places_and_the_rest_is_planned() {
    let text = r#"
        resource "fake_local" "a" {
          name = "a"
          content = "impossible"
        }
        resource "fake_local" "b" { name = "b" }"#;
    let lab = Lab::new();
    let planned = lab.try_plan(text, &Options::default());
    let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap();
    assert_eq!((error.summary.as_str(), error.address.as_ref().unwrap().to_string().as_str()), ("Impossible content", "fake_local.a"));
    assert!(error.span.is_some());
    assert_eq!(changes(&planned.plan), "+ fake_local.b");
}

#[test]
fn cycles_are_named_whole() {
    let lab = Lab::new();
    let text = r#"
        resource "fake_note" "a" { input = fake_note.b.id }
        resource "fake_note" "b" { input = fake_note.c.id }
        resource "fake_note" "c" { input = fake_note.a.id }"#;
    let config = lab.load(text);
    let (_, diagnostics) = karmaform_engine::graph(&config, &lab.state(), &lab.registry);
    let error = diagnostics.iter().next().unwrap();
    assert!(error.detail.contains("fake_note.a needs fake_note.b needs fake_note.c needs fake_note.a"), "{}", error.detail);
    assert_eq!((error.summary.as_str(), error.labels.len()), ("Dependency cycle", 2));
}

#[test]
fn blocks_meet_in_one_place() {
    let text = r#"
        resource "fake_note" "a" {
          count = 50
          input = count.index
        }
        resource "fake_note" "b" {
          count = 50
          input = length(fake_note.a)
        }"#;
    let lab = Lab::new();
    let planned = lab.plan(text);
    let edges: usize = planned.plan.steps.iter().map(|s| s.after.len()).sum();
    assert_eq!((planned.plan.steps.len(), edges), (101, 100), "{}", show(&planned.plan));
    assert_eq!(planned.plan.resources[99].dependencies.len(), 1, "a whole block is one dependency");
}

#[test]
fn a_spoilt_plan_does_not_pass_the_check() {
    let text = r#"
        resource "fake_local" "a" {
          name = "a"
          size = "2"
        }
        resource "fake_local" "b" {
          name = "b"
          needs = [fake_local.a.id]
        }"#;
    let mut lab = Lab::new();
    lab.converge(&text.replace("\"2\"", "\"1\""));
    let sound = lab.plan(text).plan;
    assert_eq!(sound.steps.len(), 4, "{}", show(&sound));
    type Spoil = fn(&mut karmaform_model::Plan);
    let spoils: [(&str, Spoil); 8] = [
        ("waits for itself", |p| p.steps[0].after = vec![0]),
        ("in order", |p| p.steps[3].after = vec![2, 1]),
        ("not there", |p| p.steps[0].kind = karmaform_model::StepKind::Change { resource: 9, part: Action::Delete }),
        ("has the steps", |p| drop(p.steps.pop())),
        ("wrong order", |p| p.steps.iter_mut().for_each(|s| s.after.clear())),
        ("does not come after", |p| p.resources.reverse()),
        ("format", |p| p.format = 99),
        ("refreshes", |p| p.mode = ModeOfPlan::RefreshOnly),
    ];
    for (expected, spoil) in spoils {
        let mut plan = sound.clone();
        spoil(&mut plan);
        let wrong = karmaform_engine::check(&plan);
        assert!(wrong.iter().any(|w| w.contains(expected)), "{expected}: {wrong:?}");
    }
}

#[test]
fn planning_twice_gives_the_same_plan() {
    let text = r#"
        data "fake_host" "h" { address = "h1" }
        resource "fake_thing" "t" {
          for_each = toset(["x", "y"])
          host = data.fake_host.h.connection
          name = each.key
        }"#;
    let lab = Lab::new();
    assert_eq!(lab.plan(text).plan, lab.plan(text).plan);
}

#[test]
fn a_saved_plan_gets_its_secrets_back() {
    fn redact(value: &mut Value) {
        if value.secret {
            *value = Value::unknown(value.ty()).secret();
        }
        *value = value.map_parts(|_, part| {
            let mut part = part.clone();
            redact(&mut part);
            part
        });
    }
    let text = r#"
        data "fake_host" "h" {
          address = "h1"
          password = "pw"
        }
        resource "fake_thing" "t" {
          host = data.fake_host.h.connection
          name = "t"
          password = "secret"
        }"#;
    let lab = Lab::new();
    let fresh = lab.plan(text).plan;
    let mut saved = fresh.clone();
    for resource in &mut saved.resources {
        if let Change::NoOp { object } | Change::Create { after: object } = &mut resource.change {
            object.values_mut().for_each(redact);
        }
    }
    assert_ne!(saved, fresh);
    assert!(karmaform_engine::restore(&mut saved, &fresh).is_empty());
    assert_eq!(saved, fresh);
    let mut other = fresh.clone();
    other.resources.retain(|r| r.address.to_string() != "fake_thing.t");
    saved.resources.iter_mut().filter_map(|r| r.change.after_mut()).for_each(|o| o.values_mut().for_each(redact));
    let problems = karmaform_engine::restore(&mut saved, &other);
    assert_eq!(problems.iter().next().unwrap().summary, "Saved plan is stale");
}

#[test]
fn what_is_wrong_with_a_local_is_said_once() {
    let lab = Lab::new();
    let text = "data \"fake_host\" \"h\" { address = \"a\" }\n\
        locals { wrong = element([1], data.fake_host.h.address) }\n\
        resource \"fake_note\" \"n\" { input = local.wrong }\noutput \"o\" { value = local.wrong }";
    let planned = lab.try_plan(text, &Options::default());
    let errors: Vec<_> = planned.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
}
