//! Composites: resources that know a domain, expand into small ones, and say in which order their changes are safe.
//!
//! Everything here is pure data and pure functions. A composite never touches the world; it names children by type and attributes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    Address, Change, ChildStep, Diagnostic, Diagnostics, Leg, Marks, Object, PathStep, Schema, Type, Value, convert, implied_from_json,
};

/// An argument of a child, an output or a gate: a value, or something made of siblings' attributes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arg {
    /// This value.
    Value(Value),
    /// An attribute of a sibling, known once that is.
    Child(Vec<ChildStep>, String),
    /// A list of these (a tuple; the schema's type decides).
    List(Vec<Arg>),
    /// An object of these.
    Object(BTreeMap<String, Arg>),
    /// Strings joined without anything between; numbers and bools are written as text.
    Text(Vec<Arg>),
    /// The part of a value at this path; null if it has none there.
    Part(Box<Arg>, Vec<PathStep>),
    /// A host as a URL has it: an IPv6 address in brackets.
    UrlHost(Box<Arg>),
    /// A string's bytes in base64, with padding.
    Base64(Box<Arg>),
    /// The text that a string is in base64; null if it is none.
    Decoded(Box<Arg>),
}

impl Arg {
    /// The attribute of a sibling.
    pub fn child(path: &[ChildStep], attribute: &str) -> Self {
        Self::Child(path.to_vec(), attribute.to_owned())
    }

    /// The item at this place of a sibling's list.
    pub fn item(path: &[ChildStep], attribute: &str, index: usize) -> Self {
        Self::Part(Box::new(Self::child(path, attribute)), vec![PathStep::Index(index)])
    }

    /// An object.
    pub fn object<const N: usize>(entries: [(&str, Self); N]) -> Self {
        Self::Object(entries.into_iter().map(|(n, a)| (n.to_owned(), a)).collect())
    }

    /// The same as this JSON: objects and lists of arguments, so that parts can be set.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Object(entries) => Self::Object(entries.iter().map(|(n, v)| (n.clone(), Self::from_json(v))).collect()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            scalar => Self::Value(implied_from_json(scalar)),
        }
    }

    /// Sets the part at a path of names and places in lists; objects on the way are made. What is no object or list there gives way to one.
    pub fn set(&mut self, path: &[&str], part: Self) {
        let Some((step, rest)) = path.split_first() else {
            *self = part;
            return;
        };
        if let Self::List(items) = self
            && let Some(item) = step.parse::<usize>().ok().and_then(|i| items.get_mut(i))
        {
            return item.set(rest, part);
        }
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(BTreeMap::new());
        }
        if let Self::Object(entries) = self {
            entries.entry((*step).to_owned()).or_insert_with(|| Self::Object(BTreeMap::new())).set(rest, part);
        }
    }

    /// The siblings it needs.
    pub fn references(&self, found: &mut Vec<Vec<ChildStep>>) {
        match self {
            Self::Value(_) => {}
            Self::Child(path, _) => found.push(path.clone()),
            Self::List(args) | Self::Text(args) => args.iter().for_each(|a| a.references(found)),
            Self::Object(args) => args.values().for_each(|a| a.references(found)),
            Self::Base64(arg) | Self::Decoded(arg) | Self::Part(arg, _) | Self::UrlHost(arg) => arg.references(found),
        }
    }

    /// Its value, with `lookup` giving siblings' attributes (unknown ones as unknown values).
    pub fn resolve(&self, lookup: &dyn Fn(&[ChildStep], &str) -> Value) -> Value {
        match self {
            Self::Value(v) => v.clone(),
            Self::Child(path, attribute) => lookup(path, attribute),
            Self::List(args) => Value::tuple(args.iter().map(|a| a.resolve(lookup)).collect()),
            Self::Object(args) => args.iter().map(|(n, a)| (n.clone(), a.resolve(lookup))).collect::<Object>().into(),
            Self::Text(args) => {
                let parts: Vec<_> = args.iter().map(|a| a.resolve(lookup)).collect();
                let marks = parts.iter().fold(Marks::default(), |all, v| all | v.all_marks());
                let text: Option<String> = parts.iter().map(written).collect();
                text.map_or_else(|| Value::unknown_not_null(Type::String), Value::from).marked(marks)
            }
            Self::Part(arg, path) => {
                let whole = arg.resolve(lookup);
                let missing = if whole.is_wholly_known() { Value::null(Type::Any) } else { Value::unknown(Type::Any) };
                whole.at(path).unwrap_or(missing).marked(whole.marks())
            }
            Self::UrlHost(arg) => {
                let host = arg.resolve(lookup);
                let is_v6 = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
                match host.as_str().filter(|text| is_v6(text)) {
                    Some(text) => Value::from(format!("[{text}]")).marked(host.marks()),
                    None => host,
                }
            }
            Self::Decoded(arg) => {
                let encoded = arg.resolve(lookup);
                let plain = match encoded.as_str().map(|text| STANDARD.decode(text).ok().and_then(|b| String::from_utf8(b).ok())) {
                    Some(Some(text)) => text.into(),
                    Some(None) => Value::null(Type::String),
                    None => Value::unknown_not_null(Type::String),
                };
                plain.marked(encoded.all_marks())
            }
            Self::Base64(arg) => {
                let plain = arg.resolve(lookup);
                let encoded = plain.as_str().map(|text| Value::from(STANDARD.encode(text)));
                encoded.unwrap_or_else(|| Value::unknown_not_null(Type::String)).marked(plain.all_marks())
            }
        }
    }
}

/// What is known and can be written as text.
fn written(value: &Value) -> Option<String> {
    convert(value, &Type::String).ok()?.as_str().map(str::to_owned)
}

impl<V: Into<Value>> From<V> for Arg {
    fn from(value: V) -> Self {
        Self::Value(value.into())
    }
}

/// One thing a composite expands into.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its path below the composite.
    pub path: Vec<ChildStep>,
    /// Its resource type, of any provider.
    pub resource_type: String,
    /// Its arguments by attribute name; those left out are null.
    pub arguments: BTreeMap<String, Arg>,
    /// Siblings that come first though no argument refers to them.
    pub after: Vec<Vec<ChildStep>>,
    /// Attributes of the composite that it has nothing to do with: while it is new, it is made before what only these refer to is there. What is
    /// there already changes after all that the composite refers to.
    pub apart: &'static [&'static str],
}

/// What a composite stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expansion {
    /// The children, in the order they are best read.
    pub children: Vec<Child>,
    /// The composite's computed attributes.
    pub outputs: BTreeMap<String, Arg>,
}

/// A child with its planned change.
#[derive(Clone, Debug)]
pub struct ChildChange<'a> {
    /// Its resource type.
    pub resource_type: &'a str,
    /// What is planned for it.
    pub change: &'a Change,
    /// What was seen, with volatile facts; `None` if it is not there or was not asked for.
    pub observed: Option<&'a Object>,
    /// It is in the state.
    pub in_state: bool,
    /// It was to be looked at, and could not be.
    pub unseen: bool,
}

/// Everything a composite may look at to choose an order.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// Its address.
    pub address: &'a Address,
    /// Arguments and outputs as of the last finished apply; `None` before the first.
    pub before: Option<&'a Object>,
    /// Arguments as wanted now; `None` if it is to be destroyed.
    pub wanted: Option<&'a Object>,
    /// Its children by path: wanted ones, and those that are only in the state any more.
    pub children: BTreeMap<Vec<ChildStep>, ChildChange<'a>>,
}

/// One end of an ordering.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The change of this child (nothing if it has none).
    Child(Vec<ChildStep>),
    /// The gate of this name.
    Gate(String),
}

/// A wait between steps until a condition of the outside world holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateSpec {
    /// Its name within the composite, shown: `healthy after member["a"]`.
    pub name: String,
    /// The gate's type, of any provider: `etcd_healthy`.
    pub gate: String,
    /// Its arguments.
    pub arguments: BTreeMap<String, Arg>,
    /// The longest wait in seconds.
    pub limit: u64,
    /// It is an operation: what it waits for it brings about itself, each time it is asked a little further ([`crate::Operation`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acts: bool,
}

/// What a child is told at its change, in place of what it expanded into, because only the order of the changes decides it. Of a write-only
/// attribute alone: those take part in no difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The child.
    pub child: Vec<ChildStep>,
    /// Its write-only attribute.
    pub attribute: &'static str,
    /// Its value, wholly known.
    pub value: Value,
}

/// How many members of a cluster are up at the worst moment of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Margin {
    /// How many there are.
    pub members: usize,
    /// How many of these are up.
    pub up: usize,
    /// How many it takes to work.
    pub quorum: usize,
}

/// What somebody may want to forbid of a plan, where `impact` has words for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    /// Where members go down, if any do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margin>,
    /// Data that is deleted, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_loss: Vec<String>,
    /// What has to be agreed to by name, beyond the approval of the plan, in a few words; nobody can tell from a difference alone that it is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

impl Risk {
    /// True if there is none.
    pub fn is_none(&self) -> bool {
        self.margin.is_none() && self.data_loss.is_empty() && self.confirm.is_none()
    }
}

/// A child that comes to be another one by this plan though nothing is wanted of it that it is not: it is read again once it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The child.
    pub child: Vec<ChildStep>,
    /// Its computed attributes that will be others.
    pub attributes: &'static [&'static str],
}

/// The order that a static graph can't say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choreography {
    /// Waits.
    pub gates: Vec<GateSpec>,
    /// The first has ended well before the second starts.
    pub orderings: Vec<(Point, Point)>,
    /// The impact in plain words: "rolling restart, quorum kept 2 of 3".
    pub impact: Vec<String>,
    /// The same for who counts: [`Risk`].
    pub risk: Risk,
    /// Children to be deleted that need no deletion, because they go with something else that goes (what is in a database, for one): they
    /// are only taken out of the state. So nothing waits for a server that may not answer any more.
    pub forgotten: Vec<Vec<ChildStep>>,
    /// What children are told at their changes.
    pub told: Vec<Told>,
    /// Children that come to be others. Of one that changes anyway it says nothing. Where there are any, the plan is made again with them as changes, and
    /// the composite is asked again with that.
    pub renewed: Vec<Renewed>,
    /// Children whose place does not answer. What comes after them only in order, of the same composite or of what it needs, does not wait for
    /// them; they themselves wait as ever. Their own failure is told, and the composite stays unfinished.
    pub away: Vec<Vec<ChildStep>>,
}

/// A version that runs, and why it will not do for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// The attribute that says which version it is; one of a block after the block's name and a dot.
    pub attribute: &'static str,
    /// What runs: `Kubernetes 1.34`.
    pub what: String,
    /// What is to be said of it.
    pub caveat: Caveat,
}

/// Why a version will not do for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caveat {
    /// When its patches end, in seconds since 1970; `None`: they have ended, and nobody says when.
    Patches(Option<i64>),
    /// It works together with this, and should be of its version.
    Fellow(String),
}

/// A resource type that expands into others.
pub trait Composite: Send + Sync {
    /// `"etcd_cluster"`
    fn name(&self) -> &'static str;
    /// Its attributes and blocks.
    fn schema(&self) -> &Schema;

    /// The children. Called with arguments whose values may be unknown (then only the structure counts) and again when they are known:
    /// the same arguments, more known, must give the same children.
    ///
    /// # Errors
    /// Arguments that can't be served, or whose unknown parts decide how many children there are.
    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics>;

    /// Where the way from what was applied last to what is wanted leads over something else: that, and what is left then. A later plan goes on from there.
    /// Called only for what the state has, and before it is expanded. `None`: one plan does it, or nobody can tell how; the children are the same
    /// by name either way.
    fn first_leg(&self, before: &Object, wanted: &Object) -> Option<Leg> {
        let _ = (before, wanted);
        None
    }

    /// The arguments of all else that plans may lead over on some way to these, as far as they say it: what has to be at hand for that. `None` for one
    /// that can't be told.
    fn legs(&self, wanted: &Object) -> Vec<Option<Object>> {
        let _ = wanted;
        Vec::new()
    }

    /// The order of this plan's changes, its gates, and its impact. Called only when a child changes.
    ///
    /// # Errors
    /// Changes that are not safe, or not supported: refused in the plan, not attempted.
    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics>;

    /// What is to be said of the versions that these arguments run, as far as anything is known of them: how long they get patches, and whether
    /// they fit those of what they work with, which is among `fellows`: the composites of the state that have a `connection`.
    fn upkeep(&self, object: &Object, fellows: &[&Object]) -> Vec<Upkeep> {
        let _ = (object, fellows);
        Vec::new()
    }

    /// What children are in need of though nothing of them is to be changed, where only several of them together show it: the path of each, and a
    /// warning. Called where nothing of the composite changes. `seen`: what was observed, facts of the moment among it, by path.
    fn care(&self, seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
        let _ = seen;
        Vec::new()
    }

    /// What has to hold again once a composite that this one needs has changed, whether anything of this one changes or not: who lost its
    /// connections meanwhile is there again before the plan has ended. Called only for what is in the state and stays; gates that
    /// `choreograph` has as well count once.
    ///
    /// # Errors
    /// Arguments that can't be read.
    fn recover(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        let _ = scene;
        Ok(Choreography::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_json_are_set_and_resolved() {
        let mut arg = Arg::from_json(&json!({ "kind": "Secret", "list": [{ "a": 1 }, {}] }));
        arg.set(&["data", "tls.key"], Arg::Base64(Box::new(Arg::child(&[ChildStep::new("key")], "private_key"))));
        arg.set(&["list", "1", "b"], "x".into());
        let mut found = Vec::new();
        arg.references(&mut found);
        assert_eq!(found, [vec![ChildStep::new("key")]]);
        let resolved = arg.resolve(&|_, _| Value::from("hi").secret());
        let expected = json!({ "kind": "Secret", "data": { "tls.key": "aGk=" }, "list": [{ "a": 1 }, { "b": "x" }] });
        assert_eq!(crate::to_json(&resolved), expected);
        assert!(resolved.get("data").is_some_and(Value::contains_secret));
        let later = arg.resolve(&|_, _| Value::unknown(Type::String));
        assert!(later.get("data").and_then(|d| d.get("tls.key")).is_some_and(Value::is_unknown));
    }

    #[test]
    fn base64_is_read_back() {
        let arg = Arg::Decoded(Box::new(Arg::child(&[ChildStep::new("token")], "exposed")));
        let of = |value: Value| arg.resolve(&|_, _| value.clone());
        let plain = of(Value::from("aGk=").secret());
        assert!(plain.as_str() == Some("hi") && plain.contains_secret());
        assert!(of("no base64".into()).is_null() && of(Value::unknown(Type::String)).is_unknown());
    }

    #[test]
    fn items_of_siblings_are_put_into_texts() {
        let service = [ChildStep::new("service")];
        let host = Arg::UrlHost(Box::new(Arg::item(&service, "addresses", 0)));
        let url = Arg::Text(vec!["https://".into(), host, ":".into(), Arg::item(&service, "ports", 1)]);
        let mut found = Vec::new();
        url.references(&mut found);
        assert_eq!(found, [service.to_vec(), service.to_vec()]);
        let made = |address: &str| {
            let ports = Value::tuple(vec![80i64.into(), 443i64.into()]);
            let addresses = Value::strings([address]);
            url.resolve(&|_, name| if name == "ports" { ports.clone() } else { addresses.clone() })
        };
        assert_eq!(made("fd00::7").as_str(), Some("https://[fd00::7]:443"));
        assert_eq!(made("lb.example.org").as_str(), Some("https://lb.example.org:443"));
        assert!(url.resolve(&|_, _| Value::unknown(Type::list(Type::String))).is_unknown());
        assert!(Arg::item(&service, "addresses", 0).resolve(&|_, _| Value::null(Type::list(Type::String))).is_null());
    }
}
