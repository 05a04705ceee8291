//! `yamldecode`

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::prelude::*;
use super::yamlprepared::prepared;
use super::yamlscalars::{plain, tagged};

/// Deeper nesting is refused, as for JSON.
const DEEPEST: usize = 128;
/// More values than this come only out of aliases of aliases of aliases, made to fill the memory.
const MOST: usize = 1_000_000;

pub(super) const FUNCTION: Function = Function {
    name: "yamldecode",
    doc: "The value that YAML text, of one document, stands for.",
    parameters: &[Parameter::string("src")],
    gives: Gives::Is(Shape::Any),
    may_be_null: true,
    body: Some(|a| decode(a.text(0)).map_err(|message| FunctionError::at(0, message))),
    #[cfg(test)]
    rows: &[
        (
            "yamldecode(\"{a: 0x1F, b: yes, c: 1_000, d: ~, e: 2001-01-01, f: 012, g: 1e3, h: .inf}\")",
            "{\"a\" = 31 \"b\" = true \"c\" = \"1_000\" \"d\" = null \"e\" = \"2001-01-01T00:00:00Z\" \"f\" = 12 \"g\" = 1000 \"h\" = +Inf}",
        ),
        ("yamldecode(\"a: 1\\na: 2\")", "{\"a\" = 2}"),
        ("yamldecode(\"- 1\\n- a: 2\\n  b: 3\\n\")", "[1, {\"a\" = 2 \"b\" = 3}]"),
        ("yamldecode(\"a: |\\n  x\\n  y\\nb: >\\n  x\\n  y\\n\")", "{\"a\" = \"x\\ny\\n\" \"b\" = \"x y\\n\"}"),
        ("yamldecode(\"[0o10, +12, .5, 1., -0x1F, 0b11, 1:30]\")", "[8, 12, 0.5, 1, \"-0x1F\", \"0b11\", \"1:30\"]"),
        ("yamldecode(\"[yes, No, on, OFF, y, n, True, tRue]\")", "[true, false, true, false, true, false, true, \"tRue\"]"),
        ("yamldecode(\"[~, null, NULL, '', '1', \\\"2\\\"]\")", "[null, null, null, \"\", \"1\", \"2\"]"),
        ("yamldecode(\"a: |\\n  x\")", "{\"a\" = \"x\"}"),
        ("yamldecode(\"a: |\\n  b: 1\\nb: 1\")", "{\"a\" = \"b: 1\\n\" \"b\" = 1}"),
        ("yamldecode(\"- |\\n a\\n b\")", "[\"a\\nb\"]"),
        ("yamldecode(\"a: >\\n  x\\n  y\")", "{\"a\" = \"x y\"}"),
        ("yamldecode(\"a: |\\nb: >\\n  x  \")", "{\"a\" = tostring(null) \"b\" = \"x  \"}"),
        ("yamldecode(\"a: |\\n  x\\n  \")", "{\"a\" = \"x\\n\"}"),
        (
            "yamldecode(\"y: 1\\noff: 5\\n1.50: 3\\n0x10: 2\\n2020-01-01: 4\\n'no': 6\")",
            "{\"1.5\" = 3 \"16\" = 2 \"2020-01-01T00:00:00Z\" = 4 \"false\" = 5 \"no\" = 6 \"true\" = 1}",
        ),
        (
            "yamldecode(\"[2024-01-01 1:02:03.5, 2024-1-2, !!timestamp 2024-01-03, !!timestamp '2024-01-04']\")",
            "[\"2024-01-01T01:02:03Z\", \"2024-01-02T00:00:00Z\", \"2024-01-03T00:00:00Z\", \"2024-01-04\"]",
        ),
        ("yamldecode(\"[2024-01-01T01:02:03, 2024-01-01 01:02:03Z]\")", "[\"2024-01-01T01:02:03\", \"2024-01-01 01:02:03Z\"]"),
        ("yamldecode(\"!!timestamp soon\")", "ERROR a value tagged as timestamp that is none"),
        ("yamldecode(\"! a\")", "ERROR a tag that is not supported"),
        ("yamldecode(\"%YAML 1.2\\n---\\na\")", "ERROR of a version of YAML other than 1.1"),
        ("yamldecode(\"# c\\n%FOO bar\\n---\\na\")", "ERROR has a directive other than `%YAML` and `%TAG`"),
        ("yamldecode(\"%TAG !e! tag:yaml.org,2002:\\n---\\n!e!str 1\")", "\"1\""),
        ("yamldecode(\"a: b # \\u0007\")", "ERROR has a control character in it"),
        ("yamldecode(\"[!!binary aGk=, !!binary 'aGk=', !!binary '']\")", "[\"aGk=\", \"aGk=\", \"\"]"),
        ("yamldecode(\"!!binary aGk\")", "ERROR a value tagged as binary that is none"),
        ("yamldecode(\"a: \")", "{\"a\" = null}"),
        ("yamldecode(\"--- \\n...\")", "null"),
        ("yamldecode(\"1: a\\ntrue: b\")", "{\"1\" = \"a\" \"true\" = \"b\"}"),
        ("yamldecode(\"a: &x [1]\\nb: *x\")", "{\"a\" = [1] \"b\" = [1]}"),
        ("yamldecode(\"a: &x {p: 1, q: 1}\\nb: {<<: *x, q: 2}\")", "{\"a\" = {\"p\" = 1 \"q\" = 1} \"b\" = {\"p\" = 1 \"q\" = 2}}"),
        ("yamldecode(\"a: 1\\n<<: {a: 2}\")", "{\"a\" = 2}"),
        ("yamldecode(\"<<: {a: 2, b: 1}\\n<<: {a: 3}\")", "{\"a\" = 3 \"b\" = 1}"),
        ("yamldecode(\"'<<': {a: 1}\")", "{\"a\" = 1}"),
        ("yamldecode(\"!!str <<: {a: 1}\")", "{\"<<\" = {\"a\" = 1}}"),
        ("yamldecode(\"[!!str 1, !!float 3]\")", "[\"1\", 3]"),
        ("yamldecode(\"[!!int '1', !!null '']\")", "[\"1\", \"\"]"),
        ("yamldecode(\"2001-12-14t21:59:43.10-05:00\")", "\"2001-12-14T21:59:43-05:00\""),
        ("yamldecode(\"\")", "ERROR has no document"),
        ("yamldecode(\"--- 1\\n--- 2\")", "ERROR more than one document"),
        ("yamldecode(\"null: a\")", "ERROR a key is null"),
        ("yamldecode(\"[1,2]: a\")", "ERROR a key is a list or map"),
        ("yamldecode(\"[1e5000]\")", "ERROR holds a number of more than 4096 digits"),
        ("yamldecode(\"'1e5000'\")", "\"1e5000\""),
        ("yamldecode(\"[.nan]\")", "ERROR a value that is no number"),
        ("yamldecode(\"!foo 1\")", "ERROR a tag that is not supported"),
        ("yamldecode(\"<<: 1\")", "ERROR `<<` needs a map"),
        ("yamldecode(\"{a\")", "ERROR is not valid YAML at line 2"),
        ("yamldecode(\"a: [\\n]#c\\nb: }\")", "ERROR is not valid YAML at line 3"),
        ("yamldecode(\"a: [\\n1]\\nb: |#c\\n  x: [\\n  1]#c\\nc: 'd\\n'\")", "{\"a\" = [1] \"b\" = \"x: [\\n1]#c\\n\" \"c\" = \"d \"}"),
        ("yamldecode(\"a: 0x10000000000000000\")", "ERROR holds a number of more than 64 bits that is not decimal"),
        ("yamldecode(\"&a [*a]\")", "ERROR within itself"),
        ("yamldecode(\"*x\")", "ERROR is not valid YAML"),
        ("yamldecode(\"a: &x b\\n*x : 1\")", "ERROR a key is an alias; only strings can be keys"),
        ("yamldecode(sensitive(\"a: 1\"))", "(sensitive value)"),
        ("yamldecode(u.id)", "UNKNOWN any"),
    ],
    ..Function::BASE
};

/// A list or map that is not at its end yet, and the number of its anchor.
enum Open {
    List(Vec<Value>, usize),
    Map { entries: Object, key: Option<Key>, anchor: usize },
}

enum Key {
    Name(String),
    /// `<<`
    Merge,
}

#[derive(Default)]
struct Builder<'a> {
    /// The last line of the text, if no line break follows it and the scalar at hand is the last one: it has none there either.
    unended: Option<&'a str>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Value>,
    documents: usize,
    result: Option<Value>,
    values: usize,
}

fn decode(whole: &str) -> Result<Value, String> {
    if !whole.chars().all(may_stand) {
        return Err("has a control character in it".to_owned());
    }
    whole.lines().take_while(|line| line.is_empty() || line.starts_with(['%', '#'])).try_for_each(directive)?;
    // The parser would take blanks in front of the end for one more line of a block.
    let text = whole.trim_end_matches(' ');
    let text = if text.is_empty() || text.ends_with('\n') { text } else { whole };
    match parse(text) {
        Ok(events) => build(text, events),
        // What the parser says may quote the text.
        Err((line, column)) => match prepared(text) {
            // Behind what was written anew columns are other ones.
            Some(again) => match parse(&again) {
                Ok(events) => build(&again, events),
                Err((line, _)) => Err(format!("is not valid YAML at line {line}")),
            },
            None => Err(format!("is not valid YAML at line {line}, column {column}")),
        },
    }
}

/// Whether a character may stand in YAML text, as Terraform's reader has it. Others are written as `\u0007` in double quotes.
fn may_stand(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// What a line in front of the document says, if it is a directive.
fn directive(line: &str) -> Result<(), String> {
    let Some(directive) = line.strip_prefix('%') else { return Ok(()) };
    let mut words = directive.split_whitespace();
    match (words.next(), words.next()) {
        (Some("YAML"), Some("1.1")) | (Some("TAG"), _) | (None, _) => Ok(()),
        (Some("YAML"), _) => Err("is of a version of YAML other than 1.1".to_owned()),
        (Some(_), _) => Err("has a directive other than `%YAML` and `%TAG`".to_owned()),
    }
}

/// What the parser makes of a text, or the line and column that it stops at.
fn parse(text: &str) -> Result<Vec<Event<'_>>, (usize, usize)> {
    let events = Parser::new_from_str(text).map(|event| event.map(|(event, _)| event));
    events.collect::<Result<_, _>>().map_err(|e| (e.marker().line(), e.marker().col() + 1))
}

fn build(text: &str, events: Vec<Event<'_>>) -> Result<Value, String> {
    let unended = text.rsplit('\n').next().map(str::trim_start).filter(|line| !line.is_empty());
    let last = events.iter().rposition(|event| matches!(event, Event::Scalar(..)));
    let mut builder = Builder::default();
    for (at, event) in events.into_iter().enumerate() {
        builder.unended = unended.filter(|_| last == Some(at));
        builder.take(event)?;
    }
    builder.result.ok_or_else(|| "has no document in it".to_owned())
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("has more than one document in it".to_owned());
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let bare = style == ScalarStyle::Plain;
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let text: &str = if is_block { self.block(&text) } else { &text };
                let value = match &tag {
                    None if bare => plain(text)?,
                    None if is_block && text.is_empty() => Value::null(Type::String),
                    None => string(text),
                    Some(tag) => tagged(&tag_name(tag)?, text, !bare && !is_block)?,
                };
                if tag.is_none() && text == "<<" && self.expects_key() {
                    self.set_key(Key::Merge);
                    return Ok(());
                }
                // A key stands for the text of its value: `1.50: a` has the key "1.5", `yes: a` the key "true".
                let value = match &value.kind {
                    Kind::Bool(b) if self.expects_key() => string(b.to_string()),
                    Kind::Number(n) if self.expects_key() => string(n.to_string()),
                    _ => value,
                };
                self.finish(value, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => self.begin(Open::List(Vec::new(), anchor), tag.as_deref(), "seq")?,
            Event::MappingStart(anchor, tag) => {
                let map = Open::Map { entries: Object::new(), key: None, anchor };
                self.begin(map, tag.as_deref(), "map")?;
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items, anchor)) => self.finish(Value::tuple(items), anchor)?,
                Some(Open::Map { entries, anchor, .. }) => self.finish(entries.into(), anchor)?,
                None => {}
            },
            Event::Alias(_) if self.expects_key() => return Err("a key is an alias; only strings can be keys".to_owned()),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().ok_or("refers to an anchor within itself")?;
                self.values += count(&value);
                self.finish(value, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of a block scalar, without the line break that the parser adds to a last line that has none.
    fn block<'t>(&self, text: &'t str) -> &'t str {
        let whole = text.strip_suffix('\n');
        whole.filter(|whole| self.unended.is_some_and(|line| whole.ends_with(line))).unwrap_or(text)
    }

    fn begin(&mut self, open: Open, tag: Option<&Tag>, wanted: &str) -> Result<(), String> {
        if tag.map(tag_name).transpose()?.is_some_and(|t| t != wanted) {
            return Err(unsupported());
        }
        if self.expects_key() {
            return Err("a key is a list or map; only strings can be keys".to_owned());
        }
        if self.open.len() == DEEPEST {
            return Err(format!("is nested deeper than {DEEPEST} levels"));
        }
        self.open.push(open);
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Some(Open::Map { key, .. }) = self.open.last_mut() {
            *key = Some(new);
        }
    }

    /// Puts a whole value where it belongs.
    fn finish(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        self.values += 1;
        if self.values > MOST {
            return Err(format!("stands for more than {MOST} values"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => self.result = Some(value),
            Some(Open::List(items, _)) => items.push(value),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge) => match value.kind {
                    // Of the same name, the later one counts, wherever it comes from, as in Terraform.
                    Kind::Object(from) => entries.extend(from),
                    _ => return Err("`<<` needs a map to merge".to_owned()),
                },
                None => {
                    let name = value.as_str().ok_or("a key is null; only strings can be keys")?;
                    *key = Some(Key::Name(name.to_owned()));
                }
            },
        }
        Ok(())
    }
}

/// How many values a value holds.
fn count(value: &Value) -> usize {
    1 + value.parts().map(count).sum::<usize>()
}

/// `str` for `!!str`, and for `!<tag:yaml.org,2002:str>`, of which the parser makes one piece.
fn tag_name(tag: &Tag) -> Result<String, String> {
    let whole = format!("{}{}", tag.handle, tag.suffix);
    whole.strip_prefix("tag:yaml.org,2002:").map(str::to_owned).ok_or_else(unsupported)
}

pub(super) fn unsupported() -> String {
    "has a tag that is not supported".to_owned()
}
