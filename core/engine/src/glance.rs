//! What was looked at for a plan, one by one, for who tells of it: data sources, what the state has, and what is taken over.

use karmaform_model::{Address, ModeOfPlan, Object, ResourceEntry, ResourceState, Schema};

use crate::graph::{Graph, Node, Role};
use crate::observed::{Answer, Observed};
use crate::options::{Inputs, Options};
use crate::select::selection;
use crate::values::remembered;

/// A data source that was read, or a resource that was looked at, of the state or to be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Which it is.
    pub address: Address,
    /// Its type.
    pub kind: String,
    /// The `id` that the state has, or will have of what is taken over, if it may be told.
    pub id: Option<String>,
    /// There was an answer.
    pub is_answered: bool,
    /// The `id` that was seen, if it may be told.
    pub seen: Option<String>,
    /// How long a data source was read, in milliseconds.
    pub elapsed: u64,
}

impl Observed {
    /// All that was looked at, each after what it needs. What lives in the state alone is looked at there, unless something that it needs could
    /// not be looked at: then nothing comes of it.
    pub fn glances(&self, graph: &Graph, inputs: &Inputs<'_>, options: &Options) -> Vec<Glance> {
        let selected = selection(graph, options).selected;
        let mut barred = vec![false; graph.nodes.len()];
        let mut found = Vec::new();
        for &number in &graph.order {
            let node = &graph.nodes[number];
            let is_behind = node.wanted.iter().any(|n| barred[*n]);
            barred[number] = is_behind || !node.is_junction() && self.blind.contains(&node.address);
            match node.role {
                Role::Data => found.extend(self.read(node, inputs)),
                Role::Resource | Role::Child => {
                    let is_meant = selected[number] && !is_behind;
                    found.extend(self.looked(node, inputs, options.refresh && is_meant));
                    if is_meant && options.mode == ModeOfPlan::Normal {
                        found.extend(self.taken_over(node, inputs));
                    }
                }
                Role::Block | Role::Enter | Role::Composite => {}
            }
        }
        found
    }

    fn read(&self, node: &Node, inputs: &Inputs<'_>) -> Option<Glance> {
        let reading = self.data.get(&node.address)?;
        let schema = inputs.registry.data_source(&node.kind)?.schema;
        let result = reading.result.as_ref().ok();
        let (address, kind) = (node.address.clone(), node.kind.clone());
        let seen = result.and_then(|object| id(schema, object));
        Some(Glance { address, kind, id: None, is_answered: result.is_some(), seen, elapsed: reading.took })
    }

    /// `trusted`: what lives in the state alone counts as looked at.
    fn looked(&self, node: &Node, inputs: &Inputs<'_>, trusted: bool) -> Option<Glance> {
        let stored: &ResourceState = inputs.state.resources.get(&node.address)?;
        let ResourceEntry::Type(_, spec) = inputs.registry.resource(&node.kind)? else { return None };
        let schema = spec.schema();
        let memory = remembered(schema, stored).ok()?;
        let known = id(schema, &memory);
        let is_secret = memory.get("id").is_some_and(|id| id.contains_secret());
        let (is_answered, seen) = match self.answer(&node.address) {
            Answer::Present(object) if object.contains_key("id") => (true, id(schema, object).filter(|_| !is_secret)),
            Answer::Present(_) => (true, known.clone()),
            Answer::Absent => (true, None),
            Answer::Failed(_) => (false, None),
            Answer::NotAsked if schema.state_only && trusted => (true, known.clone()),
            Answer::NotAsked => return None,
        };
        let (address, kind) = (node.address.clone(), node.kind.clone());
        Some(Glance { address, kind, id: known, is_answered, seen, elapsed: 0 })
    }

    /// What no state has yet. As in Terraform, what lives in the state alone counts as looked at whatever was asked for.
    fn taken_over(&self, node: &Node, inputs: &Inputs<'_>) -> Option<Glance> {
        let import = inputs.config.imports.get(&node.address).filter(|_| !inputs.state.resources.contains_key(&node.address))?;
        let ResourceEntry::Type(_, spec) = inputs.registry.resource(&node.kind)? else { return None };
        let (is_answered, seen) = match self.answer(&node.address) {
            Answer::Present(object) => (true, id(spec.schema(), object)),
            Answer::Absent => (true, None),
            Answer::Failed(_) => (false, None),
            Answer::NotAsked => (true, id(spec.schema(), &spec.imported(&import.id)?)),
        };
        let (address, kind) = (node.address.clone(), node.kind.clone());
        Some(Glance { address, kind, id: seen.clone(), is_answered, seen, elapsed: 0 })
    }
}

/// The `id` of a thing, if it may be told.
fn id(schema: &Schema, object: &Object) -> Option<String> {
    let id = object.get("id")?;
    let is_secret = id.contains_secret() || schema.attribute("id").is_some_and(|a| a.secret);
    id.as_str().filter(|_| !is_secret).map(str::to_owned)
}
