//! Regular expressions as Terraform's users write them (RE2's dialect), for a library whose dialect differs in small things.

use ::regex::Regex;

use super::prelude::*;

/// The compiled expression; `index` is the argument it came from.
pub(super) fn compile(a: &Arguments<'_>, index: usize, expression: &str) -> Result<Regex, FunctionError> {
    quietly(expression).ok_or_else(|| FunctionError::at(index, format!("{} is no valid regular expression", a.quote(index))))
}

/// The compiled expression, if it is valid.
pub(super) fn quietly(expression: &str) -> Option<Regex> {
    Regex::new(&translate(expression)?).ok()
}

/// Where the dialects differ: `\d \w \s \b` are ASCII only; a `{` that starts no repetition stands for itself; inside `[]` there are no
/// nested sets and no set operators; `\Q...\E` quotes; a repetition is not repeated again, and there is no flag `x`.
fn translate(expression: &str) -> Option<String> {
    let mut out = String::with_capacity(expression.len());
    let mut rest = expression;
    let mut in_set = false;
    let mut repeated = false;
    while let Some(c) = rest.chars().next() {
        let length = if in_set { None } else { repetition(rest) };
        if let Some(length) = length {
            if repeated || repeats_too_often(&rest[..length]) {
                return None;
            }
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            repeated = true;
            continue;
        }
        repeated = false;
        rest = &rest[c.len_utf8()..];
        match c {
            '(' if !in_set && has_foreign_flag(rest) => return None,
            '\\' if rest.starts_with('Q') && !in_set => {
                let (quoted, after) = rest[1..].split_once("\\E").unwrap_or((&rest[1..], ""));
                out.push_str(&::regex::escape(quoted));
                rest = after;
            }
            // There are no `\u0061` and `\U00000061`.
            '\\' if rest.starts_with(['u', 'U']) => return None,
            '\\' => {
                let is_class = in_set && rest.starts_with(['d', 'D', 'w', 'W', 's', 'S', 'p', 'P']);
                rest = escape(rest, in_set, &mut out);
                rest = if is_class { literal_hyphen(rest, &mut out) } else { rest };
            }
            '[' if !in_set => {
                in_set = true;
                out.push('[');
                rest = move_prefix(rest, "^", &mut out);
                // A bracket that comes first closes nothing.
                if rest.starts_with(']') {
                    out.push_str("\\]");
                    rest = &rest[1..];
                }
            }
            '[' if rest.starts_with(':') => {
                let end = rest[1..].find(":]").map_or(0, |i| i + 3);
                if end > 0 && !CLASSES.contains(&rest[1..end - 2].trim_start_matches('^')) {
                    return None;
                }
                out.push_str(if end == 0 { "\\[" } else { "[" });
                out.push_str(&rest[..end]);
                rest = &rest[end..];
                rest = if end > 0 { literal_hyphen(rest, &mut out) } else { rest };
            }
            '[' => out.push_str("\\["),
            ']' if in_set => {
                in_set = false;
                out.push(']');
            }
            '&' | '~' if in_set => out.extend(['\\', c]),
            '-' if in_set && rest.starts_with('-') => out.push_str("\\-"),
            // One that repeats was taken above.
            '{' if !in_set => out.push_str("\\{"),
            _ => out.push(c),
        }
    }
    Some(out)
}

/// The names of `[:alpha:]` and its like.
const CLASSES: [&str; 14] =
    ["alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word", "xdigit"];

/// True for `{1001}` and the like.
fn repeats_too_often(repetition: &str) -> bool {
    let numbers = repetition.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.map(|digits| digits.parse::<u64>().unwrap_or(u64::MAX)).any(|number| number > 1000)
}

/// The length of the repetition that a text begins with, and of the `?` behind it.
fn repetition(text: &str) -> Option<usize> {
    let length = match text.as_bytes().first()? {
        b'*' | b'+' | b'?' => 1,
        b'{' if repeats(&text[1..]) => text.find('}')? + 1,
        _ => return None,
    };
    Some(length + usize::from(text[length..].starts_with('?')))
}

/// True if this, behind a `(`, sets flags other than `i`, `m`, `s` and `U`.
fn has_foreign_flag(rest: &str) -> bool {
    let Some(flags) = rest.strip_prefix('?') else { return false };
    let end = flags.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(flags.len());
    flags[end..].starts_with([':', ')']) && flags[..end].contains(|c| !"imsU-".contains(c))
}

fn move_prefix<'a>(rest: &'a str, prefix: &str, out: &mut String) -> &'a str {
    match rest.strip_prefix(prefix) {
        Some(after) => {
            out.push_str(prefix);
            after
        }
        None => rest,
    }
}

/// Behind a class in a set a hyphen stands for itself: a class begins no range.
fn literal_hyphen<'a>(rest: &'a str, out: &mut String) -> &'a str {
    match rest.strip_prefix('-') {
        Some(after) => {
            out.push_str("\\-");
            after
        }
        None => rest,
    }
}

/// What follows a backslash.
fn escape<'a>(rest: &'a str, in_set: bool, out: &mut String) -> &'a str {
    let Some(c) = rest.chars().next() else {
        out.push('\\');
        return rest;
    };
    match (c, in_set) {
        ('d', false) => out.push_str("[0-9]"),
        ('D', _) => out.push_str("[^0-9]"),
        ('w', false) => out.push_str("[0-9A-Za-z_]"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('s', false) => out.push_str("[\\t\\n\\f\\r ]"),
        ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
        ('d', true) => out.push_str("0-9"),
        ('w', true) => out.push_str("0-9A-Za-z_"),
        ('s', true) => out.push_str("\\t\\n\\f\\r "),
        ('b', false) => out.push_str("(?-u:\\b)"),
        // Those have a meaning of their own in the library.
        ('<' | '>', _) => out.push(c),
        ('0'..='7', _) => return octal(rest, out),
        // `\pL`
        ('p' | 'P', _) if rest[1..].starts_with(|l: char| l.is_ascii_alphabetic()) => {
            out.push('\\');
            out.push_str(&rest[..2]);
            return &rest[2..];
        }
        // `\p{Greek}`, `\x{1F600}`: these braces are no repetition.
        ('p' | 'P', _) if rest[1..].starts_with("{^") => {
            let (name, after) = rest[3..].split_once('}').unwrap_or((&rest[3..], ""));
            out.push_str(&format!("\\{}{{{name}}}", if c == 'p' { 'P' } else { 'p' }));
            return after;
        }
        ('p' | 'P' | 'x', _) if rest[1..].starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |i| i + 1);
            out.push('\\');
            out.push_str(&rest[..end]);
            return &rest[end..];
        }
        _ => out.extend(['\\', c]),
    }
    &rest[c.len_utf8()..]
}

/// A character by its number in up to three octal digits. A single digit but 0 would be a reference to a group, which there are none.
fn octal<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let length = rest.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
    match u32::from_str_radix(&rest[..length], 8) {
        Ok(number) if length > 1 || number == 0 => out.push_str(&format!("\\x{{{number:x}}}")),
        _ => out.extend(['\\', rest.chars().next().unwrap_or_default()]),
    }
    &rest[length..]
}

/// True if this, behind a `{`, is the rest of `{2}`, `{2,}` or `{2,3}`.
fn repeats(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    !least.is_empty() && least.bytes().all(|b| b.is_ascii_digit()) && most.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, text: &str, expected: Option<&str>) {
        let regex = quietly(expression).unwrap_or_else(|| panic!("{expression} became {:?}", translate(expression)));
        assert_eq!(regex.find(text).map(|m| m.as_str()), expected, "{expression}");
    }

    #[test]
    fn the_dialect_is_re2s() {
        check(r"\d+", "٣3", Some("3"));
        check(r"[\d-]+", "x1-2", Some("1-2"));
        check(r"\w+", "é_a1", Some("_a1"));
        check(r"[^\s]+", " a\u{a0}b", Some("a\u{a0}b"));
        check(r"{a}", "{a}", Some("{a}"));
        check(r"a{2}", "aaa", Some("aa"));
        check(r"a{2,}", "aaa", Some("aaa"));
        check(r"[[a]", "[", Some("["));
        check(r"[]a]+", "]a", Some("]a"));
        check(r"[^]]", "]b", Some("b"));
        check(r"[a&&b]+", "a&b", Some("a&b"));
        check(r"[[:alpha:]]+", "1ab", Some("ab"));
        check(r"[[:word:].]+", "-a.b", Some("a.b"));
        check(r"[[:]+", "a[:", Some("[:"));
        check(r"\Qa.b\E+", "axb a.bb", Some("a.bb"));
        check(r"[^\D]", "a1", Some("1"));
        check(r"(?i)ABC", "abc", Some("abc"));
        check(r"\bfoo\b", "a foo b", Some("foo"));
        check(r"a.c", "a\nc", None);
        check(r"(?s)a.c", "a\nc", Some("a\nc"));
        check(r"\.\/\-", "./-", Some("./-"));
        check(r"\pL+", "1é", Some("é"));
        check(r"\p{Greek}+", "aαβ", Some("αβ"));
        check(r"[^\p{L}]", "a1", Some("1"));
        check(r"\x{1F600}", "😀", Some("😀"));
        check(r"[\w-\.]+@", "a-b.c@x", Some("a-b.c@"));
        check(r"[\w-z]+", "`-z", Some("-z"));
        check(r"[\s-x]+", "a -x", Some(" -x"));
        check(r"[\pL-1]+", "+-1", Some("-1"));
        check(r"[[:digit:]-b]+", "a-1b", Some("-1b"));
        check(r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a@b.com", Some("a@b.com"));
        check(r"\p{^Greek}", "αb", Some("b"));
        check(r"\141\07", "a\u{7}", Some("a\u{7}"));
        check(r"\<a", "<a", Some("<a"));
        check(r"(?i:A)b{1,2}?", "abb", Some("ab"));
        check(r"^[^@]+@[^@]+$", "a@b", Some("a@b"));
        assert!(quietly("a{1000}").is_some());
        assert!(quietly("(").is_none());
        for wrong in [r"(?=a)", "a**", "a?+", "a{2}{3}", "(?x)a b", r"(a)\1", "a{1001}", "a{2,1001}", r"\u0061", "[[:nope:]]"] {
            assert!(quietly(wrong).is_none(), "{wrong}");
        }
    }
}
