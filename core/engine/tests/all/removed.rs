//! `removed` blocks: what is taken out of the state and left as it is.

use karmaform_engine::Options;
use karmaform_model::{ModeOfPlan, Status};

use crate::fake_cluster::Style;
use crate::lab::{Lab, Planned, changes, show};

fn removed(address: &str, destroy: bool) -> String {
    format!("removed {{\n from = {address}\n lifecycle {{ destroy = {destroy} }}\n}}\n")
}

fn mode(mode: ModeOfPlan, targets: &[&str]) -> Options {
    Options { mode, targets: targets.iter().map(|a| a.parse().unwrap()).collect(), ..Options::default() }
}

fn warned(planned: &Planned) -> Option<String> {
    planned.plan.warnings.iter().find(|d| d.summary == "Some objects will no longer be managed").map(|d| d.detail.clone())
}

const CHAIN: &str = r#"
    resource "fake_local" "a" {
      name = "a"
      lifecycle { prevent_destroy = true }
    }
    resource "fake_local" "b" {
      name    = "b"
      content = fake_local.a.id
    }"#;
const ALONE: &str = "resource \"fake_local\" \"b\" { name = \"b\" }\n";

#[test]
fn what_is_let_go_stays_in_the_world() {
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let text = removed("fake_local.a", false) + ALONE;
    let planned = lab.plan(&text);
    assert_eq!(changes(&planned.plan), ". fake_local.a\n~ fake_local.b");
    assert_eq!(planned.plan.counts(), (0, 1, 0));
    assert!(warned(&planned).unwrap().contains("takes fake_local.a out of the state"));
    assert!(planned.plan.drift.is_empty());
    lab.converge(&text);
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/a", "/b"]);
    assert_eq!(lab.state().resources.keys().map(ToString::to_string).collect::<Vec<_>>(), ["fake_local.b"]);
    assert!(warned(&lab.plan(&text)).is_none(), "a block that has done its work says nothing");
    lab.converge(ALONE);
}

#[test]
fn destroy_true_is_as_if_the_block_were_not_there() {
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let text = removed("fake_local.a", true) + ALONE;
    let planned = lab.plan(&text);
    assert_eq!(changes(&planned.plan), "- fake_local.a DeleteBecauseNoResourceConfig\n~ fake_local.b");
    assert!(warned(&planned).is_none());
    lab.converge(&text);
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/b"]);
}

#[test]
fn nobody_is_asked_for_what_is_let_go() {
    let mut lab = Lab::new();
    lab.converge(
        r#"
        data "fake_host" "h" { address = "h" }
        resource "fake_thing" "t" {
          count = 2
          host  = data.fake_host.h.connection
          name  = "t${count.index}"
        }"#,
    );
    let mut state = lab.state();
    state.resources.get_mut(&"fake_thing.t[1]".parse().unwrap()).unwrap().status = Status::Unfinished;
    *lab.backend.stored.lock().unwrap() = Some(state);
    lab.world.lock().unreachable.insert("h".into());
    lab.world.lock().batches.clear();
    let text = removed("fake_thing.t", false);
    assert_eq!(changes(&lab.plan(&text).plan), ". fake_thing.t[0]\n. fake_thing.t[1]");
    lab.converge(&text);
    assert!(lab.state().resources.is_empty() && lab.world.contents().len() == 2);
    assert!(lab.world.lock().batches.is_empty(), "nobody was asked");
}

#[test]
fn destroying_leaves_what_is_let_go() {
    let text = removed("fake_local.a", false) + ALONE;
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let check = |lab: &Lab, options: &Options, expected: &str| {
        let planned = lab.plan_with(&text, options);
        assert_eq!(changes(&planned.plan), expected, "{options:?}");
        planned
    };
    check(&lab, &mode(ModeOfPlan::Destroy, &["fake_local.a"]), ". fake_local.a");
    check(&lab, &mode(ModeOfPlan::Destroy, &["fake_local.b"]), "- fake_local.b");
    check(&lab, &mode(ModeOfPlan::Normal, &["fake_local.a"]), ". fake_local.a");
    check(&lab, &mode(ModeOfPlan::Normal, &["fake_local.b"]), "~ fake_local.b");
    check(&lab, &mode(ModeOfPlan::RefreshOnly, &[]), "");
    let planned = check(&lab, &mode(ModeOfPlan::Destroy, &[]), ". fake_local.a\n- fake_local.b");
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.state().resources.is_empty());
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/a"]);
}

#[test]
fn leftovers_of_replacements_are_let_go_too() {
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let mut state = lab.state();
    let old = state.resources[&"fake_local.a".parse().unwrap()].clone();
    state.deposed.insert(("fake_local.a".parse().unwrap(), "0a1b2c3d".into()), old);
    *lab.backend.stored.lock().unwrap() = Some(state);
    let text = removed("fake_local.a", false) + ALONE;
    assert_eq!(changes(&lab.plan(&text).plan), ". fake_local.a\n. fake_local.a (deposed)\n~ fake_local.b");
    lab.converge(&text);
    assert!(lab.state().deposed.is_empty() && lab.world.contents().contains_key("/a"));
}

#[test]
fn another_address_may_take_it_over() {
    let mut lab = Lab::new();
    lab.converge("resource \"fake_local\" \"a\" { name = \"a\" }");
    let text = removed("fake_local.a", false) + "resource \"fake_local\" \"z\" { name = \"a\" }";
    assert_eq!(changes(&lab.plan(&text).plan), ". fake_local.a\n~ fake_local.z");
    lab.converge(&text);
    assert!(lab.world.contents().contains_key("/a") && lab.state().resources.len() == 1);
}

#[test]
fn a_composite_is_let_go_with_all_its_parts() {
    let whole = r#"
        data "fake_host" "h" {
          for_each = toset(["a", "b"])
          address  = each.key
        }
        resource "fake_cluster" "main" {
          hosts = data.fake_host.h
          lifecycle { prevent_destroy = true }
        }
        resource "fake_note" "user" { input = fake_cluster.main.ids }"#;
    let rest = removed("fake_cluster.main", false) + "resource \"fake_note\" \"user\" { input = \"alone\" }";
    for how in [ModeOfPlan::Normal, ModeOfPlan::Destroy] {
        let mut lab = Lab::new();
        lab.converge(whole);
        let before = lab.world.contents();
        // Even one that refuses every change has nothing to say.
        *lab.cluster.style.lock().unwrap() = Style::Refusing;
        let planned = lab.plan_with(&rest, &mode(how, &[]));
        let user = if how == ModeOfPlan::Normal { "~ fake_note.user" } else { "- fake_note.user" };
        let expected = [
            ". fake_cluster.main",
            ". fake_cluster.main/ca",
            ". fake_cluster.main/member[\"a\"]/file",
            ". fake_cluster.main/member[\"a\"]/unit",
            ". fake_cluster.main/member[\"b\"]/file",
            ". fake_cluster.main/member[\"b\"]/unit",
            user,
        ];
        assert_eq!(changes(&planned.plan), expected.join("\n"));
        assert!(!show(&planned.plan).contains("Gate") && planned.plan.impact.is_empty(), "{}", show(&planned.plan));
        let said = warned(&planned).unwrap();
        assert!(said.contains("takes fake_cluster.main out") && said.contains("1 object of it lives in the state alone"), "{said}");
        assert!(lab.apply_plan(&planned).is_success());
        assert_eq!(lab.world.contents(), before);
        assert_eq!(lab.state().resources.len(), usize::from(how == ModeOfPlan::Normal));
        assert!(lab.plan_with(&rest, &mode(how, &["fake_cluster.main"])).plan.is_empty() || how == ModeOfPlan::Destroy);
    }
}
