//! What is ours, and the host does not remember as that any more: somebody took its line out of what the host keeps. It is told again, as a destroy
//! would take it for somebody else's.

use karmaform_model::{Action, Attribute, Change, Object, Type};

use crate::owned::PLACE;
use crate::values::boolean;

/// The attribute that says that the host knows nothing of it any more.
pub(super) const FORGOTTEN: &str = "forgotten";

/// The attribute.
pub(super) fn forgotten() -> Attribute {
    Attribute::computed(FORGOTTEN, Type::Bool, "True if the host does not remember any more that it is karmaform's.").volatile()
}

/// True of what was seen so.
pub(super) fn is_forgotten(before: &Object) -> bool {
    boolean(before, FORGOTTEN) == Some(true)
}

/// That it is so, as `care`: who destroys it later would take it for somebody else's.
pub(super) fn care_of_forgotten() -> String {
    format!("the host does not remember any more that it is karmaform's: somebody took that out of {PLACE}/owned")
}

/// What a change does about it.
pub(super) fn told_again(change: &Change) -> Option<String> {
    let is_told = change.action() == Action::Update && change.before().is_some_and(is_forgotten);
    is_told.then(|| "the host is told again that it is karmaform's".to_owned())
}
