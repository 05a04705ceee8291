//! What a plan does to a control plane, in plain words.

use std::collections::BTreeSet;

use karmaform_model::{Action, Change, ChildChange, ChildStep, Risk, Scene, Value};

use super::arguments::Arguments;
use super::choreography::is_unchanged;
use super::encryption;
use super::hosts::{self, Hosts};
use super::places::{component_of, part};
use super::{members, moving, secrets, store};
use crate::versions::{self, Component};

/// What happens to a component's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Made,
    Started,
    Restarted,
    Scaled,
    Removed,
}

/// Of a change, or of making the control plane.
pub(crate) fn of_change(scene: &Scene<'_>, wanted: &Arguments) -> Vec<String> {
    let mut lines = Vec::new();
    let is_first =
        !scene.children.values().any(|c| c.in_state && c.resource_type != "terraform_data" && !c.resource_type.starts_with("tls_"));
    let made = with(scene, Fate::Made);
    if is_first {
        let place = wanted.target.hosts().map(on_hosts).unwrap_or_default();
        lines.push(format!("installs Karmada {} ({} components){place}", wanted.version.text, wanted.components.len()));
        lines.extend(untested(wanted));
    } else {
        lines.extend(upgrade(scene, wanted));
        for component in &made {
            lines.push(if component.is_addon() {
                format!("installs the addon {}{}", component.name(), added(scene, *component))
            } else {
                format!("installs {}{}", spoken(*component), added(scene, *component))
            });
        }
    }
    let moves = moving::impact(scene, wanted);
    let is_moved = moving::source(scene, wanted).is_some();
    let stops = |component: &Component| is_moved && secrets::uses_etcd(*component);
    for component in with(scene, Fate::Restarted).into_iter().filter(|c| !stops(c)) {
        lines.push(match wanted.target.hosts() {
            Some(_) => restart(component, wanted.replicas(component), ("host", "host")),
            None => restart(component, replicas(scene, component), ("pod", "replica")),
        });
    }
    for component in with(scene, Fate::Started) {
        lines.push(format!("starts {} on {}", spoken(component), homes(scene, component, Fate::Started).join(", ")));
    }
    for component in with(scene, Fate::Scaled) {
        let (before, after) = counts(scene, component);
        let line = format!("scales {} from {} to {}", spoken(component), number(before), number(after));
        lines.push(if after == Some(0) { format!("{line}: {}", without(component)) } else { line });
    }
    for component in with(scene, Fate::Removed) {
        lines.push(if component.is_addon() && !wanted.components.iter().any(|(c, _)| *c == component) {
            format!("removes the addon {}", component.name())
        } else {
            format!("stops {} on {}", spoken(component), homes(scene, component, Fate::Removed).join(", "))
        });
    }
    lines.extend(moves);
    if let Some(hosts) = wanted.target.hosts() {
        lines.extend(hosts::impact(scene, wanted, hosts));
        lines.extend(hosts::preflight::impact(scene, wanted, hosts));
    }
    lines.extend(encryption::impact(scene));
    let renewed = scene.children.values().any(|c| c.resource_type == "tls_certificate" && matches!(c.change, Change::Update { .. }));
    if renewed && with(scene, Fate::Restarted).is_empty() {
        lines.push("no restart for new certificates: the components read their files again".to_owned());
    }
    if scene.children.iter().any(|(p, c)| *p == part("kubeconfig_secret") && c.in_state && !is_unchanged(c.change)) && !is_first {
        lines.push("the administrator's kubeconfig changes: it has to be handed out again".to_owned());
    }
    lines
}

/// That nobody tried these versions together.
fn untested(wanted: &Arguments) -> Option<String> {
    let numbers: Vec<u32> = wanted.kube_version.split('.').filter_map(|p| p.parse().ok()).collect();
    let [_, minor, patch] = numbers[..] else { return None };
    versions::check_kube(&wanted.version, (minor, patch)).map(|why| format!("mind the versions: {}", why.trim_end_matches('.')))
}

/// Of a destruction.
pub(crate) fn of_destroy(scene: &Scene<'_>) -> Vec<String> {
    let removed = with(scene, Fate::Removed);
    let mut lines = Vec::new();
    if !removed.is_empty() {
        lines.push(format!("stops and removes the control plane ({} components)", removed.len()));
    }
    let goes = |path: &[ChildStep]| scene.children.get(path).filter(|c| c.change.action() == Action::Delete);
    if let Some(prefix) = goes(&store::prefix_path()) {
        lines.push(data(prefix));
    } else if !lines.is_empty() {
        lines.push("what else is in the Karmada API stays in etcd".to_owned());
    }
    if !removed.is_empty() {
        lines.extend(members::left_behind(scene));
    }
    lines
}

/// What a destruction takes with it for good.
pub(crate) fn risk_of_destroy(scene: &Scene<'_>) -> Risk {
    let prefix = scene.children.get(&store::prefix_path()).filter(|c| c.change.action() == Action::Delete);
    let is_deleted = |c: &&ChildChange<'_>| c.change.before().and_then(|b| b.get("on_destroy")).and_then(Value::as_str) == Some("delete");
    Risk { data_loss: prefix.filter(is_deleted).map(data).into_iter().collect(), ..Risk::default() }
}

/// What becomes of what is in etcd.
fn data(prefix: &ChildChange<'_>) -> String {
    let text = |name: &str| prefix.change.before().and_then(|b| b.get(name)).and_then(Value::as_str);
    let place = text("prefix").unwrap_or(store::PREFIX);
    if text("on_destroy") != Some("delete") {
        return format!("everything in the Karmada API stays in etcd, below {place}, and goes only if that etcd does");
    }
    match prefix.observed.and_then(|o| o.get("keys")).and_then(Value::as_i64) {
        Some(keys) => format!("data will be deleted: all {keys} keys below {place} in etcd, which is everything in the Karmada API"),
        None => format!("data will be deleted: all keys below {place} in etcd, which is everything in the Karmada API"),
    }
}

fn upgrade(scene: &Scene<'_>, wanted: &Arguments) -> Vec<String> {
    let before = |name: &str| scene.before.and_then(|b| b.get(name)).and_then(Value::as_str).map(|v| v.trim_start_matches('v').to_owned());
    let line = |what: &str, old: Option<String>, new: &str| old.filter(|o| o != new).map(|old| format!("{what} {old} becomes {new}"));
    let lines = [
        line("Karmada", before("version"), &wanted.version.text),
        line("Kubernetes behind the Karmada API", before("kube_version"), &wanted.kube_version),
    ];
    let mut lines: Vec<String> = lines.into_iter().flatten().collect();
    if !lines.is_empty() {
        lines.extend(untested(wanted));
    }
    lines
}

/// The hosts of an installation.
fn on_hosts(hosts: &Hosts) -> String {
    let names: Vec<&str> = hosts.all.keys().map(String::as_str).collect();
    if names.len() == 1 { format!(" on the host {}", names[0]) } else { format!(" on {} hosts: {}", names.len(), names.join(", ")) }
}

/// The hosts that a component comes to, if it runs on hosts.
fn added(scene: &Scene<'_>, component: Component) -> String {
    let names = homes(scene, component, Fate::Made);
    if names.is_empty() { String::new() } else { format!(" on {}", names.join(", ")) }
}

/// `piece` is of what it consists, `other` what serves meanwhile.
fn restart(component: Component, replicas: Option<i64>, (piece, other): (&str, &str)) -> String {
    let one = format!("1 {other}");
    let what = if matches!(component, Component::ApiServer) { "the Karmada API".to_owned() } else { spoken(component) };
    match (component, replicas) {
        // A new pod comes first, but watches and open requests of the old one break off, and nobody else is there if the new one fails.
        (Component::ApiServer, Some(1)) => format!("the Karmada API restarts: {one}, so it is unavailable for moments"),
        (_, Some(0)) => format!("changes {what}, of which no {piece} runs"),
        (_, Some(1)) => format!("restarts {what}: {one}; {} meanwhile", without(component)),
        (_, Some(2)) => format!("restarts {what}, one {piece} at a time; the other {other} serves"),
        (_, Some(n)) => format!("restarts {what}, one {piece} at a time; the other {} {other}s serve", n - 1),
        (_, None) => format!("restarts {what}"),
    }
}

/// What is missing while a component does not run.
fn without(component: Component) -> &'static str {
    match component {
        Component::ApiServer => "the Karmada API is unavailable",
        Component::AggregatedApiServer => "clusters can't be read or changed",
        Component::KubeControllerManager => "nothing is garbage-collected, and no member registers",
        Component::ControllerManager => "nothing is propagated, and no status is collected",
        Component::Scheduler => "nothing is scheduled",
        Component::Webhook => "policies, bindings and works can't be written",
        Component::Search => "searches fail",
        Component::Descheduler => "nothing is descheduled",
        Component::MetricsAdapter => "there are no metrics of members",
    }
}

/// How a component is called in a sentence.
fn spoken(component: Component) -> String {
    match component {
        Component::ApiServer => "the Karmada API server".to_owned(),
        Component::KubeControllerManager => "kube-controller-manager".to_owned(),
        other => format!("the {}", other.name().replace('-', " ").replace("apiserver", "API server")),
    }
}

fn number(count: Option<i64>) -> String {
    count.map_or_else(|| "?".to_owned(), |n| n.to_string())
}

/// The components whose pods or units have this fate.
fn with(scene: &Scene<'_>, wanted: Fate) -> Vec<Component> {
    let mut found = Vec::new();
    for (path, child) in &scene.children {
        let named = component_of(path, "component").or_else(|| hosts::unit_at(path).map(|(_, name)| name));
        let Some(component) = named.and_then(Component::argument) else { continue };
        if fate(child.change) == Some(wanted) && !found.contains(&component) {
            found.push(component);
        }
    }
    found
}

/// The hosts on which a component's unit has this fate.
fn homes<'a>(scene: &'a Scene<'_>, component: Component, wanted: Fate) -> Vec<&'a str> {
    let at = |(path, child): (&'a Vec<ChildStep>, &'a ChildChange<'_>)| {
        let (host, name) = hosts::unit_at(path)?;
        (name == component.name() && fate(child.change) == Some(wanted)).then_some(host)
    };
    scene.children.iter().filter_map(at).collect()
}

fn fate(change: &Change) -> Option<Fate> {
    match change {
        Change::Create { .. } => Some(Fate::Made),
        Change::Delete { .. } => Some(Fate::Removed),
        Change::Replace { .. } => Some(Fate::Restarted),
        // A unit that did not run; else its file, or what it reads when it starts.
        Change::Update { before, .. } if before.contains_key("content") => {
            let ran = before.get("active").and_then(Value::as_bool) != Some(false);
            Some(if ran { Fate::Restarted } else { Fate::Started })
        }
        Change::Update { before, after } => {
            let spec = |o: &karmaform_model::Object| o.get("manifest").and_then(|m| m.get("spec")).cloned();
            let (before, after) = (spec(before)?, spec(after)?);
            let differing = differing(&before, &after);
            if differing.contains("template") { Some(Fate::Restarted) } else { differing.contains("replicas").then_some(Fate::Scaled) }
        }
        _ => None,
    }
}

/// The names under which two objects differ.
fn differing(a: &Value, b: &Value) -> BTreeSet<String> {
    let names = [a, b].into_iter().filter_map(Value::as_entries).flat_map(|e| e.keys().cloned());
    let plain = |v: Option<&Value>| v.cloned().map(Value::without_marks);
    names.filter(|n| plain(a.get(n)) != plain(b.get(n))).collect()
}

fn counts(scene: &Scene<'_>, component: Component) -> (Option<i64>, Option<i64>) {
    let path = super::places::component(component);
    let count = |object: Option<&karmaform_model::Object>| object?.get("manifest")?.get("spec")?.get("replicas")?.as_i64();
    scene.children.get(&path).map_or((None, None), |c| (count(c.change.before()), count(c.change.after())))
}

fn replicas(scene: &Scene<'_>, component: Component) -> Option<i64> {
    counts(scene, component).1
}
