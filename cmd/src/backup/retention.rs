//! Which backups stay. Pure.

use std::collections::BTreeSet;

use jiff::civil::DateTime;

/// How the time stands in a backup's name.
const STAMP: &str = "%Y%m%dT%H%M%SZ";

/// The length of what is behind the name: `-20260102T030405Z`.
pub(super) const STAMP_LENGTH: usize = 17;

/// The time in a name as backups of `name` have it: `NAME-20260102T030405Z`; `None` for what is none of them.
pub(super) fn time(name: &str, stem: &str) -> Option<DateTime> {
    let stamp = stem.strip_prefix(name)?.strip_prefix('-')?;
    (stamp.len() + 1 == STAMP_LENGTH).then(|| DateTime::strptime(STAMP, stamp).ok())?
}

/// The time in UTC, of seconds since 1970.
pub(crate) fn at(seconds: i64) -> DateTime {
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).datetime()
}

/// A backup's name at a time, in seconds since 1970.
pub(super) fn stem(name: &str, seconds: i64) -> String {
    format!("{name}-{}", at(seconds).strftime(STAMP))
}

/// The times of those that go: all but the newest of each hour, day and week, so many of each as `keep` says, and the newest of all.
pub(super) fn old(times: &BTreeSet<DateTime>, keep: [usize; 3]) -> BTreeSet<DateTime> {
    let mut staying: BTreeSet<DateTime> = times.last().copied().into_iter().collect();
    for (number, most) in keep.into_iter().enumerate() {
        let mut seen = BTreeSet::new();
        for time in times.iter().rev() {
            if seen.len() < most && seen.insert(periods(time)[number]) {
                staying.insert(*time);
            }
        }
    }
    times.difference(&staying).copied().collect()
}

/// The hour, day and week (ISO 8601) that a time is in, each as numbers that no other one has.
fn periods(time: &DateTime) -> [(i16, i16, i8); 3] {
    let (year, day, week) = (time.year(), time.date().day_of_year(), time.date().iso_week_date());
    [(year, day, time.hour()), (year, day, 0), (week.year(), i16::from(week.week()), 0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(stamps: &[&str], keep: [usize; 3]) -> Vec<String> {
        let times: BTreeSet<DateTime> = stamps.iter().map(|s| time("m", &format!("m-{s}")).unwrap()).collect();
        let old = old(&times, keep);
        times.difference(&old).map(|t| t.strftime(STAMP).to_string()).collect()
    }

    #[test]
    fn the_newest_of_each_period_stay() {
        let all = ["20251229T080000Z", "20260101T090000Z", "20260105T100000Z", "20260105T110000Z", "20260105T111500Z", "20260105T113000Z"];
        assert_eq!(left(&all, [0, 0, 0]), all[5..]);
        assert_eq!(left(&all, [1, 0, 0]), all[5..]);
        assert_eq!(left(&all, [2, 0, 0]), [all[2], all[5]]);
        assert_eq!(left(&all, [0, 2, 0]), [all[1], all[5]]);
        // Both days before are in one week by ISO 8601, over the end of a year.
        assert_eq!(left(&all, [0, 0, 9]), [all[1], all[5]]);
        assert_eq!(left(&all, [9, 9, 9]), [all[0], all[1], all[2], all[5]]);
        assert!(left(&[], [1, 1, 1]).is_empty());
    }

    #[test]
    fn only_backups_are_counted() {
        assert_eq!(time("m", &stem("m", 1_767_322_445)), Some(jiff::civil::date(2026, 1, 2).at(2, 54, 5, 0)));
        for other in ["m", "m-", "m-20260102T030405", "m-x-20260102T030405Z", "n-20260102T030405Z", "m-20261302T030405Z"] {
            assert_eq!(time("m", other), None, "{other}");
        }
    }
}
