//! Composites: children, their order, gates between them, and the record at the end.

use std::sync::atomic::Ordering;

use karmaform_engine::Options;
use karmaform_model::{EventKind, ModeOfPlan};

use crate::fake::Fault;
use crate::fake_cluster::Style;
use crate::lab::{Lab, changes, show, steps};

fn text(hosts: &[&str], version: &str) -> String {
    let keys = hosts.iter().map(|h| format!("\"{h}\"")).collect::<Vec<_>>().join(", ");
    format!(
        r#"
        data "fake_host" "h" {{
          for_each = toset([{keys}])
          address  = each.key
        }}
        resource "fake_cluster" "main" {{
          hosts   = data.fake_host.h
          version = "{version}"
        }}
        resource "fake_note" "user" {{ input = fake_cluster.main.ids }}
        output "token" {{
          value     = fake_cluster.main.token
          sensitive = true
        }}"#
    )
}

fn order(lab: &Lab, first: &str, second: &str) {
    let log = lab.world.lock().log.clone();
    let place = |what: &str| log.iter().position(|l| l == what).unwrap_or_else(|| panic!("no {what} in {log:?}"));
    assert!(place(first) < place(second), "{first} before {second}: {log:?}");
}

#[test]
fn a_composite_is_made_from_its_children() {
    let mut lab = Lab::new();
    let planned = lab.plan(&text(&["a", "b"], "1"));
    let expected = r#"+ fake_cluster.main
+ fake_cluster.main/ca
+ fake_cluster.main/member["a"]/file
+ fake_cluster.main/member["a"]/unit
+ fake_cluster.main/member["b"]/file
+ fake_cluster.main/member["b"]/unit
+ fake_note.user
output token: None -> Some((secret))"#;
    assert_eq!(changes(&planned.plan), expected);
    assert_eq!(planned.plan.counts(), (6, 0, 0), "the record does not count");
    assert_eq!(planned.plan.impact.values().next().unwrap()[..], ["one member at a time"]);
    lab.converge(&text(&["a", "b"], "1"));
    let record = &lab.state().resources[&"fake_cluster.main".parse().unwrap()];
    assert_eq!((record.provider.as_str(), record.resource_type.as_str()), ("karmaform", "fake_cluster"));
    assert!(record.attributes["ids"]["a"].as_str().unwrap().starts_with("unit#"));
    order(&lab, "Create a/file", "Create a/unit");
    order(&lab, "Create a/unit", "Gate a");
    order(&lab, "Gate a", "Create b/file");
    order(&lab, "Create b/unit", "Gate b");
}

/// A child that comes to be another one is changed though nothing is wanted of it, and so is what needs it.
#[test]
fn a_child_that_comes_to_be_another_one_is_read_again() {
    let mut lab = Lab::new();
    let text = text(&["a", "b"], "1");
    lab.converge(&text);
    *lab.cluster.style.lock().unwrap() = Style::Renewing;
    lab.world.lock().things.remove("a/file").expect("a file");
    let planned = lab.plan(&text);
    let expected = r#"~ fake_cluster.main
+ fake_cluster.main/member["a"]/file CreateBecauseMissing
~ fake_cluster.main/member["a"]/unit
~ fake_note.user"#;
    assert_eq!(changes(&planned.plan), expected);
    let unit = planned.plan.resources.iter().find(|r| r.address.to_string().ends_with("member[\"a\"]/unit")).unwrap();
    assert!(unit.change.after().unwrap()["id"].is_unknown());
    assert!(lab.cluster.scene.lock().unwrap().iter().any(|seen| seen.contains("member[\"a\"]/unit Update")));
    lab.converge(&text);
    assert_eq!(changes(&lab.plan(&text).plan), "");
}

/// What only children together show, which is said where the plan does nothing about it.
#[test]
fn a_composite_of_which_nothing_changes_says_what_it_is_in_need_of() {
    let mut lab = Lab::new();
    let hosts = ["a", "b"];
    lab.converge(&text(&hosts, "1"));
    *lab.cluster.style.lock().unwrap() = Style::Caring;
    let said = |lab: &Lab, version: &str, options: &Options| {
        let planned = lab.plan_with(&text(&hosts, version), options);
        planned.diagnostics.iter().map(|d| format!("{} {}", d.address.as_ref().unwrap(), d.summary)).collect::<Vec<_>>()
    };
    let of = |key: &str| format!(r#"fake_cluster.main/member["{key}"]/unit A unit is in need of care"#);
    assert_eq!(said(&lab, "1", &Options::default()), [of("a"), of("b")]);
    // What changes is judged as it changes, what goes need not be well, and of what nobody looked at nobody knows.
    assert!(said(&lab, "2", &Options::default()).is_empty());
    assert!(said(&lab, "1", &Options { mode: ModeOfPlan::Destroy, ..Options::default() }).is_empty());
    assert!(said(&lab, "1", &Options { refresh: false, ..Options::default() }).is_empty());
}

#[test]
fn changes_go_one_at_a_time_behind_gates() {
    let mut lab = Lab::new();
    let hosts = ["a", "b", "c"];
    lab.converge(&text(&hosts, "1"));
    let planned = lab.plan(&text(&hosts, "2"));
    let expected = [
        r#"0: Update fake_cluster.main/member["a"]/unit after []"#,
        "1: Gate ready after a fake_cluster.main after [0]",
        r#"2: Update fake_cluster.main/member["b"]/unit after [1]"#,
        "3: Gate ready after b fake_cluster.main after [1, 2]",
        r#"4: Update fake_cluster.main/member["c"]/unit after [3]"#,
        "5: Gate ready after c fake_cluster.main after [3, 4]",
        "6: Finish fake_cluster.main after [0, 1, 2, 3, 4, 5]",
    ];
    assert_eq!(steps(&planned.plan), expected);
    let scene = lab.cluster.scene.lock().unwrap().clone();
    assert!(scene.contains(&r#"member["a"]/unit Update age 7 true"#.to_owned()), "{scene:?}");
    assert_eq!(lab.cluster.ages.lock().unwrap().as_slice(), [7, 7, 7], "who orders steps knows what whoever does them will know");
    lab.world.lock().gate_looks.insert("b".into(), 3);
    lab.converge(&text(&hosts, "2"));
    let waits: Vec<_> = lab.events.iter().filter(|e| matches!(&e.kind, EventKind::Waiting(Some(t)) if t.starts_with("b needs"))).collect();
    assert_eq!(waits.len(), 3);
}

#[test]
fn who_needs_a_composite_that_changes_is_waited_for() {
    let mut lab = Lab::new();
    let both = |version: &str, label: &str, own: &str| {
        let user = format!("hosts = data.fake_host.other\n label = {label}\n version = \"{own}\"");
        format!(
            "{}\nlocals {{ way = fake_cluster.main.ids[\"a\"] }}\ndata \"fake_host\" \"other\" {{\n for_each = toset([\"z\"])\n address = each.key\n}}\nresource \"fake_cluster\" \"user\" {{\n {user}\n}}",
            text(&["a"], version)
        )
    };
    let gates = |planned: &crate::lab::Planned| steps(&planned.plan).into_iter().filter(|s| s.contains("Gate")).collect::<Vec<_>>();
    // From nothing there is nothing to recover.
    let planned = lab.plan(&both("1", "local.way", "1"));
    assert!(!gates(&planned).iter().any(|g| g.contains("recovered")), "{:?}", gates(&planned));
    lab.converge(&both("1", "local.way", "1"));
    let planned = lab.plan(&both("2", "local.way", "1"));
    let expected = [
        r#"0: Update fake_cluster.main/member["a"]/unit after []"#,
        "1: Gate ready after a fake_cluster.main after [0]",
        "2: Finish fake_cluster.main after [0, 1]",
        "3: Gate recovered fake_cluster.user after [2]",
    ];
    assert_eq!(steps(&planned.plan), expected);
    lab.converge(&both("2", "local.way", "1"));
    assert!(lab.world.lock().log.contains(&"Gate recovered".to_owned()));
    // With a change of its own; and without one of what it needs.
    let planned = lab.plan(&both("3", "local.way", "2"));
    assert_eq!(gates(&planned).len(), 3, "{:?}", gates(&planned));
    assert_eq!(gates(&lab.plan(&both("2", "local.way", "2"))), ["1: Gate ready after z fake_cluster.user after [0]"]);
    // Who does not need it is left alone.
    lab.converge(&both("3", "null", "2"));
    assert!(!gates(&lab.plan(&both("4", "null", "2"))).iter().any(|g| g.contains("recovered")));
}

#[test]
fn what_has_nothing_to_do_with_an_argument_is_made_before_it() {
    let mut lab = Lab::new();
    let both = |version: &str, more: &str| {
        let user = format!("hosts = data.fake_host.other\n label = local.way\n {more}");
        format!(
            "{}\nlocals {{ way = fake_cluster.main.ids[\"a\"] }}\ndata \"fake_host\" \"other\" {{\n for_each = toset([\"z\"])\n address = each.key\n}}\nresource \"fake_cluster\" \"user\" {{\n {user}\n}}",
            text(&["a"], version)
        )
    };
    let after = |planned: &crate::lab::Planned, what: &str| {
        let all = steps(&planned.plan);
        let at =
            all.iter().find(|s| s.contains(&format!("fake_cluster.user/{what} after"))).unwrap_or_else(|| panic!("no {what} in {all:?}"));
        let needs: Vec<usize> = at.rsplit_once('[').unwrap().1.trim_end_matches(']').split(", ").filter_map(|n| n.parse().ok()).collect();
        needs.iter().map(|n| all[*n].split_once(' ').unwrap().1.split(" after").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // What is new: only what its argument says waits.
    let planned = lab.plan(&both("1", ""));
    assert!(after(&planned, "ca").is_empty(), "{:?}", steps(&planned.plan));
    assert_eq!(after(&planned, "member[\"z\"]/file"), ["Create fake_cluster.user/ca"]);
    assert!(after(&planned, "member[\"z\"]/unit").contains(&"Finish fake_cluster.main".to_owned()), "{:?}", steps(&planned.plan));
    // Also what is written beside the arguments counts.
    let planned = lab.plan(&both("1", "depends_on = [fake_note.user]"));
    assert_eq!(after(&planned, "ca"), ["Create fake_note.user"]);
    let planned = lab.plan(&both("1", "version = fake_cluster.main.ids[\"a\"]"));
    assert_eq!(after(&planned, "ca"), ["Finish fake_cluster.main"]);
    lab.converge(&both("1", ""));
    let needed = |child: &str| lab.state().resources[&format!("fake_cluster.user/{child}").parse().unwrap()].dependencies.clone();
    let is_main = |a: &karmaform_model::Address| a.to_string() == "fake_cluster.main";
    assert!(!needed("member[\"z\"]/file").iter().any(is_main) && needed("member[\"z\"]/unit").iter().any(is_main));
    // What is there already changes after all that its composite refers to.
    lab.world.lock().things.get_mut("z/file").unwrap().insert("content".into(), "drifted".into());
    let planned = lab.plan(&both("2", ""));
    assert_eq!(after(&planned, "member[\"z\"]/file"), ["Finish fake_cluster.main"]);
    lab.converge(&both("2", ""));
    lab.converge(&text(&["a"], "2"));
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["a/file", "a/unit"]);
}

#[test]
fn a_gate_says_what_it_waits_for_and_gives_up_in_the_end() {
    let mut lab = Lab::new();
    *lab.cluster.limit.lock().unwrap() = 5;
    lab.world.lock().gate_looks.insert("a".into(), 3);
    let outcome = lab.run(&text(&["a"], "1"));
    assert!(outcome.is_success(), "{:?}", outcome.diagnostics);
    let said: Vec<_> = lab.events.iter().filter(|e| e.gate.is_some()).map(|e| format!("{:?}", e.kind)).collect();
    assert_eq!(
        said,
        [
            "Started",
            "Waiting(Some(\"a needs 3 more\"))",
            "Waiting(Some(\"a needs 2 more\"))",
            "Waiting(Some(\"a needs 1 more\"))",
            "Succeeded(Some(\"a is ready\"))"
        ]
    );
    lab.world.lock().gate_looks.insert("a".into(), 1000);
    let outcome = lab.run(&text(&["a"], "2"));
    let error = outcome.diagnostics.iter().next().unwrap();
    assert_eq!(error.summary, "Waited too long");
    assert!(error.detail.contains("during 5 s") && error.detail.contains("a needs"), "{}", error.detail);
    assert_eq!(error.address.as_ref().unwrap().to_string(), "fake_cluster.main");
    lab.world.lock().gate_looks.clear();
    lab.converge(&text(&["a"], "2"));
}

/// Somebody sets the machine's clock while a gate waits, by an hour each time.
#[test]
fn how_long_a_gate_waits_is_told_by_no_clock_that_is_set() {
    let mut lab = Lab::new();
    *lab.cluster.limit.lock().unwrap() = 5;
    lab.clock.jumps.store(3_600_000, Ordering::Relaxed);
    lab.world.lock().gate_looks.insert("a".into(), 3);
    let outcome = lab.run(&text(&["a"], "1"));
    assert!(outcome.is_success(), "{:?}", outcome.diagnostics);
    assert!(lab.events.iter().all(|event| event.elapsed < 3_600_000), "{:?}", lab.events);
}

#[test]
fn members_come_and_go() {
    let mut lab = Lab::new();
    lab.converge(&text(&["a", "b"], "1"));
    let planned = lab.plan(&text(&["b", "c"], "1"));
    let expected = r#"~ fake_cluster.main
- fake_cluster.main/member["a"]/file DeleteBecauseNotInComposite
- fake_cluster.main/member["a"]/unit DeleteBecauseNotInComposite
+ fake_cluster.main/member["c"]/file
+ fake_cluster.main/member["c"]/unit
~ fake_note.user"#;
    assert_eq!(changes(&planned.plan), expected);
    lab.converge(&text(&["b", "c"], "1"));
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["b/file", "b/unit", "c/file", "c/unit"]);
    order(&lab, "Delete a/unit", "Delete a/file");
    lab.converge(&text(&[], "1"));
    assert!(lab.world.contents().is_empty());
}

#[test]
fn a_composite_goes_with_all_it_has() {
    for gone in ["destroyed", "removed"] {
        let mut lab = Lab::new();
        let full = text(&["a", "b"], "1");
        lab.converge(&full);
        let destroy = Options { mode: ModeOfPlan::Destroy, ..Options::default() };
        let planned = if gone == "destroyed" { lab.plan_with(&full, &destroy) } else { lab.plan("") };
        let lines = steps(&planned.plan);
        let at = |what: &str| lines.iter().position(|l| l.contains(what)).unwrap();
        assert!(at("Delete fake_note.user") < at("/unit"), "{}", show(&planned.plan));
        assert!(at("Delete fake_cluster.main after") > at("Delete fake_cluster.main/ca"), "{}", show(&planned.plan));
        assert!(lab.apply_plan(&planned).is_success());
        assert!(lab.world.contents().is_empty() && lab.state().resources.is_empty());
    }
}

#[test]
fn an_order_goes_through_children_that_do_not_change() {
    let mut lab = Lab::new();
    let hosts = ["a", "b", "c"];
    lab.converge(&text(&hosts, "1"));
    for host in ["a", "c"] {
        lab.world.lock().things.get_mut(&format!("{host}/unit")).unwrap().insert("content".into(), "drifted".into());
    }
    *lab.cluster.style.lock().unwrap() = Style::Through;
    let planned = lab.plan(&text(&hosts, "1"));
    let expected =
        [r#"0: Update fake_cluster.main/member["a"]/unit after []"#, r#"1: Update fake_cluster.main/member["c"]/unit after [0]"#];
    assert_eq!(steps(&planned.plan), expected);
    lab.converge(&text(&hosts, "1"));
}

#[test]
fn contradictions_and_refusals_are_errors() {
    let mut lab = Lab::new();
    lab.converge(&text(&["a", "b"], "1"));
    for (style, summary) in [(Style::Contradicting, "Steps contradict each other"), (Style::Refusing, "Not safe")] {
        *lab.cluster.style.lock().unwrap() = style;
        let planned = lab.try_plan(&text(&["a", "b"], "2"), &Options::default());
        let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap();
        assert_eq!(error.summary, summary);
        assert!(!lab.try_plan(&text(&["a", "b"], "1"), &Options::default()).diagnostics.has_errors(), "nothing changes, nobody is asked");
    }
}

#[test]
fn targets_and_replacements_reach_into_composites() {
    let mut lab = Lab::new();
    let full = text(&["a", "b"], "1");
    let child: karmaform_model::Address = "fake_cluster.main/member[\"a\"]".parse().unwrap();
    let options = Options { targets: vec![child.clone()], ..Options::default() };
    let planned = lab.plan_with(&full, &options);
    assert_eq!(
        changes(&planned.plan),
        "+ fake_cluster.main/ca\n+ fake_cluster.main/member[\"a\"]/file\n+ fake_cluster.main/member[\"a\"]/unit"
    );
    assert!(lab.apply_plan(&planned).is_success());
    lab.converge(&full);
    let options = Options { replace: vec![child], ..Options::default() };
    let planned = lab.plan_with(&full, &options);
    assert!(changes(&planned.plan).contains(r#"-/+ fake_cluster.main/member["a"]/unit ReplaceByRequest"#), "{}", changes(&planned.plan));
    assert!(lab.apply_plan(&planned).is_success());
    lab.converge(&full);
}

#[test]
fn any_failure_in_a_composite_is_repaired_by_the_next_run() {
    let hosts = ["a", "b", "c"];
    let whole = |first: &str, second: &str, at: Option<(usize, Fault)>| {
        let mut lab = Lab::new();
        lab.converge(first);
        let before = lab.world.lock().operations;
        lab.world.lock().fault = at.map(|(n, fault)| (before + n, fault));
        let outcome = lab.run(second);
        let done = lab.world.lock().operations - before;
        assert_eq!(outcome.is_success(), at.is_none(), "{:?}", outcome.diagnostics);
        lab.converge(second);
        (lab.world.contents(), done)
    };
    let (first, second) = (text(&hosts, "1"), text(&["b", "c", "d"], "2"));
    let (expected, operations) = whole(&first, &second, None);
    assert!(operations >= 6);
    for n in 0..operations {
        for fault in [Fault::Refused, Fault::Lost] {
            assert_eq!(whole(&first, &second, Some((n, fault))).0, expected, "failed at {n}, {fault:?}");
        }
    }
}

#[test]
fn the_whole_of_a_composite_may_wait_for_data() {
    // The hosts are read during apply, so even connections of children are not known when planning.
    let text = r#"
        resource "fake_note" "first" { input = "x" }
        data "fake_host" "h" {
          for_each   = toset(["a", "b"])
          address    = each.key
          depends_on = [fake_note.first]
        }
        resource "fake_cluster" "main" { hosts = data.fake_host.h }
        output "ids" { value = fake_cluster.main.ids }"#;
    let mut lab = Lab::new();
    lab.converge(text);
    assert_eq!(lab.world.contents().len(), 4);
}

#[test]
fn what_goes_with_something_else_is_only_forgotten() {
    let text = text(&["a", "b"], "1");
    let mut lab = Lab::new();
    lab.converge(&text);
    *lab.cluster.style.lock().unwrap() = Style::Forgetting;
    let planned = lab.plan_with(&text, &Options { mode: ModeOfPlan::Destroy, ..Options::default() });
    let shown = changes(&planned.plan);
    assert!(
        shown.contains(r#". fake_cluster.main/member["a"]/file"#) && shown.contains(r#"- fake_cluster.main/member["a"]/unit"#),
        "{shown}"
    );
    assert!(lab.apply_plan(&planned).is_success());
    let left = lab.world.contents();
    assert!(lab.state().resources.is_empty() && left.len() == 2, "{left:?}");
}

#[test]
fn nobody_waits_for_what_is_away() {
    let with = |version: &str| {
        let keys = "[\"a\", \"b\", \"c\"]";
        format!(
            r#"
            resource "fake_note" "base" {{ input = "base" }}
            resource "fake_cluster" "main" {{
              hosts      = {{ for k in {keys} : k => {{ connection = {{ provider = "fake", id = k, required = false }} }} }}
              version    = "{version}"
              depends_on = [fake_note.base]
            }}
            resource "fake_cluster" "top" {{
              hosts = {{ for k in ["x", "z"] : k => {{ connection = {{ provider = "fake", id = k, required = false }} }} }}
              label = fake_cluster.main.token
            }}"#
        )
    };
    let mut lab = Lab::new();
    *lab.cluster.style.lock().unwrap() = Style::Apart;
    lab.converge(&with("1"));
    // The first of all by the order of every plan.
    lab.world.lock().unreachable.insert("a".into());
    let outcome = lab.run(&with("2"));
    assert!(!outcome.is_success());
    let content = |lab: &Lab, what: &str| lab.world.contents().get(what).cloned();
    for (member, version) in [("a", "1"), ("b", "2"), ("c", "2")] {
        assert_eq!(content(&lab, &format!("{member}/unit")), Some(format!("version {version} -")), "{member}");
    }
    order(&lab, "Update b/unit", "Update c/unit");
    lab.world.lock().unreachable.clear();
    lab.converge(&with("2"));
    // It goes with all that it has where it can, and so does what it needs; the rest goes later.
    lab.world.lock().unreachable.extend(["c".into(), "z".into()]);
    let destroy = Options { mode: ModeOfPlan::Destroy, ..Options::default() };
    assert!(!lab.run_with(&with("2"), &destroy).is_success());
    let left = |lab: &Lab| lab.state().resources.keys().map(ToString::to_string).collect::<Vec<_>>();
    let expected = [("main", "c"), ("top", "z")].map(|(cluster, host)| {
        let part = |name: &str| format!("fake_cluster.{cluster}/member[\"{host}\"]/{name}");
        [format!("fake_cluster.{cluster}"), part("file"), part("unit")]
    });
    assert_eq!(left(&lab), expected.concat());
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["c/file", "c/unit", "z/file", "z/unit"]);
    lab.world.lock().unreachable.clear();
    assert!(lab.run_with(&with("2"), &destroy).is_success());
    assert!(lab.world.contents().is_empty() && lab.state().resources.is_empty());
}
