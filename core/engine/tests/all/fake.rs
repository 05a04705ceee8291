//! A provider whose world is a map, with failures on demand. It refuses what a real world would: using what is not there, and removing what
//! is still used; so a wrong order of steps shows as a failed step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Connections, DataSource, Diagnostic, Gate, Known, Object, Provider, ResourceSpec, ResourceType,
    Schema, Stray, Strays, Type, Value,
};

use crate::fake_data::{HOST_DATA, LOOKUP_DATA, READY};

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing was done.
    Refused,
    /// It was done, but the answer was lost.
    Lost,
    /// Nothing was done, and it is worth another try.
    Later,
    /// The same, but not before so many seconds.
    After(u64),
    /// It was done, and the answer is that of the opposite: a thing after a delete, and none after a create or an update.
    Contrary,
}

#[derive(Default)]
pub struct Inner {
    /// By `host/name`: attributes.
    pub things: BTreeMap<String, Object>,
    /// What was done, in order.
    pub log: Vec<String>,
    /// Sizes of the batches that were asked, by connection.
    pub batches: Vec<(String, usize)>,
    /// Data sources that were read.
    pub reads: Vec<String>,
    pub connects: Vec<String>,
    /// Number of the operation (from 0) that goes wrong, and how.
    pub fault: Option<(usize, Fault)>,
    pub operations: usize,
    /// Every operation is done twice.
    pub twice: bool,
    /// Hosts that can't be reached.
    pub unreachable: BTreeSet<String>,
    /// Things that can't be looked at.
    pub unreadable: BTreeSet<String>,
    /// How many looks a gate needs until it passes; by default 0.
    pub gate_looks: BTreeMap<String, usize>,
    /// Things whose provider gives another content than asked for.
    pub liars: BTreeSet<String>,
    pub created: usize,
    /// How old what was changed was, as those who changed it were told.
    pub ages: Vec<i64>,
    /// Called before each operation with its number, and with 1000 and more at each look of a gate that has to wait.
    pub hook: Option<Box<dyn Fn(usize) + Send>>,
    /// Operations take a moment.
    pub slow: bool,
    /// The last question of each batch is left unanswered.
    pub forgetful: bool,
    /// What the last connection was given to reach others.
    pub through: Option<Arc<dyn Connections>>,
}

#[derive(Clone, Default)]
pub struct World(pub Arc<Mutex<Inner>>);

impl World {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Name, content and size of everything that is there. Numbers of what was made are left out: they say how often it was tried.
    pub fn contents(&self) -> BTreeMap<String, String> {
        let text = |o: &Object, name: &str| {
            let text = o.get(name).and_then(Value::as_str).unwrap_or("-");
            text.split_once('#').map_or(text, |(kind, _)| kind).to_owned()
        };
        self.lock().things.iter().map(|(k, o)| (k.clone(), format!("{} {}", text(o, "content"), text(o, "size")))).collect()
    }
}

pub struct Fake(pub World);

pub struct Client {
    pub world: World,
    pub host: String,
}

/// A thing on this machine, or on a host.
struct Thing {
    name: &'static str,
    schema: Schema,
}

/// Something that lives in the state alone.
struct Note(Schema);

fn thing_attributes() -> Vec<Attribute> {
    vec![
        Attribute::required("name", Type::String, "").identity(),
        Attribute::optional("content", Type::String, ""),
        Attribute::optional("size", Type::String, "").forces_replace(),
        Attribute::optional("needs", Type::list(Type::String), "").forces_replace(),
        Attribute::optional("tags", Type::map(Type::String), ""),
        Attribute::optional("password", Type::String, "").secret(),
        Attribute::optional("hint", Type::String, "").write_only(),
        Attribute::computed("id", Type::String, ""),
        Attribute::computed("digest", Type::String, ""),
        Attribute::computed("age", Type::Number, "").volatile(),
    ]
}

static LOCAL: std::sync::LazyLock<Thing> =
    std::sync::LazyLock::new(|| Thing { name: "fake_local", schema: Schema::new("", thing_attributes()) });
static REMOTE: std::sync::LazyLock<Thing> = std::sync::LazyLock::new(|| {
    let mut attributes = vec![Attribute::required("host", Type::Any, "")];
    attributes.extend(thing_attributes());
    Thing { name: "fake_thing", schema: Schema::new("", attributes).through("host") }
});
static NOTE: std::sync::LazyLock<Note> = std::sync::LazyLock::new(|| {
    let attributes = vec![
        Attribute::optional("input", Type::Any, ""),
        Attribute::optional("trigger", Type::Any, "").forces_replace(),
        Attribute::computed("output", Type::Any, ""),
        Attribute::computed("id", Type::String, ""),
    ];
    Note(Schema::new("", attributes).state_only())
});
impl ResourceSpec for Thing {
    fn name(&self) -> &'static str {
        self.name
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn plan(
        &self,
        _: &karmaform_model::PlanContext,
        before: Option<&Object>,
        wanted: Option<&Object>,
    ) -> Result<Change, karmaform_model::Diagnostics> {
        let mut change = karmaform_model::default_plan(&self.schema, before, wanted);
        if wanted.and_then(|w| w.get("content")).and_then(Value::as_str) == Some("impossible") {
            return Err(Diagnostic::error("Impossible content", "It can't be.").into());
        }
        // The digest can be told ahead.
        if let Some(after) = change.after_mut() {
            let digest = match after.get("content") {
                Some(v) if v.is_unknown() => Value::unknown(Type::String),
                Some(v) => v.as_str().map_or_else(|| Value::null(Type::String), |c| format!("digest of {c}").into()).secret_if(v.secret),
                None => Value::null(Type::String),
            };
            after.insert("digest".into(), digest);
        }
        Ok(change)
    }
    fn impact(&self, change: &Change) -> Vec<String> {
        let age = change.before().and_then(|b| b.get("age")).and_then(Value::as_number).map(|age| format!("it is of age {age}"));
        let is_asked = change.after().and_then(|a| a["content"].as_str()) == Some("aged");
        [format!("{:?} touches it", change.action())].into_iter().chain(age.filter(|_| is_asked)).collect()
    }
}

impl Thing {
    fn key(&self, client: &Client, object: &Object) -> String {
        format!("{}/{}", client.host, object["name"].as_str().unwrap_or("?"))
    }
}

pub fn error(text: &str) -> Diagnostic {
    Diagnostic::error(text, "The fake world says so.")
}

impl ResourceType<Client> for Thing {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let world = client.world.lock();
            let key = self.key(client, &ask.identity);
            if world.unreadable.contains(&key) {
                return Err(error("Can't look"));
            }
            Ok(world.things.get(&key).map(|thing| {
                let mut seen = thing.clone();
                seen.insert("age".into(), 7i64.into());
                // Nobody can read a password back.
                seen.remove("password");
                seen
            }))
        })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let (number, twice) = {
                let mut world = client.world.lock();
                let number = world.operations;
                world.operations += 1;
                if let Some(hook) = &world.hook {
                    hook(number);
                }
                (number, world.twice)
            };
            if client.world.lock().slow {
                let mut looks = 0;
                futures::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    looks += 1;
                    if looks > 2 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
                })
                .await;
            }
            let fault = client.world.lock().fault.filter(|(at, _)| *at == number).map(|(_, fault)| fault);
            match fault {
                Some(Fault::Refused) => return Err(error("Refused")),
                Some(Fault::Later) => return Err(error("Not now").retryable()),
                Some(Fault::After(seconds)) => return Err(error("Not now").retryable_after(seconds)),
                _ => {}
            }
            let mut result = self.act(client, change);
            if twice {
                result = self.act(client, change);
            }
            match fault {
                Some(Fault::Lost) => Err(error("Answer lost")),
                Some(Fault::Contrary) => result.map(|now| if now.is_none() { change.before().cloned() } else { None }),
                _ => result,
            }
        })
    }
}

impl Thing {
    fn act(&self, client: &Client, change: &Change) -> Result<Option<Object>, Diagnostic> {
        let mut world = client.world.lock();
        let side = change.after().or(change.before()).unwrap();
        let key = self.key(client, side);
        world.log.push(format!("{:?} {key}", change.action()));
        let age = change.before().and_then(|b| b.get("age")?.as_i64());
        world.ages.extend(age);
        let Some(after) = change.after() else {
            if let Some(id) = world.things.get(&key).and_then(|t| t["id"].as_str()).map(str::to_owned)
                && let Some(user) = world.things.iter().find(|(_, t)| needs(t).contains(&id))
            {
                return Err(error(&format!("Still used by {}", user.0)));
            }
            world.things.remove(&key);
            return Ok(None);
        };
        assert!(after.iter().all(|(n, v)| v.is_wholly_known() || ["id", "digest"].contains(&n.as_str())), "{after:?}");
        let ids: BTreeSet<String> = world.things.values().filter_map(|t| t["id"].as_str().map(str::to_owned)).collect();
        if let Some(missing) = needs(after).into_iter().find(|n| !ids.contains(n)) {
            return Err(error(&format!("Needs {missing}, which is not there")));
        }
        let id = match world.things.get(&key) {
            Some(there) => there["id"].clone(),
            None => {
                world.created += 1;
                format!("{}#{}", after["name"].as_str().unwrap(), world.created).into()
            }
        };
        let mut thing = after.clone();
        for value in thing.values_mut() {
            *value = value.clone().without_marks();
        }
        if world.liars.contains(&key) {
            thing.insert("content".into(), "something else".into());
        }
        thing.insert("id".into(), id);
        let content = thing.get("content").and_then(Value::as_str).map(|c| format!("digest of {c}"));
        thing.insert("digest".into(), content.map_or_else(|| Value::null(Type::String), Value::from));
        thing.remove("hint");
        thing.remove("host");
        world.things.insert(key, thing.clone());
        Ok(Some(thing))
    }
}

fn needs(object: &Object) -> Vec<String> {
    let items = object.get("needs").and_then(Value::as_items).unwrap_or_default();
    items.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

impl ResourceSpec for Note {
    fn name(&self) -> &'static str {
        "fake_note"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn plan(
        &self,
        _: &karmaform_model::PlanContext,
        before: Option<&Object>,
        wanted: Option<&Object>,
    ) -> Result<Change, karmaform_model::Diagnostics> {
        let mut change = karmaform_model::default_plan(&self.0, before, wanted);
        if let Change::Update { after, .. } = &mut change {
            let secret = after["input"].contains_secret();
            after.insert("output".into(), Value::unknown(Type::Any).secret_if(secret));
        }
        Ok(change)
    }
}

impl ResourceType<Client> for Note {
    fn observe<'a>(&'a self, _: &'a Client, _: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async { panic!("what lives in the state alone is never asked for") })
    }
    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let mut world = client.world.lock();
            if change.after().and_then(|a| a["input"].as_str()) == Some("fail") {
                return Err(error("Note refused"));
            }
            world.created += 1;
            Ok(change.after().map(|after| {
                let mut after = after.clone();
                let output = after["input"].clone().without_marks();
                after.insert("output".into(), output);
                if after["id"].is_unknown() {
                    after.insert("id".into(), format!("note#{}", world.created).into());
                }
                after
            }))
        })
    }
}

static NO_SETTINGS: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(Schema::default);

impl Provider for Fake {
    type Client = Client;
    fn name(&self) -> &'static str {
        "fake"
    }
    fn schema(&self) -> &Schema {
        &NO_SETTINGS
    }
    fn types(&self) -> Vec<&dyn ResourceType<Client>> {
        vec![&*LOCAL, &*REMOTE, &*NOTE]
    }
    fn data_sources(&self) -> Vec<&dyn DataSource<Client>> {
        vec![&*HOST_DATA, &*LOOKUP_DATA]
    }
    fn gates(&self) -> Vec<&dyn Gate<Client>> {
        vec![&*READY]
    }
    fn connect<'a>(
        &'a self,
        _: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<Client, Diagnostic>> {
        Box::pin(async move {
            let host = connection.get("id").or(connection.get("address")).and_then(Value::as_str).unwrap_or("").to_owned();
            let mut world = self.0.lock();
            world.through = Some(connections);
            world.connects.push(host.clone());
            if world.unreachable.contains(&host) {
                return Err(error("Host can't be reached"));
            }
            Ok(Client { world: self.0.clone(), host })
        })
    }
    /// Things whose name begins with that of one of ours.
    fn strays<'a>(&'a self, client: &'a Client, known: &'a [Known]) -> BoxFuture<'a, Strays> {
        Box::pin(async move {
            let name = |k: &Known| k.object.get("name").and_then(Value::as_str).map(|n| format!("{}/{n}", client.host));
            let names: Vec<Option<String>> = known.iter().map(name).collect();
            let world = client.world.lock();
            let unknown = world.things.keys().filter(|key| !names.iter().flatten().any(|n| n == *key));
            let beside = |key: &String| {
                let is_marked = |(n, k): (&Option<String>, &Known)| k.is_ours && n.as_ref().is_some_and(|n| key.starts_with(n));
                names.iter().zip(known).position(is_marked).map(|beside| Stray { name: key.clone(), beside })
            };
            Strays { found: unknown.filter_map(beside).collect(), ..Strays::default() }
        })
    }
    fn observe<'a>(&'a self, client: &'a Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            client.world.lock().batches.push((client.host.clone(), asks.len()));
            let mut answers = Vec::new();
            for ask in asks {
                let types = self.types();
                let ty = types.iter().find(|t| t.name() == ask.resource_type).unwrap();
                answers.push(ty.observe(client, ask).await);
            }
            if client.world.lock().forgetful {
                answers.pop();
            }
            answers
        })
    }
}
