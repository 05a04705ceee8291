//! What stands so often that only an apply can tell, and what needs it: put off, and done by the plans that follow.

use karmaform_engine::Options;
use karmaform_model::{Address, DeferredReason, Plan};

use crate::lab::{Lab, changes, show};
use crate::properties::{Dice, configuration};

/// What is put off, `[*]` for blocks, with what it waits for.
fn deferred(plan: &Plan) -> Vec<String> {
    let names = |all: &[Address]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let told = |d: &karmaform_model::Deferred| {
        let open = if d.reason == DeferredReason::InstanceCountUnknown { "[*]" } else { "" };
        format!("{}{open} <- {} ({})", d.address, names(&d.because), d.stored)
    };
    plan.deferred.iter().map(told).collect()
}

const CHAIN: &str = r#"
    resource "fake_local" "a" { name = "a" }
    resource "fake_local" "b" {
      count = length(fake_local.a.id)
      name  = "b${count.index}"
    }
    resource "fake_note" "c" { input = fake_local.b[*].id }
    resource "fake_note" "free" { input = "x" }
    output "b" { value = length(fake_local.b) }
    output "free" { value = fake_note.free.id }"#;

#[test]
fn what_is_open_waits_with_all_that_needs_it() {
    let mut lab = Lab::new();
    let planned = lab.plan(CHAIN);
    assert_eq!(deferred(&planned.plan), ["fake_local.b[*] <- fake_local.a (0)", "fake_note.c <- fake_local.b (0)"]);
    let found = changes(&planned.plan);
    assert!(!found.contains("fake_local.b") && !found.contains("fake_note.c") && !found.contains("output b"), "{found}");
    assert!(found.contains("fake_note.free") && found.contains("output free"), "{found}");
    assert!(lab.apply_plan(&planned).is_success());
    assert!(!lab.state().outputs.contains_key("b"));
    let planned = lab.plan(CHAIN);
    assert_eq!(deferred(&planned.plan), [""; 0]);
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.plan(CHAIN).plan.is_empty() && lab.state().outputs.contains_key("b"));
}

#[test]
fn what_there_is_of_it_stays_and_so_does_what_that_was_made_of() {
    let mut lab = Lab::new();
    let text = |size: u32, rest: &str| {
        format!(
            "resource \"fake_local\" \"a\" {{\n name = \"a\"\n size = \"{size}\"\n}}\n\
             resource \"fake_local\" \"b\" {{\n count = min(2, length(fake_local.a.id))\n name = \"b${{count.index}}\"\n {rest}"
        )
    };
    let needed = "needs = [fake_local.old.id]\n}\nresource \"fake_local\" \"old\" { name = \"old\" }\n";
    lab.converge(&text(1, needed));
    let before = lab.world.contents();
    // "old" is not configured any more, and what was made of it can't be planned yet.
    let second = text(2, "}\n");
    let planned = lab.plan(&second);
    assert_eq!(deferred(&planned.plan), ["fake_local.b[*] <- fake_local.a (2)", "fake_local.old <-  (1)"], "{}", show(&planned.plan));
    let warned: Vec<_> = planned.diagnostics.iter().filter(|d| d.summary == "Replaced before what depends on it").collect();
    assert!(matches!(warned[..], [one] if one.detail.contains("fake_local.b[0]")), "{:#?}", planned.diagnostics);
    assert!(lab.apply_plan(&planned).is_success());
    let after = lab.world.contents();
    assert!(["/b0", "/b1", "/old"].iter().all(|name| after.get(*name) == before.get(*name)), "{after:?}");
    lab.converge(&second);
    assert_eq!(lab.world.contents().into_keys().collect::<Vec<_>>(), ["/a", "/b0", "/b1"]);
}

#[test]
fn one_without_a_key_is_not_taken_for_one_that_is_not_wanted() {
    let mut lab = Lab::new();
    lab.converge("resource \"fake_local\" \"b\" { name = \"b\" }");
    let text = "resource \"fake_note\" \"a\" { input = 1 }\nresource \"fake_local\" \"b\" {\n count = length(fake_note.a.id) > 0 ? 1 : 0\n name = \"b\"\n}";
    let planned = lab.plan(text);
    assert_eq!(deferred(&planned.plan), ["fake_local.b[*] <- fake_note.a (1)"]);
    assert!(lab.apply_plan(&planned).is_success());
    let made = lab.world.lock().created;
    lab.converge(text);
    assert_eq!(lab.world.lock().created, made, "it is the same one by count");
}

#[test]
fn a_composite_waits_as_a_whole() {
    let text = |kind: &str| {
        format!(
            r#"
        resource "fake_note" "names" {{ input = {kind} }}
        data "fake_host" "h" {{
          for_each = toset(["a", substr("b${{fake_note.names.id}}", 0, 1)])
          address  = each.key
        }}
        resource "fake_cluster" "main" {{ hosts = data.fake_host.h }}
        resource "fake_note" "user" {{ input = fake_cluster.main.ids }}"#
        )
    };
    let mut lab = Lab::new();
    let first = text("1");
    let planned = lab.plan(&first);
    let expected = |n: usize| {
        [
            "data.fake_host.h[*] <- fake_note.names (0)".to_owned(),
            format!("fake_cluster.main <- data.fake_host.h ({n})"),
            format!("fake_note.user <- fake_cluster.main ({n})"),
        ]
    };
    let sorted = |plan: &Plan| {
        let mut all = deferred(plan);
        all.sort();
        all
    };
    assert_eq!(sorted(&planned.plan), expected(0));
    lab.converge(&first);
    let before = lab.world.contents();
    let options = Options { replace: vec!["fake_note.names".parse().unwrap()], ..Options::default() };
    let planned = lab.plan_with(&first, &options);
    assert_eq!(sorted(&planned.plan), expected(1), "{}", show(&planned.plan));
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.world.contents().keys().filter(|k| k.contains("main")).count(), before.keys().filter(|k| k.contains("main")).count());
    lab.converge(&first);
}

/// The same with counts that hang on something made earlier, where there is such a thing.
fn opened(text: &str, dice: &mut Dice) -> String {
    let mut earlier: Vec<&str> = Vec::new();
    let mut out = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("resource \"fake_local\" \"l").and_then(|rest| rest.split('"').next()) {
            earlier.push(name);
        }
        match (line.trim().strip_prefix("count = "), earlier.is_empty()) {
            (Some(count), false) => {
                let name = earlier[dice.roll(earlier.len() as u64) as usize];
                out.push_str(&format!(" count = length(fake_local.l{name}.id) > 0 ? {count} : 0\n"));
            }
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

#[test]
fn all_plans_together_come_to_what_one_would() {
    let (mut tried, mut rounds) = (0, 0);
    for seed in 0..300 {
        let mut dice = Dice::new(seed * 7919 + 1);
        let (first, second) = (configuration(&mut dice), configuration(&mut dice));
        let (open_first, open_second) = (opened(&first, &mut dice), opened(&second, &mut dice));
        if open_first == first && open_second == second {
            continue;
        }
        let mut plain = Lab::new();
        plain.converge(&first);
        let before: Vec<String> = plain.world.contents().into_keys().collect();
        plain.converge(&second);
        let mut lab = Lab::new();
        lab.converge(&open_first);
        let logged = lab.world.lock().log.len();
        let mut is_warned = false;
        for round in 0.. {
            assert!(round < 10, "seed {seed}: no end\n{open_second}");
            let planned = lab.plan(&open_second);
            let waits = !planned.plan.deferred.is_empty();
            for deferred in &planned.plan.deferred {
                let is_touched = |a: &Address| a.is_within(&deferred.address);
                assert!(planned.plan.resources.iter().all(|r| !is_touched(&r.address)), "seed {seed}: {}", show(&planned.plan));
            }
            // Here what is used can't be removed, so such a plan may fail; that is what it warns of.
            is_warned |= planned.diagnostics.iter().any(|d| d.summary == "Replaced before what depends on it");
            if is_warned {
                break;
            }
            let outcome = lab.apply_plan(&planned);
            assert!(outcome.is_success(), "seed {seed}: {:#?}\n{}\n{open_first}\n{open_second}", outcome.diagnostics, show(&planned.plan));
            if !waits {
                break;
            }
            assert!(!planned.plan.is_empty(), "seed {seed}: nothing comes of it\n{open_second}");
            rounds += 1;
        }
        if is_warned {
            continue;
        }
        tried += 1;
        assert!(lab.plan(&open_second).plan.is_empty(), "seed {seed}");
        assert_eq!(lab.world.contents(), plain.world.contents(), "seed {seed}\n{open_first}\n{open_second}");
        // What both configurations want, and one plan leaves where it is, no plan of several takes away.
        let removed = |lab: &Lab, from: usize| -> Vec<String> {
            lab.world.lock().log[from..].iter().filter_map(|l| Some(l.strip_prefix("Delete ")?.to_owned())).collect()
        };
        let of_plain = removed(&plain, 0);
        for gone in removed(&lab, logged) {
            assert!(!before.contains(&gone) || of_plain.contains(&gone), "seed {seed}: {gone} is gone\n{open_first}\n{open_second}");
        }
    }
    assert!(tried > 60 && rounds > 40, "{tried} configurations, {rounds} rounds");
}

#[test]
fn a_composite_that_is_needed_stays_with_its_parts() {
    let text = |cluster: &str, note: &str| {
        format!(
            r#"
        resource "fake_local" "a" {{
          name = "a"
          size = "{cluster}"
        }}
        resource "fake_local" "b" {{
          count   = min(2, length(fake_local.a.id))
          name    = "b${{count.index}}"
          content = {note}
        }}"#
        )
    };
    let cluster = r#"
        data "fake_host" "h" {
          for_each = toset(["a", "b"])
          address  = each.key
        }
        resource "fake_cluster" "main" { hosts = data.fake_host.h }"#;
    let mut lab = Lab::new();
    lab.converge(&(text("1", "fake_cluster.main.ids[\"a\"]") + cluster));
    let parts = |lab: &Lab| lab.world.contents().keys().filter(|k| !k.starts_with('/')).count();
    let before = parts(&lab);
    assert!(before > 2);
    // Neither of them is configured any more, and what was made of them can't be planned yet.
    let second = text("2", "\"x\"");
    let planned = lab.plan(&second);
    assert!(!changes(&planned.plan).contains("fake_cluster"), "{}", show(&planned.plan));
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(parts(&lab), before);
    let left = Options { excludes: vec!["fake_local.b".parse().unwrap()], ..Options::default() };
    assert!(!changes(&lab.plan_with(&second, &left).plan).contains("fake_cluster"));
    lab.converge(&second);
    assert_eq!(parts(&lab), 0);
}

#[test]
fn n_that_wait_for_n_others_are_told_in_n_words() {
    let text = r#"
        resource "fake_local" "a" { name = "a" }
        resource "fake_local" "o" {
          count = length(fake_local.a.id)
          name  = "o${count.index}"
        }
        resource "fake_note" "b" {
          count = 50
          input = length(fake_local.o)
        }
        resource "fake_note" "c" {
          count = 50
          input = fake_note.b[*].id
        }"#;
    let plan = Lab::new().plan(text).plan;
    assert_eq!(plan.deferred.len(), 101);
    assert!(plan.deferred.iter().all(|d| d.because.len() == 1), "{:?}", deferred(&plan));
}
