//! Diagnostics as text: summary, where, the source line, why, what to do.
//!
//! Lines of variable files are never shown: values of secrets stand there.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use karmaform_engine::CHECK_FAILED;
use karmaform_lang::Sources;
use karmaform_model::{Diagnostic, Severity, Span};

use super::style::{Theme, Tone};
use super::values::visible;
use crate::project::is_shown;

/// More columns than this make the excerpt harder to read.
const WIDEST_EXCERPT: usize = 160;
/// So many equal warnings are shown before the rest is counted.
const WARNINGS_ALIKE: usize = 1;

/// All errors, one after another.
pub(crate) fn errors_text<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>, sources: &Sources, theme: &Theme) -> String {
    diagnostics.into_iter().filter(|d| d.is_error()).map(|d| draw(d, sources, theme)).collect()
}

/// All warnings. Those with the same summary are counted after the first. `compact`: summaries only.
pub(crate) fn warnings_text<'a>(
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
    sources: &Sources,
    theme: &Theme,
    compact: bool,
) -> String {
    let warnings: Vec<&Diagnostic> = diagnostics.into_iter().filter(|d| !d.is_error()).collect();
    let mut out = String::new();
    if compact && !warnings.is_empty() {
        out = format!("\n{}\n\n", theme.strong(Tone::Change, "Warnings:"));
    }
    // Each check has its own words.
    let has_others = |d: &Diagnostic| d.summary != CHECK_FAILED;
    // By summary: how many are still to come, and how many were.
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for warning in warnings.iter().filter(|d| has_others(d)) {
        counts.entry(&warning.summary).or_default().0 += 1;
    }
    for warning in &warnings {
        let (mut later, mut earlier) = (0, 0);
        if let Some(count) = counts.get_mut(warning.summary.as_str()) {
            count.0 -= 1;
            (later, earlier) = *count;
            count.1 += 1;
        }
        if earlier >= WARNINGS_ALIKE {
            continue;
        }
        let plural = if later == 1 { "" } else { "s" };
        let rest = if later > 0 { format!("(and {later} more similar warning{plural} elsewhere)") } else { String::new() };
        if compact {
            let place = warning.span.and_then(|span| {
                let file = sources.files.get(span.file.0 as usize).filter(|f| is_shown(&f.path))?;
                Some(format!("on {} line {}", file.path, sources.position(span.file, span.start).0))
            });
            let below = place.into_iter().chain((later > 0).then_some(rest)).map(|line| format!("  {line}\n")).collect::<String>();
            out.push_str(&format!("- {}\n{below}", warning.summary));
            continue;
        }
        let mut shown = (*warning).clone();
        if later > 0 {
            shown.detail.push_str(&format!("\n\n{rest}"));
        }
        out.push_str(&draw(&shown, sources, theme));
    }
    out
}

/// One diagnostic, with an empty line before it.
pub(crate) fn draw(diagnostic: &Diagnostic, sources: &Sources, theme: &Theme) -> String {
    let (word, tone) = match diagnostic.severity {
        Severity::Error => ("Error: ", Tone::Remove),
        Severity::Warning => ("Warning: ", Tone::Change),
    };
    let mut text = format!("{}{}\n", theme.strong(tone, word), theme.strong(Tone::Plain, &diagnostic.summary));
    if let Some(address) = &diagnostic.address {
        text.push_str(&format!("\n  with {address},\n"));
    }
    if let Some(excerpt) = excerpt(diagnostic, sources, theme) {
        if diagnostic.address.is_none() {
            text.push('\n');
        }
        text.push_str(&excerpt);
        if !excerpt.ends_with('\n') {
            text.push('\n');
        }
    }
    // On a terminal the frame takes two columns.
    let inner = Theme { width: theme.width.map(|w| w.saturating_sub(2)), ..theme.clone() };
    if !diagnostic.detail.is_empty() {
        text.push_str(&format!("\n{}\n", inner.wrap(&harmless(&diagnostic.detail))));
    }
    if !diagnostic.hints.is_empty() {
        text.push('\n');
        for hint in &diagnostic.hints {
            let hint = inner.wrap(&harmless(hint)).replace('\n', "\n          ");
            text.push_str(&format!("  = {} {hint}\n", theme.paint(Tone::Read, "help:")));
        }
    }
    framed(&text, tone, theme)
}

/// Hosts and servers say some of it, their logs among it: it is to do nothing to a terminal, and to leave no codes where there is none.
fn harmless(text: &str) -> String {
    let lines = text.split('\n').map(|line| visible(line.strip_suffix('\r').unwrap_or(line)));
    lines.collect::<Vec<_>>().join("\n")
}

fn framed(text: &str, tone: Tone, theme: &Theme) -> String {
    if !theme.color {
        return format!("\n{text}");
    }
    let bar = theme.paint(tone, "\u{2502}");
    let body: String = text.lines().map(|l| if l.is_empty() { format!("{bar}\n") } else { format!("{bar} {l}\n") }).collect();
    format!("{}\n{body}{}\n", theme.paint(tone, "\u{2577}"), theme.paint(tone, "\u{2575}"))
}

fn excerpt(diagnostic: &Diagnostic, sources: &Sources, theme: &Theme) -> Option<String> {
    let span = diagnostic.span?;
    let file = sources.get(span.file);
    if file.path.is_empty() {
        return None;
    }
    let (line, column) = sources.position(span.file, span.start);
    if holds_values(&file.path) || file.text.is_empty() {
        return Some(format!("  on {} line {line}, column {column}\n", file.path));
    }
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_level(level);
    let here = diagnostic.labels.iter().find(|(s, _)| *s == span).map(|(_, word)| word.as_str());
    let others = diagnostic.labels.iter().filter(|(s, _)| *s != span);
    let beside: Vec<(Range<usize>, &str)> =
        others.clone().filter(|(s, _)| s.file == span.file).map(|(s, word)| (one_line(&file.text, *s), word.as_str())).collect();
    let primary = one_line(&file.text, span);
    let first = beside.iter().map(|(place, _)| place.start).fold(primary.start, usize::min);
    let last = beside.iter().map(|(place, _)| place.end).fold(primary.end, usize::max);
    let lines = lines_of(&file.text, first..last);
    let within = |place: Range<usize>| place.start - lines.start..place.end - lines.start;
    let number = file.text[..lines.start].bytes().filter(|b| *b == b'\n').count() + 1;
    let mut snippet = Snippet::source(&file.text[lines.clone()]).path(file.path.as_str()).line_start(number);
    snippet = snippet.annotation(AnnotationKind::Primary.span(within(primary)).label(here));
    for (place, word) in beside {
        snippet = snippet.annotation(AnnotationKind::Context.span(within(place)).label(word));
    }
    group = group.element(snippet);
    let mut elsewhere = String::new();
    for (place, word) in others.filter(|(s, _)| s.file != span.file) {
        let other = sources.get(place.file);
        let (line, column) = sources.position(place.file, place.start);
        elsewhere.push_str(&format!("  {}:{line}:{column}: {word}\n", other.path));
    }
    let renderer = if theme.color { Renderer::styled().hyperlink(false) } else { Renderer::plain() };
    let renderer = renderer.term_width(theme.width.unwrap_or(WIDEST_EXCERPT).min(WIDEST_EXCERPT));
    Some(format!("{}\n{elsewhere}", renderer.render(&[group])))
}

/// The part of a span on its first line: a whole block as an excerpt says less than its head.
fn one_line(text: &str, span: Span) -> Range<usize> {
    let boundary = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (boundary(span.start), boundary(span.end.max(span.start)));
    let line_end = text[start..].find(['\n', '\r']).map_or(text.len(), |n| start + n);
    start..end.min(line_end).max(start)
}

/// The whole lines from one place to another. What draws an excerpt goes through all that it is given, and there may be thousands in one file.
fn lines_of(text: &str, places: Range<usize>) -> Range<usize> {
    let start = text[..places.start].rfind('\n').map_or(0, |n| n + 1);
    // What is behind the last line is shown on that.
    if start == text.len() {
        return 0..text.len();
    }
    start..text[places.end..].find('\n').map_or(text.len(), |n| places.end + n + 1)
}

/// Variable files hold values, maybe secret ones.
fn holds_values(path: &str) -> bool {
    !is_shown(path)
}

#[cfg(test)]
mod tests {
    use karmaform_lang::SourceFile;
    use karmaform_model::FileId;

    use super::*;

    fn sources() -> Sources {
        Sources {
            files: vec![
                SourceFile { path: "main.kf.hcl".into(), text: "output \"z\" {\n  value = nope.x\n}\n".into() },
                SourceFile { path: "karmaform.kfvars.hcl".into(), text: "password = \"hunter2\"\n".into() },
            ],
        }
    }

    fn check(diagnostic: &Diagnostic, expected: &str) {
        assert_eq!(draw(diagnostic, &sources(), &Theme::plain()), expected);
    }

    fn span(file: u32, start: u32, end: u32) -> Option<Span> {
        Some(Span { file: FileId(file), start, end })
    }

    #[test]
    fn what_others_say_does_nothing_to_a_terminal() {
        let error = Diagnostic::error("Unit did not start", "haproxy said:\r\n\u{1b}[31m\tno\u{9b}2J\n").with_hint("Look at \u{7}it.");
        let shown = "\nError: Unit did not start\n\nhaproxy said:\n\u{fffd}[31m\tno\u{fffd}2J\n\n\n  = help: Look at \u{fffd}it.\n";
        check(&error, shown);
    }

    #[test]
    fn an_error_shows_its_line_why_and_what_to_do() {
        let error = Diagnostic::error("Reference to undeclared resource", "A resource \"nope\" \"x\" has not been declared.")
            .with_span(span(0, 23, 29))
            .with_hint("Declare it.");
        check(
            &error,
            "\nError: Reference to undeclared resource\n\n --> main.kf.hcl:2:11\n  |\n2 |   value = nope.x\n  |           ^^^^^^\n\n\
             A resource \"nope\" \"x\" has not been declared.\n\n  = help: Declare it.\n",
        );
    }

    #[test]
    fn whole_lines_are_what_is_drawn() {
        let text = "ab\ncd\n\nef";
        for (places, lines) in [(0..1, 0..3), (4..4, 3..6), (6..6, 6..7), (3..8, 3..9), (7..9, 7..9), (2..2, 0..3)] {
            assert_eq!(lines_of(text, places.clone()), lines, "{places:?}");
        }
        assert_eq!(lines_of("ab\ncd\n", 6..6), 0..6, "behind the last line");
    }

    #[test]
    fn an_address_comes_first_and_values_are_not_shown() {
        let error = Diagnostic::error("Wrong", "Why.").at(&"a.b".parse().unwrap()).with_span(span(1, 11, 20));
        check(&error, "\nError: Wrong\n\n  with a.b,\n  on karmaform.kfvars.hcl line 1, column 12\n\nWhy.\n");
    }

    #[test]
    fn labels_in_other_files_are_named() {
        let label = span(1, 0, 8).unwrap_or(Span { file: FileId(1), start: 0, end: 0 });
        let error = Diagnostic::error("Twice", "").with_span(span(0, 0, 6)).with_label(label, "first given here");
        let text = draw(&error, &sources(), &Theme::plain());
        assert!(text.contains("karmaform.kfvars.hcl:1:1: first given here"), "{text}");
        assert!(!text.contains("hunter2"));
    }

    #[test]
    fn equal_warnings_are_counted() {
        let warnings: Vec<_> = (0..3).map(|i| Diagnostic::warning("Same", format!("Number {i}."))).collect();
        let text = warnings_text(&warnings, &sources(), &Theme::plain(), false);
        assert_eq!(text, "\nWarning: Same\n\nNumber 0.\n\n(and 2 more similar warnings elsewhere)\n");
        let text = warnings_text(&warnings, &sources(), &Theme::plain(), true);
        assert_eq!(text, "\nWarnings:\n\n- Same\n  (and 2 more similar warnings elsewhere)\n");
        let placed = Diagnostic::warning("Placed", "Here.").with_span(span(0, 0, 6));
        let text = warnings_text(&[placed], &sources(), &Theme::plain(), true);
        assert_eq!(text, "\nWarnings:\n\n- Placed\n  on main.kf.hcl line 1\n");
        let colored = Theme { color: true, ..Theme::plain() };
        assert!(draw(&warnings[0], &sources(), &colored).contains('\u{2577}'));
    }
}
