//! What is asked, how often, through which connection, and what happens when nobody answers.

use karmaform_engine::{Answer, Options};
use karmaform_model::{ModeOfPlan, Status};

use crate::lab::{Lab, changes};

const HOSTS: &str = r#"
    data "fake_host" "h" {
      for_each = toset(["h1", "h2", "h3"])
      address  = each.key
    }
    resource "fake_thing" "t" {
      for_each = toset(["h1", "h2", "h3"])
      host     = data.fake_host.h[each.key].connection
      name     = "t"
    }
    resource "fake_thing" "u" {
      for_each = toset(["h1", "h2", "h3"])
      host     = data.fake_host.h[each.key].connection
      name     = "u"
    }"#;

fn asked(lab: &Lab) -> Vec<(String, usize)> {
    let mut batches = std::mem::take(&mut lab.world.lock().batches);
    batches.sort();
    batches
}

#[test]
fn each_connection_is_asked_once_for_all_it_has() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    asked(&lab);
    lab.world.lock().connects.clear();
    lab.world.lock().reads.clear();
    let planned = lab.plan(HOSTS);
    assert_eq!(asked(&lab), [("h1".into(), 2), ("h2".into(), 2), ("h3".into(), 2)]);
    assert_eq!(lab.world.lock().reads.len(), 3);
    assert_eq!(lab.world.lock().connects.len(), 6, "one for each data source, one for each connection value");
    assert_eq!(planned.passes, 3, "data, resources, and a last look that nothing is left to ask");
}

#[test]
fn nothing_to_ask_costs_one_pass() {
    let text = "resource \"fake_note\" \"a\" {\n count = 3\n input = count.index\n}";
    let mut lab = Lab::new();
    lab.converge(text);
    assert_eq!(lab.plan(text).passes, 1);
    assert!(asked(&lab).is_empty() && lab.world.lock().connects.len() == 1);
}

#[test]
fn without_refresh_only_data_is_read() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    asked(&lab);
    lab.world.lock().reads.clear();
    lab.world.lock().things.clear();
    let planned = lab.plan_with(HOSTS, &Options { refresh: false, ..Options::default() });
    assert_eq!((changes(&planned.plan).as_str(), asked(&lab), lab.world.lock().reads.len()), ("", vec![], 3));
}

#[test]
fn targets_are_asked_alone() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    asked(&lab);
    lab.world.lock().reads.clear();
    lab.plan_with(HOSTS, &Options { targets: vec!["fake_thing.t[\"h2\"]".parse().unwrap()], ..Options::default() });
    assert_eq!(asked(&lab), [("h2".into(), 1)]);
}

#[test]
fn a_broken_connection_is_one_error_and_the_rest_is_looked_at() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    asked(&lab);
    lab.world.lock().unreachable.insert("h2".into());
    let planned = lab.try_plan(HOSTS, &Options::default());
    let errors: Vec<_> = planned.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(errors[0].address.as_ref().unwrap().to_string(), "data.fake_host.h[\"h2\"]");
    assert!(errors[0].span.is_some());
    assert_eq!(asked(&lab), [("h1".into(), 2), ("h3".into(), 2)]);

    // Gone from the configuration: only the state knows the way.
    let planned = lab.try_plan("", &Options::default());
    let errors: Vec<_> = planned.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].detail.contains("2 resources"), "{}", errors[0].detail);
}

#[test]
fn a_connection_that_may_fail_is_a_warning_and_what_is_behind_it_is_as_it_was() {
    let mut lab = Lab::new();
    let text = HOSTS
        .replace(".connection\n", ".way\n")
        .replace("data.fake_host.h[each.key].way", "merge(data.fake_host.h[each.key].connection, { required = false })");
    lab.converge(&text);
    lab.world.lock().unreachable.insert("h2".into());
    // Gone from the configuration: only the state knows the way, and that it may fail.
    let planned = lab.try_plan("", &Options::default());
    assert!(!planned.diagnostics.has_errors(), "{:#?}", planned.diagnostics);
    let warnings: Vec<_> = planned.diagnostics.iter().map(|d| d.detail.as_str()).collect();
    assert!(warnings.iter().any(|w| w.contains("2 resources")), "{warnings:#?}");
    assert_eq!(changes(&planned.plan).lines().filter(|l| l.starts_with('-')).count(), 6, "what is there is to go all the same");
}

#[test]
fn what_can_not_be_looked_at_is_an_error_there_and_never_absent() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    lab.world.lock().unreadable.insert("h1/t".into());
    let planned = lab.try_plan(HOSTS, &Options::default());
    let errors: Vec<_> = planned.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].address.as_ref().unwrap().to_string(), "fake_thing.t[\"h1\"]");
    assert_eq!(changes(&planned.plan), "", "what could not be looked at is taken for what it was");
    assert!(matches!(planned.observed.answer(&"fake_thing.t[\"h1\"]".parse().unwrap()), Answer::Failed(_)));
    assert!(matches!(planned.observed.answer(&"fake_thing.t[\"h2\"]".parse().unwrap()), Answer::Present(_)));
}

#[test]
fn a_failed_data_source_is_an_error_there() {
    let lab = Lab::new();
    let planned = lab
        .try_plan("data \"fake_lookup\" \"x\" { key = \"broken\" }\nresource \"fake_local\" \"a\" { name = \"a\" }", &Options::default());
    let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap();
    assert_eq!(error.address.as_ref().unwrap().to_string(), "data.fake_lookup.x");
    assert_eq!(changes(&planned.plan), "+ fake_local.a");
}

#[test]
fn what_needs_something_that_could_not_be_looked_at_is_left_out() {
    let text = |key: &str| {
        format!(
            r#"
            data "fake_lookup" "x" {{ key = "{key}" }}
            resource "fake_local" "free" {{ name = "free" }}
            resource "fake_note" "bound" {{ input = data.fake_lookup.x.value }}
            resource "fake_note" "further" {{ input = fake_note.bound.id }}
            output "bound" {{ value = fake_note.further.id }}
            output "free" {{ value = fake_local.free.name }}"#
        )
    };
    let mut lab = Lab::new();
    let planned = lab.try_plan(&text("broken"), &Options::default());
    assert_eq!(
        (changes(&planned.plan).as_str(), planned.plan.errored, planned.plan.steps.len()),
        ("+ fake_local.free\noutput free: None -> Some(\"free\")", true, 0)
    );
    assert_eq!(planned.plan.outputs.keys().collect::<Vec<_>>(), ["free"]);
    // What is there stays in the dark as well.
    lab.converge(&text("good"));
    let planned = lab.try_plan(&text("broken"), &Options::default());
    assert_eq!(planned.diagnostics.iter().filter(|d| d.is_error()).count(), 1, "{:#?}", planned.diagnostics);
    let shown: Vec<String> = planned.plan.resources.iter().map(|r| r.address.to_string()).collect();
    assert_eq!((shown, planned.plan.outputs.len()), (vec!["fake_local.free".to_owned()], 0));
}

#[test]
fn data_waits_for_what_it_is_made_from() {
    let text = |key: &str| {
        format!(
            r#"
            resource "fake_local" "a" {{
              name = "a"
              content = "{key}"
            }}
            data "fake_lookup" "x" {{ key = fake_local.a.content }}
            data "fake_lookup" "y" {{
              key = "fixed"
              depends_on = [fake_local.a]
            }}
            data "fake_lookup" "z" {{ key = data.fake_lookup.x.value }}
            resource "fake_note" "n" {{ input = "${{data.fake_lookup.z.value}} ${{data.fake_lookup.y.value}}" }}"#
        )
    };
    let mut lab = Lab::new();
    let planned = lab.plan(&text("1"));
    assert!(lab.world.lock().reads.is_empty());
    let expected = "+ fake_local.a\n+ fake_note.n\n<= data.fake_lookup.x ReadBecauseDependencyPending\n\
                    <= data.fake_lookup.y ReadBecauseDependencyPending\n<= data.fake_lookup.z ReadBecauseConfigUnknown";
    assert_eq!(changes(&planned.plan), expected);
    lab.converge(&text("1"));
    let note = |lab: &Lab| lab.state().resources[&"fake_note.n".parse().unwrap()].attributes["input"]["value"].to_string();
    assert_eq!(note(&lab), "\"value of value of 1 value of fixed\"");
    // Nothing pending: read while planning, and only once each.
    lab.world.lock().reads.clear();
    assert_eq!(changes(&lab.plan(&text("1")).plan), "");
    let mut reads = lab.world.lock().reads.clone();
    reads.sort();
    assert_eq!(reads, ["1", "fixed", "value of 1"]);
    // Drift makes it pending, though the state alone does not show it.
    lab.world.lock().things.clear();
    let planned = lab.plan(&text("1"));
    assert!(changes(&planned.plan).contains("<= data.fake_lookup.y ReadBecauseDependencyPending"), "{}", changes(&planned.plan));
    lab.converge(&text("2"));
    assert_eq!(note(&lab), "\"value of value of 2 value of fixed\"");
}

#[test]
fn a_connection_read_late_does_not_replace_what_is_behind_it() {
    let text = |v: &str| {
        format!(
            r#"
            resource "fake_note" "a" {{ input = "{v}" }}
            data "fake_host" "h" {{
              address = "h1"
              depends_on = [fake_note.a]
            }}
            resource "fake_thing" "t" {{
              host = data.fake_host.h.connection
              name = "t"
            }}"#
        )
    };
    let mut lab = Lab::new();
    lab.converge(&text("1"));
    assert_eq!(changes(&lab.plan(&text("2")).plan), "~ fake_note.a\n<= data.fake_host.h ReadBecauseDependencyPending");
    lab.converge(&text("2"));
}

#[test]
fn the_way_may_change_the_place_may_not() {
    let text = |address: &str, password: &str| {
        format!(
            r#"
            data "fake_host" "h" {{
              address = "{address}"
              password = "{password}"
            }}
            resource "fake_thing" "t" {{
              host = data.fake_host.h.connection
              name = "t"
            }}
            resource "fake_thing" "u" {{
              host = data.fake_host.h.connection
              name = "u"
            }}"#
        )
    };
    let mut lab = Lab::new();
    lab.converge(&text("h1", "old"));
    let planned = lab.plan(&text("h1", "new"));
    assert_eq!(changes(&planned.plan), "");
    // One of them is gone from the configuration; the way to it is the one that the other has.
    let without = text("h1", "new").replace("resource \"fake_thing\" \"u\"", "resource \"fake_thing\" \"v\"").replace("\"u\"", "\"v\"");
    let planned = lab.plan(&without);
    let gone = planned.plan.resources.iter().find(|r| r.address.to_string() == "fake_thing.u").unwrap();
    assert_eq!(gone.change.before().unwrap()["host"].get("password"), Some(&karmaform_model::Value::from("new").secret()));
    let planned = lab.plan(&text("h2", "new"));
    assert!(changes(&planned.plan).starts_with("-/+ fake_thing.t Repl"), "{}", changes(&planned.plan));
    lab.converge(&text("h2", "new"));
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["h2/t", "h2/u"]);
}

#[test]
fn a_way_with_a_part_that_this_apply_makes_is_not_lost() {
    let text = |v: &str| {
        format!(
            r#"
            resource "fake_note" "a" {{ input = "{v}" }}
            data "fake_host" "h" {{ address = "h1" }}
            resource "fake_thing" "t" {{
              host = merge(data.fake_host.h.connection, {{ password = fake_note.a.output }})
              name = "t"
            }}"#
        )
    };
    let mut lab = Lab::new();
    lab.converge(&text("1"));
    assert_eq!(changes(&lab.plan(&text("2")).plan), "~ fake_note.a");
    lab.run(&text("2"));
    let state = lab.state();
    let thing = state.resources.values().find(|r| r.resource_type == "fake_thing").unwrap();
    let host = format!("{:?}", thing.attributes);
    assert!(host.contains("\"1\"") || host.contains("\"2\""), "{host}");
}

#[test]
fn behind_what_is_still_to_be_made_silence_is_no_error() {
    // A first run was cut off after it made the note; the host that the things are on comes with another resource.
    let text = r#"
        resource "fake_local" "machine" { name = "machine" }
        resource "fake_thing" "t" {
          host = { provider = "fake", id = "h1" }
          name = "t"
          depends_on = [fake_local.machine]
        }"#;
    let mut lab = Lab::new();
    lab.world.lock().unreachable.insert("h1".into());
    assert_eq!(changes(&lab.plan(text).plan), "+ fake_local.machine\n+ fake_thing.t");
    lab.world.lock().unreachable.clear();
    lab.converge(text);
    lab.world.lock().unreachable.insert("h1".into());
    assert!(lab.try_plan(text, &Options::default()).diagnostics.has_errors(), "now it should answer");
}

#[test]
fn an_unfinished_instance_is_looked_at_before_anything_is_decided() {
    let text = "resource \"fake_local\" \"a\" {\n name = \"a\"\n content = \"x\"\n password = \"p\"\n}";
    let mut lab = Lab::new();
    lab.converge(text);
    let address = "fake_local.a".parse().unwrap();
    let mut state = lab.state();
    state.resources.get_mut(&address).unwrap().status = Status::Unfinished;
    *lab.backend.stored.lock().unwrap() = Some(state);
    for refresh in [true, false] {
        let planned = lab.plan_with(text, &Options { refresh, ..Options::default() });
        assert_eq!(changes(&planned.plan), "~ fake_local.a FinishEarlierRun", "the password can't be seen, so it is set once more");
    }
    lab.converge(text);
    let mut state = lab.state();
    state.resources.get_mut(&address).unwrap().status = Status::Unfinished;
    *lab.backend.stored.lock().unwrap() = Some(state);
    lab.world.lock().things.clear();
    assert_eq!(changes(&lab.plan(text).plan), "+ fake_local.a FinishEarlierRun");
    lab.converge(text);
}

#[test]
fn destroying_reads_what_it_needs_and_goes_on_without() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    let destroy = Options { mode: ModeOfPlan::Destroy, ..Options::default() };
    lab.world.lock().unreachable.insert("h2".into());
    let planned = lab.try_plan(HOSTS, &destroy);
    assert!(!planned.diagnostics.has_errors(), "{:#?}", planned.diagnostics);
    assert!(planned.diagnostics.iter().any(|d| d.detail.contains("2 resources")), "{:#?}", planned.diagnostics);
    // What can be reached goes, the rest stays in the state and is told.
    let before = lab.state().resources.len();
    assert!(!lab.run_with(HOSTS, &destroy).is_success());
    let left = lab.state().resources.len();
    assert!(left > 0 && left < before, "{left} of {before} are left");
    lab.world.lock().unreachable.clear();
    assert!(lab.run_with(HOSTS, &destroy).is_success());
    assert!(lab.world.contents().is_empty() && lab.state().resources.is_empty());
}

#[test]
fn strays_are_what_neither_the_state_nor_the_configuration_knows() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    assert_eq!(lab.strays(HOSTS), []);
    let copy = |lab: &Lab, from: &str, to: &str| {
        let thing = lab.world.lock().things[from].clone();
        lab.world.lock().things.insert(to.to_owned(), thing);
    };
    copy(&lab, "h1/t", "h1/t2");
    copy(&lab, "h2/u", "h2/u2");
    copy(&lab, "h3/t", "h3/else");
    let found = |address: &str, name: &str| (address.to_owned(), name.to_owned());
    let all = [found("fake_thing.t[\"h1\"]", "h1/t2"), found("fake_thing.u[\"h2\"]", "h2/u2")];
    assert_eq!(lab.strays(HOSTS), all);
    // What the configuration wants is known, whoever made it; and of who does not answer nothing is told.
    let wanted = format!("{HOSTS}\nresource \"fake_thing\" \"new\" {{\n host = data.fake_host.h[\"h1\"].connection\n name = \"t2\"\n}}");
    assert_eq!(lab.strays(&wanted), all[1..]);
    lab.world.lock().unreachable.insert("h2".into());
    assert_eq!(lab.strays(HOSTS), all[..1]);
    // What is in the state alone is known as well, though not looked at on the way to what is not in the configuration any more.
    lab.world.lock().unreachable.clear();
    lab.world.lock().things.remove("h1/t2");
    assert_eq!(lab.strays(&HOSTS.replace("\"h2\", ", "")), [found("fake_thing.u[\"h2\"]", "h2/u2")]);
}

#[test]
fn a_question_without_an_answer_is_an_error_of_that_one() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    lab.world.lock().forgetful = true;
    let planned = lab.try_plan(HOSTS, &Options::default());
    let told: Vec<_> =
        planned.diagnostics.iter().map(|d| (d.summary.as_str(), d.address.as_ref().map(ToString::to_string), d.span.is_some())).collect();
    // Of each host the last one is missing; what is the same of all is told once.
    assert_eq!(told, [("Question left unanswered", Some("fake_thing.u[\"h1\"]".to_owned()), true)]);
}

/// A look that is over before anybody answers.
struct Over;

impl karmaform_engine::Runtime for Over {
    fn now(&self) -> u64 {
        0
    }
    fn sleep(&self, _: u64) -> karmaform_model::BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn enough(&self) -> karmaform_model::BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

#[test]
fn who_was_cut_off_is_not_told_as_a_failure() {
    let mut lab = Lab::new();
    lab.converge(HOSTS);
    let (config, state) = (lab.load(HOSTS), lab.state());
    let pool = karmaform_engine::Pool::only_looking(lab.registry.catalog().clone(), config.providers.clone());
    let (graph, _) = karmaform_engine::graph(&config, &state, &lab.registry);
    let world =
        karmaform_engine::World { config: &config, registry: &lab.registry, state: &state, pool: &pool, runtime: &Over, hands: None };
    let (_, told) = futures::executor::block_on(karmaform_engine::observe(&graph, &world, &Options::default()));
    assert!(told.is_empty(), "{told:?}");
}
