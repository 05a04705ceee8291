//! How resources of a mocked provider are planned, where that is not left to its pure half: what a mock says is known to a plan, or is of any
//! type, as the output of a `terraform_data`, which the mock has made to be nothing.

use std::sync::Arc;

use karmaform_lang::Mock;
use karmaform_model::{Attribute, Change, Diagnostic, Diagnostics, Driver, Object, PlanContext, ResourceSpec, Schema, Type};

use super::made_up::Letters;

/// A resource type of a mocked provider.
pub(super) struct MockedSpec {
    pub(super) name: &'static str,
    inner: Arc<dyn Driver>,
    schema: Schema,
    defaults: Option<Object>,
    at_plan: bool,
    seed: String,
}

/// The types of a provider that are planned so.
pub(super) fn planned_otherwise(inner: &Arc<dyn Driver>, mock: &Mock, seed: &str) -> Vec<MockedSpec> {
    let is_otherwise = |s: &dyn ResourceSpec| s.schema().attributes.iter().any(is_anything) || mock.is_at_plan(s.name());
    let specs = inner.specs().into_iter().filter(|s| is_otherwise(*s));
    let mocked = specs.map(|spec| MockedSpec {
        name: spec.name(),
        inner: Arc::clone(inner),
        schema: spec.schema().clone(),
        defaults: mock.resources.get(spec.name()).cloned(),
        at_plan: mock.is_at_plan(spec.name()),
        seed: seed.to_owned(),
    });
    mocked.collect()
}

/// True for what only the maker could tell, type and all.
fn is_anything(attribute: &Attribute) -> bool {
    attribute.is_computed() && attribute.ty == Type::Any
}

impl MockedSpec {
    /// The type itself.
    fn of<R>(&self, ask: impl FnOnce(&dyn ResourceSpec) -> R) -> Option<R> {
        self.inner.specs().into_iter().find(|s| s.name() == self.name).map(ask)
    }

    /// What is of any type stays as the mock has made it.
    fn kept(&self, before: &Object, after: &mut Object) {
        for attribute in self.schema.attributes.iter().filter(|a| is_anything(a)) {
            if let Some(value) = before.get(attribute.name) {
                after.insert(attribute.name.to_owned(), value.clone());
            }
        }
    }
}

impl ResourceSpec for MockedSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn derived(&self, wanted: Object) -> Object {
        self.of(|spec| spec.derived(wanted.clone())).unwrap_or(wanted)
    }

    fn plan(&self, context: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let mut change =
            self.of(|spec| spec.plan(context, before, wanted)).unwrap_or_else(|| Ok(Change::NoOp { object: Object::new() }))?;
        match (&mut change, before) {
            (Change::Create { after }, _) if self.at_plan => {
                Letters::new(format!("{}/{}", self.seed, self.name)).fill(&self.schema, self.defaults.as_ref(), after);
            }
            (Change::NoOp { object: after } | Change::Update { after, .. }, Some(before)) => self.kept(before, after),
            _ => {}
        }
        Ok(change)
    }

    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        self.of(|spec| spec.recovered(wanted, found)).unwrap_or(Ok(None))
    }

    fn imported(&self, id: &str) -> Option<Object> {
        self.of(|spec| spec.imported(id)).flatten()
    }

    fn import_id(&self, wanted: &Object) -> Option<String> {
        self.of(|spec| spec.import_id(wanted)).flatten()
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        self.of(|spec| spec.impact(change)).unwrap_or_default()
    }
}
