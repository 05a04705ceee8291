//! The functions of Terraform's own provider: values as they are written in variables files.

use std::fmt::Write as _;

use super::prelude::*;
use crate::decode::is_name;
use crate::format;
use crate::render::is_visible;

/// What an expression stands behind while it is laid out.
const ARGUMENT: &str = "x = ";

/// A special form, as it reads expressions.
pub(super) const DECODE_TFVARS: Function = Function {
    name: crate::special::DECODE_TFVARS,
    doc: "The values that the text of a variables file gives, as an object.",
    parameters: &[Parameter::string("src")],
    gives: Gives::Is(Shape::Any),
    ..Function::BASE
};

pub(super) const ENCODE_EXPR: Function = Function {
    name: "provider::terraform::encode_expr",
    doc: "The expression that gives this value.",
    parameters: &[Parameter::any("value").unknown()],
    body: Some(|a| {
        let value = a.value(0);
        if !value.is_wholly_known() {
            return Ok(a.unknown());
        }
        let line = laid_out(&format!("{ARGUMENT}{}\n", written(value)?))?;
        Ok(string(line.strip_prefix(ARGUMENT).unwrap_or(&line).trim_end_matches('\n')))
    }),
    #[cfg(test)]
    rows: &[
        ("provider::terraform::encode_expr(-1.5)", "\"-1.5\""),
        ("provider::terraform::encode_expr(\"a\\\"b\\\\c\\nd\\te\\u0001\")", "\"\\\"a\\\\\\\"b\\\\\\\\c\\\\nd\\\\te\\\\u0001\\\"\""),
        ("provider::terraform::encode_expr(join(\"\",[\"$\",\"{a} %\",\"{b} $ %\"]))", "\"\\\"$${a} %%{b} $ %\\\"\""),
        ("provider::terraform::encode_expr([null,true,[],{},[1,\"a\"]])", "\"[null, true, [], {}, [1, \\\"a\\\"]]\""),
        ("provider::terraform::encode_expr({a=1,\"b c\"=2,\"d.e\"=3})", "\"{\\n  a     = 1\\n  \\\"b c\\\" = 2\\n  \\\"d.e\\\" = 3\\n}\""),
        (
            "provider::terraform::encode_expr({a={b=[1,{c=2}]},long=\"x\"})",
            "\"{\\n  a = {\\n    b = [1, {\\n      c = 2\\n    }]\\n  }\\n  long = \\\"x\\\"\\n}\"",
        ),
        ("provider::terraform::encode_expr([{a=1},{b=2}])", "\"[{\\n  a = 1\\n  }, {\\n  b = 2\\n}]\""),
        ("provider::terraform::encode_expr(toset([\"b\",\"a\"]))", "\"[\\\"a\\\", \\\"b\\\"]\""),
        ("provider::terraform::encode_expr([u.id])", "UNKNOWN string"),
        ("provider::terraform::encode_expr(null)", "ERROR must not be null"),
        ("provider::terraform::encode_expr(1/0)", "ERROR an infinite number"),
        ("issensitive(provider::terraform::encode_expr([sensitive(1)]))", "true"),
    ],
    ..Function::BASE
};

pub(super) const ENCODE_TFVARS: Function = Function {
    name: "provider::terraform::encode_tfvars",
    doc: "The text of a variables file that gives these values.",
    parameters: &[Parameter::any("value").unknown()],
    body: Some(|a| {
        let value = a.value(0);
        if !value.is_wholly_known() {
            return Ok(a.unknown());
        }
        let entries = value.as_entries().ok_or_else(|| FunctionError::at(0, "must be an object with the names of variables"))?;
        let mut text = String::new();
        for (name, value) in entries {
            if !is_name(name) {
                let which = if a.is_secret(0) { "a key".to_owned() } else { format!("\"{name}\"") };
                return Err(FunctionError::at(0, format!("holds {which}, which can't be the name of a variable")));
            }
            let _ = writeln!(text, "{name} = {}", written(value)?);
        }
        Ok(string(laid_out(&text)?))
    }),
    #[cfg(test)]
    rows: &[
        ("provider::terraform::encode_tfvars({a=1,b=[1,2],cc=\"x\"})", "\"a  = 1\\nb  = [1, 2]\\ncc = \\\"x\\\"\\n\""),
        ("provider::terraform::encode_tfvars({a={b=1},bbb=null})", "\"a = {\\n  b = 1\\n}\\nbbb = null\\n\""),
        ("provider::terraform::encode_tfvars(tomap({a=1}))", "\"a = 1\\n\""),
        ("provider::terraform::encode_tfvars({})", "\"\""),
        ("provider::terraform::encode_tfvars({\"a b\"=1})", "ERROR holds \"a b\", which can't be the name of a variable"),
        ("provider::terraform::encode_tfvars([1])", "ERROR must be an object"),
        ("provider::terraform::encode_tfvars(null)", "ERROR must not be null"),
        ("provider::terraform::encode_tfvars({a=u.id})", "UNKNOWN string"),
    ],
    ..Function::BASE
};

/// In the usual form.
fn laid_out(text: &str) -> Result<String, FunctionError> {
    format(text).map_err(|error| FunctionError::at(0, format!("can't be written: {error}")))
}

/// The value as an expression, not yet laid out: an object has a line for each of its entries, all else is in one.
fn written(value: &Value) -> Result<String, FunctionError> {
    if value.contains_infinity() {
        return Err(FunctionError::at(0, "holds an infinite number, which no expression stands for"));
    }
    let mut out = String::new();
    write(value, &mut out);
    Ok(out)
}

fn write(value: &Value, out: &mut String) {
    match &value.kind {
        Kind::Null(_) | Kind::Unknown(_) => out.push_str("null"),
        Kind::Bool(b) => drop(write!(out, "{b}")),
        Kind::Number(n) => drop(write!(out, "{n}")),
        Kind::String(s) => quoted(s, out),
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write(item, out);
            }
            out.push(']');
        }
        Kind::Map(_, entries) | Kind::Object(entries) => {
            out.push_str(if entries.is_empty() { "{" } else { "{\n" });
            for (name, value) in entries {
                if is_name(name) {
                    out.push_str(name);
                } else {
                    quoted(name, out);
                }
                out.push_str(" = ");
                write(value, out);
                out.push('\n');
            }
            out.push('}');
        }
    }
}

/// In quotes, so that reading it gives the text again.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' | '%' if rest.peek() == Some(&'{') => out.extend([c, c]),
            c if is_visible(c) => out.push(c),
            c => out.push_str(&match u32::from(c) {
                code @ ..0x1_0000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push('"');
}
