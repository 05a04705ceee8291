//! What type comes of a wanted one that leaves parts open, where there is no value to ask, or none with elements.

use crate::{ObjectAttribute, Type, unify};

/// The wanted type, with the parts of the type that there is where it holds `any`.
pub(crate) fn filled(own: &Type, wanted: &Type) -> Type {
    use Type::{Any, List, Map, Object, Set, Tuple};
    match (own, wanted) {
        (Any, _) => wanted.clone(),
        (_, Any) => own.clone(),
        (List(own) | Set(own), List(wanted)) => Type::list(filled(own, wanted)),
        (List(own) | Set(own), Set(wanted)) => Type::set(filled(own, wanted)),
        (Map(own), Map(wanted)) => Type::map(filled(own, wanted)),
        (Tuple(parts), List(wanted)) => Type::list(filled(&unify(parts).unwrap_or(Any), wanted)),
        (Tuple(parts), Set(wanted)) => Type::set(filled(&unify(parts).unwrap_or(Any), wanted)),
        (Object(parts), Map(wanted)) => {
            let types: Vec<_> = parts.values().map(|a| a.ty.clone()).collect();
            Type::map(filled(&unify(&types).unwrap_or(Any), wanted))
        }
        (Tuple(own), Tuple(wanted)) if own.len() == wanted.len() => Tuple(own.iter().zip(wanted).map(|(o, w)| filled(o, w)).collect()),
        (Object(own), Object(wanted)) => {
            let attribute = |(name, a): (&String, &ObjectAttribute)| {
                let ty = own.get(name).map_or_else(|| a.ty.clone(), |o| filled(&o.ty, &a.ty));
                (name.clone(), ObjectAttribute { ty, ..a.clone() })
            };
            Object(wanted.iter().map(attribute).collect())
        }
        _ => wanted.clone(),
    }
}
