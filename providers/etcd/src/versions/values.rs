//! Values that etcd ends on at its start, of settings that take a few words or a number. All of it was tried with 3.4.23, 3.5.16, 3.5.33, 3.6.13 and 3.7.1.
//! Empty ones are let through: in an environment etcd takes what it has for that.

/// What `log-level` takes; 3.4 as it stands here, those after it (zap's) in any case.
const LEVELS: &[&str] = &["debug", "info", "warn", "error", "dpanic", "panic", "fatal"];

/// The minor version that knows levels by these words alone.
const LAST_OF_PLAIN_LEVELS: u32 = 4;

/// Why it does not take this value: a sentence.
pub(super) fn refused(name: &str, value: &str, minor: u32) -> Option<String> {
    let words = match name {
        "auto-compaction-mode" => &["periodic", "revision"][..],
        "log-level" => LEVELS,
        "tls-max-version" | "tls-min-version" => &["TLS1.2", "TLS1.3"][..],
        "snapshot-count" => return (!value.is_empty() && !is_count(value)).then(|| "it is a whole number.".to_owned()),
        _ => return None,
    };
    // Whether it takes `warning` is a matter of the zap that it was built with.
    let is_level = || {
        let plain = value.to_ascii_lowercase();
        name == "log-level" && minor > LAST_OF_PLAIN_LEVELS && (LEVELS.contains(&plain.as_str()) || plain == "warning")
    };
    let is_one = value.is_empty() || words.contains(&value) || is_level();
    let all = || words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    (!is_one).then(|| format!("it is one of {}.", all()))
}

/// A number as Go reads it. One that begins with 0 may be of another base, and one with `_` is as it is meant: they are let through.
fn is_count(value: &str) -> bool {
    let is_odd = value.starts_with('0') || value.contains('_');
    is_odd || value.bytes().all(|b| b.is_ascii_digit()) && value.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::refused;

    #[test]
    fn values_are_those_that_etcd_takes() {
        for (name, minor, taken, bad) in [
            ("auto-compaction-mode", 6, &["periodic", "revision", ""][..], &["Periodic", "hourly"][..]),
            ("log-level", 4, &["debug", "dpanic", "fatal", ""][..], &["INFO", "warning", "verbose"][..]),
            ("log-level", 5, &["debug", "INFO", "Warning", "dpanic", ""][..], &["verbose", "2", "info "][..]),
            ("snapshot-count", 6, &["1", "0", "10000", "10_000", "0x10", ""][..], &["-1", "+5", "1.5", "many", "1e4", " 10"][..]),
            ("snapshot-count", 7, &["18446744073709551615"][..], &["18446744073709551616"][..]),
            ("tls-max-version", 5, &["TLS1.2", "TLS1.3", ""][..], &["TLS1.1", "1.3", "tls1.3"][..]),
            ("tls-min-version", 7, &["TLS1.2", "TLS1.3", ""][..], &["TLS1.1", "1.3"][..]),
        ] {
            for (values, expected) in [(taken, false), (bad, true)] {
                for value in values {
                    assert_eq!(refused(name, value, minor).is_some(), expected, "{name} {value} 3.{minor}");
                }
            }
        }
        assert_eq!(refused("cors", "anything", 6), None);
        assert_eq!(refused("auto-compaction-mode", "hourly", 5).as_deref(), Some("it is one of `periodic`, `revision`."));
    }
}
