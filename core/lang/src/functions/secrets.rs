//! `sensitive`, `nonsensitive` and `issensitive`

use super::prelude::*;

const BASE: Function =
    Function { parameters: &[Parameter::any("value").null().unknown().marked()], gives: Gives::Is(Shape::Any), ..Function::BASE };

pub(super) const SENSITIVE: Function = Function {
    name: "sensitive",
    doc: "The value, marked secret: it is not shown anywhere.",
    body: Some(|a| Ok(a.value(0).clone().secret())),
    #[cfg(test)]
    rows: &[("sensitive(\"x\")", "(sensitive value)"), ("issensitive(sensitive(null))", "true"), ("sensitive(u.id)", "(sensitive value)")],
    ..BASE
};

pub(super) const NONSENSITIVE: Function = Function {
    name: "nonsensitive",
    doc: "The value without its secret mark; marks on parts of it stay.",
    body: Some(|a| Ok(Value { secret: false, ..a.value(0).clone() })),
    #[cfg(test)]
    rows: &[
        ("nonsensitive(1)", "1"),
        ("nonsensitive(sensitive(1))", "1"),
        ("issensitive(nonsensitive(sensitive(1)))", "false"),
        ("nonsensitive(sensitive([sensitive(1)]))", "[(sensitive value)]"),
    ],
    ..BASE
};

pub(super) const ISSENSITIVE: Function = Function {
    name: "issensitive",
    doc: "True if the value itself is secret; parts of it are not looked at.",
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| {
        let value = a.value(0);
        // An unknown one may still turn out secret.
        Ok(if value.is_unknown() && !value.secret { a.unknown() } else { value.secret.into() })
    }),
    #[cfg(test)]
    rows: &[
        ("issensitive(sensitive(1))", "true"),
        ("issensitive(1)", "false"),
        ("issensitive([1,sensitive(2)])", "false"),
        ("issensitive({a=sensitive(1)})", "false"),
        ("issensitive(\"x${sensitive(\"s\")}\")", "true"),
        ("issensitive(u.id)", "UNKNOWN bool"),
        ("issensitive(sensitive(u.id))", "true"),
    ],
    ..BASE
};
