//! `etcd_cluster` of one to five members through the real language, the real engine and the real schemas, on a model of etcd on hosts:
//! every change, killed before and after every step; quorum is never given up, and planning again always gets there.
//!
//! The model is the one of `providers/etcd/tests/all`, which proves the choreography alone in many more orders.

mod driver;
#[expect(unused_imports, reason = "each test uses a part of the model")]
#[path = "../../../providers/etcd/tests/all/model/mod.rs"]
mod model;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use karmaform_lang::Config;
use karmaform_model::ModeOfPlan::{self, Destroy, Normal};
use karmaform_model::Registry;

use crate::parts::real_registry;
use crate::tool::{Ended, Tool};
use driver::{Modelled, Trouble};
use model::World;

/// A cluster's world and its tool.
struct Lab {
    world: Arc<Mutex<World>>,
    trouble: Arc<Trouble>,
    tool: Tool,
}

impl Lab {
    fn new() -> Self {
        let (world, trouble) = (Arc::<Mutex<World>>::default(), Arc::<Trouble>::default());
        let real = real_registry();
        let drivers = real.drivers().map(|d| Modelled::over(Arc::clone(d), &world, &trouble)).collect();
        let mut tool = Tool::over(Arc::new(Registry::new(drivers, real.composites().cloned().collect())));
        // The certificates are real ones, made now.
        tool.now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(0));
        trouble.tells(&tool.hung);
        Self { world, trouble, tool }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With more lines in the block.
    fn config(&self, members: usize, lines: &str) -> Config {
        let mut hosts = String::new();
        for (i, name) in ('a'..='e').take(members).enumerate() {
            let _ = write!(hosts, "{name} = \"10.0.0.{}\", ", i + 11);
        }
        self.tool.config(&format!(
            "data \"ssh_host\" \"x\" {{\n  for_each = {{ {hosts} }}\n  address = each.value\n}}\n\
             resource \"etcd_cluster\" \"main\" {{\n  version = \"3.5.16\"\n  source = \"etcd-v3.5.16-linux-amd64.tar.gz\"\n  \
             hosts = data.ssh_host.x\n  {lines}\n}}\n\
             output \"endpoints\" {{\n  value = etcd_cluster.main.endpoints\n}}\n"
        ))
    }

    /// One run, with time passing before it.
    #[track_caller]
    fn apply(&self, config: &Config, mode: ModeOfPlan) -> Ended {
        {
            let mut world = self.world();
            world.settle();
            world.destroying = mode == Destroy;
            (world.was_looked_at, world.disturbed) = (false, false);
        }
        self.trouble.begin();
        let ended = self.tool.apply_patiently(config, mode);
        assert_eq!(self.world().violations, Vec::<String>::new(), "{}", self.trouble.log());
        ended
    }

    /// Runs until one succeeds; then nothing is left to do.
    #[track_caller]
    fn converge(&self, config: &Config, mode: ModeOfPlan) {
        self.trouble.none();
        for _ in 0..4 {
            let Ended::Well(outcome) = self.apply(config, mode) else { panic!("it hangs:\n{}", self.trouble.log()) };
            if outcome.is_success() {
                self.world().settle();
                let (plan, diagnostics) = self.tool.plan(config, mode);
                assert!(!diagnostics.has_errors(), "{diagnostics:#?}");
                let left: Vec<_> = plan.resources.iter().filter(|r| !r.change.is_no_op()).map(|r| (&r.address, &r.change)).collect();
                assert!(plan.is_empty(), "after apply the plan is not empty: {left:#?}");
                return;
            }
            assert!(outcome.failed > 0, "{:#?}", outcome.diagnostics);
        }
        panic!("it does not converge:\n{}", self.trouble.log());
    }

    #[track_caller]
    fn healthy(&self, members: usize, setting: Option<(&str, &str)>) {
        let world = self.world();
        for name in ('a'..='e').take(members).map(String::from) {
            assert!(world.is_healthy(&name), "{name} is not healthy");
            let host = world.hosts.values().find(|h| h.member == name).expect("its host");
            assert!(host.runs_what_is_written(), "{name} does not run what is written");
            if let Some((name, value)) = setting {
                assert_eq!(host.setting(name).as_deref(), Some(value));
            }
        }
    }

    /// Of this many members, running.
    fn formed(members: usize) -> Self {
        let lab = Self::new();
        lab.converge(&lab.config(members, ""), Normal);
        lab.healthy(members, None);
        lab
    }
}

/// From `start`, apply this; then the same killed before and after every `stride`th step and run again.
fn killed_everywhere(start: impl Fn() -> Lab, members: usize, lines: &str, mode: ModeOfPlan, stride: usize) {
    let lab = start();
    lab.converge(&lab.config(members, lines), mode);
    let calm = start();
    calm.apply(&calm.config(members, lines), mode);
    let steps = calm.trouble.steps();
    assert!(steps > 0, "there is nothing to do");
    for step in (1..=steps).step_by(stride) {
        for is_done in [false, true] {
            let lab = start();
            let config = lab.config(members, lines);
            lab.trouble.kills(step, is_done);
            assert!(matches!(lab.apply(&config, mode), Ended::Killed), "step {step} of {steps} was not reached");
            lab.converge(&config, mode);
            if mode == Destroy {
                assert_eq!(lab.world().leftovers(), Vec::<String>::new(), "step {step} of {steps}, done: {is_done}\n{}", lab.trouble.log());
            } else {
                lab.healthy(members, None);
            }
        }
    }
}

/// Every step for small clusters, some for large ones: their steps are the same, only more.
fn stride(members: usize) -> usize {
    [1, 1, 5, 13, 23][members - 1]
}

#[test]
fn formed_though_killed_anywhere() {
    for members in 1..=5 {
        killed_everywhere(Lab::new, members, "", Normal, stride(members));
    }
}

#[test]
fn a_setting_rolls_though_killed_anywhere() {
    for members in 1..=5 {
        killed_everywhere(|| Lab::formed(members), members, "settings = { snapshot-count = 5000 }", Normal, 1 + members / 4);
    }
    let lab = Lab::formed(3);
    lab.converge(&lab.config(3, "settings = { snapshot-count = 5000 }"), Normal);
    lab.healthy(3, Some(("ETCD_SNAPSHOT_COUNT", "5000")));
}

#[test]
fn restored_though_killed_anywhere() {
    let block = format!("restore {{\n from = \"backup.db\"\n sha256 = \"{}\"\n }}", "ab".repeat(32));
    for members in [1, 3] {
        killed_everywhere(|| Lab::formed(members), members, &block, Normal, 1);
        killed_everywhere(Lab::new, members, &block, Normal, 2 * members);
    }
    let lab = Lab::formed(3);
    lab.converge(&lab.config(3, &block), Normal);
    assert!(lab.world().hosts.values().all(|h| h.data.as_ref().is_some_and(|d| d.restored.is_some()) && h.before.len() == 1));
    lab.converge(&lab.config(3, ""), Normal);
    assert!(lab.world().hosts.values().all(|h| h.before.is_empty()));
    // It may be destroyed in the middle.
    killed_everywhere(
        || {
            let lab = Lab::formed(3);
            let config = lab.config(3, &block);
            lab.trouble.kills(17, true);
            assert!(matches!(lab.apply(&config, Normal), Ended::Killed));
            lab
        },
        3,
        &block,
        Destroy,
        13,
    );
}

#[test]
fn destroyed_though_killed_anywhere() {
    for members in 1..=4 {
        killed_everywhere(|| Lab::formed(members), members, "", Destroy, stride(members));
    }
}

/// What people do to hosts.
fn damage(world: &mut World, member: &str, kind: usize) {
    if kind == 0 {
        return world.stop(member);
    }
    let Some(host) = world.host_mut(member) else { return };
    match kind {
        1 => host.things.retain(|(_, path), _| !path.ends_with("server.crt")),
        2 => host.things.retain(|(_, path), _| !path.ends_with("peer-ca.crt")),
        _ => {
            for ((kind, _), unit) in host.things.iter_mut() {
                if kind == "ssh_systemd_unit" {
                    let edited = format!("{}# by hand\n", unit.get("content").and_then(|c| c.as_str()).unwrap_or_default());
                    unit.insert("content".into(), edited.into());
                }
            }
        }
    }
}

#[test]
fn every_damage_on_every_member_is_repaired_though_killed_anywhere() {
    for members in [1, 2, 3] {
        for kinds in [[0, 1, 3], [3, 3, 3], [1, 2, 0], [2, 2, 1]] {
            let start = || {
                let lab = Lab::formed(members);
                for (member, kind) in ["a", "b", "c"].into_iter().zip(kinds).take(members) {
                    damage(&mut lab.world(), member, kind);
                }
                lab
            };
            killed_everywhere(start, members, "", Normal, 1);
            killed_everywhere(start, members, "settings = { snapshot-count = 5000 }", Normal, members);
        }
    }
}

#[test]
fn a_failed_step_stops_only_what_needs_it() {
    let lab = Lab::new();
    let config = lab.config(3, "");
    lab.trouble.fails("10.0.0.12:22");
    let Ended::Well(outcome) = lab.apply(&config, Normal) else { panic!("it hangs") };
    assert!(!outcome.is_success());
    // The other hosts got all they could, and it is recorded.
    for member in ["a", "c"] {
        assert!(
            outcome.snapshot.resources.keys().any(|k| k.to_string() == format!("etcd_cluster.main/member[\"{member}\"]/unit")),
            "{member}"
        );
    }
    lab.converge(&config, Normal);
    lab.healthy(3, None);
}

#[test]
fn sizes_change_though_killed_anywhere() {
    for (from, to) in [(1, 3), (3, 1), (3, 5), (5, 3), (2, 3), (3, 2)] {
        killed_everywhere(|| Lab::formed(from), to, "", Normal, stride(from.max(to)));
    }
}

#[test]
fn lost_disks_are_replaced_though_killed_anywhere() {
    for (members, lost) in [(3, "a"), (3, "b"), (5, "bd")] {
        let start = || {
            let lab = Lab::formed(members);
            lost.chars().for_each(|m| lab.world().wipe(&m.to_string()));
            lab
        };
        killed_everywhere(start, members, "", Normal, stride(members));
    }
}
