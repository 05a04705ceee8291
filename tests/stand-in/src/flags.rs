//! The command line, read as strictly as the real programs read theirs, and a little more: no flag may be given twice.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::component::Component;

/// The flags of a command line and their values.
#[derive(Debug, PartialEq)]
pub(crate) struct Flags(BTreeMap<String, String>);

impl Flags {
    /// Reads what follows the program's name.
    pub(crate) fn read(component: Component, words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let known: BTreeMap<&str, &str> = component.flags().lines().filter_map(|l| l.split_once(' ')).collect();
        let mut given = BTreeMap::new();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let text = match word.strip_prefix("--").or_else(|| word.strip_prefix('-').filter(|w| w.starts_with('v'))) {
                Some(text) if !text.is_empty() => text,
                _ => return Err(format!("\"{word}\" is no flag")),
            };
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text, None),
            };
            let kind = *known.get(name).ok_or_else(|| format!("unknown flag: --{name}"))?;
            let value = match value {
                Some(value) => value,
                None if kind == "bool" => "true".to_owned(),
                None => words.next().ok_or_else(|| format!("--{name} has no value"))?,
            };
            fits(kind, &value).map_err(|why| format!("--{name}={value}: {why}"))?;
            if given.insert(name.to_owned(), value).is_some() {
                return Err(format!("--{name} is given twice"));
            }
        }
        let flags = Self(given);
        match component.required().iter().find(|name| flags.get(name).is_none_or(str::is_empty)) {
            Some(missing) => Err(format!("--{missing} is missing")),
            None => Ok(flags),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// True unless it is switched off; for what is on by default.
    pub(crate) fn on(&self, name: &str) -> bool {
        self.get(name).is_none_or(|v| !matches!(v, "false" | "f" | "F" | "0" | "False" | "FALSE"))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

/// Whether a value is of a kind, by the names that Go's pflag has for kinds.
fn fits(kind: &str, value: &str) -> Result<(), &'static str> {
    let good = match kind {
        "bool" => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True" | "0" | "f" | "F" | "false" | "FALSE" | "False"),
        "int" | "Level" => value.parse::<i64>().is_ok(),
        "uint" => value.parse::<u64>().is_ok(),
        "float" | "float32" => value.parse::<f32>().is_ok(),
        "ip" => value.parse::<IpAddr>().is_ok(),
        "duration" => duration(value),
        "mapStringBool" => value.split(',').all(|e| matches!(e.split_once('='), Some((n, "true" | "false")) if !n.is_empty())),
        _ => true,
    };
    if good { Ok(()) } else { Err("no such value is understood") }
}

/// `10s`, `1h30m`, `0`: numbers with units, one after the other.
fn duration(value: &str) -> bool {
    let mut rest = value.strip_prefix('-').unwrap_or(value);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let after = &rest[digits..];
        let Some(unit) = ["ns", "us", "µs", "ms", "s", "m", "h"].into_iter().find(|u| after.starts_with(u)) else { return false };
        if digits == 0 {
            return false;
        }
        rest = &after[unit.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(component: Component, line: &str) -> Result<Flags, String> {
        Flags::read(component, line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn all_ways_to_write_a_flag() {
        let line = "--kubeconfig=/a --leader-elect --metrics-bind-address :1 --v=4 --enable-scheduler-estimator=false";
        let flags = read(Component::Scheduler, line).expect("good flags");
        assert_eq!(flags.get("kubeconfig"), Some("/a"));
        assert_eq!(flags.get("metrics-bind-address"), Some(":1"));
        assert!(flags.on("leader-elect") && !flags.on("enable-scheduler-estimator") && flags.on("not-given"));
        assert_eq!(read(Component::Scheduler, "--kubeconfig=/a -v=2").expect("a short flag").get("v"), Some("2"));
    }

    #[test]
    fn what_the_real_programs_refuse_is_refused() {
        for (line, words) in [
            ("--bind-address=0.0.0.0", "unknown flag: --bind-address"), // gone since Karmada 1.12
            ("--kubeconfig", "--kubeconfig has no value"),
            ("serve", "\"serve\" is no flag"),
            ("--v=much", "--v=much: no such value is understood"),
            ("--leader-elect=maybe", "--leader-elect=maybe"),
            ("--leader-elect-lease-duration=15", "--leader-elect-lease-duration=15"),
            ("--feature-gates=Failover", "--feature-gates=Failover"),
            ("--kubeconfig=/a --kubeconfig=/b", "--kubeconfig is given twice"),
            ("--v=2", "--kubeconfig is missing"),
            ("--kubeconfig=", "--kubeconfig is missing"),
        ] {
            let refused = read(Component::Scheduler, line).expect_err(line);
            assert!(refused.contains(words), "{line}: {refused}");
        }
        assert!(read(Component::Webhook, "--kubeconfig=/a").expect_err("no certificates").contains("--cert-dir is missing"));
    }

    #[test]
    fn durations_are_numbers_with_units() {
        for good in ["0", "10s", "1h30m", "1.5s", "100ms", "-1s"] {
            assert!(duration(good), "{good}");
        }
        for bad in ["", "10", "s", "10x", "1s2"] {
            assert!(!duration(bad), "{bad}");
        }
    }
}
