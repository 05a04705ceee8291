//! The ends of `moved` blocks by the names in them: which blocks can have to do with each other at all, so that none is held against all
//! others. Keys are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::pattern::{Names, Pattern};

/// Both ends of each block, in the order of the blocks.
pub(super) struct Ends {
    all: Vec<(Pattern, Pattern)>,
    named: BTreeMap<Names, BTreeSet<usize>>,
}

impl Ends {
    /// Of these blocks.
    pub(super) fn of(all: Vec<(Pattern, Pattern)>) -> Self {
        let mut named: BTreeMap<Names, BTreeSet<usize>> = BTreeMap::new();
        for (number, (from, to)) in all.iter().enumerate() {
            named.entry(from.names()).or_default().insert(number);
            named.entry(to.names()).or_default().insert(number);
        }
        Self { all, named }
    }

    /// As they were given.
    pub(super) fn all(&self) -> &[(Pattern, Pattern)] {
        &self.all
    }

    /// The blocks, this one among them, of which an end has the names of one of its ends, or lies in one, or has one in it.
    pub(super) fn near(&self, number: usize) -> BTreeSet<usize> {
        let (from, to) = &self.all[number];
        let mut near = BTreeSet::new();
        for (modules, resource) in [from.names(), to.names()] {
            let around = (1..=modules.len()).filter_map(|depth| self.named.get(&whole(&modules[..depth])));
            near.extend(around.flatten());
            if resource.is_some() {
                near.extend(self.named.get(&(modules, resource)).into_iter().flatten());
            } else {
                let within = self.named.range(whole(&modules)..).take_while(|((of, _), _)| of.starts_with(&modules));
                near.extend(within.flat_map(|(_, blocks)| blocks));
            }
        }
        near
    }
}

/// The names of a whole module, the first of all that is in it.
fn whole(modules: &[String]) -> Names {
    (modules.to_vec(), None)
}

#[cfg(test)]
mod tests {
    use karmaform_model::{FileId, Span};

    use super::super::Moved;
    use super::*;

    #[test]
    fn blocks_are_near_those_whose_names_they_share() {
        let span = Span { file: FileId(0), start: 0, end: 1 };
        let ends = |from: String, to: String| {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let moved = Moved { module: Vec::new(), from, to, span, from_span: span, to_span: span };
            (Pattern::of(&moved, &moved.from), Pattern::of(&moved, &moved.to))
        };
        let mut all: Vec<_> = (0..1_000).map(|n| ends(format!("t.a{n}"), format!("t.b{n}"))).collect();
        for (from, to) in [("t.b7", "t.c"), ("module.m[0]", "module.n"), ("module.n.t.x[1]", "module.o.module.n.t.x"), ("t.a7", "t.d")] {
            all.push(ends(from.to_owned(), to.to_owned()));
        }
        let ends = Ends::of(all);
        for (number, expected) in [
            (0, vec![0]),
            (999, vec![999]),
            (7, vec![7, 1_000, 1_003]),
            (1_000, vec![7, 1_000]),
            (1_001, vec![1_001, 1_002]),
            (1_002, vec![1_001, 1_002]),
        ] {
            assert_eq!(ends.near(number).into_iter().collect::<Vec<_>>(), expected, "{number}");
        }
    }
}
