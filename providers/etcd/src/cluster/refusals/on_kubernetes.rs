//! What a cluster on Kubernetes must keep.

use karmaform_model::{Action, Diagnostic, Diagnostics, Object, Scene, Value, same};

use crate::cluster::arguments::Arguments;
use crate::cluster::condition::{differs, member_of, seen, sides};
use crate::cluster::kubernetes::{Kubernetes, Storage};
use crate::cluster::places::{part, stateful_set, stopping};
use crate::cluster::upgrade::bytes;
use crate::cluster::volumes;

/// Arguments of the block that a formed cluster keeps, and why.
const KEPT: &[(&str, &str)] = &[
    ("name", "The cluster and its clients know every member by a name that contains it."),
    ("namespace", "The cluster and its clients know every member by a name that contains it."),
    (
        "storage",
        "Members go from one storage class to another one. What is in a pod goes with it, and folders on nodes belong to another user.",
    ),
    ("host_path", "The data would stay behind, and the members would find empty folders."),
];

/// A formed cluster stays where it is.
pub(super) fn place(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let before = scene.before.and_then(|b| b.get("kubernetes")).and_then(Value::as_entries);
    let Some(place) = &wanted.kubernetes else {
        if before.is_some() {
            found.push(moved("to hosts", "in pods"));
        }
        return;
    };
    if scene.before.is_some() && before.is_none() {
        found.push(moved("to Kubernetes", "on hosts"));
        return;
    }
    // Those that are there stay where they are; who joins is put wherever is written.
    let there = before.and_then(|b| b.get("members")).and_then(Value::as_i64).and_then(|n| usize::try_from(n).ok());
    let count = there.unwrap_or(place.members).min(place.members);
    let (old, now) = (nodes(before, count), nodes(Some(&place.block), count));
    if let (Some(old), Some(now)) = (old, now)
        && old.iter().zip(&now).any(|(o, n)| !same(Some(o), Some(n)) && !n.is_unknown())
    {
        found.push(
            Diagnostic::error(
                "`nodes` of a formed cluster can't be changed yet",
                "A member's data is on the node where it was put first, and it would be looked for on another.",
            )
            .with_hint("Put the nodes back in the order that they had; new ones go behind them."),
        );
    }
    found.extend(size(before, place));
    let is_other = before.is_some_and(|before| volumes::is_other(before, place));
    for (name, why) in KEPT.iter().filter(|(name, _)| !(is_other && *name == "storage")) {
        let (old, now) = (before.and_then(|b| b.get(name)), place.block.get(name));
        if before.is_some() && !same(old, now) && now.is_none_or(Value::is_wholly_known) {
            found.push(
                Diagnostic::error(format!("`{name}` of a formed cluster can't be changed yet"), (*why).to_owned())
                    .with_hint(format!("Put `{name}` back as it was.")),
            );
        }
    }
}

/// Volumes grow, where whoever makes them makes them larger.
fn size(before: Option<&Object>, place: &Kubernetes) -> Option<Diagnostic> {
    let old = before.filter(|before| !volumes::is_other(before, place))?.get("storage_size")?.as_str()?;
    let new = place.storage_size.as_str().filter(|new| *new != old)?;
    let problem = |what: &str, why: &str| {
        Some(Diagnostic::error(what.to_owned(), why.to_owned()).with_hint(format!("Put `storage_size` back to \"{old}\".")))
    };
    match (&place.storage, bytes(old), bytes(new)) {
        (Storage::Class(_), Some(old), Some(new)) if new >= old => None,
        (Storage::Class(_), Some(_), Some(_)) => {
            problem("A volume can't be made smaller", "Kubernetes makes volumes larger, and never smaller.")
        }
        (Storage::Class(_), ..) => problem("Not a size", "`storage_size` is a number with an ending as Kubernetes has it, as \"20Gi\"."),
        _ => problem(
            "The size of a folder on a node can't be changed",
            "With \"hostPath\" the size is what the volume is called with, and nothing holds the data to it; Kubernetes does not change it.",
        ),
    }
}

/// The StatefulSet would ask for other volumes. What puts a StatefulSet in place while members come or a cluster is restored can't do that.
pub(crate) fn grows(scene: &Scene<'_>) -> bool {
    let size = |manifest: Option<&Value>| manifest?.get("spec")?.get("volumeClaimTemplates").cloned();
    let set = scene.children.get(&stateful_set()).filter(|set| set.change.action() == Action::Update);
    set.is_some_and(|set| {
        let (before, after) = sides(set.change, "manifest");
        !same(size(before).as_ref(), size(after).as_ref())
    })
}

/// It would be one whose pods are known by other names or labels: those that are there would not be its own.
fn is_another(scene: &Scene<'_>) -> bool {
    let Some(set) = scene.children.get(&stateful_set()).filter(|set| set.change.action() == Action::Update) else { return false };
    let (before, after) = sides(set.change, "manifest");
    let part = |manifest: Option<&Value>, name: &str| manifest?.get("spec")?.get(name).cloned();
    ["serviceName", "selector", "podManagementPolicy"].iter().any(|name| match (part(before, name), part(after, name)) {
        (Some(before), Some(after)) => !same(Some(&before), Some(&after)),
        _ => false,
    })
}

/// A restoration's helpers have the level that is wanted, and would take the volumes away from members that run with another one.
pub(crate) fn relabels(scene: &Scene<'_>, wanted: &Arguments) -> Result<(), Diagnostic> {
    let level = |block: Option<&Object>| block.and_then(|b| b.get("selinux_level")).filter(|v| !v.is_null()).cloned();
    let before = scene.before.and_then(|b| b.get("kubernetes")).and_then(Value::as_entries);
    let Some(place) = wanted.kubernetes.as_ref().filter(|_| before.is_some()) else { return Ok(()) };
    if same(level(before).as_ref(), level(Some(&place.block)).as_ref()) {
        return Ok(());
    }
    let detail = "Its helpers would have the new level, and members that still serve the old one, and both the same volumes.";
    Err(Diagnostic::error("Another `selinux_level` comes before a restoration", detail)
        .with_hint("Take the block `restore` out, apply, and put it back then."))
}

/// Why not. `meanwhile`: what else the plan does.
pub(crate) fn grows_apart(meanwhile: &str) -> Diagnostic {
    let detail = format!("For larger volumes the StatefulSet is made anew around its pods, which is not done while {meanwhile}.");
    Diagnostic::error("Volumes grow in a plan of their own", detail)
        .with_hint("Put `storage_size` back, apply the rest, and change it then; or the other way round.")
}

/// Where each member's volume is; more nodes behind those that are used change nothing.
fn nodes(block: Option<&Object>, members: usize) -> Option<Vec<Value>> {
    let nodes = block?.get("nodes")?.as_items().filter(|n| !n.is_empty())?;
    Some((0..members).map(|i| nodes[i % nodes.len()].clone()).collect())
}

fn moved(to: &str, from: &str) -> Diagnostic {
    Diagnostic::error(
        format!("A formed cluster can't move {to}"),
        format!("Its members are {from}. Pods and hosts know each other by names that the others don't have, so none can join the others."),
    )
    .with_hint(
        "Write a second `etcd_cluster` there, and its `client` into the control plane's `etcd`: everything goes there by that plan, and this block may be removed \
         in the same change.",
    )
}

/// Finds every reason not to change a formed cluster like this.
pub(super) fn check(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(place) = &wanted.kubernetes else { return };
    let before = scene.before.and_then(|b| b.get("kubernetes")).and_then(Value::as_entries);
    images(scene, before, wanted, found);
    if is_lost(scene, &stateful_set()) || is_another(scene) {
        found.push(
            Diagnostic::error(
                "The StatefulSet of a formed cluster can't be replaced",
                "All its members would stop at once. What would change is something that Kubernetes does not change in place.",
            )
            .with_hint("Undo that change."),
        );
    }
    if place.storage == Storage::EmptyDir {
        pods_with_data(scene, wanted, found);
    }
    let is_replaced = |name: &&String| loses_its_volume(scene, name);
    for name in wanted.members.keys().filter(is_replaced) {
        found.push(Diagnostic::error(
            "A member's volume can't be replaced",
            format!("The volume of the member \"{name}\" would be removed and made anew, and its data would be gone."),
        ));
    }
    unseen_size(scene, place, found);
}

/// How many pods there are is how many members: where it can't be told of some whether they are, pods would end that the others count on.
fn unseen_size(scene: &Scene<'_>, place: &Kubernetes, found: &mut Diagnostics) {
    let Some(set) = scene.children.get(&stateful_set()).filter(|set| set.change.action() == Action::Update) else { return };
    let (before, after) = sides(set.change, "manifest");
    let count = |side| replicas(side).and_then(|n| n.as_i64()).and_then(|n| usize::try_from(n).ok());
    let (Some(before), Some(after)) = (count(before), count(after)) else { return };
    let is_in_view = |name: String| scene.children.keys().any(|path| member_of(path) == Some(&name));
    let is_asked = scene.children.values().any(|c| c.resource_type == "etcd_member");
    if before != after && !(is_asked && (before.min(after)..before.max(after)).map(|i| place.member(i)).all(is_in_view)) {
        found.push(
            Diagnostic::error(
                "Members come and go only together with the cluster",
                format!("The StatefulSet would have {after} pods instead of {before}, and not all that come or go by that are among the targets."),
            )
            .with_hint("Take the whole cluster as the target."),
        );
    }
}

fn replicas(manifest: Option<&Value>) -> Option<Value> {
    manifest?.get("spec")?.get("replicas").cloned()
}

/// A pod of a cluster with its data in `emptyDir` is the only place of its member's data.
fn pods_with_data(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let names = |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let restarted = restarted(scene, wanted);
    if !restarted.is_empty() {
        found.push(
            Diagnostic::error(
                "Members in emptyDir volumes can't be restarted",
                format!(
                    "This change would make the pods {} anew. Their data would be gone with the old ones, and without it a member can't take \
                     part any more.",
                    names(restarted)
                ),
            )
            .with_hint("Undo that change, or destroy the cluster and make it anew.")
            .with_hint("With a storage class or \"hostPath\" data outlives pods."),
        );
    }
}

/// Whose pod is deleted so that a new one is made.
fn restarted<'a>(scene: &Scene<'_>, wanted: &'a Arguments) -> Vec<&'a String> {
    let turns = |name: &&String| {
        let change = scene.children.get(&part(name, "pod")).map(|c| c.change);
        change.is_some_and(|c| c.action() == Action::Update && differs(c, "revision"))
    };
    wanted.members.keys().filter(turns).collect()
}

/// There is a StatefulSet, or there was: it makes pods, whatever is known of these.
pub(super) fn is_started(scene: &Scene<'_>) -> bool {
    scene.children.get(&stateful_set()).is_some_and(|set| set.in_state || set.observed.is_some())
}

fn loses_its_volume(scene: &Scene<'_>, name: &str) -> bool {
    ["claim", "volume"].iter().any(|of_it| is_lost(scene, &part(name, of_it))) || volumes::is_lost(scene, name)
}

fn is_lost(scene: &Scene<'_>, path: &[karmaform_model::ChildStep]) -> bool {
    let action = scene.children.get(path).map(|c| c.change.action());
    matches!(action, Some(Action::DestroyThenCreate | Action::CreateThenDestroy | Action::Delete))
}

/// Nobody deletes claims that are to be kept, whatever is in them, and these would be other ones.
pub(super) fn kept(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let names: Vec<&str> = wanted.members.keys().filter(|name| volumes::is_on_another(scene, name)).map(String::as_str).collect();
    if !names.is_empty() && wanted.keeps_data {
        let what = format!("The claims of {} ask for another storage class, and `on_destroy` is \"keep\".", names.join(", "));
        found.push(Diagnostic::error("Claims that are kept can't be made anew", what).with_hint(
            "Nothing is in them yet: delete them (`kubectl delete pvc`), or set `on_destroy` to \"delete\" until the cluster is formed.",
        ));
    }
}

/// Volumes that are to be made, of a class that is not there; those that are there need it no more.
pub(super) fn class(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(missing) = wanted.kubernetes.as_ref().and_then(|place| place.missing_class.clone()) else { return };
    let is_new = |name: &String| scene.children.get(&part(name, "claim")).is_some_and(|c| c.change.action() == Action::Create);
    let is_made = |name: &String| is_new(name) || volumes::is_on_another(scene, name);
    if wanted.members.keys().any(is_made) {
        found.push(missing);
    }
}

/// Another image may hold another version, whatever `version` says; another place for the same one does not.
fn images(scene: &Scene<'_>, before: Option<&Object>, wanted: &Arguments, found: &mut Diagnostics) {
    let (Some(before), Some(place)) = (before, &wanted.kubernetes) else { return };
    let last = |image: &str| image.rsplit('/').next().unwrap_or(image).to_owned();
    let image = |object: Option<&Object>| {
        let spec = object?.get("manifest")?.get("spec")?.get("template")?.get("spec")?;
        spec.get("containers")?.as_items()?.first()?.get("image")?.as_str().map(last)
    };
    // Another version has its own order (`upgrade`).
    let is_upgraded = scene.before.and_then(|b| b.get("version")?.as_str()).is_some_and(|version| version != wanted.version.text);
    // What was applied with this version may come back.
    let applied = before.get("image").and_then(Value::as_str).map(last);
    let is_told = |image: &str| image.contains(&wanted.version.text) || !is_upgraded && applied.as_deref() == Some(image);
    let is_kept = applied.is_some() && applied == place.image.as_str().map(last);
    if let (true, true, Some(image)) = (is_upgraded, is_kept, applied.as_deref().filter(|image| !image.contains(&wanted.version.text))) {
        let what = format!("`version` is another one, and \"{image}\" is what it was, without a version in its tag.");
        found.push(
            Diagnostic::error("An image of an unknown version", what)
                .with_hint("Change `image` together with `version`, or leave `image` out."),
        );
    }
    let change = scene.children.get(&stateful_set()).map(|c| c.change);
    let old = change.and_then(|c| image(c.before())).or_else(|| before.get("image").and_then(Value::as_str).map(last));
    let now = place.image.as_str().map(last);
    if let (Some(old), Some(now)) = (old, now)
        && old != now
        && !(is_upgraded || is_told(&now))
    {
        found.push(
            Diagnostic::error(
                "An image of an unknown version",
                format!("It is \"{old}\" and would be \"{now}\", and neither its tag nor a change of `version` says which etcd is in it."),
            )
            .with_hint("Take one whose tag has the version in it, as `etcd:3.6.8-0` has; the same one from another registry is fine, too."),
        );
    }
}

/// What members that were started, but did not all get healthy yet, would not survive.
pub(super) fn unfinished(scene: &Scene<'_>, wanted: &Arguments) -> Vec<String> {
    let mut found = Vec::new();
    let change = scene.children.get(&stateful_set()).map(|c| c.change);
    let (before, after) = change.map_or((None, None), |c| sides(c, "manifest"));
    let (before, after) = (replicas(before), replicas(after));
    // It has none while it is restored.
    let is_stopped = scene.children.get(&stopping()).is_some_and(|c| c.in_state);
    if before.is_some() && !is_stopped && !same(before.as_ref(), after.as_ref()) {
        found.push("the number of members would be another".to_owned());
    }
    if is_lost(scene, &stateful_set()) {
        found.push("their StatefulSet would be made anew".to_owned());
    }
    let members = scene.children.keys().filter_map(|path| member_of(path));
    if members.clone().any(|name| loses_its_volume(scene, name) || volumes::is_on_another(scene, name)) {
        found.push("their volumes would be made anew".to_owned());
    }
    let runs = |name: &String| seen(scene, &part(name, "etcd"), "healthy").and_then(Value::as_bool) == Some(true);
    let forgets = wanted.kubernetes.as_ref().is_some_and(|k| k.storage == Storage::EmptyDir);
    if forgets && wanted.members.keys().any(runs) && !restarted(scene, wanted).is_empty() {
        found.push("data that is in their pods would be gone".to_owned());
    }
    found
}
