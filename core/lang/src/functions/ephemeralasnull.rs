//! `ephemeralasnull`

use super::prelude::*;

pub(super) const EPHEMERALASNULL: Function = Function {
    name: "ephemeralasnull",
    doc: "The value with null in place of what is ephemeral, so that the rest of it can be stored.",
    parameters: &[Parameter::any("value").null().unknown().marked()],
    gives: Gives::Is(Shape::Any),
    may_be_null: true,
    body: Some(|a| Ok(as_null(a.value(0)))),
    #[cfg(test)]
    rows: &[
        ("ephemeralasnull(1)", "1"),
        ("ephemeralasnull(null)", "null"),
        ("ephemeralasnull(e.text)", "tostring(null)"),
        ("ephemeralasnull({a=e.text,b=1})", "{\"a\" = tostring(null) \"b\" = 1}"),
        ("ephemeralasnull([[e.text],sensitive(1)])", "[[tostring(null)], (sensitive value)]"),
        ("ephemeralasnull(u.id)", "UNKNOWN string"),
        ("ephemeralasnull(sensitive(e.text))", "(sensitive value)"),
        ("e.text", "(ephemeral value)"),
        ("upper(e.text)", "(ephemeral value)"),
        ("sensitive(e.text)", "(sensitive value)"),
        ("{a=e.text,b=1}", "{\"a\" = (ephemeral value) \"b\" = 1}"),
        ("issensitive(e.text)", "false"),
    ],
    ..Function::BASE
};

fn as_null(value: &Value) -> Value {
    if value.ephemeral {
        // Measured: what is not known yet stays so, and becomes null when it is.
        let ty = value.ty();
        return if value.is_unknown() { Value::unknown(ty) } else { Value::null(ty) }.secret_if(value.secret);
    }
    value.map_parts(|_, part| as_null(part))
}
