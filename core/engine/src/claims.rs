//! What only one of all that is reached in one way can have, a port for one: two that want it are refused before either is made. What is there
//! already and is not ours no plan knows; that is for those who look at the place.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Change, Connection, Diagnostic, Diagnostics, ResourceEntry, Value, to_json};

use crate::walk::Pass;
use crate::wanted::connection_id;

/// What two blocks both want, and who of them is the first to.
struct Clash<'a> {
    one: &'a Address,
    other: &'a Address,
    word: &'static str,
    claims: BTreeSet<String>,
}

/// An error for each two blocks that want the same.
pub(crate) fn check(pass: &Pass<'_>) -> Diagnostics {
    let graph = pass.graph;
    let mut takers: BTreeMap<(String, String), &Address> = BTreeMap::new();
    let mut clashes: BTreeMap<(Address, Address), Clash<'_>> = BTreeMap::new();
    for (address, &number) in &graph.instances {
        let Some(ResourceEntry::Type(_, spec)) = pass.entries[number] else { continue };
        let (Some((attribute, word)), Connection::Attribute(way)) = (spec.schema().claims, spec.schema().connection) else { continue };
        let visit = &pass.visits[number];
        let stays = visit.decision.as_ref().is_some_and(|d| !matches!(d.change, Change::Delete { .. } | Change::Forget { .. }));
        let Some(wanted) = visit.wanted.as_ref().filter(|_| stays) else { continue };
        let Some(place) = wanted.get(way).and_then(connection_id).filter(|v| v.is_wholly_known()) else { continue };
        let place = to_json(place).to_string();
        for value in wanted.get(attribute).and_then(Value::as_items).into_iter().flatten().filter(|v| v.is_wholly_known() && !v.is_null()) {
            let claim = to_json(value).to_string();
            let Some(one) = takers.insert((place.clone(), claim.clone()), address).filter(|one| *one != address) else { continue };
            let clash = || Clash { one, other: address, word, claims: BTreeSet::new() };
            clashes.entry((one.whole(), address.whole())).or_insert_with(clash).claims.insert(claim);
        }
    }
    clashes.into_iter().map(|((_, block), clash)| clash.told().with_span(pass.inputs.config.block(&block).map(|b| b.span))).collect()
}

impl Clash<'_> {
    fn told(&self) -> Diagnostic {
        let Self { one, other, word, claims } = self;
        let several = if claims.len() > 1 { "s" } else { "" };
        let claims = claims.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let detail = format!("{other} and {one} are in one place, and both would have the {word}{several} {claims}.");
        let hint = format!("Give one of them other {word}s.");
        Diagnostic::error(format!("One {word} twice"), detail).with_hint(hint).at(other)
    }
}
