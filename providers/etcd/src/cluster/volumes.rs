//! Volumes of another storage class for members in pods. Nothing is copied from volume to volume: whoever has one of another class than it is to leaves the
//! cluster, gets an empty one, and joins anew. The cluster gives it the data.

use karmaform_model::{Action, Diagnostic, Object, Scene, Value, same};

use super::arguments::Arguments;
use super::condition::{seen, sides};
use super::kubernetes::{Kubernetes, Storage};
use super::membership::{Membership, Move};
use super::places::{part, stateful_set};

/// The field of a claim that says it.
const CLASS: &str = "storageClassName";

/// Its claim is there, and asks for a volume of another class than it is to.
pub(crate) fn is_on_another(scene: &Scene<'_>, name: &str) -> bool {
    let is_class = |class: &Option<Value>| class.as_ref().and_then(Value::as_str).is_some_and(|class| !class.is_empty());
    classes(scene, name).is_some_and(|(before, after)| !same(before.as_ref(), after.as_ref()) && is_class(&before) && is_class(&after))
}

/// It would be made anew, and not because its member goes to another class: it is of a folder on a node, or what does not change in place is something else.
pub(crate) fn is_lost(scene: &Scene<'_>, name: &str) -> bool {
    let Some((before, after)) = classes(scene, name) else { return false };
    let immutable = seen(scene, &part(name, "claim"), "immutable").and_then(Value::as_str);
    let is_other = !same(before.as_ref(), after.as_ref()) || immutable.is_some_and(|why| !why.is_empty());
    is_other && !is_on_another(scene, name)
}

/// The class that the claim of a member asks for, and the one that it is to; `None`: it does not change.
fn classes(scene: &Scene<'_>, name: &str) -> Option<(Option<Value>, Option<Value>)> {
    let claim = scene.children.get(&part(name, "claim")).filter(|c| c.change.action() == Action::Update)?;
    let (before, after) = sides(claim.change, "manifest");
    let class = |manifest: Option<&Value>| manifest?.get("spec")?.get(CLASS).cloned();
    Some((class(before), class(after)))
}

/// The StatefulSet asks for another class than it is to, so nobody has come to that yet.
pub(crate) fn begins(scene: &Scene<'_>) -> bool {
    let Some(set) = scene.children.get(&stateful_set()).filter(|set| set.change.action() == Action::Update) else { return false };
    let (before, after) = sides(set.change, "manifest");
    let class = |manifest: Option<&Value>| {
        let claims = manifest?.get("spec")?.get("volumeClaimTemplates")?.as_items()?;
        claims.first()?.get("spec")?.get(CLASS).cloned()
    };
    !same(class(before).as_ref(), class(after).as_ref())
}

/// The storage that was applied is another class than the one that is wanted. Folders on nodes belong to another user, so members can't come from there, nor go.
pub(crate) fn is_other(before: &Object, place: &Kubernetes) -> bool {
    let Some(old) = before.get("storage").and_then(Value::as_str) else { return false };
    matches!(&place.storage, Storage::Class(new) if Storage::is_class(old) && new != old)
}

/// Members of the moves that leave for another volume and come back, in turn.
pub(crate) fn in_turn<'a>(scene: &'a Scene<'_>, membership: &'a Membership) -> impl Iterator<Item = &'a str> {
    let comes_back = |name: &str| is_on_another(scene, name) && membership.joining().any(|joining| joining == name);
    membership.moves.iter().filter_map(move |step| match step {
        Move::Leave { name, .. } if comes_back(name) => Some(name.as_str()),
        _ => None,
    })
}

/// A claim is changed by nobody but those moves: the one of before is deleted with what is in it.
///
/// # Errors
/// A member would have another volume, and takes part with the one that it has.
pub(crate) fn all_come_back(scene: &Scene<'_>, wanted: &Arguments, membership: &Membership) -> Result<(), Diagnostic> {
    let is_empty =
        |name: &&String| membership.moves.iter().any(|step| matches!(step, Move::Join { name: n, has_data: false, .. } if n == *name));
    let Some(name) = wanted.members.keys().filter(|name| is_on_another(scene, name)).find(|name| !is_empty(name)) else { return Ok(()) };
    let detail =
        format!("\"{name}\" would leave its volume now, and whether the others can do without it is not known: not all of them work.");
    Err(Diagnostic::error("Members can't go to other volumes now", detail)
        .with_hint("Wait until all members work, and plan again; `kubectl describe pod` says what keeps them.")
        .with_hint("With `-target`, take the whole cluster.")
        .with_hint("What else is to be repaired can be a target of its own until then."))
}

/// Why not. `meanwhile`: what else the plan does.
pub(crate) fn apart(meanwhile: &str) -> Diagnostic {
    let detail = format!("For other volumes members leave and join one at a time, which is not done while {meanwhile}.");
    Diagnostic::error("Other volumes come in a plan of their own", detail)
        .with_hint("Put `storage` back, apply the rest, and change it then; or the other way round.")
        .with_hint("If some members have gone to other volumes already, apply with these first.")
}
