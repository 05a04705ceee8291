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
                match doing(event) {
                    None => format!("{subject}: waiting..."),
                    Some((now, _)) => format!("{subject}: {now}...{}", id_text(event.id.as_deref())),
                }
            }
            EventKind::Waiting(what) => return self.waiting(event, what.as_deref(), &subject),
            EventKind::Succeeded(fact) => {
                self.running.remove(&event.step);
                let took = duration(event.elapsed / 1000);
                match (doing(event), fact) {
                    (None, Some(seen)) => format!("{subject}: passed after {took} ({seen})"),
                    (None, None) => format!("{subject}: passed after {took}"),
                    (Some((_, done)), _) if event.importing => format!("{subject}: {done}{}", id_text(event.id.as_deref())),
                    (Some((_, done)), id) => format!("{subject}: {done} after {took}{}", id_text(id.as_deref())),
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
        let id = event.id.as_ref().map(|id| format!("id={id}, ")).unwrap_or_default();
        Some(match (doing(event), what) {
            (None, what) => format!("{subject}: waiting: {} [{elapsed} elapsed]", what.unwrap_or("no answer yet")),
            (Some(_), Some(what)) => format!("{subject}: waiting: {what} [{elapsed} elapsed]"),
            (Some((now, _)), None) => format!("{subject}: Still {}... [{id}{elapsed} elapsed]", now.to_lowercase()),
        })
    }
}

/// The resource, the object of it that was set aside, or the composite with its gate.
pub(crate) fn subject(event: &Event) -> String {
    match (&event.gate, &event.deposed) {
        (Some(gate), _) => format!("{} ({gate})", event.address),
        (None, Some(key)) => format!("{} (deposed object {key})", event.address),
        (None, None) => event.address.to_string(),
    }
}

/// What is told of the id of a thing.
pub(crate) fn id_text(id: Option<&str>) -> String {
    id.map(|id| format!(" [id={id}]")).unwrap_or_default()
}

/// What a step does, in words for while it runs and for when it is done; a gate has none.
pub(crate) fn doing(event: &Event) -> Option<(&'static str, &'static str)> {
    if event.importing { Some(("Importing", "Import complete")) } else { event.action.map(words) }
}

fn words(action: Action) -> (&'static str, &'static str) {
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
        Event { step: 0, address: "a.b".parse().unwrap(), gate, action, deposed: None, id: None, importing: false, elapsed, kind }
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
    fn which_object_it_is_stands_behind_the_address_and_its_id_at_the_end() {
        let mut narrator = Narrator::default();
        let mut check = |event: Event, expected: &str| {
            assert_eq!(narrator.line(&event, &Theme::plain()).as_deref(), Some(expected));
        };
        let some = |text: &str| Some(text.to_owned());
        let old = |elapsed, kind| Event { deposed: some("0a"), id: some("i"), ..event(Some(Action::Delete), elapsed, kind) };
        check(old(0, EventKind::Started), "a.b (deposed object 0a): Destroying... [id=i]");
        check(old(10_000, EventKind::Waiting(None)), "a.b (deposed object 0a): Still destroying... [id=i, 10s elapsed]");
        check(old(11_000, EventKind::Succeeded(None)), "a.b (deposed object 0a): Destruction complete after 11s");
        let taken = |kind| Event { importing: true, id: some("x"), ..event(Some(Action::Update), 0, kind) };
        check(taken(EventKind::Started), "a.b: Importing... [id=x]");
        check(taken(EventKind::Succeeded(some("i"))), "a.b: Import complete [id=x]");
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
