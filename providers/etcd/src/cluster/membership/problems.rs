//! Why members can't come and go like this, and what to do about it.

use std::collections::BTreeSet;

use karmaform_model::Diagnostic;

use super::super::arguments::Arguments;
use super::super::choreography::quorum;
use super::super::roster::Entry;

pub(super) fn silent(joining: &BTreeSet<String>, leaving: &BTreeSet<String>, on_hosts: bool) -> Diagnostic {
    let quoted = |names: &mut dyn Iterator<Item = &String>| names.map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let what = [
        ("add", quoted(&mut joining.difference(leaving))),
        ("replace, since its data is gone,", quoted(&mut joining.intersection(leaving))),
        ("remove", quoted(&mut leaving.difference(joining))),
    ];
    let what: Vec<String> = what.iter().filter(|(_, names)| !names.is_empty()).map(|(verb, names)| format!("{verb} {names}")).collect();
    let error = Diagnostic::error(
        "The cluster has lost its majority",
        format!(
            "This change would {}. Members come and go by the decision of a majority of them, and too few work or would be started.",
            what.join(" and ")
        ),
    );
    if !on_hosts {
        return error
            .with_hint("If pods are only being started, wait and plan again; `kubectl describe pod` says what keeps them. Then change the members.")
            .with_hint("If a majority has lost its data for good, save what is left with `karmaform etcd snapshot -member=NAME -force`, and `restore` that on hosts.")
            .with_hint("If nothing of it is needed, destroy the cluster and make it anew.");
    }
    error
        .with_hint("Put `hosts` back as it was, plan and apply: members that are stopped are started. Then change the members.")
        .with_hint("If a majority has lost its data for good, save what is left with `karmaform etcd snapshot -member=NAME -force`, and `restore` that.")
}

pub(super) fn nobody_in_view() -> Diagnostic {
    Diagnostic::error(
        "Members come and go only together with the cluster",
        "Whether a member can join or leave is for the others to say, and none of them is among the targets, or the state knows none of them.",
    )
    .with_hint("Take the whole cluster as the target.")
}

pub(super) fn unknown_members(strangers: &[&Entry]) -> Diagnostic {
    let of = |e: &&Entry| format!("{} at {}", e.id, e.urls.join(", "));
    Diagnostic::error(
        "The cluster has a member that is not known here",
        format!(
            "It is {}. Somebody else is changing the members; two such changes at once can cost the quorum.",
            strangers.iter().map(of).collect::<Vec<_>>().join("; ")
        ),
    )
    .with_hint("If `-target` or `-exclude` leaves it out, take the whole cluster.")
    .with_hint("If nobody is at work on it, remove it with `etcdctl member remove ID`, then plan again.")
}

pub(super) fn other_data(name: &str, wanted: &Arguments) -> Diagnostic {
    if wanted.kubernetes.is_some() {
        return Diagnostic::error(
            "There is data of another cluster already",
            format!(
                "A new member starts empty, but there is a claim for the volume of \"{name}\" already, and this state has not made it."
            ),
        )
        .with_hint("If nothing in it is needed, delete it, and plan again.");
    }
    Diagnostic::error(
        "There is data of another cluster already",
        format!("A new member starts empty, but on the host of \"{name}\" there is something in {} already.", wanted.data_directory),
    )
    .with_hint("Move it away or remove it, or choose another host.")
}

pub(super) fn runs_without_data(names: &[&str], directory: &str, unit: &str) -> Diagnostic {
    Diagnostic::error(
        "A member runs without its data",
        format!(
            "Somebody has removed what was in {directory} while {} ran. It goes on with what it has in memory, and would not start again.",
            names.join(", ")
        ),
    )
    .with_hint(format!("Stop it on its host (`systemctl stop {unit}`), then plan again: it is replaced."))
}

pub(super) fn other_key(old: &str, new: &str) -> Diagnostic {
    Diagnostic::error(
        "A member can't get another name",
        format!("The member \"{old}\" would be called \"{new}\" on the same host, but its cluster and its files know it by its name."),
    )
    .with_hint("Put the key in `hosts` back.")
}

pub(super) fn not_all_work(away: &[&str], on_hosts: bool) -> Diagnostic {
    let error = Diagnostic::error(
        "Members can't come and go while another one is down",
        format!(
            "The members {} do not work, and nothing in this plan starts them. One more that joins, or one less, could be one too many for a majority.",
            away.join(", ")
        ),
    );
    error.with_hint(if on_hosts {
        "Repair them first; or take those that are gone for good out of `hosts` in the same change: they leave before the new ones join."
    } else {
        "Repair them first, with `members` as it was, or wait until Kubernetes has started them. `kubectl describe pod` says what keeps them."
    })
}

pub(super) fn too_few(entry: &Entry, up: usize, members: usize) -> Diagnostic {
    let who = if entry.name.is_empty() { &entry.id } else { &entry.name };
    Diagnostic::error(
        "Too few members would be left",
        format!("Without \"{who}\" there are {members} members of which {up} work; it takes {} to have a majority.", quorum(members)),
    )
    .with_hint("Repair the others first, or add new members in the same change.")
}

pub(super) fn no_address(name: &str) -> Diagnostic {
    Diagnostic::error(
        "A member's address is not known yet",
        format!("The cluster is told of the member \"{name}\" by its address, which can't be known only after apply."),
    )
    .with_hint("Write the address into `addresses`, or apply what the host depends on first with `-target`.")
}
