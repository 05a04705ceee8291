//! What tfcmt and Atlantis look for in the lines of `plan` and `apply`.
//!
//! - tfcmt: `pkg/terraform/parser.go`. The verdict is the first line that begins with an error's word, with `Plan: ` and a digit, with `No changes.`, or
//!   with `Changes to Outputs:`; a plan without any is one that it can't read. Headings of resources are whole lines. After `apply` it waits for `Apply complete!`.
//! - Atlantis: `server/events/models/models.go` (the summary, and what is no change), `server/core/runtime/plan_step_runner.go` (marks of a difference
//!   stand behind two blanks).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::life::{STEPS, Step, step};

/// Of a line that says `Plan: ...`: to import, to add, to change, to destroy, to forget. The two at the ends need not be there.
fn counts(line: &str) -> Option<[u64; 5]> {
    let text = line.strip_prefix("Plan: ")?.strip_suffix('.')?;
    let mut found = [0; 5];
    let words = ["import", "add", "change", "destroy", "forget"];
    let mut at = 0;
    for part in text.split(", ") {
        let (number, word) = part.split_once(" to ")?;
        at += words[at..].iter().position(|w| *w == word)?;
        found[at] = number.parse().ok()?;
        at += 1;
    }
    // Those in the middle are always told.
    (text.contains(" to add, ") && text.contains(" to change, ") && text.contains(" to destroy")).then_some(found)
}

fn is_error(line: &str) -> bool {
    ["", "\u{2502} ", "| "].iter().any(|bar| line.strip_prefix(bar).is_some_and(|l| l.starts_with("Error: ")))
}

/// The line that says how a plan ended.
fn verdict(text: &str) -> Option<&str> {
    let is_plan = |l: &str| l.strip_prefix("Plan: ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_other = |l: &str| l.starts_with("No changes.") || l.starts_with("Changes to Outputs:");
    text.lines().find(|l| is_error(l)).or_else(|| text.lines().find(|l| is_plan(l) || is_other(l)))
}

/// What the headings say, by resource: the word that stands for what becomes of it.
fn headings(text: &str) -> BTreeMap<String, &'static str> {
    let endings = [
        (" will be created", "create"),
        (" will be updated in-place", "update"),
        (" will be destroyed", "delete"),
        (" is tainted, so must be replaced", "replace"),
        (" must be replaced", "replace"),
        (" will be replaced, as requested", "replace"),
        (" will be replaced due to changes in replace_triggered_by", "replace"),
    ];
    let read = |line: &str| {
        let line = line.trim_start_matches(' ').strip_prefix("# ")?;
        endings.iter().find_map(|(ending, word)| Some((line.strip_suffix(ending)?.to_owned(), *word)))
    };
    text.lines().filter_map(read).collect()
}

fn moves(text: &str) -> BTreeSet<(String, String)> {
    let read = |line: &str| {
        let (from, to) = line.trim_start_matches(' ').strip_prefix("# ")?.split_once(" has moved to ")?;
        Some((from.to_owned(), to.to_owned()))
    };
    text.lines().filter_map(read).collect()
}

/// The word for what becomes of a resource in a plan as JSON.
fn word(actions: &Value) -> Option<&'static str> {
    let actions: Vec<&str> = actions.as_array()?.iter().filter_map(Value::as_str).collect();
    match actions[..] {
        ["create"] => Some("create"),
        ["update"] => Some("update"),
        ["delete"] => Some("delete"),
        ["delete", "create"] | ["create", "delete"] => Some("replace"),
        _ => None,
    }
}

fn changes(step: &Step) -> &[Value] {
    step.plan.as_ref().and_then(|p| p["resource_changes"].as_array()).map(Vec::as_slice).unwrap_or_default()
}

/// What a plan's JSON comes to, as the summary counts it.
fn counted(step: &Step) -> [u64; 5] {
    let mut all = [0; 5];
    for change in changes(step) {
        let actions = change["change"]["actions"].as_array().expect("actions");
        let has = |action: &str| u64::from(actions.iter().any(|a| a == action));
        all[0] += u64::from(change["change"]["importing"].is_object());
        all[1] += has("create");
        all[2] += has("update");
        all[3] += has("delete");
        all[4] += has("forget");
    }
    all
}

#[test]
fn every_plan_says_in_one_line_how_it_ended() {
    for step in STEPS.iter() {
        let line = verdict(&step.text).unwrap_or_else(|| panic!("{}: nothing says how it ended:\n{}", step.name, step.text));
        match step.code {
            0 => {
                assert!(line.starts_with("No changes. Your infrastructure matches the configuration."), "{}: {line}", step.name);
                // Who counts finds nothing to count.
                assert!(!step.text.contains("Plan: "), "{}: {}", step.name, step.text);
            }
            1 => assert!(is_error(line), "{}: {line}", step.name),
            2 if step.name == "outputs alone" => assert_eq!(line, "Changes to Outputs:"),
            2 => assert_eq!(counts(line), Some(counted(step)), "{}: {line}", step.name),
            other => panic!("{}: exit code {other}", step.name),
        }
        // Nothing else may look like one: Atlantis adds up all that it finds.
        assert!(step.text.lines().filter(|l| l.contains("Plan: ")).count() <= 1, "{}: {}", step.name, step.text);
    }
    let ends: Vec<_> = ["nothing", "wrong", "replaced", "forgotten"].map(|name| verdict(&step(name).text).expect("a verdict")).into();
    assert_eq!(ends[2], "Plan: 2 to add, 3 to change, 2 to destroy.", "{ends:?}");
    assert_eq!(ends[3], "Plan: 0 to add, 0 to change, 0 to destroy, 1 to forget.");
}

#[test]
fn headings_say_what_becomes_of_each_resource() {
    for step in STEPS.iter().filter(|s| s.plan.is_some()) {
        let told: BTreeMap<String, &str> =
            changes(step).iter().filter_map(|c| Some((c["address"].as_str()?.to_owned(), word(&c["change"]["actions"])?))).collect();
        assert_eq!(headings(&step.text), told, "{}: {}", step.name, step.text);
        let moved: BTreeSet<(String, String)> = changes(step)
            .iter()
            .filter_map(|c| Some((c["previous_address"].as_str()?.to_owned(), c["address"].as_str()?.to_owned())))
            .collect();
        assert_eq!(moves(&step.text), moved, "{}: {}", step.name, step.text);
        let acts = step.text.lines().filter(|l| *l == "Terraform will perform the following actions:").count();
        assert_eq!(acts, usize::from(!told.is_empty() || !moved.is_empty() || counted(step)[4] > 0), "{}: {}", step.name, step.text);
    }
    assert_eq!(moves(&step("moved").text).len(), 1);
    let words: BTreeSet<&str> = STEPS.iter().flat_map(|s| headings(&s.text).into_values()).collect();
    assert_eq!(words, ["create", "delete", "replace", "update"].into());
    let requested = "  # terraform_data.each[\"a\"] will be replaced, as requested";
    assert!(step("replaced on request").text.lines().any(|l| l == requested));
}

#[test]
fn marks_stand_where_they_are_looked_for() {
    for step in STEPS.iter().filter(|s| s.plan.is_some()) {
        for change in changes(step) {
            let Some(mark) = word(&change["change"]["actions"]).map(|w| match w {
                "create" => "  + ",
                "update" => "  ~ ",
                "delete" => "  - ",
                _ if change["change"]["actions"][0] == "delete" => "-/+ ",
                _ => "+/- ",
            }) else {
                continue;
            };
            let line = format!("{mark}resource {} {} {{", change["type"], change["name"]);
            assert!(step.text.lines().any(|l| l == line), "{}: no {line:?} in\n{}", step.name, step.text);
        }
    }
}

#[test]
fn drift_is_told_between_the_lines_that_are_looked_for() {
    for step in STEPS.iter().filter(|s| s.plan.is_some()) {
        let at = |is: &dyn Fn(&str) -> bool| step.text.lines().position(is);
        let begins = at(&|l| l == "Note: Objects have changed outside of Terraform");
        let ends = at(&|l| l.starts_with("Unless you have made equivalent changes to your configuration"));
        let is_drifted = step.name == "gone" || step.name == "drifted";
        // Without the end tfcmt falls over.
        assert_eq!((begins.is_some(), ends.is_some()), (is_drifted, is_drifted), "{}: {}", step.name, step.text);
        assert!(begins <= ends);
        if let Some(ends) = ends {
            let rule = step.text.lines().skip(ends).position(|l| l.starts_with("\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}"));
            // The sentence is three lines, as it is in Terraform, and an empty one follows.
            assert_eq!(rule, Some(4), "{}", step.text);
        }
    }
}

#[test]
fn warnings_begin_their_lines() {
    let text = &step("changed").text;
    assert!(text.lines().any(|l| l == "Warning: Check failed"), "{text}");
    assert!(!step("made").text.contains("Warning: "));
}

#[test]
fn every_apply_says_how_it_ended() {
    for step in STEPS.iter() {
        let Some((code, text)) = &step.apply else { continue };
        let done = text.lines().filter(|l| l.starts_with("Apply complete! Resources: ")).count();
        let failed = text.lines().any(is_error);
        assert_eq!((*code, done, failed), if step.name == "failed" { (1, 0, true) } else { (0, 1, false) }, "{}: {text}", step.name);
    }
    let (_, text) = step("destroyed").apply.as_ref().expect("an apply");
    assert!(text.contains("\nApply complete! Resources: 0 added, 0 changed, "), "{text}");
}

#[test]
fn a_summary_is_read_as_it_is_meant() {
    assert_eq!(counts("Plan: 1 to import, 2 to add, 3 to change, 4 to destroy, 5 to forget."), Some([1, 2, 3, 4, 5]));
    assert_eq!(counts("Plan: 2 to add, 3 to change, 4 to destroy."), Some([0, 2, 3, 4, 0]));
    for wrong in
        ["Plan: 2 to add, 3 to change, 4 to destroy", "Plan: 2 to add.", "Plan: 2 to change, 3 to add, 4 to destroy.", "Plan: x to add."]
    {
        assert_eq!(counts(wrong), None, "{wrong}");
    }
}
