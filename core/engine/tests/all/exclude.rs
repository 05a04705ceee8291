//! `-exclude`: all but some things, and what could not be right without them.

use karmaform_engine::Options;
use karmaform_model::ModeOfPlan;

use crate::lab::{Lab, changes};

fn without(mode: ModeOfPlan, excludes: &[&str]) -> Options {
    Options { mode, excludes: excludes.iter().map(|a| a.parse().unwrap()).collect(), ..Options::default() }
}

const CHAIN: &str = r#"
    resource "fake_local" "a" { name = "a" }
    resource "fake_local" "b" {
      name    = "b"
      content = fake_local.a.id
    }
    resource "fake_local" "c" {
      name    = "c"
      content = fake_local.b.id
    }
    resource "fake_local" "other" {
      count = 2
      name  = "o${count.index}"
    }
    output "b" { value = fake_local.b.id }
    output "none" { value = 1 }
    output "other" { value = fake_local.other[0].name }"#;

fn check(lab: &Lab, text: &str, options: &Options, expected: &[&str]) {
    let planned = lab.plan_with(text, options);
    let found = changes(&planned.plan);
    let lines: Vec<&str> = found.lines().map(|l| l.split(':').next().unwrap_or_default()).collect();
    assert_eq!(lines, expected, "{options:?}");
    assert_eq!(planned.plan.excludes, options.excludes);
    assert!(planned.plan.warnings.iter().any(|d| d.summary == "Resource exclusion is in effect"));
}

#[test]
fn what_depends_on_it_is_left_out_too() {
    let lab = Lab::new();
    let new = |excludes: &[&str]| without(ModeOfPlan::Normal, excludes);
    let others = ["+ fake_local.other[0]", "+ fake_local.other[1]"];
    check(&lab, CHAIN, &new(&["fake_local.b"]), &["+ fake_local.a", others[0], others[1], "output none", "output other"]);
    check(
        &lab,
        CHAIN,
        &new(&["fake_local.other[1]"]),
        &["+ fake_local.a", "+ fake_local.b", "+ fake_local.c", others[0], "output b", "output none"],
    );
    check(&lab, CHAIN, &new(&["fake_local.a", "fake_local.other"]), &["output none"]);
}

#[test]
fn destroying_leaves_what_it_was_made_of() {
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let gone = |excludes: &[&str]| without(ModeOfPlan::Destroy, excludes);
    let others = ["- fake_local.other[0]", "- fake_local.other[1]"];
    check(&lab, CHAIN, &gone(&["fake_local.b"]), &["- fake_local.c", others[0], others[1]]);
    check(&lab, CHAIN, &gone(&["fake_local.c", "fake_local.other[0]"]), &[others[1]]);
    let planned = lab.plan_with(CHAIN, &gone(&["fake_local.b"]));
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/a", "/b"]);
    assert!(lab.state().outputs.contains_key("b"), "outputs stay with what is left");
}

#[test]
fn what_is_not_configured_any_more_stays_for_what_is_left_out() {
    let mut lab = Lab::new();
    lab.converge(CHAIN);
    let text = "resource \"fake_local\" \"c\" {\n name = \"c\"\n content = \"new\"\n}";
    let options = without(ModeOfPlan::Normal, &["fake_local.c"]);
    let planned = lab.plan_with(text, &options);
    let found = changes(&planned.plan);
    assert!(!found.contains("fake_local.a") && !found.contains("fake_local.b") && found.contains("- fake_local.other[0]"), "{found}");
    assert!(lab.apply_plan(&planned).is_success());
    lab.converge(text);
}

#[test]
fn a_composite_is_left_out_with_its_parts_or_only_a_part_of_it() {
    let text = r#"
        data "fake_host" "h" {
          for_each = toset(["a", "b"])
          address  = each.key
        }
        resource "fake_cluster" "main" { hosts = data.fake_host.h }
        resource "fake_note" "user" { input = fake_cluster.main.ids }
        resource "fake_note" "alone" { input = "x" }"#;
    let mut lab = Lab::new();
    check(&lab, text, &without(ModeOfPlan::Normal, &["fake_cluster.main"]), &["+ fake_note.alone"]);
    let part = without(ModeOfPlan::Normal, &["fake_cluster.main/member[\"b\"]"]);
    let some = ["+ fake_cluster.main/ca", "+ fake_cluster.main/member[\"a\"]/file", "+ fake_cluster.main/member[\"a\"]/unit"];
    check(&lab, text, &part, &[some[0], some[1], some[2], "+ fake_note.alone"]);
    lab.converge(text);
    check(&lab, text, &without(ModeOfPlan::Destroy, &["fake_cluster.main"]), &["- fake_note.alone", "- fake_note.user"]);
    let part = without(ModeOfPlan::Destroy, &["fake_cluster.main/member[\"a\"]/file"]);
    check(
        &lab,
        text,
        &part,
        &[
            "- fake_cluster.main",
            "- fake_cluster.main/member[\"a\"]/unit",
            "- fake_cluster.main/member[\"b\"]/file",
            "- fake_cluster.main/member[\"b\"]/unit",
            "- fake_note.alone",
            "- fake_note.user",
        ],
    );
}

#[test]
fn an_address_that_names_nothing_and_one_that_moved_are_refused() {
    let mut lab = Lab::new();
    lab.converge("resource \"fake_local\" \"a\" { name = \"a\" }");
    let error = |text: &str, address: &str| {
        let planned = lab.try_plan(text, &without(ModeOfPlan::Normal, &[address]));
        planned.diagnostics.iter().find(|d| d.is_error()).map(|d| d.summary.clone())
    };
    assert_eq!(error("", "fake_local.x").as_deref(), Some("Nothing is excluded"));
    let moved = "moved {\n from = fake_local.a\n to = fake_local.b\n}\nresource \"fake_local\" \"b\" { name = \"a\" }";
    for address in ["fake_local.a", "fake_local.b"] {
        assert_eq!(error(moved, address).as_deref(), Some("Moved resource instances excluded"), "{address}");
    }
}
