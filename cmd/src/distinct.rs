//! Each diagnostic once, whoever found it. Draws none.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics};

/// Each once: stages may pass on what an earlier one said.
pub(crate) fn distinct(diagnostics: Diagnostics) -> Diagnostics {
    let mut seen: Vec<Diagnostic> = Vec::new();
    // By what they say, and where: one of these differs where there are many.
    let mut places: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for diagnostic in diagnostics {
        let place = diagnostic.span.map(|s| (s.file, s.start));
        let alike = places.entry((diagnostic.summary.clone(), diagnostic.detail.clone(), place)).or_default();
        if !alike.iter().any(|at| seen.get(*at) == Some(&diagnostic)) {
            alike.push(seen.len());
            seen.push(diagnostic);
        }
    }
    seen.into_iter().collect()
}

/// The same, as a reader goes through the texts, whatever found it.
pub(crate) fn in_order(found: impl IntoIterator<Item = Diagnostic>) -> Diagnostics {
    let mut all: Vec<Diagnostic> = distinct(found.into_iter().collect()).into_iter().collect();
    all.sort_by_key(|d| d.span.map(|s| (s.file, s.start)));
    all.into_iter().collect()
}
