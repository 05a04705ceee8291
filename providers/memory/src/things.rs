//! The provider `memory`: types that exist in a world alone.

use std::sync::Arc;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Connections, DataSource, Diagnostic, Gate, GateAnswer, Object, Provider, ResourceSpec, ResourceType,
    Schema, Type,
};

/// Only schemas; every call is answered by the world that this is put under.
pub(crate) struct Things {
    schema: Schema,
    types: Vec<Named>,
    data: Named,
    gate: Named,
}

struct Named {
    name: &'static str,
    schema: Schema,
}

impl Things {
    pub(crate) fn new() -> Self {
        let common = || {
            vec![
                Attribute::required("name", Type::String, "What names it.").identity(),
                Attribute::optional("value", Type::Any, "Any value."),
                Attribute::optional("hint", Type::String, "For whoever makes it; kept nowhere.").write_only(),
                Attribute::optional("secret_value", Type::String, "A secret.").secret(),
                Attribute::optional("replace_on", Type::String, "A change replaces the thing.").forces_replace(),
                Attribute::computed("id", Type::String, "Given when it is made."),
                Attribute::computed("mood", Type::String, "A fact of the moment.").volatile(),
            ]
        };
        let mut on_host = common();
        on_host.insert(0, Attribute::required("host", Type::Any, "The connection of a memory_host."));
        let thing = Schema::new("A thing that needs no connection.", common());
        let item = Schema::new("A thing on a host.", on_host).through("host");
        let mut host = Schema::new(
            "A host, which gives a connection.",
            vec![
                Attribute::required("address", Type::String, "Its address."),
                Attribute::computed("connection", Type::Any, "The way to it."),
                Attribute::computed("hostname", Type::String, "What it calls itself."),
            ],
        );
        host.connection = karmaform_model::Connection::Arguments;
        let ready =
            Schema::new("Waits for something.", vec![Attribute::optional("what", Type::Any, "Whatever the test's hook makes of it.")]);
        Self {
            schema: Schema::new("Things in memory.", Vec::new()),
            types: vec![Named { name: "memory_thing", schema: thing }, Named { name: "memory_item", schema: item }],
            data: Named { name: "memory_host", schema: host },
            gate: Named { name: "memory_ready", schema: ready },
        }
    }
}

impl Named {
    fn no_world(&self) -> Diagnostic {
        Diagnostic::error("No world", format!("\"{}\" exists in a world only, and there is none.", self.name))
    }
}

impl ResourceSpec for Named {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }
}

impl ResourceType<()> for Named {
    fn observe<'a>(&'a self, (): &'a (), _: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async { Err(self.no_world()) })
    }

    fn apply<'a>(&'a self, (): &'a (), _: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async { Err(self.no_world()) })
    }
}

impl DataSource<()> for Named {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, (): &'a (), _: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async { Err(self.no_world()) })
    }
}

impl Gate<()> for Named {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn check<'a>(&'a self, (): &'a (), _: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async { Err(self.no_world()) })
    }
}

impl Provider for Things {
    type Client = ();

    fn name(&self) -> &'static str {
        "memory"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn types(&self) -> Vec<&dyn ResourceType<()>> {
        self.types.iter().map(|t| t as &dyn ResourceType<()>).collect()
    }

    fn data_sources(&self) -> Vec<&dyn DataSource<()>> {
        vec![&self.data]
    }

    fn gates(&self) -> Vec<&dyn Gate<()>> {
        vec![&self.gate]
    }

    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<(), Diagnostic>> {
        Box::pin(async { Ok(()) })
    }
}
