//! What happens during an apply, as lines: `ADDR: Creating...`. Live redrawing is `live`'s.

use std::collections::BTreeMap;

use karmaform_model::{Action, Event, EventKind};

use super::steps::duration;
use super::style::{Theme, Tone};

/// A running step says so this often, in milliseconds.
const STILL_EVERY: u64 = 10_000;

/// Turns events into lines; remembers what was said of each running step.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    running: BTreeMap<usize, Running>,
}

#[derive(Debug, Default)]
struct Running {
    said_at: u64,
    waiting_for: Option<String>,
}

impl Narrator {
    /// The line for an event, if it is worth one.
    pub(crate) fn line(&mut self, event: &Event, theme: &Theme) -> Option<String> {
        let subject = subject(event);
        let line = match &event.kind {
            EventKind::Started => {
                self.running.insert(event.step, Running::default());
                match event.action {
                    None => format!("{subject}: waiting..."),
                    Some(action) => format!("{subject}: {}...", words(action).0),
                }
            }
            EventKind::Waiting(what) => return self.waiting(event, what.as_deref(), &subject),
            EventKind::Succeeded(fact) => {
                self.running.remove(&event.step);
                let took = duration(event.elapsed / 1000);
                match (event.action, fact) {
                    (None, Some(seen)) => format!("{subject}: passed after {took} ({seen})"),
                    (None, None) => format!("{subject}: passed after {took}"),
                    (Some(action), Some(id)) => format!("{subject}: {} after {took} [id={id}]", words(action).1),
                    (Some(action), None) => format!("{subject}: {} after {took}", words(action).1),
                }
            }
            EventKind::Failed(error) => {
                self.running.remove(&event.step);
                let text = format!("{subject}: failed after {}: {}", duration(event.elapsed / 1000), error.summary);
                return Some(theme.paint(Tone::Remove, &text));
            }
            // What was not started is told once, at the end.
            EventKind::Skipped(_) => return None,
        };
        Some(theme.strong(Tone::Plain, &line))
    }

    /// Something is said when the reason changes, and every ten seconds.
    fn waiting(&mut self, event: &Event, what: Option<&str>, subject: &str) -> Option<String> {
        let running = self.running.entry(event.step).or_default();
        let is_news = what.is_some() && running.waiting_for.as_deref() != what;
        let is_due = event.elapsed / STILL_EVERY > running.said_at / STILL_EVERY;
        if !is_news && !is_due {
            return None;
        }
        running.said_at = event.elapsed;
        running.waiting_for = what.map(str::to_owned).or(running.waiting_for.take());
        let elapsed = duration(event.elapsed / 1000);
        Some(match (event.action, what) {
            (None, what) => format!("{subject}: waiting: {} [{elapsed} elapsed]", what.unwrap_or("no answer yet")),
            (Some(_), Some(what)) => format!("{subject}: waiting: {what} [{elapsed} elapsed]"),
            (Some(action), None) => format!("{subject}: Still {}... [{elapsed} elapsed]", words(action).0.to_lowercase()),
        })
    }
}

/// The resource, or the composite with its gate.
pub(crate) fn subject(event: &Event) -> String {
    match &event.gate {
        Some(gate) => format!("{} ({gate})", event.address),
        None => event.address.to_string(),
    }
}

/// While it runs, and when it is done.
pub(crate) fn words(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::NoOp => ("Refreshing", "Refresh complete"),
        Action::Read => ("Reading", "Read complete"),
        Action::Create | Action::DestroyThenCreate | Action::CreateThenDestroy => ("Creating", "Creation complete"),
        Action::Update => ("Modifying", "Modifications complete"),
        Action::Delete => ("Destroying", "Destruction complete"),
        Action::Forget => ("Forgetting", "Removed from the state"),
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::Diagnostic;

    use super::*;

    fn event(action: Option<Action>, elapsed: u64, kind: EventKind) -> Event {
        let gate = action.is_none().then(|| "healthy".to_owned());
        Event { step: 0, address: "a.b".parse().unwrap(), gate, action, elapsed, kind }
    }

    #[test]
    fn a_resource_from_start_to_end() {
        let mut narrator = Narrator::default();
        let mut check = |elapsed, kind, expected: Option<&str>| {
            let line = narrator.line(&event(Some(Action::Create), elapsed, kind), &Theme::plain());
            assert_eq!(line.as_deref(), expected);
        };
        check(0, EventKind::Started, Some("a.b: Creating..."));
        check(5_000, EventKind::Waiting(None), None);
        check(10_000, EventKind::Waiting(None), Some("a.b: Still creating... [10s elapsed]"));
        check(11_000, EventKind::Waiting(None), None);
        check(12_000, EventKind::Succeeded(Some("x".into())), Some("a.b: Creation complete after 12s [id=x]"));
        let failed = EventKind::Failed(Box::new(Diagnostic::error("Refused", "")));
        check(1_000, failed, Some("a.b: failed after 1s: Refused"));
    }

    #[test]
    fn a_gate_says_what_it_waits_for_once() {
        let mut narrator = Narrator::default();
        let mut check = |elapsed, kind, expected: Option<&str>| {
            assert_eq!(narrator.line(&event(None, elapsed, kind), &Theme::plain()).as_deref(), expected);
        };
        check(0, EventKind::Started, Some("a.b (healthy): waiting..."));
        check(500, EventKind::Waiting(Some("1 of 3".into())), Some("a.b (healthy): waiting: 1 of 3 [0s elapsed]"));
        check(1_000, EventKind::Waiting(Some("1 of 3".into())), None);
        check(2_000, EventKind::Waiting(Some("2 of 3".into())), Some("a.b (healthy): waiting: 2 of 3 [2s elapsed]"));
        check(3_000, EventKind::Succeeded(Some("3 of 3".into())), Some("a.b (healthy): passed after 3s (3 of 3)"));
    }
}
