//! Generations: the state as each run left it, and the list of who, when and what for.
//!
//! Knows nothing of: where they are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Serial;

/// A state as a run left it, and what is known of that run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Its serial; names it.
    pub serial: Serial,
    /// When the run ended, RFC 3339.
    pub created: String,
    /// `user@host`
    pub who: String,
    /// `OperationTypeApply`
    pub operation: String,
    /// The tool's version.
    pub version: String,
    /// SHA-256 of the configuration's files, in hexadecimal digits.
    pub configuration: String,
    /// How many resources are in it.
    pub resources: usize,
    /// Policies that were broken and overridden, with the reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,
}

impl Generation {
    /// One of which nothing is known but that it is there.
    fn unknown(serial: Serial) -> Self {
        let nothing = String::new;
        Self {
            serial,
            created: nothing(),
            who: nothing(),
            operation: nothing(),
            version: nothing(),
            configuration: nothing(),
            resources: 0,
            overrides: BTreeMap::new(),
        }
    }
}

/// What is known of the generations that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(BTreeMap<Serial, Generation>);

impl History {
    /// So many are kept.
    pub const KEPT: usize = 30;

    /// From the text of [`History::to_bytes`]. A damaged one is an empty one: what is kept counts, and the list is made good by and by.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let all: Vec<Generation> = serde_json::from_slice(bytes).unwrap_or_default();
        Self(all.into_iter().map(|g| (g.serial, g)).collect())
    }

    /// As it is stored: a JSON list, oldest first.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(&self.0.values().collect::<Vec<_>>()).unwrap_or_default()
    }

    /// Takes one in. Gives the oldest that are to go for it: by when their runs ended, since a state that begins anew begins with serial 1.
    pub fn add(&mut self, generation: Generation) -> Vec<Serial> {
        let added = generation.serial;
        self.0.insert(added, generation);
        let mut by_age: Vec<_> = self.0.values().filter(|g| g.serial != added).map(|g| (&g.created, g.serial)).collect();
        by_age.sort();
        let gone: Vec<_> = by_age.iter().take(self.0.len().saturating_sub(Self::KEPT)).map(|(_, serial)| *serial).collect();
        for serial in &gone {
            self.0.remove(serial);
        }
        gone
    }

    /// Those that are really there, oldest first, whether the list knows of them or not: it may have been lost, or not have been written.
    pub fn of(mut self, kept: impl IntoIterator<Item = Serial>) -> Vec<Generation> {
        let found = kept.into_iter().map(|serial| (serial, self.0.remove(&serial).unwrap_or_else(|| Generation::unknown(serial))));
        found.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_what_is_there_counts() {
        let mut history = History::default();
        let mut gone = Vec::new();
        for serial in 1..=History::KEPT as u64 + 2 {
            gone.extend(history.add(Generation { who: format!("run {serial}"), ..Generation::unknown(serial) }));
        }
        assert_eq!(gone, [1, 2]);
        let anew = |serial| Generation { created: "later".into(), ..Generation::unknown(serial) };
        assert_eq!((history.clone().add(anew(1)), history.add(anew(2))), (vec![3], vec![3]), "a state that began anew");
        assert_eq!(history.add(anew(90)), [4]);
        assert_eq!(History::from_bytes(&history.to_bytes()), history);
        let there = history.clone().of([40, 8, 7]);
        assert_eq!(there.iter().map(|g| (g.serial, g.who.as_str())).collect::<Vec<_>>(), [(7, "run 7"), (8, "run 8"), (40, "")]);
        assert_eq!(History::from_bytes(b"{").of([1]), [Generation::unknown(1)]);
    }
}
