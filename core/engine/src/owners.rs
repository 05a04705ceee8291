//! Who has a thing of the outside world: one address, unless those that name it say that it is for several.

use std::collections::BTreeMap;

use karmaform_model::{Address, Change, Connection, Diagnostic, Diagnostics, ModeOfPlan, Object, ResourceEntry, Value, same, to_json};

use crate::replace::change;
use crate::values::is_wholly_known;
use crate::walk::Pass;
use crate::wanted::connection_id;

/// How far two want one thing alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Same,
    /// As far as it is known.
    Open,
    Other,
}

/// A thing that two want: who they are, and how.
type Rival<'a> = (&'a Address, &'a Address, Wish);
/// By the blocks that they are of.
type Rivals<'a> = BTreeMap<(Address, Address), Vec<Rival<'a>>>;

/// A thing whose address changed must not be deleted under the old one after it was taken over under the new one: the old address is
/// only forgotten. Gives, by node, what to say about it; and tells where two addresses both want one thing, each for itself.
pub(crate) fn keep_renamed(pass: &mut Pass<'_>, mode: ModeOfPlan) -> (BTreeMap<usize, String>, Diagnostics) {
    let graph = pass.graph;
    let (mut owners, mut notes, mut rivals) = (BTreeMap::new(), BTreeMap::new(), Rivals::new());
    for number in 0..graph.nodes.len() {
        let after = change(pass, number).and_then(Change::after);
        let Some(name) = after.and_then(|after| thing(pass, number, after)) else { continue };
        if let Some(other) = owners.insert(name, number)
            && let Some(wish) = rivalry(pass, number, other)
        {
            let [this, that] = [number, other].map(|n| &graph.nodes[n].address);
            let (one, two) = (this.whole(), that.whole());
            let pair = if one < two { (one, two) } else { (two, one) };
            rivals.entry(pair).or_default().push((this, that, wish));
        }
    }
    let told = |(_, things): (_, Vec<Rival<'_>>)| told(pass, mode, &things);
    let found = rivals.into_iter().flat_map(told).collect();
    for number in 0..graph.nodes.len() {
        let Some(Change::Delete { before }) = change(pass, number) else { continue };
        let Some(owner) = thing(pass, number, before).and_then(|name| owners.get(&name)) else { continue };
        let before = before.clone();
        if let Some(decision) = &mut pass.visits[number].decision {
            decision.change = Change::Forget { before };
            notes.insert(number, format!("is managed as {} from now on", graph.nodes[*owner].address));
        }
    }
    (notes, found)
}

/// How two that want one thing want it, unless they may both have it.
fn rivalry(pass: &Pass<'_>, number: usize, other: usize) -> Option<Wish> {
    let wish = wish(pass, number, other);
    let is_for_several = pass.entries[number].is_some_and(|entry| entry.schema().for_several);
    let is_shared = shares(pass, other) || shares(pass, number) || (is_for_several && wish == Wish::Same);
    (!is_shared).then_some(wish)
}

/// What there is to say of two blocks that want the same things. Nobody can take a part of a composite out of a configuration alone, so two
/// of these that would undo each other's work for ever are refused: once, however many things it is.
fn told(pass: &Pass<'_>, mode: ModeOfPlan, things: &[Rival<'_>]) -> Vec<Diagnostic> {
    let summary = "Two resources for one thing";
    let undo = "Each apply would undo what the other wants.";
    let span = |address: &Address| pass.inputs.config.block(&address.whole()).map(|b| b.span);
    let are_parts = |(this, that, wish): &&Rival<'_>| *wish == Wish::Other && this.is_child() && that.is_child();
    let mut refused = things.iter().filter(are_parts);
    if let (Some((this, that, _)), ModeOfPlan::Normal) = (refused.next(), mode) {
        let more = match refused.count() {
            0 => String::new(),
            1 => " So it is with one more thing of theirs.".to_owned(),
            more => format!(" So it is with {more} more things of theirs."),
        };
        let detail = format!("{that} names the same thing in the outside world, and wants it otherwise. {undo}{more}");
        let hint = "Give one of the two another name, or put it elsewhere.";
        return vec![Diagnostic::error(summary, detail).at(this).with_span(span(this)).with_hint(hint)];
    }
    let warning = |(this, that, _): &Rival<'_>| {
        let detail = format!("{that} names the same thing in the outside world. {undo}");
        Diagnostic::warning(summary, detail).at(this).with_span(span(this)).with_hint("Keep one of them.")
    };
    things.iter().map(warning).collect()
}

/// What two want of a thing, as far as it can be seen of it afterwards, and besides the way to it: that is another value for the same place.
fn wish(pass: &Pass<'_>, number: usize, other: usize) -> Wish {
    let [Some(this), Some(that)] = [number, other].map(|n| pass.visits[n].wanted.as_ref()) else { return Wish::Open };
    let way = match pass.entries[number].map(|entry| entry.schema().connection) {
        Some(Connection::Attribute(name)) => name,
        _ => "",
    };
    let mut wish = Wish::Same;
    let attributes = pass.entries[number].iter().flat_map(|entry| &entry.schema().attributes);
    for name in attributes.filter(|a| a.is_stored() && a.name != way).map(|a| a.name) {
        // Who does not say what it is to be does not mind.
        let [Some(one), Some(two)] = [this, that].map(|wanted| wanted.get(name).filter(|v| !v.is_null())) else { continue };
        if !one.is_wholly_known() || !two.is_wholly_known() {
            wish = Wish::Open;
        } else if !same(Some(one), Some(two)) {
            return Wish::Other;
        }
    }
    wish
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
    if identity.is_empty() || schema.state_only || schema.tries || !is_wholly_known(&identity) {
        return None;
    }
    let way = match schema.connection {
        Connection::Attribute(name) => to_json(object.get(name).and_then(connection_id).filter(|v| v.is_wholly_known())?).to_string(),
        _ => String::new(),
    };
    let identity: Value = identity.into();
    Some(format!("{}\0{way}\0{}", spec.name(), to_json(&identity)))
}
