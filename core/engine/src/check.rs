//! Lints a plan as data. A sound planner never fails it; every test runs it. Knows no configuration and no provider.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Address, Change, Mode, ModeOfPlan, Plan, ReplaceOrder, StepKind};

/// Above this many steps the paths between them are not followed; each pair would cost too much.
const FOLLOWED: usize = 4096;

/// What is wrong with a plan, in words; nothing for a sound one.
pub fn check(plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    check_resources(plan, &mut wrong);
    check_references(plan, &mut wrong);
    if wrong.is_empty() {
        check_steps(plan, &mut wrong);
    }
    if wrong.is_empty() && plan.steps.len() <= FOLLOWED {
        check_order(plan, &mut wrong);
    }
    wrong
}

/// What is wrong with the references inside of a plan that was read from a file, in words. Its values are not looked at: secrets were left out.
pub fn check_steps_of(plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    check_references(plan, &mut wrong);
    wrong
}

fn check_resources(plan: &Plan, wrong: &mut Vec<String>) {
    if plan.format != Plan::FORMAT {
        wrong.push(format!("format {} instead of {}", plan.format, Plan::FORMAT));
    }
    for pair in plan.resources.windows(2) {
        if (&pair[0].address, &pair[0].deposed) >= (&pair[1].address, &pair[1].deposed) {
            wrong.push(format!("{} does not come after {}", pair[1].address, pair[0].address));
        }
    }
    for resource in &plan.resources {
        let action = resource.change.action();
        let is_data = resource.address.mode == Mode::Data;
        if is_data != matches!(action, Action::Read) && !resource.change.is_no_op() {
            wrong.push(format!("{} can't be changed by {action:?}", resource.address));
        }
        if resource.change.before().is_some_and(|b| !resource.change.is_no_op() && b.values().any(|v| !v.is_wholly_known())) {
            wrong.push(format!("{} has unknown parts in what is", resource.address));
        }
        if resource.deposed.is_some() && !matches!(action, Action::Delete | Action::Forget) {
            wrong.push(format!("a deposed object of {} is not deleted", resource.address));
        }
        if plan.mode == ModeOfPlan::RefreshOnly && action.acts() {
            wrong.push(format!("{} changes in a plan that only refreshes", resource.address));
        }
    }
    if plan.mode == ModeOfPlan::RefreshOnly && !plan.steps.is_empty() {
        wrong.push("a plan that only refreshes has steps".to_owned());
    }
}

fn check_references(plan: &Plan, wrong: &mut Vec<String>) {
    for (id, step) in plan.steps.iter().enumerate() {
        if step.after.iter().any(|a| *a >= id) {
            wrong.push(format!("step {id} waits for itself or a later step"));
        }
        if step.after.windows(2).any(|pair| pair[0] >= pair[1]) {
            wrong.push(format!("step {id} does not list what it waits for in order"));
        }
        match &step.kind {
            StepKind::Change { resource, part } => match plan.resources.get(*resource) {
                None => wrong.push(format!("step {id} is about a resource that is not there")),
                Some(r) if !parts(&r.change).contains(part) => wrong.push(format!("step {id} does {part:?} to {}", r.address)),
                Some(r) if r.provider.is_none() && !matches!(part, Action::Delete | Action::Forget) => {
                    wrong.push(format!("step {id} does {part:?} to the record of {}", r.address));
                }
                Some(_) => {}
            },
            StepKind::Finish { resource } => match plan.resources.get(*resource) {
                Some(r) if r.provider.is_none() && matches!(r.change.action(), Action::Create | Action::Update) => {}
                _ => wrong.push(format!("step {id} finishes what is no changed composite")),
            },
            StepKind::Gate { gate, .. } if gate.limit == 0 => wrong.push(format!("the gate of step {id} has no time at all")),
            StepKind::Gate { .. } => {}
            StepKind::Join if step.after.len() < 2 => wrong.push(format!("step {id} joins fewer than two")),
            StepKind::Join => {}
        }
    }
}

/// What steps a change has.
fn parts(change: &Change) -> &'static [Action] {
    match change.action() {
        Action::NoOp => &[],
        Action::Read => &[Action::Read],
        Action::Create => &[Action::Create],
        Action::Update => &[Action::Update],
        Action::DestroyThenCreate | Action::CreateThenDestroy => &[Action::Create, Action::Delete],
        Action::Delete => &[Action::Delete],
        Action::Forget => &[Action::Forget],
    }
}

fn check_steps(plan: &Plan, wrong: &mut Vec<String>) {
    let mut found: BTreeMap<usize, Vec<Action>> = BTreeMap::new();
    for step in &plan.steps {
        match &step.kind {
            StepKind::Change { resource, part } => found.entry(*resource).or_default().push(*part),
            StepKind::Finish { resource } => found.entry(*resource).or_default().push(plan.resources[*resource].change.action()),
            _ => {}
        }
    }
    for (number, resource) in plan.resources.iter().enumerate() {
        let mut there = found.remove(&number).unwrap_or_default();
        there.sort();
        if there != parts(&resource.change) && plan.mode != ModeOfPlan::RefreshOnly {
            wrong.push(format!("{} has the steps {there:?} for {:?}", resource.address, resource.change.action()));
        }
    }
}

struct Places {
    /// By resource: the step that makes or changes it, and the one that deletes it.
    up: Vec<Option<usize>>,
    down: Vec<Option<usize>>,
}

fn check_order(plan: &Plan, wrong: &mut Vec<String>) {
    let before = ancestors(plan);
    let comes_before = |first: usize, second: usize| before[second][first / 64] >> (first % 64) & 1 == 1;
    let mut places = Places { up: vec![None; plan.resources.len()], down: vec![None; plan.resources.len()] };
    for (id, step) in plan.steps.iter().enumerate() {
        match &step.kind {
            StepKind::Change { resource, part: Action::Delete | Action::Forget } => places.down[*resource] = Some(id),
            StepKind::Change { resource, .. } | StepKind::Finish { resource } => places.up[*resource] = Some(id),
            _ => {}
        }
    }
    let mut changed: BTreeMap<Address, Vec<usize>> = BTreeMap::new();
    for (number, resource) in plan.resources.iter().enumerate().filter(|(_, r)| r.deposed.is_none()) {
        if places.up[number].is_some() || places.down[number].is_some() {
            changed.entry(resource.address.block()).or_default().push(number);
        }
    }
    // What does not answer holds up nobody but what does not answer either; nor does the record of a composite that has such a part.
    let is_away = |n: usize| plan.away.contains(&plan.resources[n].address);
    let unfinished: BTreeSet<Address> = plan.away.iter().filter_map(Address::composite).collect();
    let holds = |first: usize, second: usize| {
        let first_address = &plan.resources[first].address;
        is_away(second) || !(is_away(first) || (unfinished.contains(first_address) && places.down[first].is_some()))
    };
    for (number, resource) in plan.resources.iter().enumerate() {
        if let (Change::Replace { order, .. }, Some(up), Some(down)) = (&resource.change, places.up[number], places.down[number]) {
            let right = if *order == ReplaceOrder::CreateFirst { comes_before(up, down) } else { comes_before(down, up) };
            if !right {
                wrong.push(format!("{} is replaced in the wrong order", resource.address));
            }
        }
        if places.up[number].is_none() && places.down[number].is_none() {
            continue;
        }
        for needed in resource.dependencies.iter().flat_map(|d| within(plan, &changed, d)) {
            let pairs = [
                (places.up[needed], places.up[number], holds(needed, number)),
                (places.down[number], places.down[needed], holds(number, needed)),
            ];
            for (first, second, holds) in pairs {
                // What is not stored yet but deleted all the same (an object found on the way) has no order with what it will need.
                if let (Some(first), Some(second)) = (first, second)
                    && holds
                    && first != second
                    && !comes_before(first, second)
                    && !crosses(plan, number, needed)
                {
                    wrong.push(format!("{} and {} are in the wrong order", resource.address, plan.resources[needed].address));
                }
            }
        }
        if let (None, false) = (&resource.provider, resource.address.is_child()) {
            check_composite(plan, number, &places, &comes_before, wrong);
        }
    }
}

/// Deletes go by the dependencies of the state, which a changed configuration need not have any more.
fn crosses(plan: &Plan, one: usize, other: usize) -> bool {
    let is_kept = |n: usize| matches!(plan.resources[n].change, Change::Replace { .. });
    is_kept(one) || is_kept(other)
}

fn check_composite(plan: &Plan, record: usize, places: &Places, comes_before: &dyn Fn(usize, usize) -> bool, wrong: &mut Vec<String>) {
    let address = &plan.resources[record].address;
    let last = [places.up[record], places.down[record]];
    for (number, child) in plan.resources.iter().enumerate().filter(|(_, r)| r.address.composite().as_ref() == Some(address)) {
        for step in [places.up[number], places.down[number]].into_iter().flatten() {
            if last.into_iter().flatten().any(|last| !comes_before(step, last)) {
                wrong.push(format!("{address} is finished before {}", child.address));
            }
        }
    }
}

/// The changed instances that an address in a list of dependencies means: one, or all of a block.
fn within(plan: &Plan, changed: &BTreeMap<Address, Vec<usize>>, address: &Address) -> Vec<usize> {
    let exact = address.key.is_some() || address.is_child();
    let is_meant = |r: &Address| if exact { r == address } else { !r.is_child() };
    let block = changed.get(&address.block()).map(Vec::as_slice);
    // In a module without a key all of its instances are meant.
    if block.is_none() && !address.module.is_empty() && !exact {
        let all = changed.iter().filter(|(a, _)| a.is_within(address)).flat_map(|(_, numbers)| numbers.iter().copied());
        return all.filter(|n| is_meant(&plan.resources[*n].address)).collect();
    }
    block.unwrap_or_default().iter().copied().filter(|n| is_meant(&plan.resources[*n].address)).collect()
}

/// By step: all steps that end before it starts, one bit each.
fn ancestors(plan: &Plan) -> Vec<Vec<u64>> {
    let words = plan.steps.len().div_ceil(64);
    let mut all: Vec<Vec<u64>> = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let mut own = vec![0; words];
        for &earlier in &step.after {
            own[earlier / 64] |= 1 << (earlier % 64);
            own.iter_mut().zip(&all[earlier]).for_each(|(mine, theirs)| *mine |= theirs);
        }
        all.push(own);
    }
    all
}
