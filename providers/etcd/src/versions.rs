//! What is known of etcd's versions: which ones are served, and which settings each minor version knows.

mod settings;
mod values;

use karmaform_model::{Object, Value, nearest};

use settings::{RENAMED, SETTINGS};

/// Oldest and newest minor version of etcd 3 whose settings are known.
const MINORS: std::ops::RangeInclusive<u32> = 4..=7;

/// What stands for the version in texts that say where programs come from.
pub(crate) const VERSION: &str = "{version}";
/// The setting that turns features on and off, several at once.
pub(crate) const GATES: &str = "feature-gates";
/// The features that 3.6 can turn on and off (etcd's `server/features`), and those of all components; another one ends it at its start.
const GATES_OF_6: &[&str] = &[
    "AllAlpha",
    "AllBeta",
    "CompactHashCheck",
    "InitialCorruptCheck",
    "LeaseCheckpoint",
    "LeaseCheckpointPersist",
    "SetMemberLocalAddr",
    "StopGRPCServiceOnDefrag",
    "TxnModeWriteWithSharedBuffer",
];
/// One of those that 3.7 added to them; which all are is not known here.
const GATE_OF_7: &str = "FastLeaseKeepAlive";
/// What etcd reads as a bool in there: Go's `strconv.ParseBool`.
const BOOLS: &[&str] = &["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"];

/// The minor version of etcd 3 that gets no patches any more, and since when, in seconds since 1970: 3.4.45 of 2026-06-01 was its last. Those
/// before are not served.
pub(crate) const ENDED: (u32, i64) = (4, 1_780_272_000);

/// A release of etcd 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// As written: `3.6.8`.
    pub(crate) text: String,
    /// The second number.
    pub(crate) minor: u32,
    /// The third.
    pub(crate) patch: u32,
}

impl Version {
    /// Reads `3.6.8`. The error is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "An etcd version is three numbers, as in `3.6.8`, without a \"v\".".to_owned();
        let numbers: Vec<&str> = text.split('.').collect();
        let [major, minor, patch] = numbers[..] else { return Err(wrong()) };
        let is_plain = |n: &str| n.bytes().all(|b| b.is_ascii_digit()) && (n == "0" || !n.starts_with('0'));
        let number = |n: &str| is_plain(n).then(|| n.parse::<u32>().ok()).flatten();
        let (Some(major), Some(minor), Some(patch)) = (number(major), number(minor), number(patch)) else { return Err(wrong()) };
        if major != 3 || !MINORS.contains(&minor) {
            return Err(format!("This version of karmaform knows etcd 3.{} to 3.{}.", MINORS.start(), MINORS.end()));
        }
        if minor == 5 && patch <= 2 {
            return Err("etcd 3.5.0 to 3.5.2 can corrupt data when a member is killed under load; take the newest 3.5.".to_owned());
        }
        Ok(Self { text: text.to_owned(), minor, patch })
    }

    /// What a member says of itself: `3.5.16`, also with a build's name behind it. `None` for what is no release of etcd 3.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = text.splitn(3, '.');
        let (major, minor, rest) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let patch: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let (minor, patch) = (minor.parse().ok()?, patch.parse().ok()?);
        (major == "3").then(|| Self { text: format!("3.{minor}.{patch}"), minor, patch })
    }

    /// The lowest patch of the minor version before that this one takes over from (etcd's upgrade guides: 3.5.32 before 3.6, 3.6.11 before 3.7).
    pub(crate) fn floor(&self) -> Option<u32> {
        match self.minor {
            6 => Some(32),
            7 => Some(11),
            _ => None,
        }
    }

    /// It answers `/livez` and `/readyz` on its metrics port; before, there was `/health` alone.
    pub(crate) fn has_livez(&self) -> bool {
        (self.minor, self.patch) >= (5, 11) || (self.minor == 4 && self.patch >= 29)
    }
}

/// Why a minor version does not take this setting: a sentence, and what to do. `None` if it does.
pub(crate) fn refuses(name: &str, minor: u32) -> Option<(String, Option<String>)> {
    let range = SETTINGS.iter().find(|(n, _, _)| *n == name).map(|(_, first, last)| (*first, *last));
    match range {
        Some((first, last)) if (first..=last).contains(&minor) => None,
        Some((first, _)) if minor < first => {
            let experimental = RENAMED.iter().find(|(_, new)| *new == name).map(|(old, _)| *old);
            let hint = experimental.filter(|old| refuses(old, minor).is_none()).map(|old| format!("In 3.{minor} it is called `{old}`."));
            Some((format!("etcd 3.{minor} does not know it; it came with 3.{first}."), hint))
        }
        Some((_, last)) => {
            let hint = RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| format!("Write `{new}` instead."));
            Some((format!("etcd 3.{minor} does not know it any more; 3.{last} was the last that did."), hint))
        }
        None => Some((
            format!("etcd 3.{minor} has no such setting."),
            nearest(name, SETTINGS.iter().map(|(n, _, _)| *n)).map(|n| format!("Did you mean `{n}`?")),
        )),
    }
}

/// Why a minor version that knows this setting does not take this value of it: a sentence, and what to do. `None`: nothing is against it.
pub(crate) fn refuses_value(name: &str, value: &str, minor: u32) -> Option<(String, Option<String>)> {
    if let Some(why) = values::refused(name, value, minor) {
        return Some((why, None));
    }
    let mut gates = value.split(',').filter(|gate| name == GATES && !gate.is_empty());
    gates.find_map(|gate| refuses_gate(gate, minor))
}

/// Whether these turn a feature on or off; the last word counts. `None`: they don't say.
pub(crate) fn turns(gates: &str, feature: &str) -> Option<bool> {
    let mut told = gates.split(',').filter_map(|gate| gate.split_once('='));
    told.rfind(|(name, _)| name.trim() == feature).map(|(_, on)| is_true(on))
}

/// As etcd reads it.
pub(crate) fn is_true(text: &str) -> bool {
    ["1", "t", "T", "TRUE", "true", "True"].contains(&text.trim())
}

/// The name by which a feature is turned on or off with all others that are as far as it is; 3.6 and 3.7 have them so (tried).
pub(crate) fn all_with(feature: &str) -> &'static str {
    if feature == "TxnModeWriteWithSharedBuffer" { "AllBeta" } else { "AllAlpha" }
}

/// The same of one feature, as `Name=true`.
fn refuses_gate(gate: &str, minor: u32) -> Option<(String, Option<String>)> {
    let name = name_of(gate).trim_end();
    if minor == 6 && !GATES_OF_6.contains(&name) {
        let why = if name == GATE_OF_7 {
            format!("etcd 3.6 does not know the feature {name}; it came with 3.7.")
        } else {
            format!("etcd 3.6 has no feature {name}.")
        };
        return Some((why, nearest(name, GATES_OF_6.iter().copied()).map(|near| format!("Did you mean `{near}`?"))));
    }
    let is_told = gate.split_once('=').is_some_and(|(_, on)| BOOLS.contains(&on.trim()));
    let why = || format!("the feature {name} is neither turned on nor off.");
    (!is_told).then(|| (why(), Some(format!("Write `{name}=true` or `{name}=false`."))))
}

/// The feature that an experimental setting became.
pub(crate) fn gate_of(name: &str) -> Option<&'static str> {
    let (_, new) = RENAMED.iter().find(|(old, _)| *old == name)?;
    new.strip_prefix(GATES)?.strip_prefix(" = \"")?.strip_suffix("=true\"")
}

/// Settings for another minor version: by the names that it has for them, without those that it knows nothing of. `None`: some are not known, and it can't be told.
pub(crate) fn settings_for(settings: &Object, minor: u32) -> Option<Object> {
    let mut found = Object::new();
    for (name, value) in settings {
        if name == GATES && !value.is_wholly_known() {
            return None;
        }
        if name == GATES && refuses(name, minor).is_none() {
            let gates = value.as_str().unwrap_or_default().split(',').filter(|gate| minor > 6 || GATES_OF_6.contains(&name_of(gate)));
            let gates: Vec<&str> = gates.collect();
            found.extend((!gates.is_empty()).then(|| (name.clone(), Value::from(gates.join(",")).marked(value.marks()))));
        } else if refuses(name, minor).is_none() {
            found.insert(name.clone(), value.clone());
        } else if name == GATES {
            let gates = value.as_str().unwrap_or_default().split(',').filter_map(|gate| gate.trim().split_once('='));
            let old = |gate: &str| RENAMED.iter().find(|(_, new)| *new == format!("{GATES} = \"{gate}=true\"")).map(|(old, _)| *old);
            let known = gates.filter_map(|(gate, on)| Some((old(gate).filter(|old| refuses(old, minor).is_none())?, on)));
            found.extend(known.map(|(old, on)| (old.to_owned(), Value::from(on).marked(value.marks()))));
        } else {
            let other = |(old, new): &(&'static str, &'static str)| match (*old == name, *new == name) {
                (true, _) => Some(*new),
                (_, true) => Some(*old),
                _ => None,
            };
            let known = RENAMED.iter().filter_map(other).find(|other| refuses(other, minor).is_none());
            found.extend(known.map(|known| (known.to_owned(), value.clone())));
        }
    }
    Some(found)
}

/// Of `Name=true`.
fn name_of(gate: &str) -> &str {
    gate.trim().split('=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_bad_ones_refused() {
        for (text, expected) in [
            ("3.6.8", Ok(6)),
            ("3.4.23", Ok(4)),
            ("v3.6.8", Err("three numbers")),
            ("3.6", Err("three numbers")),
            ("3.6.x", Err("three numbers")),
            ("3.6.08", Err("three numbers")),
            ("3.8.0", Err("knows etcd 3.4 to 3.7")),
            ("2.3.7", Err("knows etcd 3.4 to 3.7")),
            ("3.5.1", Err("corrupt data")),
        ] {
            match (Version::parse(text), expected) {
                (Ok(v), Ok(minor)) => assert_eq!(v.minor, minor),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn settings_belong_to_minor_versions() {
        for (name, minor, expected) in [
            ("quota-backend-bytes", 4, ""),
            ("experimental-initial-corrupt-check", 6, ""),
            (
                "experimental-initial-corrupt-check",
                7,
                "3.6 was the last that did. Write `feature-gates = \"InitialCorruptCheck=true\"` instead.",
            ),
            ("experimental-compaction-batch-limit", 7, "3.6 was the last that did. Write `compaction-batch-limit` instead."),
            ("compaction-batch-limit", 5, "it came with 3.6. In 3.5 it is called `experimental-compaction-batch-limit`."),
            ("max-learners", 5, "it came with 3.6."),
            ("quota-backend-byte", 6, "no such setting. Did you mean `quota-backend-bytes`?"),
            ("colour", 6, "etcd 3.6 has no such setting."),
        ] {
            let got = refuses(name, minor).map_or_else(String::new, |(why, hint)| format!("{why} {}", hint.unwrap_or_default()));
            assert!(got.trim().ends_with(expected) && got.is_empty() == expected.is_empty(), "{name} 3.{minor}: {got}");
        }
    }

    #[test]
    fn features_are_those_of_a_minor_version() {
        for (value, minor, expected) in [
            ("InitialCorruptCheck=true,LeaseCheckpoint=false", 6, ""),
            (" InitialCorruptCheck = T,,AllAlpha=1", 6, ""),
            ("AllBeta=true,FastLeaseKeepAlive=false", 6, "3.6 does not know the feature FastLeaseKeepAlive; it came with 3.7."),
            ("FastLeaseKeepAlive=false,Colour=true", 7, ""),
            ("InitialCorruptChek=true", 6, "3.6 has no feature InitialCorruptChek. Did you mean `InitialCorruptCheck`?"),
            ("Colour=true", 6, "etcd 3.6 has no feature Colour."),
            ("AllBeta", 6, "the feature AllBeta is neither turned on nor off. Write `AllBeta=true` or `AllBeta=false`."),
            ("AllBeta=yes", 6, "the feature AllBeta is neither turned on nor off. Write `AllBeta=true` or `AllBeta=false`."),
        ] {
            let got = refuses_value(GATES, value, minor);
            let got = got.map_or_else(String::new, |(why, hint)| format!("{why} {}", hint.unwrap_or_default()));
            assert!(got.trim().ends_with(expected) && got.is_empty() == expected.is_empty(), "{value} 3.{minor}: {got}");
        }
        assert_eq!(refuses_value("cors", "Colour=true", 6), None);
        assert_eq!(gate_of("experimental-initial-corrupt-check"), Some("InitialCorruptCheck"));
        assert_eq!(gate_of("experimental-compaction-batch-limit"), None);
    }

    #[test]
    fn features_are_turned_on_and_off() {
        for (gates, expected) in [("A=true", Some(true)), (" A = F", Some(false)), ("A=true,A=false", Some(false)), ("AB=true,A", None)] {
            assert_eq!(turns(gates, "A"), expected, "{gates}");
        }
    }

    #[test]
    fn settings_are_called_what_another_version_calls_them() {
        for (given, minor, expected) in [
            ("quota-backend-bytes=8", 5, "quota-backend-bytes=8"),
            ("compaction-batch-limit=5", 5, "experimental-compaction-batch-limit=5"),
            ("experimental-compaction-batch-limit=5", 6, "experimental-compaction-batch-limit=5"),
            ("experimental-compaction-batch-limit=5", 7, "compaction-batch-limit=5"),
            ("feature-gates=InitialCorruptCheck=true,Other=true", 5, "experimental-initial-corrupt-check=true"),
            ("feature-gates=InitialCorruptCheck=true,FastLeaseKeepAlive=true", 6, "feature-gates=InitialCorruptCheck=true"),
            ("feature-gates=FastLeaseKeepAlive=true", 6, ""),
            ("feature-gates=FastLeaseKeepAlive=true", 7, "feature-gates=FastLeaseKeepAlive=true"),
            ("max-learners=2", 5, ""),
            ("enable-v2=true", 6, ""),
        ] {
            let (name, value) = given.split_once('=').unwrap();
            let found = settings_for(&Object::from([(name.to_owned(), Value::from(value))]), minor).unwrap();
            let found: Vec<String> = found.iter().map(|(n, v)| format!("{n}={}", v.as_str().unwrap())).collect();
            assert_eq!(found.join(" "), expected, "{given} in 3.{minor}");
        }
    }

    #[test]
    fn the_lists_are_sorted_and_refer_to_each_other() {
        assert!(SETTINGS.is_sorted_by_key(|s| s.0));
        for (old, new) in RENAMED {
            assert!(SETTINGS.iter().any(|s| s.0 == *old), "{old}");
            assert!(new.starts_with("feature-gates") || SETTINGS.iter().any(|s| s.0 == *new), "{new}");
        }
    }
}
