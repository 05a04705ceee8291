//! The order that depends on what a plan changes: nothing is done inside the Karmada API before it answers, and it is asked again after
//! every change of its pods.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{
    Action, Arg, Change, ChildChange, ChildStep, Choreography, Diagnostic, Diagnostics, GateSpec, Point, Scene, Value, same,
};

use serde_json::json;

use super::arguments::Arguments;
use super::host::Host;
use super::places::{certificate, component, component_of, part, secret, service};
use super::store::members_path;
use super::target::Target;
use super::{hosts, impact, moving, pki, refusals};
use crate::api::SYSTEM_NAMESPACE;
use crate::versions::Component;

/// The gate before everything inside the Karmada API.
pub(crate) const ANSWERS: &str = "the Karmada API answers";
/// The gate after everything: policies can be written.
const ADMITS: &str = "policies are admitted";
/// The gate after a change of the API server's pods: whoever missed it runs again.
const RUNS: &str = "all components run";
/// How long the API may take to answer once its pods are ready, in seconds.
const ANSWER_LIMIT: u64 = 180;
/// How long the components may take to be there again, in seconds. Pods that ended several times are started after a while only.
const RUN_LIMIT: u64 = 300;
/// How long it may take until all is there again after its etcd was away, in seconds: what ended several times is started again after up to
/// 5 minutes (kubelet's `MaxContainerBackOff`).
const RECOVERY_LIMIT: u64 = 420;

/// The order of a plan's changes.
pub(crate) fn choreograph(scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
    let Some(wanted) = scene.wanted else {
        // Where it goes as a whole, what is inside it is only data in its etcd. Whoever deleted it piece by piece would wait for finalizers
        // whose controllers are gone already, or for an API server that no longer answers.
        let goes = |path: &&Vec<ChildStep>| is_inside(path) || **path == members_path();
        let forgotten = scene.children.keys().filter(goes).cloned().collect();
        let risk = impact::risk_of_destroy(scene);
        let away = hosts::away(scene);
        let orderings = hosts::written_until_gone(scene);
        return Ok(Choreography { impact: impact::of_destroy(scene), risk, forgotten, away, orderings, ..Choreography::default() });
    };
    let wanted = Arguments::read(scene.address, wanted)?;
    let mut refused = refusals::check(scene, &wanted);
    if let Target::Hosts(hosts) = &wanted.target {
        refused.extend(hosts::preflight::check(scene, &wanted, hosts));
        refused.extend(hosts::taken(scene, hosts));
    }
    refused.extend(moving::check(scene, &wanted));
    if refused.has_errors() {
        return Err(refused);
    }
    let (impact, risk, away) = (impact::of_change(scene, &wanted), moving::risk(scene, &wanted), hosts::away(scene));
    let mut choreography = Choreography { impact, risk, away, ..Choreography::default() };
    gate(scene, &wanted, &mut choreography)?;
    if let Target::Hosts(hosts) = &wanted.target {
        hosts::roll(scene, &wanted, hosts, &mut choreography);
    }
    admission(scene, &wanted, &mut choreography);
    company(scene, &wanted, &mut choreography);
    moving::order(scene, &wanted, &mut choreography);
    Ok(choreography)
}

/// True if this is not a change.
pub(crate) fn is_unchanged(change: &Change) -> bool {
    matches!(change.action(), Action::NoOp | Action::Forget)
}

/// True for what is inside the Karmada API.
fn is_inside(path: &[ChildStep]) -> bool {
    component_of(path, "api").is_some() || path == part("crds")
}

/// The gate, if the API server or anything inside it changes.
///
/// # Errors
/// Something inside would change while no API server is to run.
fn gate(scene: &Scene<'_>, wanted: &Arguments, choreography: &mut Choreography) -> Result<(), Diagnostics> {
    let changed = |path: &[ChildStep]| scene.children.get(path).is_some_and(|c| !is_unchanged(c.change));
    let inside: BTreeSet<&Vec<ChildStep>> = scene.children.keys().filter(|p| is_inside(p) && changed(p)).collect();
    let servers = wanted.runners(Component::ApiServer);
    let is_stopped = wanted.components.iter().any(|(c, s)| matches!(c, Component::ApiServer) && s.replicas() == 0);
    if is_stopped && let Some(first) = inside.first() {
        let detail = format!(
            "No API server is to run, but {} is inside the Karmada API and would change, which nobody could do.",
            scene.address.with_child(first)
        );
        let diagnostic = Diagnostic::error("A change inside an API that is stopped", detail);
        let hint = match &wanted.target {
            Target::Kubernetes(_) => "Set `replicas` of the component \"apiserver\" to 1 or more.",
            Target::Hosts(_) => "Write a host into `hosts` of the component \"apiserver\", or leave that out.",
        };
        return Err(diagnostic.with_hint(hint).at(scene.address).into());
    }
    if is_stopped || (inside.is_empty() && !servers.iter().any(|s| changed(s))) {
        return Ok(());
    }
    choreography.gates.push(answers(wanted));
    // Its own pods, and what it is reached and asked with.
    let others = [service(Component::ApiServer), secret(Component::ApiServer), part("ca"), certificate("admin")];
    // What goes with a host that leaves goes last, and nobody waits for it; nor for one that is away.
    let goes = |path: &[ChildStep]| scene.children.get(path).is_some_and(|c| c.change.action() == Action::Delete);
    let files = scene.children.keys().filter(|p| hosts::belongs(p, Component::ApiServer) && !goes(p)).cloned();
    for path in servers.into_iter().chain(others).chain(files).filter(|p| changed(p) && !choreography.away.contains(p)) {
        choreography.orderings.push((Point::Child(path), Point::Gate(ANSWERS.to_owned())));
    }
    for path in inside {
        choreography.orderings.push((Point::Gate(ANSWERS.to_owned()), Point::Child(path.clone())));
    }
    Ok(())
}

fn answers(wanted: &Arguments) -> GateSpec {
    let arguments = BTreeMap::from([("cluster".to_owned(), pki::connection(wanted)), ("path".to_owned(), Arg::from("/readyz"))]);
    GateSpec { name: ANSWERS.to_owned(), gate: "kubernetes_ready".to_owned(), arguments, limit: ANSWER_LIMIT, acts: false }
}

fn runs(wanted: &Arguments, host: &Host) -> GateSpec {
    let labels = Arg::Object(BTreeMap::from([("app.kubernetes.io/instance".to_owned(), wanted.name.as_str().into())]));
    let arguments = BTreeMap::from([
        ("cluster".to_owned(), host.connection.clone().into()),
        ("namespace".to_owned(), wanted.namespace.as_str().into()),
        ("labels".to_owned(), labels),
    ]);
    GateSpec { name: RUNS.to_owned(), gate: "kubernetes_runs".to_owned(), arguments, limit: RUN_LIMIT, acts: false }
}

/// The etcd goes on to other certificates or CAs, and the control plane does not have yet what the last apply gave to clients: an apply that did
/// not end, or had other targets. A change of one of the two alone is the etcd's own change of this plan, which the control plane follows in it.
fn is_behind(scene: &Scene<'_>, wanted: &Arguments) -> bool {
    let Some(before) = scene.before.and_then(|b| b.get("etcd")) else { return false };
    let is_other = |name: &str, now: &Value| before.get(name).is_some_and(|was| !was.is_null()) && !same(before.get(name), Some(now));
    let (ca, certificate) = (&wanted.etcd.ca_certificate, &wanted.etcd.certificate);
    let count = |bundle: Option<&Value>| bundle.and_then(Value::as_str).map(|pem| pem.matches("-----BEGIN CERTIFICATE-----").count());
    // As many CAs as before: one was renewed with its key, which is followed at once.
    let has_other_cas = count(before.get("ca_certificate")) != count(Some(ca));
    ca.is_wholly_known()
        && has_other_cas
        && moving::other(scene, wanted).is_none()
        && is_other("ca_certificate", ca)
        && is_other("certificate", certificate)
}

fn behind() -> Diagnostic {
    Diagnostic::error(
        "The control plane is behind its etcd",
        "The API servers do not have what the last apply gave to clients of etcd (its CAs, or their certificate), and this plan goes on to others: \
         etcd would refuse them, or they it.",
    )
    .with_hint("Put the etcd back as it was at the last apply, plan and apply, the control plane included; then change it.")
}

/// Its etcd has changed: while that did not answer the API did not either, and who lost its lease is started again.
pub(crate) fn recover(scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
    let Some(wanted) = scene.wanted else { return Ok(Choreography::default()) };
    let wanted = Arguments::read(scene.address, wanted)?;
    if is_behind(scene, &wanted) {
        return Err(behind().at(scene.address).into());
    }
    let mut choreography = Choreography::default();
    if wanted.components.iter().any(|(c, s)| matches!(c, Component::ApiServer) && s.replicas() == 0) {
        return Ok(choreography);
    }
    let of = |component: Component| wanted.runners(component).into_iter().filter_map(|path| scene.children.get(&path)).collect::<Vec<_>>();
    let servers = of(Component::ApiServer);
    if !servers.is_empty() && servers.iter().all(|server| server.unseen) {
        return Ok(choreography);
    }
    choreography.gates.push(GateSpec { limit: RECOVERY_LIMIT, ..answers(&wanted) });
    // What did not run before for reasons of its own is not waited for.
    let is_ill = |child: &ChildChange<'_>| child.observed.and_then(|o| o.get("ready")).and_then(Value::as_bool) == Some(false);
    let components = scene.children.iter().filter(|(path, _)| component_of(path, "component").is_some());
    if let Target::Kubernetes(host) = &wanted.target
        && !components.into_iter().any(|(_, child)| child.unseen || is_ill(child))
    {
        choreography.gates.push(GateSpec { limit: RECOVERY_LIMIT, ..runs(&wanted, host) });
        choreography.orderings.push((Point::Gate(ANSWERS.to_owned()), Point::Gate(RUNS.to_owned())));
    }
    Ok(choreography)
}

/// The gate at the end, if admission changes: a policy that nobody makes is shown to the API server, which asks the webhook by the address and
/// the CA that it will ask by from then on.
fn admission(scene: &Scene<'_>, wanted: &Arguments, choreography: &mut Choreography) {
    let changed = |path: &[ChildStep]| scene.children.get(path).is_some_and(|c| !is_unchanged(c.change));
    let configurations = scene.children.keys().filter(|p| component_of(p, "api").is_some_and(|key| key.contains("webhookconfiguration")));
    let webhook = [service(Component::Webhook), secret(Component::Webhook)].into_iter().chain(wanted.runners(Component::Webhook));
    let parts: Vec<Vec<ChildStep>> =
        configurations.cloned().chain(webhook).filter(|p| changed(p) && !choreography.away.contains(p)).collect();
    let runs = |component: Component| wanted.components.iter().any(|(c, s)| *c == component && s.replicas() > 0);
    if parts.is_empty() || wanted.crds.is_none() || !runs(Component::Webhook) || !runs(Component::ApiServer) {
        return;
    }
    let policy = Arg::from_json(&json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": { "name": "karmaform-asks", "namespace": SYSTEM_NAMESPACE },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "karmaform-asks" }], "placement": {} },
    }));
    let arguments = BTreeMap::from([("cluster".to_owned(), pki::connection(wanted)), ("manifest".to_owned(), policy)]);
    choreography.gates.push(GateSpec {
        name: ADMITS.to_owned(),
        gate: "kubernetes_accepts".to_owned(),
        arguments,
        limit: ANSWER_LIMIT,
        acts: false,
    });
    for path in parts {
        choreography.orderings.push((Point::Child(path), Point::Gate(ADMITS.to_owned())));
    }
    if choreography.gates.iter().any(|g| g.name == ANSWERS) {
        choreography.orderings.push((Point::Gate(ANSWERS.to_owned()), Point::Gate(ADMITS.to_owned())));
    }
}

/// The gate after a change of the API server, if there is somebody who missed it meanwhile: components end when they lose their leases, and
/// are started again.
fn company(scene: &Scene<'_>, wanted: &Arguments, choreography: &mut Choreography) {
    let server = component(Component::ApiServer);
    let changes = |path: &Vec<ChildStep>| scene.children.get(path).is_some_and(|c| !is_unchanged(c.change));
    let is_component = |path: &Vec<ChildStep>| component_of(path, "component").is_some();
    let stays = |(path, child): (&Vec<ChildStep>, &ChildChange<'_>)| is_component(path) && *path != server && child.in_state;
    let Target::Kubernetes(host) = &wanted.target else { return };
    if !changes(&server) || !choreography.gates.iter().any(|g| g.name == ANSWERS) || !scene.children.iter().any(stays) {
        return;
    }
    choreography.gates.push(runs(wanted, host));
    choreography.orderings.push((Point::Gate(ANSWERS.to_owned()), Point::Gate(RUNS.to_owned())));
    for path in scene.children.keys().filter(|p| is_component(p) && **p != server && changes(p)) {
        choreography.orderings.push((Point::Child(path.clone()), Point::Gate(RUNS.to_owned())));
    }
}
