//! `karmada_member` on real API servers: two control planes and two members, none of which has a node. A plane is an API server with
//! Karmada's two kinds and a stand-in for its controllers (`controller.rs`) that really uses the accounts which joining makes.
//!
//! The clusters are started by the lab's script, and end with the test that started them. Where no Kubernetes can run the test says so loudly.

mod api;
mod controller;
mod estimator;
mod fleet;
mod gone;
mod half;
mod life;
pub(crate) mod planes;
mod shared;

use std::time::{Duration, Instant};

use crate::parts::tell;
use planes::Planes;

/// What comes by itself comes within this: a namespace takes its server more than five seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// One test, as starting clusters is most of its cost, and all must end with it.
#[test]
fn clusters_become_members_and_leave() {
    let Some(planes) = Planes::up("clusters_become_members_and_leave") else { return };
    scene("life", || life::members_join_change_and_leave(&planes));
    // Each has a plane and a member for itself.
    std::thread::scope(|scope| {
        scope.spawn(|| scene("gone", || gone::a_dead_member_leaves_by_force_alone(&planes)));
        scene("half", || half::a_join_goes_on_after_every_step(&planes));
    });
    scene("estimator", || estimator::a_member_is_counted(&planes));
    scene("shared", || shared::two_planes_share_a_member(&planes));
    scene("moves", || shared::a_member_moves_and_gets_new_tokens(&planes));
}

/// Runs a part of the test; if `KARMAFORM_TEST_SCENE` names one, no other.
fn scene(name: &str, run: impl FnOnce()) {
    if std::env::var("KARMAFORM_TEST_SCENE").is_ok_and(|only| only != name) {
        return;
    }
    let started = Instant::now();
    run();
    tell(&format!("members, {name}: {:.1?}", started.elapsed()));
}

/// Waits until something is so that comes by itself.
#[track_caller]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What a server puts into each namespace.
fn is_in_every_namespace(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.contains("/karmada-cluster/") && (name == "default" || name.starts_with("default-token-") || name == "kube-root-ca.crt")
}
