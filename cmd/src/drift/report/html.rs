//! A page for people.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::Sources;

use super::super::{Difference, Finding, Kind, Past, Told};
use super::{extent, place, summary, title};
use crate::page::{Entry, Group, Page, THEME, marked};
use crate::report::Reads;
use crate::ui::diagnostics::{errors_text, warnings_text};
use crate::ui::style::{Mark, Tone};

/// The group of what is told of and does not count.
const IGNORED: &str = "ignored";
/// The group of what an earlier look told, and is well now.
const GONE: &str = "gone";

/// The report.
pub(super) fn page(told: &Told, reads: &Reads, sources: &Sources) -> Page {
    let mut groups: Vec<Group> = Kind::ALL.map(|k| Group { word: k.word(), meaning: k.meaning(), tone: k.tone() }).into();
    groups.push(Group { word: IGNORED, meaning: "told, and not counted", tone: Tone::Faint });
    groups.push(Group { word: GONE, meaning: "told before, and well now", tone: Tone::Add });
    let ignored = told.findings.iter().filter(|f| f.ignored.is_some());
    let shown: Vec<&Finding> = told.counted().chain(ignored).collect();
    let mut marks = BTreeMap::new();
    for (index, finding) in shown.iter().enumerate() {
        let tone = if finding.ignored.is_some() { Tone::Faint } else { finding.kind.tone() };
        marks.entry(&finding.address).or_insert_with(|| (tone, Page::link(index)));
    }
    let named: BTreeSet<&karmaform_model::Address> = marks.keys().copied().collect();
    let tone = match told.code() {
        0 => Tone::Add,
        3 => Tone::Change,
        _ => Tone::Remove,
    };
    Page {
        title: [title(told).to_owned(), summary(told)].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(": "),
        about: extent(told),
        tone: Some(tone),
        groups,
        entries: shown.iter().map(|f| entry(f, sources)).chain(told.news.iter().flat_map(|n| &n.gone).map(gone)).collect(),
        picture: crate::report::picture(told.graph.iter().map(|(a, needs)| (a, needs.as_slice())), &marks, reads),
        drawing: None,
        texts: notes(told, sources),
        rest: told.graph.keys().filter(|a| !named.contains(a)).map(ToString::to_string).collect(),
    }
}

fn entry(finding: &Finding, sources: &Sources) -> Entry {
    let (group, says) = match &finding.ignored {
        Some(by) => (IGNORED, format!("{}: {}; ignored by {by}", finding.kind.word(), finding.says)),
        None if finding.is_new == Some(true) => (finding.kind.word(), format!("new: {}", finding.says)),
        None => (finding.kind.word(), finding.says.clone()),
    };
    Entry {
        group,
        name: finding.address.to_string(),
        says,
        impact: Vec::new(),
        place: place(finding, sources).map(|(file, line)| format!("{file}:{line}")),
        text: finding.differences.iter().map(difference).collect(),
    }
}

fn gone(past: &Past) -> Entry {
    let says = format!("it was {}: {}", past.kind, past.says);
    Entry { group: GONE, name: past.address.clone(), says, impact: Vec::new(), place: None, text: String::new() }
}

/// The part, as it is, and as it should be.
fn difference(difference: &Difference) -> String {
    let mut out = format!("{}{}\n", marked(Mark::Change), difference.path);
    let sides = [(Mark::Remove, "is       ", &difference.is), (Mark::Add, "should be", &difference.should)];
    for (mark, word, value) in sides {
        let value = value.as_deref().unwrap_or("(not there)");
        out.push_str(&format!("    {}{} {value}\n", marked(mark), THEME.paint(Tone::Faint, word)));
    }
    out
}

fn notes(told: &Told, sources: &Sources) -> Vec<(String, String)> {
    let errors = errors_text(told.notes.iter(), sources, &THEME);
    let warnings = warnings_text(told.notes.iter(), sources, &THEME, false);
    let both = [("Errors", errors), ("Warnings", warnings)];
    both.into_iter().filter(|(_, text)| !text.is_empty()).map(|(title, text)| (title.to_owned(), text.trim().to_owned())).collect()
}
