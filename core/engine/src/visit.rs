//! How a pass treats managed resources: what users wrote, what composites made of it, and what is only in the state any more.

use karmaform_lang::Evaluator;
use karmaform_model::{
    Action, Attribute, Change, Child, Composite, Connection, Diagnostics, Kind, Leg, ModeOfPlan, Object, Path, PathStep, ResourceEntry,
    Schema, Status, Value, same,
};

use crate::before::{Before, before};
use crate::decide::{Decision, Force, decide, renewed, tidy};
use crate::holes;
use crate::imports;
use crate::observed::Answer;
use crate::question::{Circumstances, Question, fresh, question, remember_way};
use crate::record::{record_decision, record_object};
use crate::replace;
use crate::values::{carry_marks, is_all, mark_paths, secret_paths, unknown_object};
use crate::walk::{Flags, Pass, Visit};
use crate::wanted::{
    assume_connection, assume_unseen, child_arguments, connection_id, first_leg, ignored, kept_on_the_way, made_ready, prepared,
};

impl Pass<'_> {
    /// Evaluates a composite's arguments and expands it, before its children are visited.
    pub(crate) fn enter(&mut self, composite: usize, evaluator: &Evaluator<'_>) {
        let graph = self.graph;
        let address = &graph.nodes[composite].address;
        let Some(ResourceEntry::Composite(ty)) = self.entries[composite] else { return };
        let Some(arguments) = self.arguments(address, evaluator) else { return };
        let Some(before) = self.memory(composite, ty.schema()) else { return };
        let written = self.options.replace.iter().any(|r| r.whole() == *address).then(|| arguments.clone());
        let arguments = prepared(self.inputs.config, ty.schema(), address, arguments, before.compared.as_ref());
        if let Some(written) = written.map(|w| made_ready(address, w, before.compared.as_ref())) {
            self.report(composite, replace::made_as_it_was(&written, &arguments));
        }
        let leg = match self.options.mode {
            ModeOfPlan::Normal => self.first_leg(composite, &**ty, &arguments, before.compared.as_ref()),
            _ => None,
        };
        let (arguments, rest, hint) = match leg {
            Some(Leg { wanted, rest, hint }) => (wanted, Some(rest), hint),
            None => (arguments, None, None),
        };
        match ty.expand(address, &arguments) {
            Ok(expansion) => {
                let same = expansion.children.iter().all(|c| graph.node(&address.with_child(&c.path)).is_some_and(|n| n.configured))
                    && expansion.children.len() == graph.nodes[composite].children.iter().filter(|c| graph.nodes[**c].configured).count();
                if !same {
                    let detail = "It expands into other children now that more of its arguments is known. This is a bug of the composite.";
                    self.refuse(composite, "Composite changed its mind", detail.to_owned(), "Please report it with the configuration.");
                }
                self.visits[composite].expansion = Some(expansion);
            }
            // What is to go can go without being expanded.
            Err(_) if self.options.mode == ModeOfPlan::Destroy => {}
            Err(errors) => self.report(composite, errors),
        }
        self.visits[composite].wanted = Some(arguments);
        self.visits[composite].before = before;
        self.visits[composite].rest = rest;
        self.visits[composite].hint = hint;
    }

    /// What this plan brings about of a composite's arguments, and what it leaves for a later one. What is wrong with the end of the way is told at its beginning.
    fn first_leg(&mut self, composite: usize, ty: &dyn Composite, arguments: &Object, before: Option<&Object>) -> Option<Leg> {
        let leg = first_leg(ty, arguments, before)?;
        let address = &self.graph.nodes[composite].address;
        let wrong = ty.expand(address, arguments).err().unwrap_or_default();
        self.report(composite, wrong);
        self.report(composite, kept_on_the_way(self.inputs.config, address, arguments, &leg.wanted).into_iter().collect());
        Some(leg)
    }

    /// What to do where this part of a composite fails, which is on its way to what nobody has written.
    pub(crate) fn hint(&self, number: usize) -> Option<&str> {
        let node = &self.graph.nodes[number];
        let hint = self.visits[node.composite?].hint.as_ref()?;
        (hint.kind == node.kind).then_some(hint.text.as_str())
    }

    /// A child, as its composite wants it.
    fn child(&self, number: usize) -> Option<&Child> {
        let node = &self.graph.nodes[number];
        let expansion = self.visits[node.composite?].expansion.as_ref()?;
        expansion.children.iter().find(|c| c.path == node.address.child)
    }

    /// The arguments of a child; nothing if its composite could not be expanded.
    pub(crate) fn child_arguments(&mut self, number: usize) -> Option<Object> {
        let graph = self.graph;
        let composite = &graph.nodes[graph.nodes[number].composite?].address;
        let schema = self.entries[number]?.schema();
        let child = self.child(number)?;
        let lookup = |path: &[karmaform_model::ChildStep], name: &str| self.values.attribute(&composite.with_child(path), name);
        match child_arguments(schema, child, &lookup) {
            Ok(arguments) => Some(arguments),
            Err(errors) => {
                self.report(number, errors);
                None
            }
        }
    }

    /// An instance that is wanted. `wanted` is nothing if its arguments could not be evaluated.
    pub(crate) fn visit_resource(&mut self, number: usize, inherited: Flags, wanted: Option<Object>) {
        let graph = self.graph;
        let address = &graph.nodes[number].address;
        let Some(ResourceEntry::Type(driver, spec)) = self.entries[number] else { return };
        let schema = spec.schema();
        let Some(mut before) = self.memory(number, schema) else { return };
        let alone = self.import(number).filter(|_| schema.state_only).and_then(|import| spec.imported(&import.id));
        if let Some(object) = &alone {
            let object = crate::values::with_nulls(schema, object);
            (before.full, before.compared) = (Some(object.clone()), Some(object));
        }
        if wanted.is_none() && self.options.mode != ModeOfPlan::Destroy {
            self.values.set(number, unknown_object(schema).into());
            self.visits[number] = Visit { before, flags: Flags { pending: true, failed: true, ..inherited }, ..Visit::default() };
            return;
        }
        let ignores = ignored(self.inputs.config, address).is_some() && before.compared.is_some();
        let mut anew = wanted.as_ref().filter(|_| ignores).map(|w| spec.derived(made_ready(address, w.clone(), before.compared.as_ref())));
        let mut wanted = wanted.map(|w| spec.derived(prepared(self.inputs.config, schema, address, w, before.compared.as_ref())));
        if let Some(wanted) = &wanted {
            for object in [&mut before.full, &mut before.compared, &mut before.memory].into_iter().flatten() {
                carry_marks(wanted, object);
            }
            if let Connection::Attribute(name) = schema.connection
                && let Some(way) = wanted.get(name)
            {
                remember_way(&mut self.ways, driver.name(), way);
            }
        }
        let import = self.import(number);
        let circumstances = Circumstances { settled: inherited.settled, failed: inherited.failed, importing: import.is_some() };
        let is_open = self.open_import(number).is_some();
        // Something else is asked of what is taken over than of what is to be made.
        let settled = !is_open && self.ask(number, schema, &before, wanted.as_ref(), circumstances);
        self.refresh_way(driver.name(), schema, &mut before, wanted.as_ref());
        if let Some(wanted) = &mut wanted {
            assume_connection(schema, wanted, before.compared.as_ref());
            anew.iter_mut().for_each(|anew| assume_connection(schema, anew, before.compared.as_ref()));
            // The child is looked for among its siblings, so only where it is needed.
            if let Answer::Failed(_) = self.observed.answer(address)
                && let (Some(child), Some(before)) = (self.child(number), &before.compared)
            {
                let mut known = std::mem::take(wanted);
                assume_unseen(child, &mut known, before);
                *wanted = spec.derived(known);
            }
        }
        let refused = import
            .filter(|_| alone.is_none())
            .zip(wanted.as_ref())
            .and_then(|(import, wanted)| imports::refused(spec, import, wanted, self.observed.answer(address)));
        let decision = match (self.options.mode, &wanted) {
            (ModeOfPlan::Normal, _) if refused.is_some() => {
                self.report(number, refused.into_iter().collect());
                None
            }
            // That is told when all was visited. Who only looks sees that it is still to be applied.
            (ModeOfPlan::Normal, _) if is_open && !self.options.lenient => None,
            (ModeOfPlan::Normal, Some(wanted)) => {
                let force = Force { requested: self.is_requested(number), triggered: self.trigger(number) };
                match decide(spec, &self.context, &before, (wanted, anew.as_ref().unwrap_or(wanted)), &force) {
                    Ok(decision) => Some(match self.renewals.get(&number) {
                        Some(attributes) => renewed(schema, decision, attributes),
                        None => decision,
                    }),
                    Err(errors) => {
                        self.report(number, errors);
                        None
                    }
                }
            }
            (ModeOfPlan::RefreshOnly, _) => unchanged(schema, &before),
            _ => self.deletion(number, spec, &before, None),
        };
        let decision = decision.map(|d| self.with_marks(number, schema, d));
        let pending = self.options.mode == ModeOfPlan::Normal && decision.as_ref().is_none_or(|d| !d.change.is_no_op());
        let made = decision.as_ref().is_some_and(|d| {
            matches!(d.change.action(), Action::Create | Action::DestroyThenCreate | Action::CreateThenDestroy)
                || before.status == Some(Status::Unfinished)
        });
        self.set_value(number, schema, &before, decision.as_ref());
        let flags = Flags { pending, settled: inherited.settled && settled, failed: inherited.failed, unready: inherited.unready || made };
        self.visits[number] = Visit { wanted, before, decision, flags, ..Visit::default() };
    }

    /// What dependents see: what will be, with facts of the moment as far as they were seen and nothing changes.
    fn set_value(&self, number: usize, schema: &Schema, before: &Before, decision: Option<&Decision>) {
        let is_normal = self.options.mode == ModeOfPlan::Normal;
        let object = match decision.map(|d| &d.change) {
            Some(change) if is_normal => change.after().cloned(),
            _ => before.full.clone().filter(|_| !is_normal),
        };
        // Most things stay as they are, and are seen as they are.
        let is_before = |full: &&Object| decision.is_some_and(|d| d.change.is_no_op()) && is_all(schema, full, object.as_ref());
        if let Some(full) = before.full.as_ref().filter(is_before) {
            return self.values.set(number, full.clone().into());
        }
        let mut object = crate::values::with_unknown(schema, &object.unwrap_or_default());
        if decision.is_some_and(|d| d.change.is_no_op()) {
            for attribute in schema.attributes.iter().filter(|a| a.volatile) {
                if let Some(seen) = before.full.as_ref().and_then(|f| f.get(attribute.name)) {
                    object.insert(attribute.name.to_owned(), seen.clone());
                }
            }
        }
        if self.values.has_holes && (schema.state_only || schema.is_told_once) && before.status.is_none() {
            holes::put(number, schema, &mut object);
        }
        self.values.set(number, object.into());
    }

    /// A composite's own record: its arguments, and outputs made of its children.
    pub(crate) fn visit_composite(&mut self, number: usize, inherited: Flags) {
        let graph = self.graph;
        let node = &graph.nodes[number];
        for &child in &node.children {
            if !graph.nodes[child].configured && self.selected[child] {
                self.visit_orphan(child);
            }
        }
        let Some(ResourceEntry::Composite(ty)) = self.entries[number] else { return };
        let schema = ty.schema();
        let Visit { wanted, before, expansion, rest, hint, .. } = std::mem::take(&mut self.visits[number]);
        let mut flags = Flags { pending: false, ..inherited };
        let mut record = None;
        if let (Some(arguments), Some(expansion)) = (&wanted, &expansion) {
            let lookup = |path: &[karmaform_model::ChildStep], name: &str| self.values.attribute(&node.address.with_child(path), name);
            let outputs = expansion.outputs.iter().map(|(name, arg)| (name.clone(), arg.resolve(&lookup))).collect();
            record = Some(record_object(schema, arguments, outputs));
        }
        let changes = |d: &Option<Decision>| d.as_ref().is_some_and(|d| !d.change.is_no_op());
        let is_still = !node.children.iter().any(|c| changes(&self.visits[*c].decision));
        let decision = match self.options.mode {
            ModeOfPlan::Normal => record.as_ref().map(|record| record_decision(schema, &before, record, is_still)),
            ModeOfPlan::RefreshOnly => unchanged(schema, &before),
            ModeOfPlan::Destroy => before.full.clone().map(|before| Decision { change: Change::Delete { before }, reason: None }),
        };
        if self.options.mode == ModeOfPlan::Normal {
            flags.pending = decision.is_none() || changes(&decision) || !is_still;
        }
        flags.failed |= decision.is_none() && self.options.mode == ModeOfPlan::Normal;
        self.set_value(number, schema, &before, decision.as_ref());
        self.visits[number] = Visit { wanted, before, decision, expansion, rest, hint, flags, judged: None };
    }

    /// Notes the question about an instance; false if an answer may still come.
    pub(crate) fn ask(
        &mut self,
        number: usize,
        schema: &Schema,
        before: &Before,
        wanted: Option<&Object>,
        circumstances: Circumstances,
    ) -> bool {
        let node = &self.graph.nodes[number];
        let Some(ResourceEntry::Type(driver, _)) = self.entries[number] else { return true };
        let about = (driver.name(), node.kind.as_str(), schema);
        match question(number, about, before, wanted, circumstances, (&self.ways, self.options)) {
            Question::Nothing => true,
            Question::Later => false,
            Question::Ask(look) => {
                let answered = self.observed.resources.get(&node.address).is_some_and(|s| s.key == look.key);
                if !answered {
                    self.looks.push(*look);
                }
                answered
            }
        }
    }

    /// The state's way to a thing may have old credentials; a change must go the fresh way.
    pub(crate) fn refresh_way(&self, provider: &str, schema: &Schema, before: &mut Before, wanted: Option<&Object>) {
        let Connection::Attribute(name) = schema.connection else { return };
        for object in [&mut before.full, &mut before.compared].into_iter().flatten() {
            let Some(stored) = object.get(name).filter(|v| !v.is_null()) else { continue };
            let own = wanted.and_then(|w| w.get(name)).filter(|w| w.is_wholly_known() && connection_id(w) == connection_id(stored));
            let way = own.cloned().unwrap_or_else(|| fresh(&self.ways, provider, stored));
            object.put(name, way);
        }
    }

    /// As Terraform has it of what may be of any type: what is secret there is a part of it, so another secrecy of the same value is an update. Of all
    /// else nothing outside would change.
    fn with_marks(&self, number: usize, schema: &Schema, decision: Decision) -> Decision {
        let address = &self.graph.nodes[number].address;
        let stored = self.inputs.state.resources.get(address).filter(|s| s.status == Status::Ready);
        let is_typed = schema.state_only && schema.attributes.iter().any(|a| a.typed) && !address.is_child();
        match (&decision.change, stored) {
            (Change::NoOp { object }, Some(stored)) if is_typed && self.options.mode == ModeOfPlan::Normal => {
                let is_written = |path: &&Path| path.root().and_then(|name| schema.attribute(name)).is_some_and(Attribute::is_configurable);
                let all = secret_paths(schema, object);
                // What is in something secret is secret anyway, and not named by us.
                let is_outer = |path: &&Path| !stored.secret_paths.iter().any(|o| o.0.len() < path.0.len() && path.0.starts_with(&o.0));
                let old: Vec<&Path> = stored.secret_paths.iter().filter(is_written).filter(is_outer).collect();
                let new: Vec<&Path> = all.iter().filter(is_written).collect();
                let has_all = |these: &[&Path], those: &[&Path]| those.iter().all(|one| these.contains(one));
                if has_all(&old, &new) && has_all(&new, &old) {
                    return decision;
                }
                let mut before = object.clone();
                mark_paths(&mut before, &stored.secret_paths);
                Decision { change: Change::Update { before, after: object.clone() }, reason: decision.reason }
            }
            _ => decision,
        }
    }

    fn is_requested(&self, number: usize) -> bool {
        let address = &self.graph.nodes[number].address;
        // An address without the key of an instance names none, as in Terraform: one that was forgotten must not replace them all.
        self.options.replace.iter().any(|r| address.key == r.key && address.module == r.module && address.is_within(r))
    }

    /// The first of the `replace_triggered_by` references that changes.
    fn trigger(&self, number: usize) -> Option<karmaform_model::Address> {
        let own = &self.graph.nodes[number].address;
        let block = self.inputs.config.block(own)?;
        let fires = |reference: &&karmaform_lang::Reference| {
            let is_of_own_key = block.lifecycle.is_of_own_key(reference);
            let meant = self.graph.within(&reference.address).filter(|(a, _)| !is_of_own_key || a.key == own.key);
            let path = block.lifecycle.trigger_path(reference, own.key.as_ref());
            meant.into_iter().any(|(address, n)| match (self.visits[n].decision.as_ref().map(|d| &d.change), &path) {
                (Some(Change::Update { before, after } | Change::Replace { before, after, .. }), Some(path)) if !address.is_child() => {
                    !same(part(before, path), part(after, path))
                }
                (Some(Change::Update { .. } | Change::Replace { .. }), _) => true,
                _ => false,
            })
        };
        block.lifecycle.replace_triggered_by.iter().find(fires).map(|r| r.address.clone())
    }

    /// What the state and the answers say of an instance. Nothing if that can't be read; then it was reported.
    pub(crate) fn memory(&mut self, number: usize, schema: &Schema) -> Option<Before> {
        let node = &self.graph.nodes[number];
        let state = self.inputs.state.resources.get(&node.address);
        if let Some(state) = state.filter(|s| s.resource_type != node.kind) {
            let detail = format!("The state holds a \"{}\" under this address, but a \"{}\" is wanted.", state.resource_type, node.kind);
            self.refuse(number, "Another type under this address", detail, "Destroy the old one first, with the version that made it.");
            return None;
        }
        if let Some(state) = state.filter(|s| s.schema_version > schema.version) {
            let detail =
                format!("It was written with version {} of its schema, and this version knows {}.", state.schema_version, schema.version);
            self.refuse(number, "State of a newer version", detail, "Use a newer karmaform.");
            return None;
        }
        match before(schema, state, self.observed.resources.get(&node.address)) {
            Ok(before) => Some(before),
            Err(error) => {
                let detail = format!("What the state holds does not fit the resource type: {error}.");
                self.refuse(number, "State does not fit", detail, "The state was written by another version, or by hand.");
                None
            }
        }
    }

    pub(crate) fn report(&mut self, number: usize, errors: Diagnostics) {
        let address = &self.graph.nodes[number].address;
        let span = self.inputs.config.block(address).map(|b| b.span);
        let hint = self.hint(number).map(str::to_owned);
        self.diagnostics.extend(errors.into_iter().map(|mut error| {
            error.hints.extend(hint.clone());
            error.at(address).with_span(span)
        }));
    }
}

/// What is at a path, if anything is. What is in something unknown is as unknown as that.
fn part<'a>(object: &'a Object, path: &Path) -> Option<&'a Value> {
    let mut found = object.get(path.root()?)?;
    for step in path.0.iter().skip(1) {
        found = match (&found.kind, step) {
            (Kind::Unknown(_), _) => return Some(found),
            (Kind::Map(_, entries) | Kind::Object(entries), PathStep::Name(name)) => entries.get(name)?,
            (Kind::Map(_, entries) | Kind::Object(entries), PathStep::Index(index)) => entries.get(&index.to_string())?,
            (Kind::List(_, items) | Kind::Tuple(items), PathStep::Index(index)) => items.get(*index)?,
            _ => return None,
        };
    }
    Some(found)
}

pub(crate) fn unchanged(schema: &Schema, before: &Before) -> Option<Decision> {
    before.status?;
    before.full.clone().map(|object| Decision { change: tidy(schema, Change::NoOp { object }), reason: None })
}
