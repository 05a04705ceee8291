//! The cluster's own list of members, as one of them told it a moment ago. It alone says who votes: not the state, and not the configuration.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Change, ChildChange, ChildStep, Object, Scene, Value};

use super::arguments::Arguments;
use super::condition::{member_of, sides};
use super::hosts::Host;
use super::places::part;

/// A member as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Hexadecimal digits.
    pub(crate) id: String,
    /// What it is called here; empty for one that nobody here knows.
    pub(crate) name: String,
    /// What it calls itself; empty as long as it has not started.
    pub(crate) own_name: String,
    pub(crate) urls: Vec<String>,
    pub(crate) learner: bool,
    pub(crate) started: bool,
}

/// What a member that works says of all of them, each with its name here. `None`: none could be asked.
pub(crate) fn roster(scene: &Scene<'_>, wanted: &Arguments) -> Option<Vec<Entry>> {
    let mut entries = told(scene)?;
    name(&mut entries, scene, wanted);
    Some(entries)
}

/// The same without names of here.
pub(crate) fn told(scene: &Scene<'_>) -> Option<Vec<Entry>> {
    let told = |seen: &Object| {
        let works = seen.get("healthy").and_then(Value::as_bool) == Some(true);
        let items = seen.get("roster").filter(|_| works)?.as_items()?;
        (!items.is_empty()).then(|| items.iter().filter_map(entry).collect::<Vec<_>>())
    };
    scene.children.values().filter(|c| c.resource_type == "etcd_member").find_map(|c| told(c.observed?))
}

/// What the state remembers of the members, each with its name. Good enough to plan with while none can be asked: every operation looks again before it acts.
pub(crate) fn remembered(scene: &Scene<'_>) -> Vec<Entry> {
    let of = |(path, child): (&Vec<ChildStep>, &ChildChange<'_>)| {
        let known = child.change.before().filter(|_| child.resource_type == "etcd_member" && child.in_state)?;
        let text = |attribute: &str| known.get(attribute).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        let name = member_of(path)?.to_owned();
        Some(Entry { id: text("member_id")?, own_name: name.clone(), name, urls: vec![text("peer_url")?], learner: false, started: true })
    };
    scene.children.iter().filter_map(of).collect()
}

/// Gives entries their names here: by where they are, and else by what they call themselves. Whoever calls itself as another one does that is there is not
/// known here: it may have been added by hand with files of that one.
fn name(entries: &mut [Entry], scene: &Scene<'_>, wanted: &Arguments) {
    let urls = urls(scene, wanted);
    for entry in entries.iter_mut() {
        let by_url = urls.iter().find(|(_, url)| entry.urls.contains(url)).map(|(name, _)| name.clone());
        entry.name = by_url.unwrap_or_default();
    }
    let mut taken: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    for entry in entries.iter_mut().filter(|entry| entry.name.is_empty()) {
        let is_known = scene.children.keys().any(|path| member_of(path) == Some(entry.own_name.as_str()));
        if is_known && taken.insert(entry.own_name.clone()) {
            entry.name.clone_from(&entry.own_name);
        }
    }
}

fn entry(value: &Value) -> Option<Entry> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let flag = |name: &str| value.get(name).and_then(Value::as_bool);
    let urls = value.get("peer_urls")?.as_items()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Some(Entry {
        id: text("id")?,
        name: String::new(),
        own_name: text("name")?,
        urls,
        learner: flag("learner")?,
        started: flag("started")?,
    })
}

/// Where the others reach a member; `None` while that is not known.
pub(crate) fn peer_url(wanted: &Arguments, host: &Host) -> Option<String> {
    wanted.url(host, wanted.peer_port).iter().map(Value::as_str).collect()
}

/// Peer URLs by name: of those that are wanted, and of those that were.
fn urls(scene: &Scene<'_>, wanted: &Arguments) -> BTreeMap<String, String> {
    let mut urls = BTreeMap::new();
    for name in scene.children.keys().filter_map(|path| member_of(path)) {
        if let Some(url) = former_url(scene, wanted, name) {
            urls.insert(name.to_owned(), url);
        }
    }
    urls.extend(wanted.members.iter().filter_map(|(name, host)| Some((name.clone(), peer_url(wanted, host)?))));
    urls
}

/// By what the state remembers of the member, or of what was written for it before it first started; in pods, by its name.
pub(crate) fn former_url(scene: &Scene<'_>, wanted: &Arguments, name: &str) -> Option<String> {
    let of = |path: &str, attribute: &str| {
        let change = scene.children.get(&part(name, path))?.change;
        sides(change, attribute).0?.as_str().map(str::to_owned)
    };
    let written = || written_url(scene.children.get(&part(name, "environment"))?.change);
    let by_name = || {
        let place = wanted.kubernetes.as_ref()?;
        place.ordinal(name).and_then(|_| peer_url(wanted, &place.host(name)))
    };
    of("etcd", "peer_url").filter(|url| !url.is_empty()).or_else(written).or_else(by_name)
}

/// By a member's environment as it was.
pub(crate) fn written_url(environment: &Change) -> Option<String> {
    let content = sides(environment, "content").0?.as_str()?;
    content.lines().find_map(|line| line.strip_prefix("ETCD_INITIAL_ADVERTISE_PEER_URLS=").map(str::to_owned))
}
