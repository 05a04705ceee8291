//! What asserts see: instances as a plan or an apply has them.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Config, Evaluator, Resolver};
use karmaform_model::{Address, Catalog, Mode, Object, Plan, Snapshot, Type, Value};

use crate::ui::json::state::attributes;

/// Instances after a plan, or after it was applied.
pub(crate) struct Instances<'a> {
    planned: BTreeMap<&'a Address, &'a Object>,
    state: &'a Snapshot,
    registry: &'a Catalog,
    /// What the plan put off, and may be another thing by then.
    deferred: BTreeSet<&'a Address>,
    /// The state is what came of the plan.
    is_applied: bool,
}

impl<'a> Instances<'a> {
    /// After a plan for this state, or after it was applied and became this state.
    pub(crate) fn new(plan: &'a Plan, state: &'a Snapshot, registry: &'a Catalog, is_applied: bool) -> Self {
        let whole = plan.resources.iter().filter(|r| r.deposed.is_none());
        let planned = whole.filter_map(|r| Some((&r.address, r.change.after()?))).collect();
        Self { planned, deferred: plan.deferred.iter().filter(|d| d.is_whole()).map(|d| &d.address).collect(), state, registry, is_applied }
    }
}

/// Root outputs after a plan, or after it was applied. As in Terraform: what a plan of a part leaves out is as it was before, and null if it was not there.
pub(super) fn outputs(config: &Config, instances: &Instances<'_>, plan: &Plan) -> Object {
    let mut outputs = Evaluator::new(config, instances).outputs();
    if plan.is_of_a_part() {
        for (name, value) in &mut outputs {
            let stored = instances.state.outputs.get(name).map(|o| &o.value);
            let changed = plan.outputs.get(name).and_then(|change| change.after.as_ref());
            let planned = changed.or_else(|| plan.kept_outputs.get(name).map(|o| &o.value)).filter(|_| !instances.is_applied);
            *value = planned.or(stored).cloned().unwrap_or_else(|| Value::null(Type::Any));
        }
    }
    outputs
}

impl Resolver for Instances<'_> {
    fn instance(&self, address: &Address) -> Value {
        let told = self.state.resources.get(address).filter(|_| !self.deferred.contains(address));
        let stored = || told.map(|r| Value::from(attributes(address, r, self.registry)));
        let planned = || self.planned.get(address).map(|o| Value::from((*o).clone()));
        // What was read for the plan need not be in the state.
        let is_read = address.mode == Mode::Data && planned().is_some_and(|p| p.is_wholly_known());
        let found = if self.is_applied && !is_read { stored().or_else(planned) } else { planned().or_else(stored) };
        found.unwrap_or_else(|| Value::unknown(Type::Any))
    }
}
