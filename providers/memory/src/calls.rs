//! What the calls of a driver do to a world.

use std::sync::Arc;

use karmaform_model::{
    AnyClient, Ask, Change, Connection, Diagnostic, Driver, Looking, Object, ResourceSpec, Schema, Type, Value, convert, to_json,
};

use crate::delay::pause;
use crate::fill::{self, Blank};
use crate::{Applied, Fault, Moment, Place, World, text};

/// A driver whose outside is a [`World`].
pub struct Memory {
    pub(crate) inner: Arc<dyn Driver>,
    pub(crate) world: Arc<World>,
}

/// An open connection: the value it was opened with.
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) connection: Object,
}

fn bug(detail: String) -> Diagnostic {
    Diagnostic::error("Wrong use of a provider", detail)
}

impl Memory {
    pub(crate) fn client<'a>(&self, client: &'a AnyClient) -> Result<&'a Client, Diagnostic> {
        client.downcast_ref().ok_or_else(|| bug(format!("\"{}\" was given a connection that it did not open.", self.name())))
    }

    fn spec(&self, resource_type: &str) -> Result<&dyn ResourceSpec, Diagnostic> {
        let found = self.inner.specs().into_iter().find(|s| s.name() == resource_type);
        found.ok_or_else(|| bug(format!("\"{}\" has no \"{resource_type}\".", self.name())))
    }

    pub(crate) fn reach(&self, id: &str) -> Result<(), Diagnostic> {
        if self.world.inner().broken_hosts.contains(id) {
            return Err(Diagnostic::error("Host can't be reached", format!("The world says that {id} can't be reached.")));
        }
        Ok(())
    }

    pub(crate) async fn pause(&self) {
        let delay = self.world.inner().delay;
        pause(delay).await;
    }

    pub(crate) async fn observe_one(&self, client: &Client, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
        let schema = self.spec(&ask.resource_type)?.schema();
        if schema.state_only {
            return Ok(ask.known.clone());
        }
        if !ask.identity.values().all(Value::is_wholly_known) {
            return Err(bug(format!("\"{}\" was asked for something whose identity is not known.", ask.resource_type)));
        }
        let whole = ask.known.as_ref().or(ask.wanted.as_ref()).unwrap_or(&ask.identity);
        let identity = nameless(schema, whole).unwrap_or_else(|| text::identity(schema, &ask.identity));
        let place = Place::new(&ask.resource_type, &client.id, &identity);
        let fault = self.world.inner().begin_observe(&place);
        self.reach(&client.id)?;
        match fault {
            Some(Fault { moment: Moment::HangBefore | Moment::HangAfter, .. }) => std::future::pending().await,
            Some(fault) => return Err(fault.diagnostic(&place)),
            None => {}
        }
        let Some(found) = self.world.get(&place) else { return Ok(None) };
        let mut object = text::conform(schema, &found).map_err(|e| bug(format!("{place} is not what the schema says: {e}.")))?;
        for attribute in schema.attributes.iter().filter(|a| a.is_stored()) {
            object.get_or_insert_with(attribute.name, || Value::null(attribute.ty.clone()));
        }
        for block in &schema.blocks {
            object.get_or_insert_with(block.name, || Value::null(block.ty()));
        }
        object.extend(ask.identity.clone());
        let hook = self.world.inner().on_observe.clone();
        if let Some(hook) = hook {
            hook(&self.world, &place, &mut object);
        }
        if let Connection::Attribute(name) = schema.connection {
            object.insert(name.to_owned(), client.connection.clone().into());
        }
        // Marks that come from a configuration are nothing that the outside knows.
        let mut object: Object = object.into_iter().map(|(n, v)| (n, v.without_marks())).collect();
        schema.mark(&mut object);
        Ok(Some(object))
    }

    pub(crate) async fn apply_one(&self, client: &Client, resource_type: &str, change: &Change) -> Result<Option<Object>, Diagnostic> {
        let schema = self.spec(resource_type)?.schema();
        let (verb, object) = match change {
            Change::Create { after } => ("create", after),
            Change::Update { after, .. } => ("update", after),
            Change::Delete { before } => ("delete", before),
            other => return Err(bug(format!("\"{resource_type}\" was asked to apply {:?}, which is no single change.", other.action()))),
        };
        let identity = |object: &Object| match schema.state_only {
            true => fingerprint(object),
            false => nameless(schema, object).unwrap_or_else(|| text::identity(schema, object)),
        };
        let place = Place::new(resource_type, &client.id, &identity(object));
        if let Change::Update { before, .. } = change
            && !schema.state_only
        {
            self.world.inner().rename(&Place::new(resource_type, &client.id, &identity(before)), &place);
        }
        let fault = self.world.inner().begin_apply(verb, &place);
        self.pause().await;
        self.reach(&client.id)?;
        match &fault {
            Some(Fault { moment: Moment::HangBefore, .. }) => std::future::pending().await,
            Some(fault @ Fault { moment: Moment::Before, .. }) => return Err(fault.diagnostic(&place)),
            _ => {}
        }
        let mut result = self.perform(schema, &place, change)?;
        if self.world.inner().repeat {
            result = self.perform(schema, &place, change)?;
        }
        match fault {
            Some(Fault { moment: Moment::HangAfter, .. }) => std::future::pending().await,
            Some(fault) => Err(fault.diagnostic(&place)),
            None => Ok(result),
        }
    }

    fn perform(&self, schema: &Schema, place: &Place, change: &Change) -> Result<Option<Object>, Diagnostic> {
        let before = self.world.get(place);
        let mut after = change.after().cloned();
        if let Some(after) = &mut after {
            let missing = fill::missing(schema, after);
            if !missing.is_empty() {
                return Err(bug(format!("{place} was applied while these attributes were not known: {}.", missing.join(", "))));
            }
            let (round, kept) = self.world.inner().round(place, change, fill::wants_values(schema, after));
            let hook = self.world.inner().on_fill.clone();
            fill::fill(schema, place, round, kept.as_ref(), hook.as_ref(), after);
            if !schema.state_only {
                self.world.inner().things.insert(place.clone(), stored(schema, after));
            }
        } else {
            let mut inner = self.world.inner();
            inner.things.remove(place);
            inner.forget_last(place);
        }
        let hook = self.world.inner().on_apply.clone();
        if let Some(hook) = hook {
            hook(&self.world, &Applied { place, before: before.as_ref(), after: after.as_ref() })?;
        }
        if let Some(after) = &mut after {
            // The hook may have said what the outside made of it.
            for (name, value) in self.world.get(place).unwrap_or_default() {
                if after.get(&name) != Some(&value) {
                    after.insert(name, value);
                }
            }
        }
        Ok(after)
    }

    pub(crate) async fn read_one(&self, client: &Client, data_source: &str, arguments: &Object) -> Result<Object, Diagnostic> {
        let schema = self.data_schemas().into_iter().find(|(n, _)| *n == data_source).map(|(_, s)| s);
        let schema = schema.ok_or_else(|| bug(format!("\"{}\" has no data source \"{data_source}\".", self.name())))?;
        self.world.inner().log.push(format!("read {data_source} {}", client.id));
        self.pause().await;
        self.reach(&client.id)?;
        let (results, hook) = {
            let inner = self.world.inner();
            (inner.answer(data_source, arguments), inner.on_fill.clone())
        };
        let Some(results) = results else {
            return Err(Diagnostic::error(
                "Nothing there",
                format!("The world has no {data_source} with these arguments ({}).", client.id),
            ));
        };
        let results = text::conform(schema, &results).map_err(|e| bug(format!("{data_source} {} in the world: {e}.", client.id)))?;
        let mut object = arguments.clone();
        object.extend(results);
        for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
            if object.get(attribute.name).is_some_and(|v| !v.is_null()) {
                continue;
            }
            let (name, ty) = (attribute.name, &attribute.ty);
            let blank = Blank { resource_type: data_source, identity: &client.id, attribute: name, ty, object: &object, round: 1 };
            let value = match (schema.connection, name) {
                (Connection::Arguments, "connection") => self.connection(client, arguments, ty),
                _ => hook.as_ref().and_then(|hook| hook(&blank)).unwrap_or_else(|| fill::made_up(&blank, ty)),
            };
            object.insert(name.to_owned(), value);
        }
        schema.mark(&mut object);
        Ok(object)
    }

    /// The connection value that a data source gives: its arguments, and what every connection value has.
    fn connection(&self, client: &Client, arguments: &Object, ty: &Type) -> Value {
        let mut connection: Object = arguments.iter().filter(|(_, v)| !v.is_null()).map(|(n, v)| (n.clone(), v.clone())).collect();
        connection.insert("provider".into(), self.name().into());
        connection.insert("id".into(), client.id.as_str().into());
        if let Type::Object(wanted) = ty {
            for (name, attribute) in wanted {
                connection.get_or_insert_with(name, || Value::null(attribute.ty.clone()));
            }
        }
        let connection = Value::from(connection);
        convert(&connection, ty).unwrap_or(connection)
    }
}

/// What the outside keeps: no connection, nothing write-only, no nulls.
fn stored(schema: &Schema, object: &Object) -> Object {
    let kept = |name: &str, value: &Value| {
        let attribute = schema.attribute(name);
        let is_connection = matches!(schema.connection, Connection::Attribute(attribute) if attribute == name);
        !value.is_null() && !is_connection && !attribute.is_some_and(|a| a.write_only)
    };
    object.iter().filter(|(n, v)| kept(n, v)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// Tells commands apart, which nothing on a host names: by what they undo.
fn nameless(schema: &Schema, object: &Object) -> Option<String> {
    let has_name = schema.attributes.iter().any(|a| a.identity);
    let undo = object.get("undo").filter(|_| !has_name)?.as_str()?;
    Some(fingerprint(&Object::from([("undo".to_owned(), undo.into())])))
}

/// Stands for the identity of what has none: the same for equal objects.
fn fingerprint(object: &Object) -> String {
    let known: Vec<_> = object.iter().filter(|(_, v)| v.is_wholly_known()).map(|(n, v)| format!("{n}={}", to_json(v))).collect();
    let hash = known.join(" ").bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("{:08x}", hash >> 32)
}
