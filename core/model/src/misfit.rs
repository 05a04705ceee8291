//! Which types become others, where there is no value to ask: it is not known yet, null, or has no elements.

use crate::{ConvertError, Type};

/// Why no value of one type becomes one of the other; `None` if one may. Whether a string reads as a number is for the string to say.
pub(crate) fn misfit(own: &Type, wanted: &Type) -> Option<ConvertError> {
    use Type::{Any, Bool, List, Map, Number, Object, Set, String, Tuple};
    match (own, wanted) {
        (Any, _) | (_, Any) | (Bool | Number, String) | (String, Bool | Number) => None,
        (List(own) | Set(own), List(wanted) | Set(wanted)) | (Map(own), Map(wanted)) => of_elements(own, wanted),
        (List(own) | Set(own), Tuple(wanted)) => wanted.iter().find_map(|wanted| of_elements(own, wanted)),
        (Tuple(own), List(wanted) | Set(wanted)) => {
            own.iter().enumerate().find_map(|(i, own)| inside(format!("element {i}"), misfit(own, wanted)))
        }
        (Tuple(own), Tuple(wanted)) if own.len() == wanted.len() => {
            own.iter().zip(wanted).enumerate().find_map(|(i, (own, wanted))| inside(format!("element {i}"), misfit(own, wanted)))
        }
        (Object(own), Map(wanted)) => own.iter().find_map(|(name, own)| inside(format!("element \"{name}\""), misfit(&own.ty, wanted))),
        (Map(own), Object(wanted)) => {
            wanted.iter().find_map(|(name, wanted)| inside(format!("attribute \"{name}\""), misfit(own, &wanted.ty)))
        }
        (Object(own), Object(wanted)) => {
            let missing: Vec<_> = wanted.iter().filter(|(n, a)| !a.optional && !own.contains_key(*n)).map(|(n, _)| n.clone()).collect();
            if !missing.is_empty() {
                return Some(ConvertError::Missing(missing));
            }
            let attribute = |name: &str| format!("attribute \"{name}\"");
            wanted.iter().find_map(|(name, wanted)| inside(attribute(name), misfit(&own.get(name)?.ty, &wanted.ty)))
        }
        (own, wanted) if own == wanted => None,
        (own, wanted) => Some(ConvertError::Wrong { wanted: wanted.to_string(), found: own.word().to_owned() }),
    }
}

/// Why no element becomes one of another collection.
pub(crate) fn of_elements(own: &Type, wanted: &Type) -> Option<ConvertError> {
    inside("the elements".to_owned(), misfit(own, wanted))
}

fn inside(place: String, cause: Option<ConvertError>) -> Option<ConvertError> {
    cause.map(|cause| ConvertError::Inside { place, cause: Box::new(cause) })
}

#[cfg(test)]
mod tests {
    use super::misfit;
    use crate::{ObjectAttribute, Type};

    #[test]
    fn types_become_others_all_the_way_down() {
        let object = Type::object([("a", Type::String)]);
        let optional = Type::Object([("a".to_owned(), ObjectAttribute::optional(Type::String))].into());
        for (own, wanted, expected) in [
            (Type::Number, Type::Bool, "bool required, but have number"),
            (Type::list(Type::Number), Type::set(Type::String), ""),
            (Type::list(object.clone()), Type::list(Type::String), "the elements: string required, but have object"),
            (Type::list(object.clone()), Type::list(Type::Any), ""),
            (
                Type::map(Type::list(Type::Bool)),
                Type::map(Type::list(Type::Number)),
                "the elements: the elements: number required, but have bool",
            ),
            (Type::Tuple(vec![Type::Bool, object.clone()]), Type::list(Type::String), "element 1: string required, but have object"),
            (Type::object([]), object.clone(), "attribute \"a\" is required"),
            (Type::object([]), optional, ""),
            (Type::map(Type::Bool), object, ""),
        ] {
            let found = misfit(&own, &wanted).map_or_else(String::new, |e| e.to_string());
            assert_eq!(found, expected, "{own} to {wanted}");
        }
    }
}
