//! Messages: configurations with mistakes, and what is said about them. `BLESS=1` rewrites the expectations; read the difference.
//!
//! A file holds cases: `==== name`, the text, `----`, the messages. `%%%% path` starts a further text of the case, with a slash a file of
//! a module.

// The fence against files is for the library.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use karmaform_lang::{VariableOrigin, validate};

use crate::support::{load_all, show};

fn messages(text: &str) -> String {
    let mut texts = vec![("main.kf.hcl".to_owned(), String::new())];
    let mut flags = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("%%%% ") {
            texts.push((path.to_owned(), String::new()));
        } else if let Some(flag) = line.strip_prefix("%%var ") {
            flags.extend(flag.split_once('='));
        } else if let Some((_, body)) = texts.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    let texts = texts.iter().map(|(p, t)| (p.as_str(), t.as_str()));
    let (files, texts): (Vec<_>, Vec<_>) = texts.partition(|(p, _)| p.contains('/'));
    let (config, mut diagnostics, mut sources) = load_all(&texts, &files, |inputs| {
        for (name, value) in flags {
            inputs.text(name, value, VariableOrigin::CommandLine);
        }
    });
    if !diagnostics.has_errors() {
        diagnostics.extend(validate(&config));
    }
    sources.files.extend(config.module_files);
    show(&sources, &diagnostics)
}

fn run(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a case file");
    let mut failures = Vec::new();
    let mut blessed = String::new();
    for case in text.split("==== ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("a name");
        let (input, expected) = rest.split_once("----\n").expect("a line ----");
        let found = messages(input);
        if found.trim() != expected.trim() {
            failures.push(format!("{}: {name}\n  expected\n{expected}  found\n{found}", path.display()));
        }
        blessed.push_str(&format!("==== {name}\n{input}----\n{found}\n"));
    }
    if std::env::var_os("BLESS").is_some() && !failures.is_empty() {
        std::fs::write(path, blessed).expect("written");
        return Vec::new();
    }
    failures
}

#[test]
fn messages_are_as_expected() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lang/cases");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("the cases").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let failures: Vec<_> = paths.iter().flat_map(|p| run(p)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
