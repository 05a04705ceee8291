//! `etcd backup list`: which backups are in the bucket. What is not whole is told as that.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::json;

use super::super::reach::working;
use super::super::status::bytes;
use super::{Target, shelf};
use crate::app::{App, Ended};
use crate::backup::{Entry, SEALED, at, entries};
use crate::ui::style::Tone;
use crate::ui::table::table;

/// Arguments of `etcd backup list`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let (name, shelf) = shelf(app, &args.target)?;
    let now = at(app.now_seconds());
    let files = working(app, false, async |_| shelf.files().await)??;
    let mut found = entries(&name, &files);
    found.reverse();
    if args.target.json {
        let backups: Vec<_> = found.iter().map(|e| of(e, &shelf.place(e.data.as_deref().unwrap_or_default()))).collect();
        app.output.print(&format!("{:#}\n", json!({ "format_version": "1.0", "backups": backups })));
        return Ok(0);
    }
    if found.is_empty() {
        app.output.print(&format!("There is none in {}\n", shelf.place("")));
        return Ok(0);
    }
    let plain = |text: String| (text, Tone::Plain);
    let rows: Vec<_> = found
        .iter()
        .map(|e| {
            let size = plain(bytes(i64::try_from(e.size).unwrap_or(i64::MAX)));
            let is = if e.is_whole() && e.time <= now { plain(words(e, now).to_owned()) } else { (words(e, now).to_owned(), Tone::Change) };
            vec![plain(e.stem.clone()), plain(time(e)), size, is]
        })
        .collect();
    let header = ["name", "made", "size", "is"].map(str::to_owned);
    let table = table(&header, &rows, &app.theme);
    app.output.print(&format!("{table}{}\n", shelf.place("").trim_end_matches('/')));
    Ok(0)
}

/// When it was made, RFC 3339.
pub(super) fn time(entry: &Entry) -> String {
    entry.time.to_zoned(TimeZone::UTC).map(|t| t.timestamp().to_string()).unwrap_or_default()
}

fn is_encrypted(entry: &Entry) -> bool {
    entry.data.as_deref().is_some_and(|d| d.ends_with(SEALED))
}

fn words(entry: &Entry, now: DateTime) -> &'static str {
    match (&entry.data, &entry.manifest) {
        (None, _) => "without its data",
        (_, None) => "not whole: it has no manifest",
        _ if entry.time > now => "of a time that is still to come: a clock was wrong",
        _ if is_encrypted(entry) => "encrypted",
        _ => "not encrypted",
    }
}

fn of(entry: &Entry, place: &str) -> serde_json::Value {
    json!({
        "name": entry.stem, "created": time(entry), "size": entry.size, "encrypted": is_encrypted(entry), "whole": entry.is_whole(), "place": place,
    })
}
