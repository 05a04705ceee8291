//! `yamldecode`

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::prelude::*;
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
        ("yamldecode(\"a: \")", "{\"a\" = null}"),
        ("yamldecode(\"--- \\n...\")", "null"),
        ("yamldecode(\"1: a\\ntrue: b\")", "{\"1\" = \"a\" \"true\" = \"b\"}"),
        ("yamldecode(\"a: &x [1]\\nb: *x\")", "{\"a\" = [1] \"b\" = [1]}"),
        ("yamldecode(\"a: &x {p: 1, q: 1}\\nb: {<<: *x, q: 2}\")", "{\"a\" = {\"p\" = 1 \"q\" = 1} \"b\" = {\"p\" = 1 \"q\" = 2}}"),
        ("yamldecode(\"[!!str 1, !!float 3]\")", "[\"1\", 3]"),
        ("yamldecode(\"[!!int '1', !!null '']\")", "[\"1\", \"\"]"),
        ("yamldecode(\"2001-12-14t21:59:43.10-05:00\")", "\"2001-12-14T21:59:43-05:00\""),
        ("yamldecode(\"\")", "ERROR has no document"),
        ("yamldecode(\"--- 1\\n--- 2\")", "ERROR more than one document"),
        ("yamldecode(\"null: a\")", "ERROR a key is null"),
        ("yamldecode(\"[1,2]: a\")", "ERROR a key is a list or map"),
        ("yamldecode(\"[.nan]\")", "ERROR a value that is no number"),
        ("yamldecode(\"!foo 1\")", "ERROR a tag that is not supported"),
        ("yamldecode(\"<<: 1\")", "ERROR `<<` needs a map"),
        ("yamldecode(\"{a\")", "ERROR is not valid YAML at line 2"),
        ("yamldecode(\"&a [*a]\")", "ERROR within itself"),
        ("yamldecode(\"*x\")", "ERROR is not valid YAML"),
        ("yamldecode(sensitive(\"a: 1\"))", "(sensitive value)"),
        ("yamldecode(u.id)", "UNKNOWN any"),
    ],
    ..Function::BASE
};

/// A list or map that is not at its end yet, and the number of its anchor.
enum Open {
    List(Vec<Value>, usize),
    Map { entries: Object, merged: Vec<Object>, key: Option<Key>, anchor: usize },
}

enum Key {
    Name(String),
    /// `<<`
    Merge,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Value>,
    documents: usize,
    result: Option<Value>,
    values: usize,
}

fn decode(text: &str) -> Result<Value, String> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        // What the parser says may quote the text.
        let (event, _) = event.map_err(|e| format!("is not valid YAML at line {}, column {}", e.marker().line(), e.marker().col() + 1))?;
        builder.take(event)?;
    }
    builder.result.ok_or_else(|| "has no document in it".to_owned())
}

impl Builder {
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
                let value = match &tag {
                    None if bare => plain(&text)?,
                    None => string(text.as_ref()),
                    Some(tag) => tagged(&tag_name(tag)?, &text, bare)?,
                };
                if bare && text == "<<" && self.expects_key() {
                    self.set_key(Key::Merge);
                    return Ok(());
                }
                // A key stands for its text: `1: a` has the key "1".
                let value = if self.expects_key() && !value.is_null() { string(text.as_ref()) } else { value };
                self.finish(value, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => self.begin(Open::List(Vec::new(), anchor), tag.as_deref(), "seq")?,
            Event::MappingStart(anchor, tag) => {
                let map = Open::Map { entries: Object::new(), merged: Vec::new(), key: None, anchor };
                self.begin(map, tag.as_deref(), "map")?;
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items, anchor)) => self.finish(Value::tuple(items), anchor)?,
                Some(Open::Map { mut entries, merged, anchor, .. }) => {
                    // What is written in the map itself counts before what is merged into it.
                    for (name, value) in merged.into_iter().flatten() {
                        entries.entry(name).or_insert(value);
                    }
                    self.finish(entries.into(), anchor)?;
                }
                None => {}
            },
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().ok_or("refers to an anchor within itself")?;
                self.values += count(&value);
                self.finish(value, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, tag: Option<&Tag>, wanted: &str) -> Result<(), String> {
        if tag.map(tag_name).transpose()?.is_some_and(|t| t != wanted && t != "!") {
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
            Some(Open::Map { entries, merged, key, .. }) => match key.take() {
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge) => match value.kind {
                    Kind::Object(from) => merged.push(from),
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

/// `str` for `!!str`, `!` for the tag that only says "no guessing".
fn tag_name(tag: &Tag) -> Result<String, String> {
    if tag.is_yaml_core_schema() {
        return Ok(tag.suffix.clone());
    }
    if tag.handle.is_empty() && tag.suffix == "!" { Ok("!".to_owned()) } else { Err(unsupported()) }
}

pub(super) fn unsupported() -> String {
    "has a tag that is not supported".to_owned()
}
