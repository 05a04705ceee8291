//! The part of the screen that is redrawn while an apply runs: what runs, for how long, what it waits for.
//!
//! Finished steps scroll by above as lines. Used on terminals only.

use std::collections::BTreeMap;

use karmaform_model::{Event, EventKind};

use super::progress::{doing, subject};
use super::steps::duration;
use super::style::{Theme, Tone};

/// At most so many running steps are shown.
const MOST_LINES: usize = 12;
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What is on the screen now.
#[derive(Debug, Default)]
pub(crate) struct Live {
    running: BTreeMap<usize, Row>,
    drawn: usize,
    frame: usize,
    done: usize,
    total: usize,
}

#[derive(Debug)]
struct Row {
    what: String,
    started: u64,
    waiting_for: Option<String>,
}

impl Live {
    /// Of a plan with so many steps that tell something.
    pub(crate) fn new(total: usize) -> Self {
        Self { total, ..Self::default() }
    }

    /// Takes an event in. `now` in milliseconds.
    pub(crate) fn event(&mut self, event: &Event, now: u64) {
        match &event.kind {
            EventKind::Started => {
                let what = match doing(event) {
                    Some((now, _)) => format!("{now} {}", subject(event)),
                    None => format!("Waiting until {}", subject(event)),
                };
                self.running.insert(event.step, Row { what, started: now, waiting_for: None });
            }
            EventKind::Waiting(what) => {
                if let (Some(row), Some(what)) = (self.running.get_mut(&event.step), what) {
                    row.waiting_for = Some(what.clone());
                }
            }
            EventKind::Succeeded(_) | EventKind::Failed(_) | EventKind::Skipped(_) => {
                self.running.remove(&event.step);
                self.done += 1;
            }
        }
    }

    /// Takes back what was drawn, prints `above` for good, and draws anew.
    pub(crate) fn draw(&mut self, above: &str, now: u64, theme: &Theme) -> String {
        let mut out = self.erase();
        out.push_str(above);
        let width = theme.width.unwrap_or(80).max(20) - 1;
        let mut rows: Vec<String> = Vec::new();
        for row in self.running.values().take(MOST_LINES) {
            let waiting = row.waiting_for.as_ref().map(|w| format!(" · {w}")).unwrap_or_default();
            let text = format!("{}{waiting} [{}]", row.what, duration(now.saturating_sub(row.started) / 1000));
            rows.push(format!("{} {}", theme.paint(Tone::Read, FRAMES[self.frame % FRAMES.len()]), cut(&text, width - 2)));
        }
        if self.running.len() > MOST_LINES {
            rows.push(format!("  ... and {} more", self.running.len() - MOST_LINES));
        }
        if !self.running.is_empty() {
            rows.push(theme.paint(Tone::Faint, &cut(&format!("  {} of {} steps done", self.done.min(self.total), self.total), width)));
        }
        self.frame += 1;
        self.drawn = rows.len();
        for row in rows {
            out.push_str(&row);
            out.push('\n');
        }
        out
    }

    /// Takes back what was drawn.
    pub(crate) fn erase(&mut self) -> String {
        let lines = std::mem::take(&mut self.drawn);
        if lines == 0 { String::new() } else { format!("\u{1b}[{lines}A\u{1b}[J") }
    }
}

/// One line that says that something is going on; the next one takes its place.
pub(crate) fn spinner(what: &str, frame: usize, milliseconds: u64, theme: &Theme) -> String {
    format!("\r\u{1b}[K{} {what} [{}]", theme.paint(Tone::Read, FRAMES[frame % FRAMES.len()]), duration(milliseconds / 1000))
}

/// Takes a [`spinner`] back.
pub(crate) const NO_SPINNER: &str = "\r\u{1b}[K";

/// A wrapped line would spoil the count of lines to take back.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use karmaform_model::Action;

    use super::*;

    #[test]
    fn the_screen_shows_what_runs_and_takes_it_back() {
        let theme = Theme { width: Some(60), ..Theme::plain() };
        let mut live = Live::new(2);
        let event = |kind| Event {
            step: 1,
            address: "a.b".parse().unwrap(),
            gate: None,
            action: Some(Action::Create),
            deposed: None,
            id: None,
            importing: false,
            elapsed: 0,
            kind,
        };
        live.event(&event(EventKind::Started), 1_000);
        live.event(&event(EventKind::Waiting(Some("its turn".into()))), 2_000);
        assert_eq!(live.draw("", 3_000, &theme), "⠋ Creating a.b · its turn [2s]\n  0 of 2 steps done\n");
        live.event(&event(EventKind::Succeeded(None)), 4_000);
        assert_eq!(live.draw("a.b: done\n", 4_000, &theme), "\u{1b}[2A\u{1b}[Ja.b: done\n");
        assert_eq!(live.erase(), "");
    }
}
