//! From a configuration to an open backend: which kind, with which arguments, and whether it is the one this directory works with so far.

mod arguments;
mod keep_alive;
mod others;
mod partial;
mod record;
mod seal;

pub(crate) use keep_alive::KeepAlive;
pub(crate) use others::Others;
pub(crate) use partial::arguments as partial_arguments;
pub(crate) use record::Record;

use std::sync::Arc;

use karmaform_lang::{Settings, SettingsBlock};
use karmaform_model::{Clear, Diagnostic, Object, Seal, Snapshot, from_json, is_sealed, to_json};
use serde_json::{Map, Value as Json};

use crate::app::{App, Stop};
use crate::wiring::{BackendKind, BackendRequest, DEFAULT_WORKSPACE, OpenBackend, STATE_FILE};
use crate::workspace;
use arguments::{BlockName, Given, checked};
pub(crate) use seal::{seal_of, seal_of_directory, unsealable};

/// The kind that is used where nothing is said.
const LOCAL: &str = "local";

/// The kind with this name; or what to say where there is none, and the names of all, in quotes, for a hint.
fn kind_of(all: &[BackendKind], name: &str) -> Result<BackendKind, (Diagnostic, Vec<String>)> {
    all.iter().find(|b| b.name == name).copied().ok_or_else(|| {
        let known = all.iter().map(|b| format!("\"{}\"", b.name)).collect();
        (Diagnostic::error("Unsupported backend", format!("There is no backend \"{name}\" in this version.")), known)
    })
}

/// A backend that a configuration asks for, not open yet.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    kind: BackendKind,
    written: Given,
    /// What `-backend-config` gave, now or at an earlier `init`.
    given: Object,
}

impl Chosen {
    /// What the configuration asks for, with what an earlier `init` gave.
    ///
    /// # Errors
    /// If there is no such backend.
    pub(crate) fn of(app: &App, settings: Option<&SettingsBlock>, record: Option<&Record>) -> Result<Self, Stop> {
        let name = settings.map_or(LOCAL, |b| b.kind.as_str());
        let kind = kind_of(&app.wiring.backends, name).map_err(|(refused, known)| {
            refused
                .with_span(settings.map(|b| b.span))
                .with_hint(format!("Use {}, or leave the block out to keep the state in a local file.", known.join(" or ")))
        })?;
        let mut chosen = Self { kind, written: settings.map(Given::from).unwrap_or_default(), given: Object::new() };
        if let Some(record) = record.filter(|r| r.kind == name) {
            chosen.given = chosen.decoded(&record.given);
        }
        Ok(chosen)
    }

    /// The backend that a directory worked with before; `None` if this version has no such kind.
    pub(crate) fn before(app: &App, record: &Record) -> Option<Self> {
        let kind = kind_of(&app.wiring.backends, &record.kind).ok()?;
        let mut chosen = Self { kind, written: Given::default(), given: Object::new() };
        chosen.written.arguments = chosen.decoded(&record.arguments);
        chosen.given = chosen.decoded(&record.given);
        Some(chosen)
    }

    /// What `-backend-config` gives now, instead of what it gave before.
    ///
    /// # Errors
    /// For what is no argument.
    pub(crate) fn with_flags(mut self, app: &App, flags: &[String]) -> Result<Self, Stop> {
        self.given = partial_arguments(app, (self.kind.schema)(), flags)?;
        Ok(self)
    }

    fn decoded(&self, stored: &Map<String, Json>) -> Object {
        let schema = (self.kind.schema)();
        let of = |(name, json): (&String, &Json)| Some((name.clone(), from_json(json, &schema.type_of(name)?).ok()?));
        stored.iter().filter_map(of).collect()
    }

    /// Opens it, without touching anything.
    ///
    /// # Errors
    /// If its arguments are wrong.
    pub(crate) fn open(&self, app: &App, workspace: &str, state: Option<&str>, seal: &Arc<dyn Seal>) -> Result<OpenBackend, Stop> {
        let mut written = self.written.clone();
        for (name, value) in &self.given {
            // As with Terraform: what is given with the flag wins over what is written.
            written.arguments.insert(name.clone(), value.clone());
            written.spans.remove(name);
        }
        let arguments = checked(BlockName::Backend(self.kind.name), (self.kind.schema)(), &written)?;
        let (environment, home) = (&app.wiring.environment, app.wiring.home.as_deref());
        let request = BackendRequest { directory: &app.directory, arguments: &arguments, workspace, state, environment, home, seal };
        (self.kind.open)(&request).map_err(|d| d.with_span(self.written.span).into())
    }

    /// What the directory shall remember of it.
    pub(crate) fn record(&self, open: &OpenBackend) -> Record {
        let schema = (self.kind.schema)();
        let is_secret = |name: &str| schema.attribute(name).is_some_and(|a| a.secret);
        let stored = |object: &Object, secrets: bool| -> Map<String, Json> {
            let kept = object.iter().filter(|(name, value)| !value.is_null() && (secrets || !is_secret(name)));
            kept.map(|(name, value)| (name.clone(), to_json(value))).collect()
        };
        Record::new(self.kind.name, &open.place, stored(&self.given, true), stored(&self.written.arguments, false))
    }
}

/// Opens the backend of a configuration, without reading anything. With `-state` it is that file, whatever the directory remembers.
///
/// # Errors
/// If there is no such backend, its arguments are wrong, or it is another one than before.
pub(crate) fn open_backend(app: &App, settings: &Settings, state: Option<&str>) -> Result<OpenBackend, Stop> {
    let seal = seal_of(app, settings)?;
    if state.is_some() {
        return Chosen::of(app, settings.backend.as_ref(), None)?.open(app, DEFAULT_WORKSPACE, state, &seal);
    }
    let (chosen, base, news) = settled(app, settings, &seal)?;
    let workspace = workspace::current(app)?;
    let mut open = if workspace == DEFAULT_WORKSPACE { base } else { chosen.open(app, &workspace, None, &seal)? };
    open.record = news;
    Ok(open)
}

/// The state of this workspace, in the place that the configuration says; which one is selected does not matter.
///
/// # Errors
/// As [`open_backend`].
pub(crate) fn open_workspace(app: &App, settings: &Settings, workspace: &str) -> Result<OpenBackend, Stop> {
    let seal = seal_of(app, settings)?;
    let (chosen, base, _) = settled(app, settings, &seal)?;
    if workspace == DEFAULT_WORKSPACE { Ok(base) } else { chosen.open(app, workspace, None, &seal) }
}

/// The backend of the directory with the state of its default workspace, which is what the directory remembers: the others are beside it. And
/// what it shall remember.
fn settled(app: &App, settings: &Settings, seal: &Arc<dyn Seal>) -> Result<(Chosen, OpenBackend, Option<Record>), Stop> {
    let block = settings.backend.as_ref();
    let record = Record::read(&app.directory)?;
    let chosen = Chosen::of(app, block, record.as_ref())?;
    let base = chosen.open(app, DEFAULT_WORKSPACE, None, seal)?;
    if let Some(before) = place_before(app, record.as_ref(), &base) {
        return Err(changed(&before, &base.place).with_span(block.map(|b| b.span)).into());
    }
    let now = chosen.record(&base);
    let news = (record.as_ref() != Some(&now)).then_some(now);
    Ok((chosen, base, news))
}

/// The configuration names another backend than this directory worked with.
pub(crate) fn changed(before: &str, now: &str) -> Diagnostic {
    let detail = format!("So far this directory worked with the state at {before}. The configuration now says {now}.");
    Diagnostic::error("Backend configuration changed", detail)
        .with_hint("To take the state along: karmaform init -migrate-state")
        .with_hint("To leave it where it is and work with the other one: karmaform init -reconfigure")
}

/// The store is no place for a state.
pub(crate) fn unfit(place: &str, why: &str) -> Diagnostic {
    Diagnostic::error("Store does not keep its word", format!("The store of {place} can't hold a state safely: {why}.")).with_hint(
        "Use a store with atomic conditional writes: AWS S3, MinIO, SeaweedFS and others have them. A newer version of this one may, too.",
    )
}

/// Where the state was that this directory worked with, if that is another place than this. A directory that remembers nothing worked with a
/// file, if there is one with something in it.
pub(crate) fn place_before(app: &App, record: Option<&Record>, open: &OpenBackend) -> Option<String> {
    if let Some(record) = record {
        return (record.place != open.place || record.kind != open.kind).then(|| record.place.clone());
    }
    if open.kind == LOCAL {
        return None;
    }
    let has_something = match std::fs::read(app.directory.join(STATE_FILE)) {
        // What is in it is not worth asking for a key.
        Ok(bytes) if is_sealed(&bytes) => true,
        Ok(bytes) => Snapshot::from_stored(&bytes, &Clear).is_ok_and(|s| !s.resources.is_empty() || !s.outputs.is_empty()),
        Err(_) => false,
    };
    has_something.then(|| STATE_FILE.to_owned())
}

/// The backend of a directory that remembers nothing: a local file.
pub(crate) fn local_record() -> Record {
    Record::new(LOCAL, STATE_FILE, Map::new(), Map::new())
}
