//! In which order replacements go, and which deletes are refused. Works on decisions, after a pass.

use std::collections::BTreeMap;

use karmaform_model::{Address, Change, Connection, Diagnostic, Diagnostics, Object, ReplaceOrder, Schema, same};

use crate::graph::{Graph, Role};
use crate::options::Inputs;
use crate::values::is_wholly_known;
use crate::walk::Pass;
use crate::wanted::connection_id;

/// By node: whether `create_before_destroy` is in effect. It spreads to what a resource needs: the old one of that has to live until the
/// old one of this is gone. It holds for a resource as a whole: for all its instances, in all instances of its module.
pub(crate) fn create_first(graph: &Graph, inputs: Inputs<'_>) -> Vec<bool> {
    let mut first = vec![false; graph.nodes.len()];
    let is_instance = |number: &usize| {
        let node = &graph.nodes[*number];
        node.configured && !node.is_junction() && !node.address.is_child()
    };
    let says_so = |number: &usize| inputs.config.block(&graph.nodes[*number].address).is_some_and(|b| b.lifecycle.create_before_destroy);
    let mut open: Vec<usize> = (0..graph.nodes.len()).filter(is_instance).filter(says_so).collect();
    if open.is_empty() {
        return first;
    }
    let mut resources: BTreeMap<Address, Vec<usize>> = BTreeMap::new();
    for number in (0..graph.nodes.len()).filter(is_instance) {
        resources.entry(graph.nodes[number].address.configuration()).or_default().push(number);
    }
    while let Some(number) = open.pop() {
        if std::mem::replace(&mut first[number], true) {
            continue;
        }
        let node = &graph.nodes[number];
        open.extend(&node.wanted);
        if is_instance(&number) {
            open.extend(resources.remove(&node.address.configuration()).unwrap_or_default());
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

/// What is to be known where parts of a composite are to be made anew: the composite stays, so `ignore_changes` still keeps what they are made of.
pub(crate) fn made_as_it_was(written: &Object, kept: &Object) -> Diagnostics {
    let differs = |name: &&String| !same(written.get(name), kept.get(name));
    let names: Vec<String> = kept.keys().filter(differs).map(|name| format!("\"{name}\"")).collect();
    if names.is_empty() {
        return Diagnostics::new();
    }
    let detail = format!(
        "Parts of it are replaced, and are made with {} as the state has it, not as it is written: ignore_changes holds for a composite as long as it is there.",
        names.join(", ")
    );
    Diagnostic::warning("Replaced as it was", detail)
        .with_hint("Take it out of ignore_changes if it is to be made as it is written.")
        .into()
}

/// What is decided for a node, if anything is.
pub(crate) fn change<'a>(pass: &'a Pass<'_>, number: usize) -> Option<&'a Change> {
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
