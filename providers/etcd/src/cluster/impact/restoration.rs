//! What a restoration does to a cluster, in plain words.

use std::collections::BTreeMap;

use karmaform_model::{Margin, Risk, Scene};

use super::super::arguments::Arguments;
use super::super::choreography::quorum;
use super::super::condition::{Member, is_formed};
use super::super::places::Places;
use super::super::restore::Restoration;

/// In words, and what is to be counted. What is given up has to be confirmed; a new cluster gives up nothing.
pub(crate) fn of_restoration(
    scene: &Scene<'_>,
    wanted: &Arguments,
    members: &BTreeMap<String, Member<'_>>,
    restoration: &Restoration,
) -> (Vec<String>, Risk) {
    let list = |names: &mut dyn Iterator<Item = &String>| names.cloned().collect::<Vec<_>>().join(", ");
    let what = &restoration.what;
    let file = what.from.as_str().filter(|_| !what.from.contains_secret()).unwrap_or("a snapshot");
    let file = format!("{file} (SHA-256 {}...)", what.sha256.get(..12).unwrap_or_default());
    let all = list(&mut wanted.members.keys());
    let pending = list(&mut restoration.pending.iter());
    if !is_formed(scene) {
        return (vec![format!("forms a cluster that begins with what is in {file}: {all}")], Risk::default());
    }
    let done = restoration.pending.len() < wanted.members.len();
    let begun = if done { format!("goes on with the restoration, on {pending}") } else { format!("restores {all}") };
    let loss = format!("{begun}, from {file}: what was written since that was saved is lost");
    let places = Places::of(wanted);
    let mut lines =
        vec![loss.clone(), "stops all members at once: etcd is unavailable until they have started with what was restored".to_owned()];
    let leaving: Vec<&String> = members.keys().filter(|name| !wanted.members.contains_key(*name)).collect();
    if !leaving.is_empty() {
        lines.push(format!(
            "{} leave with it: whoever of them can't be reached must not run any more, since clients could still find the old cluster there",
            list(&mut leaving.into_iter())
        ));
    }
    lines.push(match what.bump_of(&wanted.version) {
        0 => format!("the revision goes back, as etcd {} can't raise it: restart whoever watches or caches", wanted.version.text),
        bump => format!("the revision is raised by {bump}, so that whoever watches or caches begins anew"),
    });
    lines.push(format!("data of before is kept in {}.before-*, until the block `restore` is taken out", places.data));
    let margin = Margin { members: wanted.members.len(), up: 0, quorum: quorum(wanted.members.len()) };
    (lines, Risk { margin: Some(margin), data_loss: vec![loss], confirm: Some("restores etcd from a snapshot".to_owned()) })
}
