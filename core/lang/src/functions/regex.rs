//! `regex` and `regexall`

use ::regex::Captures;
use ::regex::Regex;

use super::pattern;
use super::prelude::*;

pub(super) const REGEX: Function = Function {
    name: "regex",
    doc: "The first match of a regular expression: a string, or its groups as a list or an object.",
    parameters: &[Parameter::string("pattern"), Parameter::string("string").unknown()],
    gives: Gives::Depends(groups_type),
    body: Some(|a| {
        let regex = compile(a)?;
        if a.value(1).is_unknown() {
            return Ok(a.unknown());
        }
        let captures = regex.captures(a.text(1)).ok_or_else(|| FunctionError::new("the pattern matches no part of the string"))?;
        Ok(groups(&regex, &captures))
    }),
    #[cfg(test)]
    rows: &[
        ("regex(\"(\\\\d+)-(?P<x>\\\\d+)\",\"1-2\")", "ERROR all groups must have names, or none"),
        ("regex(\"(\\\\d+)-(\\\\d+)\",\"1-2\")", "[\"1\", \"2\"]"),
        ("regex(\"(?P<y>\\\\d+)-(?P<x>\\\\d+)\",\"1-2\")", "{\"x\" = \"2\" \"y\" = \"1\"}"),
        ("regex(\"\\\\d+\",\"abc\")", "ERROR matches no part"),
        ("regex(\"(a)|(b)\",\"b\")", "[tostring(null), \"b\"]"),
        ("regex(\"b.\",\"abc\")", "\"bc\""),
        ("regex(\"[\",\"abc\")", "ERROR \"[\" is no valid regular expression"),
        ("regex(\"a\",u.id)", "UNKNOWN string"),
        ("regex(\"(a)(b)\",u.id)", "UNKNOWN tuple([string, string])"),
        ("regex(\"[\",u.id)", "ERROR \"[\" is no valid regular expression"),
        ("regex(u.id,\"a\")", "UNKNOWN any"),
    ],
    ..Function::BASE
};

pub(super) const REGEXALL: Function = Function {
    name: "regexall",
    doc: "All matches of a regular expression.",
    parameters: &[Parameter::string("pattern"), Parameter::string("string").unknown()],
    gives: Gives::Depends(|values| Type::list(groups_type(values))),
    body: Some(|a| {
        let regex = compile(a)?;
        if a.value(1).is_unknown() {
            return Ok(a.unknown());
        }
        let found = regex.captures_iter(a.text(1)).map(|c| groups(&regex, &c)).collect();
        Ok(Value::list(groups_type(a.values()), found))
    }),
    #[cfg(test)]
    rows: &[
        ("regexall(\"\\\\d\",\"a1b2\")", "tolist([\"1\", \"2\"])"),
        ("regexall(\"(.)=(.)\",\"a=1,b=2\")", "tolist([[\"a\", \"1\"], [\"b\", \"2\"]])"),
        ("regexall(\"x\",\"a\")", "tolist([])"),
        ("regexall(\"(a)(?P<x>b)\",u.id)", "ERROR all groups must have names, or none"),
        ("regexall(\"x\",u.id)", "UNKNOWN list(string)"),
    ],
    ..Function::BASE
};

fn compile(a: &Arguments<'_>) -> Result<Regex, FunctionError> {
    let regex = pattern::compile(a, 0, a.text(0))?;
    let named = regex.capture_names().flatten().count();
    if named > 0 && named < regex.captures_len() - 1 {
        return Err(FunctionError::at(0, "all groups must have names, or none"));
    }
    Ok(regex)
}

/// The type of a match, as far as the pattern is known and right.
fn groups_type(values: &[&Value]) -> Type {
    let regex = values.first().and_then(|v| v.as_str()).and_then(pattern::quietly);
    let Some(regex) = regex else { return Type::Any };
    let names: Vec<_> = regex.capture_names().skip(1).collect();
    if names.is_empty() {
        return Type::String;
    }
    let named = names.iter().flatten();
    let object: std::collections::BTreeMap<_, _> =
        named.map(|n| ((*n).to_owned(), karmaform_model::ObjectAttribute::required(Type::String))).collect();
    if object.is_empty() { Type::Tuple(vec![Type::String; names.len()]) } else { Type::Object(object) }
}

fn groups(regex: &Regex, captures: &Captures<'_>) -> Value {
    let group = |i: usize| captures.get(i).map_or_else(|| Value::null(Type::String), |m| string(m.as_str()));
    if regex.captures_len() == 1 {
        return group(0);
    }
    let names: Object = regex.capture_names().enumerate().filter_map(|(i, name)| name.map(|n| (n.to_owned(), group(i)))).collect();
    if names.is_empty() { Value::tuple((1..regex.captures_len()).map(group).collect()) } else { names.into() }
}
