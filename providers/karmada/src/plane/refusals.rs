//! Changes that this version does not make: they are refused in the plan.

use karmaform_model::{ChildStep, Diagnostic, Diagnostics, Scene, Value};

use super::arguments::Arguments;
use super::schema::NAMESPACE;
use super::store::PREFIX;
use super::{encryption, host, hosts};
use crate::versions::{Component, Version};

/// Finds every reason not to make this plan.
pub(crate) fn check(scene: &Scene<'_>, wanted: &Arguments) -> Diagnostics {
    let mut found = Diagnostics::new();
    let Some(before) = scene.before else {
        not_known(scene, wanted, &mut found);
        ports_in_use(scene, wanted, &mut found);
        return found.into_iter().map(|d| d.at(scene.address)).collect();
    };
    let text = |path: &[&str]| {
        let mut steps = path.iter();
        let first = steps.next().and_then(|s| before.get(s));
        steps.try_fold(first?, |here, step| here.get(step))?.as_str().map(str::to_owned)
    };
    let name = text(&["name"]);
    stays(
        "name",
        name,
        &wanted.name,
        "Everything on the host cluster is called after it: there would be a second control plane.",
        &mut found,
    );
    let is_there = |name: &str| before.get(name).is_some_and(|v| !v.is_null());
    let place = |on_hosts: bool| if on_hosts { "hosts" } else { "kubernetes" };
    if is_there("hosts") || is_there("kubernetes") {
        let (was, is) = (place(is_there("hosts")), place(wanted.target.hosts().is_some()));
        stays("place", Some(was.to_owned()), is, "Everything would be made anew elsewhere.", &mut found);
    }
    ports_in_use(scene, wanted, &mut found);
    let namespace = text(&["kubernetes", "namespace"]).or_else(|| is_there("kubernetes").then(|| NAMESPACE.to_owned()));
    let namespace = namespace.filter(|_| wanted.target.hosts().is_none());
    stays("kubernetes.namespace", namespace, &wanted.namespace, "Everything would be made anew elsewhere.", &mut found);
    prefix(before.get("etcd"), wanted, &mut found);
    karmada(text(&["version"]), wanted, &mut found);
    kubernetes(text(&["kube_version"]), wanted, &mut found);
    encryption::check(scene, wanted, &mut found);
    found.into_iter().map(|d| d.at(scene.address)).collect()
}

/// An API server of this name is on a host, and nothing of the control plane is in the state: it is another configuration's, its state was lost, or
/// it was left on a host that could not be reached. It would start anew with other keys and perhaps on another etcd, where nothing of its members
/// and policies is.
fn not_known(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(hosts) = wanted.target.hosts() else { return };
    let takes_over = wanted.etcd.adopt.as_bool() == Some(true);
    if takes_over || scene.children.values().any(|child| child.in_state) {
        return;
    }
    let is_on = |name: &str| scene.children.get(&hosts::unit_of(name, Component::ApiServer)).is_some_and(|child| child.observed.is_some());
    let on: Vec<&str> = hosts.all.keys().map(String::as_str).filter(|name| is_on(name)).collect();
    if on.is_empty() {
        return;
    }
    let (name, on) = (&wanted.name, on.join(", "));
    let detail = format!(
        "The API server of a control plane \"{name}\" is on {on}, made by karmaform. This one would take its place, with other keys and whatever etcd it has."
    );
    let error = Diagnostic::error("This control plane exists, but the state does not know it", detail)
        .with_hint("If it is another one, of another configuration, give this one another `name`.")
        .with_hint("If it is this one, bring its state back: from its backup, or with `karmaform state rebuild`.")
        .with_hint(format!(
            "If it was left behind by one that is gone, stop karmada-{name}-apiserver.service and its other units there, and remove their files."
        ));
    found.push(error);
}

/// Somebody else's program listens where a component is to: it would never start.
fn ports_in_use(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(hosts) = wanted.target.hosts() else { return };
    let before = scene.before.and_then(|b| Arguments::read(scene.address, b).ok());
    // What is there already may be what listens on the ports that it had.
    let had = before.as_ref().and_then(|b| b.target.hosts()).map_or(&hosts.ports, |h| &h.ports);
    let mut check =
        |(who, way_out): (&str, &str), (name, host): (&str, &hosts::Host), unit: Vec<ChildStep>, (needs, had): (Vec<i64>, Vec<i64>)| {
            let is_there = scene.children.get(&unit).is_some_and(|c| c.in_state || c.observed.is_some());
            for port in needs.into_iter().filter(|p| host.listening.contains(p) && !(is_there && had.contains(p))) {
                let detail = format!("{who} is to listen on port {port} of the host \"{name}\", but something else does already.");
                let hint = format!("`ss -ltnp sport = :{port}` on that host says what it is. {way_out}");
                found.push(Diagnostic::error("A port that is taken", detail).with_hint(hint));
            }
        };
    for (component, _) in &wanted.components {
        for (name, host) in hosts::homes(wanted, hosts, *component) {
            let ports = (hosts.ports.all(*component), had.all(*component));
            check((component.name(), "`ports` gives components other ports."), (name, host), hosts::unit_of(name, *component), ports);
        }
    }
    // Whether it is there with this port or another one its parts don't say; haproxy does when it starts.
    let port: Vec<i64> = hosts.balancer.iter().map(|b| b.port).collect();
    for (name, host, unit) in hosts::listeners(wanted, hosts) {
        check(("haproxy", "`port` in the block `load_balancer` gives it another one."), (name, host), unit, (port.clone(), port.clone()));
    }
}

fn stays(argument: &str, before: Option<String>, now: &str, why: &str, found: &mut Diagnostics) {
    if let Some(before) = before.filter(|b| b != now) {
        found.push(
            Diagnostic::error(
                format!("`{argument}` of a control plane can't be changed"),
                format!("It is \"{before}\" and would be \"{now}\". {why}"),
            )
            .with_hint(format!("Put `{argument}` back to \"{before}\"."))
            .with_hint(
                "Or replace the control plane by hand: write a second one beside it, move members and policies, then remove the first.",
            ),
        );
    }
}

/// All that a control plane knows is below the prefix.
fn prefix(before: Option<&Value>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(before) = before.filter(|b| b.as_entries().is_some()) else { return };
    let written = |v: Option<&Value>| match v {
        Some(v) if v.is_unknown() => None,
        Some(v) => Some(v.as_str().unwrap_or(PREFIX).to_owned()),
        None => Some(PREFIX.to_owned()),
    };
    if let (Some(old), Some(now)) = (written(before.get("prefix")), written(Some(&wanted.etcd.prefix))) {
        stays(
            "etcd.prefix",
            Some(old),
            &now,
            "Below another prefix there is nothing: all clusters, policies and works would be gone.",
            found,
        );
    }
}

/// One minor version up at a time. Source: "Upgrading" in Karmada's documentation.
fn karmada(before: Option<String>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(before) = before.and_then(|b| Version::parse(&b).ok()) else { return };
    let now = &wanted.version;
    if now.minor > before.minor + 1 {
        let step = before.minor + 1;
        found.push(
            Diagnostic::error(
                "An upgrade that skips a minor version",
                format!(
                    "Karmada {} would become {}. Karmada is upgraded by one minor version at a time: each reads what the one before it wrote.",
                    before.text, now.text
                ),
            )
            .with_hint(format!("Apply the newest 1.{step} first, then go on from there.")),
        );
    } else if (now.minor, now.patch) < (before.minor, before.patch) {
        found.push(
            Diagnostic::error(
                "A control plane can't go back",
                format!(
                    "Karmada {} would become {}. What the newer one wrote to etcd, the older one may not be able to read.",
                    before.text, now.text
                ),
            )
            .with_hint(format!("Stay at {}, or restore a snapshot of etcd from before the upgrade into a new control plane.", before.text)),
        );
    }
}

/// The same for Kubernetes behind the API. Source: its version skew policy.
fn kubernetes(before: Option<String>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(before) = before else { return };
    let (Some(old), Some(new)) = (host::minor(&before), host::minor(&wanted.kube_version)) else { return };
    if new > old + 1 {
        let step = old + 1;
        let detail =
            format!("kube-apiserver {before} would become {}. It is upgraded by one minor version at a time.", wanted.kube_version);
        found.push(
            Diagnostic::error("An upgrade of Kubernetes that skips a minor version", detail)
                .with_hint(format!("Set `kube_version` to a 1.{step} first, then go on from there.")),
        );
    } else if new < old {
        let detail = format!(
            "kube-apiserver {before} would become {}. What the newer one wrote, the older one may not be able to read.",
            wanted.kube_version
        );
        found.push(Diagnostic::error("Kubernetes can't go back", detail).with_hint(format!("Keep `kube_version` at {before}.")));
    }
}
