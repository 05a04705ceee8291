//! Values that expressions see of blocks.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Address, Key, Mode, Object, Presence, Schema, Type, Value};

use crate::config::{Config, Repeat, Repetition};
use crate::eval::unknown;
use crate::evaluator::Evaluator;

/// A list of more instances than these is none that a state really has.
const MOST_INSTANCES: u64 = 1_000_000;

impl Config {
    /// From now on blocks with `count` or `for_each` stand as often as these instances say; where none is of a block, nobody knows how often. For
    /// who asks what is there: the text says what is to come.
    ///
    /// Data sources are in no state; they stay as the text has them.
    pub fn stand_as<'a>(&mut self, there: impl Iterator<Item = &'a Address>) {
        let mut found: BTreeMap<Address, BTreeSet<Key>> = BTreeMap::new();
        for address in there.filter(|address| !address.is_child()) {
            found.entry(address.block()).or_default().extend(address.key.clone());
        }
        for (address, block) in self.blocks.iter_mut().filter(|(address, _)| address.mode == Mode::Managed) {
            block.repetition = match &block.repeat {
                Repeat::None | Repeat::Wrong => continue,
                Repeat::Count(_) => found.get(address).map_or(Repetition::Open, counted),
                Repeat::ForEach(_) => found.get(address).map_or(Repetition::Open, keyed),
            };
        }
    }

    /// The schema of a block.
    pub(crate) fn schema(&self, address: &Address) -> Option<&Schema> {
        match address.mode {
            Mode::Managed => self.registry.resource(&address.kind).map(|entry| entry.schema()),
            Mode::Data => self.registry.data_source(&address.kind).map(|entry| entry.schema),
        }
    }
}

impl Evaluator<'_> {
    /// What a reference to a block without a key is: an object, a list of them by `count`, an object of them by `for_each`. As Terraform has it,
    /// of those that are there: behind the last one of a list nothing stands.
    pub(crate) fn block_value(&self, address: &Address) -> Value {
        let Some(block) = self.config.blocks.get(address) else { return Value::unknown(Type::Any) };
        match &block.repetition {
            Repetition::Single => self.instance(address),
            Repetition::Open => Value::unknown_not_null(Type::Any),
            Repetition::Count(_) => {
                let mut instances: Vec<_> = block.repetition.keys().into_iter().map(|key| address.with_key(key)).collect();
                while instances.pop_if(|last| !self.resolver.is_there(last)).is_some() {}
                Value::tuple(instances.iter().map(|instance| self.instance(instance)).collect())
            }
            Repetition::ForEach(entries) => {
                let addressed = |key: &String| (key.clone(), address.with_key(Some(Key::Name(key.clone()))));
                let instances = entries.keys().map(addressed).filter(|(_, instance)| self.resolver.is_there(instance));
                instances.map(|(key, instance)| (key, self.instance(&instance))).collect::<Object>().into()
            }
        }
    }

    /// True if an instance is no part of what its block is: it is not there, and in a list nothing behind it is.
    pub(crate) fn is_outside(&self, repetition: &Repetition, instance: &Address) -> bool {
        match (repetition, &instance.key) {
            (Repetition::Count(n), Some(Key::Index(own))) => {
                !(*own..*n).any(|i| self.resolver.is_there(&instance.with_key(Some(Key::Index(i)))))
            }
            _ => !self.resolver.is_there(instance),
        }
    }

    /// One instance.
    pub(crate) fn instance(&self, address: &Address) -> Value {
        let value = self.resolver.instance(address);
        if value.is_unknown() { self.unknown_instance(address).marked(value.marks()) } else { value }
    }

    /// An instance of which nothing is known but its type.
    pub(crate) fn unknown_instance(&self, address: &Address) -> Value {
        let key = (address.mode, address.kind.clone());
        if let Some(value) = self.memo.unknown.borrow().get(&key) {
            return value.clone();
        }
        let value = match self.config.schema(address) {
            Some(schema) => unknown_object(schema),
            None => Value::unknown_not_null(Type::Any),
        };
        self.memo.unknown.borrow_mut().insert(key, value.clone());
        value
    }
}

/// Up to the last of these numbers. A state may have one that nobody counts to.
fn counted(keys: &BTreeSet<Key>) -> Repetition {
    let number = |key: &Key| if let Key::Index(number) = key { Some(number.saturating_add(1)) } else { None };
    let count = keys.iter().filter_map(number).max().unwrap_or_default();
    if count <= MOST_INSTANCES { Repetition::Count(count) } else { Repetition::Open }
}

/// With these names, whatever each was made for.
fn keyed(keys: &BTreeSet<Key>) -> Repetition {
    let name = |key: &Key| if let Key::Name(name) = key { Some((name.clone(), unknown())) } else { None };
    Repetition::ForEach(keys.iter().filter_map(name).collect())
}

/// An object of which only names and types are known.
fn unknown_object(schema: &Schema) -> Value {
    let mut object = Object::new();
    for attribute in &schema.attributes {
        let value = match attribute.presence {
            Presence::Required => Value::unknown_not_null(attribute.ty.clone()),
            _ => Value::unknown(attribute.ty.clone()),
        };
        object.insert(attribute.name.to_owned(), value);
    }
    let blocks: BTreeMap<_, _> = schema.blocks.iter().map(|b| (b.name.to_owned(), Value::unknown(b.ty()))).collect();
    object.extend(blocks);
    schema.mark(&mut object);
    object.into()
}
