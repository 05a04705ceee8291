//! JSON with the place of everything in it: what libraries for JSON don't tell of keys and values. Says what is wrong once, at its place.

use std::collections::BTreeMap;
use std::ops::Range;

use karmaform_model::Diagnostic;

/// Objects and lists may be inside of each other so deep, as blocks and brackets may be.
const DEEPEST: usize = 64;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    pub at: Range<usize>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    /// As written.
    Number,
    Text(Text),
    List(Vec<Node>),
    Object(Vec<(Text, Range<usize>, Node)>),
}

/// A text, and where each of its bytes stands if some of it was escaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text {
    pub text: String,
    /// The place of every byte, and of what follows the last; nothing where it is as written.
    pub places: Vec<usize>,
    /// Where it starts, without the quote.
    pub start: usize,
}

/// Where something is wrong, what, and what to do; the place of an earlier one of the same name.
#[derive(Debug)]
pub(super) struct Problem {
    at: Range<usize>,
    summary: &'static str,
    detail: String,
    hint: Option<&'static str>,
    earlier: Option<Range<usize>>,
}

impl Problem {
    pub(super) fn told(self, span: impl Fn(Range<usize>) -> karmaform_model::Span) -> Diagnostic {
        let mut error = Diagnostic::error(self.summary, self.detail).with_span(Some(span(self.at)));
        if let Some(earlier) = self.earlier {
            error = error.with_label(span(earlier), "first written here");
        }
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// Reads a whole text. Keys that are written twice are told beside what was read; anything else ends it.
pub(super) fn read(text: &str) -> (Result<Node, Problem>, Vec<Problem>) {
    let mut reader = Reader { text, at: 0, depth: 0, doubles: Vec::new() };
    let read = reader.whole();
    (read, reader.doubles)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    doubles: Vec<Problem>,
}

impl Reader<'_> {
    fn whole(&mut self) -> Result<Node, Problem> {
        let node = self.value()?;
        self.space();
        match self.peek() {
            None => Ok(node),
            Some(_) => Err(self.wrong("A file holds one JSON object, and this stands behind it.", None)),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The character here, or the end.
    fn here(&self) -> Range<usize> {
        self.at..self.at + self.text.get(self.at..).and_then(|t| t.chars().next()).map_or(0, char::len_utf8)
    }

    fn wrong(&self, detail: impl Into<String>, hint: Option<&'static str>) -> Problem {
        Problem { at: self.here(), summary: "Invalid JSON", detail: detail.into(), hint, earlier: None }
    }

    /// What is not there that should be.
    fn expected(&self, what: &str) -> Problem {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let hint = match self.peek() {
            Some(b'#' | b'/') => Some("JSON has no comments; an entry with the key \"//\" is ignored."),
            Some(b'\'') => Some("Texts stand in double quotes."),
            Some(b'"' | b'{' | b'[') if what.starts_with("\",\"") => Some("Put a comma between the entries."),
            _ => None,
        };
        match rest.chars().next() {
            None => self.wrong(format!("The file ends where {what} should follow."), Some("Is a bracket or a quote missing?")),
            Some('"') => self.wrong(format!("Here {what} should follow, and not a double quote."), hint),
            Some('\'') => self.wrong(format!("Here {what} should follow, and not a single quote."), hint),
            Some(found) if found.is_control() => {
                self.wrong(format!("Here {what} should follow, and not \"{}\".", found.escape_default()), hint)
            }
            Some(found) => self.wrong(format!("Here {what} should follow, and not \"{found}\"."), hint),
        }
    }

    fn value(&mut self) -> Result<Node, Problem> {
        self.space();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { kind, at: start..self.at })
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<Kind, Problem>) -> Result<Kind, Problem> {
        if self.depth == DEEPEST {
            let detail = format!("Objects and lists may be nested {DEEPEST} levels deep.");
            return Err(Problem { summary: "Nested too deeply", ..self.wrong(detail, None) });
        }
        self.depth += 1;
        self.at += 1;
        let kind = inside(self);
        self.depth -= 1;
        kind
    }

    fn object(&mut self) -> Result<Kind, Problem> {
        let mut entries: Vec<(Text, Range<usize>, Node)> = Vec::new();
        let mut seen: BTreeMap<String, Range<usize>> = BTreeMap::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Kind::Object(entries));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.after_comma(b'}', "a key in double quotes"));
            }
            let start = self.at;
            let key = self.string()?;
            let span = start..self.at;
            if let Some(first) = seen.get(&key.text).filter(|_| key.text != "//") {
                self.doubles.push(Problem {
                    at: span.clone(),
                    summary: "Key written twice",
                    detail: format!("This object has the key \"{}\" already.", key.text),
                    hint: Some("Keep one of the two; several blocks of one kind go into a list."),
                    earlier: Some(first.clone()),
                });
            } else {
                seen.insert(key.text.clone(), span.clone());
            }
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.expected("\":\""));
            }
            self.at += 1;
            let value = self.value()?;
            entries.push((key, span, value));
            if self.ends(b'}')? {
                return Ok(Kind::Object(entries));
            }
        }
    }

    fn list(&mut self) -> Result<Kind, Problem> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Kind::List(items));
        }
        loop {
            self.space();
            if self.peek() == Some(b']') {
                return Err(self.after_comma(b']', "a value"));
            }
            items.push(self.value()?);
            if self.ends(b']')? {
                return Ok(Kind::List(items));
            }
        }
    }

    fn after_comma(&self, close: u8, what: &str) -> Problem {
        if self.peek() == Some(close) {
            return self.wrong("The last entry has a comma behind it.", Some("Remove the comma."));
        }
        self.expected(what)
    }

    /// Behind an entry: true at the end, false if another one follows.
    fn ends(&mut self, close: u8) -> Result<bool, Problem> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.expected(&format!("\",\" or \"{}\"", char::from(close)))),
        }
    }

    fn word(&mut self) -> Result<Kind, Problem> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, kind) in [("true", Kind::Bool(true)), ("false", Kind::Bool(false)), ("null", Kind::Null)] {
            if rest.starts_with(word) && !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                self.at += word.len();
                return Ok(kind);
            }
        }
        if rest.starts_with(|c: char| c.is_alphabetic()) {
            return Err(
                self.wrong("A word without quotes is no value.", Some("Write \"${...}\" for an expression, and texts in double quotes."))
            );
        }
        Err(self.expected("a value"))
    }

    fn number(&mut self) -> Result<Kind, Problem> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = super::super::numbers::number_length(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += length;
        let goes_on = matches!(self.peek(), Some(b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_'));
        if length == 0 || goes_on || digits > 1 && rest.starts_with('0') {
            let at = start..self.at.max(start + 1);
            return Err(Problem { at, ..self.wrong("This is no number as JSON has them.", Some("Write it like 8, -1.5 or 1e6.")) });
        }
        Ok(Kind::Number)
    }

    /// A text in quotes.
    fn string(&mut self) -> Result<Text, Problem> {
        let open = self.at;
        self.at += 1;
        let start = self.at;
        let mut out = Text { start, ..Text::default() };
        loop {
            let Some(c) = self.text.get(self.at..).and_then(|t| t.chars().next()) else {
                let at = open..open + 1;
                return Err(Problem {
                    at,
                    ..self.wrong("This text has no closing quote.", Some("Add the quote; a line break in a text is \\n."))
                });
            };
            match c {
                '"' => {
                    if !out.places.is_empty() {
                        out.places.push(self.at);
                    }
                    self.at += 1;
                    return Ok(out);
                }
                '\\' => {
                    let at = self.at;
                    // From here on places differ from what is written.
                    if out.places.is_empty() {
                        out.places.extend((0..out.text.len()).map(|i| start + i));
                    }
                    let c = self.escaped()?;
                    out.text.push(c);
                    out.places.extend(std::iter::repeat_n(at, c.len_utf8()));
                }
                '\n' | '\r' | '\t' | '\0'..='\u{1f}' => {
                    return Err(
                        self.wrong("A text holds no line breaks, tabs or other control characters.", Some("Write \\n or \\t instead."))
                    );
                }
                c => {
                    if !out.places.is_empty() {
                        out.places.extend(self.at..self.at + c.len_utf8());
                    }
                    out.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// What a backslash and what follows it stand for.
    fn escaped(&mut self) -> Result<char, Problem> {
        let start = self.at;
        self.at += 1;
        let byte = self.peek();
        self.at += usize::from(byte.is_some_and(|b| b.is_ascii()));
        let plain = match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            _ => return Err(self.no_escape(start)),
        };
        Ok(plain)
    }

    fn no_escape(&self, start: usize) -> Problem {
        let hint = Some("There are \\n, \\t, \\r, \\b, \\f, \\\", \\\\, \\/ and \\uNNNN; a backslash itself is written \\\\.");
        Problem {
            at: start..self.at.max(start + 1),
            summary: "Invalid escape sequence",
            ..self.wrong("JSON knows no such sequence.", hint)
        }
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    /// Characters beyond the first plane are written as two of these. Half of one alone is what can't be read, as in Go.
    fn unicode(&mut self, start: usize) -> Result<char, Problem> {
        let Some(first) = self.unit() else { return Err(self.no_escape(start)) };
        let behind = self.at;
        if (0xd800..=0xdbff).contains(&first) && self.text.get(behind..).is_some_and(|t| t.starts_with("\\u")) {
            self.at += 2;
            if let Some(low) = self.unit().filter(|l| (0xdc00..=0xdfff).contains(l)) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // It is a character by itself.
            self.at = behind;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, at: Range<usize>, detail: &str) {
        let problem = read(text).0.expect_err(text);
        assert_eq!((problem.at.clone(), problem.detail.as_str()), (at, detail), "{text}");
    }

    #[test]
    fn everything_has_its_place() {
        let text = r#"{"a": [1, "x\n\u00e9y"]}"#;
        let Kind::Object(entries) = read(text).0.unwrap().kind else { panic!() };
        let (key, span, value) = &entries[0];
        assert_eq!((key.text.as_str(), span.clone(), &text[value.at.clone()]), ("a", 1..4, r#"[1, "x\n\u00e9y"]"#));
        let Kind::List(items) = &value.kind else { panic!() };
        assert_eq!((&items[0].kind, items[0].at.clone()), (&Kind::Number, 7..8));
        let Kind::Text(Text { text: inner, places, start }) = &items[1].kind else { panic!() };
        assert_eq!((inner.as_str(), *start), ("x\néy", 11));
        assert_eq!(*places, [11, 12, 14, 14, 20, 21]);
        assert_eq!(
            read(r#""\ud83d\ude00""#).0.unwrap().kind,
            Kind::Text(Text { text: "😀".into(), places: vec![1, 1, 1, 1, 13], start: 1 })
        );
        for (text, read_as) in
            [(r#""\ud83dx""#, "\u{fffd}x"), (r#""\ud83d\u0041\udc00""#, "\u{fffd}A\u{fffd}"), (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀")]
        {
            let Kind::Text(Text { text: inner, .. }) = read(text).0.unwrap().kind else { panic!() };
            assert_eq!(inner, read_as);
        }
    }

    #[test]
    fn what_is_no_json_is_said_where_it_stands() {
        check("", 0..0, "The file ends where a value should follow.");
        check("{\"a\": 1,}", 8..9, "The last entry has a comma behind it.");
        check("{\"a\" 1}", 5..6, "Here \":\" should follow, and not \"1\".");
        check("{\"a\": 1 \"b\": 2}", 8..9, "Here \",\" or \"}\" should follow, and not a double quote.");
        check("{'a': 1}", 1..2, "Here a key in double quotes should follow, and not a single quote.");
        check("{a: 1}", 1..2, "Here a key in double quotes should follow, and not \"a\".");
        check("{\"a\": b}", 6..7, "A word without quotes is no value.");
        check("{\"a\": \"b}", 6..7, "This text has no closing quote.");
        check("{\"a\": \"b\n\"}", 8..9, "A text holds no line breaks, tabs or other control characters.");
        check("[\"\\q\"]", 2..4, "JSON knows no such sequence.");
        check("[\"\\ud80\"]", 2..4, "JSON knows no such sequence.");
        check("[01]", 1..3, "This is no number as JSON has them.");
        check("[1.]", 1..2, "This is no number as JSON has them.");
        check("{} {}", 3..4, "A file holds one JSON object, and this stands behind it.");
        check(&"[".repeat(99), 64..65, "Objects and lists may be nested 64 levels deep.");
    }

    #[test]
    fn keys_that_are_there_twice_are_told_and_comments_are_not() {
        let (node, doubles) = read(r#"{"a": 1, "//": 1, "a": 2, "//": 2}"#);
        assert!(node.is_ok());
        assert_eq!((doubles.len(), doubles[0].at.clone(), doubles[0].earlier.clone()), (1, 18..21, Some(1..4)));
    }
}
