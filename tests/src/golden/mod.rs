//! Cases in the user's language: `tests/cases/**/*.txt`. A case holds files, a state, a world, and commands with what they print.
//!
//! | section | what it is |
//! |---|---|
//! | `-- main.kf.hcl --` | a file. Lines `# Error: 3-6 ...` above a line say what is wrong with it; such a case is loaded and not run |
//! | `-- state --` | what is remembered before the first command: `ssh_file.motd = { path = "/etc/motd" }` |
//! | `-- world --` | what there is. Before the first command it is set; after one it is an expectation |
//! | `-- someone changes --` | attributes of things change behind karmaform's back; `= null` takes a thing away |
//! | `-- fails ... --` | `apply 3`, `observe 3`, `TYPE IDENTITY`, `host ID`, or `nothing` any more |
//! | `-- $ plan --` | a command; the text below is what it prints, and its exit code if that is not 0. What every plan says in the same words is left out; `$$` shows all |
//!
//! `BLESS=1` rewrites expectations. `CASE=part/of/a/name` runs a few.

mod annotations;
mod case;
mod state;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use state::context;
pub(crate) use steps::brief;

use crate::parts::root;

#[test]
fn cases() {
    let wanted = std::env::var("CASE").unwrap_or_default();
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = Vec::new();
    let mut count = 0;
    for path in case_files(&root().join("tests/cases")) {
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        if !name.contains(&wanted) {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).expect("a readable case");
        let now = steps::run(&case::parse(&text)).map(|c| case::print(&c));
        match now {
            Err(problem) => failures.push(format!("{name}: {problem}")),
            Ok(now) if now == text => {}
            Ok(now) if bless => fs::write(&path, now).expect("a writable case"),
            Ok(now) => failures.push(format!("{name}:\n{}", difference(&text, &now))),
        }
    }
    assert!(
        failures.is_empty(),
        "\n\n{}\n\n{} of {count} cases differ; `make bless` takes what is now\n",
        failures.join("\n"),
        failures.len()
    );
    assert!(count > 0, "no case has \"{wanted}\" in its path");
}

fn case_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(case_files(&path));
        } else if path.extension().is_some_and(|e| e == "txt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines that differ, with one around them; the longest common subsequence is not worth its code here.
pub(crate) fn difference(before: &str, after: &str) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - same;
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count().min(rest);
    let part = |lines: &[&str], mark: &str| -> String { lines.iter().map(|l| format!("  {mark} {l}\n")).collect() };
    let context = part(&before[same.saturating_sub(2)..same], " ");
    format!(
        "  line {}\n{context}{}{}",
        same + 1,
        part(&before[same..before.len() - tail], "-"),
        part(&after[same..after.len() - tail], "+")
    )
}
