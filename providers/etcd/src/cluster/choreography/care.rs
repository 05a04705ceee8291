//! Room in a plan: free pages go back to the disk where `defragment` says so, and a cluster that is full takes writes again when it may grow or may
//! be defragmented. It comes after everything else, when all members work as they are to.

use std::collections::BTreeMap;

use karmaform_model::{Point, Scene, Value};

use super::{BEFORE_LIMIT, Order, is_formed};
use crate::care::is_fragmented;
use crate::cluster::arguments::Arguments;
use crate::cluster::children;
use crate::cluster::condition::{Condition, Member, changes, members_away, seen};
use crate::cluster::membership::{Membership, Move};
use crate::cluster::places::part;
use crate::cluster::preflight::{quota, quota_of};

/// How long a member may take, in seconds: this, and as much again for each GiB. The one that leads hands over first.
const LIMIT: u64 = 180;

/// What is to be done for room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Care {
    /// Members with more free pages than used ones, with the two sizes of their databases in bytes: all, and in use.
    pub(crate) fragmented: BTreeMap<String, (i64, i64)>,
    /// Members that join, each with the one that leads: that sends them its database, and its free pages with it.
    pub(crate) sent: BTreeMap<String, String>,
    /// The alarm NOSPACE is on, and this plan ends it; unless somebody is `away`.
    pub(crate) is_full: bool,
    /// Members of which this plan can't make that they are there for it.
    pub(crate) away: Vec<String>,
    /// Members that are not there for it: then free pages are left as they are. Who defragments answers nobody, and would be missing beside them.
    pub(crate) missing: Vec<String>,
    /// Members that nobody looks at, as they are not among the targets: whether they are there for it is not known.
    pub(crate) unseen: Vec<String>,
}

impl Care {
    /// What a scene asks for.
    pub(crate) fn of(scene: &Scene<'_>, wanted: &Arguments, members: &BTreeMap<String, Member<'_>>, membership: &Membership) -> Self {
        if !is_formed(scene) {
            return Self::default();
        }
        let alarms = |name: &String| seen(scene, &part(name, "etcd"), "alarms").and_then(Value::as_items).unwrap_or_default();
        let is_on = |alarm: &str| wanted.members.keys().any(|name| alarms(name).iter().any(|a| a.as_str() == Some(alarm)));
        let size = |name: &str, of: &str| seen(scene, &part(name, "etcd"), of).and_then(Value::as_i64).unwrap_or(0);
        let sizes = |name: &str| (size(name, "size_bytes"), size(name, "size_in_use_bytes"));
        let needs_it = |(all, in_use): (i64, i64)| wanted.defragments && is_fragmented(all, in_use);
        let begins = |name: &str| membership.moves.iter().any(|m| matches!(m, Move::Join { name: n, has_data: false, .. } if n == name));
        let stays = wanted.members.keys().filter(|name| !begins(name));
        let fragmented = stays.map(|name| (name.clone(), sizes(name))).filter(|(_, sizes)| needs_it(*sizes)).collect();
        // Who leads now does so until it leaves, and that is after all that join.
        let sender = members.values().find(|m| m.leads && needs_it(sizes(&m.name)));
        let mut sent = BTreeMap::new();
        if let Some(sender) = sender {
            let others = membership.joining().filter(|name| begins(name) && *name != sender.name);
            sent.extend(others.map(|name| (name.to_owned(), sender.name.clone())));
        }
        // Data that differ are told by the gate before it.
        let is_full = is_on("NOSPACE") && !is_on("CORRUPT") && (wanted.defragments || may_grow(scene, wanted));
        // What changes on a host that nobody reaches brings nobody back.
        let unreached = members_away(scene);
        let comes = |m: &Member<'_>| !unreached.contains(m.name.as_str()) && (m.is_touched() || m.condition == Condition::Joins);
        let is_there = |name: &String| {
            seen(scene, &part(name, "etcd"), "healthy").and_then(Value::as_bool) == Some(true) || members.get(name).is_some_and(comes)
        };
        let waits = membership.waiting.iter().filter(|name| wanted.members.contains_key(*name));
        let is_seen = |name: &String| scene.children.contains_key(&part(name, "etcd"));
        let is_away = |name: &&String| is_seen(name) && !is_there(name);
        let away: Vec<String> = wanted.members.keys().filter(is_away).chain(waits).cloned().collect();
        let missing = away.iter().chain(&membership.unfinished).cloned().collect();
        let unseen = wanted.members.keys().filter(|name| !is_seen(name)).cloned().collect();
        Self { fragmented, sent, is_full, away, missing, unseen }
    }

    /// True if there is nothing to do, or not now.
    pub(crate) fn is_empty(&self) -> bool {
        if self.is_full {
            return !self.away.is_empty();
        }
        let nobody_needs_it = self.fragmented.is_empty() && self.sent.is_empty();
        nobody_needs_it || !self.missing.is_empty() || !self.unseen.is_empty()
    }

    /// Alarms that no gate stops at, as the plan ends them itself, or one after it that needs what this one does.
    pub(super) fn tolerated(&self) -> &'static [&'static str] {
        if self.is_full { &["NOSPACE"] } else { &[] }
    }

    /// What its step is called.
    fn step(&self) -> &'static str {
        if self.is_full { "room is made, and the alarm NOSPACE ends" } else { "free pages go back to the disk" }
    }
}

/// The quota that is wanted is larger than the one that was applied, or there is none any more.
fn may_grow(scene: &Scene<'_>, wanted: &Arguments) -> bool {
    let above = |quota: i64| if quota < 0 { i64::MAX } else { quota };
    let applied = scene.before.and_then(|b| b.get("settings")?.as_entries());
    above(quota(wanted)) > above(quota_of(applied))
}

impl Order<'_> {
    /// When all members are seen healthy, room is made; then what is known of the members is read again.
    pub(super) fn make_room(&mut self) {
        if self.care.is_empty() {
            return;
        }
        if self.last.as_ref().is_none_or(|(_, seen)| *seen != self.all()) {
            self.gate_in_turn("healthy before room is made", self.all(), BEFORE_LIMIT);
        }
        let size = |name: &String| seen(self.scene, &part(name, "etcd"), "size_bytes").and_then(Value::as_i64).unwrap_or(0);
        let largest = self.members.keys().map(size).max().unwrap_or(0);
        // Of who is sent a database nobody has seen it yet.
        let sizes = self.wanted.members.keys().map(|name| if self.care.sent.contains_key(name) { largest } else { size(name) });
        let limit = sizes.map(|size| LIMIT * (1 + u64::try_from(size >> 30).unwrap_or(0))).sum();
        let name = self.care.step();
        // Whoever has left by then is not asked.
        let connection = children::connection_with(self.wanted, &BTreeMap::new());
        self.operate_with(name, "etcd_make_room", BTreeMap::from([("cluster".to_owned(), connection)]), limit);
        self.read_members_after(&Point::Gate(name.to_owned()));
    }

    /// What is known of members is read again behind this. Who has joined in this plan was read before the next one came.
    pub(super) fn read_members_after(&mut self, this: &Point) {
        let is_read = |member: &&String| self.noted.contains(*member);
        let members: Vec<_> = self.wanted.members.keys().filter(|m| !is_read(m)).map(|member| part(member, "etcd")).collect();
        for path in members.into_iter().filter(|path| changes(self.scene, path)) {
            self.order(this.clone(), Point::Child(path));
        }
    }
}
