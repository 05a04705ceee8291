//! What carries the marks of what is in the state, and is neither there nor in the configuration. Reads only.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use karmaform_model::{
    Address, Connection, Diagnostic, Diagnostics, Known, Object, ResourceEntry, ResourceState, Severity, Strays, Unlisted, Value, to_json,
};

use crate::observed::{Answer, Observed, Seen};
use crate::options::World;
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

/// What a look for strays told.
#[derive(Clone, Debug, Default)]
pub struct Besides {
    /// Those that there are.
    pub found: Vec<Beside>,
    /// Warnings; with any of these there may be more of any kind.
    pub wrong: Diagnostics,
    /// Of these alone there may be more; with warnings of their own.
    pub unlisted: Vec<Unlisted>,
}

/// What is reached: a provider, and what its connections lead to, whatever the credentials are.
type Key<'a> = (&'a str, String);

/// Everything that is reached there.
#[derive(Default)]
struct Place<'a> {
    /// A way that worked; none if nothing of ours was seen there.
    way: Option<&'a Value>,
    has_ours: bool,
    known: Vec<(&'a Address, Known)>,
}

/// Asks everybody that was looked at, all at once, each one once. It takes a look at everything: what was left out would be a stray. Where
/// it can't be told, that is a warning.
pub async fn strays(world: &World<'_>, observed: &Observed, parallelism: usize) -> Besides {
    let places = places(world, observed);
    let asked = futures::stream::iter(places.into_iter().map(|((provider, _), place)| ask(world, (provider, place))))
        .buffer_unordered(parallelism.max(1));
    let mut all = Besides::default();
    let warning = |d: Diagnostic| Diagnostic { severity: Severity::Warning, ..d };
    for answer in asked.collect::<Vec<_>>().await {
        all.found.extend(answer.found);
        all.wrong.extend(answer.wrong.into_iter().map(warning));
        all.unlisted.extend(answer.unlisted.into_iter().map(|u| Unlisted { why: warning(u.why), ..u }));
    }
    all.found.sort_by(|a, b| (&a.address, &a.name).cmp(&(&b.address, &b.name)));
    all
}

fn places<'a>(world: &World<'a>, observed: &'a Observed) -> BTreeMap<Key<'a>, Place<'a>> {
    let mut places: BTreeMap<Key<'a>, Place<'a>> = BTreeMap::new();
    for (address, seen) in &observed.resources {
        let Seen { provider, resource_type, identity, connection, answer, .. } = seen;
        let way = connection.as_ref().map(|(_, way)| way);
        let place = places.entry((provider, way.map(id).unwrap_or_default())).or_default();
        let mut object = identity.clone();
        let mut is_ours = false;
        if let (Answer::Present(present), Some(resource)) = (answer, world.state.resources.get(address)) {
            // The state knows what the provider left out.
            object.extend(decoded(world, resource).unwrap_or_default());
            object.extend(present.clone());
            is_ours = true;
            place.has_ours = true;
            place.way = place.way.or(way);
        }
        place.known.push((address, known(address, resource_type, is_ours, object)));
    }
    // What is in the state and nobody asked for is known all the same, and so is what is still to be taken away.
    let unasked = world.state.resources.iter().filter(|(address, _)| !observed.resources.contains_key(*address));
    let deposed = world.state.deposed.iter().map(|((address, _), resource)| (address, resource));
    for (address, resource) in unasked.chain(deposed) {
        let Some(ResourceEntry::Type(looking, spec)) = world.registry.resource(&resource.resource_type) else { continue };
        let Ok(object) = resource.attributes.decoded(spec.schema()) else { continue };
        let to = match spec.schema().connection {
            Connection::Attribute(name) => object.get(name).map(id).unwrap_or_default(),
            _ => String::new(),
        };
        if let Some(place) = places.get_mut(&(looking.name(), to)) {
            place.known.push((address, known(address, &resource.resource_type, false, object)));
        }
    }
    places.retain(|_, place| place.has_ours);
    places
}

fn known(address: &Address, resource_type: &str, is_ours: bool, object: Object) -> Known {
    Known { resource_type: resource_type.to_owned(), is_part: address.is_child(), is_ours, object }
}

fn decoded(world: &World<'_>, resource: &ResourceState) -> Option<Object> {
    let ResourceEntry::Type(_, spec) = world.registry.resource(&resource.resource_type)? else { return None };
    resource.attributes.decoded(spec.schema()).ok()
}

/// What a connection leads to, whatever the credentials are.
fn id(way: &Value) -> String {
    connection_id(way).map(|id| to_json(id).to_string()).unwrap_or_default()
}

async fn ask(world: &World<'_>, (provider, place): (&str, Place<'_>)) -> Besides {
    let Some(looking) = world.registry.provider(provider) else { return Besides::default() };
    let client = match world.pool.open(provider, &entries(place.way)).await {
        Ok(client) => client,
        Err(error) => return Besides { wrong: error.into(), ..Besides::default() },
    };
    let (addresses, known): (Vec<&Address>, Vec<Known>) = place.known.into_iter().unzip();
    let Strays { found, wrong, unlisted } = looking.strays(&client, &known).await;
    let beside = found.into_iter().filter_map(|s| Some(Beside { address: (*addresses.get(s.beside)?).clone(), name: s.name }));
    Besides { found: beside.collect(), wrong, unlisted }
}
