//! The order in which a cluster's members may change.
//!
//! Three rules carry everything: a stopped member may be started at any time; a running one is restarted only after a gate has seen enough
//! *other* members healthy; and there is a gate between any two restarts. So at most one member is down because of us, and never the one
//! that makes the quorum.

mod care;
mod gates;
mod moves;
mod pods;
mod versions;

pub(crate) use care::Care;
pub(crate) use pods::makes_claim_anew;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, ChildStep, Choreography, Diagnostics, Point, Renewed, Scene, Value};

use super::arguments::Arguments;
use super::condition::{Condition, Member, changes, is_formed, member_of, members, members_away, seen, start_anew};
use super::membership::{Membership, membership};
use super::places::{formed_note, part, part_of, stateful_set};
use super::restore::{ended, helpers_in_the_way, restoration};
use super::upgrade::upgrade;
use super::{authorities, impact, moving, preflight, refusals, volumes};

/// How long forming a cluster may take, in seconds. Usually 1 to 3 s; slow disks and slow hosts need more.
const FORMATION_LIMIT: u64 = 120;
/// How long a member may take to come back, in seconds. A large database is read for up to a minute per gigabyte.
const RESTART_LIMIT: u64 = 300;
/// How long to wait for health before work starts, in seconds. Nothing was touched yet, so an unhealthy member is a reason to stop.
pub(super) const BEFORE_LIMIT: u64 = 30;

/// The order of a plan's changes.
pub(crate) fn choreograph(scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
    let Some(wanted) = scene.wanted else { return destroy(scene) };
    let wanted = Arguments::read(scene.address, wanted)?;
    let at_it = |found: Diagnostics| found.into_iter().map(|d| d.at(scene.address)).collect::<Diagnostics>();
    let ended = ended(scene, &wanted).map_err(|d| at_it(d.into()))?;
    let refused = refusals::check(scene, &wanted);
    if refused.has_errors() {
        return Err(refused);
    }
    let mut members = members(scene);
    let grows = refusals::grows(scene);
    if let Some(restoration) = restoration(scene, &wanted, &members).map_err(at_it)? {
        if volumes::begins(scene) || wanted.members.keys().any(|name| volumes::is_on_another(scene, name)) {
            return Err(at_it(volumes::apart("a cluster is restored").into()));
        }
        if grows {
            return Err(at_it(refusals::grows_apart("a cluster is restored").into()));
        }
        refusals::relabels(scene, &wanted).map_err(|d| at_it(d.into()))?;
        let membership = Membership::settled(&wanted);
        let mut order = Order::new(&wanted, scene, &members, &membership);
        order.start_as_members();
        match &wanted.kubernetes {
            Some(place) => order.restore_in_pods(place, &restoration),
            None => order.restore(&restoration),
        }
        order.read_ids();
        order.drop_authorities();
        order.keep_claims();
        let mut choreography = order.choreography;
        (choreography.impact, choreography.risk) = impact::of_restoration(scene, &wanted, &members, &restoration);
        preflight::look(scene, &wanted, &membership, &mut choreography)?;
        return Ok(choreography);
    }
    if is_formed(scene) {
        start_anew(scene, &wanted, &mut members);
    }
    let mut membership = match is_formed(scene) {
        true => membership(scene, &wanted, &members).map_err(at_it)?,
        false => Membership::settled(&wanted),
    };
    if grows && !volumes::begins(scene) && !membership.moves.is_empty() {
        return Err(at_it(refusals::grows_apart("members come or go").into()));
    }
    if is_formed(scene) {
        volumes::all_come_back(scene, &wanted, &membership).map_err(|d| at_it(d.into()))?;
    }
    for name in membership.joining().chain(membership.waiting.iter().map(String::as_str)) {
        if let Some(member) = members.get_mut(name) {
            member.condition = Condition::Joins;
        }
    }
    authorities::not_with_members(scene, &wanted, &membership).map_err(at_it)?;
    if is_formed(scene) {
        authorities::all_are_seen(scene, &wanted, &members).map_err(at_it)?;
    }
    let upgrade = match is_formed(scene) {
        true => upgrade(scene, &wanted, &members, &membership).map_err(at_it)?,
        false => None,
    };
    let applied = scene.before.and_then(|before| before.get("version")?.as_str());
    if applied.is_some_and(|version| version != wanted.version.text) && volumes::in_turn(scene, &membership).next().is_some() {
        return Err(at_it(volumes::apart("etcd gets another version").into()));
    }
    let moving = if is_formed(scene) { moving::moving(scene, &wanted) } else { None };
    if let Some(moving) = &moving {
        moving::may_begin((scene, &wanted), moving, &members, &membership, upgrade.as_ref()).map_err(at_it)?;
    }
    let restarts = |m: &Member<'_>| m.condition == Condition::Works && wanted.members.contains_key(&m.name) && m.restarts();
    membership.restarts_first =
        upgrade.is_none() && moving.is_none() && membership.spares_more_now(&wanted) && members.values().any(restarts);
    let mut order = Order::new(&wanted, scene, &members, &membership);
    order.start_as_members();
    order.note_first();
    order.look_at_restored(true);
    order.start_and_heal();
    order.restart_suspects();
    if membership.restarts_first {
        order.change_before_others_leave();
        order.change_members();
    } else {
        order.change_members();
        order.change_the_rest();
    }
    moving.iter().for_each(|moving| order.move_data(moving));
    order.look_at_restored(false);
    order.grow_volumes();
    order.keep_claims();
    order.make_room();
    order.end_restoration();
    if let Some(place) = &wanted.kubernetes {
        order.end_in_pods(place, ended);
    }
    if let Some(upgrade) = &upgrade {
        order.save_first();
        order.save_in_pod(upgrade);
    }
    if is_formed(scene) {
        order.tell(upgrade.as_ref());
    }
    order.read_ids();
    order.drop_authorities();
    order.note_restored();
    order.renew_ids();
    let Order { mut choreography, care, .. } = order;
    (choreography.impact, choreography.risk) =
        impact::of_change(scene, &wanted, &members, &membership, (upgrade.as_ref(), moving.as_ref()));
    choreography.impact.extend(impact::of_care(&care, &wanted));
    impact::of_ended(scene, &wanted, ended, &mut choreography);
    preflight::look(scene, &wanted, &membership, &mut choreography)?;
    if let Some(moving) = &moving {
        preflight::room_to_move(scene, &wanted, moving, &mut choreography)?;
    }
    Ok(choreography)
}

/// Majority of so many voters.
pub(crate) fn quorum(members: usize) -> usize {
    members / 2 + 1
}

/// Members in the order they are restarted: followers by name, then the leader, so that leadership moves once.
pub(crate) fn leader_last<'a, 'b>(members: impl Iterator<Item = &'b Member<'a>>) -> Vec<&'b Member<'a>>
where
    'a: 'b,
{
    let mut members: Vec<_> = members.collect();
    members.sort_by_key(|m| (m.leads, m.name.clone()));
    members
}

pub(super) struct Order<'a> {
    pub(super) wanted: &'a Arguments,
    pub(super) scene: &'a Scene<'a>,
    pub(super) members: &'a BTreeMap<String, Member<'a>>,
    membership: &'a Membership,
    /// Room that is made at the end.
    care: Care,
    /// Voters, as the moves so far have left them.
    voters: BTreeSet<String>,
    formed: bool,
    /// Members whose ids are read as soon as they have joined.
    noted: Vec<String>,
    pub(super) choreography: Choreography,
    /// The last gate, and whom it saw healthy.
    pub(super) last: Option<(String, BTreeSet<String>)>,
}

impl<'a> Order<'a> {
    fn new(wanted: &'a Arguments, scene: &'a Scene<'a>, members: &'a BTreeMap<String, Member<'a>>, membership: &'a Membership) -> Self {
        let voters = membership.established.clone();
        let (formed, choreography) = (is_formed(scene), Choreography::default());
        let care = Care::of(scene, wanted, members, membership);
        Self { wanted, scene, members, membership, care, voters, formed, noted: Vec::new(), choreography, last: None }
    }

    fn wanted_members(&self, condition: Condition) -> impl Iterator<Item = &'a Member<'a>> + use<'a> {
        let wanted = self.wanted;
        self.members.values().filter(move |m| m.condition == condition && wanted.members.contains_key(&m.name))
    }

    /// The wanted members that vote by now.
    pub(super) fn all(&self) -> BTreeSet<String> {
        self.voters.clone()
    }

    /// Whom a gate may ask for while some members are not yet repaired: those that work and those that were started. If they are no
    /// quorum, none of them can be healthy without the others, so all are asked for.
    fn sure(&self) -> BTreeSet<String> {
        // On a host that can't be reached may be one that works; nobody gets through to it.
        let is_out_of_reach = |m: &&Member<'_>| seen(self.scene, &part(&m.name, "etcd"), "healthy").and_then(Value::as_bool) == Some(false);
        let working = self.wanted_members(Condition::Works).filter(|m| !is_out_of_reach(m));
        // Who does not run and has no change either does not come up by what this plan does.
        let started = self.wanted_members(Condition::Stopped).filter(|m| m.is_touched());
        let sure: BTreeSet<_> = working.chain(started).map(|m| m.name.clone()).collect();
        if self.formed && sure.len() >= quorum(self.membership.voters) { sure } else { self.all() }
    }

    /// Members of a cluster that was formed start only as a part of it: where the note of that is gone, it is back before any of them starts.
    fn note_first(&mut self) {
        if !self.formed || !changes(self.scene, &formed_note()) {
            return;
        }
        let pods = self.wanted.members.keys().map(|name| part(name, "pod"));
        for path in pods.chain([stateful_set()]).filter(|p| changes(self.scene, p)) {
            self.order(Point::Child(formed_note()), Point::Child(path));
        }
    }

    /// A StatefulSet gives its new template to every pod that is made anew for whatever reason, so it is changed only when the gate has seen
    /// that pods may be restarted.
    fn template_after(&mut self, gate: &str) {
        let change = self.scene.children.get(&stateful_set()).map(|c| c.change.action());
        if self.formed && change == Some(Action::Update) {
            self.gate_before(&stateful_set(), gate);
        }
    }

    /// Starts what is stopped, all at once: a cluster without a quorum, or a new one, comes up only if several start together. Members that
    /// run but don't answer get what needs no restart at the same time.
    fn start_and_heal(&mut self) {
        let starting: Vec<_> = self.wanted_members(Condition::Stopped).filter(|m| m.is_touched()).collect();
        let suspects: Vec<_> = self.wanted_members(Condition::Suspect).collect();
        let forms = !self.formed && (!starting.is_empty() || self.ids_to_read().next().is_some());
        if starting.is_empty() && !forms && !suspects.iter().any(|m| m.restarts()) {
            return;
        }
        self.only_if_nobody_works(&starting);
        let required = self.sure();
        let (name, limit) = if !self.formed {
            ("formed".to_owned(), FORMATION_LIMIT)
        } else if starting.is_empty() {
            ("healthy before repair".to_owned(), BEFORE_LIMIT)
        } else {
            let names: Vec<_> = starting.iter().map(|m| m.name.as_str()).collect();
            (format!("healthy after starting {}", names.join(", ")), RESTART_LIMIT)
        };
        self.gate(&name, required, limit);
        if !self.formed {
            // From then on members start only as a part of what is there.
            self.gate_before(&formed_note(), &name);
        }
        if starting.is_empty() {
            self.template_after(&name);
        }
        let started = starting.iter().flat_map(|m| m.outside());
        let healed = suspects.iter().flat_map(|m| m.at_once());
        for path in started.chain(healed) {
            self.before_gate(path, &name);
        }
    }

    /// Members that run but don't answer may be voters all the same: one at a time, like healthy ones.
    fn restart_suspects(&mut self) {
        for member in self.wanted_members(Condition::Suspect).filter(|m| m.restarts()) {
            let mut required = self.last.as_ref().map(|(_, seen)| seen.clone()).unwrap_or_default();
            required.insert(member.name.clone());
            self.step(member.at_start(), &member.name, required);
        }
    }

    /// The same as [`Self::change_the_rest`], while those that leave are there and are seen healthy as well.
    fn change_before_others_leave(&mut self) {
        let stay = self.voters.clone();
        self.voters.extend(self.membership.leaving.iter().cloned());
        self.change_the_rest();
        self.voters = stay;
    }

    /// Members that work: one at a time, the leader last. A restart is planned work and waits until every member is healthy.
    fn change_the_rest(&mut self) {
        let mut touched = leader_last(self.wanted_members(Condition::Works).filter(|m| m.is_touched()).chain(self.joined_as_before()));
        // One that nobody reaches may work all the same. What comes after it is not done.
        let away = members_away(self.scene);
        touched.sort_by_key(|m| away.contains(m.name.as_str()));
        let restarts = touched.iter().any(|m| m.restarts());
        let mut repaired: BTreeSet<&[ChildStep]> = BTreeSet::new();
        // Whoever has restarted may not trust any more what signed the certificates of before: then those of all others are in place first. What a
        // renewed CA signs everybody trusts already.
        let narrows = !authorities::dropped(self.scene, self.wanted).is_empty();
        let leaves_first = narrows || authorities::renews(self.scene);
        // No restart shows that somebody runs with what it is to trust; but from now on karmaform asks with a certificate of the new CA.
        let is_tried = !touched.is_empty() && authorities::signs_anew(self.scene, self.wanted);
        if is_tried || restarts && (narrows || self.last.as_ref().is_none_or(|(_, seen)| *seen != self.all())) {
            let previous = self.last.take();
            self.gate("healthy before", self.all(), BEFORE_LIMIT);
            let suspects: Vec<_> = self.wanted_members(Condition::Suspect).collect();
            let leaves = |m: &'a Member<'a>| m.outside().filter(|path| restarts && leaves_first && authorities::is_leaf_file(path));
            repaired = touched.iter().flat_map(|m| m.repairs().chain(leaves(m))).collect();
            for path in suspects.iter().flat_map(|m| m.at_once()).chain(repaired.iter().copied()) {
                self.before_gate(path, "healthy before");
            }
            match previous {
                Some((previous, _)) => self.order(Point::Gate(previous), Point::Gate("healthy before".to_owned())),
                None => self.template_after("healthy before"),
            }
        }
        let required = if restarts || is_tried {
            self.all()
        } else {
            // Nobody is stopped, so nobody has to be seen who can't be.
            let in_view =
                || self.wanted_members(Condition::Works).filter(|m| !away.contains(m.name.as_str())).map(|m| m.name.clone()).collect();
            self.last.as_ref().map_or_else(in_view, |(_, seen)| seen.clone())
        };
        for member in touched {
            // What it joined with was put in place before it did.
            let is_in_place = |path: &&[ChildStep]| member.condition == Condition::Joins && *path != part(&member.name, "pod");
            self.step(member.outside().filter(|path| !repaired.contains(path) && !is_in_place(path)), &member.name, required.clone());
        }
    }

    /// Who was on its way into a cluster in pods when the run before ended, and whose pod is still as it was then: it votes by the time that it is made anew.
    fn joined_as_before(&self) -> impl Iterator<Item = &'a Member<'a>> + use<'a> {
        let (wanted, membership) = (self.wanted, self.membership);
        self.wanted_members(Condition::Joins).filter(move |m| m.restarts() && membership.keeps_its_pod(wanted, &m.name))
    }

    /// As long as not everybody has let go of a CA its key is not lost.
    fn drop_authorities(&mut self) {
        let cas: Vec<Vec<ChildStep>> = authorities::dropped(self.scene, self.wanted).into_iter().map(<[ChildStep]>::to_vec).collect();
        if cas.is_empty() {
            return;
        }
        if self.last.as_ref().is_none_or(|(_, seen)| *seen != self.all()) {
            self.gate_after("healthy without the CA", self.all());
        }
        let Some((last, _)) = self.last.clone() else { return };
        for path in cas.into_iter().chain(authorities::dropped_keys(self.scene, self.wanted)) {
            self.order(Point::Gate(last.clone()), Point::Child(path));
        }
    }

    /// The members' ids can be read when they work.
    fn read_ids(&mut self) {
        let Some((last, _)) = self.last.clone() else { return };
        for path in
            self.ids_to_read().filter(|path| !member_of(path).is_some_and(|name| self.noted.iter().any(|n| n == name))).collect::<Vec<_>>()
        {
            self.order(Point::Gate(last.clone()), Point::Child(path));
        }
    }

    /// Who joins gets a new id, also where its resource would stay as it is: its data was lost, and nothing else.
    fn renew_ids(&mut self) {
        let known = |path: &Vec<ChildStep>| self.scene.children.get(path).is_some_and(|c| c.in_state);
        let joining = self.membership.joining().map(|name| part(name, "etcd")).filter(known);
        let renewed: Vec<_> = joining.map(|child| Renewed { child, attributes: &["member_id"] }).collect();
        self.choreography.renewed = renewed;
    }

    pub(super) fn ids_to_read(&self) -> impl Iterator<Item = Vec<ChildStep>> + use<'a> {
        let scene = self.scene;
        let paths = self.wanted.members.keys().map(|name| part(name, "etcd"));
        paths.filter(move |path| changes(scene, path))
    }
}

/// All units stop at once; no member loses its data before all are stopped. On Kubernetes the same follows from who needs whom, but for the
/// note: while there are pods, one that is made anew must not take itself for the first of a new cluster.
fn destroy(scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
    moving::may_end(scene)?;
    let members = members(scene);
    let deleted = |path: &Vec<ChildStep>| changes(scene, path);
    let mut orderings = Vec::new();
    // Whoever does not answer may run on or not: nothing of it is seen, and what the others have goes without it.
    let unseen = members_away(scene);
    let is_away = |path: &Vec<ChildStep>| member_of(path).is_some_and(|name| unseen.contains(name));
    for unit in members.keys().map(|name| part(name, "unit")).filter(|path| deleted(path) && !is_away(path)) {
        let data = members.keys().flat_map(|name| [part(name, "traces"), part_of(name, "directory", "data")]).filter(deleted);
        orderings.extend(data.map(|data| (Point::Child(unit.clone()), Point::Child(data))));
    }
    if deleted(&stateful_set()) && deleted(&formed_note()) {
        orderings.push((Point::Child(stateful_set()), Point::Child(formed_note())));
    }
    let (impact, risk) = impact::of_destroy(scene, &members);
    let mut gates = Vec::new();
    for (spec, claim) in helpers_in_the_way(scene, FORMATION_LIMIT) {
        orderings.push((Point::Gate(spec.name.clone()), Point::Child(claim)));
        gates.push(spec);
    }
    let away = scene.children.keys().filter(|path| is_away(path)).cloned().collect();
    Ok(Choreography { gates, orderings, impact, risk, away, ..Choreography::default() })
}
