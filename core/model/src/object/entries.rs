//! What an object holds, sorted by name: most have a handful of attributes, and those lie side by side; a large one is a tree.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::iter::Map;
use std::ops::Index;
use std::{slice, vec};

use either::Either::{self, Left, Right};

use crate::Value;

/// So many lie side by side. A leaf of a tree has room for 11 whatever it holds, and a plan of 10,000 resources has some 50,000 objects of four.
const FEW: usize = 32;
/// Room is made for so many more at once.
const STEP: usize = 4;

type Entry = (String, Value);
type Named<'a> = (&'a String, &'a Value);
type Changing<'a> = (&'a String, &'a mut Value);

/// All entries in the order of their names.
pub(super) type Iter<'a> = Either<Map<slice::Iter<'a, Entry>, fn(&'a Entry) -> Named<'a>>, btree_map::Iter<'a, String, Value>>;
/// The same, and values may be changed.
pub(super) type IterMut<'a> =
    Either<Map<slice::IterMut<'a, Entry>, fn(&'a mut Entry) -> Changing<'a>>, btree_map::IterMut<'a, String, Value>>;
/// The same, taken out.
pub(super) type IntoIter = Either<vec::IntoIter<Entry>, btree_map::IntoIter<String, Value>>;

/// Values by name, sorted, each name once.
#[derive(Clone)]
pub struct Entries(Held);

#[derive(Clone)]
enum Held {
    /// At most [`FEW`], sorted by name.
    Few(Vec<Entry>),
    Many(BTreeMap<String, Value>),
}

impl Entries {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Few(few) => few.len(),
            Held::Many(many) => many.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match &self.0 {
            Held::Few(few) => place(few, name).ok().map(|at| &few[at].1),
            Held::Many(many) => many.get(name),
        }
    }

    /// The value of that name, which may be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        match &mut self.0 {
            Held::Few(few) => place(few, name).ok().map(|at| &mut few[at].1),
            Held::Many(many) => many.get_mut(name),
        }
    }

    /// Whether there is one of that name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets one; gives back what it was.
    pub fn insert(&mut self, name: String, value: Value) -> Option<Value> {
        let few = match &mut self.0 {
            Held::Few(few) => few,
            Held::Many(many) => return many.insert(name, value),
        };
        match place(few, &name) {
            Ok(at) => Some(std::mem::replace(&mut few[at].1, value)),
            Err(at) if few.len() < FEW => {
                if few.len() == few.capacity() {
                    few.reserve_exact(STEP);
                }
                few.insert(at, (name, value));
                None
            }
            Err(_) => {
                let mut many: BTreeMap<_, _> = std::mem::take(few).into_iter().collect();
                many.insert(name, value);
                self.0 = Held::Many(many);
                None
            }
        }
    }

    /// The value of that name; where there is none, what `make` gives is put there first.
    pub fn get_or_insert_with(&mut self, name: &str, make: impl FnOnce() -> Value) -> &mut Value {
        if !self.contains_key(name) {
            self.insert(name.to_owned(), make());
        }
        self.get_mut(name).expect("it was put there")
    }

    /// Takes one out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        match &mut self.0 {
            Held::Few(few) => place(few, name).ok().map(|at| few.remove(at).1),
            Held::Many(many) => many.remove(name),
        }
    }

    /// Takes out all that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(&String, &mut Value) -> bool) {
        match &mut self.0 {
            Held::Few(few) => few.retain_mut(|(name, value)| keep(name, value)),
            Held::Many(many) => many.retain(keep),
        }
    }

    /// Takes out all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0 {
            Held::Few(few) => Left(few.iter().map(|(name, value)| (name, value))),
            Held::Many(many) => Right(many.iter()),
        }
    }

    /// All of them, and values may be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_> {
        match &mut self.0 {
            Held::Few(few) => Left(few.iter_mut().map(|(name, value)| (&*name, value))),
            Held::Many(many) => Right(many.iter_mut()),
        }
    }

    /// Their names, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &String> + ExactSizeIterator + Clone {
        self.iter().map(|(name, _)| name)
    }

    /// Their values, in the order of their names.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Their values, which may be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The first by name.
    pub fn first_key_value(&self) -> Option<(&String, &Value)> {
        self.iter().next()
    }
}

/// Where it is, or would be.
fn place(few: &[Entry], name: &str) -> Result<usize, usize> {
    few.binary_search_by(|(other, _)| other.as_str().cmp(name))
}

impl Default for Entries {
    fn default() -> Self {
        Self(Held::Few(Vec::new()))
    }
}

impl From<BTreeMap<String, Value>> for Entries {
    fn from(entries: BTreeMap<String, Value>) -> Self {
        Self(if entries.len() > FEW { Held::Many(entries) } else { Held::Few(entries.into_iter().collect()) })
    }
}

impl FromIterator<(String, Value)> for Entries {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Self {
        let mut entries: Vec<Entry> = entries.into_iter().collect();
        if entries.len() > FEW {
            return BTreeMap::from_iter(entries).into();
        }
        if !entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            // Of one name the last one counts.
            entries.reverse();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.dedup_by(|(later, _), (kept, _)| later == kept);
        }
        entries.shrink_to_fit();
        Self(Held::Few(entries))
    }
}

impl Extend<(String, Value)> for Entries {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, entries: I) {
        for (name, value) in entries {
            self.insert(name, value);
        }
    }
}

impl IntoIterator for Entries {
    type Item = (String, Value);
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        match self.0 {
            Held::Few(few) => Left(few.into_iter()),
            Held::Many(many) => Right(many.into_iter()),
        }
    }
}

impl<'a> IntoIterator for &'a Entries {
    type Item = Named<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Index<&str> for Entries {
    type Output = Value;

    /// # Panics
    /// Where there is none of that name.
    fn index(&self, name: &str) -> &Value {
        self.get(name).expect("no entry of that name")
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(entries: &Entries) -> Vec<&str> {
        entries.keys().map(String::as_str).collect()
    }

    /// Does everything to both; they must tell the same of themselves at each step, on both sides of [`FEW`].
    #[test]
    fn few_and_many_are_what_a_tree_is() {
        let (mut entries, mut tree) = (Entries::default(), BTreeMap::new());
        // An order that is not that of the names, with names that come twice.
        for round in 0..FEW as i64 * 4 {
            let name = format!("n{}", round * 7 % (FEW as i64 * 2 + 1));
            assert_eq!(entries.get(&name), tree.get(&name), "{name}");
            assert_eq!(entries.insert(name.clone(), round.into()), tree.insert(name, round.into()));
            if round % 5 == 0 {
                let gone = format!("n{}", round % 11);
                assert_eq!(entries.remove(&gone), tree.remove(&gone), "{gone}");
            }
            assert!(entries.iter().eq(tree.iter()) && entries.len() == tree.len(), "{entries:?}");
            assert!(entries.iter().rev().eq(tree.iter().rev()) && entries.iter_mut().eq(tree.iter_mut()));
            assert_eq!(entries, tree.clone().into());
            assert_eq!(entries, tree.clone().into_iter().rev().collect());
        }
        assert!(entries.len() > FEW);
        entries.retain(|_, v| v.as_i64().is_some_and(|n| n % 3 == 0));
        tree.retain(|_, v: &mut Value| v.as_i64().is_some_and(|n| n % 3 == 0));
        assert!(entries.len() < FEW && entries == tree.clone().into(), "a tree that became small");
        assert!(entries.into_iter().eq(tree));
    }

    #[test]
    fn of_one_name_the_last_counts_however_it_comes() {
        let twice = [("b", 1i64), ("a", 2), ("b", 3), ("c", 4), ("a", 5)].map(|(n, v)| (n.to_owned(), Value::from(v)));
        let mut one_by_one = Entries::default();
        one_by_one.extend(twice.clone());
        let at_once = Entries::from_iter(twice);
        assert_eq!(at_once, one_by_one);
        assert_eq!((names(&at_once), at_once["a"].as_i64(), at_once["b"].as_i64()), (vec!["a", "b", "c"], Some(5), Some(3)));
    }

    #[test]
    fn what_is_missing_is_put_there_once() {
        let mut entries = Entries::default();
        *entries.get_or_insert_with("a", || 1i64.into()) = 2i64.into();
        assert_eq!(entries.get_or_insert_with("a", || 1i64.into()).as_i64(), Some(2));
        entries.clear();
        assert!(entries.is_empty() && entries.first_key_value().is_none());
    }
}
