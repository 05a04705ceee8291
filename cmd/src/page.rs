//! A report as one HTML page that needs nothing else: no network, no fonts, and no script but for the search. Knows no plan and no drift.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::ui::graph::{Picture, svg};
use crate::ui::markup::{class, escaped, painted};
use crate::ui::style::{Mark, Theme, Tone};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// So many boxes can still be read.
const BOXES: usize = 120;
/// So many entries are shown open; of more, the first look is a list.
const OPEN: usize = 12;
/// So many bytes all texts of entries may have together: a page must open at once, and fit into what pipelines keep.
const TEXTS: usize = 2_000_000;
/// So many bytes each entry may have in any case.
const TEXT: usize = 200;

/// A group of entries: chosen or not with one click.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// `changed`; letters only.
    pub(crate) word: &'static str,
    /// What that means.
    pub(crate) meaning: &'static str,
    /// How it is marked.
    pub(crate) tone: Tone,
}

/// One thing to tell of.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The group's word.
    pub(crate) group: &'static str,
    /// What it is about.
    pub(crate) name: String,
    /// A sentence.
    pub(crate) says: String,
    /// What that does to running things.
    pub(crate) impact: Vec<String>,
    /// `main.kf.hcl:12`
    pub(crate) place: Option<String>,
    /// The details, with a terminal's colours.
    pub(crate) text: String,
}

/// All that a page shows. No text in it is a secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// The outcome.
    pub(crate) title: String,
    /// Of what, and when.
    pub(crate) about: String,
    /// What the outcome is like.
    pub(crate) tone: Option<Tone>,
    /// In the order they are shown in; those without entries are left out.
    pub(crate) groups: Vec<Group>,
    /// By group, and then as they come.
    pub(crate) entries: Vec<Entry>,
    /// What depends on what.
    pub(crate) picture: Picture,
    /// Another picture, ready, with its title.
    pub(crate) drawing: Option<(String, String)>,
    /// More texts with a terminal's colours, each with its title.
    pub(crate) texts: Vec<(String, String)>,
    /// Names of what is as it should be.
    pub(crate) rest: Vec<String>,
}

/// For texts of a page: with colours, and as wide as they are.
pub(crate) const THEME: Theme = Theme { color: true, width: None, product: "karmaform" };

impl Page {
    /// Where an entry is, behind `#`.
    pub(crate) fn link(index: usize) -> String {
        format!("r{index}")
    }

    /// The page.
    pub(crate) fn html(&self) -> String {
        let sum = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
        let title = escaped(&self.title);
        let tone = self.tone.map(class).unwrap_or_default();
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{sum}'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{STYLE}{}</style>\n</head>\n<body>\n\
             <header class=\"{tone}\"><h1>{title}</h1><p>{}</p></header>\n<main>\n",
            self.group_rules(),
            escaped(&self.about)
        );
        for (title, text) in &self.texts {
            out.push_str(&format!(
                "<details class=note open><summary>{}</summary><pre>{}</pre></details>\n",
                escaped(title),
                painted(text)
            ));
        }
        out.push_str(&self.graph());
        if let Some((title, svg)) = &self.drawing {
            out.push_str(&format!("<details class=graph open><summary>{}</summary><div>{svg}</div></details>\n", escaped(title)));
        }
        out.push_str(&self.choice());
        let budget = (TEXTS / self.entries.len().max(1)).max(TEXT);
        let mut open = self.entries.len() <= OPEN;
        let mut last = "";
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.group != last {
                last = entry.group;
                let meaning = self.groups.iter().find(|g| g.word == last).map(|g| g.meaning).unwrap_or_default();
                out.push_str(&format!("<h2 class=\"g-{last}\">{last}: {}</h2>\n", escaped(meaning)));
            }
            open &= entry.text.len() <= budget;
            out.push_str(&self.entry(index, entry, budget, open));
        }
        if !self.rest.is_empty() {
            let names: Vec<String> = self.rest.iter().map(|n| escaped(n)).collect();
            out.push_str(&format!(
                "<details class=rest><summary>{} as they should be</summary><pre>{}</pre></details>\n",
                names.len(),
                names.join("\n")
            ));
        }
        out.push_str(&format!("<p id=none hidden>Nothing fits the search.</p>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"));
        out
    }

    /// A box that is not ticked hides its group, without a script.
    fn group_rules(&self) -> String {
        let used = self.groups.iter().filter(|g| self.count(g) > 0);
        used.map(|g| format!("body:has(#c-{0}:not(:checked)) .g-{0}{{display:none}}", g.word)).collect()
    }

    fn count(&self, group: &Group) -> usize {
        self.entries.iter().filter(|e| e.group == group.word).count()
    }

    fn choice(&self) -> String {
        if self.entries.is_empty() {
            return String::new();
        }
        let mut out = String::from("<nav>");
        for group in &self.groups {
            let (count, word, tone) = (self.count(group), group.word, class(group.tone));
            if count > 0 {
                let meaning = escaped(group.meaning);
                out.push_str(&format!(
                    "<label class={tone} title=\"{meaning}\"><input type=checkbox id=\"c-{word}\" checked> {count} {word}</label>"
                ));
            }
        }
        out.push_str("<input id=search type=search placeholder=\"Search\" aria-label=\"Search\" hidden></nav>\n");
        out
    }

    fn graph(&self) -> String {
        if self.picture.edges.is_empty() {
            return String::new();
        }
        let Some(folded) = self.picture.clone().folded(BOXES) else {
            return "<p class=faint>What depends on what is too much for a picture: see <code>karmaform graph</code>.</p>\n".to_owned();
        };
        let note = folded.note.map(|n| format!("<p class=faint>{n}</p>")).unwrap_or_default();
        format!("<details class=graph open><summary>What depends on what</summary>{note}<div>{}</div></details>\n", svg(&folded.picture))
    }

    fn entry(&self, index: usize, entry: &Entry, budget: usize, open: bool) -> String {
        let tone = self.groups.iter().find(|g| g.word == entry.group).map(|g| class(g.tone)).unwrap_or_default();
        let (word, link, name, says) = (entry.group, Self::link(index), escaped(&entry.name), escaped(&entry.says));
        let place = entry.place.as_ref().map(|p| format!(" <small>{}</small>", escaped(p))).unwrap_or_default();
        let impact: String = entry.impact.iter().map(|i| format!("<p class=change>impact: {}</p>", escaped(i))).collect();
        let open = if open { " open" } else { "" };
        let is_said = self.groups.iter().any(|g| g.word == entry.group && g.meaning == entry.says);
        let says = if is_said { String::new() } else { format!("<span>{says}</span>") };
        format!(
            "<details class=\"e {tone} g-{word}\" id={link}{open}><summary><b>{word}</b> <code>{name}</code>{place}{says}{impact}</summary>{}</details>\n",
            body(&entry.text, budget)
        )
    }
}

/// The text of an entry, or as many of its lines as there is room for.
fn body(text: &str, budget: usize) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut shown = String::new();
    let mut left = text.trim_end_matches('\n').lines();
    for line in left.clone().map(painted) {
        if shown.len() + line.len() > budget {
            break;
        }
        left.next();
        shown.push_str(&line);
        shown.push('\n');
    }
    let more = match left.count() {
        0 => String::new(),
        lines => format!("<i class=faint>... {lines} more lines, which the terminal shows</i>"),
    };
    format!("<pre>{shown}{more}</pre>")
}

/// `+ ` in its colour, for the lines of an entry.
pub(crate) fn marked(mark: Mark) -> String {
    format!("{} ", mark.painted(&THEME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(count: usize, lines: usize) -> Page {
        let text = format!("{}key = \"value of some length <&>\"\n", marked(Mark::Add)).repeat(lines);
        let entry = |i: usize| Entry {
            group: "create",
            name: format!("etcd_cluster.main/member[\"{i}\"]/file[\"some/where\"]"),
            says: "will be created".into(),
            impact: Vec::new(),
            place: None,
            text: text.clone(),
        };
        Page {
            groups: vec![Group { word: "create", meaning: "will be created", tone: Tone::Add }],
            entries: (0..count).map(entry).collect(),
            ..Page::default()
        }
    }

    #[test]
    fn a_page_stays_small_whatever_it_tells() {
        let small = page(3, 500).html();
        assert!(small.matches("value of some length").count() == 1500 && !small.contains("more lines"));
        let large = page(2000, 500).html();
        assert!(large.len() < 3_000_000, "{}", large.len());
        assert!(large.contains("more lines, which the terminal shows"));
    }

    #[test]
    fn the_script_that_runs_is_the_one_that_is_allowed() {
        let html = page(1, 1).html();
        let (_, rest) = html.split_once("<script>").unwrap();
        let (script, _) = rest.split_once("</script>").unwrap();
        assert!(html.contains(&format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script.as_bytes())))));
    }
}
