//! One ask about an object, as those read it who look.

use karmaform_model::{Ask, Object, Value};

use crate::manifest::{Name, Named, named};
use crate::values::{is_true, text};

/// One ask, read.
pub(crate) struct Question {
    /// Its place among the asks.
    pub(crate) index: usize,
    pub(crate) name: Name,
    pub(crate) wanted: Option<Value>,
    pub(crate) known: Option<Value>,
    pub(crate) is_known: bool,
    pub(crate) force: bool,
    pub(crate) shared: bool,
    /// Nobody else may set fields of it.
    pub(crate) exclusive: bool,
    /// The kind must be served already.
    pub(crate) expects_kind: bool,
    /// Fields that no other may have the same value in.
    pub(crate) unique: Vec<String>,
    /// What says which fields are to be read out.
    pub(crate) asked: Option<Object>,
    /// The state's memory.
    pub(crate) memory: Option<Object>,
}

/// Reads one; `None` if it does not name its object.
pub(crate) fn question(index: usize, ask: &Ask) -> Option<Question> {
    let identity = text(&ask.identity, "object")?;
    let name = Name::parse(identity)?;
    let of_it = |object: Option<&Object>| {
        let found = object?.get("manifest")?;
        matches!(named(found), Named::Known(n) if n == name).then(|| found.clone())
    };
    let wanted = of_it(ask.wanted.as_ref());
    let known = of_it(ask.known.as_ref());
    // What was adopted is known, and still not ours.
    let is_known = ask.known.as_ref().is_some_and(|k| !is_true(k, "adopted"));
    let force = ask.wanted.as_ref().is_some_and(|w| is_true(w, "force") || (is_known && is_true(w, "reclaim")));
    let shared = match &ask.wanted {
        Some(wanted) => is_true(wanted, "shared"),
        None => ask.known.as_ref().is_some_and(|k| is_true(k, "adopted")),
    };
    let exclusive = ask.wanted.as_ref().is_some_and(|w| is_true(w, "exclusive"));
    let expects_kind = ask.wanted.as_ref().is_some_and(|w| is_true(w, "expect_kind"));
    let pointers = ask.wanted.as_ref().and_then(|w| w.get("unique")).and_then(Value::as_items).unwrap_or_default();
    let unique = pointers.iter().filter_map(|p| p.as_str().map(str::to_owned)).collect();
    let asked = ask.wanted.as_ref().or(ask.known.as_ref()).cloned();
    Some(Question {
        index,
        name,
        wanted,
        known,
        is_known,
        force,
        shared,
        exclusive,
        expects_kind,
        unique,
        asked,
        memory: ask.known.clone(),
    })
}
