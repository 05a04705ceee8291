//! Every summary that the language, the engine, a command, a provider or a backend can tell stands in what some test expects. Those that none can
//! bring about are listed, each with its reason. Summaries that are made of little but what is filled in ("Unknown {what}"), or elsewhere than where
//! they are given, are not looked for.

use std::collections::BTreeMap;
use std::fs;

use super::{end_of_code, files, is_test, none, read};
use crate::parts::root;

/// Where diagnostics are looked for.
const PLACES: [&str; 4] = ["core/", "cmd/src/", "providers/", "state-backends/"];
const CALLS: [&str; 3] = ["Diagnostic::error(", "Diagnostic::slip(", "Diagnostic::warning("];
/// What stands between two parts of a summary is a name or a number.
const GAP: usize = 120;
/// So many letters of a summary say which one it is.
const TELLING: usize = 9;

/// What no test brings about: the file, the beginning of the summary, and why not.
const UNSEEN: &[(&str, &str, &str)] = &[
    ("core/engine/src/observe.rs", "Not looked at", "who was cut off is left out of what is told: it stands for that until then"),
    ("core/lang/src/statics.rs", "Unknown name in a template", "what it says is told as an \"Invalid template\""),
    ("core/lang/src/syntax/lower.rs", "String over several lines", "what scans a text says \"Unclosed string\" before"),
    ("core/model/src/driver.rs", "Connection of another provider", "what goes through a connection is asked of its provider"),
    ("core/model/src/driver.rs", "Nothing to get", "a provider that needs files gives them"),
    ("core/model/src/provider.rs", "Nothing to get", "a provider that needs files gives them"),
    ("cmd/src/backup/run.rs", "A backup takes too long", "etcd would have to be slower than the minute that a backup has at least"),
    ("cmd/src/backup/settings.rs", "No temporary file", "the folder of temporary files is that of the whole process"),
    ("cmd/src/bundle/unseen.rs", "Nothing is changed here", "a bundle asks nothing to change"),
    ("cmd/src/cli.rs", "Invalid command line", "all that the flags of today can be used wrongly by has its own words"),
    ("cmd/src/backup/getting.rs", "The backup is gone", "it would have to go between two requests"),
    ("cmd/src/commands/connect/relay.rs", "No local port", "this machine would have to be out of ports or open files"),
    ("cmd/src/drift/backups.rs", "No answer", "it is a part of \"Backups could not be looked at\""),
    ("cmd/src/drift/backups.rs", "A look for a backup ended early", "a task would have to panic"),
    ("cmd/src/testing/run.rs", "Not everything was applied", "whatever ends an apply without success has told an error"),
    ("providers/etcd/src/member.rs", "A member could not be looked at", "a task would have to panic"),
    ("providers/etcd/src/provider.rs", "A member could not be looked at", "there are as many answers as questions"),
    ("providers/kubernetes/src/client.rs", "No client for the cluster", "a task would have to panic"),
    ("providers/kubernetes/src/forward.rs", "No local port", "this machine would have to be out of ports or open files"),
    ("providers/kubernetes/src/look.rs", "An object could not be looked at", "each question comes back with its answer"),
    ("providers/kubernetes/src/preflight_pod.rs", "No local port", "this machine would have to be out of ports or open files"),
    ("providers/kubernetes/src/wait.rs", "Expression was not evaluated", "a task would have to panic"),
    ("providers/ssh/src/artifact.rs", "Artifact can't be prepared", "a task would have to panic"),
    ("providers/ssh/src/host.rs", "Host's thread can't be started", "this machine would have to be out of threads or open files"),
    ("providers/ssh/src/host/forward.rs", "No local port", "this machine would have to be out of ports or open files"),
];

#[test]
fn every_diagnostic_is_seen_in_a_test() {
    let (seen, constants) = (texts_of_tests(), constants());
    let mut problems = Vec::new();
    let mut listed = vec![false; UNSEEN.len()];
    let mut found = 0;
    for file in PLACES.iter().flat_map(|place| files(place, ".rs")).filter(|file| !is_test(file)) {
        let text = read(&file);
        for (line, summary) in summaries(&text[..end_of_code(&text)], &constants) {
            found += 1;
            let unseen = UNSEEN.iter().position(|(f, s, _)| *f == file && summary.starts_with(s));
            if let Some(unseen) = unseen {
                listed[unseen] = true;
            }
            match (seen.iter().any(|text| says(text, &summary)), unseen) {
                (false, None) => problems.push(format!("{file}:{line}: \"{summary}\" is seen in no test")),
                (true, Some(_)) => problems.push(format!("{file}:{line}: \"{summary}\" is seen in a test, and listed as unseen")),
                _ => {}
            }
        }
    }
    let gone = UNSEEN.iter().zip(&listed).filter(|(_, listed)| !**listed);
    problems.extend(gone.map(|((file, summary, _), _)| format!("{file}: \"{summary}\" is listed as unseen, and not there")));
    assert!(found > 300, "{found} summaries: the search finds too little");
    none(problems);
}

/// Cases, golden texts, and the code of tests.
fn texts_of_tests() -> Vec<String> {
    // What is listed in this file is seen nowhere.
    let mut texts: Vec<String> = files("", ".rs")
        .into_iter()
        .filter(|file| !file.ends_with("tidy/diagnostics.rs"))
        .map(|file| {
            let text = read(&file);
            let tests = if is_test(&file) { &text[..] } else { &text[end_of_code(&text)..] };
            // What a test says itself is not what it expects.
            let says = |line: &&str| !line.trim_start().starts_with("//") && !CALLS.iter().any(|call| line.contains(call));
            tests.lines().filter(says).collect::<Vec<_>>().join("\n")
        })
        .collect();
    let golden = files("", ".txt").into_iter().filter(|f| f.contains("tests/") || f.contains("/golden/"));
    texts.extend(golden.filter_map(|file| fs::read_to_string(root().join(file)).ok()));
    texts
}

/// Texts that have a name of their own: `const NAME: &str = "..."`.
fn constants() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in PLACES.iter().flat_map(|place| files(place, ".rs")) {
        for line in read(&file).lines() {
            let Some((_, rest)) = line.split_once("const ") else { continue };
            if let Some((name, quoted)) = rest.split_once(": &str = \"") {
                found.insert(name.to_owned(), literal(quoted));
            }
        }
    }
    found
}

/// Summaries that are written out, or have a name, with the number of the line where each begins.
fn summaries(code: &str, constants: &BTreeMap<String, String>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for call in CALLS {
        for (at, _) in code.match_indices(call) {
            let rest = code[at + call.len()..].trim_start();
            let rest = rest.strip_prefix("format!(").unwrap_or(rest).trim_start();
            let name = rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next().unwrap_or_default();
            let Some(summary) = rest.strip_prefix('"').map(literal).or_else(|| constants.get(name).cloned()) else { continue };
            if parts(&summary).iter().any(|part| part.len() >= TELLING) {
                found.push((code[..at].matches('\n').count() + 1, summary));
            }
        }
    }
    found
}

/// What is always the same in a summary.
fn parts(summary: &str) -> Vec<&str> {
    summary.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).filter(|part| part.len() > 2).collect()
}

/// A text up to its closing quotation mark, without what escapes.
fn literal(quoted: &str) -> String {
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => break,
            '\\' => text.extend(characters.next()),
            c => text.push(c),
        }
    }
    text
}

/// Whether a text has this summary in it, with anything in the place of what is filled in.
fn says(text: &str, summary: &str) -> bool {
    let parts = parts(summary);
    let Some((first, rest)) = parts.split_first() else { return false };
    text.match_indices(first).any(|(at, _)| {
        let mut from = at + first.len();
        rest.iter().all(|part| {
            let until = (from..=(from + GAP + part.len()).min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(from);
            let next = text[from..until].find(part);
            from += next.unwrap_or(0) + part.len();
            next.is_some()
        })
    })
}

#[test]
fn summaries_are_found_and_compared() {
    let constants = BTreeMap::from([("GONE".to_owned(), "It is gone now".to_owned())]);
    let code = "Diagnostic::error(\"Can't read \\\"it\\\"\", d) Diagnostic::warning(\n    format!(\"The member {name} of {} is gone\"), d) Diagnostic::error(summary, d) Diagnostic::error(GONE, d) Diagnostic::error(format!(\"Invalid {what}\"), d)";
    let found = summaries(code, &constants);
    let texts: Vec<&str> = found.iter().map(|(_, summary)| summary.as_str()).collect();
    assert_eq!(texts, ["Can't read \"it\"", "It is gone now", "The member {name} of {} is gone"]);
    assert_eq!((found[0].0, found[1].0), (1, 2), "{found:?}");
    assert!(says("| The member \"ä\" of b is gone\n", &found[2].1));
    assert!(!says("The member a is gone", &found[2].1));
    assert!(!says("", &found[0].1));
}
