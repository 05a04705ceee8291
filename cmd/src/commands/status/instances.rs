//! One line for each composite: its version, how much of it is well, and until when its certificates are valid.

use karmaform_model::{Address, Catalog, Object, Snapshot, Value};
use serde_json::{Value as Json, json};

use super::lists::Listed;
use super::{Seen, is_well};
use crate::ui::json::state::attributes;
use crate::ui::style::{Theme, Tone};
use crate::ui::table::table;

/// A composite in the state.
pub(super) struct Instance {
    address: Address,
    version: Option<String>,
    /// Parts that are well, and parts that tell how they are.
    health: (usize, usize),
    /// The first end of a certificate (RFC 3339).
    certificates: Option<String>,
    endpoint: Option<String>,
}

/// The composites of these addresses, or all.
pub(super) fn instances(snapshot: &Snapshot, registry: &Catalog, wanted: &[Address], seen: &[&Seen]) -> Vec<Instance> {
    let is_wanted = |address: &Address| wanted.is_empty() || wanted.iter().any(|w| address.is_within(w));
    let of_composite = snapshot.resources.iter().filter(|(a, r)| registry.composite(&r.resource_type).is_some() && is_wanted(a));
    of_composite
        .map(|(address, resource)| {
            let known = attributes(address, resource, registry);
            let parts: Vec<&Seen> = seen.iter().copied().filter(|s| s.address.composite().as_ref() == Some(address)).collect();
            let text = |object: &Object, name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
            let children = snapshot.resources.iter().filter(|(a, _)| a.composite().as_ref() == Some(address));
            Instance {
                version: text(&known, "version"),
                health: (parts.iter().filter(|s| s.facts.is_ok() && is_well(s)).count(), parts.len()),
                certificates: children.filter_map(|(_, r)| r.attributes.get("not_after")?.as_str()).min().map(str::to_owned),
                endpoint: text(&known, "endpoint"),
                address: address.clone(),
            }
        })
        .collect()
}

/// The table.
pub(super) fn text(instances: &[Instance], theme: &Theme) -> String {
    if instances.is_empty() {
        return String::new();
    }
    let header = ["instance", "version", "well", "certificates until", "endpoint"].map(str::to_owned);
    let plain = |text: &Option<String>| text.clone().map_or_else(|| ("-".to_owned(), Tone::Faint), |t| (t, Tone::Plain));
    let rows: Vec<Vec<(String, Tone)>> = instances
        .iter()
        .map(|instance| {
            let (well, all) = instance.health;
            let tone = if well == all { Tone::Add } else { Tone::Remove };
            vec![
                (instance.address.to_string(), Tone::Bold),
                plain(&instance.version),
                (format!("{well} of {all}"), tone),
                plain(&instance.certificates.as_ref().map(|t| t.split('T').next().unwrap_or(t).to_owned())),
                plain(&instance.endpoint),
            ]
        })
        .collect();
    format!("\n{}", table(&header, &rows, theme))
}

/// For programs. A list below a composite is told with it, under its own name: `members`.
pub(super) fn to_json(instances: &[Instance], lists: &[Listed<'_>]) -> Json {
    let one = |i: &Instance| {
        let mut told = json!({
            "address": i.address.to_string(), "version": i.version, "well": i.health.0, "parts": i.health.1,
            "certificates_not_after": i.certificates, "endpoint": i.endpoint,
        });
        for (name, entries) in lists.iter().filter_map(|l| l.of(&i.address)) {
            told[name] = entries;
        }
        told
    };
    instances.iter().map(one).collect()
}
