//! What took how long, as a page: bars along the time, those that everything waited for marked.

use std::collections::BTreeSet;

use karmaform_engine::Asked;

use super::{Profile, Timed, long};
use crate::page::{Entry, Group, Page};
use crate::ui::markup::{class, escaped};
use crate::ui::style::Tone;

/// So many bars can be read; the longest are drawn.
const BARS: usize = 120;
/// So many of those who were asked are named.
const SLOWEST: usize = 40;
/// Pixels: the whole time, a row, the names before it.
const WIDTH: u64 = 760;
const ROW: usize = 18;
const NAMES: usize = 430;
/// So many signs of a name fit there.
const SIGNS: usize = 58;

const FAILED: Group = Group { word: "failed", meaning: "ended with an error", tone: Tone::Remove };
const CRITICAL: Group = Group { word: "critical", meaning: "everything waited for these, one after the other", tone: Tone::Change };
const OTHER: Group = Group { word: "other", meaning: "was at work beside them", tone: Tone::Read };

fn group(place: usize, step: &Timed, critical: &BTreeSet<usize>) -> Group {
    match (step.failed.is_some(), critical.contains(&place)) {
        (true, _) => FAILED,
        (false, true) => CRITICAL,
        (false, false) => OTHER,
    }
}

/// The page.
pub(super) fn page(profile: &Profile) -> Page {
    let critical: BTreeSet<usize> = profile.critical().into_iter().collect();
    let (begin, end) = profile.span();
    let groups = vec![FAILED, CRITICAL, OTHER];
    let steps = profile.steps.iter().enumerate();
    let mut entries: Vec<Entry> = steps.map(|(i, s)| entry(s, group(i, s, &critical).word, begin)).collect();
    entries.sort_by_key(|e| groups.iter().position(|g| g.word == e.group));
    let on_chain: u64 = critical.iter().filter_map(|place| profile.steps.get(*place)).map(Timed::took).sum();
    let phases = profile.phases.iter().map(|p| format!("{:>10}  {}", long(p.end.saturating_sub(p.begin)), p.name));
    Page {
        title: format!("{} in all, {} of it in {} steps one after the other", long(profile.took()), long(on_chain), critical.len()),
        about: format!("{} steps, from {}", profile.steps.len(), crate::ui::json::timestamp(i64::try_from(begin / 1000).unwrap_or(0))),
        tone: Some(if profile.steps.iter().any(|s| s.failed.is_some()) { Tone::Remove } else { Tone::Read }),
        groups,
        entries,
        texts: texts(profile, phases.collect::<Vec<_>>().join("\n")),
        drawing: Some(("What took how long".to_owned(), bars(profile, &critical, (begin, end)))),
        ..Page::default()
    }
}

fn texts(profile: &Profile, phases: String) -> Vec<(String, String)> {
    let mut all = vec![("Phases".to_owned(), phases)];
    let mut asked: Vec<&Asked> = profile.asked.iter().collect();
    asked.sort_by_key(|a| std::cmp::Reverse(a.end.saturating_sub(a.begin)));
    let lines = asked.iter().take(SLOWEST).map(|a| {
        let things = if a.things == 1 { "1 thing".to_owned() } else { format!("{} things", a.things) };
        let failed = if a.failed { ", no answer" } else { "" };
        format!("{:>10}  {} {}, {things}{failed}", long(a.end.saturating_sub(a.begin)), a.provider, a.whom)
    });
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        all.push(("Who was asked what is there, the slowest first".to_owned(), lines.join("\n")));
    }
    all
}

fn entry(step: &Timed, group: &'static str, begin: u64) -> Entry {
    let place = step.place.as_ref().map(|p| format!(" on {p}")).unwrap_or_default();
    let attempts = if step.attempts > 1 { format!(", tried {} times", step.attempts) } else { String::new() };
    let failed = step.failed.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let after = long(step.begin.saturating_sub(begin));
    let waits = step.waits.iter().map(|(at, text)| format!("{:>10}  {text}\n", long(at.saturating_sub(step.begin))));
    Entry {
        group,
        name: step.name.clone(),
        says: format!("{}{place}: {}, begun after {after}{attempts}{failed}", step.what, long(step.took())),
        impact: Vec::new(),
        place: None,
        text: waits.collect(),
    }
}

/// A name that fits: of a long one both ends, as the last part tells it from its neighbours.
fn shortened(name: &str) -> String {
    let signs: Vec<char> = name.chars().collect();
    if signs.len() <= SIGNS {
        return name.to_owned();
    }
    let head = SIGNS / 3;
    let tail = SIGNS - head - 1;
    signs.iter().take(head).chain(&['\u{2026}']).chain(signs.iter().skip(signs.len() - tail)).collect()
}

/// The bars: all that everything waited for, and the longest of the others.
fn bars(profile: &Profile, critical: &BTreeSet<usize>, (begin, end): (u64, u64)) -> String {
    let mut shown: Vec<(usize, &Timed)> = profile.steps.iter().enumerate().collect();
    shown.sort_by_key(|(place, step)| (!critical.contains(place), std::cmp::Reverse(step.took())));
    shown.truncate(BARS);
    shown.sort_by_key(|(place, step)| (step.begin, *place));
    let all = end.saturating_sub(begin).max(1);
    let x = |at: u64| NAMES + usize::try_from(at.saturating_sub(begin) * WIDTH / all).unwrap_or(0);
    let (width, height) = (NAMES + 780, (shown.len() + 1) * ROW);
    let mut out =
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" class=bars width={width} height={height} viewBox=\"0 0 {width} {height}\">\n");
    for (row, (place, step)) in shown.into_iter().enumerate() {
        let class = class(group(place, step, critical).tone);
        let name = shortened(&step.name);
        let (top, left, length) = (row * ROW, x(step.begin), x(step.end).saturating_sub(x(step.begin)).max(1));
        out.push_str(&format!(
            "<g class={class}><title>{}: {}</title><text x=0 y={}>{}</text><rect x={left} y={} width={length} height=12 /></g>\n",
            escaped(&step.name),
            long(step.took()),
            top + 13,
            escaped(&name),
            top + 3
        ));
    }
    let y = height - 4;
    out.push_str(&format!("<text x={NAMES} y={y}>0</text><text x={} y={y} text-anchor=end>{}</text></svg>\n", NAMES + 760, long(all)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("a.b"), "a.b");
        let short = shortened(&format!("karmada_control_plane.main/{}/program[\"etcd\"]", "x".repeat(60)));
        assert!(short.chars().count() == SIGNS && short.starts_with("karmada_") && short.ends_with("/program[\"etcd\"]"), "{short}");
    }

    #[test]
    fn the_page_names_the_chain_and_escapes_what_it_says() {
        let html = page(&super::super::tests::profile()).html();
        assert!(html.contains("8.5 s in all, 7.5 s of it in 2 steps one after the other"), "{html}");
        assert_eq!((html.matches("<g class=change>").count(), html.matches("<g class=remove>").count()), (2, 1), "{html}");
        assert!(html.contains("a &lt;port&gt;") && html.contains("create on 10.0.0.1:22: 4.5 s, begun after 4.0 s"), "{html}");
    }
}
