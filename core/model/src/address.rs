//! Addresses: how a resource instance is named in configuration, plan, state and output.
//!
//! `ssh_file.motd`, `ssh_file.motd["a"]`, `data.ssh_host.cp["a"]`, for what a composite expands into
//! `etcd_cluster.main/member["a"]/unit`, and for what stands in a module `module.site["a"].ssh_file.motd`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What no type of a resource is called: the words that Terraform keeps for other references, and karmaform's own.
const RESERVED: [&str; 11] = ["var", "local", "each", "count", "path", "self", "terraform", "karmaform", "template", "lazy", "arg"];

/// Whether a block manages something or only reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A `resource` block.
    Managed,
    /// A `data` block.
    Data,
}

/// The key of one instance of a block with `count` or `for_each`. Numbers sort before names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// From `count`.
    Index(u64),
    /// From `for_each`.
    Name(String),
}

/// One step below a composite: `member["a"]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChildStep {
    /// The step's name, an identifier.
    pub name: String,
    /// Which one of several.
    pub key: Option<Key>,
}

/// One call of a module on the way to an instance: `module.site["a"]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleStep {
    /// The label of the `module` block.
    pub name: String,
    /// Which one of several; none for a single one, or for all of them where an address selects.
    pub key: Option<Key>,
}

/// The address of one instance (or, without `key` and `child`, of a whole block; or, of no type and name, of a whole module).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The modules it is in, the outermost first; empty in the root module. First, so that what is in one module sorts together.
    pub module: Vec<ModuleStep>,
    /// Resource or data source.
    pub mode: Mode,
    /// The type in the block's first label. Of a child: the composite's type.
    pub kind: String,
    /// The block's second label.
    pub name: String,
    /// The instance key.
    pub key: Option<Key>,
    /// The path below a composite; empty for what a user wrote.
    pub child: Vec<ChildStep>,
}

/// A text that is no address.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{text}\" is not a resource address: {problem}")]
pub struct AddressError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl Address {
    /// A managed resource without a key.
    pub fn managed(kind: &str, name: &str) -> Self {
        Self { module: Vec::new(), mode: Mode::Managed, kind: kind.into(), name: name.into(), key: None, child: Vec::new() }
    }

    /// A whole module.
    pub fn of_module(module: Vec<ModuleStep>) -> Self {
        Self { module, ..Self::managed("", "") }
    }

    /// A data source without a key.
    pub fn data(kind: &str, name: &str) -> Self {
        Self { mode: Mode::Data, ..Self::managed(kind, name) }
    }

    /// The same block's instance with this key.
    #[must_use]
    pub fn with_key(&self, key: Option<Key>) -> Self {
        Self { key, child: Vec::new(), ..self.clone() }
    }

    /// The address of the block: no key, no child path.
    #[must_use]
    pub fn block(&self) -> Self {
        self.with_key(None)
    }

    /// The address of a child of this composite instance.
    #[must_use]
    pub fn with_child(&self, child: &[ChildStep]) -> Self {
        Self { child: child.to_vec(), ..self.clone() }
    }

    /// True for what a composite expanded into.
    pub fn is_child(&self) -> bool {
        !self.child.is_empty()
    }

    /// Of a child: the composite instance it belongs to.
    pub fn composite(&self) -> Option<Self> {
        self.is_child().then(|| self.whole())
    }

    /// The instance that it is, or is a part of.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { child: Vec::new(), ..self.clone() }
    }

    /// True for a whole module, with whatever is in it.
    pub fn is_module(&self) -> bool {
        self.kind.is_empty()
    }

    /// The word that keeps it from being a resource's: something else begins with it wherever it is written, as in `var.x`.
    pub fn reserved_word(&self) -> Option<&str> {
        Some(self.kind.as_str()).filter(|kind| self.mode == Mode::Managed && RESERVED.contains(kind))
    }

    /// The same seen from outside of this module.
    #[must_use]
    pub fn in_module(&self, module: &[ModuleStep]) -> Self {
        Self { module: module.iter().chain(&self.module).cloned().collect(), ..self.clone() }
    }

    /// The same seen from inside of the module that it is in.
    #[must_use]
    pub fn outside_of_modules(&self) -> Self {
        Self { module: Vec::new(), ..self.clone() }
    }

    /// The module that it is in; `None` in the root module.
    pub fn module_address(&self) -> Option<Self> {
        (!self.module.is_empty()).then(|| Self::of_module(self.module.clone()))
    }

    /// What addresses are listed by, as Terraform has it: the less deep modules first, and in each what is only read before what is managed.
    pub fn list_order(&self) -> impl Ord + '_ {
        (self.module.len(), &self.module, self.mode == Mode::Managed, self)
    }

    /// How the configuration names it: without any key, and without what is below a composite.
    #[must_use]
    pub fn configuration(&self) -> Self {
        let module = self.module.iter().map(|s| ModuleStep::new(&s.name)).collect();
        Self { module, ..self.with_key(None) }
    }

    /// True if `self` is `other`, an instance of it, or a child below it (what `-target=other` selects); or in `other`, a module.
    pub fn is_within(&self, other: &Self) -> bool {
        let is_there = self.module.len() >= other.module.len()
            && self.module.iter().zip(&other.module).all(|(m, t)| m.name == t.name && (t.key.is_none() || m.key == t.key));
        if !is_there || other.is_module() {
            return is_there;
        }
        self.module.len() == other.module.len()
            && self.mode == other.mode
            && self.kind == other.kind
            && self.name == other.name
            && (self.key == other.key || (other.key.is_none() && other.child.is_empty()))
            && self.child.len() >= other.child.len()
            && self.child.iter().zip(&other.child).enumerate().all(|(i, (mine, theirs))| {
                mine.name == theirs.name && (mine.key == theirs.key || (theirs.key.is_none() && i + 1 == other.child.len()))
            })
    }
}

impl ChildStep {
    /// A step without a key.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), key: None }
    }

    /// A step with a name as its key.
    pub fn keyed(name: &str, key: &str) -> Self {
        Self { name: name.into(), key: Some(Key::Name(key.into())) }
    }
}

impl ModuleStep {
    /// A step without a key.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), key: None }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(i) => write!(f, "[{i}]"),
            Self::Name(n) => {
                f.write_str("[\"")?;
                let mut rest = n.chars().peekable();
                while let Some(c) = rest.next() {
                    match c {
                        // What would begin an interpolation is doubled, as in the language.
                        '$' | '%' if rest.peek() == Some(&'{') => write!(f, "{c}{c}")?,
                        '"' => f.write_str("\\\"")?,
                        '\\' => f.write_str("\\\\")?,
                        '\n' => f.write_str("\\n")?,
                        '\r' => f.write_str("\\r")?,
                        '\t' => f.write_str("\\t")?,
                        c => write!(f, "{c}")?,
                    }
                }
                f.write_str("\"]")
            }
        }
    }
}

impl fmt::Display for ChildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.key.as_ref().map_or(Ok(()), |k| write!(f, "{k}"))
    }
}

impl fmt::Display for ModuleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "module.{}", self.name)?;
        self.key.as_ref().map_or(Ok(()), |k| write!(f, "{k}"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.module.iter().enumerate() {
            write!(f, "{}{step}", if i > 0 { "." } else { "" })?;
        }
        if self.is_module() {
            return Ok(());
        }
        if !self.module.is_empty() {
            f.write_str(".")?;
        }
        if self.mode == Mode::Data {
            f.write_str("data.")?;
        }
        write!(f, "{}.{}", self.kind, self.name)?;
        if let Some(key) = &self.key {
            write!(f, "{key}")?;
        }
        for step in &self.child {
            write!(f, "/{step}")?;
        }
        Ok(())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |problem| AddressError { text: text.to_owned(), problem };
        let mut rest = Scanner { text };
        let mut kind = rest.identifier().ok_or_else(|| error("expected a resource type"))?;
        let mut module = Vec::new();
        while kind == "module" && rest.eat('.') {
            let name = rest.identifier().ok_or_else(|| error("expected a name after \"module.\""))?;
            module.push(ModuleStep { name, key: rest.key().map_err(error)? });
            if rest.text.is_empty() {
                return Ok(Self::of_module(module));
            }
            let has_dot = rest.eat('.');
            kind = rest.identifier().filter(|_| has_dot).ok_or_else(|| error("expected a resource type after the module"))?;
        }
        // The long form of `TYPE.NAME`.
        let is_long = kind == "resource" && rest.eat('.');
        if is_long {
            let is_type = |kind: &String| !["data", "module", "resource"].contains(&kind.as_str());
            kind = rest.identifier().filter(is_type).ok_or_else(|| error("expected a resource type after \"resource.\""))?;
        }
        let mode = if !is_long && kind == "data" && rest.eat('.') {
            kind = rest.identifier().ok_or_else(|| error("expected a data source type after \"data.\""))?;
            Mode::Data
        } else {
            Mode::Managed
        };
        let had_dot = mode == Mode::Managed || !rest.text.is_empty();
        if !had_dot || !rest.eat('.') {
            return Err(error("expected TYPE.NAME"));
        }
        let name = rest.identifier().ok_or_else(|| error("expected a name after the type"))?;
        let key = rest.key().map_err(error)?;
        let mut child = Vec::new();
        while rest.eat('/') {
            let name = rest.identifier().ok_or_else(|| error("expected a name after \"/\""))?;
            child.push(ChildStep { name, key: rest.key().map_err(error)? });
        }
        if !rest.text.is_empty() {
            return Err(error("unexpected text at its end"));
        }
        Ok(Self { module, mode, kind, name, key, child })
    }
}

struct Scanner<'a> {
    text: &'a str,
}

impl Scanner<'_> {
    fn eat(&mut self, c: char) -> bool {
        self.text.strip_prefix(c).is_some_and(|rest| {
            self.text = rest;
            true
        })
    }

    fn identifier(&mut self) -> Option<String> {
        let end = self
            .text
            .char_indices()
            .find(|(i, c)| !(c.is_alphanumeric() || *c == '_' || (*i > 0 && *c == '-')))
            .map_or(self.text.len(), |(i, _)| i);
        let (head, tail) = self.text.split_at(end);
        if head.is_empty() || head.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.text = tail;
        Some(head.to_owned())
    }

    fn key(&mut self) -> Result<Option<Key>, &'static str> {
        if !self.eat('[') {
            return Ok(None);
        }
        if self.eat('"') {
            let mut name = String::new();
            let mut chars = self.text.char_indices();
            while let Some((i, c)) = chars.next() {
                match c {
                    '"' => {
                        self.text = &self.text[i + 1..];
                        return if self.eat(']') { Ok(Some(Key::Name(name))) } else { Err("expected \"]\"") };
                    }
                    '\\' => match chars.next() {
                        Some((_, 'n')) => name.push('\n'),
                        Some((_, 'r')) => name.push('\r'),
                        Some((_, 't')) => name.push('\t'),
                        Some((_, c)) => name.push(c),
                        None => break,
                    },
                    '$' | '%' if self.text[i + 1..].starts_with([c]) && self.text[i + 2..].starts_with('{') => {
                        chars.next();
                        name.push(c);
                    }
                    c => name.push(c),
                }
            }
            return Err("unterminated key");
        }
        let end = self.text.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.text.len());
        let index = self.text[..end].parse().map_err(|_| "expected a number or a quoted name in brackets")?;
        self.text = &self.text[end..];
        if self.eat(']') { Ok(Some(Key::Index(index))) } else { Err("expected \"]\"") }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_and_parse_back() {
        for text in [
            "ssh_file.motd",
            "ssh_file.motd[3]",
            "ssh_file.motd[\"a\\\"b/c\"]",
            "data.ssh_host.cp[\"a\"]",
            "etcd_cluster.main/member[\"a\"]/unit",
            "etcd_cluster.main[\"x\"]/ca",
            "module.a",
            "module.a[0].module.b[\"x.y\"]",
            "module.a.ssh_file.motd",
            "module.a[\"k\"].data.ssh_host.cp[1]",
            "module.a.module.b[2].etcd_cluster.main/member[\"a\"]/unit",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in
            ["", "x", "data.x", "a.b[", "a.b[x]", "a.b/", "a.b c", "1a.b", "module", "module.", "module.a.", "module.a.b", "module.a/b"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_resource_may_be_named_in_its_long_form() {
        let short = |text: &str| text.parse::<Address>().map(|a| a.to_string());
        assert_eq!(short("resource.ssh_file.motd[3]").unwrap(), "ssh_file.motd[3]");
        assert_eq!(short("module.a[0].resource.etcd_cluster.main/ca").unwrap(), "module.a[0].etcd_cluster.main/ca");
        assert_eq!(short("data.resource.a").unwrap(), "data.resource.a");
        for text in ["resource.a", "resource.", "resource.data.a", "resource.data.a.b", "resource.module.a", "resource.resource.a.b"] {
            assert!(short(text).is_err(), "{text}");
        }
    }

    #[test]
    fn some_words_begin_no_address_of_a_resource() {
        let word = |text: &str| text.parse::<Address>().unwrap().reserved_word().map(str::to_owned);
        assert_eq!(word("var.a").as_deref(), Some("var"));
        assert_eq!(word("module.m.local.a").as_deref(), Some("local"));
        for text in ["ssh_file.var", "data.var.a", "module.var", "output.a"] {
            assert_eq!(word(text), None, "{text}");
        }
    }

    #[test]
    fn a_target_selects_instances_and_children() {
        let within = |a: &str, b: &str| a.parse::<Address>().unwrap().is_within(&b.parse().unwrap());
        assert!(within("a.b[0]", "a.b"));
        assert!(within("a.b[\"k\"]/member[\"a\"]/unit", "a.b"));
        assert!(within("a.b/member[\"a\"]/unit", "a.b/member"));
        assert!(within("a.b/member[\"a\"]/unit", "a.b/member[\"a\"]"));
        assert!(!within("a.b/member[\"b\"]/unit", "a.b/member[\"a\"]"));
        assert!(!within("a.b", "a.b[0]"));
        for there in ["module.m", "module.m[0]", "module.m.module.n", "module.m.module.n.a.b", "module.m[0].module.n.a.b[1]"] {
            assert!(within("module.m[0].module.n.a.b[1]", there), "{there}");
        }
        for other in ["module.m[1]", "module.n", "a.b", "module.m.a.b", "module.m.module.n.a.b[0]", "module.m.module.n.module.o"] {
            assert!(!within("module.m[0].module.n.a.b[1]", other), "{other}");
        }
    }

    #[test]
    fn what_is_in_one_module_sorts_together() {
        let texts = ["data.z.z", "module.a.z.z", "module.a.module.b.a.a", "module.a[0].a.a", "module.b.a.a"];
        let mut addresses: Vec<Address> = texts.iter().rev().map(|t| t.parse().unwrap()).collect();
        addresses.sort();
        assert_eq!(addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
        addresses.sort_by(|a, b| a.list_order().cmp(&b.list_order()));
        let listed = ["data.z.z", "module.a.z.z", "module.a[0].a.a", "module.b.a.a", "module.a.module.b.a.a"];
        assert_eq!(addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), listed);
        let (managed, read) = (Address::managed("a", "a"), Address::data("z", "z"));
        assert!(managed < read && read.list_order() < managed.list_order());
        addresses.sort();
        assert_eq!(addresses[3].configuration().to_string(), "module.a.a.a");
        assert_eq!(addresses[0].in_module(&addresses[3].module).to_string(), "module.a[0].data.z.z");
    }
}
