//! Links on the pages of docs/language lead to files that are there, and to headings that are in them.

use std::fs;
use std::path::Path;

use super::page::Page;
use super::pages;
use crate::parts::root;

#[test]
fn links_of_the_language_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a readable page");
        for target in Page::parse(&text).lines().flat_map(targets).filter(|t| !t.contains("://")) {
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let there = if file.is_empty() { path.clone() } else { path.parent().expect("a directory").join(file) };
            if !leads(&there, anchor) {
                wrong.push(format!("{}: {target}", path.strip_prefix(root()).unwrap_or(&path).display()));
            }
        }
    }
    assert!(wrong.is_empty(), "these lead nowhere:\n{}\n", wrong.join("\n"));
    assert!(count > 0, "no links");
}

/// Where the links in a line lead.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

fn leads(file: &Path, anchor: &str) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    anchor.is_empty() || text.lines().filter_map(|l| l.strip_prefix('#')).any(|title| slug(title.trim_start_matches('#')) == anchor)
}

/// A heading as a part of an address, as sites that show Markdown make it.
fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn headings_have_addresses() {
    assert_eq!(slug(" What is there already: `import`"), "what-is-there-already-import");
    assert_eq!(targets("a [b](c.md#d) and [e](f)").collect::<Vec<_>>(), ["c.md#d", "f"]);
}
