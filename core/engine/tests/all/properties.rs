//! What must be true of every graph: tried on many small ones, made from a seed.

use std::collections::BTreeMap;

use karmaform_engine::{Options, recover};
use karmaform_model::ModeOfPlan;

use crate::fake::Fault;
use crate::lab::{Lab, show};

/// A small generator of numbers; the same seed gives the same graph everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A configuration of a few resources, each needing some of the earlier ones.
pub fn configuration(dice: &mut Dice) -> String {
    let count = 2 + dice.roll(6);
    let mut text = String::new();
    let mut ids: Vec<String> = Vec::new();
    for n in 0..8 {
        if n >= count || dice.roll(5) == 0 {
            continue;
        }
        let mut needed: Vec<String> = ids.iter().filter(|_| dice.roll(3) == 0).cloned().collect();
        let content = dice.roll(3);
        match dice.roll(6) {
            4 => {
                let key = needed.first().cloned().unwrap_or_else(|| format!("\"k{content}\""));
                text.push_str(&format!("data \"fake_lookup\" \"d{n}\" {{ key = {key} }}\n"));
                ids.push(format!("data.fake_lookup.d{n}.value"));
            }
            5 if !text.contains("fake_cluster") => {
                let hosts = ["\"a\", \"b\"", "\"a\", \"c\"", "\"a\"", "\"a\", \"b\", \"c\""][dice.roll(4) as usize];
                let label = needed.first().cloned().unwrap_or_else(|| "null".into());
                text.push_str(&format!(
                    "data \"fake_host\" \"h\" {{\n for_each = toset([\"a\", \"b\", \"c\"])\n address = each.key\n}}\n\
                     resource \"fake_cluster\" \"main\" {{\n hosts = {{ for k in [{hosts}] : k => data.fake_host.h[k] }}\n version = \"{content}\"\n label = {label}\n}}\n"
                ));
                ids.push("fake_cluster.main.ids[\"a\"]".into());
            }
            0 => {
                text.push_str(&format!("resource \"fake_note\" \"n{n}\" {{ input = [{content}, {}] }}\n", needed.join(", ")));
                ids.push(format!("fake_note.n{n}.id"));
            }
            1 => {
                let count = 1 + dice.roll(3);
                needed.retain(|id| id.starts_with("fake_local"));
                let needs = needed.join(", ");
                text.push_str(&format!(
                    "resource \"fake_local\" \"c{n}\" {{\n count = {count}\n name = \"c{n}-${{count.index}}\"\n content = \"{content}\"\n needs = [{needs}]\n}}\n"
                ));
                ids.push(format!("fake_local.c{n}[0].id"));
            }
            _ => {
                let first = dice.roll(4) == 0;
                // With create_before_destroy the new one needs another name.
                let size = dice.roll(2);
                let name = if first { format!("l{n}-{size}") } else { format!("l{n}") };
                let (things, others): (Vec<String>, Vec<String>) = needed.into_iter().partition(|id| id.starts_with("fake_local"));
                let tags = others.iter().enumerate().map(|(i, id)| format!("t{i} = {id}")).collect::<Vec<_>>().join(", ");
                text.push_str(&format!(
                    "resource \"fake_local\" \"l{n}\" {{\n name = \"{name}\"\n content = \"{content}\"\n size = \"{size}\"\n needs = [{}]\n tags = {{ {tags} }}\n lifecycle {{ create_before_destroy = {first} }}\n}}\n",
                    things.join(", ")
                ));
                ids.push(format!("fake_local.l{n}.id"));
            }
        }
    }
    if let Some(id) = ids.last() {
        text.push_str(&format!("output \"last\" {{ value = {id} }}\n"));
    }
    text
}

struct Case {
    seed: u64,
    first: String,
    second: String,
}

fn cases(count: u64) -> impl Iterator<Item = Case> {
    (0..count).map(|seed| {
        let mut dice = Dice(seed * 7919 + 1);
        Case { seed, first: configuration(&mut dice), second: configuration(&mut dice) }
    })
}

/// A lab in which the first configuration was applied.
fn begun(case: &Case) -> Lab {
    let mut lab = Lab::new();
    lab.converge(&case.first);
    lab
}

fn undisturbed(case: &Case) -> (BTreeMap<String, String>, usize) {
    let mut lab = begun(case);
    let before = lab.world.lock().operations;
    lab.converge(&case.second);
    let done = lab.world.lock().operations - before;
    (lab.world.contents(), done)
}

#[test]
fn after_apply_the_plan_is_empty_and_destroying_leaves_nothing() {
    for case in cases(200) {
        let mut lab = begun(&case);
        lab.converge(&case.second);
        let planned = lab.plan_with(&case.second, &Options { mode: ModeOfPlan::Destroy, ..Options::default() });
        let outcome = lab.apply_plan(&planned);
        assert!(outcome.is_success(), "seed {}: {:?}\n{}\n{}", case.seed, outcome.diagnostics, show(&planned.plan), case.second);
        assert!(
            lab.world.contents().is_empty() && lab.state().resources.is_empty() && lab.state().deposed.is_empty(),
            "seed {}",
            case.seed
        );
    }
}

#[test]
fn failing_at_any_step_ends_in_the_same_world() {
    for case in cases(40) {
        let (expected, operations) = undisturbed(&case);
        for n in 0..operations {
            for fault in [Fault::Refused, Fault::Lost] {
                let mut lab = begun(&case);
                let before = lab.world.lock().operations;
                lab.world.lock().fault = Some((before + n, fault));
                let outcome = lab.run(&case.second);
                assert_eq!(outcome.failed, 1, "seed {} step {n}", case.seed);
                lab.world.lock().fault = None;
                lab.converge(&case.second);
                assert_eq!(lab.world.contents(), expected, "seed {} step {n} {fault:?}", case.seed);
            }
        }
    }
}

#[test]
fn each_step_done_twice_equals_once() {
    for case in cases(80) {
        let (expected, _) = undisturbed(&case);
        let mut lab = Lab::new();
        lab.world.lock().twice = true;
        lab.converge(&case.first);
        lab.converge(&case.second);
        assert_eq!(lab.world.contents(), expected, "seed {}", case.seed);
    }
}

#[test]
fn a_crash_after_any_write_of_the_journal_is_repaired() {
    for case in cases(40) {
        let (expected, _) = undisturbed(&case);
        // One whole run that never reaches the backend, to have every journal that a crash could leave.
        let mut lab = begun(&case);
        let state = lab.state();
        lab.journal.records.lock().unwrap().clear();
        lab.journal.appends.lock().unwrap().clear();
        lab.journal.witness.lock().unwrap().clear();
        *lab.backend.broken.lock().unwrap() = true;
        let planned = lab.plan(&case.second);
        lab.apply_plan(&planned);
        let records = lab.journal.records.lock().unwrap().clone();
        let appends = lab.journal.appends.lock().unwrap().clone();
        let mut worlds = lab.journal.witness.lock().unwrap().clone();
        worlds.push(lab.world.lock().things.clone());
        for (tick, &length) in appends.iter().enumerate() {
            // What was started at that tick was not done yet, or done and never heard of again.
            for world in [&worlds[tick], &worlds[tick + 1]] {
                let mut after = Lab::new();
                after.world.lock().things = world.clone();
                after.world.lock().created = 1000;
                let mut recovered = state.clone();
                let recovery = recover(&mut recovered, &records[..length]);
                assert_eq!(recovery.changed.is_empty(), recovered == state, "seed {}", case.seed);
                let mut again = recovered.clone();
                recover(&mut again, &records[..length]);
                assert_eq!(again, recovered, "replaying twice changes nothing");
                *after.backend.stored.lock().unwrap() = Some(recovered).filter(|_| state.serial > 0);
                after.converge(&case.second);
                assert_eq!(after.world.contents(), expected, "seed {} tick {tick}\n{}\n{}", case.seed, case.first, case.second);
            }
        }
    }
}
