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
    word: Option<&'static str>,
    claims: BTreeSet<String>,
}

/// What is claimed: where, in which list, and what of it.
type Claim = (String, &'static str, String);

/// An error for each two blocks that want the same.
pub(crate) fn check(pass: &Pass<'_>) -> Diagnostics {
    let mut takers: BTreeMap<Claim, &Address> = BTreeMap::new();
    let mut clashes: BTreeMap<(Address, Address, &'static str), Clash<'_>> = BTreeMap::new();
    for (address, claim, is_secret, word) in claims(pass) {
        let (attribute, what) = (claim.1, if is_secret { "(sensitive value)".to_owned() } else { claim.2.clone() });
        let Some(one) = takers.insert(claim, address).filter(|one| *one != address) else { continue };
        let clash = || Clash { one, other: address, word, claims: BTreeSet::new() };
        clashes.entry((one.whole(), address.whole(), attribute)).or_insert_with(clash).claims.insert(what);
    }
    let block = |address: &Address| pass.inputs.config.block(&address.whole()).map(|b| b.span);
    clashes.into_values().map(|clash| clash.told().with_span(block(clash.other))).collect()
}

/// All that is claimed, as far as it is known: by whom, whether it is a secret, and the word for it.
fn claims<'a>(pass: &'a Pass<'_>) -> Vec<(&'a Address, Claim, bool, Option<&'static str>)> {
    let mut found = Vec::new();
    for (address, &number) in &pass.graph.instances {
        let Some(ResourceEntry::Type(_, spec)) = pass.entries[number] else { continue };
        let (lists, Connection::Attribute(way)) = (&spec.schema().claims, spec.schema().connection) else { continue };
        let visit = &pass.visits[number];
        let stays = visit.decision.as_ref().is_some_and(|d| !matches!(d.change, Change::Delete { .. } | Change::Forget { .. }));
        let Some(wanted) = visit.wanted.as_ref().filter(|_| stays && !lists.is_empty()) else { continue };
        let Some(place) = wanted.get(way).and_then(connection_id).filter(|v| v.is_wholly_known()) else { continue };
        let place = to_json(place).to_string();
        for (attribute, word) in lists {
            let values = wanted.get(attribute).and_then(Value::as_items).into_iter().flatten();
            for value in values.filter(|v| v.is_wholly_known() && !v.is_null()) {
                let what = value.as_str().map_or_else(|| to_json(value).to_string(), str::to_owned);
                let is_secret = value.contains_secret();
                found.push((address, (place.clone(), *attribute, what), is_secret, *word));
            }
        }
    }
    found
}

impl Clash<'_> {
    fn told(&self) -> Diagnostic {
        let Self { one, other, word, claims } = self;
        let several = if claims.len() > 1 { "s" } else { "" };
        let claims = claims.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let both = format!("{other} and {one} are in one place, and");
        match word {
            Some(word) => Diagnostic::error(format!("One {word} twice"), format!("{both} both would have the {word}{several} {claims}."))
                .with_hint(format!("Give one of them other {word}s.")),
            None => Diagnostic::error("Only one can have it", format!("{both} only one there can have {claims}."))
                .with_hint("Change one of them so that it wants something else, or put it elsewhere."),
        }
        .at(other)
    }
}
