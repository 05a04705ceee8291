//! The specification suite of the language: what it gives and what it refuses. It is not in the repository; where it is, an environment
//! variable says.

// The fence against files and the environment is for the library.
#![allow(clippy::disallowed_methods)]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use karmaform_model::{Catalog, FileId, Object, Value, same};

use super::{Body, parse_body};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown};
use crate::scope::{Scope, Site};
use crate::{Context, Sources, VariableInputs, load};

/// A body as an object: blocks under their kind and labels.
fn object(evaluator: &Evaluator<'_>, body: &Body, scope: &Scope<'_>) -> Object {
    let mut out = Object::new();
    let mut errors = Errors::default();
    for attribute in &body.attributes {
        out.insert(attribute.name.clone(), evaluator.eval(&attribute.expr, scope, &mut errors));
    }
    assert!(errors.list.is_empty(), "{:?}", errors.list);
    for block in &body.blocks {
        let mut here = Value::from(object(evaluator, &block.body, scope));
        for label in block.labels.iter().rev() {
            here = Value::from(Object::from([(label.text.clone(), here)]));
        }
        merge(&mut out, block.kind.clone(), here);
    }
    out
}

fn merge(into: &mut Object, name: String, value: Value) {
    let both = match (into.get(&name).and_then(Value::as_entries), value.as_entries()) {
        (Some(a), Some(b)) => {
            let mut all = a.clone();
            for (name, value) in b {
                merge(&mut all, name.clone(), value.clone());
            }
            all.into()
        }
        _ => value,
    };
    into.insert(name, both);
}

fn cases(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            cases(&path, found);
        } else if path.extension().is_some_and(|e| e == "t") {
            found.push(path);
        }
    }
}

#[test]
fn the_specification_suite_holds() {
    let Some(data) = std::env::var_os("KARMAFORM_SHARED_DATA") else {
        let _ = writeln!(std::io::stderr(), "SKIPPED the_specification_suite_holds: KARMAFORM_SHARED_DATA is not set");
        return;
    };
    let context = Context::alone();
    let (config, _) = load(&Sources::default(), &VariableInputs::default(), &context, &Catalog::default());
    let evaluator = Evaluator::new(&config, &NothingKnown);
    let site = Site { closed: true, ..Site::default() };
    let mut paths = Vec::new();
    cases(&Path::new(&data).join("hcl/specsuite/tests"), &mut paths);
    assert!(!paths.is_empty());
    for path in paths {
        let expected = std::fs::read_to_string(&path).expect("a case");
        let text = std::fs::read_to_string(path.with_extension("hcl")).expect("its text");
        let parsed = parse_body(FileId(0), &text);
        // That an argument is unexpected is no question of syntax.
        let unexpected = path.ends_with("attributes/unexpected.t");
        let refused = expected.contains("diagnostics {") && !unexpected;
        assert_eq!(parsed.diagnostics.has_errors(), refused, "{}: {:?}", path.display(), parsed.diagnostics);
        if !path.starts_with(Path::new(&data).join("hcl/specsuite/tests/expressions")) {
            continue;
        }
        let wanted = parse_body(FileId(1), &expected);
        let names = [("bar", Value::from("Bar")), ("space_bar", Value::from("  Bar"))];
        Scope::new(&site).bind(&names, |scope| {
            let found = Value::from(object(&evaluator, &parsed.body, scope));
            let result = &wanted.body.attribute("result").expect("a result").expr;
            let mut errors = Errors::default();
            let wanted = evaluator.eval(result, scope, &mut errors);
            assert!(errors.list.is_empty(), "{:?}", errors.list);
            assert!(same(Some(&found), Some(&wanted)), "{}\nfound  {found:?}\nwanted {wanted:?}", path.display());
        });
    }
}
