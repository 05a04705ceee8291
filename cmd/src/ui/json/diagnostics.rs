//! Diagnostics as JSON, in the form of `validate -json`.

use karmaform_lang::Sources;
use karmaform_model::{Diagnostic, Diagnostics, Severity, Span};
use serde_json::{Value as Json, json};

use crate::project::is_shown;

/// The whole answer of `validate -json`.
pub(crate) fn validation(diagnostics: &Diagnostics, sources: &Sources) -> Json {
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    json!({
        "format_version": "1.0",
        "valid": errors == 0,
        "error_count": errors,
        "warning_count": diagnostics.len() - errors,
        "diagnostics": diagnostics.iter().map(|d| diagnostic(d, sources)).collect::<Vec<_>>(),
    })
}

/// One diagnostic.
pub(crate) fn diagnostic(diagnostic: &Diagnostic, sources: &Sources) -> Json {
    let mut detail = diagnostic.detail.clone();
    for hint in &diagnostic.hints {
        detail.push_str(if detail.is_empty() { "" } else { "\n\n" });
        detail.push_str(hint);
    }
    let mut out = json!({
        "severity": if diagnostic.severity == Severity::Error { "error" } else { "warning" },
        "summary": diagnostic.summary,
        "detail": detail,
    });
    if let Some(address) = &diagnostic.address {
        out["address"] = json!(address.to_string());
    }
    if let Some(span) = diagnostic.span.filter(|s| !sources.get(s.file).path.is_empty()) {
        out["range"] = range(span, sources);
        if let Some(snippet) = snippet(span, sources) {
            out["snippet"] = snippet;
        }
    }
    out
}

fn range(span: Span, sources: &Sources) -> Json {
    let end = |byte| {
        let (line, column) = sources.position(span.file, byte);
        json!({ "line": line, "column": column, "byte": byte })
    };
    json!({ "filename": sources.get(span.file).path, "start": end(span.start), "end": end(span.end) })
}

/// So much of a line is shown, in bytes: in a file of one line each of many mistakes would repeat all of it.
const SHOWN: usize = 4_096;

/// The first line of the span, or what is around its start in a long one; never of a variables file, as it may hold secrets.
fn snippet(span: Span, sources: &Sources) -> Option<Json> {
    let file = sources.get(span.file);
    let start = span.start as usize;
    if !is_shown(&file.path) || !file.text.is_char_boundary(start) || start > file.text.len() {
        return None;
    }
    let line_start = file.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let code = file.text[line_start..].lines().next().unwrap_or_default();
    let context = if file.path.ends_with(".json") { json_path(&file.text, start) } else { context(&file.text[..line_start], code) };
    let (code, shown_from) = around(code, start - line_start);
    let begins = start - line_start - shown_from;
    let ends = (span.end as usize).saturating_sub(line_start + shown_from).min(code.len());
    Some(json!({
        "context": context,
        "code": code,
        "start_line": sources.position(span.file, span.start).0,
        "highlight_start_offset": begins,
        "highlight_end_offset": ends.max(begins),
        // Terraform always names it. What values are is not known here.
        "values": [],
    }))
}

/// What is shown of a line, and where in it that begins: all of it, or as much before a place as behind it.
fn around(line: &str, at: usize) -> (&str, usize) {
    if line.len() <= SHOWN {
        return (line, 0);
    }
    let boundary = |at: usize| (0..=at.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or_default();
    let from = boundary(at.saturating_sub(SHOWN / 2));
    (&line[from..boundary(from + SHOWN)], from)
}

/// The header of the block the line is in.
fn context(above: &str, code: &str) -> Option<String> {
    let header = |line: &str| {
        (line.trim_end().ends_with('{') && !line.starts_with([' ', '\t', '}'])).then(|| line.trim_end_matches([' ', '{']).to_owned())
    };
    if !code.starts_with([' ', '\t']) {
        let head = code.split('{').next().unwrap_or_default().trim_end();
        return (code.contains('{') && !head.is_empty()).then(|| head.to_owned());
    }
    above.lines().rev().find_map(header)
}

/// What a bracket in JSON holds right now.
enum Open<'t> {
    /// The value of this key.
    Object(&'t str),
    /// The element of this number.
    Array(usize),
}

/// What leads to the innermost bracket around a byte of a text in JSON, as Terraform writes it: `resource.ssh_file.a[0]`.
fn json_path(text: &str, at: usize) -> Option<String> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut word = "";
    let mut rest = text.char_indices();
    while let Some((i, c)) = rest.next() {
        if i > at {
            break;
        }
        match (c, open.last_mut()) {
            ('"', _) => {
                let mut is_escaped = false;
                let end = rest.by_ref().find(|(_, c)| {
                    let ends = *c == '"' && !is_escaped;
                    is_escaped = *c == '\\' && !is_escaped;
                    ends
                });
                word = &text[i + 1..end.map_or(text.len(), |(end, _)| end)];
            }
            (':', Some(Open::Object(key))) => *key = word,
            (',', Some(Open::Array(index))) => *index += 1,
            ('{', _) => open.push(Open::Object("")),
            ('[', _) => open.push(Open::Array(0)),
            ('}' | ']', _) => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()?;
    let mut path = String::new();
    for bracket in &open {
        match bracket {
            Open::Object(key) => path.extend([if path.is_empty() { "" } else { "." }, *key]),
            Open::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    Some(path).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use karmaform_lang::SourceFile;
    use karmaform_model::FileId;

    use super::*;

    #[test]
    fn a_validation_names_place_and_context() {
        let sources = Sources { files: vec![SourceFile { path: "z.kf.hcl".into(), text: "output \"z\" {\n  value = nope.x\n}\n".into() }] };
        let span = Some(Span { file: FileId(0), start: 23, end: 29 });
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(Diagnostic::error("Bad", "Why.").with_span(span).with_hint("Do this."));
        let json = validation(&diagnostics, &sources);
        assert_eq!(json["valid"], false);
        let d = &json["diagnostics"][0];
        assert_eq!(d["detail"], "Why.\n\nDo this.");
        assert_eq!(d["range"]["start"], json!({ "line": 2, "column": 11, "byte": 23 }));
        assert_eq!(
            d["snippet"],
            json!({ "context": "output \"z\"", "code": "  value = nope.x", "start_line": 2, "highlight_start_offset": 10, "highlight_end_offset": 16, "values": [] })
        );
    }

    #[test]
    fn a_long_line_is_shown_around_what_is_wrong() {
        let line = format!("{}bad{}", "ä".repeat(SHOWN), "ö".repeat(SHOWN));
        let sources = Sources { files: vec![SourceFile { path: "z.kf.hcl".into(), text: line.clone() }] };
        for (at, words) in [(0, "ä"), (line.find("bad").unwrap(), "bad"), (line.len() - 2, "ö")] {
            let [start, end] = [at, at + words.len()].map(|byte| u32::try_from(byte).unwrap());
            let shown = snippet(Span { file: FileId(0), start, end }, &sources).unwrap();
            let code = shown["code"].as_str().unwrap();
            assert!(code.len() <= SHOWN && code.len() >= SHOWN / 2 - 1, "{}", code.len());
            let [from, to] =
                ["highlight_start_offset", "highlight_end_offset"].map(|n| usize::try_from(shown[n].as_u64().unwrap()).unwrap());
            assert_eq!(&code[from..to], words);
        }
    }

    #[test]
    fn a_place_in_json_is_named_by_what_leads_there() {
        let text = r#"[{"a": {"b": "x:\"{", "c": [1, {"d": 2}]}}, 3]"#;
        let path = |at: &str| json_path(text, text.find(at).unwrap());
        assert_eq!(path("x:").as_deref(), Some("[0].a"));
        assert_eq!(path("1").as_deref(), Some("[0].a.c"));
        assert_eq!(path("2").as_deref(), Some("[0].a.c[1]"));
        assert_eq!(path("3"), None);
        assert_eq!(json_path("", 0), None);
    }
}
