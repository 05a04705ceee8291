//! Holes: texts that stand for what nobody knows any more. What is made of them is found in the world; where the hole was, there it is.
//!
//! Evaluating with holes turns every expression into its own inverse, as long as it keeps the texts that go into it: references, templates,
//! base64. What it makes something else of (a sum, JSON with its escapes) is of no use; what is found there is not taken by a type that looks
//! at what it is given.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Kind, Object, Schema, Type, Value};

/// What holes start with. Like all of a hole it survives where only letters and digits do.
const START: &str = "kfhole";
/// The same in base64. A hole's length is a multiple of three, so that nothing around it shows in its base64.
const START_IN_BASE64: &str = "a2Zob2xl";
/// Bytes of a hole: the start, six digits for the node, `x`, two for the attribute.
const LENGTH: usize = 15;
/// The same in base64.
const LENGTH_IN_BASE64: usize = LENGTH / 3 * 4;

/// A node, and the place of one of its attributes in the schema.
pub(crate) type Hole = (usize, usize);

/// What was found where holes were: how often each text.
pub(crate) type Found = BTreeMap<Hole, BTreeMap<String, usize>>;

/// Puts holes where an attribute that is a text will only be known after apply.
pub(crate) fn put(node: usize, schema: &Schema, object: &mut Object) {
    for (place, attribute) in schema.attributes.iter().enumerate().filter(|(_, a)| a.is_computed() && a.ty == Type::String) {
        if let Some(value) = object.get_mut(attribute.name).filter(|v| v.is_unknown()) {
            *value = Value::from(format!("{START}{node:06}x{place:02}")).secret_if(value.secret);
        }
    }
}

/// Compares what is wanted with what was seen, and notes what is in place of the holes.
pub(crate) fn look(wanted: &Value, seen: &Value, found: &mut Found) {
    match (&wanted.kind, &seen.kind) {
        (Kind::String(wanted), Kind::String(seen)) => {
            for (hole, text) in texts(wanted, seen).unwrap_or_default() {
                *found.entry(hole).or_default().entry(text).or_default() += 1;
            }
        }
        (Kind::List(_, wanted) | Kind::Tuple(wanted), Kind::List(_, seen) | Kind::Tuple(seen)) if wanted.len() == seen.len() => {
            wanted.iter().zip(seen).for_each(|(wanted, seen)| look(wanted, seen, found));
        }
        (Kind::Map(_, wanted) | Kind::Object(wanted), Kind::Map(_, seen) | Kind::Object(seen)) => objects(wanted, seen, found),
        _ => {}
    }
}

/// The same for all that two objects have in common.
pub(crate) fn objects(wanted: &Object, seen: &Object, found: &mut Found) {
    for (name, wanted) in wanted {
        if let Some(seen) = seen.get(name) {
            look(wanted, seen, found);
        }
    }
}

/// What stands in the place of each hole; `None` if the rest is not the same, or can't be told apart.
fn texts(wanted: &str, seen: &str) -> Option<Vec<(Hole, String)>> {
    let has_hole = |text: &str| text.contains(START) || text.contains(START_IN_BASE64);
    let in_clear = has_hole(wanted).then(|| in_clear(wanted, seen)).flatten();
    // All of it may be in base64, with more than the hole in it. What is decoded is shorter, but for what is empty.
    in_clear.or_else(|| texts(&text_of(wanted).filter(|text| !text.is_empty())?, &text_of(seen)?))
}

/// The same where holes are between texts that are as they are.
fn in_clear(wanted: &str, seen: &str) -> Option<Vec<(Hole, String)>> {
    let mut found = Vec::new();
    let (mut wanted, mut seen) = (wanted, seen);
    let mut open: Option<(Hole, bool)> = None;
    loop {
        let next = next_hole(wanted);
        let literal = next.map_or(wanted, |(at, ..)| &wanted[..at]);
        match open {
            None => seen = seen.strip_prefix(literal)?,
            Some((hole, is_base64)) => {
                // Two holes without anything between them.
                if literal.is_empty() && next.is_some() {
                    return None;
                }
                let end = if next.is_none() { seen.strip_suffix(literal)?.len() } else { only(seen, literal)? };
                let text = &seen[..end];
                found.push((hole, if is_base64 { text_of(text)? } else { text.to_owned() }));
                seen = &seen[end + literal.len()..];
            }
        }
        let Some((at, length, hole)) = next else { break };
        open = Some((hole, length == LENGTH_IN_BASE64));
        wanted = &wanted[at + length..];
    }
    (!found.is_empty()).then_some(found)
}

/// Where this part is, if it is in one place only: what is in the hole may have the same in it.
fn only(text: &str, part: &str) -> Option<usize> {
    text.find(part).filter(|at| text.rfind(part) == Some(*at))
}

/// Where the next hole is, how long it is written, and which one it is.
fn next_hole(text: &str) -> Option<(usize, usize, Hole)> {
    let plain = text.match_indices(START).find_map(|(at, _)| Some((at, LENGTH, read(text.get(at..at + LENGTH)?)?)));
    let encoded = text.match_indices(START_IN_BASE64).find_map(|(at, _)| {
        let hole = read(&text_of(text.get(at..at + LENGTH_IN_BASE64)?)?)?;
        Some((at, LENGTH_IN_BASE64, hole))
    });
    plain.into_iter().chain(encoded).min()
}

fn read(text: &str) -> Option<Hole> {
    let (node, place) = text.strip_prefix(START)?.split_once('x')?;
    Some((node.parse().ok()?, place.parse().ok()?))
}

fn text_of(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "kfhole000001x02";
    const B: &str = "kfhole000004x00";

    fn check(wanted: &str, seen: &str, expected: Option<&[(Hole, &str)]>) {
        let expected = expected.map(|all| all.iter().map(|(h, t)| (*h, (*t).to_owned())).collect::<Vec<_>>());
        assert_eq!(texts(wanted, seen), expected, "{wanted} / {seen}");
    }

    #[test]
    fn what_is_in_the_place_of_a_hole_is_found() {
        let base64 = |text: &str| STANDARD.encode(text);
        check(A, "text\nof two lines\n", Some(&[((1, 2), "text\nof two lines\n")]));
        check(&format!("id={A}\nname={B}\n"), "id=7\nname=x\n", Some(&[((1, 2), "7"), ((4, 0), "x")]));
        check(&format!("id={A}\n"), "name=7\n", None);
        check(&format!("{A}{B}"), "ab", None);
        check(&format!("{A}\n{B}"), "a\nb", Some(&[((1, 2), "a"), ((4, 0), "b")]));
        check(&format!("{A}\n{B}"), "a\na\nb\nb", None);
        check(&format!("{A}\n\n{B}"), "a\n\n\nb", None);
        check("no hole", "no hole", None);
        check("", "", None);
        check(&base64("abc"), &base64("abc"), None);
        check(&format!("a: {}\n", base64(A)), &format!("a: {}\n", base64("key")), Some(&[((1, 2), "key")]));
        check(&base64(&format!("{{\"a\":\"{A}\"}}")), &base64("{\"a\":\"7\"}"), Some(&[((1, 2), "7")]));
        // base64 in base64: a file with a key in it, in a Secret
        let inner = |text: &str| base64(&format!("key-data: {}\n", base64(text)));
        check(&inner(A), &inner("pem"), Some(&[((1, 2), "pem")]));
        check(&base64(A), "not base64", None);
    }

    #[test]
    fn objects_and_lists_are_gone_through() {
        let wanted =
            Value::object([("a", Value::tuple(vec![A.into(), "x".into()])), ("b", Value::object([("c", B.into())])), ("d", A.into())]);
        let seen = Value::object([("a", Value::tuple(vec!["1".into(), "y".into()])), ("b", Value::object([("c", "2".into())]))]);
        let mut found = Found::new();
        look(&wanted, &seen, &mut found);
        let texts: Vec<_> = found.values().map(|t| t.keys().next().unwrap().as_str()).collect();
        assert_eq!(texts, ["1", "2"]);
    }
}
