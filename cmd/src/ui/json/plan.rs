//! A plan as `show -json` gives it, format 1.2.

use std::collections::BTreeMap;

use karmaform_engine::relocated;
use karmaform_lang::Config;
use karmaform_model::{
    Action, Address, Catalog, Change, CheckKind, Checked, DriftedResource, Judgement, Key, Mode, ModeOfPlan, ModuleStep, Object,
    OutputChange, Path, PathStep, Plan, PlannedResource, Reason, Snapshot, Step, StepKind, Value,
};
use serde_json::{Map, Value as Json, json};

use super::configuration::configuration;
use super::{key_json, known, known_object, naming, naming_of_change, provider_name, shape, shape_object, timestamp};
use crate::app::TERRAFORM;
use crate::redact::is_withheld;
use crate::ui::resource::{is_let_go, schema_of};

/// The key of all that Terraform has no place for.
const OURS: &str = "karmaform";
/// The provider of a composite's own record.
pub(super) const COMPOSITES: &str = "karmaform";

/// The plan representation. `prior` is the state it was made from, if that is at hand.
pub(crate) fn plan(plan: &Plan, config: &Config, prior: Option<&Snapshot>, registry: &Catalog) -> Json {
    // As Terraform has it: the state that was planned from, which knows of moves.
    let moved = prior.filter(|_| !plan.moved.is_empty()).map(|state| relocated(state, &plan.moved));
    let prior = moved.as_ref().or(prior);
    let is_noted = plan.mode == ModeOfPlan::RefreshOnly && (!plan.drift.is_empty() || plan.renews);
    let mut out = json!({
        "format_version": "1.2",
        "terraform_version": TERRAFORM,
        "planned_values": planned_values(plan, prior, registry),
        "configuration": configuration(config, registry),
        "timestamp": timestamp(plan.created),
        "applyable": !plan.errored && (!plan.is_empty() || is_noted),
        "complete": !plan.errored && !plan.is_of_a_part() && plan.deferred.is_empty(),
        "errored": plan.errored,
    });
    // What only looks plans no change of a resource.
    if plan.mode != ModeOfPlan::RefreshOnly && !plan.resources.is_empty() {
        out["resource_changes"] = plan.listed().into_iter().map(|r| resource_change(r, plan, registry)).collect();
    }
    if !plan.variables.is_empty() {
        let shown = plan.variables.iter().filter_map(|(name, v)| {
            // As Terraform has it: of what is ephemeral only the default is told.
            let told = if v.ephemeral { Some(config.variables.get(name)?.default.as_ref()?) } else { v.value.as_ref() };
            let value = told.filter(|_| !v.sensitive).and_then(known).unwrap_or(Json::Null);
            Some((name.clone(), json!({ "value": value })))
        });
        let shown: Map<_, _> = shown.collect();
        if !shown.is_empty() {
            out["variables"] = Json::Object(shown);
        }
    }
    if !plan.drift.is_empty() {
        let planned = plan.resources.iter().rev().map(|r| (&r.address, r)).collect();
        out["resource_drift"] = plan.listed_drift().into_iter().map(|d| drift(d, &planned, plan, registry)).collect();
    }
    if !plan.deferred.is_empty() {
        out["deferred_changes"] = plan.deferred.iter().map(|d| super::deferred::deferred(d, prior, registry)).collect();
    }
    let outputs: Map<_, _> = all_outputs(plan).map(|(n, o, stays)| (n.clone(), output_change(&o, stays))).collect();
    if !outputs.is_empty() {
        out["output_changes"] = Json::Object(outputs);
    }
    let prior = super::prior::refreshed(prior.unwrap_or(&Snapshot::default()), plan, registry);
    if !prior.resources.is_empty() || !prior.outputs.is_empty() {
        // What its conditions came to is told of the plan.
        let prior = Snapshot { checks: Vec::new(), ..prior };
        out["prior_state"] = super::state::state(Some(&prior), registry);
    }
    let relevant = relevant(plan, config);
    if !relevant.is_empty() {
        out["relevant_attributes"] = Json::Array(relevant);
    }
    if !plan.checks.is_empty() {
        // As Terraform has it: where all goes, only outputs are looked at one by one.
        let is_root_output = |one: &Checked| one.kind == CheckKind::Output && one.address.module.is_empty();
        let is_there = |one: &Checked| plan.mode != ModeOfPlan::Destroy || (!plan.is_of_a_part() && is_root_output(one));
        out["checks"] = super::checks::checks(&plan.checks, is_there);
    }
    let impact: Map<_, _> = plan.impact.iter().map(|(a, lines)| (a.to_string(), json!(lines))).collect();
    let steps: Vec<Json> = plan.steps.iter().map(|s| step(s, plan)).collect();
    out[OURS] = json!({ "version": plan.tool_version, "impact": impact, "steps": steps });
    if !plan.risks.is_empty() {
        out[OURS]["risks"] = plan.risks.iter().map(|(a, risk)| (a.to_string(), json!(risk))).collect::<Map<_, _>>().into();
    }
    if !plan.judgements.is_empty() {
        out[OURS]["policies"] = plan.judgements.iter().map(|(name, j)| (name.clone(), judgement(j))).collect::<Map<_, _>>().into();
    }
    out
}

/// What all that changes is made of.
fn relevant(plan: &Plan, config: &Config) -> Vec<Json> {
    let decided = plan.resources.iter().filter(|r| plan.mode != ModeOfPlan::RefreshOnly && !r.change.is_no_op());
    // As Terraform has it, what a module gives is new in every plan, but for one in which all goes; in one of a part, if the part asks for it.
    let asked = plan.is_of_a_part().then(|| {
        let outputs = plan.outputs.keys().chain(plan.kept_outputs.keys());
        config.asked_of_modules(plan.resources.iter().map(|r| &r.address), outputs)
    });
    let is_asked = |module: &[ModuleStep], name: &String| {
        let way: Vec<ModuleStep> = module.iter().map(|step| ModuleStep::new(&step.name)).collect();
        asked.as_ref().is_none_or(|asked| asked.contains(&(way, name.clone())))
    };
    let of_modules = config.outputs_of_modules().filter(|&(module, name)| plan.mode != ModeOfPlan::Destroy && is_asked(module, name));
    let found = config.relevant(decided.map(|r| &r.address), plan.outputs.keys(), of_modules);
    let one = |(address, way): (Address, Vec<Key>)| json!({ "resource": address.to_string(), "attribute": way.iter().map(key_json).collect::<Vec<_>>() });
    found.into_iter().map(one).collect()
}

/// All outputs that the plan says something of, as changes, and whether each stays as it is.
pub(super) fn all_outputs(plan: &Plan) -> impl Iterator<Item = (&String, OutputChange, bool)> {
    let kept = plan.kept_outputs.iter().map(|(name, o)| {
        let value = Some(o.value.clone());
        (name, OutputChange { before: value.clone(), after: value, sensitive: o.sensitive }, true)
    });
    plan.outputs.iter().map(|(name, o)| (name, o.clone(), false)).chain(kept)
}

fn judgement(judgement: &Judgement) -> Json {
    let enforcement = if judgement.is_mandatory { "mandatory" } else { "advisory" };
    json!({ "enforcement": enforcement, "passed": judgement.broken.is_none(), "message": judgement.broken, "overridden": judgement.overridden })
}

/// One step; its id is its index. Those in `after` end before it begins.
fn step(step: &Step, plan: &Plan) -> Json {
    let address = |resource: usize| plan.resources.get(resource).map(|r| r.address.to_string());
    let mut out = match &step.kind {
        StepKind::Change { resource, part } => json!({ "do": actions(*part).first(), "address": address(*resource) }),
        StepKind::Gate { composite, gate } => {
            let verb = if gate.acts { "operate" } else { "wait" };
            json!({ "do": verb, "address": composite.to_string(), "gate": gate.name, "limit_seconds": gate.limit })
        }
        StepKind::Finish { resource } => json!({ "do": "finish", "address": address(*resource) }),
        StepKind::Join => json!({ "do": "join" }),
    };
    out["after"] = json!(step.after);
    out
}

/// Where something was. As Terraform has it: where all goes, nobody asks.
pub(super) fn previous_address(plan: &Plan, address: &Address) -> Option<Address> {
    plan.previous_address(address).filter(|_| plan.mode != ModeOfPlan::Destroy)
}

fn resource_change(resource: &PlannedResource, plan: &Plan, registry: &Catalog) -> Json {
    let mut out = naming_of_change(&resource.address, &resource.resource_type);
    if let Some(key) = &resource.deposed {
        out.insert("deposed".into(), json!(key));
    }
    if let Some(was) = previous_address(plan, &resource.address) {
        out.insert("previous_address".into(), json!(was.to_string()));
    }
    out.insert("provider_name".into(), json!(provider_name(resource.provider.as_deref().unwrap_or(COMPOSITES))));
    let marked = |o: &Object| marked(o, resource.address.mode, &resource.resource_type, &resource.secret_paths, registry);
    let before = resource.change.before().map(marked);
    let after = resource.change.after().map(marked);
    let action = if resource.is_import_alone() { Action::NoOp } else { resource.change.action() };
    let mut change = sides(actions(action), before.as_ref(), after.as_ref());
    if !resource.newly_secret.is_empty() {
        let before = crate::ui::attributes::marked_before(Value::from(before.unwrap_or_default()), resource);
        change["before_sensitive"] = before.as_entries().map_or(Json::Bool(false), |o| shape_object(o, &|v| v.secret));
    }
    if let Some(id) = &resource.importing {
        change["importing"] = json!({ "id": id });
    }
    if let Change::Replace { because, .. } = &resource.change
        && !because.is_empty()
    {
        change["replace_paths"] = because.iter().map(path_json).collect();
    }
    out.insert("change".into(), change);
    let why = if plan.previous_address(&resource.address).is_some() { "no_move_target" } else { "no_resource_config" };
    let let_go = is_let_go(resource, plan.mode).then(|| format!("delete_because_{why}"));
    if let Some(reason) = resource.reason.as_ref().and_then(reason_word).map(str::to_owned).or(let_go) {
        out.insert("action_reason".into(), json!(reason));
    }
    if !resource.impact.is_empty() {
        out.insert(OURS.into(), json!({ "impact": resource.impact }));
    }
    Json::Object(out)
}

fn marked(object: &Object, mode: Mode, resource_type: &str, secret_paths: &[Path], registry: &Catalog) -> Object {
    let whole = crate::ui::attributes::marked(object.clone(), schema_of(registry, mode, resource_type), secret_paths);
    whole.as_entries().cloned().unwrap_or_default()
}

pub(super) fn sides(actions: &[&str], before: Option<&Object>, after: Option<&Object>) -> Json {
    let values = |o: Option<&Object>| o.map_or(Json::Null, |o| Json::Object(known_object(o)));
    let secret = |o: Option<&Object>| o.map_or(Json::Bool(false), |o| shape_object(o, &|v| v.secret));
    // The shape is told only where something in it is unknown.
    let unknown = after.map(|o| shape_object(o, &is_open)).filter(super::holds_something);
    json!({
        "actions": actions,
        "before": values(before),
        "after": values(after),
        "after_unknown": unknown.unwrap_or_else(|| json!({})),
        "before_sensitive": secret(before),
        "after_sensitive": secret(after),
    })
}

/// The `actions` of a change.
pub(crate) fn actions(action: Action) -> &'static [&'static str] {
    match action {
        Action::NoOp => &["no-op"],
        Action::Read => &["read"],
        Action::Create => &["create"],
        Action::Update => &["update"],
        Action::DestroyThenCreate => &["delete", "create"],
        Action::CreateThenDestroy => &["create", "delete"],
        Action::Delete => &["delete"],
        Action::Forget => &["forget"],
    }
}

/// The `action_reason` of a change.
pub(crate) fn reason_word(reason: &Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::ReplaceByRequest => "replace_by_request",
        Reason::ReplaceByTriggers(_) => "replace_by_triggers",
        Reason::ReplaceBecauseCannotUpdate(_) => "replace_because_cannot_update",
        Reason::ReplaceBecauseTainted => "replace_because_tainted",
        Reason::DeleteBecauseNoResourceConfig => "delete_because_no_resource_config",
        Reason::DeleteBecauseNoModule(_) => "delete_because_no_module",
        Reason::DeleteBecauseNoMoveTarget(_) => "delete_because_no_move_target",
        Reason::DeleteBecauseCountIndex => "delete_because_count_index",
        Reason::DeleteBecauseEachKey => "delete_because_each_key",
        Reason::DeleteBecauseWrongRepetition => "delete_because_wrong_repetition",
        Reason::DeleteBecauseNotInComposite => "delete_because_no_resource_config",
        Reason::ReadBecauseConfigUnknown => "read_because_config_unknown",
        Reason::ReadBecauseDependencyPending => "read_because_dependency_pending",
        Reason::ReadBecauseCheckNested => "read_because_check_nested",
        Reason::CreateBecauseMissing | Reason::FinishEarlierRun => return None,
    })
}

fn drift(drifted: &DriftedResource, planned: &BTreeMap<&Address, &PlannedResource>, plan: &Plan, registry: &Catalog) -> Json {
    let planned = planned.get(&drifted.address);
    let secret_paths = planned.map(|r| r.secret_paths.clone()).unwrap_or_default();
    let provider = planned.and_then(|r| r.provider.clone()).unwrap_or_else(|| COMPOSITES.to_owned());
    let marked = |o: &Object| marked(o, drifted.address.mode, &drifted.resource_type, &secret_paths, registry);
    let (before, after) = (marked(&drifted.before), drifted.after.as_ref().map(marked));
    let mut out = naming_of_change(&drifted.address, &drifted.resource_type);
    out.insert("provider_name".into(), json!(provider_name(&provider)));
    if let Some(was) = previous_address(plan, &drifted.address) {
        out.insert("previous_address".into(), json!(was.to_string()));
    }
    out.insert("change".into(), sides(actions(drifted.action()), Some(&before), after.as_ref()));
    Json::Object(out)
}

fn output_change(output: &OutputChange, stays: bool) -> Json {
    let action = match (&output.before, &output.after) {
        _ if stays => "no-op",
        (None, _) => "create",
        (_, None) => "delete",
        _ => "update",
    };
    let is_secret = is_secret(output);
    let value = |v: &Option<Value>| v.clone().map(|v| v.secret_if(output.sensitive));
    let (before, after) = (value(&output.before), value(&output.after));
    let secret =
        |v: &Option<Value>| if is_secret { json!(true) } else { v.as_ref().map_or(json!(false), |v| compact(shape(v, &|v| v.secret))) };
    let mut out = json!({
        "actions": [action],
        "before": before.as_ref().and_then(known),
        "after_unknown": after.as_ref().map_or(json!(false), |v| compact(shape(v, &is_open))),
        "before_sensitive": secret(&before),
        "after_sensitive": secret(&after),
    });
    if let Some(known) = after.as_ref().map_or(Some(Json::Null), known) {
        out["after"] = known;
    }
    out
}

/// As Terraform has it: an output that is secret, or was.
pub(super) fn is_secret(output: &OutputChange) -> bool {
    output.sensitive || output.before.iter().chain(&output.after).any(|v| v.secret)
}

/// Not known yet: what a saved plan leaves out is.
fn is_open(value: &Value) -> bool {
    value.is_unknown() && !is_withheld(value)
}

/// Nothing of it is to come.
pub(super) fn is_known(value: &Value) -> bool {
    !super::holds_something(&shape(value, &is_open))
}

/// `false` instead of a shape that marks nothing.
fn compact(shape: Json) -> Json {
    if super::holds_something(&shape) { shape } else { json!(false) }
}

fn planned_values(plan: &Plan, prior: Option<&Snapshot>, registry: &Catalog) -> Json {
    let mut out = json!({});
    if plan.mode != ModeOfPlan::Destroy {
        let mut outputs = Map::new();
        for (name, output) in prior.into_iter().flat_map(|s| &s.outputs) {
            let mut entry = json!({ "sensitive": output.sensitive, "type": output.value.ty().to_json() });
            entry["value"] = known(&output.value).unwrap_or(Json::Null);
            outputs.insert(name.clone(), entry);
        }
        for (name, change, stays) in all_outputs(plan) {
            let Some(after) = &change.after else {
                outputs.remove(name);
                continue;
            };
            // One that stops being secret is still told as one that is: what it was is secret.
            let was_sensitive = prior.and_then(|s| s.outputs.get(name)).is_some_and(|o| o.sensitive);
            let mut entry = json!({ "sensitive": change.sensitive || was_sensitive });
            if is_known(after) {
                entry["type"] = if stays && after.is_null() { json!("dynamic") } else { after.ty().to_json() };
                entry["value"] = known(&after.clone().secret_if(change.sensitive || was_sensitive)).unwrap_or(Json::Null);
            }
            outputs.insert(name.clone(), entry);
        }
        if !outputs.is_empty() {
            out["outputs"] = Json::Object(outputs);
        }
    }
    let mut decided: Vec<_> = plan.resources.iter().filter(|_| plan.mode != ModeOfPlan::RefreshOnly).collect();
    // As in Terraform: by what their addresses look like, `a[10]` before `a[2]`, and data before all else.
    decided.sort_by_cached_key(|r| r.address.to_string());
    let resources = decided.into_iter().filter_map(|r| Some((&r.address, planned_resource(r, plan.mode, registry)?)));
    out["root_module"] = super::by_module(resources);
    out
}

fn planned_resource(resource: &PlannedResource, mode: ModeOfPlan, registry: &Catalog) -> Option<Json> {
    if mode == ModeOfPlan::Destroy && resource.address.mode == Mode::Data {
        return None;
    }
    let after = resource.change.after();
    // What is let go is there as before, and nothing is said of what it is.
    if after.is_none() && (resource.deposed.is_some() || !is_let_go(resource, mode)) {
        return None;
    }
    let after = after.map(|after| marked(after, resource.address.mode, &resource.resource_type, &resource.secret_paths, registry));
    let mut out = naming(&resource.address, &resource.resource_type);
    out.insert("provider_name".into(), json!(provider_name(resource.provider.as_deref().unwrap_or(COMPOSITES))));
    let version = schema_of(registry, resource.address.mode, &resource.resource_type).map_or(0, |s| s.version);
    out.insert("schema_version".into(), json!(version));
    out.insert("sensitive_values".into(), after.as_ref().map_or(json!(false), |after| shape_object(after, &|v| v.secret)));
    // As in Terraform: of what nothing is known nothing is told.
    let values = after.map(|after| known_object(&after)).filter(|values| !values.is_empty());
    out.extend(values.map(|values| ("values".to_owned(), Json::Object(values))));
    Some(Json::Object(out))
}

fn path_json(path: &Path) -> Json {
    let step = |s: &PathStep| match s {
        PathStep::Index(i) => json!(i),
        PathStep::Name(n) => json!(n),
    };
    path.0.iter().map(step).collect()
}
