//! The measured tables: what expressions give, with unknown and with secret parts.

use karmaform_model::{Kind, Type, Value};

use crate::support::{Known, evaluate, folded, load_all};

const DATA: &str = r#"
locals {
  l    = [1, 2, 3]
  m    = { a = 1, b = 2 }
  objs = [{ n = [1, 2] }, { n = [3] }]
  nul  = null
}
variable "o" {
  type = object({
    a = string
    b = optional(number, 7)
    c = optional(list(object({ x = optional(string), y = optional(bool, true) })), [])
    d = optional(map(string), {})
  })
  default = { a = 1, extra = "z", c = [{ y = "true" }] }
}
resource "terraform_data" "u" {}
resource "terraform_data" "t" {}
resource "terraform_data" "c" {
  count = 2
  input = count.index
}
resource "terraform_data" "f" {
  for_each = toset(["a", "b"])
  input    = each.key
}
"#;

/// Rows `EXPRESSION  =>  RESULT`; a comment line starts with `##`.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().filter(|l| !l.starts_with("##")).filter_map(|l| l.split_once("  =>  "))
}

fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{} rows differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn plain_values() {
    let (config, diagnostics, _) = load_all(&[("main.kf.hcl", DATA)], &[], |_| {});
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let mut failures = Vec::new();
    for (expression, expected) in rows(include_str!("plain.txt")) {
        let found = match evaluate(&config, &Known::default(), expression) {
            Ok(value) => folded(&value),
            Err(error) => format!("ERROR {error}"),
        };
        let same = if expected == "ERROR" { found.starts_with("ERROR") } else { found == expected };
        if !same {
            failures.push(format!("{expression}\n    expected {expected}\n    found    {found}"));
        }
    }
    report(&failures);
}

/// Unknown parts named, collections without their types.
fn outline(value: &Value) -> String {
    let all = |items: &[Value]| format!("[{}]", items.iter().map(outline).collect::<Vec<_>>().join(", "));
    match &value.kind {
        Kind::Unknown(_) => "UNKNOWN".into(),
        Kind::List(_, items) | Kind::Set(_, items) | Kind::Tuple(items) => all(items),
        Kind::Map(_, e) | Kind::Object(e) => {
            format!("{{{}}}", e.iter().map(|(n, v)| format!("{n:?}: {}", outline(v))).collect::<Vec<_>>().join(", "))
        }
        _ => folded(value),
    }
}

#[test]
fn unknown_values() {
    let (config, diagnostics, _) = load_all(&[("main.kf.hcl", DATA)], &[("t.tftpl", "v=${x}")], |_| {});
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let instance = |input: Value| {
        Value::object([
            ("id", Value::unknown_not_null(Type::String)),
            ("input", input),
            ("output", Value::unknown(Type::String)),
            ("triggers_replace", Value::null(Type::Any)),
        ])
    };
    let mut known = Known::default();
    known.0.insert("terraform_data.u".into(), instance(Value::null(Type::Any)));
    let tuple = Value::unknown(Type::Tuple(vec![Type::String, Type::Number]));
    let object = Value::unknown(Type::object([("a", Type::String)]));
    known.0.insert("terraform_data.t".into(), Value::object([("output", tuple), ("triggers_replace", object)]));
    for i in 0..2i64 {
        known.0.insert(format!("terraform_data.c[{i}]"), instance(i.into()));
    }
    for key in ["a", "b"] {
        known.0.insert(format!("terraform_data.f[\"{key}\"]"), instance(key.into()));
    }
    let mut failures = Vec::new();
    for (expression, expected) in rows(include_str!("unknown.txt")) {
        let found = match evaluate(&config, &known, expression) {
            Ok(value) => outline(&value),
            Err(error) => format!("ERROR {error}"),
        };
        let same = if expected == "ERROR" { found.starts_with("ERROR") } else { found == expected };
        if !same {
            failures.push(format!("{expression}\n    expected {expected}\n    found    {found}"));
        }
    }
    report(&failures);
}

#[test]
fn secret_values() {
    let (config, _, _) = load_all(&[("main.kf.hcl", DATA)], &[], |_| {});
    let mut failures = Vec::new();
    for (expression, expected) in rows(include_str!("secret.txt")) {
        let found = evaluate(&config, &Known::default(), expression).map(|value| value.secret.to_string());
        if found.as_deref() != Ok(expected) {
            failures.push(format!("{expression}\n    expected {expected}\n    found    {found:?}"));
        }
    }
    report(&failures);
}
