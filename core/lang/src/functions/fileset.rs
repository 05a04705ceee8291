//! `fileset`

use super::paths::{clean, expand};
use super::prelude::*;

pub(super) const FUNCTION: Function = Function {
    name: "fileset",
    doc: "The files below a directory whose relative paths match a pattern of `*`, `**`, `?`, `[a-z]` and `{a,b}`.",
    parameters: &[Parameter::string("path"), Parameter::string("pattern")],
    gives: Gives::Is(Shape::Set(&Shape::String)),
    body: Some(|a| {
        let directory = expand(a.context, a.text(0));
        let pattern = clean(a.text(1).trim_start_matches('/'));
        let (up, pattern) = above(&pattern);
        let top = clean(&format!("{directory}{}", "/..".repeat(up)));
        let patterns = alternatives(pattern, 0).ok_or_else(|| FunctionError::at(1, "holds a `{` that is never closed, or too many"))?;
        if patterns.iter().flat_map(|p| p.split('/')).any(is_broken) {
            return Err(FunctionError::at(1, "holds a `[` that is never closed, or ends in a `\\` that stands for nothing"));
        }
        let patterns: Vec<Vec<&str>> = patterns.iter().map(|p| p.split('/').collect()).collect();
        let is_deep = patterns.iter().flatten().any(|part| *part == "**");
        let levels = if is_deep { usize::MAX } else { patterns.iter().map(Vec::len).max().unwrap_or(1) };
        let mut found = a.context.files.list_to(&top, levels).map_err(|why| {
            let why = if a.quote(0).starts_with('"') { format!(": {why}") } else { String::new() };
            FunctionError::at(0, format!("{} can't be listed{why}", a.quote(0)))
        })?;
        found.retain(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            patterns.iter().any(|p| matches_path(p, &parts))
        });
        let all = found.len();
        found.retain(|path| a.context.files.exists(&clean(&format!("{top}/{path}"))) == Ok(true));
        if found.len() < all && !is_deep {
            return Err(FunctionError::at(1, "matches a link that leads nowhere"));
        }
        let base = clean(&if directory.starts_with('/') { directory } else { format!("{}/{directory}", a.context.working_directory) });
        let names: Vec<&str> = base.split('/').filter(|name| !name.is_empty()).collect();
        let inside = &names[names.len().saturating_sub(up)..];
        Ok(Value::set(Type::String, found.iter().map(|path| string(seen_from(inside, path))).collect()))
    }),
    #[cfg(test)]
    rows: &[
        ("fileset(\"conf\",\"*.conf\")", "toset([\"a.conf\", \"b.conf\"])"),
        ("fileset(\"conf\",\"**/*.conf\")", "toset([\"a.conf\", \"b.conf\", \"deep/c.conf\"])"),
        ("fileset(\"conf\",\"{a,deep/c}.conf\")", "toset([\"a.conf\", \"deep/c.conf\"])"),
        ("fileset(\"conf\",\"?.conf\")", "toset([\"a.conf\", \"b.conf\"])"),
        ("fileset(\"conf\",\"[b-z].conf\")", "toset([\"b.conf\"])"),
        ("fileset(\"conf\",\"[^b].conf\")", "toset([\"a.conf\"])"),
        ("fileset(\"conf\",\"[!b].conf\")", "toset([\"b.conf\"])"),
        ("fileset(\".\",\"conf/deep/*\")", "toset([\"conf/deep/c.conf\"])"),
        ("fileset(\"conf\",\"**\")", "toset([\"a.conf\", \"b.conf\", \"deep/c.conf\"])"),
        ("fileset(\"conf/deep\",\"../*.conf\")", "toset([\"../a.conf\", \"../b.conf\"])"),
        ("fileset(\"conf/deep\",\"../**/*.conf\")", "toset([\"../a.conf\", \"../b.conf\", \"c.conf\"])"),
        ("fileset(\"conf\",\"/a.conf\")", "toset([\"a.conf\"])"),
        ("fileset(\"conf/a.conf\",\"*\")", "toset([])"),
        ("fileset(\"links\",\"*\")", "ERROR a link that leads nowhere"),
        ("fileset(\"links\",\"**\")", "toset([])"),
        ("fileset(\"conf\",\"*.md\")", "toset([])"),
        ("fileset(\"conf\",\"{a\")", "ERROR never closed"),
        ("fileset(\"conf\",\"[a\")", "ERROR `[` that is never closed"),
        ("fileset(\"conf\",\"{a,[]}\")", "ERROR `[` that is never closed"),
        ("fileset(\"conf\",\"[ab]\\\\\")", "ERROR `\\` that stands for nothing"),
        ("fileset(\"conf\",\"\\\\[a\")", "toset([])"),
        ("fileset(\"nowhere\",\"*\")", "toset([])"),
        ("fileset(u.id,\"*\")", "UNKNOWN set(string)"),
    ],
    ..Function::BASE
};

/// How many directories up a pattern begins, and the rest of it.
fn above(mut pattern: &str) -> (usize, &str) {
    let mut up = 0;
    while let Some(rest) = pattern.strip_prefix("../") {
        (up, pattern) = (up + 1, rest);
    }
    (up, pattern)
}

/// A path as it is from a directory some names further down.
fn seen_from(inside: &[&str], path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let common = parts.iter().zip(inside).take_while(|(a, b)| a == b).count();
    format!("{}{}", "../".repeat(inside.len() - common), parts[common..].join("/"))
}

/// How deep braces may nest: each level multiplies the alternatives.
const DEEPEST: usize = 8;

/// `a{b,c}` as `ab` and `ac`.
fn alternatives(pattern: &str, depth: usize) -> Option<Vec<String>> {
    let Some(open) = pattern.find('{') else { return Some(vec![pattern.to_owned()]) };
    if depth == DEEPEST {
        return None;
    }
    let (mut level, mut from, mut parts) = (0usize, open + 1, Vec::new());
    for (i, c) in pattern.char_indices().skip_while(|(i, _)| *i < open) {
        match c {
            '{' => level += 1,
            ',' if level == 1 => {
                parts.push(&pattern[from..i]);
                from = i + 1;
            }
            '}' => level -= 1,
            _ => {}
        }
        if level == 0 {
            parts.push(&pattern[from..i]);
            let each = parts.iter().map(|p| alternatives(&format!("{}{p}{}", &pattern[..open], &pattern[i + 1..]), depth + 1));
            return each.collect::<Option<Vec<_>>>().map(|all| all.concat());
        }
    }
    None
}

/// True if a part of a pattern can't be read, so that it would match nothing for ever.
fn is_broken(part: &str) -> bool {
    let mut rest = part.chars();
    while let Some(c) = rest.next() {
        let is_whole = match c {
            // A bracket that comes first closes nothing.
            '[' => rest.next().is_some() && rest.any(|c| c == ']'),
            '\\' => rest.next().is_some(),
            _ => true,
        };
        if !is_whole {
            return true;
        }
    }
    false
}

fn matches_path(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => matches_path(rest, path) || path.split_first().is_some_and(|(_, deeper)| matches_path(pattern, deeper)),
        (Some((part, rest)), Some((name, deeper))) => {
            let (part, name): (Vec<char>, Vec<char>) = (part.chars().collect(), name.chars().collect());
            matches_name(&part, &name) && matches_path(rest, deeper)
        }
        _ => false,
    }
}

fn matches_name(pattern: &[char], name: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return name.is_empty() };
    match (first, name.split_first()) {
        ('*', _) => matches_name(rest, name) || name.split_first().is_some_and(|(_, more)| matches_name(pattern, more)),
        ('?', Some((_, more))) => matches_name(rest, more),
        ('[', Some((c, more))) => {
            let Some(end) = rest.iter().skip(1).position(|c| *c == ']').map(|i| i + 1) else { return false };
            class(&rest[..end], *c) && matches_name(&rest[end + 1..], more)
        }
        ('\\', Some((c, more))) => rest.split_first().is_some_and(|(literal, rest)| literal == c && matches_name(rest, more)),
        (literal, Some((c, more))) => literal == c && matches_name(rest, more),
        (_, None) => false,
    }
}

/// What stands in `[...]`.
fn class(set: &[char], c: char) -> bool {
    let (negated, mut set) = match set.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    while let Some((low, rest)) = set.split_first() {
        set = match rest {
            ['-', high, rest @ ..] => {
                found |= (*low..=*high).contains(&c);
                rest
            }
            _ => {
                found |= *low == c;
                rest
            }
        };
    }
    found != negated
}
