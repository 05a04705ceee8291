//! Takes what a provider gave back: makes it complete, carries the secret marks over, and compares it with what was asked for.

use karmaform_model::{Address, Diagnostic, Object, Schema, Value, convert, same};

use crate::values::{carry_marks, mark_copies};

/// What a provider gave back, made complete, and what is wrong with it.
pub(crate) fn settled(schema: &Schema, sent: &Object, result: Object, address: &Address) -> (Object, Option<Diagnostic>) {
    let mut object = sent.clone();
    object.extend(result);
    let mut other: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for (name, ty) in schema.attributes.iter().map(|a| (a.name, a.ty.clone())).chain(schema.blocks.iter().map(|b| (b.name, b.ty()))) {
        let value = object.get(name).cloned().unwrap_or_else(|| Value::null(ty.clone()));
        let value = convert(&value, &ty).unwrap_or(value);
        let attribute = schema.attribute(name);
        if !value.is_wholly_known() {
            if attribute.is_none_or(|a| !a.volatile) {
                open.push(name);
            }
            object.insert(name.to_owned(), Value::null(ty));
            continue;
        }
        let is_configured = attribute.is_none_or(|a| a.is_configurable() && a.is_stored());
        let planned = sent.get(name).filter(|v| v.is_wholly_known());
        // How a connection is reached may be told more exactly by the provider; the rest is the user's word.
        if is_configured && planned.is_some_and(|p| !same(Some(p), Some(&value))) {
            other.push(name);
        }
        object.insert(name.to_owned(), value);
    }
    object.retain(|name, _| schema.type_of(name).is_some());
    schema.mark(&mut object);
    carry_marks(sent, &mut object);
    mark_copies(schema, sent, &mut object);
    let list = |names: &[&str]| names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let problem = if !other.is_empty() {
        Some(format!("After the change, {} has another value than was asked for.", list(&other)))
    } else if !open.is_empty() {
        Some(format!("After the change, {} is still not known.", list(&open)))
    } else {
        None
    };
    let problem = problem.map(|p| {
        Diagnostic::error("Provider gave another value", format!("{p} What it gave was recorded. This is a bug of the provider."))
            .at(address)
    });
    (object, problem)
}
