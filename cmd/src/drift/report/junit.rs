//! JUnit's XML, as GitLab, Jenkins and GitHub's actions read it: a test case for each finding, and one that passes for all the rest.
//!
//! Source of the format: <https://github.com/testmoapp/junitxml>. What is ignored is skipped; what could not be looked at is an error.

use std::collections::BTreeMap;

use karmaform_lang::Sources;

use super::super::{Finding, Kind, Told};
use super::{difference, note, place};
use crate::ui::json::timestamp;
use crate::ui::markup::escaped;

/// The report.
pub(super) fn junit(told: &Told, sources: &Sources) -> String {
    let mut suites: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in &told.findings {
        let block = finding.address.whole().block();
        suites.entry(block.to_string()).or_default().push(finding);
    }
    let errors = told.notes.iter().filter(|d| d.is_error()).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!("<testsuites name=\"karmaform drift\" {}>\n", counts(&told.findings.iter().collect::<Vec<_>>(), 1, errors)));
    let stamp = timestamp(told.now);
    let stamp = stamp.trim_end_matches('Z');
    out.push_str(&format!("  <testsuite name=\"everything else\" {} timestamp=\"{stamp}\">\n", counts(&[], 1, errors)));
    let (name, wrong) = match (told.is_blind, told.is_interrupted) {
        (_, true) => ("a look at all resources".to_owned(), "the look was interrupted"),
        (true, false) => ("a look at all resources".to_owned(), "nothing could be looked at"),
        (false, false) => (format!("{} resources looked at", told.resources), "not everything could be looked at"),
    };
    out.push_str(&format!("    <testcase name=\"{name}\" classname=\"karmaform\""));
    if errors == 0 {
        out.push_str("/>\n");
    } else {
        let all: Vec<String> = told.notes.iter().filter(|d| d.is_error()).map(note).collect();
        out.push_str(&format!(">\n      <error message=\"{wrong}\">{}</error>\n    </testcase>\n", escaped(&all.join("\n"))));
    }
    out.push_str("  </testsuite>\n");
    for (block, findings) in suites {
        out.push_str(&format!("  <testsuite name=\"{}\" {} timestamp=\"{stamp}\">\n", escaped(&block), counts(&findings, 0, 0)));
        // GitLab shows one of a name: what is told of one thing several times has a number.
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for finding in findings {
            let times = names.entry(finding.name()).and_modify(|times| *times += 1).or_insert(1);
            out.push_str(&case(finding, *times, sources));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(findings: &[&Finding], passing: usize, errors: usize) -> String {
    let skipped = findings.iter().filter(|f| f.ignored.is_some()).count();
    let unseen = findings.iter().filter(|f| f.ignored.is_none() && f.kind == Kind::Unreachable).count();
    let failures = findings.len() - skipped - unseen;
    let errors = unseen + errors.min(1);
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"", findings.len() + passing)
}

fn case(finding: &Finding, times: usize, sources: &Sources) -> String {
    let file = place(finding, sources).map(|(file, line)| format!(" file=\"{}\" line=\"{line}\"", escaped(file))).unwrap_or_default();
    let name = escaped(&finding.name()) + &if times > 1 { format!(" ({times})") } else { String::new() };
    let head = format!("    <testcase name=\"{name}\" classname=\"{}\"{file}>\n", escaped(&finding.resource_type));
    let lines: Vec<String> = finding.differences.iter().map(difference).collect();
    let (says, more) = (escaped(&finding.says), escaped(&lines.join("\n")));
    let body = match (&finding.ignored, finding.kind) {
        (Some(by), _) => format!("<skipped message=\"ignored by {}\"/>", escaped(by)),
        (None, Kind::Unreachable) => format!("<error message=\"{says}\">{more}</error>"),
        (None, kind) => format!("<failure message=\"{says}\" type=\"{}\">{more}</failure>", kind.word()),
    };
    format!("{head}      {body}\n    </testcase>\n")
}
