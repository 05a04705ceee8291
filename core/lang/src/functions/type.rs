//! `type`

use std::fmt::Write as _;

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "type",
    doc: "The type of the value, in words; for trying things out in the console.",
    parameters: &[Parameter::any("value").null().unknown().marked()],
    body: Some(|a| {
        let mut words = String::new();
        write(&a.value(0).ty(), 0, &mut words);
        Ok(words.into())
    }),
    #[cfg(test)]
    rows: &[
        ("type([1,\"a\"])", "\"tuple([\\n    number,\\n    string,\\n])\""),
        ("type({a=1})", "\"object({\\n    a: number,\\n})\""),
        ("type([[1],{}])", "\"tuple([\\n    tuple([\\n        number,\\n    ]),\\n    object({}),\\n])\""),
        ("type(tomap({a=[1]}))", "\"map(\\n    tuple([\\n        number,\\n    ]),\\n)\""),
        ("type(tolist([tolist([1])]))", "\"list(list(number))\""),
        ("type(toset([]))", "\"set(dynamic)\""),
        ("type([])", "\"tuple([])\""),
        ("type(null)", "\"dynamic\""),
        ("type(u.list)", "\"list(string)\""),
        ("type(sensitive(1))", "\"number\""),
        ("type({a=null,b=sensitive(1)})", "\"object({\\n    a: dynamic,\\n    b: number,\\n})\""),
    ],
    ..Function::BASE
};

/// How far the parts of a type are moved in.
const INDENT: usize = 4;

/// As Terraform's console lays it out: a line for each part of a tuple or an object, and around one that is in a collection.
fn write(ty: &Type, indent: usize, out: &mut String) {
    match ty {
        Type::Any | Type::Bool | Type::Number | Type::String => out.push_str(ty.word()),
        Type::List(element) | Type::Set(element) | Type::Map(element) => {
            let _ = write!(out, "{}(", ty.word());
            if matches!(**element, Type::Tuple(_) | Type::Object(_)) {
                lines(std::iter::once((String::new(), &**element)), indent, out);
            } else {
                write(element, indent, out);
            }
            out.push(')');
        }
        Type::Tuple(types) => {
            out.push_str("tuple([");
            lines(types.iter().map(|ty| (String::new(), ty)), indent, out);
            out.push_str("])");
        }
        Type::Object(attributes) => {
            out.push_str("object({");
            lines(attributes.iter().map(|(name, attribute)| (format!("{name}: "), &attribute.ty)), indent, out);
            out.push_str("})");
        }
    }
}

/// Parts, each with what stands before it, on lines of their own; nothing for none.
fn lines<'t>(parts: impl Iterator<Item = (String, &'t Type)>, indent: usize, out: &mut String) {
    let count = out.len();
    for (name, ty) in parts {
        let _ = write!(out, "\n{:width$}{name}", "", width = indent + INDENT);
        write(ty, indent + INDENT, out);
        out.push(',');
    }
    if out.len() > count {
        let _ = write!(out, "\n{:indent$}", "");
    }
}
