//! Steps into a block, checked against its schema.

use karmaform_model::{Address, Schema, Span, Type};

use crate::suggest;
use crate::syntax::{Step, StepKind};

/// What is wrong: where, what, and a hint.
pub(crate) type Problem = (Span, String, Option<String>);

/// Checks the attribute that `steps` start with, and as deep as its type says.
pub(crate) fn check_steps(schema: &Schema, address: &Address, steps: &[Step]) -> Result<(), Problem> {
    let Some((first, rest)) = steps.split_first() else { return Ok(()) };
    let StepKind::Attribute(name) = &first.kind else { return Ok(()) };
    match schema.type_of(name) {
        Some(ty) => check_type(&ty, name, rest),
        None => {
            let names = schema.attributes.iter().map(|a| a.name).chain(schema.blocks.iter().map(|b| b.name));
            let hint = suggest::hint(name, names.clone()).or_else(|| Some(format!("It has {}.", suggest::listed(names))));
            Err((first.span, format!("{address} has no attribute \"{name}\"."), hint))
        }
    }
}

fn check_type(ty: &Type, path: &str, steps: &[Step]) -> Result<(), Problem> {
    let Some((first, rest)) = steps.split_first() else { return Ok(()) };
    match (ty, &first.kind) {
        (Type::Object(attributes), StepKind::Attribute(name)) => match attributes.get(name) {
            Some(attribute) => check_type(&attribute.ty, &format!("{path}.{name}"), rest),
            None => {
                let names = attributes.keys().map(String::as_str);
                let hint = suggest::hint(name, names.clone()).or_else(|| Some(format!("It has {}.", suggest::listed(names))));
                Err((first.span, format!("\"{path}\" has no attribute \"{name}\"."), hint))
            }
        },
        (Type::List(element) | Type::Map(element), StepKind::Index(_) | StepKind::LegacyIndex(_)) => check_type(element, path, rest),
        (Type::Map(element), StepKind::Attribute(name)) => check_type(element, &format!("{path}.{name}"), rest),
        (Type::List(_) | Type::Set(_), StepKind::Attribute(name)) => {
            let hint = format!("Write {path}[0].{name} for one element, {path}[*].{name} for all.");
            Err((first.span, format!("\"{path}\" is a {} and has no attributes of its own.", ty.word()), Some(hint)))
        }
        (Type::Bool | Type::Number | Type::String, StepKind::Attribute(_)) => {
            Err((first.span, format!("\"{path}\" is a {} and has no attributes.", ty.word()), None))
        }
        _ => Ok(()),
    }
}
