//! The forms of a report: for people, for programs, and for what pipelines read.

mod alertmanager;
mod html;
mod json;
mod junit;
mod markdown;
mod prometheus;
mod sarif;
mod slack;
mod text;

use karmaform_lang::Sources;
use karmaform_model::Diagnostic;

use super::{Finding, Told};
use crate::report::{Format, Reads};
use crate::ui::json::timestamp;
use crate::ui::resource::resources;
use crate::ui::style::Theme;
pub(crate) use text::text;

/// The forms that a report of drift can have.
pub(crate) const OFFERED: &[Format] = &[
    Format::Human,
    Format::Json,
    Format::Junit,
    Format::Sarif,
    Format::Markdown,
    Format::Prometheus,
    Format::Html,
    Format::Slack,
    Format::Alertmanager,
];

/// What it calls itself in files.
const PRODUCT: &str = "karmaform";

/// What a report is drawn with, besides what is told.
pub(crate) struct Around<'a> {
    /// Which blocks read which data sources, for a picture.
    pub(crate) reads: &'a Reads,
    /// The texts that blocks stand in.
    pub(crate) sources: &'a Sources,
    /// The folder of the configuration, from the top of its repository.
    pub(crate) folder: &'a str,
}

/// A report in this form.
pub(crate) fn report(format: Format, told: &Told, around: &Around<'_>) -> String {
    let Around { reads, sources, folder } = around;
    match format {
        Format::Human => text(told, sources, &Theme { color: false, width: None, product: PRODUCT }),
        Format::Json => format!("{:#}\n", json::json(told, sources)),
        Format::Junit => junit::junit(told, sources),
        Format::Sarif => format!("{:#}\n", sarif::sarif(told, sources, folder)),
        Format::Markdown => markdown::markdown(told, sources),
        Format::Prometheus => prometheus::prometheus(told),
        Format::Slack => slack::slack(told),
        Format::Alertmanager => format!("{:#}\n", alertmanager::alertmanager(told)),
        Format::Html | Format::Chrome | Format::Otlp => html::page(told, reads, sources).html(),
    }
}

/// `2 changed, 1 missing`; only what there is.
fn summary(told: &Told) -> String {
    let counts = super::Kind::ALL.map(|kind| (told.count(kind), kind.word()));
    let there: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    there.join(", ")
}

/// Of how many things it is told, and when they were looked at.
fn extent(told: &Told) -> String {
    let when = timestamp(told.now);
    match (told.is_blind, told.is_interrupted) {
        (true, _) => format!("Nothing seen, tried {when}"),
        (false, true) => format!("{}, not all looked at, {when}", resources(told.resources)),
        (false, false) => format!("{}, looked at {when}", resources(told.resources)),
    }
}

/// What it comes down to.
fn title(told: &Told) -> &'static str {
    match told.code() {
        _ if told.is_interrupted => "The look was interrupted",
        _ if told.is_blind => "Nothing could be looked at",
        0 => "No drift",
        2 => "Drift",
        3 => "No drift, but care is needed",
        _ => "Not everything could be looked at",
    }
}

/// `main.kf.hcl` and the line of the block, if there is one.
fn place<'a>(finding: &Finding, sources: &'a Sources) -> Option<(&'a str, usize)> {
    let span = finding.span?;
    Some((sources.get(span.file).path.as_str(), sources.position(span.file, span.start).0))
}

/// `content: is "a", should be "b"`
fn difference(difference: &super::Difference) -> String {
    match (&difference.is, &difference.should) {
        (Some(is), Some(should)) => format!("{}: is {is}, should be {should}", difference.path),
        (Some(is), None) => format!("{}: is {is}, should not be there", difference.path),
        (None, should) => format!("{}: is not there, should be {}", difference.path, should.as_deref().unwrap_or("there")),
    }
}

/// A note in a line.
fn note(note: &Diagnostic) -> String {
    let about = note.address.as_ref().map(|a| format!(" ({a})")).unwrap_or_default();
    format!("{}{about}: {}", note.summary, note.detail)
}
