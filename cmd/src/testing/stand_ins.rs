//! What tests say of single resources and data sources: it stands in for what their providers would say and do. As in Terraform, only what is
//! made anew is made up; what changes keeps what it has, and nothing is made anew for a change of its arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_lang::{Override, Run, TestFile};
use karmaform_model::{
    Address, Change, Connection, Diagnostic, Diagnostics, Looking, Mode, Object, PlanContext, Registry, ResourceEntry, ResourceSpec,
    Schema, StandIns, convert, default_plan,
};

use super::made_up::Letters;
use super::mock::{ARCHITECTURE, Seeds};

/// All that is said, where what is said first counts: by runs and files, then with mocked providers.
struct Said {
    layers: [BTreeMap<Address, One>; 2],
}

/// What is said of one thing, or of all instances of one block.
enum One {
    Resource(Spec),
    Data(Data),
}

/// A resource in place of what its provider makes of it.
struct Spec {
    name: &'static str,
    schema: Schema,
    at_plan: bool,
    values: Result<Object, Diagnostic>,
    seed: String,
}

/// A data source in place of what its provider says.
struct Data {
    provider: Arc<dyn Looking>,
    schema: Schema,
    values: Result<Object, Diagnostic>,
    /// Arguments of its `provider` block.
    given: Object,
    seed: String,
}

/// The same providers, with what a run, its file and its mocks say of single things. `given` are the `provider` blocks.
pub(super) fn overridden(registry: Registry, tests: &TestFile, run: &Run, given: &BTreeMap<String, Object>, seeds: Seeds<'_>) -> Registry {
    let near = run.overrides.iter().chain(&tests.overrides);
    let far = tests.mocks.values().flat_map(|m| &m.overrides);
    let layers = [layer(&registry, near, given, seeds), layer(&registry, far, given, seeds)];
    if layers.iter().all(BTreeMap::is_empty) {
        return registry;
    }
    registry.with_stand_ins(Arc::new(Said { layers }))
}

/// Of several that are about the same, the first counts.
fn layer<'a>(
    registry: &Registry,
    overrides: impl Iterator<Item = &'a Override>,
    given: &BTreeMap<String, Object>,
    seeds: Seeds<'_>,
) -> BTreeMap<Address, One> {
    let mut all = BTreeMap::new();
    for said in overrides.filter(|o| !o.target.is_module()) {
        if let Some(one) = one(registry, said, given, seeds) {
            all.entry(said.target.clone()).or_insert(one);
        }
    }
    all
}

/// `None`: there is no such type, so there is no such thing either.
fn one(registry: &Registry, said: &Override, given: &BTreeMap<String, Object>, seeds: Seeds<'_>) -> Option<One> {
    if said.target.mode == Mode::Data {
        let entry = registry.data_source(&said.target.kind)?;
        return Some(One::Data(Data {
            provider: Arc::clone(entry.driver),
            schema: entry.schema.clone(),
            values: fitting(entry.schema, said),
            given: given.get(entry.driver.name()).cloned().unwrap_or_default(),
            seed: seeds.file.to_owned(),
        }));
    }
    let Some(ResourceEntry::Type(_, spec)) = registry.resource(&said.target.kind) else { return None };
    Some(One::Resource(Spec {
        name: spec.name(),
        schema: alone(spec.schema()),
        at_plan: said.at_plan,
        values: fitting(spec.schema(), said),
        seed: seeds.run.to_owned(),
    }))
}

/// The schema of what nobody looks at, and what no change makes anew.
fn alone(schema: &Schema) -> Schema {
    let mut alone = schema.clone();
    alone.connection = Connection::None;
    alone.state_only = true;
    alone.tries = false;
    for attribute in &mut alone.attributes {
        attribute.forces_replace = false;
        attribute.identity = false;
    }
    alone
}

/// The values that are the provider's to give, in their types.
fn fitting(schema: &Schema, said: &Override) -> Result<Object, Diagnostic> {
    let mut all = Object::new();
    for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
        let Some(value) = said.values.get(attribute.name) else { continue };
        let value = convert(value, &attribute.ty).map_err(|error| {
            let detail = format!("\"{}\" of {} does not fit its type {}: {error}.", attribute.name, said.target, attribute.ty);
            Diagnostic::error("Invalid value for what is overridden", detail).with_span(Some(said.span))
        })?;
        all.insert(attribute.name.to_owned(), value);
    }
    Ok(all)
}

impl Said {
    fn one(&self, address: &Address) -> Option<&One> {
        if address.is_child() {
            return None;
        }
        self.layers.iter().find_map(|layer| layer.get(address).or_else(|| layer.get(&address.block())))
    }
}

impl StandIns for Said {
    fn spec(&self, address: &Address) -> Option<&dyn ResourceSpec> {
        match self.one(address)? {
            One::Resource(spec) => Some(spec),
            One::Data(_) => None,
        }
    }

    fn made(&self, address: &Address, planned: &Object) -> Result<Object, Diagnostic> {
        let mut object = planned.clone();
        if let Some(One::Resource(spec)) = self.one(address) {
            let values = spec.values.as_ref().map_err(Clone::clone)?;
            spec.letters(&address.to_string()).fill(&spec.schema, Some(values), &mut object);
        }
        Ok(object)
    }

    fn read(&self, address: &Address, arguments: &Object) -> Option<Result<Object, Diagnostic>> {
        let Some(One::Data(data)) = self.one(address) else { return None };
        Some(data.values.as_ref().map_err(Clone::clone).map(|values| {
            let told = data.provider.unseen(&address.kind, &data.given, arguments, ARCHITECTURE);
            let letters = Letters::new(format!("{}/{address}", data.seed));
            letters.read(data.provider.name(), &data.schema, Some(values), arguments, told)
        }))
    }
}

impl Spec {
    fn letters(&self, of: &str) -> Letters {
        Letters::new(format!("{}/{of}", self.seed))
    }
}

impl ResourceSpec for Spec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let mut change = default_plan(&self.schema, before, wanted);
        if let (Change::Create { after }, true) = (&mut change, self.at_plan) {
            let values = self.values.as_ref().map_err(|error| Diagnostics::from(error.clone()))?;
            self.letters(self.name).fill(&self.schema, Some(values), after);
        }
        Ok(change)
    }
}
