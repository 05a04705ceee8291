//! The cluster that was formed and whom it knows as its members: what etcd's members agree on, and which changes of it etcd accepts (facts of
//! etcd, "what etcd accepts": the strict rules of the versions before 3.5.30).

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Type, Value};

/// A member as its cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Which of the members that were at this URL one after the other; 0: the one that formed the cluster.
    pub(crate) incarnation: u64,
    /// It does not vote.
    pub(crate) learner: bool,
    /// What it calls itself, once it has started.
    pub(crate) name: Option<String>,
}

/// The list of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roster {
    /// The cluster.
    pub(crate) id: String,
    /// By peer URL.
    pub(crate) members: BTreeMap<String, Known>,
    /// The minor version that it is at: no member of an older one starts.
    pub(crate) version: Option<u32>,
    /// The minor version that it was told to go down to.
    pub(crate) goes_down_to: Option<u32>,
}

impl Roster {
    /// The leader looks at the minor versions that all voters run, and raises the cluster's own; or ends what it was told once all are there.
    pub(crate) fn monitor(&mut self, minors: &BTreeSet<u32>) {
        match self.goes_down_to {
            Some(to) if minors.last() == Some(&to) => self.goes_down_to = None,
            Some(_) => {}
            None => self.version = self.version.max(minors.first().copied()),
        }
    }

    /// It is told to go down to a version, and its members begin to keep their data as that does; `None`: to stay. `is_there`: somebody runs that version.
    /// Gives what it waits for.
    pub(crate) fn go_down(&mut self, to: Option<u32>, is_there: bool, all: bool) -> Result<Option<String>, String> {
        if to.is_some() && is_there || self.goes_down_to == to {
            return Ok(None);
        }
        match (to, self.goes_down_to, self.version) {
            _ if to.is_some() && !all => return Ok(Some("not all work".to_owned())),
            (Some(to), None, Some(version)) if to + 1 == version && to >= 5 => (self.goes_down_to, self.version) = (Some(to), Some(to)),
            (Some(to), None, version) => return Err(format!("invalid downgrade target version 3.{to} of {version:?}")),
            _ => self.goes_down_to = None,
        }
        Ok(Some("told".to_owned()))
    }

    /// How many vote.
    pub(crate) fn voters(&self) -> usize {
        self.members.values().filter(|m| !m.learner).count()
    }

    /// How many of them are a majority.
    pub(crate) fn majority(&self) -> usize {
        majority(self.voters())
    }

    /// How many are on their way in: they don't vote, or have never started.
    pub(crate) fn on_their_way(&self) -> usize {
        self.members.values().filter(|m| m.learner || m.name.is_none()).count()
    }

    /// Where the member with this id is, or without an id the one that is there.
    pub(crate) fn find(&self, id: Option<&str>, at: &str) -> Option<String> {
        let is_it = |url: &&String| id.map_or(*url == at, |_| self.id_of(url).as_deref() == id);
        self.members.keys().find(is_it).cloned()
    }

    /// How many would vote without this one.
    pub(crate) fn voters_without(&self, url: &str) -> usize {
        self.voters() - usize::from(self.members.get(url).is_some_and(|m| !m.learner))
    }

    /// A member's id, in hexadecimal digits: another one each time that somebody is added.
    pub(crate) fn id_of(&self, url: &str) -> Option<String> {
        let known = self.members.get(url)?;
        let sum = url.bytes().fold(0x0100_0193_u64, |sum, b| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(b));
        Some(format!("{:x}", (sum & 0xffff_ffff) << 8 | known.incarnation))
    }

    /// What a member says of all.
    pub(crate) fn told(&self) -> Value {
        let entry = |(url, known): (&String, &Known)| {
            Value::object([
                ("id", self.id_of(url).unwrap_or_default().into()),
                ("name", known.name.clone().unwrap_or_default().into()),
                ("peer_urls", Value::strings([url])),
                ("learner", known.learner.into()),
                ("started", known.name.is_some().into()),
            ])
        };
        let ty = Type::object([
            ("id", Type::String),
            ("name", Type::String),
            ("peer_urls", Type::list(Type::String)),
            ("learner", Type::Bool),
            ("started", Type::Bool),
        ]);
        Value::list(ty, self.members.iter().map(entry).collect())
    }
}

/// How many of so many voters are a majority.
pub(crate) fn majority(voters: usize) -> usize {
    voters / 2 + 1
}
