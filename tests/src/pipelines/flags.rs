//! The files give the command no flag that it does not have.

use std::collections::BTreeSet;

use crate::parts::root;
use crate::project::Project;

/// The words of a line of shell that begin with a dash, up to `=` or a quote.
fn flags(line: &str) -> impl Iterator<Item = String> + '_ {
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '[' | ']' | ',' | '(' | ')'));
    words.filter(|w| w.starts_with('-') && w.len() > 2 && !w.starts_with("--")).map(|w| w.split('=').next().unwrap_or(w).to_owned())
}

#[test]
fn pipelines_use_flags_that_there_are() {
    let project = Project::new();
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("docs/pipelines")).expect("the files").flatten().filter(|e| e.path().is_file()) {
        // A command that goes on in the next line is one.
        let text = std::fs::read_to_string(entry.path()).expect("text").replace("\\\n", " ");
        for line in text.lines().filter(|l| !l.trim_start().starts_with('#')) {
            for command in ["plan", "apply", "drift", "show", "init"] {
                let Some((_, rest)) = line
                    .split_once(&format!(" {command} "))
                    .filter(|(before, _)| before.contains("karmaform") && !before.contains("CronJob"))
                else {
                    continue;
                };
                for flag in flags(rest.split(['|', ';', '&']).next().unwrap_or(rest)) {
                    seen.insert((command, flag, entry.file_name().to_string_lossy().into_owned()));
                }
            }
        }
    }
    assert!(seen.len() > 15, "{seen:?}");
    for (command, flag, file) in seen {
        let help = project.must(0, &[command, "-help"]);
        let is_there = help.split(|c: char| c.is_whitespace() || c == '=' || c == ',' || c == '[').any(|word| word == flag);
        assert!(is_there, "{file}: {command} has no {flag}:\n{help}");
    }
}
