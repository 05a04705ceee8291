//! What is taken over, by `import` blocks or by hand: that it is there, and is what the configuration names. Pure.

use karmaform_lang::{Import, OpenImport};
use karmaform_model::{
    Address, Catalog, Diagnostic, Diagnostics, Mode, ModeOfPlan, Object, Plan, PlannedResource, ResourceEntry, ResourceSpec, ResourceState,
    Status, Value,
};

use crate::graph::Graph;
use crate::ledger::resource_state;
use crate::observed::Answer;
use crate::values::{with_nulls, without_volatile};
use crate::walk::Pass;

impl<'a> Pass<'a> {
    /// What an instance takes over; `None` if nothing, or if it has it already.
    pub(crate) fn import(&self, number: usize) -> Option<&'a Import> {
        let config = self.inputs.config;
        config.imports.get(&self.graph.nodes[number].address).filter(|_| self.may_import(number))
    }

    /// Why it can't be told what an instance takes over; `None` if it can, or if it has it already.
    pub(crate) fn open_import(&self, number: usize) -> Option<&'a OpenImport> {
        let config = self.inputs.config;
        let address = &self.graph.nodes[number].address;
        if config.imports.contains_key(address) {
            return None;
        }
        config.open_import(address).filter(|_| self.may_import(number))
    }

    fn may_import(&self, number: usize) -> bool {
        let address = &self.graph.nodes[number].address;
        // What an import that was cut off has begun is still to be taken over.
        let is_open = self.inputs.state.resources.get(address).is_none_or(|known| known.status == Status::Unfinished);
        self.options.mode == ModeOfPlan::Normal && is_open
    }
}

/// What has to be said of imports that can't be told: each block once, of the first of its instances. Who only looks (`lenient`) goes without. `is_wrong`:
/// something else was told, from which it may follow.
pub(crate) fn open(pass: &Pass<'_>, is_wrong: bool) -> Diagnostics {
    if pass.options.lenient || pass.inputs.config.open_imports.is_empty() {
        return Diagnostics::new();
    }
    let mut told: Vec<(Diagnostic, usize)> = Vec::new();
    for &number in pass.graph.instances.values() {
        // What could not be evaluated was told.
        if !pass.selected[number] || pass.visits[number].wanted.is_none() {
            continue;
        }
        let Some(open) = pass.open_import(number) else { continue };
        if is_wrong && (pass.visits[number].flags.failed || needed(pass, open).any(|(_, n)| has_failed(pass, n))) {
            continue;
        }
        match told.iter().position(|(first, _)| first.span == open.told.span && first.summary == open.told.summary) {
            Some(at) => told[at].1 += usize::from(!open.is_any),
            None => {
                let unread = needed(pass, open).find(|(address, n)| address.mode == Mode::Data && !pass.selected[*n] && !pass.deferred[*n]);
                told.push((with_unread(&open.told, unread.map(|(address, _)| address), pass), 0));
            }
        }
    }
    for (first, more) in told.iter_mut().filter(|(_, more)| *more > 0) {
        first.detail += &format!(" So it is with {more} more of this block.");
    }
    told.into_iter().map(|(first, _)| first).collect()
}

/// What an import is made of.
fn needed<'p>(pass: &'p Pass<'_>, open: &'p OpenImport) -> impl Iterator<Item = (&'p Address, usize)> {
    let graph: &'p Graph = pass.graph;
    open.needs.iter().flat_map(move |need| graph.within(need))
}

/// True if nothing is known of it as something went wrong. What is an open import itself did not.
fn has_failed(pass: &Pass<'_>, number: usize) -> bool {
    let visit = &pass.visits[number];
    let is_wanted = pass.selected[number] && pass.graph.nodes[number].configured && !pass.graph.nodes[number].is_junction();
    visit.flags.failed || is_wanted && visit.decision.is_none() && pass.open_import(number).is_none()
}

/// With what helps where a data source is not read at all: no apply would bring it.
fn with_unread(told: &Diagnostic, unread: Option<&Address>, pass: &Pass<'_>) -> Diagnostic {
    let Some(address) = unread else { return told.clone() };
    let hint = match pass.options.targets.is_empty() {
        true => format!("Leave {address} in: -exclude keeps this plan from reading it."),
        false => format!("Name {address} with -target as well: this plan does not read it."),
    };
    Diagnostic { hints: vec![hint], ..told.clone() }
}

/// What a plan takes over at this address, just as it is there, as the state keeps it. `None`: nothing.
pub fn taken_over(plan: &Plan, address: &Address, catalog: &Catalog) -> Option<ResourceState> {
    as_it_is(plan.resources.iter().find(|r| r.address == *address && r.deposed.is_none())?, catalog)
}

/// The same of one planned resource.
pub(crate) fn as_it_is(planned: &PlannedResource, catalog: &Catalog) -> Option<ResourceState> {
    planned.importing.as_ref()?;
    let Some(ResourceEntry::Type(_, spec)) = catalog.resource(&planned.resource_type) else { return None };
    let schema = spec.schema();
    let mut object = with_nulls(schema, &without_volatile(schema, planned.change.before()?, true));
    crate::values::mark_paths(&mut object, &planned.secret_paths);
    Some(resource_state(planned, schema, &object))
}

/// Why this can't be taken over, given what the look told.
pub(crate) fn refused(spec: &dyn ResourceSpec, import: &Import, wanted: &Object, answer: &Answer) -> Option<Diagnostic> {
    let error = |summary: &str, detail: String| Diagnostic::error(summary, detail).with_span(Some(import.span));
    let id = spec.import_id(wanted);
    let who = if import.by_hand { "The command" } else { "The block" };
    // What others have, too, would be taken for ours alone, and go when this goes.
    let shared = spec.schema().shared_by.filter(|name| wanted.get(name).and_then(Value::as_bool) == Some(true));
    if let Some(name) = shared {
        let detail = format!("With `{name}` a thing that is there already is used without an import, and stays when this is destroyed.");
        let hint = if import.by_hand { "Have it used by apply." } else { "Delete the import block." };
        return Some(error("Import of a shared thing", detail).with_hint(hint));
    }
    let is_secret = spec.schema().identity(wanted).values().any(Value::contains_secret);
    if id.as_ref().is_some_and(|id| is_secret && *id != import.id) {
        let detail = format!("{who} imports \"{}\", and what the resource says names something else, which is secret.", import.id);
        return Some(error("Import of another thing", detail).with_hint("Correct the id or the resource."));
    }
    if let Some(id) = id.as_ref().filter(|id| **id != import.id) {
        let detail = format!("{who} imports \"{}\", and what the resource says names \"{id}\".", import.id);
        let hint = if import.by_hand { format!("Give the id \"{id}\"") } else { format!("Write id = \"{id}\"") };
        return Some(error("Import of another thing", detail).with_hint(format!("{hint}, or correct the resource.")));
    }
    let or_else = |block: &str, hand: &str| if import.by_hand { hand.to_owned() } else { block.to_owned() };
    match answer {
        Answer::Present(_) => None,
        Answer::Failed(why) => {
            let detail = format!("Whether there is a \"{}\" could not be found out: {}", import.id, why.detail);
            let hint = or_else("Make it reachable, or delete the import block for now.", "Make it reachable, and import it then.");
            Some(error("Import of something unseen", detail).with_hint(hint))
        }
        Answer::Absent => {
            let detail = format!("There is no \"{}\" at the place that the resource names.", import.id);
            let error = error("Cannot import non-existent remote object", detail);
            let block = "Check the id and the way to it; or delete the import block, and have it made.";
            Some(error.with_hint(or_else(block, "Check the id and the way to it; or have it made by apply.")))
        }
        Answer::NotAsked => {
            let forbidden = if import.by_hand { "" } else { ", or -refresh=false forbids it" };
            let detail = format!(
                "Nobody looked whether there is a \"{}\": what it is or the way to it is known only after apply{forbidden}.",
                import.id
            );
            let block = "Apply what it depends on first, with -target, and plan without -refresh=false.";
            Some(error("Import of something unseen", detail).with_hint(or_else(block, "Apply what it depends on first, with -target.")))
        }
    }
}
