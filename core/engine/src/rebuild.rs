//! A state that was lost, from the configuration and the world alone.
//!
//! What has a place in the world is asked for by the name that the configuration gives it. What lives in the state alone is found in what was
//! made of it: a certificate in a file, an id in a setting. What nothing tells of is believed to be done where all around it is there.

use std::collections::BTreeMap;

use karmaform_lang::Evaluator;
use karmaform_model::{
    Address, Change, Diagnostics, Object, OutputState, PlanContext, ResourceEntry, ResourceSpec, ResourceState, Schema, Snapshot, Status,
    Value,
};

use crate::connect::OWN_PROVIDER;
use crate::drift::outputs;
use crate::graph::{Graph, Role};
use crate::holes::{self, Found};
use crate::observe::look_at_all;
use crate::observed::{Answer, Observed};
use crate::options::{Inputs, Options, World};
use crate::plan::dependencies;
use crate::replace::create_first;
use crate::values::{secret_paths, with_nulls};
use crate::walk::{Pass, values, values_with_holes, walk};

/// So many different texts are tried for one attribute.
const CANDIDATES: usize = 8;

/// A state made anew.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    /// The state, without lineage and serial.
    pub snapshot: Snapshot,
    /// Secrets that were found nowhere: whose, and which.
    pub lost: Vec<(Address, &'static str)>,
    /// What nothing in the world tells of: it is taken for done.
    pub believed: Vec<Address>,
}

/// Makes the state anew from `world.config` and what is there; `world.state` is not looked at. Reads only.
///
/// Errors mean that something could not be looked at, or is there and is not ours: then the state would not be the whole truth.
pub async fn rebuild(graph: &Graph, world: &World<'_>, options: &Options) -> (Rebuilt, Diagnostics) {
    let mut rebuilt = Rebuilt::default();
    let mut met = Diagnostics::new();
    let (needs, create_first) = (dependencies(graph), create_first(graph, world.inputs()));
    let evaluator = Evaluator::new(world.config, &karmaform_lang::NothingKnown);
    let protected: Vec<bool> = graph.nodes.iter().map(|n| evaluator.is_protected(&n.address).0.unwrap_or_default()).collect();
    loop {
        let known = rebuilt.snapshot.clone();
        let now = World { state: &known, ..*world };
        let (observed, problems) = look_at_all(graph, &now, options, false, Observed::default()).await;
        met.extend(problems);
        let (inputs, observed) = (now.inputs(), &observed);
        let mut book = Book {
            graph,
            inputs,
            observed,
            options,
            needs: &needs,
            create_first: &create_first,
            protected: &protected,
            rebuilt: &mut rebuilt,
            met: &mut met,
        };
        // What was found may be what more can be found with, in what was seen already.
        while !book.met.has_errors() && book.learn(false) {}
        let is_new = book.rebuilt.snapshot.resources.len() > known.resources.len();
        // What is found without its secrets is taken only when nothing else is left to be found.
        if !book.met.has_errors() && !is_new && !book.learn(true) && !book.believe() {
            book.finish();
            break;
        }
        if met.has_errors() {
            break;
        }
    }
    (rebuilt, met)
}

/// What is known so far.
struct Book<'a> {
    graph: &'a Graph,
    inputs: Inputs<'a>,
    observed: &'a Observed,
    options: &'a Options,
    /// By node: what the state says that it depends on, whether a new one comes before the old one goes, and whether it may not be destroyed.
    needs: &'a [Vec<Address>],
    create_first: &'a [bool],
    protected: &'a [bool],
    rebuilt: &'a mut Rebuilt,
    met: &'a mut Diagnostics,
}

impl Book<'_> {
    /// One pass over what is wanted, with what is known by now.
    fn pass<T>(&self, with_holes: bool, look: impl FnOnce(&mut Pass<'_>, &Evaluator<'_>) -> T) -> T {
        let inputs = Inputs { state: &self.rebuilt.snapshot, ..self.inputs };
        let values = if with_holes { values_with_holes(self.graph) } else { values(self.graph) };
        let evaluator = Evaluator::new(inputs.config, &values);
        let mut pass = walk(self.graph, inputs, self.observed, self.options, &values, &evaluator);
        look(&mut pass, &evaluator)
    }

    /// Finds what lives in the state alone in what was seen, with all its secrets or else `without` some; true if anything was.
    fn learn(&mut self, without: bool) -> bool {
        let found = self.pass(true, |pass, _| {
            let mut found = Found::new();
            for (address, number) in &self.graph.instances {
                if let (Answer::Present(seen), Some(wanted)) = (self.observed.answer(address), &pass.visits[*number].wanted) {
                    holes::objects(wanted, seen, &mut found);
                }
            }
            found
        });
        let mut told: Vec<(usize, Object)> = Vec::new();
        for (node, found) in by_node(found) {
            let is_new = self.graph.nodes.get(node).is_some_and(|n| !self.rebuilt.snapshot.resources.contains_key(&n.address));
            let Some(schema) = self.schema(node).filter(|_| is_new) else { continue };
            // What most places say; what differs in some is then seen to differ. Where that is no good the next best may be.
            let tries = found.values().map(Vec::len).max().unwrap_or_default().min(CANDIDATES);
            told.extend((0..tries).map(|place| (node, candidate(schema, &found, place))));
        }
        let mut best: BTreeMap<usize, (Object, Vec<&'static str>)> = BTreeMap::new();
        for (node, object) in self.recovered(told) {
            let Some(lost) = self.schema(node).map(|schema| lost(schema, &object)) else { continue };
            if best.get(&node).is_none_or(|(_, before)| before.len() > lost.len()) {
                best.insert(node, (object, lost));
            }
        }
        best.retain(|_, (_, lost)| without || lost.is_empty());
        let any = !best.is_empty();
        for (node, (object, lost)) in best {
            let address = &self.graph.nodes[node].address;
            self.rebuilt.lost.extend(lost.into_iter().map(|name| (address.clone(), name)));
            self.record(node, &object);
        }
        any
    }

    /// Takes what nothing tells of for done, where all that it needs is there; true if there was any.
    fn believe(&mut self) -> bool {
        let missing = self.missing();
        let silent = |node: &usize| {
            let composite = self.graph.nodes[*node].composite;
            let has_siblings = composite.is_none_or(|c| self.graph.nodes[c].children.iter().any(|s| self.is_seen(*s)));
            let is_known = self.is_seen(*node) || self.rebuilt.snapshot.resources.contains_key(&self.graph.nodes[*node].address);
            (has_siblings && !is_known && !missing[*node]).then_some((*node, Object::new()))
        };
        let silent: Vec<_> = self.graph.instances.values().filter_map(silent).collect();
        let recovered = self.recovered(silent);
        let any = !recovered.is_empty();
        for (node, object) in recovered {
            self.rebuilt.believed.push(self.graph.nodes[node].address.clone());
            self.record(node, &object);
        }
        any
    }

    /// By node: something that it needs, near or far, is not there.
    fn missing(&self) -> Vec<bool> {
        let mut missing = vec![false; self.graph.nodes.len()];
        for &number in &self.graph.order {
            missing[number] = self.graph.nodes[number].wanted.iter().any(|needed| {
                let node = &self.graph.nodes[*needed];
                let is_thing = matches!(node.role, Role::Resource | Role::Child) && node.configured;
                let is_recorded =
                    self.rebuilt.snapshot.resources.contains_key(&node.address) && *self.observed.answer(&node.address) != Answer::Absent;
                missing[*needed] || is_thing && !self.is_seen(*needed) && !is_recorded
            });
        }
        missing
    }

    fn is_seen(&self, node: usize) -> bool {
        matches!(self.observed.answer(&self.graph.nodes[node].address), Answer::Present(_))
    }

    /// What the types make of what was found.
    fn recovered(&mut self, told: Vec<(usize, Object)>) -> Vec<(usize, Object)> {
        let (recovered, problems) = self.pass(false, |pass, _| {
            let (mut recovered, mut problems) = (Vec::new(), Diagnostics::new());
            for (node, found) in told {
                let (Some(ResourceEntry::Type(_, spec)), Some(wanted)) = (pass.entries[node], &pass.visits[node].wanted) else { continue };
                // What it is made of may be known once something else is.
                if !is_known(spec.schema(), wanted) {
                    continue;
                }
                match spec.recovered(wanted, &found) {
                    Ok(Some(object)) => recovered.push((node, object)),
                    Ok(None) => {}
                    Err(error) => problems.push(error.at(&self.graph.nodes[node].address)),
                }
            }
            (recovered, problems)
        });
        self.met.extend(problems);
        recovered
    }

    /// Everything that was seen, then what is made of it: composites' records, and outputs.
    fn finish(&mut self) {
        let gone: Vec<_> = self.observed.absent().cloned().collect();
        for address in gone {
            self.rebuilt.snapshot.resources.remove(&address);
            self.rebuilt.believed.retain(|b| *b != address);
        }
        // What is wanted of a thing may be known only once what it needs is in the state; at last, as far as it is known.
        while self.adopt(false) {}
        self.adopt(true);
        let (composites, problems) = self.pass(false, |pass, _| {
            let mut problems = std::mem::take(&mut pass.diagnostics);
            problems.extend(crate::imports::open(pass, problems.has_errors()));
            let problems: Vec<_> = problems.into_iter().filter(|d| d.address.as_ref().is_none_or(|a| self.matters(pass, a))).collect();
            let composites = self.graph.instances.values().filter(|n| matches!(pass.entries[**n], Some(ResourceEntry::Composite(_))));
            let record = |number: &usize| {
                let children = &self.graph.nodes[*number].children;
                let is_there = children.iter().any(|c| self.rebuilt.snapshot.resources.contains_key(&self.graph.nodes[*c].address));
                let after = pass.visits[*number].decision.as_ref()?.change.after()?;
                is_there.then(|| (*number, after.clone()))
            };
            (composites.filter_map(record).collect::<Vec<_>>(), problems)
        });
        self.met.extend(problems);
        if self.rebuilt.snapshot.resources.is_empty() || self.met.has_errors() {
            return;
        }
        for (number, object) in composites {
            self.record(number, &object);
        }
        let outputs = self.pass(false, |pass, evaluator| outputs(pass, evaluator, &mut Diagnostics::new()));
        for (name, change) in outputs.changes {
            if let Some(value) = change.after.filter(|v| v.is_wholly_known() && !v.is_null()) {
                self.rebuilt.snapshot.outputs.insert(name, OutputState { value, sensitive: change.sensitive });
            }
        }
    }

    /// True if what is wrong with an instance keeps the state from being whole: it is there, or nobody can tell whether it is. What can't be
    /// made is the next plan's to say.
    fn matters(&self, pass: &Pass<'_>, address: &Address) -> bool {
        let Some(&number) = self.graph.instances.get(address) else { return true };
        let is_thing = matches!(self.graph.nodes[number].role, Role::Resource | Role::Child);
        !is_thing || self.is_seen(number) || pass.visits[number].wanted.is_none()
    }

    /// Takes in what was seen and is not in the state yet, where it is known what is wanted of it; with `all` everything. True if there was any.
    fn adopt(&mut self, all: bool) -> bool {
        let objects = self.pass(false, |pass, _| {
            let mut objects = Vec::new();
            // By node: the next plan changes it.
            let mut changes = vec![false; self.graph.nodes.len()];
            for &number in &self.graph.order {
                let node = &self.graph.nodes[number];
                let is_behind = node.wanted.iter().any(|needed| changes[*needed]);
                let visit = &pass.visits[number];
                // What stands for others, or is read from them, changes as they do.
                changes[number] = if node.is_junction() || matches!(node.role, Role::Composite | Role::Data) {
                    is_behind
                } else {
                    let is_told = visit.before.status.is_some() || visit.before.is_absent;
                    is_told && visit.decision.as_ref().is_some_and(|d| d.change.action().acts())
                };
                let is_new = visit.before.status.is_none() && matches!(self.observed.answer(&node.address), Answer::Present(_));
                let (Some(ResourceEntry::Type(_, spec)), Some(wanted), Some(seen)) =
                    (pass.entries[number], &visit.wanted, &visit.before.compared)
                else {
                    continue;
                };
                if is_new && (all || is_known(spec.schema(), wanted)) {
                    let (object, is_as_wanted) = taken(spec, &pass.context, seen, wanted, is_behind);
                    changes[number] = !is_as_wanted;
                    objects.extend(object.map(|object| (number, object)));
                }
            }
            objects
        });
        let any = !objects.is_empty();
        for (number, object) in objects {
            self.record(number, &object);
        }
        any
    }

    fn schema(&self, node: usize) -> Option<&Schema> {
        self.inputs.registry.resource(&self.graph.nodes[node].kind).map(|e| e.schema())
    }

    /// Puts an instance into the state.
    fn record(&mut self, number: usize, object: &Object) {
        let node = &self.graph.nodes[number];
        let Some(entry) = self.inputs.registry.resource(&node.kind) else { return };
        let provider = if let ResourceEntry::Type(driver, _) = entry { driver.name() } else { OWN_PROVIDER };
        let schema = entry.schema();
        let object = with_nulls(schema, &known(object));
        let state = ResourceState {
            resource_type: node.kind.clone(),
            provider: provider.to_owned(),
            schema_version: schema.version,
            attributes: schema.encode(&object).into(),
            secret_paths: secret_paths(schema, &object),
            dependencies: self.needs[number].clone(),
            create_before_destroy: self.create_first[number],
            protected: self.protected[number],
            status: Status::Ready,
        };
        self.rebuilt.snapshot.resources.insert(node.address.clone(), state);
    }
}

/// What a state knows of something that was seen, and whether that is all as wanted. What can't be planned is reported by the last pass:
/// something of the same name that is not ours, for one.
///
/// What can't be seen of it is taken to be as wanted; but not where what it needs is going to change (`is_behind`): a unit that was started
/// with another file than the one that is wanted has to be restarted, and would not be if it were said to know the new one already.
fn taken(spec: &dyn ResourceSpec, context: &PlanContext, seen: &Object, wanted: &Object, is_behind: bool) -> (Option<Object>, bool) {
    let filled = spec.schema().filled(seen, &known(wanted));
    let planned = spec.plan(context, Some(&filled), Some(wanted));
    let is_as_wanted = matches!(planned, Ok(Change::NoOp { .. }));
    if is_behind && is_as_wanted && matches!(spec.plan(context, Some(seen), Some(wanted)), Ok(Change::Update { .. })) {
        return (Some(seen.clone()), false);
    }
    match planned {
        Ok(Change::NoOp { object }) => (Some(object), true),
        Ok(_) => (Some(filled), false),
        Err(_) => (None, false),
    }
}

/// What was found of each node: texts by the place of the attribute, those that most say first.
fn by_node(found: Found) -> BTreeMap<usize, BTreeMap<usize, Vec<String>>> {
    let mut nodes: BTreeMap<usize, BTreeMap<usize, Vec<String>>> = BTreeMap::new();
    for ((node, place), texts) in found {
        let mut texts: Vec<_> = texts.into_iter().collect();
        texts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        nodes.entry(node).or_default().insert(place, texts.into_iter().map(|(text, _)| text).collect());
    }
    nodes
}

/// One try at what a thing's computed attributes are.
fn candidate(schema: &Schema, found: &BTreeMap<usize, Vec<String>>, place: usize) -> Object {
    let attributes = found.iter().filter_map(|(attribute, texts)| {
        let text = texts.get(place.min(texts.len().saturating_sub(1)))?;
        let attribute = schema.attributes.get(*attribute)?;
        Some((attribute.name.to_owned(), Value::from(text.as_str()).secret_if(attribute.secret)))
    });
    attributes.collect()
}

/// The secrets that such a thing has and that were not found.
fn lost(schema: &Schema, object: &Object) -> Vec<&'static str> {
    let is_lost = |name: &str| object.get(name).is_none_or(Value::is_null);
    schema.attributes.iter().filter(|a| a.secret && a.is_computed() && is_lost(a.name)).map(|a| a.name).collect()
}

/// True if all is known that a state keeps and a configuration says.
fn is_known(schema: &Schema, wanted: &Object) -> bool {
    let is_told = |name: &str| schema.attribute(name).is_none_or(|a| a.is_stored() && a.is_configurable());
    wanted.iter().all(|(name, value)| value.is_wholly_known() || !is_told(name))
}

/// Without what is not known, in whole or in part.
fn known(object: &Object) -> Object {
    object.iter().filter(|(_, value)| value.is_wholly_known()).map(|(n, v)| (n.clone(), v.clone())).collect()
}
