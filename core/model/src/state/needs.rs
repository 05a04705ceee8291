//! What resources depend on as Terraform writes it: blocks, and all that these depend on in turn. What each instance needs directly, and where
//! that has keys, karmaform keeps elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::ResourceState;
use crate::Address;

/// Of what needs more blocks than this, only those are listed that it needs directly: along a chain, each would list all before it.
const MOST: usize = 128;

/// What each block of a state needs.
#[derive(Default)]
pub(super) struct Needs {
    numbers: BTreeMap<Address, usize>,
    /// By number: the address of the block, and what its instances need directly.
    blocks: Vec<(String, BTreeSet<usize>)>,
}

impl Needs {
    pub(super) fn new<'a>(resources: impl Iterator<Item = (&'a Address, &'a ResourceState)>) -> Self {
        let mut all = Self::default();
        for (address, resource) in resources {
            let own = all.number(address);
            for needed in &resource.dependencies {
                let needed = all.number(needed);
                all.blocks[own].1.insert(needed);
            }
        }
        all
    }

    fn number(&mut self, address: &Address) -> usize {
        let block = address.configuration();
        if let Some(number) = self.numbers.get(&block) {
            return *number;
        }
        let number = self.blocks.len();
        self.blocks.push((block.to_string(), BTreeSet::new()));
        self.numbers.insert(block, number);
        number
    }

    /// The list for an instance of a block, which is the same for all of them. Sorted.
    pub(super) fn of(&self, address: &Address) -> Vec<&str> {
        let Some(&own) = self.numbers.get(&address.configuration()) else { return Vec::new() };
        let direct = &self.blocks[own].1;
        let found = self.behind(own).unwrap_or_else(|| direct.clone());
        let mut texts: Vec<&str> = found.into_iter().map(|n| self.blocks[n].0.as_str()).collect();
        texts.sort_unstable();
        texts
    }

    /// All that a block needs, directly or not; none if that is too much.
    fn behind(&self, own: usize) -> Option<BTreeSet<usize>> {
        let mut found = self.blocks[own].1.clone();
        let mut open: Vec<usize> = found.iter().copied().filter(|n| *n != own).collect();
        while let Some(number) = open.pop() {
            let more = self.blocks[number].1.iter().copied().filter(|n| *n != own);
            open.extend(more.filter(|n| found.insert(*n)));
            if found.len() > MOST {
                return None;
            }
        }
        Some(found)
    }
}

/// A list as one number, to see whether somebody has made another one of it: FNV-1a, 64 bits.
pub(super) fn number_of<'a>(list: impl Iterator<Item = &'a str>) -> u64 {
    let bytes = list.flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Snapshot;

    fn state(needs: impl IntoIterator<Item = (String, String)>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (address, needed) in needs {
            let dependencies: Vec<_> = needed.split_whitespace().collect();
            let instance = json!({ "attributes": {}, "dependencies": dependencies });
            let address: Address = address.parse().unwrap();
            let resource = super::super::instance::read(&address.kind, "terraform", &instance).unwrap();
            snapshot.resources.insert(address, resource);
        }
        snapshot
    }

    fn listed(snapshot: &Snapshot, address: &str) -> String {
        Needs::new(snapshot.resources.iter()).of(&address.parse().unwrap()).join(" ")
    }

    #[test]
    fn what_is_needed_in_turn_is_listed() {
        let needs = [("t.a", ""), ("t.b[0]", "t.a"), ("module.m[\"k\"].t.c", "t.b[0]"), ("t.d", "module.m[\"k\"].t.c"), ("t.e", "t.a t.b")];
        let snapshot = state(needs.map(|(a, n)| (a.to_owned(), n.to_owned())));
        assert_eq!(listed(&snapshot, "t.a"), "");
        assert_eq!(listed(&snapshot, "t.d"), "module.m.t.c t.a t.b");
        assert_eq!(listed(&snapshot, "t.e"), "t.a t.b");
        let text = snapshot.to_text();
        let back = Snapshot::from_text(&text).unwrap();
        assert_eq!(back, snapshot, "what each needs directly comes back");
        assert_eq!(back.to_text(), text);
    }

    #[test]
    fn a_circle_of_blocks_ends() {
        let needs = [("t.a[0]", "t.b[0]"), ("t.b[0]", ""), ("t.b[1]", "t.a[0]"), ("t.c[1]", "t.c[0]"), ("t.c[0]", "t.b[1]")];
        let snapshot = state(needs.map(|(a, n)| (a.to_owned(), n.to_owned())));
        assert_eq!(listed(&snapshot, "t.a[0]"), "t.b");
        assert_eq!(listed(&snapshot, "t.b[1]"), "t.a");
        assert_eq!(listed(&snapshot, "t.c[1]"), "t.a t.b t.c");
        assert_eq!(Snapshot::from_text(&snapshot.to_text()).unwrap(), snapshot, "an instance that needs nothing comes back as that");
    }

    #[test]
    fn a_long_chain_is_not_listed_again_and_again() {
        let snapshot = state((0..1000).map(|n| (format!("t.n{n}"), if n == 0 { String::new() } else { format!("t.n{}", n - 1) })));
        let count = |n: usize| listed(&snapshot, &format!("t.n{n}")).split(' ').count();
        assert_eq!((count(1), count(100), count(MOST), count(MOST + 1)), (1, 100, MOST, 1));
    }

    #[test]
    fn what_terraform_changed_counts() {
        let needs = [("t.a", ""), ("t.b", "t.a"), ("t.c", "t.b"), ("t.d", "")];
        let text = state(needs.map(|(a, n)| (a.to_owned(), n.to_owned()))).to_text();
        let needs_of = |text: &str| {
            let state = Snapshot::from_text(text).unwrap();
            state.resources[&"t.c".parse().unwrap()].dependencies.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(needs_of(&text), "t.b");
        let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (list, expected) in [(json!(["t.a", "t.b", "t.d"]), "t.a t.b t.d"), (json!(["t.a", "t.d"]), "t.a t.d"), (json!([]), "")] {
            file["resources"][2]["instances"][0]["dependencies"] = list;
            assert_eq!(needs_of(&file.to_string()), expected);
        }
    }
}
