//! Takes secrets, and what is ephemeral, out of a plan before it is written anywhere, and knows which texts are secret.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::Config;
use karmaform_model::{
    Arg, Catalog, Change, Kind, Mode, Object, Path, Plan, PlannedResource, Snapshot, StepKind, Value, same, secret_leaves,
};

use crate::ui::json::state::attributes;
use crate::ui::resource::schema_of;

/// Replaces secrets by unknown values. Equal ones get equal numbers, so that a change can still be told from none.
#[derive(Debug, Default)]
struct Redactor {
    /// Those with the same text, each with its number; what is no text is all in one place.
    seen: BTreeMap<String, Vec<(Value, usize)>>,
    count: usize,
}

impl Redactor {
    fn value(&mut self, value: &Value) -> Value {
        let is_hidden = value.marks().any();
        if is_hidden && !value.is_wholly_known() && !is_withheld(value) {
            return Value::unknown(value.ty()).secret();
        }
        if is_hidden && !value.is_null() {
            return value.withheld(self.number(value));
        }
        value.map_parts(|_, part| self.value(part))
    }

    fn number(&mut self, value: &Value) -> usize {
        let alike = self.seen.entry(value.as_str().unwrap_or_default().to_owned()).or_default();
        if let Some((_, number)) = alike.iter().find(|(seen, _)| seen == value) {
            return *number;
        }
        alike.push((value.clone(), self.count));
        self.count += 1;
        self.count - 1
    }

    fn object(&mut self, object: &mut Object, mode: Mode, resource_type: &str, secret_paths: &[Path], registry: &Catalog) {
        let whole = crate::ui::attributes::marked(std::mem::take(object), schema_of(registry, mode, resource_type), secret_paths);
        *object = self.value(&whole).as_entries().cloned().unwrap_or_default();
    }

    fn arg(&mut self, arg: &mut Arg) {
        match arg {
            Arg::Value(value) => *value = self.value(value),
            Arg::List(args) | Arg::Text(args) => args.iter_mut().for_each(|a| self.arg(a)),
            Arg::Object(args) => args.values_mut().for_each(|a| self.arg(a)),
            Arg::Base64(arg) | Arg::Decoded(arg) | Arg::Part(arg, _) | Arg::UrlHost(arg) => self.arg(arg),
            Arg::Child(..) => {}
        }
    }
}

/// The plan without any secret.
pub(crate) fn redacted(plan: &Plan, registry: &Catalog) -> Plan {
    let mut plan = plan.clone();
    let mut redactor = Redactor::default();
    let mut paths: BTreeMap<_, Vec<Path>> = BTreeMap::new();
    for resource in &mut plan.resources {
        let (mode, ty, secret) = (resource.address.mode, &resource.resource_type, &resource.secret_paths);
        for side in sides(&mut resource.change) {
            redactor.object(side, mode, ty, secret, registry);
        }
        redactor.object(&mut resource.facts, mode, ty, secret, registry);
        paths.insert(resource.address.clone(), resource.secret_paths.clone());
    }
    for drifted in &mut plan.drift {
        let secret = paths.get(&drifted.address).cloned().unwrap_or_default();
        for side in std::iter::once(&mut drifted.before).chain(&mut drifted.after) {
            redactor.object(side, drifted.address.mode, &drifted.resource_type, &secret, registry);
        }
    }
    for output in plan.outputs.values_mut() {
        let sensitive = output.sensitive;
        for side in output.before.iter_mut().chain(&mut output.after) {
            *side = redactor.value(&side.clone().secret_if(sensitive));
        }
    }
    for output in plan.kept_outputs.values_mut() {
        output.value = redactor.value(&output.value.clone().secret_if(output.sensitive));
    }
    for step in &mut plan.steps {
        if let StepKind::Gate { gate, .. } = &mut step.kind {
            gate.arguments.values_mut().for_each(|a| redactor.arg(a));
        }
    }
    for variable in plan.variables.values_mut() {
        if variable.sensitive || variable.value.as_ref().is_some_and(Value::contains_secret) {
            variable.value = None;
            variable.sensitive = true;
        }
        if variable.ephemeral {
            variable.value = None;
        }
    }
    plan
}

fn sides(change: &mut Change) -> Vec<&mut Object> {
    match change {
        Change::NoOp { object } => vec![object],
        Change::Read { after } | Change::Create { after } => vec![after],
        Change::Delete { before } | Change::Forget { before } => vec![before],
        Change::Update { before, after } | Change::Replace { before, after, .. } => vec![before, after],
    }
}

/// True for what stands where a secret was.
pub(crate) fn is_withheld(value: &Value) -> bool {
    value.withheld_number().is_some()
}

/// True if two parts are the same, as far as can be told: withheld secrets go by their number.
pub(crate) fn same_or_withheld(a: Option<&Value>, b: Option<&Value>) -> bool {
    if let (Some(x), Some(y)) = (a, b) {
        if let (Some(m), Some(n)) = (x.withheld_number(), y.withheld_number()) {
            return m == n;
        }
        match (&x.kind, &y.kind) {
            (Kind::Map(_, p) | Kind::Object(p), Kind::Map(_, q) | Kind::Object(q)) => {
                return p.len() == q.len() && p.iter().zip(q).all(|((m, v), (n, w))| m == n && same_or_withheld(Some(v), Some(w)));
            }
            (Kind::List(_, p) | Kind::Tuple(p), Kind::List(_, q) | Kind::Tuple(q)) => {
                return p.len() == q.len() && p.iter().zip(q).all(|(v, w)| same_or_withheld(Some(v), Some(w)));
            }
            _ => {}
        }
    }
    same(a, b)
}

/// True if the same parts of two values are secret, as far as both have them.
pub(crate) fn same_marks(a: &Value, b: &Value) -> bool {
    if a.secret || b.secret {
        return a.secret == b.secret;
    }
    match (a.as_items(), b.as_items(), a.as_entries(), b.as_entries()) {
        (Some(a), Some(b), ..) => a.iter().zip(b).all(|(a, b)| same_marks(a, b)),
        (_, _, Some(a), Some(b)) => a.iter().all(|(name, a)| b.get(name).is_none_or(|b| same_marks(a, b))),
        _ => true,
    }
}

/// Texts that must not stand in clear anywhere: every secret of a plan, its state and its variables, line by line.
pub(crate) fn secret_texts(plan: &Plan, state: &Snapshot, registry: &Catalog) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut take = |value: &Value| collect(value, &mut found);
    for resource in &plan.resources {
        for side in [resource.change.before(), resource.change.after()].into_iter().flatten() {
            take(&marked(resource, side, registry));
        }
    }
    for (address, resource) in &state.resources {
        take(&attributes(address, resource, registry).into());
    }
    for output in plan.outputs.values() {
        output.before.iter().chain(&output.after).for_each(|v| take(&v.clone().secret_if(output.sensitive)));
    }
    for output in state.outputs.values() {
        take(&output.value.clone().secret_if(output.sensitive));
    }
    for variable in plan.variables.values() {
        variable.value.iter().for_each(|v| take(&v.clone().secret_if(variable.sensitive)));
    }
    found
}

/// One side of a change with all marks of secrecy, those of the schema and those of the configuration.
fn marked(resource: &PlannedResource, side: &Object, registry: &Catalog) -> Value {
    let schema = schema_of(registry, resource.address.mode, &resource.resource_type);
    crate::ui::attributes::marked(side.clone(), schema, &resource.secret_paths)
}

/// What will have secrets in the state once this plan was applied: resources, a composite for all its parts, and outputs.
pub(crate) fn holders_of_secrets(plan: &Plan, registry: &Catalog) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for resource in &plan.resources {
        let stays = !matches!(resource.change, Change::Delete { .. } | Change::Forget { .. });
        let Some(after) = resource.change.after().filter(|_| stays) else { continue };
        let schema = schema_of(registry, resource.address.mode, &resource.resource_type);
        let is_stored = |name: &str| schema.is_none_or(|s| s.attribute(name).is_none_or(|a| !a.write_only && !a.volatile));
        let stored: Object = after.iter().filter(|(name, _)| is_stored(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
        if secret_leaves(&marked(resource, &stored, registry)).iter().any(|leaf| !leaf.is_null()) {
            found.insert(resource.address.whole().to_string());
        }
    }
    let outputs = plan.outputs.iter().filter(|(_, o)| o.sensitive && o.after.is_some());
    found.extend(outputs.map(|(name, _)| format!("output.{name}")));
    found
}

/// The same of what a configuration says of its secret variables.
pub(crate) fn secret_texts_of(config: &Config) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    config.secret_values().into_iter().for_each(|value| collect(&value.clone().secret(), &mut found));
    found
}

/// What of the values of its ephemeral variables may stand in a name or a path.
pub(crate) fn ephemeral_texts_of(config: &Config) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    config.variables.values().filter(|v| v.ephemeral).for_each(|v| collect(&v.value.clone().ephemeral(), &mut found));
    found
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    for leaf in secret_leaves(value) {
        match &leaf.kind {
            Kind::String(text) => found.extend(text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty())),
            Kind::Number(number) => drop(found.insert(number.to_string())),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_secrets_stay_equal_and_different_ones_differ() {
        let mut redactor = Redactor::default();
        let make = |r: &mut Redactor, text: &str| r.value(&Value::object([("a", Value::from(text).secret()), ("b", "clear".into())]));
        let (one, two, again) = (make(&mut redactor, "hunter2"), make(&mut redactor, "other"), make(&mut redactor, "hunter2"));
        let json = serde_json::to_string(&[&one, &two, &again]).unwrap();
        assert!(!json.contains("hunter2") && json.contains("clear"));
        let back: Vec<Value> = serde_json::from_str(&json).unwrap();
        assert!(same_or_withheld(Some(&back[0]), Some(&back[2])));
        assert!(!same_or_withheld(Some(&back[0]), Some(&back[1])));
    }

    #[test]
    fn secret_lines_are_known_one_by_one() {
        let mut found = BTreeSet::new();
        collect(&Value::object([("k", Value::from("line one\n  line two\n").secret()), ("p", "public".into())]), &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["line one", "line two"]);
    }
}
