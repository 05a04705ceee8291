//! What the linked providers offer, by name; known without a connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Address, Composite, Driver, Looking, ResourceSpec, Schema, StandIns};

/// All providers and composites of this binary, for who only looks.
#[derive(Clone, Default)]
pub struct Catalog {
    providers: BTreeMap<&'static str, Arc<dyn Looking>>,
    composites: BTreeMap<&'static str, Arc<dyn Composite>>,
    resources: BTreeMap<&'static str, &'static str>,
    data: BTreeMap<&'static str, &'static str>,
    gates: BTreeMap<&'static str, &'static str>,
    stand_ins: Option<Arc<dyn StandIns>>,
}

/// The same, and what acts.
#[derive(Clone, Default)]
pub struct Registry {
    catalog: Arc<Catalog>,
    drivers: BTreeMap<&'static str, Arc<dyn Driver>>,
}

/// A resource type that was found.
#[derive(Clone, Copy)]
pub enum ResourceEntry<'a> {
    /// Of a provider.
    Type(&'a Arc<dyn Looking>, &'a dyn ResourceSpec),
    /// A composite.
    Composite(&'a Arc<dyn Composite>),
}

/// A data source that was found.
#[derive(Clone, Copy)]
pub struct DataEntry<'a> {
    /// Its provider.
    pub driver: &'a Arc<dyn Looking>,
    /// Its schema.
    pub schema: &'a Schema,
}

impl Registry {
    /// Of these. Later ones win where names meet (tests put a fake over the real one).
    pub fn new(drivers: Vec<Arc<dyn Driver>>, composites: Vec<Arc<dyn Composite>>) -> Self {
        let looking = drivers.iter().map(|d| Arc::clone(d) as Arc<dyn Looking>).collect();
        Self { catalog: Arc::new(Catalog::new(looking, composites)), drivers: drivers.into_iter().map(|d| (d.name(), d)).collect() }
    }

    /// The same, in which these answer for the instances that they know.
    #[must_use]
    pub fn with_stand_ins(mut self, stand_ins: Arc<dyn StandIns>) -> Self {
        Arc::make_mut(&mut self.catalog).stand_ins = Some(stand_ins);
        self
    }

    /// The half that only looks.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// What acts, of a provider.
    pub fn driver(&self, name: &str) -> Option<&Arc<dyn Driver>> {
        self.drivers.get(name)
    }

    /// What acts, of all providers, by name.
    pub fn drivers(&self) -> impl Iterator<Item = &Arc<dyn Driver>> {
        self.drivers.values()
    }
}

/// Whoever may act may look.
impl std::ops::Deref for Registry {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        &self.catalog
    }
}

impl Catalog {
    /// Of these; see [`Registry::new`].
    fn new(drivers: Vec<Arc<dyn Looking>>, composites: Vec<Arc<dyn Composite>>) -> Self {
        let mut catalog = Self::default();
        for driver in drivers {
            let name = driver.name();
            catalog.resources.extend(driver.specs().iter().map(|s| (s.name(), name)));
            catalog.data.extend(driver.data_schemas().iter().map(|(d, _)| (*d, name)));
            catalog.gates.extend(driver.gate_schemas().iter().map(|(g, _)| (*g, name)));
            catalog.providers.insert(name, driver);
        }
        catalog.composites.extend(composites.into_iter().map(|c| (c.name(), c)));
        catalog
    }

    /// A provider.
    pub fn provider(&self, name: &str) -> Option<&Arc<dyn Looking>> {
        self.providers.get(name)
    }

    /// All providers, by name.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<dyn Looking>> {
        self.providers.values()
    }

    /// All composites, by name.
    pub fn composites(&self) -> impl Iterator<Item = &Arc<dyn Composite>> {
        self.composites.values()
    }

    /// A composite.
    pub fn composite(&self, name: &str) -> Option<&Arc<dyn Composite>> {
        self.composites.get(name)
    }

    /// A resource type.
    pub fn resource(&self, name: &str) -> Option<ResourceEntry<'_>> {
        if let Some(composite) = self.composites.get(name) {
            return Some(ResourceEntry::Composite(composite));
        }
        let driver = self.providers.get(self.resources.get(name)?)?;
        driver.specs().into_iter().find(|s| s.name() == name).map(|spec| ResourceEntry::Type(driver, spec))
    }

    /// What stands in for single instances.
    pub fn stand_ins(&self) -> Option<&dyn StandIns> {
        self.stand_ins.as_deref()
    }

    /// The type of an instance, which is `of` its kind, unless something stands in for it.
    pub fn at<'a>(&'a self, address: &Address, of: Option<ResourceEntry<'a>>) -> Option<ResourceEntry<'a>> {
        match (of, self.stand_ins().and_then(|s| s.spec(address))) {
            (Some(ResourceEntry::Type(driver, _)), Some(spec)) => Some(ResourceEntry::Type(driver, spec)),
            (of, _) => of,
        }
    }

    /// A data source.
    pub fn data_source(&self, name: &str) -> Option<DataEntry<'_>> {
        let driver = self.providers.get(self.data.get(name)?)?;
        driver.data_schemas().into_iter().find(|(n, _)| *n == name).map(|(_, schema)| DataEntry { driver, schema })
    }

    /// The provider of a gate, and the gate's schema.
    pub fn gate(&self, name: &str) -> Option<DataEntry<'_>> {
        let driver = self.providers.get(self.gates.get(name)?)?;
        driver.gate_schemas().into_iter().find(|(n, _)| *n == name).map(|(_, schema)| DataEntry { driver, schema })
    }

    /// Names of all resource types, sorted; for "did you mean".
    pub fn resource_names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.resources.keys().chain(self.composites.keys()).copied().collect();
        names.sort_unstable();
        names
    }

    /// Names of all data sources, sorted.
    pub fn data_names(&self) -> Vec<&'static str> {
        self.data.keys().copied().collect()
    }
}

impl<'a> ResourceEntry<'a> {
    /// Its schema.
    pub fn schema(&self) -> &'a Schema {
        match self {
            Self::Type(_, spec) => spec.schema(),
            Self::Composite(c) => c.schema(),
        }
    }
}
