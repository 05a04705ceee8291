//! The fake provider's data sources and its gate.

use karmaform_model::{Attribute, BoxFuture, Connection, DataSource, Diagnostic, Gate, GateAnswer, Object, Schema, Type, Value};

use crate::fake::{Client, error};

pub struct HostData(Schema);
pub struct LookupData(Schema);
pub struct Ready(Schema);

pub static HOST_DATA: std::sync::LazyLock<HostData> = std::sync::LazyLock::new(|| {
    let mut schema = Schema::new(
        "",
        vec![
            Attribute::required("address", Type::String, ""),
            Attribute::optional("password", Type::String, "").secret(),
            Attribute::computed("connection", Type::Any, ""),
            Attribute::computed("facts", Type::String, ""),
        ],
    );
    schema.connection = Connection::Arguments;
    HostData(schema)
});
pub static LOOKUP_DATA: std::sync::LazyLock<LookupData> = std::sync::LazyLock::new(|| {
    let attributes = vec![Attribute::required("key", Type::String, ""), Attribute::computed("value", Type::String, "")];
    LookupData(Schema::new("", attributes))
});
pub static READY: std::sync::LazyLock<Ready> = std::sync::LazyLock::new(|| {
    let attributes = vec![Attribute::optional("host", Type::Any, ""), Attribute::required("name", Type::String, "")];
    Ready(Schema::new("", attributes).through("host"))
});

impl DataSource<Client> for HostData {
    fn name(&self) -> &'static str {
        "fake_host"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn read<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let mut result = arguments.clone();
            client.world.lock().reads.push(client.host.clone());
            let password = arguments["password"].clone();
            let connection = [("provider", "fake".into()), ("id", client.host.as_str().into()), ("password", password)];
            result.insert("connection".into(), Value::object(connection));
            result.insert("facts".into(), format!("facts of {}", client.host).into());
            Ok(result)
        })
    }
}

impl DataSource<Client> for LookupData {
    fn name(&self) -> &'static str {
        "fake_lookup"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn read<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(async move {
            let key = arguments["key"].as_str().unwrap().to_owned();
            client.world.lock().reads.push(key.clone());
            if key == "broken" {
                return Err(error("Lookup failed"));
            }
            let mut result = arguments.clone();
            result.insert("value".into(), format!("value of {key}").into());
            Ok(result)
        })
    }
}

impl Gate<Client> for Ready {
    fn name(&self) -> &'static str {
        "fake_ready"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let name = arguments["name"].as_str().unwrap().to_owned();
            let mut world = client.world.lock();
            let left = world.gate_looks.get(&name).copied().unwrap_or(0);
            if left > 0 {
                world.gate_looks.insert(name.clone(), left - 1);
                if let Some(hook) = &world.hook {
                    hook(1000 + left);
                }
                return Ok(GateAnswer::Waiting(format!("{name} needs {left} more")));
            }
            world.log.push(format!("Gate {name}"));
            Ok(GateAnswer::Passed(format!("{name} is ready")))
        })
    }
}
