//! Whether a component of a version takes a flag or a feature gate; and if not, why, and what to write.

use karmaform_model::nearest;

use super::flags::FLAGS;
use super::gates::{KARMADA, LIBRARY};
use super::removed::REMOVED;
use super::reserved::RESERVED;
use super::{Component, Version};

/// Why something is refused: a sentence, and what to do.
pub(crate) type Refusal = (String, Option<String>);

/// Whether a component takes this flag (its name without dashes in front; `_` counts as `-`, as it does for the binaries themselves).
///
/// The flags of Karmada's own binaries are known by version. Of Kubernetes' only those are refused that are known to be gone.
pub(crate) fn check_flag(component: Component, flag: &str, version: &Version, kube_minor: u32) -> Result<(), Refusal> {
    let name = flag.replace('_', "-");
    if name.starts_with('-') {
        return Err(("A flag is written without dashes in front.".to_owned(), Some(format!("Write `{}`.", name.trim_start_matches('-')))));
    }
    let well_formed = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !well_formed {
        return Err(("A flag's name is made of small letters, digits and dashes.".to_owned(), None));
    }
    let has = |letters: &str| letters.contains(component.letter());
    if let Some((_, _, why)) = RESERVED.iter().find(|(n, letters, _)| *n == name && has(letters)) {
        let (sentence, hint) = why.explain();
        return Err((sentence.to_owned(), hint.map(str::to_owned)));
    }
    let binary = component.binary();
    if component.is_kube() {
        let gone = REMOVED.iter().find(|(n, letters, since)| *n == name && has(letters) && *since <= kube_minor);
        return match gone {
            Some((_, _, since)) => Err((format!("{binary} 1.{kube_minor} does not know it any more; it was removed by 1.{since}."), None)),
            None => Ok(()),
        };
    }
    let rows = || FLAGS.iter().filter(|(_, letters, _, _)| has(letters));
    let minor = version.minor;
    match rows().find(|(n, ..)| *n == name) {
        Some((_, _, first, last)) if (first..=last).contains(&&minor) => Ok(()),
        Some((_, _, first, last)) => Err((outside(&format!("{binary} 1.{minor}"), minor, *first, *last), None)),
        None => {
            let known = rows().filter(|(_, _, first, last)| (*first..=*last).contains(&minor)).map(|(n, ..)| *n);
            Err((format!("{binary} 1.{minor} has no such flag."), nearest(&name, known).map(|n| format!("Did you mean `{n}`?"))))
        }
    }
}

/// Whether a component takes this feature gate.
///
/// The gates of Karmada's own binaries are known by version; Kubernetes' are not checked, as a gate that went away is no error there for long.
pub(crate) fn check_gate(component: Component, gate: &str, version: &Version) -> Result<(), Refusal> {
    if !gate.starts_with(|c: char| c.is_ascii_uppercase()) || !gate.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(("A feature gate's name begins with a capital letter and has only letters and digits.".to_owned(), None));
    }
    if component.is_kube() {
        return Ok(());
    }
    let binary = component.binary();
    let minor = version.minor;
    let named = format!("{binary} 1.{minor}");
    let lists: &[&[(&'static str, u32, u32)]] = match component {
        // The flag `--feature-gates` came to the webhook with 1.14.
        Component::Webhook if minor < 14 => &[],
        Component::AggregatedApiServer | Component::Search => &[KARMADA, LIBRARY],
        Component::ControllerManager | Component::Scheduler | Component::Webhook => &[KARMADA],
        _ => &[],
    };
    if lists.is_empty() {
        return Err((format!("{named} has no feature gates."), None));
    }
    let rows = || lists.iter().flat_map(|l| l.iter());
    match rows().find(|(n, ..)| *n == gate) {
        Some((_, first, last)) if (first..=last).contains(&&minor) => Ok(()),
        Some((_, first, last)) => Err((outside(&named, minor, *first, *last), None)),
        None => {
            let known = rows().filter(|(_, first, last)| (*first..=*last).contains(&minor)).map(|(n, ..)| *n);
            let hint = match nearest(gate, known) {
                Some(n) => Some(format!("Did you mean `{n}`?")),
                None if LIBRARY.iter().any(|(n, ..)| *n == gate) => {
                    Some("It is a gate of API servers: set it for `aggregated-apiserver`, `search` or `apiserver`.".to_owned())
                }
                None => None,
            };
            Err((format!("{named} has no such feature gate."), hint))
        }
    }
}

/// Says that a version is before or after those that know something.
fn outside(named: &str, minor: u32, first: u32, last: u32) -> String {
    if minor < first {
        format!("{named} does not know it; it came with 1.{first}.")
    } else {
        format!("{named} does not know it any more; 1.{last} was the last that did.")
    }
}
