//! Runs the tables of all function files, and asks of every function what must hold for all of them.

use karmaform_model::{Type, Value};

use super::testing::{context, evaluate, fits};
use super::{LIST, all, call, names};

#[test]
fn every_row_of_every_function_holds() {
    let rows = LIST.iter().flat_map(|f| f.rows);
    let wrong: Vec<_> = rows
        .filter_map(|(text, expected)| {
            let result = evaluate(text);
            (!fits(&result, expected)).then(|| format!("{text}\n   expected {expected}\n   got      {result}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_function_has_a_row_and_a_doc() {
    for function in LIST {
        assert!(function.doc.ends_with('.'), "{} has no doc", function.name);
        let called = function.rows.iter().any(|(text, _)| text.contains(&format!("{}(", function.name)));
        assert!(called || function.body.is_none(), "{} has no row in its table", function.name);
    }
    let names = names();
    assert_eq!(names.len(), all().len());
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "a name is there twice");
}

/// An argument of the type that holds a text which must not get into a message.
fn canary(ty: &Type) -> Value {
    match ty {
        Type::Bool => true.into(),
        Type::Number => 98_765_432_109i64.into(),
        Type::Any | Type::String => "canary-1234".into(),
        Type::List(t) => Value::tuple(vec![canary(t)]),
        Type::Set(t) => Value::set((**t).clone(), vec![canary(t)]),
        _ => Value::object([("canary-1234", "canary-1234".into())]),
    }
}

#[test]
fn no_message_quotes_a_secret() {
    let context = context();
    for function in LIST.iter().filter(|f| f.body.is_some()) {
        for count in 0..4 {
            let Some(given) = (0..count).map(|i| function.parameter(i).map(|p| canary(&p.shape.ty()))).collect::<Option<Vec<_>>>() else {
                continue;
            };
            for odd in
                [None, Some(Value::from("canary-1234")), Some(98_765_432_109i64.into()), Some(Value::tuple(vec!["canary-1234".into()]))]
            {
                for place in 0..count.max(1) {
                    let mut given = given.clone();
                    if let (Some(odd), Some(v)) = (&odd, given.get_mut(place)) {
                        *v = odd.clone();
                    }
                    let given: Vec<_> = given.into_iter().map(Value::secret).collect();
                    if let Err(e) = call(function.name, &given, &context) {
                        assert!(!e.message.contains("canary") && !e.message.contains("98765432109"), "{}: {}", function.name, e.message);
                    }
                }
            }
        }
    }
}

#[test]
fn a_secret_first_argument_makes_the_result_secret() {
    let exempt = ["nonsensitive", "issensitive", "type"];
    for function in LIST.iter().filter(|f| f.body.is_some() && !exempt.contains(&f.name)) {
        for (text, expected) in function.rows.iter().filter(|(_, expected)| !expected.starts_with("ERROR")) {
            let call = text.strip_prefix(function.name).and_then(|t| t.strip_prefix('(')).and_then(|t| t.strip_suffix(')'));
            let Some(inside) = call.filter(|t| !t.is_empty() && !t.contains("...")) else { continue };
            let Some(first) = first_argument(inside) else { continue };
            let text = format!("{}(sensitive({first}){})", function.name, &inside[first.len()..]);
            assert_eq!(evaluate(&text), "(sensitive value)", "{text}, which is {expected} without the mark");
        }
    }
}

/// The text up to the first comma outside of brackets and strings; none if it is not balanced.
fn first_argument(text: &str) -> Option<&str> {
    let (mut depth, mut quoted, mut escaped) = (0i32, false, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => return Some(&text[..i]),
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    (depth == 0 && !quoted).then_some(text)
}
