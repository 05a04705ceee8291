//! Error cases: what is wrong stands above the line it is wrong in, `# Error: 3-6 summary`, then `# Why: ...` and `# Hint: ...`.
//!
//! Columns count characters from 1 and include the last one. A diagnostic without a place stands at the top of the first file.

use karmaform_lang::{SourceFile, Sources, VariableInputs, load, validate_beside};
use karmaform_model::{Diagnostic, FileId, Registry, Severity, Span};

use super::case::{Case, trimmed};
use super::state::context;

const MARKS: [&str; 5] = ["# Error: ", "# Warning: ", "# Why: ", "# Hint: ", "# See: "];

/// Loads the files of a case, and gives it back with what is wrong written into it.
///
/// # Errors
/// What is wrong with the case itself.
pub(super) fn run(case: &Case, registry: &Registry) -> Result<Case, String> {
    let mut now = case.clone();
    let mut sources = Sources::default();
    let mut inputs = VariableInputs::default();
    for section in &mut now.sections {
        section.body = section.body.lines().filter(|l| !is_mark(l)).flat_map(|l| [l, "\n"]).collect();
        let id = sources.add(SourceFile { path: section.name.clone(), text: section.body.clone() });
        if section.name.ends_with(".kfvars.hcl") {
            inputs.file(id);
        }
    }
    let (config, mut diagnostics) = load(&sources, &inputs, &context(), registry);
    let beside = validate_beside(&config, &diagnostics);
    diagnostics.extend(beside);
    if diagnostics.is_empty() {
        return Err("nothing is wrong with it, and it has no command".to_owned());
    }
    for (number, section) in (0..).zip(&mut now.sections) {
        let file = FileId(number);
        let mut marks: Vec<(usize, String)> = diagnostics
            .iter()
            .filter(|d| d.span.map_or(number == 0, |s| s.file == file))
            .map(|d| (d.span.map_or(0, |s| sources.position(file, s.start).0 - 1), text(d, &sources)))
            .collect();
        marks.sort_by_key(|(line, _)| *line);
        let mut out = String::new();
        for (at, line) in section.body.lines().enumerate() {
            out.extend(marks.iter().filter(|(l, _)| *l == at).map(|(_, t)| t.as_str()));
            out.extend([line, "\n"]);
        }
        let lines = section.body.lines().count();
        out.extend(marks.iter().filter(|(l, _)| *l >= lines).map(|(_, t)| t.as_str()));
        section.body = trimmed(&out);
    }
    Ok(now)
}

fn is_mark(line: &str) -> bool {
    MARKS.iter().any(|m| line.starts_with(m))
}

fn text(d: &Diagnostic, sources: &Sources) -> String {
    let word = if d.severity == Severity::Error { "Error" } else { "Warning" };
    let place = d.span.map_or_else(|| "-".to_owned(), |s| columns(s, sources));
    let detail = (!d.detail.is_empty()).then(|| format!("# Why: {}\n", d.detail.replace('\n', " ")));
    let labels = d.labels.iter().map(|(span, w)| {
        let place = sources.position(span.file, span.start);
        format!("# See: {}:{} {w}\n", sources.get(span.file).path, place.0)
    });
    let hints = d.hints.iter().map(|h| format!("# Hint: {h}\n"));
    format!("# {word}: {place} {}\n", d.summary) + &detail.into_iter().chain(labels).chain(hints).collect::<String>()
}

fn columns(span: Span, sources: &Sources) -> String {
    let (from, to) = (sources.position(span.file, span.start), sources.position(span.file, span.end));
    if from.0 == to.0 { format!("{}-{}", from.1, to.1.saturating_sub(1).max(from.1)) } else { format!("{}...", from.1) }
}
