//! `startswith`, `endswith`, `trimprefix`, `trimsuffix`

use super::prelude::*;

pub(super) const STARTSWITH: Function = Function {
    name: "startswith",
    doc: "True if a string begins with a prefix.",
    parameters: &[Parameter::string("str").unknown(), Parameter::string("prefix")],
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| {
        let prefix = a.text(1);
        let decided = match a.values().first().map(|v| &v.kind) {
            Some(Kind::String(s)) => Some(s.starts_with(prefix)),
            Some(Kind::Unknown(_)) if prefix.is_empty() => Some(true),
            // The beginning of an unknown string may be known.
            Some(Kind::Unknown(u)) => match &u.prefix {
                Some(known) if known.starts_with(prefix) => Some(true),
                Some(known) if !prefix.starts_with(known.as_str()) => Some(false),
                _ => None,
            },
            _ => None,
        };
        Ok(decided.map_or_else(|| a.unknown(), Value::from))
    }),
    #[cfg(test)]
    rows: &[
        ("startswith(\"abc\",\"ab\")", "true"),
        ("startswith(\"abc\",\"b\")", "false"),
        ("startswith(\"pre-${u.id}\",\"pre-\")", "true"),
        ("startswith(\"pre-${u.id}\",\"zzz\")", "false"),
        ("startswith(\"pre-${u.id}\",\"pre-a\")", "UNKNOWN bool"),
        ("startswith(u.id,\"a\")", "UNKNOWN bool"),
        ("startswith(u.id,\"\")", "true"),
        ("startswith(\"abc\",u.id)", "UNKNOWN bool"),
    ],
    ..Function::BASE
};

pub(super) const ENDSWITH: Function = Function {
    name: "endswith",
    doc: "True if a string ends with a suffix.",
    parameters: &[Parameter::string("str"), Parameter::string("suffix")],
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| Ok(a.text(0).ends_with(a.text(1)).into())),
    #[cfg(test)]
    rows: &[("endswith(\"abc\",\"bc\")", "true"), ("endswith(\"abc\",\"b\")", "false"), ("endswith(12,2)", "true")],
    ..Function::BASE
};

pub(super) const TRIMPREFIX: Function = Function {
    name: "trimprefix",
    doc: "The string without a prefix, if it begins with that.",
    parameters: &[Parameter::string("str"), Parameter::string("prefix")],
    body: Some(|a| Ok(string(a.text(0).strip_prefix(a.text(1)).unwrap_or(a.text(0))))),
    #[cfg(test)]
    rows: &[
        ("trimprefix(\"helloworld\",\"hello\")", "\"world\""),
        ("trimprefix(\"aab\",\"a\")", "\"ab\""),
        ("trimprefix(\"x\",\"y\")", "\"x\""),
    ],
    ..Function::BASE
};

pub(super) const TRIMSUFFIX: Function = Function {
    name: "trimsuffix",
    doc: "The string without a suffix, if it ends with that.",
    parameters: &[Parameter::string("str"), Parameter::string("suffix")],
    body: Some(|a| Ok(string(a.text(0).strip_suffix(a.text(1)).unwrap_or(a.text(0))))),
    #[cfg(test)]
    rows: &[("trimsuffix(\"helloworld\",\"world\")", "\"hello\""), ("trimsuffix(\"x\",\"y\")", "\"x\"")],
    ..Function::BASE
};
