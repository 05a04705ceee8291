//! Conversion of values to types, and the one type that several have in common.

use std::collections::BTreeMap;

use crate::filled::filled;
use crate::misfit::{misfit, of_elements};
use crate::{Kind, Object, ObjectAttribute, Type, Unknown, Value, unify};

/// Why a value does not become a type. Never quotes the value: it may be secret.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConvertError {
    /// The kinds don't go together.
    #[error("{wanted} required, but have {found}")]
    Wrong {
        /// The wanted type.
        wanted: String,
        /// What it is.
        found: String,
    },
    /// A part of it does not fit.
    #[error("{place}: {cause}")]
    Inside {
        /// `attribute "a"`, `element 3`
        place: String,
        /// What is wrong there.
        cause: Box<ConvertError>,
    },
    /// An object lacks attributes.
    #[error("{}", missing_text(.0))]
    Missing(Vec<String>),
    /// Elements have no type in common.
    #[error("all elements must have the same type")]
    Mixed,
}

fn missing_text(names: &[String]) -> String {
    let list = names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(" and ");
    if names.len() == 1 { format!("attribute {list} is required") } else { format!("attributes {list} are required") }
}

fn inside(place: String) -> impl FnOnce(ConvertError) -> ConvertError {
    |cause| ConvertError::Inside { place, cause: Box::new(cause) }
}

/// The value as that type: primitives by their canonical text, tuples to lists and sets, objects to maps; extra object attributes are
/// dropped, missing optional ones filled. Marks stay; an unknown stays unknown with the new type.
///
/// # Errors
/// If it does not fit; says where inside.
pub fn convert(value: &Value, ty: &Type) -> Result<Value, ConvertError> {
    let kind = convert_kind(value, ty)?;
    // A set keeps its marks as one, on the whole.
    let marks = if matches!(kind, Kind::Set(..)) { value.all_marks() } else { value.marks() };
    Ok(Value::from(kind).marked(marks))
}

/// True if the value has that type already, for sure: [`convert`] would give the same one. Cheap, as most values do.
pub fn fits(value: &Value, ty: &Type) -> bool {
    match (&value.kind, ty) {
        (_, Type::Any) | (Kind::Bool(_), Type::Bool) | (Kind::Number(_), Type::Number) | (Kind::String(_), Type::String) => true,
        (Kind::Null(own), _) => is_value_type(own, ty),
        (Kind::Unknown(unknown), _) => unknown.ty == *ty && ty.is_primitive(),
        (Kind::List(own, items), Type::List(element)) => {
            is_value_type(own, element) && !own.has_any() && items.iter().all(|v| fits(v, element))
        }
        (Kind::Map(own, entries), Type::Map(element)) => {
            is_value_type(own, element) && !own.has_any() && entries.values().all(|v| fits(v, element))
        }
        (Kind::Object(entries), Type::Object(attributes)) => {
            let fit = |((name, value), (wanted, attribute)): ((&String, &Value), (&String, &ObjectAttribute))| {
                name == wanted && !(attribute.optional && value.is_null()) && fits(value, &attribute.ty)
            };
            entries.len() == attributes.len() && entries.iter().zip(attributes).all(fit)
        }
        _ => false,
    }
}

/// True if a value of the constraint `ty` has the type `own`: the same without optional markers and defaults.
pub(crate) fn is_value_type(own: &Type, ty: &Type) -> bool {
    match (own, ty) {
        (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) | (Type::Map(a), Type::Map(b)) => is_value_type(a, b),
        (Type::Tuple(a), Type::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_value_type(a, b)),
        (Type::Object(a), Type::Object(b)) => {
            let is_same = |((n, a), (m, b)): ((&String, &ObjectAttribute), (&String, &ObjectAttribute))| {
                n == m && !a.optional && a.default.is_none() && is_value_type(&a.ty, &b.ty)
            };
            a.len() == b.len() && a.iter().zip(b).all(is_same)
        }
        (a, b) => a == b,
    }
}

fn convert_kind(value: &Value, ty: &Type) -> Result<Kind, ConvertError> {
    let wrong = || ConvertError::Wrong { wanted: ty.to_string(), found: value.ty().word().to_owned() };
    Ok(match (&value.kind, ty) {
        (kind, Type::Any) => kind.clone(),
        (Kind::Null(own), _) => {
            can(misfit(own, ty))?;
            Kind::Null(without_defaults(&filled(own, ty)))
        }
        (Kind::Unknown(u), _) => convert_unknown(u, ty)?,
        (Kind::Bool(b), Type::Bool) => Kind::Bool(*b),
        (Kind::Number(n), Type::Number) => Kind::Number(n.clone()),
        (Kind::String(s), Type::String) => Kind::String(s.clone()),
        (Kind::Bool(b), Type::String) => Kind::String(b.to_string()),
        (Kind::Number(n), Type::String) => Kind::String(n.to_string()),
        (Kind::String(s), Type::Bool) => match s.as_str() {
            "true" | "1" => Kind::Bool(true),
            "false" | "0" => Kind::Bool(false),
            _ => return Err(wrong()),
        },
        (Kind::String(s), Type::Number) => Kind::Number(s.parse().map_err(|()| wrong())?),
        // Elements that are not known yet may turn out to be equal, so even their number is open.
        (Kind::Set(own, items), Type::List(element)) if items.len() > 1 && !value.is_wholly_known() => {
            Kind::Unknown(Box::new(Unknown::of(Type::list(without_defaults(&filled(own, element))))))
        }
        // Without elements, only the old type tells what they would be.
        (Kind::List(own, items) | Kind::Set(own, items), Type::List(element)) if items.is_empty() => {
            can(of_elements(own, element))?;
            Kind::List(value_type(filled(own, element)), Vec::new())
        }
        (Kind::List(own, items) | Kind::Set(own, items), Type::Set(element)) if items.is_empty() => {
            can(of_elements(own, element))?;
            Value::set(value_type(filled(own, element)), Vec::new()).kind
        }
        (Kind::Map(own, entries), Type::Map(element)) if entries.is_empty() => {
            can(of_elements(own, element))?;
            Kind::Map(value_type(filled(own, element)), Object::new())
        }
        (Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items), Type::List(element)) => {
            let (element, items) = convert_elements(items, element)?;
            Kind::List(element, items)
        }
        (Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items), Type::Set(element)) => {
            let (element, items) = convert_elements(items, element)?;
            Value::set(element, items).kind
        }
        (Kind::List(_, items) | Kind::Tuple(items), Type::Tuple(types)) if items.len() == types.len() => Kind::Tuple(
            items
                .iter()
                .zip(types)
                .enumerate()
                .map(|(i, (v, t))| convert(v, t).map_err(inside(format!("element {i}"))))
                .collect::<Result<_, _>>()?,
        ),
        (Kind::Map(_, entries) | Kind::Object(entries), Type::Map(element)) => {
            let wanted = if **element == Type::Any { beside_null(entries)? } else { (**element).clone() };
            let (element, items) = convert_alike(entries.values(), &wanted, |at| {
                let name = entries.keys().nth(at).map_or("", String::as_str);
                format!("element \"{name}\"")
            })?;
            Kind::Map(element, entries.keys().cloned().zip(items).collect())
        }
        (Kind::Map(_, entries) | Kind::Object(entries), Type::Object(attributes)) => convert_object(entries, attributes)?,
        _ => return Err(wrong()),
    })
}

fn convert_elements(items: &[Value], element: &Type) -> Result<(Type, Vec<Value>), ConvertError> {
    if *element == Type::Any && has_open_null(items.iter()) {
        return Err(ConvertError::Mixed);
    }
    convert_alike(items, element, |at| format!("element {at}"))
}

/// True if all is known, and a null without a type stands beside structures: it takes the type of numbers and strings, but not that of these.
fn has_open_null<'a>(items: impl Iterator<Item = &'a Value> + Clone) -> bool {
    let is_structure = |v: &Value| !v.ty().is_primitive() && v.ty() != Type::Any;
    let is_bare_null = |v: &Value| matches!(v.kind, Kind::Null(Type::Any));
    items.clone().any(is_bare_null) && items.clone().any(is_structure) && items.clone().all(Value::is_wholly_known)
}

/// What the entries of a map of `any` have to become. As in Terraform: where a null leaves that open each stays what it is, so that all others
/// must be of one type already, unless a collection among them is what all become.
fn beside_null(entries: &Object) -> Result<Type, ConvertError> {
    if !has_open_null(entries.values()) {
        return Ok(Type::Any);
    }
    let types: Vec<Type> = entries.values().map(Value::ty).collect();
    let common = unify(&types).ok_or(ConvertError::Mixed)?;
    let mut others = types.iter().filter(|t| **t != Type::Any);
    let first = others.next();
    if common == Type::Any && others.any(|t| Some(t) != first) { Err(ConvertError::Mixed) } else { Ok(common) }
}

/// Elements of a collection, all of one type, and that type: the wanted one, or what they have in common where it holds `any`. First each
/// becomes what is wanted, since only that says which attributes may be missing and what stands for them. `place` names one of them.
fn convert_alike<'a>(
    items: impl IntoIterator<Item = &'a Value>,
    wanted: &Type,
    place: impl Fn(usize) -> String,
) -> Result<(Type, Vec<Value>), ConvertError> {
    let within = |(at, v): (usize, &Value), ty: &Type| convert(v, ty).map_err(|cause| inside(place(at))(cause));
    let items: Vec<Value> = items.into_iter().enumerate().map(|item| within(item, wanted)).collect::<Result<_, _>>()?;
    if !wanted.has_any() || items.is_empty() {
        return Ok((value_type(wanted.clone()), items));
    }
    // A null without a type takes that of what is beside it.
    let types: Vec<Type> = items.iter().map(Value::ty).filter(|t| *t != Type::Any).collect();
    let to_common = |items: &[Value], types: &[Type]| {
        let common = unify(types).ok_or(ConvertError::Mixed)?;
        let items = items.iter().enumerate().map(|item| within(item, &common)).collect::<Result<Vec<_>, _>>()?;
        Ok((common, items))
    };
    let (common, items) = to_common(&items, &types)?;
    if !common.has_any() {
        return Ok((common, items));
    }
    // Where it is left open what they become, each has become what it is: these may have more in common.
    let (common, items) = to_common(&items, &items.iter().map(Value::ty).collect::<Vec<_>>())?;
    let is_alike = !common.has_any() || items.iter().all(|v| v.ty() == items[0].ty());
    if is_alike { Ok((common, items)) } else { Err(ConvertError::Mixed) }
}

/// The type of values under a constraint.
pub(crate) fn value_type(constraint: Type) -> Type {
    if is_value_type(&constraint, &constraint) { constraint } else { without_defaults(&constraint) }
}

/// Optional markers and defaults belong to constraints, not to the types of values.
fn without_defaults(ty: &Type) -> Type {
    match ty {
        Type::List(t) => Type::list(without_defaults(t)),
        Type::Set(t) => Type::set(without_defaults(t)),
        Type::Map(t) => Type::map(without_defaults(t)),
        Type::Tuple(ts) => Type::Tuple(ts.iter().map(without_defaults).collect()),
        Type::Object(a) => Type::Object(a.iter().map(|(n, a)| (n.clone(), ObjectAttribute::required(without_defaults(&a.ty)))).collect()),
        other => other.clone(),
    }
}

fn convert_object(entries: &Object, wanted: &BTreeMap<String, ObjectAttribute>) -> Result<Kind, ConvertError> {
    let missing: Vec<_> = wanted.iter().filter(|(n, a)| !a.optional && !entries.contains_key(n)).map(|(n, _)| n.clone()).collect();
    if !missing.is_empty() {
        return Err(ConvertError::Missing(missing));
    }
    let mut out = Object::new();
    for (name, attribute) in wanted {
        let given = entries.get(name).filter(|v| !(attribute.optional && v.is_null()));
        let value = match (given, &attribute.default) {
            (Some(v), _) => v.clone(),
            (None, Some(default)) => (**default).clone(),
            (None, None) => Value::null(Type::Any),
        };
        out.insert(name.clone(), convert(&value, &attribute.ty).map_err(inside(format!("attribute \"{name}\"")))?);
    }
    Ok(Kind::Object(out))
}

/// Nothing, or why it can't be.
fn can(misfit: Option<ConvertError>) -> Result<(), ConvertError> {
    misfit.map_or(Ok(()), Err)
}

fn convert_unknown(unknown: &Unknown, ty: &Type) -> Result<Kind, ConvertError> {
    can(misfit(&unknown.ty, ty))?;
    let ty = if ty.has_any() && unknown.ty != Type::Any { filled(&unknown.ty, ty) } else { ty.clone() };
    let same = unknown.ty == ty;
    // An object has each of its attributes, also those that were no keys of a map; a number is no text as long.
    let is_sized = match (&unknown.ty, &ty) {
        (Type::List(_), Type::List(_) | Type::Set(_)) | (Type::Set(_), Type::List(_) | Type::Set(_)) | (Type::Map(_), Type::Map(_)) => true,
        _ => same,
    };
    Ok(Kind::Unknown(Box::new(Unknown {
        ty: without_defaults(&ty),
        not_null: unknown.not_null,
        prefix: unknown.prefix.clone().filter(|_| same),
        min_length: unknown.min_length.filter(|_| is_sized && (!matches!(ty, Type::Set(_)) || same)),
        max_length: unknown.max_length.filter(|_| is_sized),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, ty: &Type, expected: &str) {
        let text = convert(&value, ty).map_or_else(|e| format!("ERROR {e}"), |v| format!("{v:?}"));
        assert_eq!(text, expected, "{ty}");
    }

    #[test]
    fn values_convert_as_the_language_says() {
        let mixed = Value::tuple(vec![1i64.into(), "a".into(), true.into()]);
        check(mixed.clone(), &Type::list(Type::Any), r#"list["1", "a", "true"]"#);
        check(mixed, &Type::set(Type::Any), r#"set["1", "a", "true"]"#);
        check("1".into(), &Type::Bool, "true");
        check(Value::null(Type::Any), &Type::list(Type::String), "null(list(string))");
        check(Value::null(Type::Bool), &Type::String, "null(string)");
        check(Value::null(Type::Bool), &Type::Number, "ERROR number required, but have bool");
        check(Value::unknown(Type::list(Type::Bool)), &Type::list(Type::Number), "ERROR the elements: number required, but have bool");
        check(1i64.into(), &Type::Bool, "ERROR bool required, but have number");
        check("0x10".into(), &Type::Number, "ERROR number required, but have string");
        check(Value::object([("a", 1i64.into())]), &Type::object([("b", Type::String)]), r#"ERROR attribute "b" is required"#);
        check(
            Value::object([("a", Value::tuple(vec![]))]),
            &Type::map(Type::String),
            r#"ERROR element "a": string required, but have tuple"#,
        );
    }

    #[test]
    fn what_is_said_to_fit_stays_as_it_is() {
        let optional = Type::Object([("x".to_owned(), ObjectAttribute::optional(Type::String))].into());
        let plain = Type::object([("x", Type::String)]);
        let types = [Type::String, Type::Bool, Type::Any, optional, plain];
        let types: Vec<Type> =
            types.iter().flat_map(|t| [t.clone(), Type::list(t.clone()), Type::set(t.clone()), Type::map(t.clone())]).collect();
        let mut values: Vec<Value> = vec!["a".into(), true.into(), 1i64.into(), Value::object([("x", "a".into())])];
        values.extend(types.iter().flat_map(|t| [Value::null(t.clone()), Value::unknown(t.clone()), Value::unknown_not_null(t.clone())]));
        values.push(Value::object([("x", Value::null(Type::String))]));
        for ty in &types {
            let items = values.iter().filter_map(|v| convert(v, ty).ok());
            values.extend(
                items
                    .flat_map(|v| [Value::list(ty.clone(), vec![v.clone()]), Value::map(ty.clone(), Object::from([("k".to_owned(), v)]))])
                    .collect::<Vec<_>>(),
            );
        }
        let mut fitting = 0;
        for (value, ty) in values.iter().flat_map(|v| types.iter().map(move |t| (v, t))).filter(|(v, t)| fits(v, t)) {
            assert_eq!(convert(value, ty).as_ref(), Ok(value), "{ty}");
            fitting += 1;
        }
        assert!(fitting > 100, "{fitting}");
    }

    #[test]
    fn optional_attributes_are_filled_deep() {
        let inner = Type::Object(BTreeMap::from([
            ("x".to_owned(), ObjectAttribute::optional(Type::String)),
            ("y".to_owned(), ObjectAttribute { ty: Type::Bool, optional: true, default: Some(Box::new(true.into())) }),
        ]));
        let value = Value::tuple(vec![Value::object([("y", Value::null(Type::Any))]), Value::object([("y", "false".into())])]);
        check(value, &Type::list(inner), r#"list[{"x": null(string), "y": true}, {"x": null(string), "y": false}]"#);
    }

    #[test]
    fn elements_have_no_optional_attributes_in_their_type() {
        let element = Type::Object([("x".to_owned(), ObjectAttribute::optional(Type::String))].into());
        let plain = Type::object([("x", Type::String)]);
        for (given, wanted, own) in [
            (Value::tuple(vec![Value::object([])]), Type::list(element.clone()), Type::list(plain.clone())),
            (Value::tuple(vec![]), Type::set(element.clone()), Type::set(plain.clone())),
            (Value::object([("a", Value::object([]))]), Type::map(element.clone()), Type::map(plain.clone())),
            (Value::tuple(vec![Value::tuple(vec![])]), Type::list(Type::list(element.clone())), Type::list(Type::list(plain.clone()))),
        ] {
            let value = convert(&given, &wanted).unwrap();
            assert_eq!(value.ty(), own);
            assert_eq!(convert(&value, &wanted).unwrap(), value);
        }
    }

    #[test]
    fn optional_attributes_are_filled_beside_any() {
        let none = ObjectAttribute { ty: Type::Any, optional: true, default: Some(Box::new(Value::object([]))) };
        let inner = Type::Object(BTreeMap::from([
            ("c".to_owned(), none),
            ("m".to_owned(), ObjectAttribute::optional(Type::map(Type::Any))),
            ("n".to_owned(), ObjectAttribute::optional(Type::String)),
        ]));
        let value = Value::object([("a", Value::object([("n", 1i64.into())])), ("b", Value::object([]))]);
        check(
            value.clone(),
            &Type::map(inner.clone()),
            r#"map{"a": {"c": {}, "m": null(map(any)), "n": "1"}, "b": {"c": {}, "m": null(map(any)), "n": null(string)}}"#,
        );
        check(
            Value::tuple(vec![value]),
            &Type::list(Type::map(inner)),
            r#"list[map{"a": {"c": {}, "m": null(map(any)), "n": "1"}, "b": {"c": {}, "m": null(map(any)), "n": null(string)}}]"#,
        );
        check(Value::tuple(vec![1i64.into(), Value::tuple(vec![])]), &Type::list(Type::Any), "ERROR all elements must have the same type");
    }
}
