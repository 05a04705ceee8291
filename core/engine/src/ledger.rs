//! What an apply knows: the state as it becomes, the results so far, and what the journal has still to be told. Everything that is done per
//! step costs the same however large the state is. Touches nothing outside.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::Resolver;
use karmaform_model::{
    Action, Address, Catalog, JournalRecord, Mode, ModeOfPlan, Object, Plan, PlannedResource, ResourceState, Schema, Snapshot, Status,
    Type, Value,
};

use crate::connect::OWN_PROVIDER;
use crate::imports::as_it_is;
use crate::recover::mark_started;
use crate::values::{is_wholly_known, remembered, secret_paths, unknown_object, with_nulls, with_unknown};

/// The books of one apply.
pub(crate) struct Ledger<'a> {
    plan: &'a Plan,
    registry: &'a Catalog,
    by_address: BTreeMap<&'a Address, usize>,
    /// What is put off, and may be another thing by then.
    deferred: BTreeSet<&'a Address>,
    /// The state now.
    pub(crate) snapshot: Snapshot,
    /// The snapshot differs from what the backend holds.
    pub(crate) dirty: bool,
    /// What the journal does not know yet.
    pub(crate) records: Vec<JournalRecord>,
    results: BTreeMap<Address, Object>,
    /// Keys of objects that this apply set aside, by planned resource.
    deposed: BTreeMap<usize, String>,
    /// What went to be made anew, with what it needed.
    went: BTreeMap<Address, Vec<Address>>,
}

impl Resolver for Ledger<'_> {
    fn instance(&self, address: &Address) -> Value {
        if let Some(result) = self.results.get(address) {
            return result.clone().into();
        }
        let planned = self.by_address.get(address).map(|i| &self.plan.resources[*i]);
        let schema = match planned {
            Some(planned) => self.schema(planned),
            None if address.mode == Mode::Data => self.registry.data_source(&address.kind).map(|d| d.schema),
            None => self.snapshot.resources.get(address).and_then(|r| self.registry.resource(&r.resource_type)).map(|e| e.schema()),
        };
        let Some(schema) = schema else { return Value::unknown(Type::Any) };
        match planned {
            Some(planned) => {
                let object = planned.change.after().or_else(|| planned.change.before());
                with_unknown(schema, object.unwrap_or(&Object::new())).into()
            }
            None => {
                let told = self.snapshot.resources.get(address).filter(|_| !self.deferred.contains(address));
                let stored = told.and_then(|r| remembered(schema, r).ok());
                stored.map_or_else(|| unknown_object(schema).into(), |object| with_nulls(schema, &object).into())
            }
        }
    }
}

/// What outputs are made of: as when they were planned, what is in no plan and in no state is outside of a part.
pub(crate) struct OnlyThere<'a>(pub(crate) &'a Ledger<'a>);

impl Resolver for OnlyThere<'_> {
    fn instance(&self, address: &Address) -> Value {
        self.0.instance(address)
    }

    fn is_there(&self, address: &Address) -> bool {
        address.mode == Mode::Data
            || self.0.plan.mode == ModeOfPlan::Destroy
            || self.0.by_address.contains_key(address)
            || self.0.snapshot.resources.contains_key(address)
            || self.0.deferred.contains(address)
    }
}

/// What is not known yet (a connection with a certificate that this apply renews) is in the state as it was: there it would be nothing at all.
fn known_or_stored(schema: &Schema, object: &Object, stored: &ResourceState) -> Object {
    let mut known = object.clone();
    if is_wholly_known(object) {
        return known;
    }
    let Ok(stored) = remembered(schema, stored) else { return known };
    for (name, value) in known.iter_mut().filter(|(_, value)| !value.is_wholly_known()) {
        if let Some(was) = stored.get(name) {
            *value = was.clone();
        }
    }
    known
}

impl<'a> Ledger<'a> {
    /// Opens the books on a state. What the plan saw and did not change is taken over at once: it may know fresher ways to things.
    pub(crate) fn new(plan: &'a Plan, registry: &'a Catalog, state: &Snapshot) -> Self {
        let instances = plan.resources.iter().enumerate().filter(|(_, r)| r.deposed.is_none());
        let mut ledger = Self {
            plan,
            registry,
            by_address: instances.map(|(i, r)| (&r.address, i)).collect(),
            deferred: plan.deferred.iter().filter(|d| d.is_whole()).map(|d| &d.address).collect(),
            snapshot: Snapshot { tool_version: plan.tool_version.clone(), ..state.clone() },
            dirty: false,
            records: Vec::new(),
            results: BTreeMap::new(),
            deposed: BTreeMap::new(),
            went: BTreeMap::new(),
        };
        ledger.take_over();
        ledger
    }

    fn take_over(&mut self) {
        for planned in self.plan.resources.iter().filter(|r| r.change.is_no_op() && r.address.mode == Mode::Managed) {
            let (Some(schema), Some(object), Some(stored)) =
                (self.schema(planned), planned.change.after(), self.snapshot.resources.get(&planned.address))
            else {
                continue;
            };
            let object = known_or_stored(schema, object, stored);
            let mut fresh = resource_state(planned, schema, &object);
            if self.plan.mode == ModeOfPlan::RefreshOnly {
                let ResourceState { attributes, create_before_destroy, dependencies, .. } = fresh;
                fresh = ResourceState { attributes, create_before_destroy, dependencies, ..stored.clone() };
            }
            if fresh != *stored {
                self.snapshot.resources.insert(planned.address.clone(), fresh);
                self.dirty = true;
            }
        }
        if self.plan.mode == ModeOfPlan::RefreshOnly {
            for gone in self.plan.drift.iter().filter(|d| d.after.is_none()) {
                self.dirty |= self.snapshot.resources.remove(&gone.address).is_some();
            }
        }
    }

    /// The schema of a planned resource.
    pub(crate) fn schema(&self, planned: &PlannedResource) -> Option<&'a Schema> {
        match planned.address.mode {
            Mode::Data => self.registry.data_source(&planned.resource_type).map(|d| d.schema),
            Mode::Managed => self.registry.resource(&planned.resource_type).map(|e| e.schema()),
        }
    }

    /// One attribute of an instance as it is known now.
    pub(crate) fn attribute(&self, address: &Address, name: &str) -> Value {
        let value = self.instance(address);
        value.get(name).cloned().unwrap_or_else(|| Value::unknown(Type::Any)).marked(value.marks())
    }

    /// A step that touches the world is about to start. Gives the state before it, to be put back if nothing was touched after all.
    pub(crate) fn start(&mut self, resource: usize, part: Action, planned: Option<&Object>) -> Option<ResourceState> {
        let target = &self.plan.resources[resource];
        let prior = self.snapshot.resources.get(&target.address).cloned();
        let Some(schema) = self.schema(target) else { return prior };
        if target.deposed.is_some() || (part == Action::Delete && self.deposed.contains_key(&resource)) {
            return prior;
        }
        if part == Action::Create && target.change.action() == Action::CreateThenDestroy {
            self.set_aside(resource);
        }
        if !schema.state_only {
            let planned = planned.map(|object| ResourceState { status: Status::Unfinished, ..resource_state(target, schema, object) });
            mark_started(&mut self.snapshot, &target.address, planned.as_ref());
            self.records.push(JournalRecord::Started { address: target.address.clone(), planned });
            self.dirty = true;
        }
        prior
    }

    /// The key of the object that a resource's delete is about, if that was set aside, by this apply or an earlier one.
    pub(crate) fn key_of_deposed(&self, resource: usize) -> Option<&String> {
        self.plan.resources[resource].deposed.as_ref().or_else(|| self.deposed.get(&resource))
    }

    fn set_aside(&mut self, resource: usize) {
        let planned = &self.plan.resources[resource];
        let address = &planned.address;
        // What is imported and replaced at once is in no state yet.
        let old = self.snapshot.resources.remove(address).or_else(|| as_it_is(planned, self.registry));
        let Some(old) = old else { return };
        let mut seed = self.plan.serial;
        let key = loop {
            let key = deposed_key(address, seed);
            if !self.snapshot.deposed.contains_key(&(address.clone(), key.clone())) {
                break key;
            }
            seed = seed.wrapping_add(1);
        };
        self.records.push(JournalRecord::Deposed { address: address.clone(), key: key.clone(), state: Some(old.clone()) });
        self.records.push(JournalRecord::Ended { address: address.clone(), state: None });
        self.snapshot.deposed.insert((address.clone(), key.clone()), old);
        self.deposed.insert(resource, key);
        self.dirty = true;
    }

    /// A create or update ended; this is there now.
    pub(crate) fn made(&mut self, resource: usize, object: Object) {
        let target = &self.plan.resources[resource];
        let Some(schema) = self.schema(target) else { return };
        let state = resource_state(target, schema, &object);
        self.records.push(JournalRecord::Ended { address: target.address.clone(), state: Some(state.clone()) });
        self.snapshot.resources.insert(target.address.clone(), state);
        self.results.insert(target.address.clone(), object);
        self.dirty = true;
    }

    /// A delete ended, or an instance is to be forgotten.
    pub(crate) fn gone(&mut self, resource: usize) {
        let target = &self.plan.resources[resource];
        let address = target.address.clone();
        self.dirty = true;
        match self.key_of_deposed(resource).cloned() {
            Some(key) => {
                self.snapshot.deposed.remove(&(address.clone(), key.clone()));
                self.records.push(JournalRecord::Deposed { address, key, state: None });
            }
            None => {
                let old = self.snapshot.resources.remove(&address);
                // Of what goes for good the plan knows: what it says of needs is all there is to say.
                if let Some(old) = old.filter(|_| target.change.action() == Action::DestroyThenCreate) {
                    self.went.insert(address.clone(), old.dependencies);
                }
                self.records.push(JournalRecord::Ended { address, state: None });
            }
        }
    }

    /// At the end: what stays keeps what it needed by way of what could not be made anew.
    pub(crate) fn inherit(&mut self) {
        let changed = self.snapshot.inherit(&std::mem::take(&mut self.went));
        self.dirty |= changed;
    }

    /// A step failed. If it touched nothing, everything is as it was before; else the state says that it is not to be trusted.
    pub(crate) fn failed(&mut self, resource: usize, part: Action, touched: bool, prior: Option<ResourceState>) {
        let target = &self.plan.resources[resource];
        let Some(schema) = self.schema(target) else { return };
        if target.deposed.is_some() || (part == Action::Delete && self.deposed.contains_key(&resource)) {
            return;
        }
        let address = target.address.clone();
        if touched && !schema.state_only {
            let state = self.snapshot.resources.get(&address).cloned();
            self.records.push(JournalRecord::Ended { address, state });
            return;
        }
        if let Some(key) = self.deposed.remove(&resource) {
            self.snapshot.deposed.remove(&(address.clone(), key.clone()));
            self.records.push(JournalRecord::Deposed { address: address.clone(), key, state: None });
        }
        match prior.clone() {
            Some(prior) => drop(self.snapshot.resources.insert(address.clone(), prior)),
            None => drop(self.snapshot.resources.remove(&address)),
        }
        self.records.push(JournalRecord::Ended { address, state: prior });
    }

    /// A data source was read.
    pub(crate) fn read(&mut self, resource: usize, object: Object) {
        self.results.insert(self.plan.resources[resource].address.clone(), object);
    }
}

/// An instance as the state keeps it.
pub(crate) fn resource_state(planned: &PlannedResource, schema: &Schema, object: &Object) -> ResourceState {
    ResourceState {
        resource_type: planned.resource_type.clone(),
        provider: planned.provider.clone().unwrap_or_else(|| OWN_PROVIDER.to_owned()),
        schema_version: schema.version,
        attributes: schema.encode(object).into(),
        secret_paths: secret_paths(schema, object),
        dependencies: planned.dependencies.clone(),
        create_before_destroy: planned.create_before_destroy,
        protected: planned.protected,
        status: Status::Ready,
    }
}

/// Eight hexadecimal digits that name an object set aside. From address and serial alone, so that the same apply gives the same key.
fn deposed_key(address: &Address, seed: u64) -> String {
    // FNV-1a; it only has to differ between the few leftovers of one address.
    let text = format!("{address}#{seed}");
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}
