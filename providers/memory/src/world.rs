//! The world: what is there, what was asked of it, and what is to go wrong.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karmaform_model::{Diagnostic, Driver, GateAnswer, Object, Value};

use crate::Fault;
use crate::fill::Blank;
use crate::inner::Inner;
use crate::text::{self, Line, NONE};

/// Where a thing is in the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its resource type.
    pub resource_type: String,
    /// The id of the connection it is reached through; `-` if it needs none.
    pub connection: String,
    /// What names it there: its identity attributes, joined by slashes; `-` if there are none.
    pub identity: String,
}

/// A change that was just done, for a hook that plays what the outside does next.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    /// Where.
    pub place: &'a Place,
    /// What was there.
    pub before: Option<&'a Object>,
    /// What is there now, with its connection and its write-only attributes; `None` after a delete.
    pub after: Option<&'a Object>,
}

/// Plays what follows from a change.
pub(crate) type ApplyHook = Arc<dyn Fn(&World, &Applied<'_>) -> Result<(), Diagnostic> + Send + Sync>;
/// Answers a gate.
pub(crate) type GateHook = Arc<dyn Fn(&World, &str, &Object) -> Result<GateAnswer, Diagnostic> + Send + Sync>;
/// Adds facts of the moment to what is seen.
pub(crate) type ObserveHook = Arc<dyn Fn(&World, &Place, &mut Object) + Send + Sync>;
/// Knows a value of a computed attribute.
pub(crate) type FillHook = Arc<dyn Fn(&Blank<'_>) -> Option<Value> + Send + Sync>;

/// A world in a map. Shared by the drivers that are put over it; all methods may be called at any time, also from hooks.
#[derive(Default)]
pub struct World {
    inner: Mutex<Inner>,
}

impl Place {
    /// The place of this type, connection id and identity.
    pub fn new(resource_type: &str, connection: &str, identity: &str) -> Self {
        Self { resource_type: resource_type.to_owned(), connection: connection.to_owned(), identity: identity.to_owned() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.resource_type, self.connection, self.identity)
    }
}

impl World {
    /// An empty world.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The lock is never held while a hook runs.
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn learn(&self, driver: &dyn Driver) {
        let mut inner = self.inner();
        for spec in driver.specs() {
            inner.schemas.insert(spec.name().to_owned(), spec.schema().clone());
        }
        for (name, schema) in driver.data_schemas() {
            inner.data_schemas.insert(name.to_owned(), schema.clone());
        }
    }

    /// Puts a thing there, as if it had always been. The drivers come first: they say which attributes there are.
    ///
    /// # Errors
    /// If the object does not fit the type's schema.
    pub fn set(&self, place: Place, object: Object) -> Result<(), String> {
        let mut inner = self.inner();
        let object = match inner.schemas.get(&place.resource_type) {
            Some(schema) => text::complete(schema, &place, &object).map_err(|e| format!("{place}: {e}"))?,
            None => object,
        };
        inner.things.insert(place, object);
        Ok(())
    }

    /// The thing at this place.
    pub fn get(&self, place: &Place) -> Option<Object> {
        self.inner().things.get(place).cloned()
    }

    /// Changes a thing behind karmaform's back; false if it is not there.
    pub fn change(&self, place: &Place, change: impl FnOnce(&mut Object)) -> bool {
        // Changed outside the lock, so that `change` may look at the world.
        let Some(mut object) = self.get(place) else { return false };
        change(&mut object);
        self.inner().things.insert(place.clone(), object);
        true
    }

    /// Takes a thing away behind karmaform's back.
    pub fn remove(&self, place: &Place) -> Option<Object> {
        self.inner().things.remove(place)
    }

    /// All things of a type.
    pub fn list(&self, resource_type: &str) -> Vec<(Place, Object)> {
        let inner = self.inner();
        inner.things.iter().filter(|(p, _)| p.resource_type == resource_type).map(|(p, o)| (p.clone(), o.clone())).collect()
    }

    /// What a data source answers to arguments that have all of `matching` in them; a later answer to the same `matching` takes its place.
    pub fn set_data(&self, data_source: &str, matching: Object, results: Object) {
        let answers = &mut self.inner().data;
        answers.retain(|(name, m, _)| name != data_source || *m != matching);
        answers.push((data_source.to_owned(), matching, results));
    }

    /// Sets the world from lines as [`World::text`] prints them, and from lines `data TYPE {arguments} = {results}`. Empty lines and lines
    /// that start with `#` are skipped.
    ///
    /// # Errors
    /// The first line that makes no sense.
    pub fn preset(&self, lines: &str) -> Result<(), String> {
        for line in lines.lines() {
            match text::parse(line)? {
                None => {}
                Some(Line::Thing(place, object)) => self.set(place, object)?,
                Some(Line::Data(kind, arguments, results)) => self.set_data(&kind, arguments, results),
            }
        }
        Ok(())
    }

    /// All that is there, one sorted line each. Secrets stand in them: this is the outside, not something karmaform prints.
    pub fn text(&self) -> String {
        let inner = self.inner();
        inner.things.iter().map(|(place, object)| text::print(place, object, inner.schemas.get(&place.resource_type)) + "\n").collect()
    }

    /// Every call so far: `create ssh_file a:22 /etc/motd`, `observe ...`, `read ssh_host a`, `check etcd_healthy`.
    pub fn log(&self) -> Vec<String> {
        self.inner().log.clone()
    }

    /// Forgets the calls so far and counts from 1 again.
    pub fn clear_log(&self) {
        let mut inner = self.inner();
        inner.log.clear();
        (inner.applies, inner.observes) = (0, 0);
    }

    /// How many applies there were, failed ones included.
    pub fn applies(&self) -> usize {
        self.inner().applies
    }

    /// Something to go wrong.
    pub fn inject(&self, fault: Fault) {
        self.inner().faults.push(fault);
    }

    /// Everything through the connection with this id fails, until [`World::heal`].
    pub fn fail_host(&self, id: &str) {
        self.inner().broken_hosts.insert(id.to_owned());
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        let mut inner = self.inner();
        inner.faults.clear();
        inner.broken_hosts.clear();
    }

    /// Does every change twice: it must make no difference.
    pub fn repeat_applies(&self, repeat: bool) {
        self.inner().repeat = repeat;
    }

    /// How long each call takes, in milliseconds.
    pub fn set_delay(&self, milliseconds: u64) {
        self.inner().delay = milliseconds;
    }

    /// Called after each change that was done, and once more for each repetition. It may change the world; an error fails the call, and
    /// what it did not undo stays.
    pub fn on_apply(&self, hook: impl Fn(&Self, &Applied<'_>) -> Result<(), Diagnostic> + Send + Sync + 'static) {
        self.inner().on_apply = Some(Arc::new(hook));
    }

    /// Answers gates, by type and arguments. Without it all pass.
    pub fn on_gate(&self, hook: impl Fn(&Self, &str, &Object) -> Result<GateAnswer, Diagnostic> + Send + Sync + 'static) {
        self.inner().on_gate = Some(Arc::new(hook));
    }

    /// Adds to what is seen of a thing, volatile facts first of all.
    pub fn on_observe(&self, hook: impl Fn(&Self, &Place, &mut Object) + Send + Sync + 'static) {
        self.inner().on_observe = Some(Arc::new(hook));
    }

    /// Gives computed attributes values; where it gives none they are made up.
    pub fn on_fill(&self, hook: impl Fn(&Blank<'_>) -> Option<Value> + Send + Sync + 'static) {
        self.inner().on_fill = Some(Arc::new(hook));
    }
}

/// Where a connection value, a data source's arguments, or nothing leads to.
pub(crate) fn connection_id(connection: &Object) -> String {
    let text = |name: &str| connection.get(name).and_then(|v| v.as_str().map(str::to_owned).or_else(|| v.as_i64().map(|i| i.to_string())));
    match (text("id"), text("address"), text("port")) {
        (Some(id), ..) => id,
        (None, Some(address), Some(port)) => format!("{address}:{port}"),
        (None, Some(address), None) => address,
        (None, None, _) => NONE.to_owned(),
    }
}
