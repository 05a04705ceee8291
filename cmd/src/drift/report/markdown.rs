//! Markdown, for GitHub's step summary and GitLab's notes.

use karmaform_lang::Sources;

use super::super::{Finding, Kind, Told};
use super::{difference, extent, note, place, summary, title};

/// So many findings of a kind are shown open; the rest is folded.
const OPEN: usize = 20;
/// GitHub shows no summary at all of more than 1 MiB, and GitLab takes no note of more than 1,000,000 signs; some room is for what a pipeline adds.
const MOST: usize = 900_000;

/// The report.
pub(super) fn markdown(told: &Told, sources: &Sources) -> String {
    let counts = summary(told);
    let title = if counts.is_empty() { title(told).to_owned() } else { format!("{}: {counts}", title(told)) };
    let mut out = format!("## {title}\n\n{}.\n", extent(told));
    for kind in Kind::ALL {
        let of_kind: Vec<&Finding> = told.counted().filter(|f| f.kind == kind).collect();
        section(&mut out, (kind.word(), kind.meaning()), &of_kind, sources);
    }
    let ignored: Vec<&Finding> = told.findings.iter().filter(|f| f.ignored.is_some()).collect();
    section(&mut out, ("ignored", "told, and not counted"), &ignored, sources);
    let gone = told.news.as_ref().map(|n| n.gone.as_slice()).unwrap_or_default();
    if !gone.is_empty() {
        out.push_str(&format!("\n### {} gone\n\ntold before, and well now\n\n", gone.len()));
        fill(&mut out, gone.iter().map(|p| format!("- {} {}: {}\n", p.kind, code(&p.address), plain(&p.says))));
    }
    if !told.notes.is_empty() {
        out.push_str("\n### Notes\n\n");
        fill(&mut out, told.notes.iter().map(|d| format!("- {}\n", plain(&note(d)))));
    }
    out
}

fn section(out: &mut String, (word, meaning): (&str, &str), findings: &[&Finding], sources: &Sources) {
    if findings.is_empty() {
        return;
    }
    out.push_str(&format!("\n### {} {word}\n\n{meaning}\n\n", findings.len()));
    let is_folded = findings.len() > OPEN;
    if is_folded {
        out.push_str("<details><summary>all of them</summary>\n\n");
    }
    out.push_str("| resource | what | where |\n|---|---|---|\n");
    let row = |finding: &&Finding| {
        let mut what = if finding.is_new == Some(true) { "**new**: ".to_owned() } else { String::new() };
        what.push_str(&plain(&finding.says));
        finding.differences.iter().for_each(|d| what.push_str(&format!("<br>{}", code(&difference(d)))));
        let at = place(finding, sources).map(|(file, line)| format!("{}:{line}", plain(file))).unwrap_or_default();
        format!("| {} | {what} | {at} |\n", code(&finding.address.to_string()))
    };
    fill(out, findings.iter().map(row));
    if is_folded {
        out.push_str("\n</details>\n");
    }
}

/// As many of the lines as there is room for, and how many there is none for.
fn fill(out: &mut String, lines: impl Iterator<Item = String>) {
    let mut left = 0;
    for line in lines {
        if left == 0 && out.len() + line.len() <= MOST {
            out.push_str(&line);
        } else {
            left += 1;
        }
    }
    if left > 0 {
        out.push_str(&format!("\n... and {left} more, for which there is no room here.\n"));
    }
}

/// Text that means nothing else in a table.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Nobody is called by what stands in a value.
            '@' => out.push_str("&#64;"),
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(sign);
            }
            c => out.push(c),
        }
    }
    out
}

/// The same in a fixed font. As HTML: a backtick in a code span, or a bar in a table, would end it.
fn code(text: &str) -> String {
    format!("<code>{}</code>", plain(text))
}
