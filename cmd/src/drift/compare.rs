//! What is not the same in two values, part by part, in texts without secrets. Pure.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Kind as ValueKind, Object, Value, same};

use super::Difference;
use crate::ui::values::{SECRET, UNKNOWN};

/// What is in a manifest is as it is: no connections are there.
const MANIFEST: &str = "manifest";
/// A text longer than this is not shown whole.
const LONGEST: usize = 120;

/// Every part that is not the same. What is not known yet is no difference by itself.
pub(super) fn compare(path: &str, is: Option<&Value>, should: Option<&Value>, found: &mut Vec<Difference>) {
    let is = is.filter(|v| !v.is_null());
    let should = should.filter(|v| !v.is_null());
    if same(is, should) || should.is_some_and(|s| may_be(is, s)) {
        return;
    }
    let has_secret = [is, should].into_iter().flatten().any(|v| v.secret);
    if let (Some(is), Some(should), false) = (is, should, has_secret) {
        if let (Some(a), Some(b)) = (is.as_entries(), should.as_entries()) {
            // How something is reached is nothing that drifts; what is reached is.
            let is_text = |object: &Object| ["provider", "id"].iter().all(|n| object.get(n).is_some_and(|v| v.as_str().is_some()));
            let is_way = !path.starts_with(MANIFEST) && is_text(a) && is_text(b);
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|n| !is_way || n.as_str() == "id").collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&path, a.get(name), b.get(name), found);
            }
            return;
        }
        // Of containers, variables, webhooks those that are there too much or too little.
        if let Some((a, b)) = by_name(is).zip(by_name(should)).filter(|(a, b)| a.keys().ne(b.keys())) {
            let names: BTreeSet<&str> = a.keys().chain(b.keys()).copied().collect();
            names.into_iter().for_each(|name| compare(&format!("{path}[{name:?}]"), a.get(name).copied(), b.get(name).copied(), found));
            return;
        }
        let is_ordered = |v: &Value| matches!(v.kind, ValueKind::List(..) | ValueKind::Tuple(_));
        if let (Some(a), Some(b)) = (is.as_items(), should.as_items())
            && a.len() == b.len()
            && is_ordered(is)
        {
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| compare(&format!("{path}[{i}]"), Some(a), Some(b), found));
            return;
        }
    }
    let lines = is.and_then(Value::as_str).zip(should.and_then(Value::as_str)).filter(|_| !has_secret).and_then(|(a, b)| unlike(a, b));
    let (is, should) = lines.map_or_else(|| (is.map(text), should.map(text)), |(is, should)| (Some(is), Some(should)));
    found.push(Difference { path: path.to_owned(), is, should, follows: false });
}

/// The items of a list in which each has a name of its own.
fn by_name(list: &Value) -> Option<BTreeMap<&str, &Value>> {
    let items = list.as_items()?;
    let named: BTreeMap<&str, &Value> = items.iter().filter_map(|i| Some((i.get("name")?.as_str()?, i))).collect();
    (named.len() == items.len()).then_some(named)
}

/// True if what is there may be what should be, as far as that is known. Where a whole is secret its parts are not told one by one, and one that is
/// not known yet must not make a difference of it.
fn may_be(is: Option<&Value>, should: &Value) -> bool {
    if should.is_unknown() || same(is, Some(should)) {
        return true;
    }
    if should.is_wholly_known() {
        return false;
    }
    let Some(is) = is else { return false };
    if let (Some(a), Some(b)) = (is.as_entries(), should.as_entries()) {
        return a.len() == b.len() && b.iter().all(|(name, should)| a.contains_key(name) && may_be(a.get(name), should));
    }
    match (is.as_items(), should.as_items()) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(is, should)| may_be(Some(is), should)),
        _ => false,
    }
}

/// Of two long texts, from the first line that is not the same to the last.
fn unlike(is: &str, should: &str) -> Option<(String, String)> {
    if !is.trim_end().contains('\n') || !should.trim_end().contains('\n') {
        return None;
    }
    let (is, should): (Vec<&str>, Vec<&str>) = (is.lines().collect(), should.lines().collect());
    let same_first = is.iter().zip(&should).take_while(|(a, b)| a == b).count();
    let same_last = is[same_first..].iter().rev().zip(should[same_first..].iter().rev()).take_while(|(a, b)| a == b).count();
    let shown = |lines: &[&str]| match &lines[same_first..lines.len() - same_last] {
        [] => format!("nothing at line {}", same_first + 1),
        lines => format!("from line {}: {}", same_first + 1, shortened(&format!("{:?}", lines.join("\n")))),
    };
    let sides = (shown(&is), shown(&should));
    // Only ends of lines differ.
    (sides.0 != sides.1).then_some(sides)
}

/// On one line, and without secrets.
pub(super) fn text(value: &Value) -> String {
    if value.secret {
        return SECRET.to_owned();
    }
    if value.is_unknown() {
        return UNKNOWN.to_owned();
    }
    let json = crate::ui::json::known(value).unwrap_or_default();
    let text = json.as_str().map_or_else(|| json.to_string(), |s| format!("{s:?}"));
    shortened(&text)
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let shown: String = text.chars().take(LONGEST).collect();
    format!("{shown}... ({} characters)", text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_yet_makes_no_difference() {
        let data = |token: Value, ca: &str| Value::object([("token", token), ("ca", ca.into())]).secret();
        let differs = |is: &Value, should: &Value| {
            let mut found = Vec::new();
            compare("data", Some(is), Some(should), &mut found);
            found.len()
        };
        let later = || Value::unknown(karmaform_model::Type::String);
        let is = data("t".into(), "c");
        assert_eq!(differs(&is, &data(later(), "c")), 0);
        assert_eq!(differs(&is, &data(later(), "other")), 1);
        assert_eq!(differs(&is, &data("other".into(), "c")), 1);
        assert_eq!(differs(&Value::strings(["a", "b"]), &Value::tuple(vec!["a".into(), later()])), 0);
        assert_eq!(differs(&Value::strings(["a"]), &Value::tuple(vec!["a".into(), later()])), 1);
    }

    #[test]
    fn of_lists_of_things_with_names_those_are_told_that_differ() {
        let item = |name: &str, value: i64| Value::object([("name", name.into()), ("value", value.into())]);
        let differs = |is: Vec<Value>, should: Vec<Value>| {
            let mut found = Vec::new();
            compare("env", Some(&Value::tuple(is)), Some(&Value::tuple(should)), &mut found);
            found.iter().map(|d| format!("{} {:?} {:?}", d.path, d.is, d.should)).collect::<Vec<_>>().join("; ")
        };
        let told = differs(vec![item("theirs", 1), item("a", 2), item("b", 3)], vec![item("a", 1), item("b", 3)]);
        assert_eq!(told, r#"env["a"].value Some("2") Some("1"); env["theirs"] Some("{\"name\":\"theirs\",\"value\":1}") None"#);
        let replaced = differs(vec![item("theirs", 1), item("b", 3)], vec![item("a", 1), item("b", 3)]);
        assert_eq!(
            replaced,
            r#"env["a"] None Some("{\"name\":\"a\",\"value\":1}"); env["theirs"] Some("{\"name\":\"theirs\",\"value\":1}") None"#
        );
        assert!(differs(vec![item("a", 1), item("b", 2)], vec![item("b", 2), item("a", 1)]).starts_with("env[0].name"));
        // Of those that have none, or the same one twice, all.
        assert!(differs(vec![item("a", 1), item("a", 2)], vec![item("a", 1)]).starts_with("env Some("));
    }

    #[test]
    fn of_long_texts_the_lines_that_differ_are_shown() {
        let of = |is: &str, should: &str| unlike(is, should).map(|(a, b)| format!("{a} | {b}"));
        assert_eq!(of("a\nb\nc\n", "a\nB\nc\n").unwrap(), "from line 2: \"b\" | from line 2: \"B\"");
        assert_eq!(of("a\nb\n# theirs\n", "a\nb\n").unwrap(), "from line 3: \"# theirs\" | nothing at line 3");
        assert_eq!(of("a\na\n", "a\na\na\n").unwrap(), "nothing at line 3 | from line 3: \"a\"");
        assert_eq!(of("a\nb", "a\nb\n"), None);
        assert_eq!(of("one", "two"), None);
    }
}
