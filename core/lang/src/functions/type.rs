//! `type`

use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "type",
    doc: "The type of the value, in words; for trying things out in the console.",
    parameters: &[Parameter::any("value").null().unknown().marked()],
    body: Some(|a| Ok(show(&a.value(0).ty()).into())),
    #[cfg(test)]
    rows: &[
        ("type([1,\"a\"])", "\"tuple([number, string])\""),
        ("type({a=1})", "\"object({a: number})\""),
        ("type(tomap({a=[1]}))", "\"map(tuple([number]))\""),
        ("type(null)", "\"dynamic\""),
        ("type(u.list)", "\"list(string)\""),
        ("type(sensitive(1))", "\"number\""),
    ],
    ..Function::BASE
};

fn show(ty: &Type) -> String {
    let all = |types: Vec<String>| types.join(", ");
    match ty {
        Type::Any | Type::Bool | Type::Number | Type::String => ty.word().to_owned(),
        Type::List(t) | Type::Set(t) | Type::Map(t) => format!("{}({})", ty.word(), show(t)),
        Type::Tuple(types) => format!("tuple([{}])", all(types.iter().map(show).collect())),
        Type::Object(attributes) => {
            format!("object({{{}}})", all(attributes.iter().map(|(n, a)| format!("{n}: {}", show(&a.ty))).collect()))
        }
    }
}
