//! `moved` blocks: the same things under other addresses.

use karmaform_engine::Options;
use karmaform_model::{Address, JournalRecord, ModeOfPlan};

use crate::fake::Fault;
use crate::lab::{Lab, changes};

fn moved(from: &str, to: &str) -> String {
    format!("moved {{\n from = {from}\n to = {to}\n}}\n")
}

fn local(name: &str, more: &str) -> String {
    format!("resource \"fake_local\" \"{name}\" {{\n{more}\n}}\n")
}

fn known(lab: &Lab) -> Vec<String> {
    lab.state().resources.keys().map(ToString::to_string).collect()
}

fn dependencies(lab: &Lab, address: &str) -> Vec<String> {
    lab.state().resources[&address.parse::<Address>().unwrap()].dependencies.iter().map(ToString::to_string).collect()
}

/// One configuration is applied, and another one planned and applied: nothing is touched, and the state has these.
fn check(before: &str, after: &str, expected: &[&str]) -> Lab {
    let mut lab = Lab::new();
    lab.converge(before);
    let world = lab.world.contents();
    let planned = lab.plan(after);
    assert_eq!(changes(&planned.plan), "", "{after}");
    assert!(!planned.plan.is_empty() && planned.plan.steps.is_empty(), "{after}");
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.world.contents(), world, "{after}");
    assert_eq!(known(&lab), expected, "{after}");
    let again = lab.plan(after);
    assert!(again.plan.is_empty() && again.plan.warnings.is_empty(), "{after}");
    lab
}

const PAIR: &str = r#"
    resource "fake_local" "a" {
      count = 2
      name  = "n${count.index}"
    }
    resource "fake_local" "user" {
      name    = "user"
      content = fake_local.a[0].id
    }"#;

#[test]
fn what_is_renamed_is_neither_made_nor_destroyed() {
    let user = |of: &str| format!("resource \"fake_local\" \"user\" {{\n name = \"user\"\n content = {of}.id\n}}\n");
    let counted = "count = 2\nname = \"n${count.index}\"";
    let lab = check(
        PAIR,
        &(moved("fake_local.a", "fake_local.b") + &local("b", counted) + &user("fake_local.b[0]")),
        &["fake_local.b[0]", "fake_local.b[1]", "fake_local.user"],
    );
    assert_eq!(dependencies(&lab, "fake_local.user"), ["fake_local.b[0]"]);
    check(
        PAIR,
        &(moved("fake_local.a[1]", "fake_local.z")
            + &moved("fake_local.a[0]", "fake_local.a[\"x\"]")
            + &local("a", "for_each = { x = \"n0\" }\nname = each.value")
            + &local("z", "name = \"n1\"")
            + &user("fake_local.a[\"x\"]")),
        &["fake_local.a[\"x\"]", "fake_local.user", "fake_local.z"],
    );
}

#[test]
fn chains_are_followed_from_wherever_a_state_is() {
    let chain = moved("fake_local.a", "fake_local.b") + &moved("fake_local.b", "fake_local.c") + &local("c", "name = \"n\"");
    for name in ["a", "b"] {
        let lab = check(&local(name, "name = \"n\""), &chain, &["fake_local.c"]);
        // The block may stay for those that come later.
        assert!(lab.plan(&chain).plan.moved.is_empty());
    }
}

#[test]
fn count_alone_moves_the_first_instance() {
    let (single, counted) = (local("a", "name = \"n\""), local("a", "count = 1\nname = \"n\""));
    check(&single, &counted, &["fake_local.a[0]"]);
    check(&counted, &single, &["fake_local.a"]);
    // A block that says something else is listened to.
    let said = moved("fake_local.a", "fake_local.a[1]") + &local("a", "count = 2\nname = count.index == 1 ? \"n\" : \"m\"");
    let mut lab = Lab::new();
    lab.converge(&single);
    assert_eq!(changes(&lab.plan(&said).plan), "+ fake_local.a[0]");
    lab.converge(&said);
    assert_eq!(known(&lab), ["fake_local.a[0]", "fake_local.a[1]"]);
}

#[test]
fn what_stands_in_the_way_is_warned_of() {
    let mut lab = Lab::new();
    lab.converge(&(local("a", "name = \"a\"") + &local("b", "name = \"b\"")));
    let text = moved("fake_local.a", "fake_local.b") + &local("b", "name = \"b\"");
    let planned = lab.plan(&text);
    assert_eq!(changes(&planned.plan), "- fake_local.a DeleteBecauseNoResourceConfig");
    let warning = planned.diagnostics.iter().find(|d| d.summary == "Unresolved resource instance address changes").unwrap();
    assert!(warning.detail.contains("fake_local.a could not move to fake_local.b"), "{warning:?}");
}

#[test]
fn what_moves_to_nowhere_is_destroyed_and_says_why() {
    let mut lab = Lab::new();
    lab.converge(&local("a", "name = \"a\""));
    let planned = lab.plan(&moved("fake_local.a", "fake_local.b"));
    let reason =
        "DeleteBecauseNoMoveTarget(Address { module: [], mode: Managed, kind: \"fake_local\", name: \"a\", key: None, child: [] })";
    assert_eq!(changes(&planned.plan), format!("- fake_local.b {reason}"));
}

#[test]
fn a_move_comes_with_changes_and_survives_a_crash() {
    let mut lab = Lab::new();
    lab.converge(&local("a", "name = \"n\""));
    let text = moved("fake_local.a", "fake_local.b") + &local("b", "name = \"n\"\ncontent = \"new\"") + &local("c", "name = \"c\"");
    let planned = lab.plan(&text);
    assert_eq!(changes(&planned.plan), "~ fake_local.b\n+ fake_local.c");
    // The run dies before it does anything: the state knows of the move, and the journal fits it.
    {
        let mut world = lab.world.lock();
        let next = world.operations;
        world.fault = Some((next, Fault::Refused));
    }
    let outcome = lab.apply_plan(&planned);
    assert!(!outcome.is_success());
    assert!(known(&lab).contains(&"fake_local.b".to_owned()) && !known(&lab).contains(&"fake_local.a".to_owned()));
    assert!(
        !lab.journal.records.lock().unwrap().iter().any(|r| matches!(r, JournalRecord::Started { address, .. } if address.name == "a"))
    );
    lab.world.lock().fault = None;
    lab.converge(&text);
    assert_eq!(known(&lab), ["fake_local.b", "fake_local.c"]);
}

#[test]
fn targets_must_not_leave_out_what_moved() {
    let mut lab = Lab::new();
    lab.converge(&(local("a", "name = \"a\"") + &local("other", "name = \"o\"")));
    let text = moved("fake_local.a", "fake_local.b") + &local("b", "name = \"a\"") + &local("other", "name = \"o\"");
    let options = |target: &str| Options { targets: vec![target.parse().unwrap()], ..Options::default() };
    let planned = lab.try_plan(&text, &options("fake_local.other"));
    let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap();
    assert_eq!(error.summary, "Moved resource instances excluded by targeting");
    assert!(error.hints[0].contains("-target='fake_local.b'"), "{error:?}");
    for target in ["fake_local.b", "fake_local.a"] {
        let planned = lab.plan_with(&text, &options(target));
        assert_eq!(planned.plan.moved.len(), 1, "{target}");
        assert!(!planned.plan.warnings.iter().any(|d| d.summary == "No such resource"), "{target}");
    }
}

#[test]
fn other_modes_move_too() {
    let text = moved("fake_local.a", "fake_local.b") + &local("b", "name = \"a\"");
    let mode = |mode| Options { mode, ..Options::default() };
    let mut lab = Lab::new();
    lab.converge(&local("a", "name = \"a\""));
    let planned = lab.plan_with(&text, &mode(ModeOfPlan::RefreshOnly));
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(known(&lab), ["fake_local.b"]);
    let mut lab = Lab::new();
    lab.converge(&local("a", "name = \"a\""));
    let planned = lab.plan_with(&text, &mode(ModeOfPlan::Destroy));
    assert_eq!(changes(&planned.plan), "- fake_local.b");
    assert!(lab.apply_plan(&planned).is_success());
    assert!(known(&lab).is_empty() && lab.world.contents().is_empty());
}

const CLUSTER: &str = r#"
    data "fake_host" "h" {
      for_each = toset(["a", "b"])
      address  = each.key
    }"#;

fn cluster(name: &str, more: &str) -> String {
    format!("{CLUSTER}\nresource \"fake_cluster\" \"{name}\" {{\n hosts = data.fake_host.h\n{more}\n}}\n")
}

#[test]
fn a_composite_takes_its_parts_along() {
    check(
        &cluster("one", ""),
        &(moved("fake_cluster.one", "fake_cluster.two") + &cluster("two", "")),
        &[
            "fake_cluster.two",
            "fake_cluster.two/ca",
            "fake_cluster.two/member[\"a\"]/file",
            "fake_cluster.two/member[\"a\"]/unit",
            "fake_cluster.two/member[\"b\"]/file",
            "fake_cluster.two/member[\"b\"]/unit",
        ],
    );
}

#[test]
fn a_composite_that_would_make_its_parts_anew_for_its_name_is_not_moved() {
    let text = |count: &str| cluster("one", &format!("label = \"named\"\n{count}"));
    let mut lab = Lab::new();
    lab.converge(&text(""));
    let refused = |lab: &Lab, text: &str| {
        let planned = lab.try_plan(text, &Options::default());
        let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap_or_else(|| panic!("{}", changes(&planned.plan))).clone();
        assert_eq!(error.summary, "Move would make things anew");
        assert!(error.detail.contains("/member[\"a\"]/file"), "{error:?}");
        error
    };
    let error = refused(&lab, &(moved("fake_cluster.one", "fake_cluster.two") + &cluster("two", "label = \"named\"")));
    assert!(error.hints.iter().any(|h| h.contains("delete the moved block, and call it fake_cluster.one again")), "{error:?}");
    // So may `count` alone.
    let error = refused(&lab, &text("count = 1"));
    assert!(error.hints.iter().any(|h| h.contains("leave \"count\" as it was")), "{error:?}");
}
