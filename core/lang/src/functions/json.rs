//! `jsonencode` and `jsondecode`

use std::borrow::Cow;

use karmaform_model::{TOO_LONG, escape_json, has_too_long_number, implied_from_json, to_json_signed};

use super::prelude::*;

pub(super) const ENCODE: Function = Function {
    name: "jsonencode",
    doc: "The value as JSON text.",
    parameters: &[Parameter::any("val").null().unknown()],
    body: Some(|a| {
        let value = a.value(0);
        if !value.is_wholly_known() {
            return Ok(unknown_with_prefix(beginning(value)));
        }
        if value.contains_infinity() {
            return Err(FunctionError::at(0, "holds an infinite number, which JSON can't express"));
        }
        Ok(string(escape_json(&to_json_signed(value).to_string())))
    }),
    #[cfg(test)]
    rows: &[
        (
            "jsonencode({a=\"<b>&\",c=null,d=1.50,e=1e30})",
            "\"{\\\"a\\\":\\\"\\\\u003cb\\\\u003e\\\\u0026\\\",\\\"c\\\":null,\\\"d\\\":1.5,\\\"e\\\":1000000000000000000000000000000}\"",
        ),
        ("jsonencode(\"\\u2028\")", "\"\\\"\\\\u2028\\\"\""),
        ("jsonencode([1,true,\"x\"])", "\"[1,true,\\\"x\\\"]\""),
        ("jsonencode(null)", "\"null\""),
        ("jsonencode(1/0)", "ERROR an infinite number"),
        ("jsonencode({a=u.id})", "UNKNOWN string"),
        ("jsonencode([1,u.id])", "UNKNOWN string"),
        ("startswith(jsonencode({a=u.id}),\"{\")", "true"),
        ("startswith(jsonencode([u.id]),\"{\")", "false"),
        ("issensitive(jsonencode({a=1,b=sensitive(2)}))", "true"),
    ],
    ..Function::BASE
};

pub(super) const DECODE: Function = Function {
    name: "jsondecode",
    doc: "The value that JSON text stands for.",
    parameters: &[Parameter::string("str").unknown()],
    gives: Gives::Is(Shape::Any),
    may_be_null: true,
    body: Some(|a| {
        if let Kind::Unknown(text) = &a.value(0).kind {
            let first = text.prefix.as_deref().and_then(|known| known.chars().find(|c| !" \t\r\n".contains(*c)));
            return match first.filter(|c| !begins_json(*c)) {
                None => Ok(a.unknown()),
                Some(_) if a.is_secret(0) => Err(FunctionError::at(0, "is not valid JSON, however it goes on")),
                Some(c) => Err(FunctionError::at(0, format!("begins with {c:?}, which no JSON does"))),
            };
        }
        let json: serde_json::Value = serde_json::from_str(&paired(a.text(0)))
            .map_err(|e| FunctionError::at(0, format!("is not valid JSON at line {}, column {}", e.line(), e.column())))?;
        if has_too_long_number(&json) {
            return Err(FunctionError::at(0, format!("holds {TOO_LONG}")));
        }
        Ok(normal(&implied_from_json(&json)))
    }),
    #[cfg(test)]
    rows: &[
        ("jsondecode(\"{\\\"a\\\":[1,\\\"x\\\",null]}\")", "{\"a\" = [1, \"x\", null]}"),
        ("jsondecode(\"1.50\")", "1.5"),
        ("jsondecode(\"null\")", "null"),
        ("jsondecode(\"[1e5000]\")", "ERROR holds a number of more than 4096 digits"),
        ("jsondecode(\"1e99999999\")", "ERROR holds a number of more than 4096 digits"),
        ("jsondecode(\"12345678901234567890123\")", "12345678901234567890123"),
        ("jsondecode(\"\\\"a\\\\udc00b\\\\ud83d\\\\ude00\\\\ud800\\\\u0041\\\"\")", "\"a\u{fffd}b😀\u{fffd}A\""),
        ("jsondecode(\"\\\"\\\\\\\\ud800\\\"\")", "\"\\\\ud800\""),
        ("jsondecode(\"[1,]\")", "ERROR is not valid JSON at line 1, column 4"),
        ("jsondecode(\"\")", "ERROR is not valid JSON"),
        ("jsondecode(u.id)", "UNKNOWN any"),
        ("jsondecode(\"pre-${u.id}\")", "ERROR begins with 'p', which no JSON does"),
        ("jsondecode(\" \\n, ${u.id}\")", "ERROR begins with ',', which no JSON does"),
        ("jsondecode(sensitive(\"pre-${u.id}\"))", "ERROR is not valid JSON, however it goes on"),
        ("jsondecode(\" {x ${u.id}\")", "UNKNOWN any"),
        ("jsondecode(\"nope ${u.id}\")", "UNKNOWN any"),
        ("jsondecode(\" ${u.id}\")", "UNKNOWN any"),
    ],
    ..Function::BASE
};

/// Whether JSON begins so. As in Terraform, no more is asked of a text of which only the beginning is known.
fn begins_json(first: char) -> bool {
    matches!(first, '{' | '[' | '"' | '-' | 't' | 'f' | 'n' | '0'..='9')
}

/// JSON with `\ufffd`, which stands for what can't be read, in the place of each half of a surrogate pair that stands alone.
fn paired(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let half = |text: &str| text.strip_prefix("\\u").and_then(|t| u16::from_str_radix(t.get(..4)?, 16).ok());
    let (mut out, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (half(rest), rest.get(6..).and_then(half)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // Whatever is escaped, it is no beginning of an escape.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// How the text surely begins while parts of the value are unknown.
fn beginning(value: &Value) -> &'static str {
    match &value.kind {
        Kind::Map(..) | Kind::Object(_) => "{",
        Kind::List(..) | Kind::Set(..) | Kind::Tuple(_) => "[",
        Kind::Unknown(u) if u.not_null => match u.ty {
            Type::String => "\"",
            Type::List(_) | Type::Set(_) | Type::Tuple(_) => "[",
            Type::Map(_) | Type::Object(_) => "{",
            _ => "",
        },
        _ => "",
    }
}

/// Strings and names in normal form.
pub(super) fn normal(value: &Value) -> Value {
    match &value.kind {
        Kind::String(s) => string(s.as_str()),
        Kind::Object(o) => {
            let name = |n: &str| string(n).as_str().unwrap_or_default().to_owned();
            o.iter().map(|(n, v)| (name(n), normal(v))).collect::<Object>().into()
        }
        _ => value.map_parts(|_, v| normal(v)),
    }
}
