//! What is known of Karmada's versions: which are served, what each is built and tested with, and which flags and feature gates it knows.
//!
//! Facts only; nothing here knows how a control plane is put together.

mod check;
mod component;
mod flags;
mod gates;
mod removed;
mod reserved;
#[cfg(test)]
mod tests;
mod upkeep;

pub(crate) use check::{check_flag, check_gate};
pub(crate) use component::Component;
pub(crate) use upkeep::{is_over, kube_end};

/// A release of Karmada 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// As in tags of images, without the `v`: `1.19.0`.
    pub(crate) text: String,
    /// The second number.
    pub(crate) minor: u32,
    /// The third number.
    pub(crate) patch: u32,
}

/// What is known of a minor version: its number, the versions its installers take by default (`operator/pkg/constants` at the tags), and the
/// oldest minor version of Kubernetes it was tested with (the table of the README).
struct Minor {
    number: u32,
    kube: &'static str,
    etcd: &'static str,
    oldest: u32,
}

/// Every minor version that is served.
const MINORS: &[Minor] = &[
    Minor { number: 13, kube: "1.31.3", etcd: "3.5.16", oldest: 23 },
    Minor { number: 14, kube: "1.31.3", etcd: "3.5.16", oldest: 23 },
    Minor { number: 15, kube: "1.31.3", etcd: "3.5.16", oldest: 24 },
    Minor { number: 16, kube: "1.34.1", etcd: "3.6.0", oldest: 25 },
    Minor { number: 17, kube: "1.35.2", etcd: "3.6.6", oldest: 26 },
    Minor { number: 18, kube: "1.35.2", etcd: "3.6.6", oldest: 26 },
    Minor { number: 19, kube: "1.36.2", etcd: "3.6.8", oldest: 27 },
];

impl Version {
    /// Reads `1.19.0`, `v1.19.0` or `1.19.0-rc.0`.
    ///
    /// # Errors
    /// What is no version, or one that is not known: a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "A Karmada version is three numbers, as in `1.19.0`.".to_owned();
        let plain = text.strip_prefix('v').unwrap_or(text);
        let (release, early) = plain.split_once('-').map_or((plain, None), |(r, e)| (r, Some(e)));
        let numbers: Vec<&str> = release.split('.').collect();
        let [major, minor, patch] = numbers[..] else { return Err(wrong()) };
        let (Some(major), Some(minor), Some(patch)) = (number(major), number(minor), number(patch)) else { return Err(wrong()) };
        if early.is_some_and(|e| !is_early(e)) {
            return Err(
                "What follows the numbers of a Karmada version is `alpha`, `beta` or `rc` with a number, as in `1.19.0-rc.0`.".to_owned()
            );
        }
        if major != 1 || !MINORS.iter().any(|m| m.number == minor) {
            let (oldest, newest) = (MINORS.first().map_or(0, |m| m.number), MINORS.last().map_or(0, |m| m.number));
            return Err(format!("This version of karmaform knows Karmada 1.{oldest} to 1.{newest}."));
        }
        Ok(Self { text: plain.to_owned(), minor, patch })
    }

    /// What is known of its minor version. Only known ones are parsed; the newest stands in for one that can't be.
    fn facts(&self) -> &'static Minor {
        MINORS.iter().find(|m| m.number == self.minor).unwrap_or(&MINORS[MINORS.len() - 1])
    }
}

/// A number as versions have them: no sign, no zeros in front.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

/// `rc.0` and the like, as Karmada tags them.
fn is_early(text: &str) -> bool {
    text.split_once('.').is_some_and(|(kind, n)| ["alpha", "beta", "rc"].contains(&kind) && number(n).is_some())
}

/// What else a control plane of some version runs if the user says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// The version of kube-apiserver and kube-controller-manager: `1.36.2`.
    pub(crate) kube: &'static str,
    /// The version of etcd: `3.6.8`.
    pub(crate) etcd: &'static str,
}

/// The versions that Karmada's own installers take for this one.
pub(crate) fn defaults(version: &Version) -> Defaults {
    let facts = version.facts();
    Defaults { kube: facts.kube, etcd: facts.etcd }
}

/// What to warn of if a control plane of this version runs this version of Kubernetes' API server; `None` if nothing.
///
/// Karmada forbids none. It is built and tested with its default, takes older ones, and says nothing of newer ones.
pub(crate) fn check_kube(version: &Version, kube: (u32, u32)) -> Option<String> {
    let facts = version.facts();
    let default = facts.kube.split('.').nth(1).and_then(number).unwrap_or(0);
    let (karmada, minor) = (version.minor, kube.0);
    if minor > default {
        return Some(format!(
            "Karmada 1.{karmada} is tested with the API server of Kubernetes 1.{default}; nothing is known of 1.{minor}, which is newer."
        ));
    }
    (minor < facts.oldest).then(|| {
        format!(
            "Kubernetes 1.{minor} is older than any that Karmada 1.{karmada} was tested with, which are 1.{} to 1.{default}.",
            facts.oldest
        )
    })
}
