//! Things that the language accepts and the parser does not: a key written twice in an object, numbers beyond a float, some ends of heredocs,
//! line breaks in `{for}` expressions, and behind a call or a list a key that does not begin with a name.
//!
//! The text is patched without changing its length and parsed again; lowering reads names and numbers from the text as written.

use std::collections::BTreeSet;
use std::ops::Range;

use hcl_edit::parser::{self, Error};
use hcl_edit::structure::Body;

use super::doubles;
use super::heredocs::with_clear_ends;
use super::numbers::number_length;
use super::scan::{enclosed_length, identifier_length, idle_breaks, objects_and_comments};

/// Patches per item; each costs one more parse.
const MOST_PATCHES: usize = 64;

/// What the parser says of a key that is there twice.
const TWICE: &str = "redefined object key";

/// A parsed item.
pub(super) struct Patched<T> {
    pub tree: T,
    /// Where keys of objects were renamed.
    pub renamed: BTreeSet<usize>,
}

/// Parses a body, with these ranges blanked out: the insides of objects that are parsed in pieces.
pub(super) fn parse_body(text: &str, blank: &[Range<usize>]) -> Result<Patched<Body>, Error> {
    let text = with_clear_ends(text, false);
    if blank.is_empty() {
        return parse_patching(&text, false, parser::parse_body);
    }
    let mut copy = text.into_owned();
    for range in blank {
        copy.replace_range(range.clone(), &" ".repeat(range.len()));
    }
    parse_patching(&copy, false, parser::parse_body)
}

/// Parses an expression.
pub(super) fn parse_expression(text: &str) -> Result<Patched<hcl_edit::expr::Expression>, Error> {
    parse_patching(&with_clear_ends(text, false), false, parser::parse_expr)
}

/// Parses a template without quotes.
pub(super) fn parse_template(text: &str) -> Result<Patched<hcl_edit::template::Template>, Error> {
    parse_patching(&with_clear_ends(text, true), true, parser::parse_template)
}

fn parse_patching<T>(text: &str, is_template: bool, parse: fn(&str) -> Result<T, Error>) -> Result<Patched<T>, Error> {
    let mut renamed = BTreeSet::new();
    let first = match parse(text) {
        Ok(tree) => return Ok(Patched { tree, renamed }),
        Err(error) => error,
    };
    let mut copy = on_one_line(text, is_template);
    let mut error = match parse(&copy) {
        Ok(tree) => return Ok(Patched { tree, renamed }),
        Err(error) => error,
    };
    if let Some(separated) = with_commas(text, &copy, is_template) {
        match parse(&separated) {
            Ok(tree) => return Ok(Patched { tree, renamed }),
            Err(next) if next.message().contains(TWICE) => (copy, error) = (separated, next),
            Err(_) => {}
        }
    }
    for attempt in 0..MOST_PATCHES {
        let at = error.location().offset();
        let patched = if error.message().contains(TWICE) {
            doubles::rename(text, &mut copy, at, is_template, &mut renamed) || {
                renamed.insert(at);
                rename_key(&mut copy, at, attempt)
            }
        } else {
            tame_number(&mut copy, at)
        };
        if !patched {
            break;
        }
        match parse(&copy) {
            Ok(tree) => return Ok(Patched { tree, renamed }),
            Err(next) => error = next,
        }
    }
    // The message must be about the text as written; only a patch that got further tells more than the first one.
    Err(if error.location().offset() > first.location().offset() && !error.message().contains(TWICE) { error } else { first })
}

/// The text with spaces for line breaks that mean nothing, and for the comments that they end.
fn on_one_line(text: &str, is_template: bool) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in idle_breaks(text, is_template) {
        // The carriage return belongs to the line's end.
        let start = range.start - usize::from(text[..range.start].ends_with('\r'));
        bytes[start..range.end].fill(b' ');
    }
    // Whole characters were replaced, so it is text still.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The copy without comments, and with commas for the line breaks of objects behind which a bracket or a minus begins an entry: the parser would
/// read on with it where a call or a list stands before. `None` if there are none.
fn with_commas(text: &str, copy: &str, is_template: bool) -> Option<String> {
    let (objects, comments) = objects_and_comments(text, is_template);
    // A comment would swallow the comma, or stand in front of the bracket.
    let bare = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        comments.iter().for_each(|comment| bytes[comment.clone()].fill(b' '));
        bytes
    };
    let code = String::from_utf8(bare(text)).ok()?;
    let mut bytes = bare(copy);
    let mut is_changed = false;
    for object in objects.into_iter().filter(|o| o.is_value) {
        for start in object.starts.iter().skip(1) {
            let (before, behind) = code.split_at(*start);
            let Some(line) = before.strip_suffix('\n').and_then(|lines| lines.rsplit('\n').next()) else { continue };
            let ends_entry = !line.trim().is_empty() && !line.trim_end().ends_with([',', '{']);
            // A heredoc would not end any more: a word alone is its end.
            let ends_heredoc = identifier_length(line.trim()) == line.trim().len();
            if behind.trim_start().starts_with(['(', '-']) && ends_entry && !ends_heredoc {
                bytes[start - 1] = b',';
                // The carriage return belongs to the line's end.
                if line.ends_with('\r') {
                    bytes[start - 2] = b' ';
                }
                is_changed = true;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|_| is_changed)
}

/// Gives the key at `at` another name of the same length, where it is the same as one that is written otherwise. What is in brackets, or a
/// string that begins with no letter, becomes a string.
fn rename_key(copy: &mut String, at: usize, attempt: usize) -> bool {
    let Some(rest) = copy.get(at..) else { return false };
    let start = at + usize::from(rest.starts_with('"'));
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = copy.as_bytes()[start..].iter().take_while(|b| is_part(b)).count().max(identifier_length(&copy[start..]));
    if length > 0 {
        copy.replace_range(start..start + length, &doubles::name(length, attempt + 1));
        return true;
    }
    let Some(length) = Some(rest).filter(|r| r.starts_with(['(', '"'])).and_then(enclosed_length) else { return false };
    let name = |length| doubles::name(length, attempt + 1);
    let other = if length > 2 { format!("\"{}\"", name(length - 2)) } else { name(length) };
    copy.replace_range(at..at + length, &other);
    true
}

/// Makes 1 of a number that is too big for a float, at or around `at`. It ends in an exponent, which is as long as the text wants it and
/// which nothing behind it can prolong: with digits alone, `e5` behind them would be read as a part of the number.
fn tame_number(copy: &mut String, at: usize) -> bool {
    let bytes = copy.as_bytes();
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-');
    let mut start = at.min(bytes.len());
    while start > 0 && is_part(bytes[start - 1]) {
        start -= 1;
    }
    let end = bytes.len().min(at + 64);
    for from in start..end {
        let before = from.checked_sub(1).map(|i| bytes[i]);
        if !bytes[from].is_ascii_digit() || before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let length = number_length(&copy[from..]);
        if copy[from..from + length].parse::<f64>().is_ok_and(f64::is_infinite) {
            // What is infinite has five characters at least.
            copy.replace_range(from..from + length, &format!("1e{}", "0".repeat(length - 2)));
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_that_mean_nothing_stop_no_expression() {
        let both = "a = {for k, v in m : k => v == 1 ? 2 :\r\n 3}\nb = 1\n";
        let read = parse_body(both, &[]).expect("it is read");
        assert_eq!(read.tree.len(), 2);
        assert_eq!(on_one_line(both, false), "a = {for k, v in m : k => v == 1 ? 2 :   3}\nb = 1\n");
        let nested = "a = { # for\n  for k in !\nm : f(k) => {\n x = 1 # y\n z = -1\n} # é\n}\n";
        let joined = "a = {         for k in ! m : f(k) => {\n x = 1 # y\n z = -1\n}      }\n";
        assert_eq!(on_one_line(nested, false), joined);
        assert!(parse_body(nested, &[]).is_ok());
        let block = "b {\n  for = 1\n  c   = 2\n}\n";
        assert_eq!(on_one_line(block, false), block);
        let heredoc = "a = [for v in <<E\nx\nE\n == \"x\" ? [1] : [] : { b = 1, b = v }]\nc = 1\n";
        let read = parse_body(heredoc, &[]).expect("it is read");
        assert_eq!(read.tree.len(), 2);
        assert_eq!(read.renamed.len(), 1);
        assert!(parse_template("%{for a, b in f\n(c)}d%{endfor}").is_ok());
    }

    #[test]
    fn a_key_in_brackets_may_stand_behind_a_line_with_a_call() {
        let text = "a = {\n  k = g() ? 1 : b\r\n\n  (c) = [1] == d ? e : f\n  (g) = 2\n  l = 1\n  l = 2\n}\n";
        let read = parse_body(text, &[]).expect("it is read");
        assert_eq!(read.renamed.len(), 1);
        let other = "a = {\n  (k) = 1, # c\n  (l) = [\n    (1)\n  ]\n}\nb {\n  c = 1\n}\n";
        assert_eq!(with_commas(other, other, false), None);
        let entries = "a = {\r\n  k = 1\r\n  (l) = 2\n  -3 = 4\n}\n";
        let separated = "a = {\r\n  k = 1 ,  (l) = 2,  -3 = 4\n}\n";
        assert_eq!(with_commas(entries, entries, false).as_deref(), Some(separated));
        let heredocs = "a = {\n  k = [1]\n  -3 = <<E\nx\nE\n  (l) = <<-E\n  y\n  E\r\n  (m) = 1\n}\n";
        let separated = heredocs.replacen("[1]\n", "[1],", 1);
        assert_eq!(with_commas(heredocs, heredocs, false), Some(separated));
        let comments = "a = {\n  k = g() ? 1 : b # c\n  (d) = 1\n  l = [1]\n  // é\n  /* f */ (g) = 1\n}\n";
        let separated = "a = {\n  k = g() ? 1 : b    ,  (d) = 1\n  l = [1],       \n          (g) = 1\n}\n";
        assert_eq!(with_commas(comments, comments, false).as_deref(), Some(separated));
        assert!(parse_body(comments, &[]).is_ok());
        assert!(parse_body(heredocs, &[]).is_ok());
    }

    #[test]
    fn keys_may_be_written_twice_however_often() {
        let many: String = (0..70).map(|i| format!("  kk{i} = 1\n  kk{i} = 2\n")).collect();
        let short = "  a = 1\n".repeat(30);
        let objects = "{ a = 1, a = 2 },\n".repeat(100);
        for text in [format!("a = {{\n{many}}}\n"), format!("a = {{\n{short}}}\n"), format!("a = [\n{objects}]\n")] {
            assert!(parse_body(&text, &[]).is_ok(), "{text}");
        }
        let renamed = |text: &str| parse_body(text, &[]).expect("it is read").renamed.into_iter().collect::<Vec<_>>();
        assert_eq!(renamed("a = { 日 = 1, 日 = 2 }\n"), [15]);
        assert_eq!(renamed("a = { \"日\" = 1, \"\\u65e5\" = 2 }\n"), [17]);
        assert!(parse_body("b {\n  a = 1\n  a = 2\n}\n", &[]).is_err());
    }

    #[test]
    fn what_stands_behind_a_big_number_is_no_part_of_it() {
        let nines = "9".repeat(400);
        for number in ["1e400", "88888888888e888", "1.5e+999", &nines] {
            for (behind, is_read) in [("", true), (" + 1", true), ("e", false), ("e-", false), (" 1", false), ("_000", false)] {
                let body = format!("a = {number}{behind}\nb = 1\n");
                assert_eq!(parse_body(&body, &[]).is_ok(), is_read, "{body}");
            }
        }
        assert!(parse_body("a = 88888888888e888e8888\n", &[]).is_err());
    }
}
