//! What is: the state's memory with what was seen laid over it. Knows nothing of what is wanted.

use karmaform_model::{ConvertError, Object, ResourceState, Schema, Status, Value, convert, fits, same};

use crate::observed::{Answer, Seen};
use crate::values::remembered;

/// What an instance is like before the change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// All that is known, memory included; what a delete works with.
    pub(crate) full: Option<Object>,
    /// What may be compared with what is wanted. Of an unfinished instance the state says what was planned, not what is: only what was
    /// seen counts, so that whatever can't be seen is done once more.
    pub(crate) compared: Option<Object>,
    /// The state's own memory.
    pub(crate) memory: Option<Object>,
    /// The state knows the instance.
    pub(crate) status: Option<Status>,
    /// It was looked for and is not there.
    pub(crate) is_absent: bool,
}

/// Lays what was seen over what is remembered.
///
/// # Errors
/// If what the state holds does not fit the schema.
pub(crate) fn before(schema: &Schema, state: Option<&ResourceState>, seen: Option<&Seen>) -> Result<Before, ConvertError> {
    let memory = state.map(|s| remembered(schema, s)).transpose()?;
    let status = state.map(|s| s.status);
    let answer = seen.map_or(&Answer::NotAsked, |s| &s.answer);
    let (full, compared) = match (answer, status) {
        (Answer::Absent, _) => (None, None),
        (Answer::Present(object), status) => {
            let laid_over = |base: Object| {
                let mut laid = base;
                seen.into_iter().flat_map(Seen::question).for_each(|(name, value)| lay(&mut laid, name, value));
                overlay(schema, &mut laid, object);
                laid
            };
            let full = laid_over(memory.clone().unwrap_or_default());
            let compared = match status {
                Some(Status::Unfinished) => computed_memory(schema, memory.as_ref(), laid_over(Object::new())),
                _ => full.clone(),
            };
            (Some(full), Some(compared))
        }
        (Answer::Failed(_), _) | (Answer::NotAsked, Some(Status::Ready | Status::Tainted)) => (memory.clone(), memory.clone()),
        (Answer::NotAsked, Some(Status::Unfinished)) => (memory.clone(), None),
        (Answer::NotAsked, None) => (None, None),
    };
    let mark = |object: Option<Object>| {
        object.map(|mut object| {
            schema.mark(&mut object);
            crate::values::mark_paths(&mut object, state.map(|s| s.secret_paths.as_slice()).unwrap_or_default());
            object
        })
    };
    Ok(Before { full: mark(full), compared: mark(compared), memory, status, is_absent: *answer == Answer::Absent })
}

impl Seen {
    /// The attributes that the question itself settles, which a provider need not repeat in its answer.
    pub(crate) fn question(&self) -> impl Iterator<Item = (&str, &Value)> {
        let connection = self.connection.iter().map(|(name, value)| (*name, value));
        self.identity.iter().map(|(name, value)| (name.as_str(), value)).chain(connection)
    }
}

fn overlay(schema: &Schema, object: &mut Object, seen: &Object) {
    for (name, value) in seen {
        let is_of_type = match (schema.attribute(name), schema.block(name)) {
            (Some(attribute), _) => fits(value, &attribute.ty),
            (_, Some(block)) => block.fits(value),
            _ => continue,
        };
        let converted = || convert(value, &schema.type_of(name)?).ok();
        match if is_of_type { None } else { converted() } {
            Some(converted) => lay(object, name, &converted),
            None => lay(object, name, value),
        }
    }
}

/// What is as it was stays the same copy, as most of a world does.
fn lay(object: &mut Object, name: &str, value: &Value) {
    let is_as_it_was = |old: &Value| old == value || same(Some(old), Some(value)) && !value.contains_secret();
    if !object.get(name).is_some_and(is_as_it_was) {
        object.insert(name.to_owned(), value.clone());
    }
}

/// What only the provider could say at the time can't be seen in every type; it stays, the rest of the memory was a plan.
fn computed_memory(schema: &Schema, memory: Option<&Object>, present: Object) -> Object {
    let kept = schema.attributes.iter().filter(|a| !a.is_configurable() && a.is_stored());
    let mut object: Object =
        kept.filter_map(|a| memory?.get(a.name).filter(|v| !Value::is_null(v)).map(|v| (a.name.to_owned(), v.clone()))).collect();
    object.extend(present);
    object
}
