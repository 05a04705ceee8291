//! Properties over small random graphs: after apply the plan is empty; fail or be killed at step i, for each i, then plan and apply: the
//! world ends the same; each step applied twice equals once; a state that was lost is made anew. Through the real language and the real engine,
//! in the root module and in modules.
//!
//! `KARMAFORM_CASES` says how many graphs (40 unless set), `KARMAFORM_SEED` repeats one.

mod generate;

use karmaform_lang::Config;
use karmaform_memory::{Fault, Moment};
use karmaform_model::ModeOfPlan::{Destroy, Normal};
use karmaform_model::ResourceState;

use crate::parts::tell;
use crate::tool::{Ended, Tool};
use generate::{Layout, Shape};

const USUAL: u64 = 40;

fn seeds() -> impl Iterator<Item = u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    match number("KARMAFORM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("KARMAFORM_CASES").unwrap_or(USUAL),
    }
}

/// Two configurations, the second a change of the first.
fn pair(seed: u64) -> (String, String) {
    let mut random = fastrand::Rng::with_seed(seed);
    let layouts = [Layout::Flat, Layout::Inside, Layout::Split, Layout::SplitKeyed];
    let mut first = Shape::random(&mut random);
    first.layout = layouts[usize::try_from(seed % 4).unwrap_or(0)];
    let second = first.changed(&mut random);
    (first.text(), second.text())
}

/// For every graph; a failure names its seed.
fn for_each_graph(property: impl Fn(&str, &str) + std::panic::RefUnwindSafe) {
    for seed in seeds() {
        let (first, second) = pair(seed);
        if let Err(panic) = std::panic::catch_unwind(|| property(&first, &second)) {
            tell(&format!("KARMAFORM_SEED={seed}\n# first\n{first}\n# second\n{second}"));
            std::panic::resume_unwind(panic);
        }
    }
}

/// A tool that has applied this.
fn applied(text: &str) -> (Tool, Config) {
    let tool = Tool::new();
    let config = tool.config(text);
    tool.converge(&config, Normal);
    tool.world.clear_log();
    (tool, config)
}

#[test]
fn after_apply_the_plan_is_empty() {
    for_each_graph(|first, second| {
        let (tool, _) = applied(first);
        let second = tool.config(second);
        tool.converge(&second, Normal);
        tool.converge(&second, Destroy);
        assert_eq!(tool.world.text(), "", "destroy left something behind");
        assert!(tool.state().0.resources.is_empty());
    });
}

#[test]
fn each_step_applied_twice_equals_once() {
    for_each_graph(|first, second| {
        let worlds = [false, true].map(|repeat| {
            let tool = Tool::new();
            tool.world.repeat_applies(repeat);
            let (first, second) = (tool.config(first), tool.config(second));
            tool.converge(&first, Normal);
            tool.converge(&second, Normal);
            let things = tool.things();
            tool.converge(&second, Destroy);
            assert_eq!(tool.world.text(), "");
            things
        });
        assert_eq!(worlds[0], worlds[1]);
    });
}

/// The same with every resource called something else, and `moved` blocks that say so.
fn renamed(text: &str) -> String {
    let files = text.split_inclusive("%%%% ").map(|file| {
        let (mut file, mark) = file.strip_suffix("%%%% ").map_or((file.to_owned(), ""), |file| (file.to_owned(), "%%%% "));
        // The highest number first: n1 is the start of n10 as well.
        for number in (0..100).rev() {
            for kind in ["terraform_data", "memory_thing", "memory_item"] {
                let (header, name) = (format!("resource \"{kind}\" \"n{number}\""), format!("{kind}.n{number}"));
                let is_here = file.contains(&header);
                file = file.replace(&header, &format!("resource \"{kind}\" \"r{number}\"")).replace(&name, &format!("{kind}.r{number}"));
                if is_here {
                    file += &format!("moved {{\n  from = {name}\n  to = {kind}.r{number}\n}}\n");
                }
            }
        }
        file + mark
    });
    files.collect()
}

#[test]
fn what_is_renamed_is_moved_and_not_made_anew() {
    for_each_graph(|first, second| {
        let (tool, _) = applied(first);
        let things = tool.things();
        let config = tool.config(&renamed(first));
        assert!(!tool.plan(&config, Normal).0.has_changes());
        tool.converge(&config, Normal);
        assert_eq!((tool.things(), tool.world.applies()), (things, 0));
        // Together with a change, and cut off behind its first step.
        let (calm, _) = applied(first);
        calm.converge(&calm.config(second), Normal);
        let (tool, _) = applied(first);
        let config = tool.config(&renamed(second));
        tool.world.inject(Fault::apply(1).at(Moment::HangAfter));
        let _ = tool.apply(&config, Normal);
        tool.world.heal();
        tool.converge(&config, Normal);
        assert_eq!(tool.things(), calm.things());
    });
}

/// Goes from `first` to `second` with a fault at each apply in turn, then again without: the world must be as without faults.
fn interrupted_at_each_step(moments: &[Moment]) {
    for_each_graph(|first, second| {
        let (calm, _) = applied(first);
        calm.converge(&calm.config(second), Normal);
        let (expected, steps) = (calm.things(), calm.world.applies());
        for step in 1..=steps {
            for moment in moments {
                let (tool, _) = applied(first);
                let config = tool.config(second);
                tool.world.inject(Fault::apply(step).at(*moment));
                match tool.apply(&config, Normal) {
                    Ended::Well(outcome) => assert!(!outcome.is_success(), "apply {step} of {steps} failed {moment:?} and nobody noticed"),
                    Ended::Killed => {}
                }
                tool.world.heal();
                tool.converge(&config, Normal);
                assert_eq!(tool.things(), expected, "after apply {step} of {steps} failed {moment:?}\n{}", tool.world.log().join("\n"));
                tool.converge(&config, Destroy);
                assert_eq!(tool.world.text(), "", "left behind after apply {step} of {steps} failed {moment:?}");
            }
        }
    });
}

#[test]
fn failed_at_any_step_it_converges() {
    interrupted_at_each_step(&[Moment::Before, Moment::After]);
}

#[test]
fn killed_at_any_step_it_converges() {
    interrupted_at_each_step(&[Moment::HangBefore, Moment::HangAfter]);
}

#[test]
fn a_destroy_that_fails_anywhere_ends_empty() {
    for_each_graph(|first, _| {
        let (calm, config) = applied(first);
        calm.converge(&config, Destroy);
        for step in 1..=calm.world.applies() {
            for moment in [Moment::Before, Moment::After] {
                let (tool, config) = applied(first);
                tool.world.inject(Fault::apply(step).at(moment));
                assert!(matches!(tool.apply(&config, Destroy), Ended::Well(o) if !o.is_success()));
                tool.world.heal();
                tool.converge(&config, Destroy);
                assert_eq!(tool.world.text(), "");
            }
        }
    });
}

#[test]
fn drift_is_seen_and_repaired() {
    for_each_graph(|first, _| {
        let (tool, config) = applied(first);
        let expected = tool.things();
        for kind in ["memory_thing", "memory_item"] {
            for (number, (place, object)) in tool.world.list(kind).into_iter().enumerate() {
                if number % 2 == 0 {
                    tool.world.remove(&place);
                } else {
                    tool.world.change(&place, |o| drop(o.insert("value".into(), "somebody else's".into())));
                }
                let (plan, _) = tool.plan(&config, Normal);
                assert!(plan.has_changes(), "{place} was damaged and the plan is empty");
                assert!(plan.drift.iter().any(|d| d.resource_type == kind), "{place} is not named as drift");
                tool.converge(&config, Normal);
                assert_eq!(tool.things(), expected, "{place} {object:?}");
            }
        }
    });
}

#[test]
fn a_state_that_was_lost_is_made_anew() {
    for_each_graph(|first, second| {
        let (tool, config) = applied(first);
        let (before, _) = tool.state();
        let things = tool.things();
        tool.rebuild(&config);
        let (after, _) = tool.state();
        assert_eq!(tool.things(), things, "the world was only looked at");
        assert!(after.outputs.keys().eq(before.outputs.keys()));
        assert!(after.resources.keys().eq(before.resources.keys()));
        // Where nothing in the world has an id of a terraform_data, another one is as good, in what is made of it, too.
        let has_a_place = |r: &ResourceState| r.resource_type != "terraform_data";
        for (address, resource) in before.resources.iter().filter(|(_, r)| has_a_place(r)) {
            assert_eq!(after.resources[address], *resource, "{address}");
        }
        assert!(!tool.plan(&config, Normal).0.has_changes());
        let second = tool.config(second);
        tool.converge(&second, Normal);
        tool.converge(&second, Destroy);
        assert_eq!(tool.world.text(), "", "destroy left something behind");
    });
}
