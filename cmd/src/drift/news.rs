//! What is new since an earlier look, and what is gone: by the JSON report of that look. Pure, but for reading the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karmaform_model::{Address, Diagnostic};
use serde::{Deserialize, Serialize};

use super::{Finding, Kind, Told};
use crate::disk::reason;

/// A finding as a report has it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Past {
    /// A kind's word; one of a later version is kept as it is.
    pub(crate) kind: String,
    /// What it is about.
    pub(crate) address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub(crate) resource_type: String,
    /// A sentence.
    pub(crate) says: String,
    /// The parts.
    pub(crate) differences: Vec<Part>,
    /// The rule that says that it does not matter.
    #[serde(default)]
    ignored_by: Option<String>,
}

/// A part of one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Part {
    path: String,
}

/// What of a report counts here; everything else in it may be as it likes.
#[derive(Debug, Deserialize)]
struct Report {
    findings: Vec<Past>,
    #[serde(default)]
    carried: Vec<Past>,
}

/// What an earlier look told, and this one does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// It is well now.
    pub(crate) gone: Vec<Past>,
    /// It could not be looked at now: the next look knows of it by this.
    pub(crate) carried: Vec<Past>,
}

/// Reads what was told before; nothing, if there is no such file.
///
/// # Errors
/// If the file is no report.
pub(crate) fn past(path: &Path, name: &str) -> Result<Vec<Past>, Diagnostic> {
    let wrong = |why: String| {
        Diagnostic::error("Previous report can't be read", format!("The file \"{name}\" is no report of drift as JSON: {why}."))
            .with_hint("Without the file everything counts as new.")
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(wrong(reason(&e))),
    };
    let report: Report = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    Ok(report.findings.into_iter().chain(report.carried).filter(|f| f.ignored_by.is_none()).collect())
}

/// Marks what is new in `told`, and tells what of `past` is gone. What is behind something that can't be looked at now is neither.
pub(crate) fn news(told: &mut Told, past: Vec<Past>) {
    let mut before = Parts::default();
    past.iter().for_each(|p| before.add(p.key()));
    for finding in told.findings.iter_mut().filter(|f| f.ignored.is_none()) {
        finding.is_new = Some(!before.has(&key(finding)));
    }
    // With what is ignored: a rule that came since then is no repair, and nothing to tell either.
    let mut now = Parts::default();
    told.findings.iter().for_each(|f| now.add(key(f)));
    let unseen: BTreeSet<&Address> =
        told.findings.iter().filter(|f| f.kind == Kind::Unreachable).map(|f| &f.address).chain(&told.unsure).collect();
    let told_alone = told.findings.iter().filter(|f| f.kind.is_drift() && !f.kind.comes_in_numbers());
    let with_findings: BTreeSet<String> = told_alone.map(|f| f.address.to_string()).collect();
    let is_open = |p: &Past| {
        let address = p.address.parse::<Address>().ok();
        let is_unseen = || address.as_ref().is_some_and(|a| unseen.iter().any(|u| a.is_within(u) || u.is_within(a)));
        let is_elsewhere = || told.is_partial && address.as_ref().is_none_or(|a| !told.graph.contains_key(a));
        // Of what was changed by somebody it is not told as well that it is not well.
        let is_covered = || p.kind == Kind::Decay.word() && with_findings.contains(&p.address);
        let is_unlisted = || p.differences.iter().any(|d| told.unlisted.iter().any(|begin| d.path.starts_with(begin)));
        let is_hidden = || is_of_pods(p) && address.as_ref().is_some_and(|a| told.without_pods.contains(a));
        let is_unknown = p.kind == Kind::Extra.word() && (!told.knows_strays || is_unlisted());
        told.is_interrupted
            || is_unknown
            || is_hidden()
            || p.kind != Kind::Unreachable.word() && (told.notes.has_errors() || is_unseen())
            || is_elsewhere()
            || is_covered()
    };
    let past: BTreeMap<Key, Past> = past.into_iter().map(|p| (p.key(), p)).collect();
    let old = past.into_values().filter(|p| !now.has(&p.key()));
    let (carried, mut gone): (Vec<Past>, Vec<Past>) = old.partition(is_open);
    // What is told of in part still is not well.
    gone.retain(|p| !now.has_some(&p.key()));
    told.news = Some(News { gone, carried });
}

/// What is told, with all its parts: one that is changed besides is new, and what of it is told still is not gone.
#[derive(Default)]
struct Parts {
    found: BTreeMap<(String, String, String), BTreeSet<String>>,
}

impl Parts {
    /// Where several may be told of one thing, each by its own parts.
    fn split((kind, address, paths, says): Key) -> ((String, String, String), Vec<String>) {
        let is_one = Kind::ALL.iter().any(|k| k.word() == kind && !k.comes_in_numbers());
        if is_one { ((kind, address, says), paths) } else { ((kind, address, format!("{says} {}", paths.join(" "))), Vec::new()) }
    }

    fn add(&mut self, key: Key) {
        let (name, paths) = Self::split(key);
        self.found.entry(name).or_default().extend(paths);
    }

    /// True if all of it is told.
    fn has(&self, key: &Key) -> bool {
        let (name, paths) = Self::split(key.clone());
        self.found.get(&name).is_some_and(|known| paths.iter().all(|path| known.contains(path)))
    }

    /// True if any of it is told.
    fn has_some(&self, key: &Key) -> bool {
        let (name, paths) = Self::split(key.clone());
        self.found.get(&name).is_some_and(|known| paths.is_empty() || paths.iter().any(|path| known.contains(path)))
    }
}

/// True for what may have been told of a workload or a Service by its pods: another image, or a pod that is nobody's.
fn is_of_pods(past: &Past) -> bool {
    let is_image = |path: &str| path.contains(".spec.template.spec.") && path.ends_with(".image");
    match past.kind.as_str() {
        "changed" => past.differences.iter().any(|d| is_image(&d.path)),
        "decay" => past.says.contains("leads to the pod "),
        _ => false,
    }
}

/// Kind, address, parts, and what is said without its numbers: that a certificate ends in 8 days is what was told when it ended in 9.
type Key = (String, String, Vec<String>, String);

fn key(finding: &Finding) -> Key {
    let paths = finding.differences.iter().map(|d| d.path.clone()).collect();
    (finding.kind.word().to_owned(), finding.address.to_string(), paths, without_numbers(&finding.says))
}

impl Past {
    fn key(&self) -> Key {
        let paths = self.differences.iter().map(|d| d.path.clone()).collect();
        (self.kind.clone(), self.address.clone(), paths, without_numbers(&self.says))
    }
}

/// Words that are numbers, dates or units say how much, and not what; `eu1` and an address are names.
fn without_numbers(text: &str) -> String {
    let is_amount = |word: &str| {
        let word = word.trim_end_matches([',', ';', ':', '.']);
        let is_number = word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || ".:-TZ".contains(c));
        is_number || matches!(word, "day" | "days" | "MiB" | "GiB")
    };
    text.split(' ').map(|word| if is_amount(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::Difference;

    fn finding(kind: Kind, address: &str, says: &str, paths: &[&str]) -> Finding {
        let difference = |p: &&str| Difference { path: (*p).to_owned(), is: Some("1".into()), should: None, follows: false };
        Finding {
            kind,
            address: address.parse().unwrap(),
            resource_type: "a".into(),
            says: says.into(),
            differences: paths.iter().map(difference).collect(),
            ignored: None,
            is_new: None,
            span: None,
        }
    }

    fn past_of(findings: &[Finding]) -> Vec<Past> {
        let past = |f: &Finding| Past {
            kind: f.kind.word().into(),
            address: f.address.to_string(),
            resource_type: f.resource_type.clone(),
            says: f.says.clone(),
            differences: f.differences.iter().map(|d| Part { path: d.path.clone() }).collect(),
            ignored_by: None,
        };
        findings.iter().map(past).collect()
    }

    fn counts(now: Vec<Finding>, before: &[Finding]) -> (usize, usize, usize) {
        let mut told = Told { findings: now, ..Told::default() };
        news(&mut told, past_of(before));
        let (new, found) = (told.findings.iter().filter(|f| f.is_new == Some(true)).count(), told.news.unwrap());
        (new, found.gone.len(), found.carried.len())
    }

    #[test]
    fn the_same_is_no_news_though_its_numbers_change() {
        let certificate = |days: &str| finding(Kind::Decay, "a.b", &format!("it ends at 2027-01-0{days}T00:00:00Z, in {days} days"), &[]);
        assert_eq!(counts(vec![certificate("8")], &[certificate("9")]), (0, 0, 0));
        assert_eq!(without_numbers("in 1 day"), without_numbers("in 12 days"));
        assert_eq!(without_numbers("has 950.0 MiB of"), without_numbers("has 1.0 GiB of"));
        assert_eq!(without_numbers("eu1 at https://10.0.0.1:2380 is not ready"), "eu1 at https://10.0.0.1:2380 is not ready");
        let changed = |path: &str| finding(Kind::Changed, "a.b", "somebody changed it", &[path]);
        assert_eq!(counts(vec![changed("x")], &[changed("x")]), (0, 0, 0));
        assert_eq!(counts(vec![changed("y")], &[changed("x")]), (1, 1, 0));
        assert_eq!(counts(vec![changed("x")], &[]), (1, 0, 0));
    }

    #[test]
    fn what_is_changed_further_is_new_and_what_is_left_of_it_is_neither() {
        let narrow = finding(Kind::Changed, "c.m/unit", "somebody changed it", &["content"]);
        let wide = finding(Kind::Changed, "c.m/unit", "somebody changed it", &["content", "mode"]);
        assert_eq!(counts(vec![wide.clone()], std::slice::from_ref(&narrow)), (1, 0, 0));
        assert_eq!(counts(vec![narrow.clone()], std::slice::from_ref(&wide)), (0, 0, 0));
        assert_eq!(counts(Vec::new(), &[wide]), (0, 1, 0));
        // A pod's image that nobody may look at now is handed on, and of the rest nothing is new.
        let replicas = finding(Kind::Changed, "c.m/workload", "somebody changed it", &["manifest.spec.replicas"]);
        let without_pods = ["c.m/workload".parse::<Address>().unwrap()].into();
        let mut told = Told { findings: vec![replicas], without_pods, ..Told::default() };
        let both = ["manifest.spec.replicas", "manifest.spec.template.spec.containers[0].image"];
        news(&mut told, past_of(&[finding(Kind::Changed, "c.m/workload", "somebody changed it", &both)]));
        let found = told.news.unwrap();
        assert_eq!((told.findings[0].is_new, found.gone.len(), found.carried.len()), (Some(false), 0, 1));
        // Of what may be told several times each is by itself.
        let extra = |name: &str| finding(Kind::Extra, "c.m", "it has its marks", &[name]);
        assert_eq!(counts(vec![extra("x"), extra("y")], &[extra("x")]), (1, 0, 0));
    }

    #[test]
    fn what_cannot_be_seen_is_neither_new_nor_gone() {
        let changed = finding(Kind::Changed, "c.m/host[\"a\"]/unit", "somebody changed it", &["x"]);
        let away = finding(Kind::Unreachable, "c.m/host[\"a\"]", "nobody could look at it", &[]);
        assert_eq!(counts(vec![away.clone()], std::slice::from_ref(&changed)), (1, 0, 1));
        // It can be looked at again: that is gone, and the other was told of already.
        assert_eq!(counts(vec![changed.clone()], &[away, changed.clone()]), (0, 1, 0));
        // Decay is not told of what is told as something worse.
        let sick = finding(Kind::Decay, "c.m/host[\"a\"]/unit", "it is not healthy", &[]);
        assert_eq!(counts(vec![changed.clone()], &[sick]), (1, 0, 1));
        // What needs care besides is told beside what is left behind, so it is gone when it is not told.
        let extra = finding(Kind::Extra, "c.m", "x has its marks, and is in no state", &["x"]);
        let old = finding(Kind::Decay, "c.m", "etcd 3.4 gets no patches any more", &["version"]);
        assert_eq!(counts(vec![extra.clone()], &[extra.clone(), old]), (0, 1, 0));
        // Who may not be asked for strays tells of none.
        for (knows_strays, gone) in [(false, 0), (true, 1)] {
            let mut told = Told { knows_strays, ..Told::default() };
            news(&mut told, past_of(std::slice::from_ref(&extra)));
            assert_eq!(told.news.unwrap().gone.len(), gone);
        }
        // Who may not list pods tells of all others.
        let pod = finding(Kind::Extra, "c.m", "Pod/a/x has its marks, and is in no state", &["Pod/a/x"]);
        let mut told = Told { knows_strays: true, unlisted: vec!["Pod/a/".into()], ..Told::default() };
        news(&mut told, past_of(&[extra.clone(), pod.clone()]));
        let found = told.news.unwrap();
        assert_eq!((found.gone, found.carried), (past_of(&[extra]), past_of(&[pod])));
        // Who may not list them tells of no images in pods, and of no pod behind a Service, where it had told of them.
        let image = finding(Kind::Changed, "c.m/workload", "somebody changed it", &["manifest.spec.template.spec.containers[0].image"]);
        let replicas = finding(Kind::Changed, "c.m/workload", "somebody changed it", &["manifest.spec.replicas"]);
        let stranger = finding(Kind::Decay, "c.m/service", "it leads to the pod x, too, which has its labels and is none of ours", &[]);
        let pending = finding(Kind::Decay, "c.m/service", "it has no address", &[]);
        let all = [image.clone(), replicas.clone(), stranger.clone(), pending.clone()];
        let without = |addresses: &[&str]| -> News {
            let without_pods = addresses.iter().map(|a| a.parse().unwrap()).collect();
            let mut told = Told { without_pods, ..Told::default() };
            news(&mut told, past_of(&all));
            told.news.unwrap()
        };
        let found = without(&["c.m/workload", "c.m/service"]);
        let told = |news: &[Past]| news.iter().map(Past::key).collect::<BTreeSet<Key>>();
        assert_eq!(told(&found.carried), [key(&image), key(&stranger)].into());
        assert_eq!(told(&found.gone), [key(&replicas), key(&pending)].into());
        assert_eq!(without(&["c.m/service"]).carried.len(), 1);
        assert_eq!(without(&[]).gone.len(), 4);
        // Only a part was looked at.
        let mut told = Told { is_partial: true, ..Told::default() };
        news(&mut told, past_of(std::slice::from_ref(&changed)));
        assert_eq!(told.news.unwrap().carried.len(), 1);
        let mut rule = changed.clone();
        rule.ignored = Some("-ignore".into());
        assert_eq!(counts(vec![rule], &[changed]), (0, 0, 0));
    }
}
