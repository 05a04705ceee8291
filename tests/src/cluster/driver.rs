//! Puts the real providers' schemas and planning over the model: what would touch a host, a certificate or etcd is answered by it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karmaform_model::{
    AnyClient, Ask, BoxFuture, Change, Connections, Diagnostic, Driver, GateAnswer, Looking, Object, ResourceSpec, Schema, Type, Value,
};
use tokio::sync::Notify;

use super::model::{Answer, World};

/// What goes wrong, and what was done.
#[derive(Default)]
pub(super) struct Trouble {
    steps: AtomicUsize,
    plan: Mutex<Planned>,
    hung: Mutex<Option<Arc<Notify>>>,
}

#[derive(Default)]
struct Planned {
    kill: Option<(usize, bool)>,
    broken_host: Option<String>,
    log: Vec<String>,
}

impl Trouble {
    fn plan(&self) -> MutexGuard<'_, Planned> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever is to know that a call will never end.
    pub(super) fn tells(&self, hung: &Arc<Notify>) {
        *self.hung.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(hung));
    }

    /// A new run counts from 1.
    pub(super) fn begin(&self) {
        self.steps.store(0, Ordering::SeqCst);
    }

    pub(super) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    /// The run is killed at this step, before or after it was done.
    pub(super) fn kills(&self, step: usize, is_done: bool) {
        self.plan().kill = Some((step, is_done));
    }

    /// Every change on this host fails.
    pub(super) fn fails(&self, host: &str) {
        self.plan().broken_host = Some(host.to_owned());
    }

    pub(super) fn none(&self) {
        let mut plan = self.plan();
        (plan.kill, plan.broken_host) = (None, None);
    }

    pub(super) fn log(&self) -> String {
        self.plan().log.join("\n")
    }

    /// Counts a step, and notes it.
    fn step(&self, what: &str) -> usize {
        let step = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        self.plan().log.push(format!("{step}: {what}"));
        step
    }

    /// The run is killed here, if it is to be.
    async fn strikes(&self, step: usize, is_done: bool) {
        let kill = self.plan().kill;
        if kill == Some((step, is_done)) {
            self.die().await;
        }
    }

    /// Nobody will hear of this call again.
    async fn die(&self) {
        if let Some(hung) = &*self.hung.lock().unwrap_or_else(PoisonError::into_inner) {
            hung.notify_one();
        }
        std::future::pending().await
    }
}

/// A driver whose outside is the model.
pub(super) struct Modelled {
    inner: Arc<dyn Driver>,
    world: Arc<Mutex<World>>,
    trouble: Arc<Trouble>,
}

impl Modelled {
    pub(super) fn over(inner: Arc<dyn Driver>, world: &Arc<Mutex<World>>, trouble: &Arc<Trouble>) -> Arc<dyn Driver> {
        Arc::new(Self { inner, world: Arc::clone(world), trouble: Arc::clone(trouble) })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spec(&self, resource_type: &str) -> Option<&dyn ResourceSpec> {
        self.inner.specs().into_iter().find(|s| s.name() == resource_type)
    }

    fn look(&self, connection: &Object, ask: &Ask) -> Option<Object> {
        let schema = self.spec(&ask.resource_type)?.schema();
        if schema.state_only {
            return ask.known.clone();
        }
        let mut seen = match ask.resource_type.as_str() {
            "etcd_member" => self.world().look_at_member(ask.identity.get("name")?.as_str()?, ask.known.is_some())?,
            // A command is named by nothing but what the state knows of it.
            kind => {
                self.world().observe(&id(connection), kind, if ask.identity.is_empty() { ask.known.as_ref()? } else { &ask.identity })?
            }
        };
        for attribute in schema.attributes.iter().filter(|a| a.write_only) {
            seen.remove(attribute.name);
        }
        seen.retain(|name, _| schema.attribute(name).is_some());
        if let karmaform_model::Connection::Attribute(name) = schema.connection {
            seen.insert(name.to_owned(), connection.clone().into());
        }
        schema.mark(&mut seen);
        Some(seen)
    }

    fn change(&self, connection: &Object, resource_type: &str, change: &Change) -> Result<Option<Object>, Diagnostic> {
        let failed = |why: String| Diagnostic::error("The model refuses", format!("{resource_type} on {}: {why}.", id(connection)));
        let Some(spec) = self.spec(resource_type) else { return Err(failed("no such type".to_owned())) };
        if resource_type == "etcd_member" {
            let Some(after) = change.after() else { return Ok(None) };
            let member = after.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let world = self.world();
            if !world.is_healthy(&member) {
                return Err(failed(format!("{member} is not healthy")));
            }
            let mut object = after.clone();
            world.add_ids(&member, &mut object);
            return Ok(Some(object));
        }
        let Some(mut object) = self.world().apply(&id(connection), resource_type, change).map_err(failed)? else { return Ok(None) };
        // What a plan told ahead is true: the model's checksums are its own.
        let mut world = self.world();
        let thing = world.hosts.get_mut(&id(connection)).and_then(|h| {
            h.things.iter_mut().find(|((kind, _), o)| kind == resource_type && spec.schema().identity(o) == spec.schema().identity(&object))
        });
        let told = change.after().into_iter().flatten().filter(|(n, v)| v.is_wholly_known() && n.ends_with("sha256"));
        let mut told: Vec<_> = told.map(|(n, v)| (n.clone(), v.clone())).collect();
        // What only a real host would know.
        told.extend(object.iter().filter(|(_, v)| v.is_unknown()).map(|(n, v)| (n.clone(), made_up(n, &v.ty()))));
        object.extend(told.iter().cloned());
        if let Some((_, thing)) = thing {
            thing.extend(told);
        }
        Ok(Some(object))
    }
}

fn made_up(name: &str, ty: &Type) -> Value {
    match ty {
        Type::String => format!("computed-{name}").into(),
        Type::Number => 1i64.into(),
        Type::Bool => false.into(),
        other => Value::null(other.clone()),
    }
}

fn id(connection: &Object) -> String {
    connection.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An open connection.
struct Client {
    connection: Object,
    real: Option<AnyClient>,
}

fn client(client: &AnyClient) -> Result<&Client, Diagnostic> {
    client.downcast_ref().ok_or_else(|| Diagnostic::error("Connection of another provider", "This is a bug."))
}

impl Looking for Modelled {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn specs(&self) -> Vec<&dyn ResourceSpec> {
        self.inner.specs()
    }

    fn data_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.inner.data_schemas()
    }

    fn gate_schemas(&self) -> Vec<(&'static str, &Schema)> {
        self.inner.gate_schemas()
    }

    fn connect<'a>(
        &'a self,
        defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<AnyClient, Diagnostic>> {
        Box::pin(async move {
            // Certificates and tokens live in the state alone: there the real provider is its own model.
            let is_real = self.specs().iter().all(|s| s.schema().state_only);
            let real = if is_real { Some(self.inner.connect(defaults, connection, connections).await?) } else { None };
            Ok(Arc::new(Client { connection: connection.clone(), real }) as AnyClient)
        })
    }

    fn observe<'a>(&'a self, to: &'a AnyClient, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move { asks.iter().map(|ask| client(to).map(|c| self.look(&c.connection, ask))).collect() })
    }

    fn read<'a>(&'a self, _: &'a AnyClient, data_source: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let found = self.inner.data_schemas().into_iter().find(|(n, _)| *n == data_source);
            let Some((_, schema)) = found else { return Err(Diagnostic::error("Unknown data source", data_source)) };
            let nulls = schema.attributes.iter().map(|a| (a.name.to_owned(), Value::null(a.ty.clone())));
            let mut object: Object = nulls.chain(arguments.clone()).collect();
            let address = arguments.get("address").and_then(Value::as_str).unwrap_or_default();
            let connection = [("provider", "ssh".into()), ("id", format!("{address}:22").into()), ("address", address.into())];
            object.insert("connection".into(), Value::object(connection));
            object.insert("clock_offset".into(), 0i64.into());
            Ok(object)
        })
    }

    fn check<'a>(&'a self, _: &'a AnyClient, gate: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            // Disks are no matter of this world.
            if gate == "ssh_disk" {
                return Ok(GateAnswer::Passed("fast enough".to_owned()));
            }
            let required: Vec<String> = arguments
                .get("require")
                .and_then(Value::as_items)
                .map(|items| items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                .ok_or_else(|| Diagnostic::error("A gate without members", gate))?;
            let required: Vec<&str> = required.iter().map(String::as_str).collect();
            let unhealthy = self.world().gate(&required);
            Ok(if unhealthy.is_empty() {
                GateAnswer::Passed(format!("{} of {} members healthy", required.len(), required.len()))
            } else {
                GateAnswer::Waiting(format!("not healthy: {}", unhealthy.join(", ")))
            })
        })
    }

    fn forward<'a>(&'a self, _: &'a AnyClient, _: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async { Err(Diagnostic::error("No way through a model", "This is a bug.")) })
    }
}

impl Driver for Modelled {
    fn apply<'a>(
        &'a self,
        to: &'a AnyClient,
        resource_type: &'a str,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Client { connection, real } = client(to)?;
            let step = self.trouble.step(&format!("{:?} {resource_type} on {}", change.action(), id(connection)));
            let is_broken = self.trouble.plan().broken_host.as_deref() == Some(&id(connection));
            // Others may get ahead: steps that are ready together end in no particular order.
            tokio::task::yield_now().await;
            if is_broken {
                return Err(Diagnostic::error("Host can't be reached", "The test says so."));
            }
            self.trouble.strikes(step, false).await;
            let result = match real {
                Some(real) => self.inner.apply(real, resource_type, change).await,
                None => self.change(connection, resource_type, change),
            };
            self.trouble.strikes(step, true).await;
            result
        })
    }

    fn operate<'a>(&'a self, _: &'a AnyClient, operation: &'a str, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let step = self.trouble.step(operation);
            tokio::task::yield_now().await;
            self.trouble.strikes(step, false).await;
            let answer = self.world().operate(operation, arguments);
            self.trouble.strikes(step, true).await;
            match answer {
                Ok(Answer::Done) => Ok(GateAnswer::Passed("done".to_owned())),
                Ok(Answer::Waiting(why)) => Ok(GateAnswer::Waiting(why)),
                Err(why) => Err(Diagnostic::error("The model refuses", format!("{operation}: {why}."))),
            }
        })
    }
}
