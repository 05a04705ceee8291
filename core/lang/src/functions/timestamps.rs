//! Points in time as text: RFC 3339, strictly, with the offset that was written.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

/// A local time and its distance from UTC.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    pub(super) local: DateTime,
    /// Seconds east of UTC.
    pub(super) offset: i64,
}

impl Stamp {
    /// Reads `2024-02-03T04:05:06Z`, also with a fraction of the second and with an offset like `+02:00`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_at_checked(10)?;
        let time = time.strip_prefix('T')?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let (clock, mut rest) = time.split_at_checked(8)?;
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        let mut nanoseconds = 0;
        if let Some(fraction) = rest.strip_prefix('.') {
            let digits = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            if digits == 0 {
                return None;
            }
            nanoseconds = format!("{:0<9.9}", &fraction[..digits]).parse().ok()?;
            rest = &fraction[digits..];
        }
        let offset = match rest.strip_prefix(['+', '-']) {
            None if rest == "Z" => 0,
            None => return None,
            Some(east) => {
                let [hours, minutes] = numbers(east, ':', [2, 2])?;
                let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
                if hours > 23 || minutes > 59 {
                    return None;
                }
                if rest.starts_with('-') { -seconds } else { seconds }
            }
        };
        let small = |n: i32| i8::try_from(n).ok();
        let date = (i16::try_from(year).ok()?, small(month)?, small(day)?);
        if second > 59 {
            return None;
        }
        let local = DateTime::new(date.0, date.1, date.2, small(hour)?, small(minute)?, small(second)?, nanoseconds).ok()?;
        Some(Self { local, offset })
    }

    /// Seconds since 1970-01-01 UTC.
    pub(super) fn from_seconds(seconds: i64) -> Option<Self> {
        let local = Timestamp::from_second(seconds).ok()?.to_zoned(jiff::tz::TimeZone::UTC).datetime();
        Some(Self { local, offset: 0 })
    }

    /// The same, later; `None` outside of the years 0 to 9999.
    pub(super) fn plus(self, duration: SignedDuration) -> Option<Self> {
        let local = self.local.checked_add(duration).ok()?;
        (local.year() >= 0).then_some(Self { local, ..self })
    }

    /// The local time in UTC, for comparing.
    pub(super) fn utc(self) -> Option<DateTime> {
        self.local.checked_sub(SignedDuration::from_secs(self.offset)).ok()
    }

    /// RFC 3339, to the second.
    pub(super) fn text(self) -> String {
        let l = self.local;
        let zone = if self.offset == 0 { "Z".to_owned() } else { self.zone(":") };
        format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{zone}", l.year(), l.month(), l.day(), l.hour(), l.minute(), l.second())
    }

    /// `+02:00`, with this between hours and minutes.
    pub(super) fn zone(self, between: &str) -> String {
        let minutes = self.offset.abs() / 60;
        format!("{}{:02}{between}{:02}", if self.offset < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
    }
}

fn numbers<const N: usize>(text: &str, between: char, widths: [usize; N]) -> Option<[i32; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (place, width) in found.iter_mut().zip(widths) {
        let part = parts.next().filter(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_digit()))?;
        *place = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Reads a duration like `1h30m`, `-2.5s` or `100ms`.
pub(super) fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|d| *d > 0)?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.').map_or(rest.len(), |e| digits + e);
        let nanoseconds: i128 = match &rest[digits..unit_end] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = rest[..digits].split_once('.').unwrap_or((&rest[..digits], ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(nanoseconds)?)?;
        let fraction = fraction.get(..18).unwrap_or(fraction);
        if !fraction.is_empty() {
            let parts: i128 = fraction.parse().ok()?;
            total += parts * nanoseconds / 10i128.pow(u32::try_from(fraction.len()).ok()?);
        }
        rest = &rest[unit_end..];
    }
    let total = if negative { -total } else { total };
    // Longer than 64 bits of nanoseconds (292 years) there is none.
    i64::try_from(total).ok().map(SignedDuration::from_nanos)
}
