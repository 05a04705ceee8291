//! Facts of the moment: no state keeps them, and no change has them. Whoever says what a change does, and whoever does it, may need them all the same:
//! that a thing runs as it was before, or that nobody made it here.

use karmaform_model::{Change, Object, Schema};

/// What was seen of something that is there and is to change, without what the state keeps of it, and without secrets.
pub(crate) fn seen(schema: &Schema, change: &Change, there: Option<&Object>) -> Object {
    let there = there.filter(|_| matches!(change, Change::Update { .. } | Change::Replace { .. } | Change::Delete { .. }));
    let is_fact = |name: &str| schema.attribute(name).is_some_and(|a| a.volatile);
    let found = there.into_iter().flat_map(|o| o.iter()).filter(|(name, value)| is_fact(name) && !value.contains_secret());
    found.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A change as its resource type knows it: with the facts of what was there before.
pub(crate) fn with_facts(mut change: Change, facts: &Object) -> Change {
    if let Change::Update { before, .. } | Change::Replace { before, .. } | Change::Delete { before } = &mut change {
        before.extend(facts.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    change
}
