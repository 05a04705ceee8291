//! What carries the marks of what is in the state, and is neither there nor in the configuration. Reads only.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use karmaform_model::{
    Address, Connection, Diagnostic, Diagnostics, Known, Object, ResourceEntry, ResourceState, Severity, Value, to_json,
};

use crate::observed::{Answer, Observed, Seen};
use crate::options::World;
use crate::pool::connection_key;
use crate::question::entries;
use crate::wanted::connection_id;

/// A stray, and the resource whose marks it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// In the state.
    pub address: Address,
    /// What the stray is called where it is.
    pub name: String,
}

/// Everything behind one connection.
struct Place<'a> {
    provider: &'a str,
    /// What it leads to.
    id: String,
    connection: Object,
    known: Vec<(&'a Address, Known)>,
}

/// Asks everybody that was looked at, all at once, each one once. It takes a look at everything: what was left out would be a stray. Where
/// it can't be told, that is a warning.
pub async fn strays(world: &World<'_>, observed: &Observed, parallelism: usize) -> (Vec<Beside>, Diagnostics) {
    let places = places(world, observed);
    let asked = futures::stream::iter(places.into_values().map(|place| ask(world, place))).buffer_unordered(parallelism.max(1));
    let (mut found, mut diagnostics) = (Vec::new(), Diagnostics::default());
    for answer in asked.collect::<Vec<_>>().await {
        let (strays, wrong) = answer;
        found.extend(strays);
        diagnostics.extend(wrong.into_iter().map(|d| Diagnostic { severity: Severity::Warning, ..d }));
    }
    found.sort_by(|a, b| (&a.address, &a.name).cmp(&(&b.address, &b.name)));
    (found, diagnostics)
}

fn places<'a>(world: &World<'a>, observed: &'a Observed) -> BTreeMap<String, Place<'a>> {
    let mut places: BTreeMap<String, Place<'a>> = BTreeMap::new();
    for (address, seen) in &observed.resources {
        let Seen { provider, resource_type, identity, connection, answer, broken, .. } = seen;
        if broken.is_some() {
            continue;
        }
        let mut object = identity.clone();
        let mut is_ours = false;
        if let (Answer::Present(present), Some(resource)) = (answer, world.state.resources.get(address)) {
            // The state knows what the provider left out.
            object.extend(decoded(world, resource).unwrap_or_default());
            object.extend(present.clone());
            is_ours = true;
        }
        let way = connection.as_ref().map(|(_, way)| way);
        let connection = entries(way);
        let known = Known { resource_type: resource_type.clone(), is_ours, object };
        let place = places.entry(connection_key(provider, &connection));
        let made = || Place { provider, id: way.map(id).unwrap_or_default(), connection, known: Vec::new() };
        place.or_insert_with(made).known.push((address, known));
    }
    places.retain(|_, place| place.known.iter().any(|(_, k)| k.is_ours));
    let unasked = unasked(world, observed);
    for place in places.values_mut() {
        place.known.extend(unasked.get(&(place.provider, place.id.clone())).into_iter().flatten().cloned());
    }
    places
}

/// What is in the state and nobody asked for is known all the same: by provider, and what it is reached through.
fn unasked<'a>(world: &World<'a>, observed: &Observed) -> BTreeMap<(&'a str, String), Vec<(&'a Address, Known)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (address, resource) in world.state.resources.iter().filter(|(address, _)| !observed.resources.contains_key(*address)) {
        let Some(ResourceEntry::Type(looking, spec)) = world.registry.resource(&resource.resource_type) else { continue };
        let Ok(object) = resource.attributes.decoded(spec.schema()) else { continue };
        let way = match spec.schema().connection {
            Connection::Attribute(name) => object.get(name).map(id).unwrap_or_default(),
            _ => String::new(),
        };
        let known = Known { resource_type: resource.resource_type.clone(), is_ours: false, object };
        found.entry((looking.name(), way)).or_default().push((address, known));
    }
    found
}

fn decoded(world: &World<'_>, resource: &ResourceState) -> Option<Object> {
    let ResourceEntry::Type(_, spec) = world.registry.resource(&resource.resource_type)? else { return None };
    resource.attributes.decoded(spec.schema()).ok()
}

/// What a connection leads to, whatever the credentials are.
fn id(way: &Value) -> String {
    connection_id(way).map(|id| to_json(id).to_string()).unwrap_or_default()
}

async fn ask(world: &World<'_>, place: Place<'_>) -> (Vec<Beside>, Diagnostics) {
    let Place { provider, connection, known, .. } = place;
    let Some(looking) = world.registry.provider(provider) else { return <_>::default() };
    let client = match world.pool.open(provider, &connection).await {
        Ok(client) => client,
        Err(error) => return (Vec::new(), error.into()),
    };
    let (addresses, known): (Vec<&Address>, Vec<Known>) = known.into_iter().unzip();
    let (strays, wrong) = looking.strays(&client, &known).await;
    let beside = strays.into_iter().filter_map(|s| Some(Beside { address: (*addresses.get(s.beside)?).clone(), name: s.name }));
    (beside.collect(), wrong)
}
