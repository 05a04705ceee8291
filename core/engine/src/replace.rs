//! In which order replacements go, which deletes are refused, and things that only changed their address. Works on decisions, after a pass.

use std::collections::BTreeMap;

use karmaform_model::{Change, Connection, Diagnostic, Diagnostics, Object, ReplaceOrder, ResourceEntry, Schema, Value, same, to_json};

use crate::graph::{Graph, Role};
use crate::options::Inputs;
use crate::values::is_wholly_known;
use crate::walk::Pass;
use crate::wanted::connection_id;

/// By node: whether `create_before_destroy` is in effect. It spreads to what a resource needs: the old one of that has to live until the
/// old one of this is gone.
pub(crate) fn create_first(graph: &Graph, inputs: Inputs<'_>) -> Vec<bool> {
    let mut first = vec![false; graph.nodes.len()];
    for &number in graph.order.iter().rev() {
        let node = &graph.nodes[number];
        if node.configured && !node.is_junction() && !node.address.is_child() {
            first[number] |= inputs.config.block(&node.address).is_some_and(|b| b.lifecycle.create_before_destroy);
        }
        if first[number] {
            node.wanted.iter().for_each(|needed| first[*needed] = true);
        }
    }
    // Composites order the replacement of their children themselves.
    for (number, node) in graph.nodes.iter().enumerate() {
        first[number] &= node.role != Role::Child;
    }
    first
}

/// Sets the order of every replacement. What can't be created first (the old thing has the same name) forces the replacements of all
/// that needs it to go destroy-first as well, or neither order would work.
pub(crate) fn set_orders(pass: &mut Pass<'_>, create_first: &[bool]) {
    let graph = pass.graph;
    let mut destroy_first = vec![false; graph.nodes.len()];
    for &number in &graph.order {
        let node = &graph.nodes[number];
        let mut forced = node.wanted.iter().any(|needed| destroy_first[*needed]);
        if node.role == Role::Composite {
            let goes = |child: &usize| matches!(change(pass, *child), Some(Change::Delete { .. } | Change::Replace { .. }));
            forced |= node.children.iter().any(goes);
        }
        if let Some(Change::Replace { before, after, .. }) = change(pass, number) {
            let schema = pass.entries[number].map(|e| e.schema());
            let blocked = node.role == Role::Child || schema.is_some_and(|s| may_be_the_same(s, before, after));
            forced |= blocked || !create_first[number];
        }
        destroy_first[number] = forced;
        if let Some(Change::Replace { order, .. }) = pass.visits[number].decision.as_mut().map(|d| &mut d.change)
            && !forced
        {
            *order = ReplaceOrder::CreateFirst;
        }
    }
}

fn change<'a>(pass: &'a Pass<'_>, number: usize) -> Option<&'a Change> {
    pass.visits[number].decision.as_ref().map(|d| &d.change)
}

/// True if both sides name the same thing in the outside world, or may do so. Creating it again and then deleting "the old one" would
/// delete the only one there is.
fn may_be_the_same(schema: &Schema, before: &Object, after: &Object) -> bool {
    let (old, new) = (schema.identity(before), schema.identity(after));
    if old.is_empty() {
        return false;
    }
    let is_elsewhere = match schema.connection {
        Connection::Attribute(name) => {
            let id = |o: &Object| o.get(name).and_then(connection_id).filter(|v| v.is_wholly_known()).cloned();
            matches!((id(before), id(after)), (Some(a), Some(b)) if !same(Some(&a), Some(&b)))
        }
        _ => false,
    };
    !is_elsewhere && (!is_wholly_known(&new) || old.iter().all(|(name, value)| same(Some(value), new.get(name))))
}

/// A thing whose address changed must not be deleted under the old one after it was taken over under the new one: the old address is
/// only forgotten. Gives, by node, what to say about it; and warns where two addresses both want one thing.
pub(crate) fn keep_renamed(pass: &mut Pass<'_>) -> (BTreeMap<usize, String>, Diagnostics) {
    let graph = pass.graph;
    let (mut owners, mut notes, mut warnings) = (BTreeMap::new(), BTreeMap::new(), Diagnostics::new());
    for (number, node) in graph.nodes.iter().enumerate() {
        let after = change(pass, number).and_then(Change::after);
        let Some(name) = after.and_then(|after| thing(pass, number, after)) else { continue };
        if let Some(other) = owners.insert(name, number) {
            if shares(pass, other) || shares(pass, number) {
                continue;
            }
            let other: &crate::graph::Node = &graph.nodes[other];
            let detail =
                format!("{} names the same thing in the outside world. Each apply would undo what the other wants.", other.address);
            warnings.push(Diagnostic::warning("Two resources for one thing", detail).at(&node.address).with_hint("Keep one of them."));
        }
    }
    for number in 0..graph.nodes.len() {
        let Some(Change::Delete { before }) = change(pass, number) else { continue };
        let Some(owner) = thing(pass, number, before).and_then(|name| owners.get(&name)) else { continue };
        let before = before.clone();
        if let Some(decision) = &mut pass.visits[number].decision {
            decision.change = Change::Forget { before };
            notes.insert(number, format!("is managed as {} from now on", graph.nodes[*owner].address));
        }
    }
    (notes, warnings)
}

/// True for an instance that says that others may want the same thing.
fn shares(pass: &Pass<'_>, number: usize) -> bool {
    let wanted = pass.visits[number].wanted.as_ref();
    let name = pass.entries[number].and_then(|entry| entry.schema().shared_by);
    name.and_then(|name| wanted?.get(name)?.as_bool()) == Some(true)
}

/// Names a thing in the outside world: type, connection and identity; nothing if they are not known, or the type has none.
fn thing(pass: &Pass<'_>, number: usize, object: &Object) -> Option<String> {
    let Some(ResourceEntry::Type(_, spec)) = pass.entries[number] else { return None };
    let schema = spec.schema();
    let identity = schema.identity(object);
    if identity.is_empty() || schema.state_only || !is_wholly_known(&identity) {
        return None;
    }
    let way = match schema.connection {
        Connection::Attribute(name) => to_json(object.get(name).and_then(connection_id).filter(|v| v.is_wholly_known())?).to_string(),
        _ => String::new(),
    };
    let identity: Value = identity.into();
    Some(format!("{}\0{way}\0{}", spec.name(), to_json(&identity)))
}
