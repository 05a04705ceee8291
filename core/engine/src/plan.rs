//! Decides: one pure pass over what was observed, then the order of what it decided. The same arguments give the same plan.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::Evaluator;
use karmaform_model::{
    Action, Address, Change, Choreography, Diagnostic, Diagnostics, Mode, ModeOfPlan, Object, Path, Plan, PlannedResource, ResourceEntry,
    ResourceState,
};

use crate::choreograph::choreographies;
use crate::deferred::deferred;
use crate::drift::{drift, outputs};
use crate::facts;
use crate::forget;
use crate::graph::{Graph, Role};
use crate::observed::{Answer, Observed};
use crate::options::{Inputs, Options};
use crate::protection;
use crate::replace;
use crate::schedule::{Parts, schedule};
use crate::values::secret_paths;
use crate::walk::{Pass, Renewals, values, walk_again, walk_renewed};

/// Makes the plan, with the inputs and the options that `observed` was observed with. With errors, it holds what could be planned, to be shown and not to be applied.
pub fn plan(graph: &Graph, inputs: &Inputs<'_>, observed: &Observed, options: &Options) -> (Plan, Diagnostics) {
    let (plan, (), diagnostics) = decide(graph, inputs, observed, options, true, |_| ());
    (plan, diagnostics)
}

/// What of a plan rests on memory alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// What could not be looked at: itself, or the way to it.
    pub unseen: BTreeSet<Address>,
    /// What needs something of these, so that what is planned for it may be another thing than it would be.
    pub unsure: BTreeSet<Address>,
}

/// The plan, and what of it rests on memory alone.
pub fn plan_and_doubts(graph: &Graph, inputs: &Inputs<'_>, observed: &Observed, options: &Options) -> (Plan, Doubts, Diagnostics) {
    decide(graph, inputs, observed, options, false, doubts)
}

/// The plan, and what `tell` says of the pass that it was made in. `sure`: without what can't be planned, as it could not be looked at for one.
fn decide<T>(
    graph: &Graph,
    inputs: &Inputs<'_>,
    observed: &Observed,
    options: &Options,
    sure: bool,
    tell: impl Fn(&Pass<'_>) -> T,
) -> (Plan, T, Diagnostics) {
    let mut renewals = Renewals::new();
    loop {
        match decide_with(graph, inputs, observed, options, sure, &renewals, &tell) {
            Ok(decided) => return decided,
            // What needs them was planned with what they were.
            Err(more) => renewals.extend(more),
        }
    }
}

/// The same with children that come to be others.
///
/// # Errors
/// Those that were not given.
fn decide_with<T>(
    graph: &Graph,
    inputs: &Inputs<'_>,
    observed: &Observed,
    options: &Options,
    sure: bool,
    renewals: &Renewals,
    tell: &impl Fn(&Pass<'_>) -> T,
) -> Result<(Plan, T, Diagnostics), Renewals> {
    let values = values(graph);
    let evaluator = Evaluator::new(inputs.config, &values);
    let mut pass = match renewals.is_empty() {
        true => walk_again(graph, *inputs, observed, options, &values, &evaluator),
        false => walk_renewed(graph, *inputs, observed, options, &values, &evaluator, renewals.clone()),
    };
    let mut diagnostics = crate::select::warnings(graph, options);
    diagnostics.extend(std::mem::take(&mut pass.diagnostics));
    let is_wrong = diagnostics.has_errors() || !observed.blind.is_empty();
    diagnostics.extend(crate::imports::open(&pass, is_wrong));
    if options.mode == ModeOfPlan::Normal {
        // What a resource needed was told with it already.
        let is_same = |a: &Diagnostic, b: &Diagnostic| a.span == b.span && a.summary == b.summary && a.detail == b.detail;
        let found: Vec<_> = evaluator
            .check_modules(pass.is_whole(), pass.is_whole())
            .into_iter()
            .filter(|d| !diagnostics.iter().any(|o| is_same(o, d)))
            .collect();
        diagnostics.extend(found);
    }
    let is_errored = sure && (diagnostics.has_errors() || !observed.blind.is_empty());
    if is_errored {
        crate::lost::leave_out(&mut pass);
    }
    let create_first = replace::create_first(graph, *inputs);
    if options.mode == ModeOfPlan::Normal {
        diagnostics.extend(crate::claims::check(&pass));
    }
    let (notes, found) = crate::owners::keep_renamed(&mut pass, options.mode);
    diagnostics.extend(found);
    replace::set_orders(&mut pass, &create_first);
    let (protected, refused) = protection::guard(&pass, &evaluator);
    diagnostics.extend(refused);
    diagnostics.extend(crate::moves::guard(&pass));
    let (choreographies, problems) = match options.mode {
        ModeOfPlan::RefreshOnly => Default::default(),
        _ => choreographies(&pass),
    };
    let more = crate::choreograph::renewals(&pass, &choreographies);
    if !more.is_empty() {
        return Err(more);
    }
    diagnostics.extend(problems);
    if options.mode == ModeOfPlan::Normal && !options.lenient {
        diagnostics.extend(crate::choreograph::in_need(&pass));
    }
    crate::choreograph::forget(&mut pass, &choreographies);
    crate::choreograph::tell(&mut pass, &choreographies);
    diagnostics.extend(crate::deferred::outlived(&pass));
    diagnostics.extend(crate::deferred::not_replaced(&pass));

    let needed = dependencies(graph);
    let mut resources = Vec::new();
    let mut planned = vec![None; graph.nodes.len()];
    for (address, &number) in &graph.instances {
        if pass.visits[number].decision.is_some() || crate::checks::is_unread(&pass, address) {
            planned[number] = Some(resources.len());
            let note = notes.get(&number);
            resources.push(resource(&pass, number, address, &needed[number], (create_first[number], protected[number]), note));
        }
    }
    let deposed = leftovers(&pass, &mut resources, &mut planned, &mut diagnostics);
    let left = |n: &PlannedResource| n.change.action() == Action::Forget && graph.node(&n.address).is_some_and(|n| n.forgotten);
    diagnostics.extend(forget::warning(resources.iter().filter(|r| left(r)), inputs.registry));
    let outputs = outputs(&pass, &evaluator, &mut diagnostics);
    let mut plan = Plan {
        format: Plan::FORMAT,
        tool_version: options.tool_version.clone(),
        created: options.now,
        mode: options.mode,
        refreshed: options.refresh,
        errored: false,
        lineage: Some(inputs.state.lineage.clone()).filter(|l| !l.is_empty()),
        serial: inputs.state.serial,
        resources,
        steps: Vec::new(),
        outputs: outputs.changes,
        kept_outputs: outputs.kept,
        drift: drift(&pass),
        renews: false,
        impact: std::collections::BTreeMap::new(),
        risks: std::collections::BTreeMap::new(),
        away: away(graph, &choreographies),
        judgements: std::collections::BTreeMap::new(),
        checks: crate::checks::planned(&evaluator, &pass, &mut diagnostics),
        moved: graph.moved.clone(),
        deferred: deferred(&pass),
        targets: options.targets.clone(),
        excludes: options.excludes.clone(),
        variables: crate::options::variables(inputs.config),
        warnings: Diagnostics::new(),
    };
    if options.mode == ModeOfPlan::RefreshOnly {
        plan.renews = crate::protection::renews(&plan, inputs.state);
    } else {
        let parts = Parts { pass: &pass, planned: &planned, deposed: &deposed, choreographies: &choreographies, away: &plan.away };
        let ordered = if pass.has_lost() { Ok(Vec::new()) } else { schedule(&parts) };
        match ordered {
            Ok(steps) => plan.steps = steps,
            Err(contradiction) => diagnostics.push(contradiction),
        }
        let said = choreographies.iter().filter(|(_, c)| !c.impact.is_empty());
        plan.impact = said.map(|(n, c)| (graph.nodes[*n].address.clone(), c.impact.clone())).collect();
        let risky = choreographies.iter().filter(|(_, c)| !c.risk.is_none());
        plan.risks = risky.map(|(n, c)| (graph.nodes[*n].address.clone(), c.risk.clone())).collect();
    }
    if is_errored || diagnostics.has_errors() {
        plan.errored = true;
        plan.steps.clear();
    }
    crate::checks::read_again(&mut plan, &pass);
    plan.warnings = diagnostics.iter().filter(|d| !d.is_error()).cloned().collect();
    let told = tell(&pass);
    Ok((plan, told, diagnostics))
}

/// What composites say of it.
fn away(graph: &Graph, choreographies: &BTreeMap<usize, Choreography>) -> BTreeSet<Address> {
    choreographies.iter().flat_map(|(n, c)| c.away.iter().map(|path| graph.nodes[*n].address.with_child(path))).collect()
}

fn doubts(pass: &Pass<'_>) -> Doubts {
    let mut doubts = Doubts::default();
    for (address, &number) in &pass.graph.instances {
        let has_failed = pass.visits[number].flags.failed;
        let is_unseen = match (pass.entries[number], pass.observed.answer(address)) {
            (_, Answer::Failed(_)) => true,
            (Some(ResourceEntry::Type(_, spec)), Answer::NotAsked) => has_failed && !spec.schema().state_only,
            (None, _) => address.mode == Mode::Data && pass.observed.data(address).is_none() && has_failed,
            _ => false,
        };
        if is_unseen {
            doubts.unseen.insert(address.clone());
        } else if has_failed {
            doubts.unsure.insert(address.clone());
        }
    }
    doubts
}

fn resource(
    pass: &Pass<'_>,
    number: usize,
    address: &Address,
    needed: &[Address],
    (create_first, protected): (bool, bool),
    note: Option<&String>,
) -> PlannedResource {
    let node = &pass.graph.nodes[number];
    let visit = &pass.visits[number];
    let (change, reason) = visit.decision.clone().map_or((Change::NoOp { object: Default::default() }, None), |d| (d.change, d.reason));
    let mut impact: Vec<String> = note.cloned().into_iter().collect();
    let stored = pass.inputs.state.resources.get(address);
    let mut provider = None;
    let mut secrets: Vec<Path> = Vec::new();
    let mut facts = Object::new();
    match pass.entries[number] {
        Some(ResourceEntry::Type(driver, spec)) => {
            provider = Some(driver.name().to_owned());
            secrets = change.after().map(|after| secret_paths(spec.schema(), after)).unwrap_or_default();
            facts = facts::seen(spec.schema(), &change, visit.before.full.as_ref());
            match change.action() {
                Action::NoOp => {}
                Action::Forget if visit.before.is_absent => impact.push("is already gone; only its record is removed".to_owned()),
                Action::Forget => {}
                Action::Delete if visit.before.is_absent => impact.push("is already gone; only what is noted of it is removed".to_owned()),
                _ => impact.extend(spec.impact(&facts::with_facts(change.clone(), &facts))),
            }
        }
        Some(ResourceEntry::Composite(ty)) => {
            secrets = change.after().map(|after| secret_paths(ty.schema(), after)).unwrap_or_default();
        }
        None if address.mode == Mode::Data => {
            provider = pass.inputs.registry.data_source(&address.kind).map(|d| d.driver.name().to_owned());
        }
        None => {}
    }
    let is_made = node.configured && (pass.options.mode != ModeOfPlan::Destroy || stored.is_none());
    let kept = || stored.map(|s| s.dependencies.clone()).unwrap_or_default();
    let importing = pass.import(number).filter(|_| change.before().is_some()).map(|import| import.id.clone());
    PlannedResource {
        address: address.clone(),
        resource_type: node.kind.clone(),
        deposed: None,
        provider,
        facts,
        importing,
        reason,
        impact,
        // What is to go is ordered by what the state remembers, whatever the configuration says by now.
        dependencies: if is_made { needed.to_vec() } else { kept() },
        create_before_destroy: if node.configured { create_first } else { stored.is_some_and(|s| s.create_before_destroy) },
        protected,
        newly_secret: newly_secret(&change, &secrets, stored),
        secret_paths: secrets,
        change,
    }
}

/// What of these paths the state does not have, of what changes.
fn newly_secret(change: &Change, secrets: &[Path], stored: Option<&ResourceState>) -> Vec<Path> {
    let (Change::Update { .. } | Change::Replace { .. }, Some(stored)) = (change, stored) else { return Vec::new() };
    let is_known = |path: &&Path| stored.secret_paths.iter().any(|old| path.0.starts_with(&old.0));
    secrets.iter().filter(|path| !is_known(path)).cloned().collect()
}

/// Objects that earlier replacements left over go the way of what is not configured any more; gives their nodes and where they stand in the plan.
fn leftovers(
    pass: &Pass<'_>,
    resources: &mut Vec<PlannedResource>,
    planned: &mut [Option<usize>],
    diagnostics: &mut Diagnostics,
) -> Vec<(usize, usize, Action)> {
    let mut found = Vec::new();
    for ((address, key), stored) in &pass.inputs.state.deposed {
        let Some(&number) = pass.graph.instances.get(address).filter(|n| pass.selected[**n]) else { continue };
        if pass.options.mode == ModeOfPlan::RefreshOnly {
            continue;
        }
        let Some(ResourceEntry::Type(driver, spec)) = pass.inputs.registry.resource(&stored.resource_type) else { continue };
        let before = match crate::values::remembered(spec.schema(), stored) {
            Ok(before) => before,
            Err(error) => {
                let detail = format!("What the state holds of the deposed object {key} does not fit the resource type: {error}.");
                let span = pass.inputs.config.block(address).map(|b| b.span);
                let hint = "The state was written by another version, or by hand.";
                diagnostics.push(Diagnostic::error("State does not fit", detail).at(address).with_span(span).with_hint(hint));
                continue;
            }
        };
        let (change, impact) = if pass.graph.nodes[number].forgotten {
            (Change::Forget { before }, Vec::new())
        } else {
            let change = Change::Delete { before };
            let impact = spec.impact(&change);
            (change, impact)
        };
        found.push((
            number,
            PlannedResource {
                address: address.clone(),
                resource_type: stored.resource_type.clone(),
                deposed: Some(key.clone()),
                provider: Some(driver.name().to_owned()),
                change,
                facts: Object::new(),
                importing: None,
                reason: None,
                impact,
                dependencies: stored.dependencies.clone(),
                create_before_destroy: stored.create_before_destroy,
                protected: false,
                secret_paths: stored.secret_paths.clone(),
                newly_secret: Vec::new(),
            },
        ));
    }
    if found.is_empty() {
        return Vec::new();
    }
    // Resources are in order of address; each leftover goes behind its instance, and everything behind it moves.
    let mut all: Vec<(Option<usize>, Option<usize>, PlannedResource)> = Vec::new();
    let mut owners: Vec<Option<usize>> = vec![None; resources.len()];
    for (node, place) in planned.iter().enumerate() {
        if let Some(place) = place {
            owners[*place] = Some(node);
        }
    }
    all.extend(resources.drain(..).zip(owners).map(|(r, owner)| (owner, None, r)));
    all.extend(found.into_iter().map(|(node, r)| (None, Some(node), r)));
    all.sort_by(|(_, _, a), (_, _, b)| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
    let mut leftovers = Vec::new();
    for (place, (owner, deposed, resource)) in all.into_iter().enumerate() {
        if let Some(node) = owner {
            planned[node] = Some(place);
        }
        leftovers.extend(deposed.map(|node| (node, place, resource.change.action())));
        resources.push(resource);
    }
    leftovers
}

/// By node: what the state remembers as its direct dependencies. Data sources are not in the state, so what they need stands for them;
/// a whole block stands for all of its instances.
pub(crate) fn dependencies(graph: &Graph) -> Vec<Vec<Address>> {
    let mut found: Vec<BTreeSet<Address>> = vec![BTreeSet::new(); graph.nodes.len()];
    for &number in &graph.order {
        let node = &graph.nodes[number];
        let mut own = BTreeSet::new();
        for &needed in &node.wanted {
            let other = &graph.nodes[needed];
            let is_passed_through = match other.role {
                Role::Block => other.address.mode == Mode::Data,
                Role::Enter | Role::Data => true,
                Role::Resource | Role::Composite | Role::Child => false,
            };
            let is_apart = node.near.is_some() && graph.is_entrance_of(needed, number);
            if is_apart || (other.composite == Some(number) && other.role == Role::Child) {
                continue;
            }
            if is_passed_through {
                own.extend(found[needed].iter().cloned());
            } else {
                own.insert(other.address.clone());
            }
        }
        found[number] = own;
    }
    found.into_iter().map(|set| set.into_iter().collect()).collect()
}
