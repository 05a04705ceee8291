//! Where the things of a state are, and where each was, found by the names in their addresses: a block is held against nothing that has
//! other names than it, however much there is. Knows no configuration.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Moved, Unit};
use karmaform_model::Address;

/// An address without its keys: its modules, its type and its name.
pub(super) type Names = (Vec<String>, String, String);

/// Whole resources and composites, without what these are made of.
pub(super) struct Places {
    /// Where each was, by where it is now.
    was: BTreeMap<Address, Address>,
    named: BTreeMap<Names, BTreeSet<Address>>,
}

impl Places {
    /// All of them where they are.
    pub(super) fn of(all: impl Iterator<Item = Address>) -> Self {
        let mut places = Self { was: BTreeMap::new(), named: BTreeMap::new() };
        for address in all {
            places.put(address.clone(), address);
        }
        places
    }

    /// All that is somewhere, in its order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.was.keys()
    }

    /// True if something is there.
    pub(super) fn has(&self, address: &Address) -> bool {
        self.was.contains_key(address)
    }

    /// Moves each of these from where it is, the first, to the second; all are gone before one is there.
    pub(super) fn move_all(&mut self, all: impl IntoIterator<Item = (Address, Address)>) {
        let taken: Vec<_> = all.into_iter().filter_map(|(now, to)| Some((to, self.take(&now)?))).collect();
        for (to, was) in taken {
            self.put(to, was);
        }
    }

    /// Where it was that is not there any more.
    fn take(&mut self, now: &Address) -> Option<Address> {
        self.named.get_mut(&names(&[], now))?.remove(now);
        self.was.remove(now)
    }

    fn put(&mut self, now: Address, was: Address) {
        self.named.entry(names(&[], &now)).or_default().insert(now.clone());
        self.was.insert(now, was);
    }

    /// What a block moves, and all that goes with each of it.
    pub(super) fn units(&self, moved: &Moved) -> Vec<(Unit, BTreeSet<Address>)> {
        let mut units: BTreeMap<Address, (Unit, BTreeSet<Address>)> = BTreeMap::new();
        for address in self.named(&moved.module, &moved.from) {
            if let Some(unit) = moved.unit(address) {
                units.entry(unit.from.clone()).or_insert_with(|| (unit, BTreeSet::new())).1.insert(address.clone());
            }
        }
        units.into_values().collect()
    }

    /// True if something else than what goes is where a unit shall be; `is_whole` as [`Moved::is_whole`] says.
    pub(super) fn is_taken(&self, unit: &Unit, is_whole: bool, going: &BTreeSet<Address>) -> bool {
        let to = &unit.to;
        let is_there = |address: &Address| match (to.is_module(), is_whole) {
            (true, _) => address.module.starts_with(&to.module),
            (false, true) => address.block() == *to,
            (false, false) => address == to,
        };
        // Addresses sort by their modules, their type and name, and their key last: what is there stands together, and begins with it.
        self.was.range(to.clone()..).map(|(address, _)| address).take_while(|a| is_there(a)).any(|a| !going.contains(a))
    }

    /// Where all that is not where it was is now, and where it was.
    pub(super) fn into_moved(self) -> BTreeMap<Address, Address> {
        self.was.into_iter().filter(|(now, was)| now != was).collect()
    }

    /// What has these names in any instance of the modules around, or is in a module that has them.
    fn named(&self, around: &[String], address: &Address) -> impl Iterator<Item = &Address> {
        let wanted = names(around, address);
        let is_module = address.is_module();
        let first = wanted.clone();
        let same = move |names: &Names| if is_module { names.0.starts_with(&wanted.0) } else { *names == wanted };
        self.named.range(first..).take_while(move |(names, _)| same(names)).flat_map(|(_, all)| all)
    }
}

/// The names of an address that is seen from inside of modules.
pub(super) fn names(around: &[String], address: &Address) -> Names {
    let modules = around.iter().chain(address.module.iter().map(|step| &step.name)).cloned().collect();
    (modules, address.kind.clone(), address.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_held_against_what_has_its_names_and_nothing_else() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let all = (0..1_000).flat_map(|n| [format!("t.a{n}[\"k\"]"), format!("module.m{n}[0].t.a"), format!("module.m{n}[1].t.a")]);
        let places = Places::of(all.map(|text| address(&text)));
        for (around, from, expected) in [
            ("", "t.a7", "t.a7[\"k\"]"),
            ("", "t.a7[\"other\"]", "t.a7[\"k\"]"),
            ("", "module.m7", "module.m7[0].t.a module.m7[1].t.a"),
            ("m7", "t.a", "module.m7[0].t.a module.m7[1].t.a"),
            ("m7", "t.a7", ""),
            ("", "t.a1000", ""),
        ] {
            let around: Vec<String> = around.split_whitespace().map(str::to_owned).collect();
            let found: Vec<String> = places.named(&around, &address(from)).map(ToString::to_string).collect();
            assert_eq!(found.join(" "), expected, "{around:?} {from}");
        }
    }
}
