//! What only one of all that is reached in one way can have, a port for one: two that want it are refused before either is made. What is there
//! already and is not ours no plan knows; that is for those who look at the place.

use std::collections::BTreeMap;

use karmaform_model::{Change, Connection, Diagnostic, Diagnostics, ResourceEntry, Value, to_json};

use crate::walk::Pass;
use crate::wanted::connection_id;

/// An error for each that is wanted twice.
pub(crate) fn check(pass: &Pass<'_>) -> Diagnostics {
    let graph = pass.graph;
    let mut takers: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut found = Diagnostics::new();
    for number in graph.instances.values().copied() {
        let Some(ResourceEntry::Type(_, spec)) = pass.entries[number] else { continue };
        let (Some((attribute, word)), Connection::Attribute(way)) = (spec.schema().claims, spec.schema().connection) else { continue };
        let visit = &pass.visits[number];
        let stays = visit.decision.as_ref().is_some_and(|d| !matches!(d.change, Change::Delete { .. } | Change::Forget { .. }));
        let Some(wanted) = visit.wanted.as_ref().filter(|_| stays) else { continue };
        let Some(place) = wanted.get(way).and_then(connection_id).filter(|v| v.is_wholly_known()) else { continue };
        let place = to_json(place).to_string();
        for value in wanted.get(attribute).and_then(Value::as_items).into_iter().flatten().filter(|v| v.is_wholly_known() && !v.is_null()) {
            let claim = to_json(value).to_string();
            let Some(other) = takers.insert((place.clone(), claim.clone()), number).filter(|other| *other != number) else { continue };
            let address = &graph.nodes[number].address;
            let detail = format!("{address} and {} are in one place, and both would have the {word} {claim}.", graph.nodes[other].address);
            let hint = format!("Give one of them another {word}.");
            let block = address.composite().unwrap_or_else(|| address.clone());
            let span = pass.inputs.config.block(&block).map(|b| b.span);
            found.push(Diagnostic::error(format!("One {word} twice"), detail).with_hint(hint).at(address).with_span(span));
        }
    }
    found
}
