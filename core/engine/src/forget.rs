//! What a user should know before things are let go of by a `removed` block. Pure, and decides nothing.

use std::collections::BTreeSet;

use karmaform_model::{Address, Catalog, Diagnostic, PlannedResource, ResourceEntry};

/// So many are named.
pub(crate) const MOST: usize = 5;

/// The first few, and how many more there are.
pub(crate) fn few(addresses: &BTreeSet<Address>) -> String {
    let names: Vec<String> = addresses.iter().take(MOST).map(ToString::to_string).collect();
    match addresses.len().saturating_sub(MOST) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// One warning about all that is let go; nothing if nothing is.
pub(crate) fn warning<'a>(forgotten: impl Iterator<Item = &'a PlannedResource>, registry: &Catalog) -> Option<Diagnostic> {
    let mut named: BTreeSet<Address> = BTreeSet::new();
    let mut lost = 0;
    for resource in forgotten {
        named.insert(resource.address.whole());
        let entry = registry.resource(&resource.resource_type);
        lost += usize::from(matches!(entry, Some(ResourceEntry::Type(_, spec)) if spec.schema().state_only));
    }
    let names = few(&named);
    if names.is_empty() {
        return None;
    }
    let mut detail =
        format!("Applying this plan takes {names} out of the state. What was made for it stays as it is, and nobody looks after it.");
    if lost > 0 {
        let (objects, live) = if lost == 1 { ("object", "lives") } else { ("objects", "live") };
        detail.push_str(&format!(" {lost} {objects} of it {live} in the state alone, as private keys do, and will be gone."));
    }
    let warning = Diagnostic::warning("Some objects will no longer be managed", detail);
    Some(if lost > 0 { warning.with_hint("Keep a copy of the state if those may be needed again.") } else { warning })
}
