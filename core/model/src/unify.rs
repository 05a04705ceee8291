//! The one type that several convert to, as in Terraform: which of them it is, or which new one is made of them.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::types::{ObjectAttribute, Type};

/// So many types may be looked at before it is said that they have none in common: what is nested deeply is looked at again and again.
const MOST: usize = 20_000_000;
/// Of more types than these, those that are there already are left out first.
const MANY: usize = 64;

/// The one type all of these convert to: what meets a string becomes one, tuples become lists and objects maps where they differ. `any` among them is a
/// null without a type, or nothing that is known yet: it becomes what the others are, unless these would have to be made something new for that. Then,
/// and where the others have nothing in common, the type is `any` too, and each keeps its own.
pub fn unify(types: &[Type]) -> Option<Type> {
    Search { left: Cell::new(MOST) }.unify(types)
}

/// One search for a type.
struct Search {
    /// How many types may still be looked at.
    left: Cell<usize>,
}

impl Search {
    fn spend(&self, types: usize) -> Option<()> {
        self.left.set(self.left.get().checked_sub(types + 1)?);
        Some(())
    }

    /// See [`unify`].
    fn unify(&self, types: &[Type]) -> Option<Type> {
        self.spend(types.len())?;
        let Some(first) = types.first() else { return Some(Type::Any) };
        if types.iter().all(|t| t == first) {
            return Some(first.clone());
        }
        let distinct;
        let types = if types.len() > MANY {
            distinct = once_each(types);
            distinct.as_slice()
        } else {
            types
        };
        let of = |is: fn(&Type) -> bool| types.iter().filter(|t| is(t)).count();
        let (open, all) = (of(|t| *t == Type::Any), types.len());
        let [maps, lists, sets] =
            [of(|t| matches!(t, Type::Map(_))), of(|t| matches!(t, Type::List(_))), of(|t| matches!(t, Type::Set(_)))];
        let [objects, tuples] = [of(|t| matches!(t, Type::Object(_))), of(|t| matches!(t, Type::Tuple(_)))];
        for (kind, make) in [(maps, Type::map as fn(Type) -> Type), (lists, Type::list), (sets, Type::set)] {
            if kind > 0 && kind + open == all {
                return if open > 0 { Some(Type::Any) } else { self.unify(&elements(types)).map(make) };
            }
        }
        for (kind, structures) in [(maps, objects), (lists, tuples)] {
            // Structures often are collections in disguise.
            if kind > 0
                && kind + structures + open == all
                && let Some(found) = self.as_collections(types)
            {
                return Some(found);
            }
        }
        for (kind, join) in [(objects, Self::join_objects as fn(&Self, &[Type]) -> Option<Type>), (tuples, Self::join_tuples)] {
            if kind > 0 && kind + open == all {
                return if open > 0 { Some(Type::Any) } else { join(self, types) };
            }
        }
        if objects > 0 && tuples > 0 {
            return None;
        }
        preferred(types).into_iter().find(|wanted| types.iter().all(|t| self.converts(t, wanted))).cloned()
    }

    /// The structures among them as one collection, and that with the others.
    fn as_collections(&self, types: &[Type]) -> Option<Type> {
        let is_structure = |t: &&Type| matches!(t, Type::Object(_) | Type::Tuple(_));
        let structures: Vec<Type> = types.iter().filter(is_structure).cloned().collect();
        let one = self.collection(&structures)?;
        let others = types.iter().map(|t| if is_structure(&t) { one.clone() } else { t.clone() });
        self.unify(&others.collect::<Vec<_>>()).filter(|t| matches!(t, Type::Map(_) | Type::List(_)))
    }

    /// Objects as a map, tuples as a list, of what all their parts have in common.
    fn collection(&self, structures: &[Type]) -> Option<Type> {
        let mut parts = Vec::new();
        for structure in structures {
            match structure {
                Type::Tuple(types) => parts.extend(types.iter().cloned()),
                Type::Object(attributes) => parts.extend(attributes.values().map(|a| a.ty.clone())),
                _ => return None,
            }
        }
        // Of what is empty nothing can be said: it becomes what is beside it.
        if parts.is_empty() {
            return None;
        }
        let one = self.unify(&parts)?;
        let made = if matches!(structures.first(), Some(Type::Object(_))) { Type::map(one) } else { Type::list(one) };
        structures.iter().all(|s| self.converts(s, &made)).then_some(made)
    }

    fn join_tuples(&self, types: &[Type]) -> Option<Type> {
        let parts: Vec<&Vec<Type>> = types.iter().filter_map(|t| if let Type::Tuple(parts) = t { Some(parts) } else { None }).collect();
        let length = parts.first()?.len();
        if parts.iter().any(|p| p.len() != length) {
            return self.collection(types);
        }
        let across = |at: usize| self.unify(&parts.iter().map(|p| p[at].clone()).collect::<Vec<_>>());
        let joined = Type::Tuple((0..length).map(across).collect::<Option<_>>()?);
        if types.iter().all(|t| self.converts(t, &joined)) { Some(joined) } else { self.collection(types) }
    }

    fn join_objects(&self, types: &[Type]) -> Option<Type> {
        let parts: Vec<&BTreeMap<String, ObjectAttribute>> =
            types.iter().filter_map(|t| if let Type::Object(parts) = t { Some(parts) } else { None }).collect();
        let first = parts.first()?;
        if parts.iter().any(|p| !p.keys().eq(first.keys())) {
            return self.collection(types);
        }
        let across = |name: &String| self.unify(&parts.iter().map(|p| p[name].ty.clone()).collect::<Vec<_>>());
        let joined = first.keys().map(|name| Some((name.clone(), ObjectAttribute::required(across(name)?)))).collect::<Option<_>>()?;
        let joined = Type::Object(joined);
        if types.iter().all(|t| self.converts(t, &joined)) { Some(joined) } else { self.collection(types) }
    }

    /// Some values of the one type convert to the other.
    fn converts(&self, from: &Type, to: &Type) -> bool {
        use Type::{Any, List, Map, Object, Set, Tuple};
        if from == to {
            return true;
        }
        if self.spend(0).is_none() {
            return false;
        }
        let all = |parts: &mut dyn Iterator<Item = &Type>, element: &Type| {
            let parts: Vec<Type> = parts.cloned().collect();
            if *element != Any {
                return parts.iter().all(|t| self.converts(t, element));
            }
            match self.unify(&parts) {
                Some(Any) => parts.iter().all(|t| *t == Any),
                common => common.is_some(),
            }
        };
        match (from, to) {
            (Any, _) | (_, Any) => true,
            (a, b) if a.is_primitive() && b.is_primitive() => *a == Type::String || *b == Type::String,
            (List(a) | Set(a), List(b) | Set(b)) | (Map(a), Map(b)) => self.converts(a, b),
            (Tuple(parts), List(element) | Set(element)) => all(&mut parts.iter(), element),
            // As in Terraform: a map may leave open what its elements are; a list may not.
            (Object(parts), Map(element)) if **element == Any => {
                self.unify(&parts.values().map(|a| a.ty.clone()).collect::<Vec<_>>()).is_some()
            }
            (Object(parts), Map(element)) => all(&mut parts.values().map(|a| &a.ty), element),
            (Map(element), Object(parts)) => parts.values().all(|a| self.converts(element, &a.ty)),
            (Tuple(a), Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.converts(a, b)),
            (Object(a), Object(b)) => b.iter().all(|(name, b)| a.get(name).map_or(b.optional, |a| self.converts(&a.ty, &b.ty))),
            _ => false,
        }
    }
}

/// Each of them once, as they come.
fn once_each(types: &[Type]) -> Vec<Type> {
    let mut distinct: Vec<Type> = Vec::new();
    for ty in types {
        if !distinct.contains(ty) {
            distinct.push(ty.clone());
        }
    }
    distinct
}

/// The types of the elements of collections.
fn elements(types: &[Type]) -> Vec<Type> {
    types
        .iter()
        .filter_map(|t| match t {
            Type::List(e) | Type::Set(e) | Type::Map(e) => Some((**e).clone()),
            _ => None,
        })
        .collect()
}

/// Those that are more general first; else as they came.
fn preferred(types: &[Type]) -> Vec<&Type> {
    let is_before = |a: &Type, b: &Type| generality(a, b) == Ordering::Less;
    let mut waits: Vec<usize> = types.iter().map(|t| types.iter().filter(|other| is_before(other, t)).count()).collect();
    let mut order: Vec<usize> = (0..types.len()).filter(|i| waits[*i] == 0).collect();
    let mut at = 0;
    while let Some(&next) = order.get(at) {
        at += 1;
        for i in 0..types.len() {
            if is_before(&types[next], &types[i]) {
                waits[i] -= 1;
                if waits[i] == 0 {
                    order.push(i);
                }
            }
        }
    }
    order.into_iter().map(|i| &types[i]).collect()
}

/// `Less`: the first is more general, as far as one of the two can be what both become.
fn generality(a: &Type, b: &Type) -> Ordering {
    use Type::{Any, List, Map, Object, Set, Tuple};
    match (a, b) {
        (Any, Any) => Ordering::Equal,
        (Any, _) => Ordering::Greater,
        (_, Any) => Ordering::Less,
        (Type::String, other) if other.is_primitive() && *other != Type::String => Ordering::Less,
        (other, Type::String) if other.is_primitive() && *other != Type::String => Ordering::Greater,
        (List(a), List(b)) | (Set(a), Set(b)) | (Map(a), Map(b)) => generality(a, b),
        (List(_), Tuple(_) | Set(_)) | (Tuple(_), Set(_)) | (Map(_), Object(_)) => Ordering::Less,
        (Tuple(_) | Set(_), List(_)) | (Set(_), Tuple(_)) | (Object(_), Map(_)) => Ordering::Greater,
        (Tuple(a), Tuple(b)) if a.len() == b.len() => all_alike(a.iter().zip(b)),
        (Object(a), Object(b)) if a.keys().eq(b.keys()) => all_alike(a.values().zip(b.values()).map(|(a, b)| (&a.ty, &b.ty))),
        _ => Ordering::Equal,
    }
}

/// One is more general in all in which they differ.
fn all_alike<'a>(pairs: impl Iterator<Item = (&'a Type, &'a Type)>) -> Ordering {
    let mut orders = pairs.map(|(a, b)| generality(a, b)).filter(|o| *o != Ordering::Equal);
    let Some(first) = orders.next() else { return Ordering::Equal };
    if orders.all(|o| o == first) { first } else { Ordering::Equal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_depth_nor_number_is_paid_for_again_and_again() {
        let mut deep = Type::Tuple(vec![Type::Number]);
        for _ in 0..200 {
            deep = Type::Tuple(vec![deep, Type::list(Type::Any)]);
        }
        // Whatever comes of it, it comes.
        let _ = unify(&[deep, Type::list(Type::Any)]);
        let mut many = vec![Type::Bool; 1_000_000];
        many.push(Type::String);
        assert_eq!(unify(&many), Some(Type::String));
        many.push(Type::Number);
        assert_eq!(unify(&many), Some(Type::String));
        many.extend((0..1000).map(|at| Type::object([(format!("a{at}").as_str(), Type::Bool)])));
        assert_eq!(unify(&many), None);
    }
}
