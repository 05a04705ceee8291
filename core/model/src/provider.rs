//! What the author of a provider writes: resource types, data sources, gates, and how to connect.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Change, Diagnostic, Diagnostics, Known, Need, Object, Schema, Stock, Strays, Supplied, Supply, Trust, default_plan};

/// A boxed future; dyn traits need one.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a pure `plan` may know besides its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanContext {
    /// Seconds since 1970-01-01 UTC; time is an argument, never asked for.
    pub now: i64,
}

/// The pure half of a resource type: what it looks like and what a difference means. Needs no connection.
pub trait ResourceSpec: Send + Sync {
    /// `"ssh_file"`
    fn name(&self) -> &'static str;

    /// Its attributes and blocks.
    fn schema(&self) -> &Schema;

    /// Arguments with what can be told from them alone: a name out of a manifest, for one. Called before anything is asked or compared, so
    /// that this may be part of the identity. Pure; what is not known yet stays unknown.
    fn derived(&self, wanted: Object) -> Object {
        wanted
    }

    /// Turns a difference into a change. `before` is what was observed (over what the state remembers), `wanted` what the configuration
    /// says. Override only where equal values can look different, or where a computed value can be told in advance.
    ///
    /// # Errors
    /// What no plan can do, one diagnostic each.
    fn plan(&self, context: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let _ = context;
        Ok(default_plan(self.schema(), before, wanted))
    }

    /// What a lost state would remember of a thing that can't be asked for: one that lives in the state alone, or that nothing outside tells of.
    /// `wanted` is what the configuration says, `found` are those of its computed attributes that turned up in what was made of them (a
    /// certificate, in a file on a host); without any, nothing tells of it. `None`: that is not enough to tell. Pure.
    ///
    /// # Errors
    /// What was found can't be of one thing.
    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let _ = (wanted, found);
        Ok(None)
    }

    /// What is taken over of a thing that lives in the state alone, by an id that somebody knows: its stored attributes. `None`: nothing can be.
    fn imported(&self, id: &str) -> Option<Object> {
        let _ = id;
        None
    }

    /// The id that an `import` block names it by: its identity, unless its author says something else. `None`: that is not known yet.
    fn import_id(&self, wanted: &Object) -> Option<String> {
        let identity = self.schema().identity(wanted);
        let parts: Option<Vec<String>> = identity.values().map(|v| v.as_str().map(str::to_owned)).collect();
        parts.filter(|p| !p.is_empty()).map(|p| p.join("/"))
    }

    /// What a change does to running things, in plain words: "restarts etcd-main.service".
    fn impact(&self, change: &Change) -> Vec<String> {
        let _ = change;
        Vec::new()
    }
}

/// A resource type; `C` is the provider's client.
pub trait ResourceType<C>: ResourceSpec {
    /// Looks at the thing that is asked for. Reads only, unless its schema says that to look is to try (`tries`). `None`: not there. What could not be looked at is an error, never `None`.
    /// Attributes left out keep what the state says.
    fn observe<'a>(&'a self, client: &'a C, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>>;

    /// Does one change: Create, Update or Delete (a replace comes as two). Safe to repeat. Gives what is there now.
    fn apply<'a>(&'a self, client: &'a C, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>>;
}

/// Arguments that can't be as they are, each with why.
pub type Refused = Vec<(&'static str, Diagnostic)>;

/// A data source: arguments in, arguments and results out.
pub trait DataSource<C>: Send + Sync {
    /// `"ssh_host"`
    fn name(&self) -> &'static str;
    /// Its attributes and blocks.
    fn schema(&self) -> &Schema;
    /// What is wrong with arguments that fit the schema, as far as that can be told without looking anywhere. They may be known in part.
    fn refused(&self, arguments: &Object) -> Refused {
        let _ = arguments;
        Refused::new()
    }
    /// Reads it. Reads only.
    fn read<'a>(&'a self, client: &'a C, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>>;
}

/// What a gate says.
#[derive(Clone, Debug, PartialEq)]
pub enum GateAnswer {
    /// Go on. What was seen, in a few words: "3 of 3 members healthy".
    Passed(String),
    /// Not yet. What it waits for, in a few words.
    Waiting(String),
}

/// A condition that the engine polls between two steps. Reads only.
pub trait Gate<C>: Send + Sync {
    /// `"etcd_healthy"`
    fn name(&self) -> &'static str;
    /// Its arguments.
    fn schema(&self) -> &Schema;
    /// Looks once. An error ends the wait unless it is retryable.
    fn check<'a>(&'a self, client: &'a C, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>>;
}

/// One question to a client: is there this thing, and what is it like?
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The resource type.
    pub resource_type: String,
    /// The attributes that name it.
    pub identity: Object,
    /// What the state remembers.
    pub known: Option<Object>,
    /// What the configuration wants, as far as it is known by then; for a world that can tell ahead what it would make of it.
    pub wanted: Option<Object>,
    /// True if the state has it, and an earlier run was cut off while it changed it: nothing is known of it but what names it.
    pub begun: bool,
}

/// What no resource stands for and a composite's order needs done between two steps: a member is added, promoted, or leaves. It is asked
/// again and again, as a gate is, until it says that it is done; so it may go one careful step at a time, and what an earlier run did is found by looking.
pub trait Operation<C>: Send + Sync {
    /// `"etcd_promote"`
    fn name(&self) -> &'static str;
    /// Its arguments.
    fn schema(&self) -> &Schema;
    /// Looks, does what is to be done next and can be done now, and says whether that was all. Safe to repeat, also when the answer to the last
    /// try was lost. An error ends the operation unless it is retryable.
    fn attempt<'a>(&'a self, client: &'a C, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>>;
}

/// The other connections of a run, for a provider that reaches its world through one of them.
pub trait Connections: Send + Sync {
    /// A local address that leads to `host:port` as seen from the other end of `connection`. Lives as long as the run.
    fn forward<'a>(&'a self, connection: &'a Object, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>>;

    /// True in a run that only looks: then a provider sends nothing that could change anything, whatever it is asked.
    fn only_looks(&self) -> bool {
        false
    }
}

/// A provider. A connection value is an object with at least `provider` (the provider's name) and `id` (what it reaches).
pub trait Provider: Send + Sync + 'static {
    /// One open connection.
    type Client: Send + Sync + 'static;

    /// `"ssh"`
    fn name(&self) -> &'static str;
    /// Its `provider "x" {}` block: defaults for every connection.
    fn schema(&self) -> &Schema;
    /// Its resource types; known without a connection.
    fn types(&self) -> Vec<&dyn ResourceType<Self::Client>>;

    /// Its data sources.
    fn data_sources(&self) -> Vec<&dyn DataSource<Self::Client>> {
        Vec::new()
    }

    /// Its gates.
    fn gates(&self) -> Vec<&dyn Gate<Self::Client>> {
        Vec::new()
    }

    /// Its operations. Their names are not those of gates.
    fn operations(&self) -> Vec<&dyn Operation<Self::Client>> {
        Vec::new()
    }

    /// What a resource of this provider needs from elsewhere. Pure.
    fn needs(&self, resource_type: &str, wanted: &Object) -> Vec<Need> {
        let _ = (resource_type, wanted);
        Vec::new()
    }

    /// What a data source says of a place that nobody can reach from here, if that is of this architecture (`amd64`); the rest is unknown.
    /// `None`: nothing. Pure.
    fn unseen(&self, data_source: &str, defaults: &Object, arguments: &Object, architecture: &str) -> Option<Object> {
        let _ = (data_source, defaults, arguments, architecture);
        None
    }

    /// Told before anything else: what was brought along, in place of everything from elsewhere.
    fn stock(&self, stock: Arc<dyn Stock>) {
        let _ = stock;
    }

    /// Told before anything else: whom this machine trusts to say who a server is that something is fetched from.
    fn trust(&self, trust: Arc<dyn Trust>) {
        let _ = trust;
    }

    /// Gets a file from elsewhere. `defaults` is the provider block.
    fn supply<'a>(&'a self, defaults: &'a Object, supply: &'a Supply) -> BoxFuture<'a, Result<Supplied, Diagnostic>> {
        let _ = (defaults, supply);
        Box::pin(async move {
            Err(Diagnostic::error("Nothing to get", format!("The provider \"{}\" gets nothing from elsewhere.", self.name())))
        })
    }

    /// The digest (`sha256:...`) of what an image's name means now; `None` if this provider knows no images.
    fn digest<'a>(&'a self, defaults: &'a Object, image: &'a str) -> BoxFuture<'a, Result<Option<String>, Diagnostic>> {
        let _ = (defaults, image);
        Box::pin(async { Ok(None) })
    }

    /// Told before a run changes anything: the lineage of the state that it works for. Two runs of one lineage are never at work at once, the
    /// state's lock sees to that; so what an earlier one left half done is this one's to go on with.
    fn begin(&self, lineage: &str) {
        let _ = lineage;
    }

    /// Opens a connection. `defaults` is the provider block; `connection` the connection value, or a data source's arguments, or empty.
    fn connect<'a>(
        &'a self,
        defaults: &'a Object,
        connection: &'a Object,
        connections: Arc<dyn Connections>,
    ) -> BoxFuture<'a, Result<Self::Client, Diagnostic>>;

    /// Answers all questions of a refresh to one client. Reads only: no request that could change anything, not even one that promises not to.
    /// Override to ask in one round trip.
    fn observe<'a>(&'a self, client: &'a Self::Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(asks.len());
            for ask in asks {
                let types = self.types();
                let found = types.iter().find(|t| t.name() == ask.resource_type);
                answers.push(match found {
                    Some(t) => t.observe(client, ask).await,
                    None => Err(Diagnostic::error(
                        "Unknown resource type",
                        format!("The provider \"{}\" has no \"{}\".", self.name(), ask.resource_type),
                    )),
                });
            }
            answers
        })
    }

    /// What is at the other end with the marks of something that is ours, and is none of these. `known` is everything there that the state or
    /// the configuration knows. Reads only. What belongs to somebody else's state is not to be told: where marks can't tell whose it is, say nothing. What
    /// can't be told for lack of a right is a warning; [`Strays::unlisted`] where everything else is told all the same.
    fn strays<'a>(&'a self, client: &'a Self::Client, known: &'a [Known]) -> BoxFuture<'a, Strays> {
        let _ = (client, known);
        Box::pin(async { Strays::default() })
    }

    /// [`Provider::observe`] for who is going to change things: where the world can say ahead what it would make of what is wanted (an API server's dry
    /// run), or whether it can be done at all, that is part of the answers. Leaves nothing behind.
    fn rehearse<'a>(&'a self, client: &'a Self::Client, asks: &'a [Ask]) -> BoxFuture<'a, Vec<Result<Option<Object>, Diagnostic>>> {
        self.observe(client, asks)
    }

    /// A local address that leads to `host:port` beyond this connection.
    fn forward<'a>(&'a self, client: &'a Self::Client, host: &'a str, port: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        let _ = client;
        Box::pin(async move {
            Err(Diagnostic::error(
                "No way through this connection",
                format!("A connection of the provider \"{}\" can't be used to reach {host}:{port}.", self.name()),
            ))
        })
    }
}
