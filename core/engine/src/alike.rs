//! What ails many alike is told once: a server that is gone is one trouble, however many resources are behind it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use karmaform_model::Diagnostic;

/// The first of each kind, which says how many more there are, and knows which. Those that differ in what they say, or in what to do, stay apart.
pub(crate) fn alike(diagnostics: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut told: Vec<(Diagnostic, usize)> = Vec::new();
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    for next in diagnostics {
        match places.entry((next.severity, next.summary.clone(), next.detail.clone(), next.hints.clone())) {
            Entry::Occupied(place) => {
                let (first, more) = &mut told[*place.get()];
                first.also.extend(next.address);
                *more += 1;
            }
            Entry::Vacant(place) => {
                place.insert(told.len());
                told.push((next, 0));
            }
        }
    }
    let counted = told.into_iter().map(|(mut first, more)| {
        if more > 0 {
            first.detail = format!("{} The same is true of {more} more.", first.detail);
        }
        first
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use karmaform_model::Address;

    use super::*;

    #[test]
    fn the_first_says_how_many_more_there_are() {
        let gone = || Diagnostic::error("Gone", "It is gone.").with_hint("Start it.");
        let told = alike([gone(), Diagnostic::error("Gone", "Another is gone."), gone(), Diagnostic::error("Gone", "It is gone."), gone()]);
        let details: Vec<&str> = told.iter().map(|d| d.detail.as_str()).collect();
        assert_eq!(details, ["It is gone. The same is true of 2 more.", "Another is gone.", "It is gone."]);
    }

    #[test]
    fn the_first_knows_which_the_others_are() {
        let [a, b, c] = ["x.y[0]", "x.y[1]", "x.z"].map(|text| text.parse::<Address>().unwrap());
        let told = alike([&a, &b, &c].map(|address| Diagnostic::error("Gone", "It is gone.").at(address)));
        let known: Vec<_> = told.iter().map(|d| (d.address.as_ref(), d.also.as_slice())).collect();
        assert_eq!(known, [(Some(&a), &[b, c][..])]);
    }
}
