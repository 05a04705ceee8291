//! For people.

use karmaform_lang::Sources;

use super::super::{Finding, Kind, Told};
use super::{difference, place, summary, title};
use crate::ui::diagnostics::{errors_text, warnings_text};
use crate::ui::resource::resources;
use crate::ui::style::{Theme, Tone};
use crate::ui::values::visible;

/// The report, by kind; what is ignored at the end.
pub(crate) fn text(told: &Told, sources: &Sources, theme: &Theme) -> String {
    let mut out = String::new();
    for kind in Kind::ALL {
        let of_kind: Vec<&Finding> = told.counted().filter(|f| f.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}: {}\n", theme.strong(kind.tone(), &capital(kind.word())), kind.meaning()));
        of_kind.iter().for_each(|f| out.push_str(&one(f, sources, theme)));
    }
    let ignored: Vec<&Finding> = told.findings.iter().filter(|f| f.ignored.is_some()).collect();
    if !ignored.is_empty() {
        out.push_str(&format!("\n{}: told, and not counted\n", theme.strong(Tone::Faint, "Ignored")));
        for finding in ignored {
            let by = finding.ignored.as_deref().unwrap_or_default();
            out.push_str(&one(finding, sources, theme));
            out.push_str(&format!("      {}\n", theme.paint(Tone::Faint, &format!("ignored by {by}"))));
        }
    }
    let gone = told.news.iter().flat_map(|n| &n.gone);
    let gone: String = gone.map(|p| format!("  {}\n      it was {}: {}\n", p.address, p.kind, shown(&p.says))).collect();
    if !gone.is_empty() {
        out.push_str(&format!("\n{}: told before, and well now\n{gone}", theme.strong(Tone::Add, "Gone")));
    }
    let warnings = warnings_text(told.notes.iter(), sources, theme, false);
    let errors = errors_text(told.notes.iter(), sources, theme);
    let ending = match summary(told).as_str() {
        "" if told.is_interrupted || told.is_blind => format!("{}.", title(told)),
        "" if told.notes.has_errors() => "Not everything could be looked at.".to_owned(),
        "" if told.resources == 1 => theme.strong(Tone::Add, "No drift: 1 resource is as it should be."),
        "" => theme.strong(Tone::Add, &format!("No drift: {} are as they should be.", resources(told.resources))),
        counts => format!("{}; {} in all.", theme.strong(Tone::Plain, &format!("{}: {counts}", title(told))), resources(told.resources)),
    };
    format!("{out}{warnings}{errors}\n{ending}\n")
}

fn one(finding: &Finding, sources: &Sources, theme: &Theme) -> String {
    let at = place(finding, sources).map(|(file, line)| format!(" {file}:{line}")).unwrap_or_default();
    let new = if finding.is_new == Some(true) { format!(" {}", theme.paint(Tone::Bold, "new")) } else { String::new() };
    let (address, at) = (theme.strong(Tone::Plain, &finding.address.to_string()), theme.paint(Tone::Faint, &at));
    let mut out = format!("  {address}{new}{at}\n      {}\n", shown(&finding.says));
    finding.differences.iter().for_each(|d| out.push_str(&format!("      {}\n", shown(&difference(d)))));
    out
}

/// Below its address. Hosts and clusters say some of it, and are not to do anything to a terminal.
fn shown(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n      ")
}

fn capital(word: &str) -> String {
    let mut signs = word.chars();
    signs.next().map(|first| first.to_uppercase().chain(signs).collect()).unwrap_or_default()
}
