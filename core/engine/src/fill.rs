//! Fills what a plan left open, right before a step: arguments are evaluated again with what is known by then. What the plan showed stays,
//! or the step is refused. Decides nothing and touches nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_lang::{Evaluator, Moment};
use karmaform_model::{
    Action, Address, Change, Connection, Diagnostic, Diagnostics, Expansion, GateSpec, Mode, Object, Path, Plan, PlanContext,
    PlannedResource, Reason, ResourceEntry, Schema, Status,
};

use crate::graph::{Graph, Role};
use crate::ledger::Ledger;
use crate::options::World;
use crate::record::record_object;
use crate::values::{is_wholly_known, merge, secret_paths};
use crate::wanted::{assume_connection, child_arguments, connection_id, first_leg, made_ready, prepared, resolved};

/// Fills changes of one plan.
pub(crate) struct Filler<'a> {
    plan: &'a Plan,
    graph: &'a Graph,
    world: &'a World<'a>,
    /// What `timestamp()` and `uuid()` are in this apply.
    pub(crate) moment: Moment,
    /// By planned resource: something that it needs is read during apply, so that even what was taken for known has to be looked at again.
    behind_reads: Vec<bool>,
    /// Composites whose arguments are wholly known are expanded once.
    expansions: BTreeMap<Address, Arc<(Object, Expansion)>>,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(plan: &'a Plan, graph: &'a Graph, world: &'a World<'a>, seed: &str) -> Self {
        // What a check reads again comes last, and makes nothing known that anything is made of.
        let is_needed = |r: &&PlannedResource| r.change.action() == Action::Read && r.reason != Some(Reason::ReadBecauseCheckNested);
        let reads: Vec<&Address> = plan.resources.iter().filter(is_needed).map(|r| &r.address).collect();
        let mut behind = vec![false; if reads.is_empty() { 0 } else { graph.nodes.len() }];
        if !reads.is_empty() {
            reads.iter().filter_map(|a| graph.instances.get(*a)).for_each(|n| behind[*n] = true);
            for &number in &graph.order {
                behind[number] |= graph.nodes[number].wanted.iter().any(|needed| behind[*needed]);
            }
        }
        let is_behind = |r: &PlannedResource| graph.instances.get(&r.address).and_then(|n| behind.get(*n)).copied().unwrap_or(false);
        let moment = Moment { now: i64::try_from(world.runtime.now() / 1000).unwrap_or(i64::MAX), seed: seed.to_owned() };
        Self { plan, graph, world, moment, behind_reads: plan.resources.iter().map(is_behind).collect(), expansions: BTreeMap::new() }
    }

    /// Where an instance stands in the graph.
    pub(crate) fn number(&self, address: &Address) -> Option<usize> {
        self.graph.instances.get(address).copied()
    }

    /// The change to be made, with everything in it that can be known before it is made. An update of what was not known yet may turn out to
    /// be none.
    pub(crate) fn change(&mut self, ledger: &Ledger<'_>, resource: usize, part: Action) -> Result<Change, Diagnostics> {
        let planned = &self.plan.resources[resource];
        let before = || planned.change.before().cloned().unwrap_or_default();
        if part == Action::Delete {
            return Ok(Change::Delete { before: before() });
        }
        let (after, is_none) = self.after(ledger, resource)?;
        Ok(match part {
            Action::Update if is_none => Change::NoOp { object: after },
            Action::Update => Change::Update { before: before(), after },
            Action::Read => Change::Read { after },
            _ => Change::Create { after },
        })
    }

    /// What is to be, and whether it is what is there already.
    fn after(&mut self, ledger: &Ledger<'_>, resource: usize) -> Result<(Object, bool), Diagnostics> {
        let planned = &self.plan.resources[resource];
        let after = planned.change.after().cloned().unwrap_or_default();
        let Some(schema) = ledger.schema(planned) else { return Ok((after, false)) };
        let was_open = has_holes(schema, &after);
        if !self.behind_reads[resource] && !was_open {
            return Ok((after, false));
        }
        let wanted = self.wanted(ledger, planned, schema)?;
        let before = match &planned.change {
            Change::Update { before, .. } | Change::Replace { before, .. } => Some(before),
            _ => None,
        };
        let is_update = matches!(planned.change, Change::Update { .. });
        let mut wanted = match planned.change {
            Change::Replace { .. } => made_ready(&planned.address, wanted, before),
            _ => prepared(self.world.config, schema, &planned.address, wanted, before),
        };
        if let Some(ResourceEntry::Type(_, spec)) = self.entry(planned) {
            wanted = spec.derived(wanted);
        }
        assume_connection(schema, &mut wanted, before);
        if planned.address.mode == Mode::Data {
            let unknown: Vec<&str> = wanted.iter().filter(|(_, v)| !v.is_wholly_known()).map(|(n, _)| n.as_str()).collect();
            if !unknown.is_empty() {
                return Err(still_unknown(&planned.address, &unknown).into());
            }
        }
        let mut is_none = false;
        // The type may tell some values ahead from the arguments; time is the plan's, so that it tells the same as then.
        if let Some(ResourceEntry::Type(_, spec)) = self.entry(planned) {
            let context = PlanContext { now: self.plan.created };
            let change = spec.plan(&context, before.filter(|_| is_update), Some(&wanted)).map_err(|d| at(d, &planned.address))?;
            is_none = is_update && was_open && change.is_no_op() && may_be_none(ledger, schema, &planned.address);
            if let Some(fresh) = change.after() {
                wanted = fresh.clone();
            }
        }
        let merged = merge_objects(schema, &planned.address, &after, &wanted)?;
        let unknown: Vec<&str> = schema
            .attributes
            .iter()
            .filter(|a| !a.is_computed() && merged.get(a.name).is_some_and(|v| !v.is_wholly_known()))
            .map(|a| a.name)
            .collect();
        let is_none = is_none && is_wholly_known(&merged) && is_as_secret(ledger, schema, &planned.address, &merged);
        if unknown.is_empty() { Ok((merged, is_none)) } else { Err(still_unknown(&planned.address, &unknown).into()) }
    }

    fn entry(&self, planned: &PlannedResource) -> Option<ResourceEntry<'a>> {
        let of = (planned.address.mode == Mode::Managed).then(|| self.world.registry.resource(&planned.resource_type)).flatten();
        self.world.registry.at(&planned.address, of)
    }

    fn wanted(&mut self, ledger: &Ledger<'_>, planned: &PlannedResource, schema: &Schema) -> Result<Object, Diagnostics> {
        let Some(composite) = planned.address.composite() else { return evaluate(self.world, ledger, &self.moment, &planned.address) };
        let expanded = self.expand(ledger, &composite)?;
        let child = expanded.1.children.iter().find(|c| c.path == planned.address.child);
        let Some(child) = child else {
            return Err(no_longer_holds(&planned.address, "Its composite does not expand into it any more.").into());
        };
        let lookup = |path: &[karmaform_model::ChildStep], name: &str| ledger.attribute(&composite.with_child(path), name);
        child_arguments(schema, child, &lookup).map_err(|d| at(d, &planned.address))
    }

    fn expand(&mut self, ledger: &Ledger<'_>, address: &Address) -> Result<Arc<(Object, Expansion)>, Diagnostics> {
        if let Some(known) = self.expansions.get(address) {
            return Ok(known.clone());
        }
        let Some(ResourceEntry::Composite(ty)) = self.world.registry.resource(&address.kind) else {
            return Err(no_longer_holds(address, "There is no such composite.").into());
        };
        let arguments = evaluate(self.world, ledger, &self.moment, address)?;
        let stored = self.world.state.resources.get(address).and_then(|s| crate::values::remembered(ty.schema(), s).ok());
        let arguments = prepared(self.world.config, ty.schema(), address, arguments, stored.as_ref());
        let arguments = first_leg(&**ty, &arguments, stored.as_ref()).map_or(arguments, |leg| leg.wanted);
        let expansion = ty.expand(address, &arguments).map_err(|d| at(d, address))?;
        let is_final = is_wholly_known(&arguments);
        let expanded = Arc::new((arguments, expansion));
        if is_final {
            self.expansions.insert(address.clone(), expanded.clone());
        }
        Ok(expanded)
    }

    /// A composite's own record, with its outputs.
    pub(crate) fn record(&mut self, ledger: &Ledger<'_>, resource: usize) -> Result<Object, Diagnostics> {
        let planned = &self.plan.resources[resource];
        let after = planned.change.after().cloned().unwrap_or_default();
        let Some(schema) = ledger.schema(planned) else { return Ok(after) };
        if is_wholly_known(&after) && !self.behind_reads[resource] {
            return Ok(after);
        }
        let expanded = self.expand(ledger, &planned.address)?;
        let lookup = |path: &[karmaform_model::ChildStep], name: &str| ledger.attribute(&planned.address.with_child(path), name);
        let outputs = expanded.1.outputs.iter().map(|(name, arg)| (name.clone(), arg.resolve(&lookup))).collect();
        merge_objects(schema, &planned.address, &after, &record_object(schema, &expanded.0, outputs))
    }

    /// The arguments of a gate.
    pub(crate) fn gate(&self, ledger: &Ledger<'_>, composite: &Address, gate: &GateSpec) -> Result<Object, Diagnostics> {
        let Some(entry) = self.world.registry.gate(&gate.gate) else {
            let detail = format!("There is no gate \"{}\" in this version.", gate.gate);
            return Err(Diagnostic::error("Unknown gate", detail).at(composite).into());
        };
        let lookup = |path: &[karmaform_model::ChildStep], name: &str| ledger.attribute(&composite.with_child(path), name);
        let arguments = resolved(entry.schema, &gate.arguments, &lookup).map_err(|d| at(d, composite))?;
        let unknown: Vec<&str> = arguments.iter().filter(|(_, v)| !v.is_wholly_known()).map(|(n, _)| n.as_str()).collect();
        if unknown.is_empty() { Ok(arguments) } else { Err(still_unknown(composite, &unknown).into()) }
    }

    /// True if all that an instance needs, directly or not, came to its end. `reached` answers for one instance.
    pub(crate) fn is_reached(&self, roots: &[usize], reached: &dyn Fn(&Address) -> bool) -> bool {
        let mut seen = vec![false; self.graph.nodes.len()];
        let mut open = roots.to_vec();
        while let Some(number) = open.pop() {
            if std::mem::replace(&mut seen[number], true) {
                continue;
            }
            let node = &self.graph.nodes[number];
            if !matches!(node.role, Role::Block | Role::Enter) && !reached(&node.address) {
                return false;
            }
            open.extend(&node.wanted);
        }
        true
    }
}

fn evaluate(world: &World<'_>, ledger: &Ledger<'_>, moment: &Moment, address: &Address) -> Result<Object, Diagnostics> {
    // A new evaluator each time: one remembers locals, and what they are made of changes while steps end.
    let (arguments, problems) = Evaluator::new(world.config, ledger).at(moment).arguments(address);
    if problems.has_errors() { Err(at(problems, address)) } else { Ok(arguments) }
}

/// True if an update need not be done where its type says that nothing would change. What a run left unfinished is done whatever it says, and
/// where it went by facts of the moment, a plan does not keep them to ask it again.
fn may_be_none(ledger: &Ledger<'_>, schema: &Schema, address: &Address) -> bool {
    let is_ready = ledger.snapshot.resources.get(address).is_some_and(|stored| stored.status == Status::Ready);
    is_ready && schema.attributes.iter().all(|a| !a.volatile)
}

/// True if the same parts are secret as the state has it: else there is an update to be made, of what is shown.
fn is_as_secret(ledger: &Ledger<'_>, schema: &Schema, address: &Address, merged: &Object) -> bool {
    let paths = |object: &Object| secret_paths(schema, object).into_iter().collect::<BTreeSet<Path>>();
    ledger
        .snapshot
        .resources
        .get(address)
        .is_some_and(|stored| stored.secret_paths.iter().cloned().collect::<BTreeSet<_>>() == paths(merged))
}

/// True if something that the configuration decides is open.
fn has_holes(schema: &Schema, after: &Object) -> bool {
    let attributes = schema.attributes.iter().filter(|a| a.is_configurable()).map(|a| a.name);
    attributes.chain(schema.blocks.iter().map(|b| b.name)).any(|name| after.get(name).is_some_and(|v| !v.is_wholly_known()))
}

fn merge_objects(schema: &Schema, address: &Address, planned: &Object, now: &Object) -> Result<Object, Diagnostics> {
    let mut merged = Object::new();
    let mut problems = Diagnostics::new();
    for (name, value) in planned {
        let Some(fresh) = now.get(name) else {
            merged.insert(name.clone(), value.clone());
            continue;
        };
        // Which thing a connection reaches must not change; how to reach it may.
        if matches!(schema.connection, Connection::Attribute(way) if way == name) {
            match (connection_id(value), connection_id(fresh)) {
                (Some(planned), Some(now)) if planned.is_wholly_known() && !karmaform_model::same(Some(planned), Some(now)) => {
                    problems.push(other_value(address, &Path::attribute(name)));
                }
                _ => drop(merged.insert(name.clone(), fresh.clone())),
            }
            continue;
        }
        // What nothing is compared with may be what the order of the steps decided, and not what the configuration says.
        if schema.attribute(name).is_some_and(|a| a.write_only) && value.is_wholly_known() {
            merged.insert(name.clone(), value.clone());
            continue;
        }
        match merge(value, fresh, &Path::attribute(name)) {
            Ok(value) => drop(merged.insert(name.clone(), value)),
            Err(path) => problems.push(other_value(address, &path)),
        }
    }
    if problems.is_empty() { Ok(merged) } else { Err(problems) }
}

fn at(problems: Diagnostics, address: &Address) -> Diagnostics {
    problems.into_iter().map(|d| d.at(address)).collect()
}

fn no_longer_holds(address: &Address, why: &str) -> Diagnostic {
    Diagnostic::error("The plan no longer holds", format!("{why} The step was not started, since the plan did not show this."))
        .at(address)
        .with_hint("Run plan again, review it, and apply the new one.")
}

fn other_value(address: &Address, path: &Path) -> Diagnostic {
    no_longer_holds(address, &format!("Now that everything is known, \"{path}\" has another value than the plan showed."))
}

fn still_unknown(address: &Address, names: &[&str]) -> Diagnostic {
    let names = names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let detail = format!(
        "When this step was to start, {names} was still not known: what it is made of could not be looked at, or did not say. Nothing was done."
    );
    Diagnostic::error("Value still not known", detail)
        .at(address)
        .with_hint("If a host or a cluster is away (\"required = false\"), plan and apply again when it is back.")
}
