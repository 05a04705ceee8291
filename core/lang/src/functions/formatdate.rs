//! `formatdate`

use super::prelude::*;
use super::time::stamp;
use super::timestamps::Stamp;

pub(super) const FUNCTION: Function = Function {
    name: "formatdate",
    doc: "A point in time (RFC 3339) in a format of YYYY MM DD hh mm ss and the like; other letters stand in 'quotes'.",
    parameters: &[Parameter::string("format"), Parameter::string("time")],
    body: Some(|a| {
        let stamp = stamp(a, 1)?;
        let mut out = String::new();
        let mut rest = a.text(0);
        while let Some(c) = rest.chars().next() {
            let end = rest.find(|d| d != c).unwrap_or(rest.len());
            // Two quotes are one, outside of quotes too.
            if let Some(after) = rest.strip_prefix("''") {
                out.push('\'');
                rest = after;
                continue;
            }
            if c == '\'' {
                rest = quoted(&rest[1..], &mut out).ok_or_else(|| FunctionError::at(0, "a quote is never closed"))?;
                continue;
            }
            if c.is_ascii_alphabetic() {
                let part = part(&rest[..end], stamp);
                out.push_str(&part.ok_or_else(|| {
                    let what = if a.quote(0).starts_with('"') { format!("{:?}", &rest[..end]) } else { "a part of it".to_owned() };
                    FunctionError::at(0, format!("{what} stands for nothing; put letters that are meant as they are in single quotes"))
                })?);
            } else {
                out.push_str(&rest[..end]);
            }
            rest = &rest[end..];
        }
        Ok(string(out))
    }),
    #[cfg(test)]
    rows: &[
        ("formatdate(\"EEE, DD MMM YYYY hh:mm:ss ZZZ\",\"2024-02-03T04:05:06Z\")", "\"Sat, 03 Feb 2024 04:05:06 UTC\""),
        ("formatdate(\"h'h'm 'o''clock' AA H\",\"2024-02-03T14:05:06+02:00\")", "\"14h5 o'clock PM 2\""),
        ("formatdate(\"EEEE D MMMM YY s\",\"2024-12-09T00:00:06Z\")", "\"Monday 9 December 24 6\""),
        ("formatdate(\"HH aa M Z ZZZZ ZZZZZ\",\"2024-02-03T00:05:06-03:30\")", "\"12 am 2 -03:30 -0330 -03:30\""),
        ("formatdate(\"Z ZZZ ZZZZ ZZZZZ\",\"2024-02-03T00:05:06Z\")", "\"Z UTC +0000 +00:00\""),
        ("formatdate(\"hh''mm '''' '''a'\",\"2024-02-03T04:05:06Z\")", "\"04'05 '' 'a\""),
        ("formatdate(\"hh'''mm\",\"2024-02-03T04:05:06Z\")", "ERROR a quote is never closed"),
        ("formatdate(\"YYY\",\"2024-02-03T00:05:06Z\")", "ERROR \"YYY\" stands for nothing"),
        ("formatdate(\"at\",\"2024-02-03T00:05:06Z\")", "ERROR \"a\" stands for nothing"),
        ("formatdate(\"'at\",\"2024-02-03T00:05:06Z\")", "ERROR a quote is never closed"),
        ("formatdate(\"DD\",\"tomorrow\")", "ERROR \"tomorrow\" is no point in time"),
    ],
    ..Function::BASE
};

/// Puts quoted text into `out`; two quotes are one. What follows it, or `None` if it never ends.
fn quoted<'a>(mut rest: &'a str, out: &mut String) -> Option<&'a str> {
    loop {
        let end = rest.find('\'')?;
        out.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some(rest),
        }
    }
}

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn part(letters: &str, stamp: Stamp) -> Option<String> {
    let l = stamp.local;
    let name = |names: &[&'static str], number: i8| names.get(usize::try_from(number - 1).ok()?).copied();
    let day = name(&DAYS, l.weekday().to_monday_one_offset())?;
    let month = name(&MONTHS, l.month())?;
    let (half, twelve) = (if l.hour() < 12 { "am" } else { "pm" }, (l.hour() + 11) % 12 + 1);
    Some(match letters {
        "YYYY" => format!("{:04}", l.year()),
        "YY" => format!("{:02}", l.year() % 100),
        "MMMM" => month.to_owned(),
        "MMM" => month[..3].to_owned(),
        "MM" => format!("{:02}", l.month()),
        "M" => l.month().to_string(),
        "DD" => format!("{:02}", l.day()),
        "D" => l.day().to_string(),
        "EEEE" => day.to_owned(),
        "EEE" => day[..3].to_owned(),
        "hh" => format!("{:02}", l.hour()),
        "h" => l.hour().to_string(),
        "HH" => format!("{twelve:02}"),
        "H" => twelve.to_string(),
        "AA" => half.to_uppercase(),
        "aa" => half.to_owned(),
        "mm" => format!("{:02}", l.minute()),
        "m" => l.minute().to_string(),
        "ss" => format!("{:02}", l.second()),
        "s" => l.second().to_string(),
        "ZZZZZ" => stamp.zone(":"),
        "ZZZZ" => stamp.zone(""),
        "ZZZ" if stamp.offset == 0 => "UTC".to_owned(),
        "ZZZ" => stamp.zone(""),
        "Z" if stamp.offset == 0 => "Z".to_owned(),
        "Z" => stamp.zone(":"),
        _ => return None,
    })
}
