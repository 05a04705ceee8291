//! The expression of a `wait`, in CEL (<https://kubernetes.io/docs/reference/using-api/cel/>), and the only user of the library for it.
//!
//! `object` is the object as it is, as in Kubernetes' own rules; its fields have names of their own as well. What an expression asks for and
//! is not there is not there yet. Expressions come from users: they are read and evaluated on a thread of their own, within a time.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, Value as Cel};
use karmaform_model::Diagnostic;
use serde_json::Value as Json;

/// The variable that is the whole object.
const OBJECT: &str = "object";
/// Nobody writes a longer one; the parser's work grows with it.
const LENGTH: usize = 4096;
/// The longest time for one look. Nested `all` and `exists` can take any time; on objects of a server they take microseconds.
const LIMIT: Duration = Duration::from_secs(2);
/// Of its thread: nested expressions are nested calls.
const STACK: usize = 16 << 20;

/// What is wrong with an expression, if it can't even be read.
pub(crate) fn problem(expression: &str) -> Option<Diagnostic> {
    let wrong = |why: String| {
        Diagnostic::error("Unreadable expression", format!("`expression` of `wait` can't be read: {why}."))
            .with_hint("Write it in CEL, like \"status.readyReplicas == spec.replicas\" or \"has(object.status.loadBalancer.ingress)\".")
    };
    if expression.len() > LENGTH {
        return Some(wrong(format!("it is longer than {LENGTH} bytes")));
    }
    let text = expression.to_owned();
    match apart(move || Env::stdlib().compile(&text).err().map(|e| e.to_string())) {
        Some(read) => read.map(|why| wrong(in_a_line(&why))),
        None => Some(wrong("reading it takes too long".to_owned())),
    }
}

/// Why it is not so yet, in a few words; none if it is.
///
/// # Errors
/// What will never be yes or no.
pub(crate) fn missing(expression: &str, live: &Json) -> Result<Option<String>, Diagnostic> {
    let (text, object) = (expression.to_owned(), live.clone());
    let answer = apart(move || {
        let env = Arc::new(Env::stdlib());
        let program = env.compile(&text).map_err(|e| in_a_line(&e.to_string()))?;
        let mut context = Context::with_env(env);
        for (name, value) in object.as_object().into_iter().flatten() {
            context.add_variable_from_value(name.as_str(), value_of(value));
        }
        context.add_variable_from_value(OBJECT, value_of(&object));
        match program.execute(&context) {
            Ok(Cel::Bool(answer)) => Ok(Some(answer)),
            Ok(_) => Ok(None),
            Err(error) => Err(reason(&error)),
        }
    });
    match answer {
        Some(Ok(Some(true))) => Ok(None),
        Some(Ok(Some(false))) => Ok(Some(format!("`{expression}` is not so"))),
        Some(Ok(None)) => Err(Diagnostic::error("Expression is neither true nor false", format!("`{expression}` gives another value."))
            .with_hint("Compare it with what it should be.")),
        Some(Err(why)) => Ok(Some(format!("`{expression}` can't be told: {why}"))),
        // Not asked again: what was started goes on as long as it likes.
        None => Err(Diagnostic::error("Expression takes too long", format!("`{expression}` has no value after {} s.", LIMIT.as_secs()))
            .with_hint("Write it without `all`, `exists` or `map` inside each other.")),
    }
}

/// Does it on a thread of its own; none if that takes too long, or ends without an answer.
fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().stack_size(STACK).spawn(move || drop(sender.send(work()))).ok()?;
    receiver.recv_timeout(LIMIT).ok()
}

/// Only the kinds of errors that quote no value are told as they are: a value may be secret.
fn reason(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) | ExecutionError::UndeclaredReference(name) => format!("there is no `{name}`"),
        ExecutionError::NoSuchOverload(_) | ExecutionError::UnexpectedType { .. } => in_a_line(&error.to_string()),
        _ => "its operators do not fit what is there".to_owned(),
    }
}

fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
}

/// Whole numbers are `int`, as the fields of Kubernetes' objects are.
fn value_of(json: &Json) -> Cel {
    match json {
        Json::Null => Cel::Null,
        Json::Bool(b) => Cel::Bool(*b),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Cel::Int(n),
            (_, Some(n)) => Cel::UInt(n),
            _ => Cel::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Cel::from(text.as_str()),
        Json::Array(items) => Cel::List(Arc::new(items.iter().map(value_of).collect())),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), value_of(value)));
            Cel::Map(Map { map: Arc::new(entries.collect()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live() -> Json {
        json!({ "kind": "Deployment", "metadata": { "labels": { "a.b/c": "x" } }, "spec": { "replicas": 2 },
            "status": { "availableReplicas": 1, "conditions": [{ "type": "Available", "status": "True", "ratio": 0.5 }], "none": null } })
    }

    #[test]
    fn what_is_so_is_so_and_the_rest_says_why_not() {
        let check = |expression: &str, part: Option<&str>| {
            let found = missing(expression, &live()).unwrap();
            assert_eq!(found.is_some(), part.is_some(), "{expression}: {found:?}");
            assert!(found.clone().unwrap_or_default().contains(part.unwrap_or_default()), "{expression}: {found:?}");
        };
        check("spec.replicas == 2 && object.spec.replicas > status.availableReplicas", None);
        check("object.status.conditions.exists(c, c.type == 'Available' && c.status == \"True\")", None);
        check("metadata.labels['a.b/c'].startsWith('x') && size(status.conditions) == 1", None);
        check("has(object.status.availableReplicas) && !has(object.status.readyReplicas)", None);
        check("status.none == null && status.conditions[0].ratio < 1.0", None);
        check("status.availableReplicas == spec.replicas", Some("`status.availableReplicas == spec.replicas` is not so"));
        check("status.readyReplicas == spec.replicas", Some("there is no `readyReplicas`"));
        check("data.key == 'x'", Some("there is no `data`"));
        check("spec.replicas == 2 && status.loadBalancer.ingress.size() > 0", Some("there is no `loadBalancer`"));
        check("status.conditions[3].type == 'x'", Some("can't be told"));
    }

    #[test]
    fn no_value_is_quoted() {
        let secret = json!({ "data": { "password": "hunter22" }, "list": ["hunter22"] });
        for expression in
            ["data.password > 3", "data.password + 3 == 'x'", "list['hunter'] == 1", "data.password.size(1, 2) == 3", "-data.password == 1"]
        {
            let found = missing(expression, &secret).unwrap().unwrap();
            assert!(found.contains("can't be told") && !found.contains("hunter22"), "{found}");
        }
    }

    #[test]
    fn what_can_never_be_waited_for_is_an_error() {
        assert_eq!(missing("status.availableReplicas", &live()).unwrap_err().summary, "Expression is neither true nor false");
        assert_eq!(problem("status.availableReplicas == spec.replicas"), None);
        for wrong in ["status.availableReplicas ==", "a = 1", "has(1)", "", "'open"] {
            let error = problem(wrong).unwrap();
            assert!(error.summary == "Unreadable expression" && !error.detail.contains('\n'), "{wrong}: {error:?}");
        }
        assert!(problem(&"x".repeat(LENGTH + 1)).unwrap().detail.contains("longer than"));
        // As deep as its length allows: an answer, and no overflow.
        assert!(problem(&"(".repeat(LENGTH)).is_some());
        let _ = problem(&format!("{}1{}", "(".repeat(2000), ")".repeat(2000)));
        let _ = problem(&"!".repeat(LENGTH));
    }

    #[test]
    fn an_evaluation_ends() {
        let list = json!({ "l": (0..3000).collect::<Vec<_>>() });
        let begin = std::time::Instant::now();
        let error = missing("l.all(a, l.all(b, l.all(c, a + b + c >= 0)))", &list).unwrap_err();
        assert!(begin.elapsed() < LIMIT * 10, "{:?}", begin.elapsed());
        assert_eq!(error.summary, "Expression takes too long");
    }
}
