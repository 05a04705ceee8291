//! The state that a plan was made from, as `show -json` gives it with the plan.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_engine::taken_over;
use karmaform_model::{Address, Catalog, ModeOfPlan, OutputState, Plan, PlannedResource, Snapshot};

use super::plan::{all_outputs, is_known};

/// The state that was planned from, with what is taken over, with what its resources need by now, and with what outputs are by what it has, as
/// far as that is known: so Terraform tells it.
pub(super) fn refreshed(prior: &Snapshot, plan: &Plan, registry: &Catalog) -> Snapshot {
    let mut state = prior.clone();
    for address in plan.resources.iter().filter(|r| r.importing.is_some()).map(|r| &r.address) {
        state.resources.extend(taken_over(plan, address, registry).map(|taken| (address.clone(), taken)));
    }
    note_needs(&mut state, plan);
    note_secrets(&mut state, plan);
    if plan.mode == ModeOfPlan::Destroy && !plan.is_of_a_part() {
        state.outputs.clear();
    }
    for (name, change, _) in all_outputs(plan) {
        let known = if plan.mode == ModeOfPlan::Destroy { change.before } else { change.after };
        match known {
            Some(after) if after.is_null() => drop(state.outputs.remove(name)),
            Some(after) if is_known(&after) => {
                let value = after.secret_if(change.sensitive);
                state.outputs.insert(name.clone(), OutputState { value, sensitive: change.sensitive });
            }
            _ => {}
        }
    }
    state
}

/// What the plan knows to be secret is not shown as it was, either.
fn note_secrets(state: &mut Snapshot, plan: &Plan) {
    for resource in plan.resources.iter().filter(|r| r.deposed.is_none()) {
        if let Some(stored) = state.resources.get_mut(&resource.address) {
            stored.secret_paths.extend(resource.secret_paths.iter().cloned());
        }
    }
}

/// As Terraform has it: what has been looked at needs what it needed and what it needs by now, and what stays as it is only the latter. All by
/// blocks, as it is told: where many instances need many, these are not gone over for each of them.
fn note_needs(state: &mut Snapshot, plan: &Plan) {
    let stays = |r: &PlannedResource| r.change.is_no_op() && plan.mode != ModeOfPlan::RefreshOnly;
    let planned = || plan.resources.iter().filter(|r| r.deposed.is_none());
    // What is new has no place in this state yet, and of what was not looked at it says what that needed: what these need by now is told of what
    // needs them.
    let mut untold: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
    for resource in planned().filter(|r| !state.resources.contains_key(&r.address) || !(stays(r) || plan.refreshed)) {
        untold.entry(resource.address.configuration()).or_default().extend(blocks(resource));
    }
    for resource in planned() {
        let Some(stored) = state.resources.get_mut(&resource.address) else { continue };
        if stays(resource) {
            stored.dependencies.clear();
        } else if !plan.refreshed {
            continue;
        }
        let mut found: BTreeSet<Address> = BTreeSet::new();
        let mut open: Vec<Address> = blocks(resource).collect();
        while let Some(address) = open.pop() {
            if !found.contains(&address) {
                open.extend(untold.get(&address).into_iter().flatten().cloned());
                found.insert(address);
            }
        }
        stored.dependencies.extend(found);
    }
}

fn blocks(resource: &PlannedResource) -> impl Iterator<Item = Address> + '_ {
    resource.dependencies.iter().map(Address::configuration)
}

#[cfg(test)]
mod tests {
    use karmaform_model::{Change, Object, ResourceState, Status};
    use serde_json::Map;

    use super::*;
    use crate::ui::plan::tests::{plan, planned};

    #[test]
    fn what_many_instances_need_is_told_by_blocks() {
        let needing = |name: &str, at: u16, needed: &str, change: Change| PlannedResource {
            dependencies: vec![format!("{needed}[{at}]").parse().unwrap()],
            ..planned(&format!("{name}[{at}]"), change)
        };
        let made = || Change::Create { after: Object::new() };
        let mut resources: Vec<_> = (0..9).map(|at| planned(&format!("thing.a[{at}]"), made())).collect();
        resources.extend((0..9).map(|at| needing("thing.b", at, "thing.a", made())));
        resources.extend((0..9).map(|at| needing("thing.c", at, "thing.b", Change::NoOp { object: Object::new() })));
        let mut state = Snapshot::default();
        for resource in resources.iter().filter(|r| r.change.is_no_op()) {
            let stored = ResourceState {
                resource_type: "thing".into(),
                provider: "fake".into(),
                schema_version: 0,
                attributes: Map::new().into(),
                secret_paths: vec![],
                dependencies: vec!["thing.gone".parse().unwrap()],
                create_before_destroy: false,
                protected: false,
                status: Status::Ready,
            };
            state.resources.insert(resource.address.clone(), stored);
        }
        note_needs(&mut state, &plan(resources));
        let needs: Vec<Address> = ["thing.a", "thing.b"].iter().map(|a| a.parse().unwrap()).collect();
        assert_eq!(state.resources.len(), 9);
        assert!(state.resources.values().all(|stored| stored.dependencies == needs), "{state:?}");
    }
}
