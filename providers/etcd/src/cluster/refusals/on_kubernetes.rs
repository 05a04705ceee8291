//! What a cluster on Kubernetes must keep.

use karmaform_model::{Action, Change, Diagnostic, Diagnostics, Object, Scene, Value, same};

use crate::cluster::arguments::Arguments;
use crate::cluster::condition::{is_unchanged, sides};
use crate::cluster::kubernetes::Storage;
use crate::cluster::places::{part, stateful_set};

/// Arguments of the block that a formed cluster keeps, and why.
const KEPT: &[(&str, &str)] = &[
    ("name", "The cluster and its clients know every member by a name that contains it."),
    ("namespace", "The cluster and its clients know every member by a name that contains it."),
    ("storage", "The data would stay behind, and the members would find empty volumes."),
    ("storage_size", "Kubernetes does not change the volumes that a StatefulSet asks for."),
    ("nodes", "The data is on the nodes where it was put first."),
    ("host_path", "The data would stay behind, and the members would find empty folders."),
];

/// Finds every reason not to change a formed cluster like this.
pub(super) fn check(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let Some(place) = &wanted.kubernetes else { return };
    let before = scene.before.and_then(|b| b.get("kubernetes")).and_then(Value::as_entries);
    for (name, why) in KEPT {
        let (old, now) = (before.and_then(|b| b.get(*name)), place.block.get(*name));
        if before.is_some() && !same(old, now) && now.is_none_or(Value::is_wholly_known) {
            found.push(
                Diagnostic::error(format!("`{name}` of a formed cluster can't be changed yet"), (*why).to_owned())
                    .with_hint(format!("Put `{name}` back as it was.")),
            );
        }
    }
    if scene.before.is_some() && before.is_none() {
        found.push(
            Diagnostic::error(
                "A formed cluster can't move to Kubernetes yet",
                "Its members are on hosts. Moving them means adding members and removing others, which this version does not do.",
            )
            .with_hint("Make another cluster, and move the data with a snapshot."),
        );
    }
    images(scene, before, wanted, found);
    if is_lost(scene, &stateful_set()) {
        found.push(
            Diagnostic::error(
                "The StatefulSet of a formed cluster can't be replaced",
                "All its members would stop at once. What would change is something that Kubernetes does not change in place.",
            )
            .with_hint("Undo that change."),
        );
    }
    pods_with_their_data(scene, wanted, found);
    for name in wanted.members.keys() {
        let claim = scene.children.get(&part(name, "claim"));
        if claim.is_some_and(|c| c.in_state && c.observed.is_none() && !is_unchanged(c.change)) {
            found.push(
                Diagnostic::error(
                    "A member has lost its data",
                    format!(
                        "The cluster was formed, but the claim for the volume of the member \"{name}\" is not there. Started empty the member \
                         could not take part, since the others know what it had agreed to. It has to be removed from the cluster and added \
                         again, which this version does not do."
                    ),
                )
                .with_hint("If the volume still exists, make the claim again for it by hand and plan again."),
            );
        } else if is_lost(scene, &part(name, "claim")) || is_lost(scene, &part(name, "volume")) {
            found.push(Diagnostic::error(
                "A member's volume can't be replaced",
                format!("The volume of the member \"{name}\" would be removed and made anew, and its data would be gone."),
            ));
        }
    }
}

/// An emptyDir goes with its pod, so no member on one can be restarted.
fn pods_with_their_data(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    if wanted.kubernetes.as_ref().is_none_or(|k| k.storage != Storage::EmptyDir) {
        return;
    }
    let restarted = |name: &&String| {
        let change = scene.children.get(&part(name, "pod")).map(|c| c.change);
        change.is_some_and(|c| matches!(c, Change::Update { before, after } if !same(before.get("revision"), after.get("revision"))))
    };
    if wanted.members.keys().any(|name| restarted(&name)) {
        found.push(
            Diagnostic::error(
                "Members on emptyDir can't be restarted",
                "This change needs new pods, and the data of a pod with `storage = \"emptyDir\"` goes with it: each member would come back \
                 empty, and the cluster would be lost.",
            )
            .with_hint("Undo the change, or destroy the cluster and form it anew; where data matters, with a storage class."),
        );
    }
}

fn is_lost(scene: &Scene<'_>, path: &[karmaform_model::ChildStep]) -> bool {
    let action = scene.children.get(path).map(|c| c.change.action());
    matches!(action, Some(Action::DestroyThenCreate | Action::CreateThenDestroy | Action::Delete))
}

/// Another image may hold another version, whatever `version` says; another place for the same one does not.
fn images(scene: &Scene<'_>, before: Option<&Object>, wanted: &Arguments, found: &mut Diagnostics) {
    let (Some(before), Some(place)) = (before, &wanted.kubernetes) else { return };
    let last = |image: &str| image.rsplit('/').next().unwrap_or(image).to_owned();
    let image = |object: Option<&Object>| {
        let spec = object?.get("manifest")?.get("spec")?.get("template")?.get("spec")?;
        spec.get("containers")?.as_items()?.first()?.get("image")?.as_str().map(last)
    };
    let change = scene.children.get(&stateful_set()).map(|c| c.change);
    let old = change.and_then(|c| image(c.before())).or_else(|| before.get("image").and_then(Value::as_str).map(last));
    let now = place.image.as_str().map(last);
    if let (Some(old), Some(now)) = (old, now)
        && old != now
    {
        found.push(
            Diagnostic::error(
                "The image of a formed cluster can't be changed yet",
                format!(
                    "It is \"{old}\" and would be \"{now}\", which may hold another version of etcd. An upgrade needs a backup first, an order \
                     of its own and a way back, which this version does not have."
                ),
            )
            .with_hint("Put the image back; the same one from another registry is fine."),
        );
    }
}

/// What would tell members that were started, but not yet formed, another list of members.
pub(super) fn unfinished(scene: &Scene<'_>) -> Option<String> {
    let change = scene.children.get(&stateful_set()).filter(|c| c.in_state || c.observed.is_some())?.change;
    let (before, after) = sides(change, "manifest");
    let replicas = |manifest: Option<&Value>| manifest?.get("spec")?.get("replicas").cloned();
    let (before, after) = (replicas(before), replicas(after));
    (before.is_some() && !same(before.as_ref(), after.as_ref())).then(|| "the number of members would be another".to_owned())
}
