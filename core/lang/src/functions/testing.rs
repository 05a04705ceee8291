//! Test help: reads an expression as in the tables of the function files, evaluates it with the functions and operators alone, and
//! writes the result in one line. Small on purpose: the real evaluator must not be able to hide a fault of a function.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_model::{Kind, Marks, Object, Type, Value};

use super::arguments::unknown_with_prefix;
use crate::ops::{self, BinaryOperator, UnaryOperator};
use crate::{Context, Files};

/// What a call gives: the expression and its result, `ERROR part of the message` or `UNKNOWN`.
pub(crate) type Rows = &'static [(&'static str, &'static str)];

/// Files of the tables.
struct FakeFiles(BTreeMap<&'static str, &'static [u8]>);

impl Files for FakeFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|c| c.to_vec()).ok_or_else(|| "no such file".to_owned())
    }

    fn exists(&self, path: &str) -> Result<bool, String> {
        if path == "conf" {
            return Err("is a directory".to_owned());
        }
        Ok(self.0.contains_key(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        if directory == "links" {
            return Ok(vec!["nowhere".to_owned()]);
        }
        let start = if directory == "." { String::new() } else { format!("{directory}/") };
        Ok(self.0.keys().filter_map(|p| p.strip_prefix(&start)).map(str::to_owned).collect())
    }
}

/// The world of the tables.
pub(crate) fn context() -> Context {
    let files: [(&str, &[u8]); 6] = [
        ("hello.txt", b"hello"),
        ("bytes.bin", b"\xff\xfe"),
        ("conf/a.conf", b"a"),
        ("conf/b.conf", b"b"),
        ("conf/deep/c.conf", b"c"),
        ("/home/me/notes.txt", b"notes"),
    ];
    Context {
        files: Arc::new(FakeFiles(files.into())),
        now: 1_700_000_000,
        directory: ".".to_owned(),
        working_directory: "/here".to_owned(),
        workspace: "default".to_owned(),
        home: Some("/home/me".to_owned()),
        tool_version: "0.1.0".to_owned(),
    }
}

/// The result of an expression, in one line.
pub(crate) fn evaluate(text: &str) -> String {
    let mut reader = Reader { text, at: 0, context: context() };
    match reader.expression(0) {
        Ok(value) if reader.rest().is_empty() => show(&value),
        Ok(_) => panic!("left over in {text}: {}", reader.rest()),
        Err(message) => format!("ERROR {message}"),
    }
}

/// Holds a result against a row: errors by a part of their message, `UNKNOWN` for any type.
pub(crate) fn fits(result: &str, expected: &str) -> bool {
    match expected.strip_prefix("ERROR") {
        Some(part) => result.strip_prefix("ERROR").is_some_and(|r| r.contains(part.trim())),
        None if expected == "UNKNOWN" => result.starts_with("UNKNOWN"),
        None => result == expected,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    context: Context,
}

const OPERATORS: [(&str, u8, BinaryOperator); 13] = [
    ("||", 1, BinaryOperator::Or),
    ("&&", 2, BinaryOperator::And),
    ("==", 3, BinaryOperator::Eq),
    ("!=", 3, BinaryOperator::NotEq),
    ("<=", 4, BinaryOperator::LessEq),
    (">=", 4, BinaryOperator::GreaterEq),
    ("<", 4, BinaryOperator::Less),
    (">", 4, BinaryOperator::Greater),
    ("+", 5, BinaryOperator::Add),
    ("-", 5, BinaryOperator::Sub),
    ("*", 6, BinaryOperator::Mul),
    ("/", 6, BinaryOperator::Div),
    ("%", 6, BinaryOperator::Mod),
];

impl Reader<'_> {
    fn rest(&mut self) -> &str {
        let left = self.text[self.at..].trim_start();
        self.at = self.text.len() - left.len();
        left
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn must(&mut self, token: &str) {
        assert!(self.take(token), "{token} expected at {} in {}", self.at, self.text);
    }

    fn word(&mut self, of: fn(char) -> bool) -> String {
        let word: String = self.rest().chars().take_while(|c| of(*c)).collect();
        self.at += word.len();
        word
    }

    fn expression(&mut self, above: u8) -> Result<Value, String> {
        let mut left = self.operand()?;
        while let Some((token, level, operator)) = OPERATORS.iter().find(|(t, _, _)| self.rest().starts_with(t)) {
            if *level <= above {
                break;
            }
            self.must(token);
            let right = self.expression(*level)?;
            left = ops::binary(*operator, &left, &right)?;
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Value, String> {
        if self.take("-") {
            return ops::unary(UnaryOperator::Neg, &self.operand()?);
        }
        if self.take("!") {
            return ops::unary(UnaryOperator::Not, &self.operand()?);
        }
        if self.take("(") {
            let value = self.expression(0)?;
            self.must(")");
            return Ok(value);
        }
        if self.take("[") {
            return Ok(Value::tuple(self.items("]")?.0));
        }
        if self.take("{") {
            return self.object();
        }
        if self.take("\"") {
            return self.string();
        }
        let word = self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'));
        Ok(match word.as_str() {
            "true" => true.into(),
            "false" => false.into(),
            "null" => Value::null(Type::Any),
            "u.id" => Value::unknown_not_null(Type::String),
            "u.output" => Value::unknown(Type::String),
            "e.text" => Value::from("of this run").ephemeral(),
            "u.any" => Value::unknown(Type::Any),
            "u.list" => Value::unknown(Type::list(Type::String)),
            "u.map" => Value::unknown(Type::map(Type::String)),
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => Kind::Number(word.parse().expect("a number")).into(),
            _ => {
                self.must("(");
                let (mut arguments, expand) = self.items(")")?;
                if expand {
                    let last = arguments.pop().expect("an argument before ...");
                    arguments.extend_from_slice(last.as_items().expect("a list before ..."));
                }
                super::call(&word, &arguments, &self.context).map_err(|e| e.message)?
            }
        })
    }

    fn items(&mut self, end: &str) -> Result<(Vec<Value>, bool), String> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.expression(0)?);
            if self.take("...") {
                self.must(end);
                return Ok((items, true));
            }
            self.take(",");
        }
        Ok((items, false))
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut object = Object::new();
        while !self.take("}") {
            let quoted = self.take("\"");
            let name = self.word(if quoted { |c| c != '"' } else { |c| c.is_alphanumeric() || c == '_' });
            self.at += usize::from(quoted);
            self.must("=");
            object.insert(name, self.expression(0)?);
            self.take(",");
        }
        Ok(object.into())
    }

    fn string(&mut self) -> Result<Value, String> {
        let (mut known, mut unknown, mut marks) = (String::new(), None, Marks::default());
        loop {
            let c = self.text[self.at..].chars().next().expect("a closing quote");
            self.at += c.len_utf8();
            match c {
                '"' => break,
                '\\' => {
                    let escaped = self.text[self.at..].chars().next().expect("an escape");
                    self.at += 1;
                    known.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'u' => {
                            let code = &self.text[self.at..self.at + 4];
                            self.at += 4;
                            u32::from_str_radix(code, 16).ok().and_then(char::from_u32).expect("a code point")
                        }
                        other => other,
                    });
                }
                '$' if self.text[self.at..].starts_with('{') => {
                    self.at += 1;
                    let part = self.expression(0)?;
                    self.must("}");
                    marks |= part.marks();
                    match part.as_str() {
                        Some(text) => known.push_str(text),
                        None => unknown = unknown.or_else(|| Some(unknown_with_prefix(&known))),
                    }
                }
                other => known.push(other),
            }
        }
        Ok(unknown.unwrap_or_else(|| super::arguments::string(known)).marked(marks))
    }
}

fn show(value: &Value) -> String {
    if value.secret {
        return "(sensitive value)".to_owned();
    }
    if value.ephemeral {
        return "(ephemeral value)".to_owned();
    }
    let all = |items: &[Value]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    let entries = |e: &Object| e.iter().map(|(n, v)| format!("{n:?} = {}", show(v))).collect::<Vec<_>>().join(" ");
    match &value.kind {
        Kind::Null(Type::Any) => "null".to_owned(),
        Kind::Null(ty) => format!("to{}(null)", ty.word()),
        Kind::Unknown(u) => format!("UNKNOWN {}", u.ty),
        Kind::Bool(b) => b.to_string(),
        Kind::Number(n) => n.to_string(),
        Kind::String(s) => serde_json::to_string(s).expect("a string"),
        Kind::List(_, items) => format!("tolist([{}])", all(items)),
        Kind::Set(_, items) => format!("toset([{}])", all(items)),
        Kind::Tuple(items) => format!("[{}]", all(items)),
        Kind::Map(_, e) => format!("tomap({{{}}})", entries(e)),
        Kind::Object(e) => format!("{{{}}}", entries(e)),
    }
}
