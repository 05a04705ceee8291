//! A control plane goes to another etcd, with all that it keeps: what is below its prefix is copied while the API serves; all that use etcd stop; what has
//! changed since is copied, and both etcds note where it counts from then on; they start with the new one.
//!
//! It is known by the arguments: an etcd that has neither an endpoint nor, where both are an `etcd_cluster`'s, a CA in common with the one of the last apply
//! is another one. Whether it really is shows when both are asked.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{
    Action, Arg, ChildStep, Choreography, Diagnostic, GateSpec, Object, Point, Renewed, Risk, Scene, Told, Type, Value, same,
};

use super::arguments::Arguments;
use super::choreography::{ANSWERS, is_unchanged};
use super::places::{component, secret};
use super::secrets::uses_etcd;
use super::store::{PREFIX, prefix_path};
use super::target::Target;
use super::{hosts, store};
use crate::versions::Component;

/// The operation while all run.
const COPIED: &str = "what is in etcd is copied";
/// The operation when all have stopped.
const MOVED: &str = "the new etcd has everything";
/// How long copying may take, in seconds: a database of 8 GiB over 20 Mbit/s, and raising the revision before.
const COPY_LIMIT: u64 = 2 * 3_600;
/// How long the rest may take, in seconds.
const MOVE_LIMIT: u64 = 600;
/// How long components may take to be there again, in seconds: systemd starts one again after 2 s, and what it needs may not be there yet.
const RUN_LIMIT: u64 = 180;
/// How long what uses etcd may take to stop, in seconds: API servers wait for open watches.
const STOP_LIMIT: u64 = 180;

/// The etcd of the last apply, if the one that is wanted is another, and what there is goes along.
pub(crate) fn source<'a>(scene: &Scene<'a>, wanted: &Arguments) -> Option<&'a Object> {
    other(scene, wanted).filter(|_| !adopts(wanted))
}

fn adopts(wanted: &Arguments) -> bool {
    wanted.etcd.adopt.as_bool() == Some(true)
}

/// The etcd of the last apply, if the one that is wanted is another.
pub(crate) fn other<'a>(scene: &Scene<'a>, wanted: &Arguments) -> Option<&'a Object> {
    let before = scene.before?.get("etcd")?.as_entries()?;
    let now = &wanted.etcd;
    let id = before.get("cluster_id").filter(|id| !id.is_null());
    let texts = |value: Option<&'a Value>| value.and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str);
    let was: BTreeSet<&str> = texts(before.get("endpoints")).collect();
    let endpoints = now.endpoints.as_items().into_iter().flatten().filter_map(Value::as_str);
    let is_same_id = id.is_some_and(|id| same(Some(id), Some(&now.cluster_id)));
    // Restored, it may be on other hosts, and is the same all the same; so it is an `etcd_cluster` with CAs of before.
    let of_before = before.get("ca_certificate").and_then(Value::as_str).map(certificates).unwrap_or_default();
    let is_restored = id.is_some()
        && !now.cluster_id.is_null()
        && now.ca_certificate.as_str().is_some_and(|now| !certificates(now).is_disjoint(&of_before));
    let is_other = !is_same_id && !is_restored && !was.is_empty() && !endpoints.into_iter().any(|e| was.contains(e));
    is_other.then_some(before)
}

/// That what there is stays behind is agreed to by name: no difference shows it.
pub(crate) fn risk(scene: &Scene<'_>, wanted: &Arguments) -> Risk {
    let leaves = adopts(wanted) && other(scene, wanted).is_some();
    let confirm = leaves.then(|| format!("goes to another etcd, and leaves behind all that the Karmada API has below {}", prefix(wanted)));
    Risk { confirm, ..Risk::default() }
}

/// The certificates in a bundle.
fn certificates(bundle: &str) -> BTreeSet<&str> {
    bundle.split_inclusive("-----END CERTIFICATE-----").map(str::trim).filter(|pem| !pem.is_empty()).collect()
}

/// Why it can't be done, or why what there is must not be used.
pub(crate) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Option<Diagnostic> {
    if source(scene, wanted).is_none() {
        return not_to_be_used(scene, wanted).filter(|_| !adopts(wanted)).map(|found| found.at(scene.address));
    }
    let users = wanted.components.iter().map(|(c, _)| *c).filter(|c| uses_etcd(*c));
    let all = users.flat_map(|c| wanted.runners(c)).chain([prefix_path()]);
    if let Some(missing) = all.into_iter().find(|path| !scene.children.contains_key(path)) {
        let detail = format!(
            "All that use etcd go to another one together: what one of them writes the others would not see. {} is not among the targets.",
            scene.address.with_child(&missing)
        );
        let found = Diagnostic::error("A move of a part to another etcd", detail);
        return Some(found.with_hint("With `-target`, take the whole control plane.").at(scene.address));
    }
    let away: Vec<&str> = hosts::hosts_away(scene).into_iter().collect();
    (!away.is_empty()).then(|| {
        let detail = format!(
            "All that use etcd have to stop before another one is used, and {} can't be reached: an API server there would go on with the old one, and \
             what it writes would be lost.",
            away.join(", ")
        );
        Diagnostic::error("A move to another etcd while a host is away", detail)
            .with_hint("See to that host, or take it out of `hosts` in an apply before.")
            .at(scene.address)
    })
}

/// What was seen of the prefix.
fn is_seen(scene: &Scene<'_>, fact: &str) -> bool {
    let seen = scene.children.get(&prefix_path()).and_then(|child| child.observed);
    seen.and_then(|seen| seen.get(fact)).and_then(Value::as_bool) == Some(true)
}

/// Why what is in the etcd must not be used as it is.
fn not_to_be_used(scene: &Scene<'_>, wanted: &Arguments) -> Option<Diagnostic> {
    let place = format!("{} in the etcd at {}", prefix(wanted), places(&wanted.etcd.endpoints));
    let counts = "If what is here is to count all the same, say so with `adopt_etcd_data = true`.";
    if is_seen(scene, "is_left") {
        let detail = format!("What was below {place} was moved to another one: what was written since is there, and not here.");
        let found = Diagnostic::error("An etcd that was left", detail);
        return Some(
            found
                .with_hint("Write that one into `etcd`, plan and apply; to go back, do that then, in a change of its own.")
                .with_hint(counts),
        );
    }
    if is_seen(scene, "is_unfinished") {
        let detail = format!("What is below {place} is a copy that was never finished: there may be more in the etcd that it comes from.");
        let found = Diagnostic::error("An etcd that does not have everything", detail);
        return Some(found.with_hint("Write the etcd of before into `etcd`, plan and apply; then move once more.").with_hint(counts));
    }
    // Never applied to its end, so nobody knows which etcd it used; but it does have API servers, and nothing is where they should have it.
    let in_state = |path: &[ChildStep]| scene.children.get(path).filter(|c| c.in_state);
    let has_servers = || wanted.runners(Component::ApiServer).iter().any(|path| in_state(path).is_some());
    let is_gone = || in_state(&prefix_path()).is_some_and(|c| c.change.action() == Action::Create);
    (scene.before.is_none() && is_gone() && has_servers()).then(|| {
        let detail = format!(
            "The control plane is there, no apply of it has ended yet, and there is nothing below {place}: it would be an empty one. It may be another etcd \
             than it had."
        );
        Diagnostic::error("An etcd with nothing in it", detail)
            .with_hint("If it had another one, write that into `etcd` and apply to the end; then it can move.")
            .with_hint("If it is to begin with nothing, say so with `adopt_etcd_data = true`.")
    })
}

/// What the plan says of it.
pub(crate) fn impact(scene: &Scene<'_>, wanted: &Arguments) -> Vec<String> {
    let Some(before) = other(scene, wanted) else { return Vec::new() };
    let (old, new) = (before.get("endpoints").map(places).unwrap_or_default(), places(&wanted.etcd.endpoints));
    if adopts(wanted) {
        let left =
            format!("goes from the etcd at {old} to the one at {new} with what is there below {}: `adopt_etcd_data`", prefix(wanted));
        return vec![left, "all that the Karmada API has now is left behind".to_owned()];
    }
    vec![
        format!("moves everything below {} from the etcd at {old} to the one at {new}", prefix(wanted)),
        "it is copied while the Karmada API serves; then all API servers stop until the rest is copied too: the Karmada API is unavailable from then until they \
         have started"
            .to_owned(),
        "what there is in the old etcd is not used any more".to_owned(),
    ]
}

/// Orders it, if there is one.
pub(crate) fn order(scene: &Scene<'_>, wanted: &Arguments, choreography: &mut Choreography) {
    let Some(before) = source(scene, wanted) else {
        if adopts(wanted) && (is_seen(scene, "is_left") || is_seen(scene, "is_unfinished")) {
            // Its mark says so from then on.
            choreography.renewed.push(Renewed { child: prefix_path(), attributes: &["cluster_id"] });
        }
        return;
    };
    let part = |name: &str| before.get(name).cloned().unwrap_or_else(|| Value::null(Type::Any));
    let arguments = BTreeMap::from([
        ("cluster".to_owned(), Arg::child(&prefix_path(), "cluster")),
        ("from".to_owned(), store::connection(wanted, format!("{} as it was", scene.address), part)),
        ("prefix".to_owned(), Arg::child(&prefix_path(), "prefix")),
        ("owner_uid".to_owned(), Arg::child(&prefix_path(), "owner_uid")),
    ]);
    let mut operate = |name: &str, gate: &str, arguments: BTreeMap<String, Arg>, limit: u64| {
        choreography.gates.push(GateSpec { name: name.to_owned(), gate: gate.to_owned(), arguments, limit, acts: true });
    };
    operate(COPIED, "etcd_copy", arguments.clone(), COPY_LIMIT);
    operate(MOVED, "etcd_move", arguments, MOVE_LIMIT);
    let stops = stops(scene, wanted);
    for (name, gate, arguments) in &stops {
        operate(name, gate, arguments.clone(), STOP_LIMIT);
    }
    let gate = |name: &str| Point::Gate(name.to_owned());
    let mut order = |first: Point, second: Point| choreography.orderings.push((first, second));
    order(Point::Child(prefix_path()), gate(COPIED));
    order(gate(COPIED), gate(MOVED));
    for (name, ..) in &stops {
        order(gate(COPIED), gate(name));
        order(gate(name), gate(MOVED));
    }
    // Whoever runs meanwhile must not find the new etcd's certificates, and none may start before all is there.
    for path in scene.children.iter().filter(|(path, child)| !is_unchanged(child.change) && follows(path)).map(|(path, _)| path) {
        order(gate(MOVED), Point::Child(path.clone()));
    }
    come_back(scene, choreography);
    choreography.told.push(Told { child: prefix_path(), attribute: "is_copy", value: true.into() });
    choreography.renewed.push(Renewed { child: prefix_path(), attributes: &["cluster_id"] });
}

/// What uses etcd where it is, and has to stop: by the name of the step, with its operation.
fn stops(scene: &Scene<'_>, wanted: &Arguments) -> Vec<(String, &'static str, BTreeMap<String, Arg>)> {
    let changes = |path: &[ChildStep]| scene.children.get(path).is_some_and(|c| c.in_state && !is_unchanged(c.change));
    let Target::Kubernetes(host) = &wanted.target else {
        let stop = |(host, arguments)| (format!("what uses etcd on {host} has stopped"), "ssh_stop", arguments);
        return units(scene, |path, component| uses_etcd(component) && changes(path)).into_iter().map(stop).collect();
    };
    let stop = |of: Component| {
        let arguments = BTreeMap::from([
            ("cluster".to_owned(), host.connection.clone().into()),
            ("namespace".to_owned(), wanted.namespace.as_str().into()),
            ("deployment".to_owned(), wanted.object_name(of).into()),
        ]);
        (format!("{} has stopped", of.name()), "kubernetes_stop", arguments)
    };
    Component::ALL.into_iter().filter(|c| uses_etcd(*c) && changes(&component(*c))).map(stop).collect()
}

/// Whoever lost its lease meanwhile ended, and is started again: on hosts by systemd, which a gate waits for. In pods a gate does so in any case.
fn come_back(scene: &Scene<'_>, choreography: &mut Choreography) {
    let stays = |path: &[ChildStep], _| scene.children.get(path).is_some_and(|c| c.change.action() != Action::Delete);
    let changes =
        |path: &&Vec<ChildStep>| hosts::unit_at(path).is_some() && scene.children.get(*path).is_some_and(|c| !is_unchanged(c.change));
    let units_that_change: Vec<&Vec<ChildStep>> = scene.children.keys().filter(changes).collect();
    for (host, arguments) in units(scene, stays) {
        let name = format!("all components run on {host}");
        let started = units_that_change.iter().map(|path| Point::Child((*path).clone()));
        let before = started.chain([Point::Gate(ANSWERS.to_owned())]);
        choreography.orderings.extend(before.map(|point| (point, Point::Gate(name.clone()))));
        choreography.gates.push(GateSpec { name, gate: "ssh_runs".to_owned(), arguments, limit: RUN_LIMIT, acts: false });
    }
}

/// Units of components by their hosts, as an operation has them.
fn units<'s>(scene: &'s Scene<'_>, which: impl Fn(&[ChildStep], Component) -> bool) -> BTreeMap<&'s str, BTreeMap<String, Arg>> {
    let mut on: BTreeMap<&str, (Value, Vec<&str>)> = BTreeMap::new();
    for (path, child) in &scene.children {
        let Some((host, name)) = hosts::unit_at(path) else { continue };
        let Some(side) = child.change.before().or_else(|| child.change.after()) else { continue };
        if let (Some(component), Some(way), Some(unit)) =
            (Component::argument(name), side.get("host"), side.get("name").and_then(Value::as_str))
            && which(path, component)
        {
            on.entry(host).or_insert_with(|| (way.clone(), Vec::new())).1.push(unit);
        }
    }
    let arguments = |(way, units): (Value, Vec<&str>)| {
        BTreeMap::from([("host".to_owned(), way.into()), ("units".to_owned(), Value::strings(units).into())])
    };
    on.into_iter().map(|(host, found)| (host, arguments(found))).collect()
}

/// True for what uses etcd, and for what that reads.
fn follows(path: &[ChildStep]) -> bool {
    let users = || Component::ALL.into_iter().filter(|c| uses_etcd(*c));
    let unit = hosts::unit_at(path).and_then(|(_, name)| Component::argument(name)).is_some_and(uses_etcd);
    unit || users().any(|c| *path == component(c) || *path == secret(c) || hosts::belongs(path, c))
}

/// The prefix, for a sentence.
fn prefix(wanted: &Arguments) -> &str {
    wanted.etcd.prefix.as_str().unwrap_or(PREFIX)
}

/// Endpoints, for a sentence.
fn places(endpoints: &Value) -> String {
    let names: Vec<&str> = endpoints.as_items().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { "endpoints that are known later".to_owned() } else { names.join(", ") }
}
