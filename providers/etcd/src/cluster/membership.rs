//! Which members join and leave a cluster that was formed, one after the other, in an order that keeps as many to spare as can be: the dead leave
//! first, since each of them counts for the quorum; then new ones join, as learners until they have caught up; then those that work and are not
//! wanted any more leave, the leader last (rules of etcd's documentation on runtime reconfiguration). Whoever gets a volume of another class leaves and
//! joins anew between the two: with those that are new, and still with those that go.

mod problems;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{ChildStep, Diagnostic, Diagnostics, Margin, Object, Scene, Severity, Value};

use super::arguments::Arguments;
use super::choreography::quorum;
use super::condition::{Condition, Member, has_data, is_hollow, is_unchanged, member_of, runner, seen, sides};
use super::places::{part, part_of};
use super::roster::{Entry, former_url, peer_url, remembered, roster};
use super::volumes;
use problems::{no_address, nobody_in_view, not_all_work, other_data, other_key, runs_without_data, silent, too_few, unknown_members};

/// What stands for the id of a member that is not in the list any more, where nobody has noted it.
const FORMER: &str = "former";

/// One member comes or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// It leaves.
    Leave {
        name: String,
        /// `None`: nobody could say whether it is a member; then it leaves if it turns out to be one.
        id: Option<String>,
        /// Where the others reach it.
        url: String,
        /// It works, and is not wanted any more.
        alive: bool,
    },
    /// It joins.
    Join {
        name: String,
        url: String,
        /// The id that the member had at this place before; what data is left of it is set aside.
        replaces: Option<String>,
        /// All members at that moment as etcd's `initial-cluster` has them; `None` if it has data of this cluster already and only has to be promoted. In
        /// pods there always is one: whoever has data passes it over.
        initial_cluster: Option<String>,
        /// It has data of this cluster.
        has_data: bool,
    },
}

/// What is to happen to a cluster's list of members.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership {
    /// Wanted members that vote and have their data.
    pub(crate) established: BTreeSet<String>,
    /// Those of them that work, or are started before anybody comes or goes.
    pub(crate) up: BTreeSet<String>,
    /// Voters that work though they are not wanted any more.
    pub(crate) leaving: BTreeSet<String>,
    /// In this order.
    pub(crate) moves: Vec<Move>,
    /// The moment with the fewest to spare; `None`: there is none.
    pub(crate) margin: Option<Margin>,
    /// Peer URLs of those that are on their way in or out already.
    pub(crate) unfinished: Vec<String>,
    /// How many vote now.
    pub(crate) voters: usize,
    /// Those that lost their data and wait: there is nobody yet who could decide that others take their places.
    pub(crate) waiting: Vec<String>,
    /// Who stays is restarted before anybody leaves.
    pub(crate) restarts_first: bool,
}

impl Membership {
    /// All wanted members are what they are to be.
    pub(crate) fn settled(wanted: &Arguments) -> Self {
        let all: BTreeSet<String> = wanted.members.keys().cloned().collect();
        Self { established: all.clone(), up: all, voters: wanted.members.len(), ..Self::default() }
    }

    /// So many as are left can't spare one that is restarted, and those that are there now can.
    pub(crate) fn spares_more_now(&self, wanted: &Arguments) -> bool {
        let only_leave = !self.moves.is_empty() && self.moves.iter().all(|m| matches!(m, Move::Leave { alive: true, .. }));
        let has_spare = |count: usize| count > quorum(count);
        wanted.kubernetes.is_none() && only_leave && has_spare(self.voters) && !has_spare(wanted.members.len())
    }

    /// It joins in a pod that has data of the cluster already, and stays as it is until it votes.
    pub(crate) fn keeps_its_pod(&self, wanted: &Arguments, name: &str) -> bool {
        wanted.kubernetes.is_some() && self.moves.iter().any(|m| matches!(m, Move::Join { name: n, has_data: true, .. } if n == name))
    }

    /// Those that join.
    pub(crate) fn joining(&self) -> impl Iterator<Item = &str> {
        self.moves.iter().filter_map(|m| if let Move::Join { name, .. } = m { Some(name.as_str()) } else { None })
    }

    /// Those of them that begin with nothing: they are sent all that the cluster has.
    pub(crate) fn beginning(&self) -> impl Iterator<Item = &str> {
        self.moves.iter().filter_map(|m| if let Move::Join { name, has_data: false, .. } = m { Some(name.as_str()) } else { None })
    }
}

/// The moves of a cluster that was formed.
///
/// # Errors
/// Nobody can be asked, somebody unknown is a member, or too few would be left.
pub(crate) fn membership(scene: &Scene<'_>, wanted: &Arguments, members: &BTreeMap<String, Member<'_>>) -> Result<Membership, Diagnostics> {
    // With `-target` only some members are looked at, or none. Those that are left out stay what they are, and are taken to be up.
    let is_asked = |name: &str| scene.children.contains_key(&part(name, "etcd"));
    // Of who was given up half-way there is only a part, and it may be a member all the same.
    let in_view = |name: &str| is_asked(name) || !wanted.members.contains_key(name) && members.contains_key(name);
    if !members.keys().any(|name| is_asked(name)) {
        return Ok(Membership::settled(wanted));
    }
    // Who is stopped and starts is there by the time that others come and go.
    // Pods are started by Kubernetes, and not by this plan: of one that does not run nobody knows whether it will.
    let on_hosts = wanted.kubernetes.is_none();
    let is_lost = |name: &str| has_data(scene, name) == Some(false) || is_hollow(scene, name);
    let starts = |m: &Member<'_>| on_hosts && m.condition == Condition::Stopped && m.is_touched() && !is_lost(&m.name);
    // A host that can't be reached says nothing of its unit; that nobody gets through to the member says enough.
    let is_down = |m: &Member<'_>| seen(scene, &part(&m.name, "etcd"), "healthy").and_then(Value::as_bool) == Some(false);
    let works = |m: &Member<'_>| m.condition == Condition::Works && !is_down(m) || wanted.members.contains_key(&m.name) && starts(m);
    let told = roster(scene, wanted);
    // Without a majority nobody looks healthy, and who runs may be well.
    let is_silent = told.is_none();
    let runs = |m: &Member<'_>| is_silent && m.condition == Condition::Suspect;
    let is_alive = |name: &str| !in_view(name) || members.get(name).is_some_and(|m| works(m) || runs(m));
    let entries = told.unwrap_or_else(|| remembered(scene));
    let mut plan = Planner { wanted, now: entries.clone(), done: Membership::default(), is_alive: &is_alive, is_silent };
    plan.done.voters = entries.iter().filter(|e| !e.learner).count();
    let (mut strangers, mut without_data) = (Vec::new(), Vec::new());
    let (mut gone, mut alive, mut joins, mut others) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in &entries {
        let lost = is_lost(&entry.name);
        match (entry.name.is_empty(), wanted.members.contains_key(&entry.name)) {
            (true, _) => strangers.push(entry),
            (_, is_wanted) if !in_view(&entry.name) => drop(is_wanted.then(|| plan.done.established.insert(entry.name.clone()))),
            // Data that is there, and does not run, may be of the member before it: both go.
            (_, true) if on_hosts && !entry.started && has_data(scene, &entry.name) == Some(true) && !is_running(scene, &entry.name) => {
                gone.push(entry.clone());
                joins.push((entry.name.clone(), Some(entry.id.clone())));
            }
            (_, true) if !entry.started => joins.push((entry.name.clone(), None)),
            (_, true) if lost && is_running(scene, &entry.name) => without_data.push(entry.name.as_str()),
            (_, true) if lost => {
                gone.push(entry.clone());
                joins.push((entry.name.clone(), Some(entry.id.clone())));
            }
            // Nothing of it is lost that it would keep: it need not be brought back first.
            (_, true) if volumes::is_on_another(scene, &entry.name) && (entry.learner || !is_silent && !is_alive(&entry.name)) => {
                gone.push(entry.clone());
                joins.push((entry.name.clone(), Some(entry.id.clone())));
            }
            (_, true) if entry.learner => joins.push((entry.name.clone(), None)),
            (_, true) => {
                plan.done.established.insert(entry.name.clone());
                others.extend(volumes::is_on_another(scene, &entry.name).then(|| entry.clone()));
            }
            (_, false) if !entry.learner && is_asked(&entry.name) && is_alive(&entry.name) => {
                plan.done.leaving.insert(entry.name.clone());
                alive.push(entry.clone());
            }
            (_, false) => gone.push(entry.clone()),
        }
    }
    let known: BTreeSet<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let absent = wanted.members.keys().filter(|name| !known.contains(name.as_str()) && in_view(name));
    for name in absent {
        // A run that ended before it had read its id says nothing of whether it is a member, and its pod goes on by itself.
        match !on_hosts && is_silent && is_installed(scene, name) && has_data(scene, name) == Some(true) {
            true => drop(plan.done.established.insert(name.clone())),
            // Of one that joined the state only now nobody has noted an id, and what is left of its data goes aside all the same.
            false => {
                let nobody_knows = || is_hollow(scene, name).then(|| FORMER.to_owned());
                joins.push((name.clone(), former_id(scene, name).or_else(nobody_knows)));
            }
        }
    }
    // etcd has one on its way at a time: who was begun with comes first.
    let is_begun = |name: &String| known.contains(name.as_str()) && gone.iter().all(|e| e.name != *name);
    joins.sort_by_key(|(name, _)| (!is_begun(name), name.clone()));
    if is_silent {
        let unsaid = members.keys().filter(|name| !wanted.members.contains_key(*name) && !known.contains(name.as_str()));
        gone.extend(unsaid.filter_map(|name| Some(unknown(name, former_url(scene, wanted, name)?))));
    }
    plan.done.up = plan.done.established.iter().filter(|name| is_alive(name)).cloned().collect();
    if !without_data.is_empty() {
        return Err(runs_without_data(&without_data, &wanted.data_directory, &wanted.unit()).into());
    }
    if gone.is_empty() && alive.is_empty() && joins.is_empty() && others.is_empty() {
        return Ok(plan.done);
    }
    if is_silent && !others.is_empty() && joins.is_empty() {
        // Whoever could decide on it is told of by `volumes::all_come_back`.
        return Ok(plan.done);
    }
    // Kubernetes starts the others first, once there is again what it does that by.
    let is_sized = alive.is_empty()
        && !joins.is_empty()
        && joins.len() == gone.len()
        && gone.iter().all(|e| joins.iter().any(|(name, _)| *name == e.name));
    let is_all_up = !is_silent && plan.done.established.is_subset(&plan.done.up);
    if !on_hosts && is_sized && !is_all_up && plan.done.established.len() >= quorum(entries.len()) {
        plan.done.waiting = joins.into_iter().map(|(name, _)| name).collect();
        return Ok(plan.done);
    }
    if is_silent {
        if entries.is_empty() {
            return Err(nobody_in_view().into());
        }
        let up = entries.iter().filter(|e| is_alive(&e.name)).count();
        if up < quorum(entries.len()) || !on_hosts {
            let leaving = gone.iter().chain(&alive).map(|e| e.name.clone()).collect();
            return Err(silent(&joins.into_iter().map(|(name, _)| name).collect(), &leaving, on_hosts).into());
        }
    }
    let mut found = Diagnostics::new();
    found.extend((!strangers.is_empty()).then(|| unknown_members(&strangers)));
    let joining: BTreeSet<&str> = joins.iter().map(|(name, _)| name.as_str()).collect();
    found.extend(of_others(scene, wanted, members, &joining));
    let leads = |e: &Entry| members.get(&e.name).is_some_and(|m| m.leads);
    alive.sort_by_key(|e| (leads(e), e.name.clone()));
    others.sort_by_key(|e| (leads(e), e.name.clone()));
    plan.done.unfinished = entries.iter().chain(&gone).filter(|e| e.learner || !e.started).flat_map(|e| e.urls.clone()).collect();
    if is_silent {
        // Nobody says how far they are.
        let urls = joins.iter().filter_map(|(name, _)| peer_url(wanted, wanted.members.get(name)?));
        plan.done.unfinished.extend(urls);
    }
    if !joins.is_empty() || !alive.is_empty() || !on_hosts {
        // etcd takes no new member while one that it counts on is away; and who leaves without need must leave all others at work. In pods nobody is
        // repaired in the same change, since the StatefulSet that would make their pods anew is also how many there are.
        let away: Vec<&str> = plan.done.established.difference(&plan.done.up).map(String::as_str).collect();
        found.extend((!away.is_empty()).then(|| not_all_work(&away, on_hosts)));
    }

    // A learner with a volume that it is not to have leaves, however well it is.
    let steps = gone.iter().try_for_each(|entry| plan.leave(entry, entry.learner && volumes::is_on_another(scene, &entry.name)));
    let steps = steps.and_then(|()| joins.into_iter().try_for_each(|(name, replaces)| plan.join(scene, &name, replaces)));
    let steps = steps.and_then(|()| {
        others.iter().try_for_each(|entry| {
            plan.leave(entry, true)?;
            plan.join(scene, &entry.name, Some(entry.id.clone()))
        })
    });
    let steps = steps.and_then(|()| alive.iter().try_for_each(|entry| plan.leave(entry, true)));
    found.extend(steps.err());
    if found.is_empty() { Ok(plan.done) } else { Err(found) }
}

/// Nobody who begins does so on data of others, or in the place of one that leaves.
///
/// # Errors
/// Some do.
pub(crate) fn hosts_of_others(scene: &Scene<'_>, wanted: &Arguments, members: &BTreeMap<String, Member<'_>>) -> Result<(), Diagnostics> {
    let found = of_others(scene, wanted, members, &wanted.members.keys().map(String::as_str).collect());
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn of_others(scene: &Scene<'_>, wanted: &Arguments, members: &BTreeMap<String, Member<'_>>, who: &BTreeSet<&str>) -> Diagnostics {
    let mut found = Diagnostics::new();
    found.extend(who.iter().filter(|name| foreign_data(scene, name)).map(|name| other_data(name, wanted)));
    let renamed = members.keys().filter(|name| !wanted.members.contains_key(*name)).filter_map(|old| {
        let url = former_url(scene, wanted, old)?;
        wanted.members.iter().find(|(_, host)| peer_url(wanted, host).as_ref() == Some(&url)).map(|(new, _)| (old, new))
    });
    found.extend(renamed.map(|(old, new)| other_key(old, new)));
    found
}

struct Planner<'a> {
    wanted: &'a Arguments,
    /// The list of members as it will be.
    now: Vec<Entry>,
    done: Membership,
    is_alive: &'a dyn Fn(&str) -> bool,
    /// Nobody could be asked.
    is_silent: bool,
}

impl Planner<'_> {
    /// Notes how many are to spare now.
    fn spare(&mut self, up: usize) {
        let members = self.now.iter().filter(|e| !e.learner).count();
        let margin = Margin { members, up, quorum: quorum(members) };
        let spare = |m: &Margin| i64::try_from(m.up).unwrap_or(0) - i64::try_from(m.quorum).unwrap_or(0);
        if self.done.margin.as_ref().is_none_or(|worst| spare(&margin) < spare(worst)) {
            self.done.margin = Some(margin);
        }
    }

    /// Voters that work, of those that are there now. Who has joined works.
    fn up(&self) -> usize {
        let joined: Vec<&str> = self.done.joining().collect();
        self.now.iter().filter(|e| !e.learner && ((self.is_alive)(&e.name) || joined.contains(&e.name.as_str()))).count()
    }

    fn leave(&mut self, entry: &Entry, alive: bool) -> Result<(), Diagnostic> {
        self.now.retain(|e| e.name != entry.name || e.id != entry.id);
        let (members, up) = (self.now.iter().filter(|e| !e.learner).count(), self.up());
        if members == 0 || up < quorum(members) {
            return Err(too_few(entry, up, members));
        }
        self.done.moves.push(Move::Leave {
            name: entry.name.clone(),
            id: Some(entry.id.clone()).filter(|id| !id.is_empty()),
            url: entry.urls.first().cloned().unwrap_or_default(),
            alive,
        });
        self.spare(up);
        Ok(())
    }

    fn join(&mut self, scene: &Scene<'_>, name: &str, replaces: Option<String>) -> Result<(), Diagnostic> {
        let host = self.wanted.members.get(name);
        let Some(url) = host.and_then(|host| peer_url(self.wanted, host)) else { return Err(no_address(name)) };
        let known = self.now.iter().find(|e| e.name == name).cloned();
        let has_started = known.as_ref().map_or(self.is_silent && is_installed(scene, name), |e| e.started);
        let is_started = has_started && has_data(scene, name) == Some(true) && !is_hollow(scene, name);
        let id = known.as_ref().map(|e| e.id.clone()).unwrap_or_default();
        self.now.retain(|e| e.name != name);
        self.now.push(Entry {
            id,
            name: name.to_owned(),
            own_name: name.to_owned(),
            urls: vec![url.clone()],
            learner: false,
            started: true,
        });
        let in_pods = self.wanted.kubernetes.is_some();
        let initial_cluster = (!is_started || in_pods).then(|| initial_cluster(&self.now, in_pods.then_some(name)));
        self.done.moves.push(Move::Join { name: name.to_owned(), url, replaces, initial_cluster, has_data: is_started });
        let up = self.up();
        self.spare(up);
        Ok(())
    }
}

/// One of which nobody says whether it is a member by now.
fn unknown(name: &str, url: String) -> Entry {
    Entry { id: String::new(), name: name.to_owned(), own_name: String::new(), urls: vec![url], learner: true, started: false }
}

/// `alone`: only this one may start by it. etcd compares the URLs and asks for its own name, so the others may be called anything.
fn initial_cluster(entries: &[Entry], alone: Option<&str>) -> String {
    let called = |e: &Entry| {
        let name = [&e.name, &e.own_name, &e.id].into_iter().find(|n| !n.is_empty()).cloned().unwrap_or_default();
        if alone.is_none_or(|alone| alone == name) { name } else { format!("{name}.is-there") }
    };
    let mut all: Vec<String> = entries.iter().flat_map(|e| e.urls.iter().map(move |url| format!("{}={url}", called(e)))).collect();
    all.sort();
    all.join(",")
}

/// Its unit runs and is left alone.
fn is_running(scene: &Scene<'_>, name: &str) -> bool {
    let unit = scene.children.get(&part(name, "unit"));
    unit.is_some_and(|c| is_unchanged(c.change) && c.observed.is_some_and(|o| o.get("active").and_then(Value::as_bool) == Some(true)))
}

/// Who runs though its data is gone, with what to do about it.
pub(crate) fn run_without_data(seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
    let is = |object: &Object, attribute: &str| object.get(attribute).and_then(Value::as_bool) == Some(true);
    let text = |object: &Object, attribute: &str| object.get(attribute).and_then(Value::as_str).unwrap_or_default().to_owned();
    let data = seen.keys().filter_map(|path| member_of(path).filter(|name| **path == *part_of(name, "directory", "data")));
    let empty = data.filter_map(|name| {
        let path = part_of(name, "directory", "data");
        let directory = seen.get(path.as_slice()).filter(|d| is(d, "empty") || is(d, "hollow"))?;
        let unit = seen.get(part(name, "unit").as_slice()).filter(|u| is(u, "active"))?;
        let found = runs_without_data(&[name], &text(directory, "path"), &text(unit, "name"));
        Some((path, Diagnostic { severity: Severity::Warning, ..found }))
    });
    empty.collect()
}

/// A run has made what runs it.
fn is_installed(scene: &Scene<'_>, name: &str) -> bool {
    scene.children.get(&runner(name, scene)).is_some_and(|c| c.in_state)
}

/// The id that the state remembers of a member that is not in the list any more.
fn former_id(scene: &Scene<'_>, name: &str) -> Option<String> {
    let change = scene.children.get(&part(name, "etcd"))?.change;
    sides(change, "member_id").0?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

/// There is something in its data directory or a volume for it, and this state has not made that.
fn foreign_data(scene: &Scene<'_>, name: &str) -> bool {
    let places = [part_of(name, "directory", "data"), part(name, "claim")];
    let place = places.iter().find_map(|path| scene.children.get(path));
    place.is_some_and(|d| !d.in_state && d.observed.is_some()) && has_data(scene, name) == Some(true)
}
