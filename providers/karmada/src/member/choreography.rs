//! What a plan does to a member, in plain words; and what it leaves behind of one that is gone.

use std::collections::BTreeMap;

use karmaform_model::{Action, Arg, Change, ChildChange, ChildStep, Choreography, Diagnostics, GateSpec, Point, Scene, Value};

use super::arguments::Arguments;
use super::names::is_in_member;
use crate::plane::{minor, part};

/// So many propagated resources are named in one line.
const MOST: usize = 50;
/// The gate before a member that does not answer leaves.
const ANSWERS: &str = "the member answers";

/// The impact of a plan's changes, and what is given up because it can't be reached.
pub(crate) fn choreograph(scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
    let mut choreography = Choreography::default();
    let wanted = scene.wanted.map(|wanted| Arguments::read(scene.address, wanted)).transpose()?;
    choreography.impact.extend(wanted.as_ref().map(skewed).unwrap_or_default());
    let membership = scene.children.get(&part("membership"));
    let action = membership.map_or(Action::NoOp, |m| m.change.action());
    let leaves = membership.filter(|_| matches!(action, Action::Delete | Action::DestroyThenCreate | Action::CreateThenDestroy));
    match (leaves, action) {
        (Some(_), Action::DestroyThenCreate | Action::CreateThenDestroy) => choreography
            .impact
            .push("moves: it leaves the control plane it is in, and joins anew; in between nobody looks after it".to_owned()),
        (None, Action::Create) => choreography.impact.push(format!("joins {}", joined(wanted.as_ref()))),
        _ => {}
    }
    if let Some(membership) = leaves {
        leave(scene, membership, &mut choreography);
    }
    if has_moved(scene) {
        choreography.impact.push(
            "the estimator is found elsewhere: restart karmada-scheduler and karmada-descheduler after this, they go on asking where it was"
                .to_owned(),
        );
    }
    give_up(scene, &mut choreography);
    // An estimator on a host that does not answer.
    let on_host = || scene.children.iter().filter(|(_, child)| child.resource_type.starts_with("ssh_"));
    if on_host().any(|(_, child)| child.unseen) {
        choreography.away.extend(on_host().map(|(path, _)| path.clone()));
    }
    Ok(choreography)
}

/// True if there is an estimator that stays, but not where it is. Whoever has a connection keeps it. Source: `EstablishConnection`,
/// `pkg/estimator/client/cache.go` in karmada.
fn has_moved(scene: &Scene<'_>) -> bool {
    let change = |name: &str| scene.children.get(&part(name)).map(|c| c.change.action());
    let stays =
        matches!(change("estimator_certificate_request"), Some(Action::NoOp | Action::DestroyThenCreate | Action::CreateThenDestroy));
    stays && matches!(change("estimator_address"), Some(Action::Create | Action::Update | Action::Delete))
}

/// What runs for the member with another version than the control plane.
fn skewed(member: &Arguments) -> Vec<String> {
    let Some(plane) = member.plane.get("karmada_version").and_then(Value::as_str) else { return Vec::new() };
    let agent = member.agent.as_ref().and_then(|a| a.pods.version.as_deref());
    let estimator = member.estimator.as_ref().and_then(|e| e.version());
    let both = [("karmada-agent", agent), ("karmada-scheduler-estimator", estimator)];
    let other = both.into_iter().filter_map(|(program, version)| Some((program, version?))).filter(|(_, v)| minor(v) != minor(plane));
    other
        .map(|(program, version)| format!("{program} is {version} and the control plane {plane}: bring them to one minor version"))
        .collect()
}

fn joined(wanted: Option<&Arguments>) -> String {
    wanted.map_or_else(|| "the control plane".to_owned(), |a| format!("the control plane as \"{}\" ({})", a.name, a.mode))
}

/// What becomes of what was propagated, and of a member that does not answer.
fn leave(scene: &Scene<'_>, membership: &ChildChange<'_>, choreography: &mut Choreography) {
    let before = membership.change.before();
    let flag = |name: &str| before.and_then(|b| b.get(name)).and_then(Value::as_bool) == Some(true);
    let fact = |name: &str| membership.observed.and_then(|o| o.get(name)).filter(|v| !v.is_null());
    let text = |name: &str| fact(name).and_then(Value::as_str).unwrap_or_default();
    let resources = propagated(membership);
    let is_moved = matches!(membership.change, Change::Replace { .. });
    let is_gone = lost(scene).next().is_some() || matches!(text("ready"), "False" | "Unknown");
    choreography.impact.push(match (&resources, flag("keep_resources"), is_gone) {
        // Only one that goes for good is asked for all of it.
        (None, true, _) if is_moved => "what was propagated to it stays in the member (`keep_resources`)".to_owned(),
        (None, false, _) if is_moved => "what was propagated to it is deleted in the member".to_owned(),
        (None, ..) => "what was propagated to it can't be told: the control plane does not say".to_owned(),
        (Some(all), ..) if all.is_empty() => "leaves; nothing was propagated to it".to_owned(),
        (Some(all), true, _) => format!("leaves; stays in the member, and nobody looks after it any more: {}", listed(all)),
        (Some(all), false, false) => format!("leaves; is deleted in the member: {}", listed(all)),
        (Some(all), false, true) => {
            format!("leaves; would be deleted in the member, but stays there if it does not answer: {}", listed(all))
        }
    });
    if is_gone && !text("problem").is_empty() {
        choreography.impact.push(format!("the control plane does not reach the member: {}", text("problem")));
    }
}

/// What is to go in a member that does not answer: it is waited for, or, with `force`, left behind and listed with the commands that take it
/// away one day.
fn give_up(scene: &Scene<'_>, choreography: &mut Choreography) {
    let Some((_, first)) = lost(scene).next() else { return };
    let membership = scene.children.get(&part("membership"));
    let said = membership.and_then(|m| m.change.before()).or(scene.before);
    let flag = |name: &str| said.and_then(|b| b.get(name)).and_then(Value::as_bool) == Some(true);
    let limit = said.and_then(|b| b.get("leave_timeout")).and_then(Value::as_i64).and_then(|s| u64::try_from(s).ok());
    let limit = limit.unwrap_or(super::schema::LEAVE_TIMEOUT.unsigned_abs());
    // One part that could not be looked at may be an accident; a member that is gone answers nothing at all.
    let is_silent = in_member(scene).filter(|(_, child)| goes(child.change)).all(|(_, child)| is_unseen(child));
    if !flag("force") || !is_silent {
        let Some(cluster) = first.change.before().and_then(|b| b.get("cluster")) else { return };
        let arguments = BTreeMap::from([("cluster".to_owned(), cluster.clone().into()), ("path".to_owned(), Arg::from("/readyz"))]);
        choreography.gates.push(GateSpec { name: ANSWERS.to_owned(), gate: "kubernetes_ready".to_owned(), arguments, limit, acts: false });
        // Before anything: one that is half gone is worse than one that is still there.
        for path in scene.children.keys() {
            choreography.orderings.push((Point::Gate(ANSWERS.to_owned()), Point::Child(path.clone())));
        }
        choreography.impact.push(format!("the member does not answer: it is waited for for {limit} s, before anything is done"));
        choreography.impact.push(
            "if it is gone for good, set `force = true` for it and apply that first; or forget what is there with `karmaform state rm`"
                .to_owned(),
        );
        return;
    }
    choreography
        .impact
        .push(format!("the member does not answer: what the control plane then still waits for is cut off within {limit} s (`force`)"));
    choreography.impact.push("stays behind in the member, and can be cleaned up there when it is back:".to_owned());
    let mut lost: Vec<_> = lost(scene).collect();
    // As the commands are best run: the namespace after what is in it.
    lost.sort_by_key(|(path, _)| **path == part("namespace"));
    for (path, child) in lost {
        choreography.impact.extend(residue(child));
        if matches!(child.change, Change::Delete { .. }) {
            choreography.forgotten.push(path.clone());
        }
    }
    if let Some(resources) = membership.filter(|m| goes(m.change) && !flag("keep_resources")).and_then(propagated) {
        choreography.impact.extend(resources.into_iter().map(|r| format!("  {}", delete_command(r))));
    }
    choreography
        .impact
        .push("  kubectl delete clusterrole,clusterrolebinding karmada-impersonator (if no other control plane uses it)".to_owned());
}

/// What the plane says that it brought to the member; none if it did not say.
fn propagated<'a>(membership: &ChildChange<'a>) -> Option<Vec<&'a str>> {
    let items = membership.observed?.get("resources").filter(|v| !v.is_null())?.as_items()?;
    Some(items.iter().filter_map(Value::as_str).collect())
}

/// What is to go in the member, and could not be looked at.
fn lost<'s>(scene: &'s Scene<'_>) -> impl Iterator<Item = (&'s Vec<ChildStep>, &'s ChildChange<'s>)> {
    in_member(scene).filter(|(_, child)| is_unseen(child))
}

/// What is in the member. An estimator may run there, too.
fn in_member<'s>(scene: &'s Scene<'_>) -> impl Iterator<Item = (&'s Vec<ChildStep>, &'s ChildChange<'s>)> {
    let cluster = |child: &'s ChildChange<'s>| child.change.before().and_then(|b| b.get("cluster")?.get("id")?.as_str());
    let member = scene.children.get(&part("namespace")).and_then(cluster);
    let is_estimator = |path: &[ChildStep]| path.first().is_some_and(|step| step.name.starts_with("estimator"));
    let is_there =
        move |path: &[ChildStep], child| is_in_member(path) || (is_estimator(path) && member.is_some() && cluster(child) == member);
    scene.children.iter().filter(move |(path, child)| is_there(path, child))
}

fn goes(change: &Change) -> bool {
    matches!(change, Change::Delete { .. } | Change::Replace { .. })
}

/// True for what is in the state, is to go, and could not be looked at.
fn is_unseen(child: &ChildChange<'_>) -> bool {
    child.in_state && child.unseen && goes(child.change)
}

fn listed(all: &[&str]) -> String {
    let more = if all.len() > MOST { format!(" and {} more", all.len() - MOST) } else { String::new() };
    format!("{}{more}", all.iter().take(MOST).copied().collect::<Vec<_>>().join(", "))
}

/// The command that takes away what is left of an object of ours; none for what is not ours to take away.
fn residue(child: &ChildChange<'_>) -> Option<String> {
    let before = child.change.before()?;
    let flag = |name: &str| before.get(name).and_then(Value::as_bool) == Some(true);
    if flag("adopted") {
        return None;
    }
    let object = before.get("object").and_then(Value::as_str)?;
    let (kind, rest) = object.split_once('/')?;
    let (namespace, name) = rest.split_once('/')?;
    let shared = if flag("keep_if_used") { " (if no other control plane uses it)" } else { "" };
    let slash = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    Some(format!("  {}{shared}", delete_command(&format!("{kind} {slash}{name}"))))
}

/// The command that deletes "Kind.group namespace/name".
fn delete_command(named: &str) -> String {
    let (kind, rest) = named.split_once(' ').unwrap_or((named, ""));
    match rest.split_once('/') {
        Some((namespace, name)) => format!("kubectl delete -n {namespace} {} {name}", kind.to_lowercase()),
        None => format!("kubectl delete {} {rest}", kind.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_kind_and_namespace() {
        assert_eq!(delete_command("Deployment.apps default/web"), "kubectl delete -n default deployment.apps web");
        assert_eq!(delete_command("ClusterRole.rbac.authorization.k8s.io x"), "kubectl delete clusterrole.rbac.authorization.k8s.io x");
    }
}
