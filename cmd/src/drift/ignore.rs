//! What does not matter: by address and attribute, on the command line and in the configuration. What is ignored is still told.

use karmaform_lang::{Config, IgnoredDrift};
use karmaform_model::{Address, ChildStep, ModuleStep};

use super::{Difference, Finding, Kind};

/// Between an address and an attribute.
const BETWEEN: &str = "::";

/// One thing that does not matter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    address: String,
    /// The same, where it is no pattern.
    named: Option<Address>,
    attribute: Option<String>,
    /// Where it comes from, as shown.
    origin: String,
}

impl Rule {
    /// From `ADDRESS` or `ADDRESS::ATTRIBUTE`; a `*` stands for any text.
    pub(crate) fn from_flag(text: &str) -> Self {
        Self::new(text, format!("-ignore={text}"))
    }

    fn new(text: &str, origin: String) -> Self {
        let (address, attribute) = match parted(text) {
            Some((address, attribute)) => (address.to_owned(), Some(attribute.to_owned())),
            None => (text.to_owned(), None),
        };
        Self { named: address.parse().ok(), address, attribute, origin }
    }

    /// True for what it names, and for the instances of a block that it names; where it names no attribute, as with `-target` for what is below a
    /// composite, and in a module, too.
    fn is_about(&self, thing: &Thing<'_>) -> bool {
        let is = |name: &String| matches(&self.address, name);
        match self.attribute {
            None => self.named.as_ref().is_some_and(|named| thing.address.is_within(named)) || thing.around.iter().any(is),
            Some(_) => thing.names.iter().any(is),
        }
    }
}

/// A thing by all that it is named by, which is found out once, however many rules there are.
struct Thing<'a> {
    address: &'a Address,
    /// Its own names: its address, and its block's.
    names: Vec<String>,
    /// Also those of what it is a part of, and is in.
    around: Vec<String>,
}

impl<'a> Thing<'a> {
    fn of(address: &'a Address) -> Self {
        let block = (!address.is_child()).then(|| address.block().to_string());
        let names = [address.to_string()].into_iter().chain(block).collect();
        Self { address, names, around: around(address).iter().map(Address::to_string).collect() }
    }
}

/// The thing, what it is an instance of, a part of, and what it is in.
fn around(address: &Address) -> Vec<Address> {
    let mut found = vec![address.block()];
    for depth in 0..=address.child.len() {
        let (child, last) = address.child.split_at(depth);
        found.push(address.with_child(child));
        if let Some(step) = last.first().filter(|step| step.key.is_some()) {
            found.push(address.with_child(&[child, &[ChildStep::new(&step.name)]].concat()));
        }
    }
    for depth in 0..address.module.len() {
        let (outer, rest) = address.module.split_at(depth);
        let Some(step) = rest.first() else { continue };
        for step in [step.clone(), ModuleStep::new(&step.name)] {
            found.push(Address::of_module([outer, &[step]].concat()));
        }
    }
    found
}

/// Address and attribute; not at a `::` in a key.
fn parted(text: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let outside = |(at, sign): (usize, char)| {
        is_quoted ^= sign == '"';
        (!is_quoted && text[at..].starts_with(BETWEEN)).then_some(at)
    };
    let at = text.char_indices().filter_map(outside).last()?;
    Some((&text[..at], &text[at + BETWEEN.len()..]))
}

/// The rules of `lifecycle.ignore_drift`. Names are attributes of the block itself; texts are parts of it, as in `member["a"]/unit`.
pub(crate) fn rules_of(config: &Config) -> Vec<Rule> {
    let mut rules = Vec::new();
    for block in config.blocks.values() {
        let (address, origin) = (block.address.to_string(), "lifecycle.ignore_drift".to_owned());
        let mut add = |text: String| rules.push(Rule::new(&text, origin.clone()));
        match &block.lifecycle.ignore_drift {
            IgnoredDrift::None => {}
            IgnoredDrift::All => add(address),
            IgnoredDrift::These { attributes, parts } => {
                attributes.iter().for_each(|path| add(format!("{address}{BETWEEN}{path}")));
                // Of a block with keys each instance.
                for head in [address.clone(), format!("{address}[*]")] {
                    parts.iter().for_each(|part| add(format!("{head}/{part}")));
                }
            }
        }
    }
    rules
}

/// Takes what the rules say out of what counts.
pub(crate) fn apply_rules(findings: &mut Vec<Finding>, rules: &[Rule]) {
    let mut left_out = Vec::new();
    for finding in findings.iter_mut() {
        let thing = Thing::of(&finding.address);
        let about: Vec<&Rule> = rules.iter().filter(|r| r.is_about(&thing)).collect();
        if let Some(rule) = about.iter().find(|r| r.attribute.is_none()) {
            finding.ignored = Some(rule.origin.clone());
            continue;
        }
        // What is missing is missing as a whole.
        if about.is_empty() || finding.differences.is_empty() || finding.kind == Kind::Missing {
            continue;
        }
        let rule_for = |d: &Difference| about.iter().find(|r| r.attribute.as_ref().is_some_and(|a| covers(a, &d.path)));
        let is_ignored = |d: &Difference| rule_for(d).is_some();
        let Some(rule) = finding.differences.iter().find_map(rule_for) else { continue };
        let origin = rule.origin.clone();
        // A checksum differs because of what it is of: who ignores that ignores both.
        let is_cause = finding.differences.iter().any(|d| !d.follows && is_ignored(d));
        if finding.differences.iter().all(|d| is_ignored(d) || (is_cause && d.follows)) {
            finding.ignored = Some(origin);
            continue;
        }
        let (ignored, counted): (Vec<_>, Vec<_>) = finding.differences.drain(..).partition(is_ignored);
        left_out.push(Finding { differences: ignored, ignored: Some(origin), ..finding.clone() });
        finding.differences = counted;
    }
    findings.extend(left_out);
    findings.sort_by(|a, b| (a.kind, &a.address).cmp(&(b.kind, &b.address)));
}

/// True if the attribute is of this pattern, or a part of one that is.
fn covers(pattern: &str, path: &str) -> bool {
    let ends = path.char_indices().filter(|(_, c)| matches!(c, '.' | '[')).map(|(i, _)| i).chain([path.len()]);
    ends.into_iter().any(|end| matches(pattern, &path[..end]))
}

/// True if the text is of this pattern: `*` stands for any text, all else for itself.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: Kind, paths: &[&str]) -> Finding {
        let difference = |path: &&str| Difference { path: (*path).to_owned(), is: None, should: None, follows: *path == "sha256" };
        Finding {
            kind,
            address: Address::managed("ssh_file", "motd"),
            resource_type: "ssh_file".to_owned(),
            says: String::new(),
            differences: paths.iter().map(difference).collect(),
            ignored: None,
            is_new: None,
            span: None,
        }
    }

    fn left(mut findings: Vec<Finding>, rules: &[&str]) -> Vec<(Vec<String>, bool)> {
        apply_rules(&mut findings, &rules.iter().map(|r| Rule::from_flag(r)).collect::<Vec<_>>());
        findings.into_iter().map(|f| (f.differences.into_iter().map(|d| d.path).collect(), f.ignored.is_some())).collect()
    }

    #[test]
    fn patterns() {
        for (pattern, text, is) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("a*a", "a", false),
            ("ssh_file.motd[*]", "ssh_file.motd[\"x\"]", true),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
        assert_eq!(parted("a.b[\"fd00::1\"]/u::x"), Some(("a.b[\"fd00::1\"]/u", "x")));
        assert_eq!(parted("a.b[\"fd00::1\"]/u"), None);
        assert!(covers("tags", "tags.a") && covers("tags", "tags[0].b") && covers("tags.*", "tags.a.b") && !covers("tag", "tags"));
    }

    #[test]
    fn an_address_names_all_that_is_within() {
        let is_about = |rule: &str, address: &str| Rule::from_flag(rule).is_about(&Thing::of(&address.parse().unwrap()));
        let part = "module.eu[\"a\"].module.dc.etcd_cluster.main[0]/member[\"x\"]/pki[\"ca.crt\"]";
        for (rule, is) in [
            ("module.eu", true),
            ("module.eu.module.dc.etcd_cluster.main", true),
            ("module.eu[\"a\"]", true),
            ("module.eu[\"b\"]", false),
            ("module.eu[\"a\"].module.dc", true),
            ("module.dc", false),
            ("module.eu[*].module.dc.etcd_cluster.main", true),
            ("module.eu[\"a\"].module.dc.etcd_cluster.main[0]", true),
            ("module.eu[\"a\"].module.dc.etcd_cluster.main[1]", false),
            ("module.eu[\"a\"].module.dc.etcd_cluster.main[0]/member", true),
            ("*/member[\"x\"]", true),
            ("*/member[\"y\"]", false),
            ("*/pki", true),
            (part, true),
        ] {
            assert_eq!(is_about(rule, part), is, "{rule}");
        }
        // An attribute is one of the thing, and not of what is below it.
        assert!(is_about("etcd_cluster.main::version", "etcd_cluster.main[0]") && is_about("a.b::c", "a.b"));
        assert!(!is_about("etcd_cluster.main::version", "etcd_cluster.main[0]/member[\"x\"]") && !is_about("module.m::c", "module.m.a.b"));
    }

    #[test]
    fn what_is_ignored_is_told_apart_and_still_told() {
        let both = || vec![finding(Kind::Changed, &["content", "mode"])];
        assert_eq!(left(both(), &["ssh_file.other"]), [(vec!["content".into(), "mode".into()], false)]);
        assert_eq!(left(both(), &["ssh_file.*"]), [(vec!["content".into(), "mode".into()], true)]);
        assert_eq!(left(both(), &["ssh_file.mot"]), [(vec!["content".into(), "mode".into()], false)]);
        assert_eq!(left(both(), &["*::mode"]), [(vec!["content".into()], false), (vec!["mode".into()], true)]);
        assert_eq!(left(both(), &["*::mode", "*::content"]), [(vec!["content".into(), "mode".into()], true)]);
        assert_eq!(left(vec![finding(Kind::Missing, &["mode"])], &["*::mode"]), [(vec!["mode".into()], false)], "it is gone as a whole");
    }

    #[test]
    fn what_follows_from_what_is_ignored_is_ignored_with_it() {
        let of = |paths: &[&str], rule: &str| -> Vec<(String, bool)> {
            left(vec![finding(Kind::Changed, paths)], &[rule])
                .into_iter()
                .map(|(paths, is_ignored)| (paths.join(" "), is_ignored))
                .collect()
        };
        assert_eq!(of(&["content", "sha256"], "*::content"), [("content sha256".to_owned(), true)]);
        assert_eq!(of(&["content", "mode", "sha256"], "*::content"), [("mode sha256".to_owned(), false), ("content".to_owned(), true)]);
        // It is only an effect: the cause counts.
        assert_eq!(of(&["content", "sha256"], "*::sha256"), [("content".to_owned(), false), ("sha256".to_owned(), true)]);
    }
}
