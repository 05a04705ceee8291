//! What is new and what is gone, as an incoming webhook of Slack, and of whatever takes the same (Mattermost, Rocket.Chat), wants it.
//!
//! Source: <https://docs.slack.dev/messaging/formatting-message-text/>.

use serde_json::json;

use super::super::Told;
use super::{note, title};

/// So many are named; a channel is no place for more.
const NAMED: usize = 20;

/// The message; nothing at all if there is nothing to tell, so that a pipeline can see that.
pub(super) fn slack(told: &Told) -> String {
    if told.is_blind {
        return blind(told);
    }
    let new: Vec<_> = told.counted().filter(|f| f.is_new != Some(false)).collect();
    let gone = told.news.as_ref().map(|n| n.gone.as_slice()).unwrap_or_default();
    // As above: who is told nothing takes all for well.
    if new.is_empty() && gone.is_empty() && !told.is_interrupted {
        return String::new();
    }
    let mut text = format!("*{}*: {} new, {} gone\n", title(told), new.len(), gone.len());
    for finding in new.iter().take(NAMED) {
        text.push_str(&line(finding.kind.word(), &finding.address.to_string(), &finding.says));
    }
    text.push_str(&more(new.len()));
    for past in gone.iter().take(NAMED) {
        text.push_str(&line("gone", &past.address, &format!("it was {}: {}", past.kind, past.says)));
    }
    text.push_str(&more(gone.len()));
    format!("{}\n", json!({ "text": text.trim_end() }))
}

/// Told each time, however often it was told before: who is told nothing takes all for well.
fn blind(told: &Told) -> String {
    let errors: Vec<String> = told.notes.iter().filter(|d| d.is_error()).map(note).collect();
    let mut text = format!("*{}*\n", title(told));
    for error in errors.iter().take(NAMED) {
        text.push_str(&format!("• {}\n", escaped(error)));
    }
    text.push_str(&more(errors.len()));
    format!("{}\n", json!({ "text": text.trim_end() }))
}

fn line(word: &str, address: &str, says: &str) -> String {
    format!("• {word} `{}`: {}\n", escaped(address).replace('`', "'"), escaped(says))
}

fn more(count: usize) -> String {
    if count > NAMED { format!("… and {} more\n", count - NAMED) } else { String::new() }
}

/// The three signs that mean something in a message.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
