//! What the tests of both types use: objects, the way through the state, and OpenSSL as a second opinion.

use std::fs;
use std::process::{Command, Output};

use futures::executor::block_on;
use karmaform_model::{Attribute, Change, Diagnostics, Object, PlanContext, ResourceType, Value};
use x509_parser::pem::Pem;

pub(crate) const HOUR: i64 = 3600;

/// These attributes, and the defaults of all others.
pub(crate) fn wanted(kind: &dyn ResourceType<()>, parts: &[(&str, Value)]) -> Object {
    let given = |a: &Attribute| parts.iter().find(|(n, _)| *n == a.name).map(|(_, v)| v.clone());
    let attributes = kind.schema().attributes.iter().filter(|a| a.is_configurable());
    let value = |a: &Attribute| given(a).or_else(|| a.default.clone()).unwrap_or_else(|| Value::null(a.ty.clone()));
    let mut object: Object = attributes.map(|a| (a.name.to_owned(), value(a))).collect();
    kind.schema().mark(&mut object);
    object
}

pub(crate) fn plan(kind: &dyn ResourceType<()>, now: i64, before: Option<&Object>, wanted: &Object) -> Result<Change, Diagnostics> {
    kind.plan(&PlanContext { now }, before, Some(wanted))
}

/// Applies a change and goes through the state, as the next run finds it.
pub(crate) fn applied(kind: &dyn ResourceType<()>, change: &Change) -> Object {
    let object = block_on(kind.apply(&(), change)).unwrap().unwrap();
    for (name, value) in change.after().unwrap() {
        assert!(!value.is_wholly_known() || object[name] == *value, "{name} was shown in the plan and is kept");
    }
    kind.schema().decode(&kind.schema().encode(&object)).unwrap()
}

pub(crate) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object[name].as_str().unwrap()
}

pub(crate) fn summaries(problems: &Diagnostics) -> String {
    problems.iter().map(|p| format!("{}: {} {}", p.summary, p.detail, p.hints.join(" "))).collect::<Vec<_>>().join("\n")
}

/// The bytes of a certificate.
pub(crate) fn der(object: &Object) -> Vec<u8> {
    Pem::iter_from_buffer(text(object, "certificate").as_bytes()).next().unwrap().unwrap().contents
}

/// Runs OpenSSL over files of these names and contents; `None` if this machine has none.
pub(crate) fn openssl(files: &[(&str, &str)], arguments: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    Command::new("openssl").args(arguments).current_dir(folder.path()).output().ok()
}

/// OpenSSL does this without complaint, if there is one.
pub(crate) fn openssl_agrees(files: &[(&str, &str)], arguments: &[&str]) {
    if let Some(output) = openssl(files, arguments) {
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "openssl {arguments:?}: {said}");
    }
}
