//! `timeadd`, `timecmp`, `timestamp` and `plantimestamp`

use super::prelude::*;
use super::timestamps::{Stamp, parse_duration};

pub(super) const ADD: Function = Function {
    name: "timeadd",
    doc: "A point in time (RFC 3339), a duration like 1h30m later.",
    parameters: &[Parameter::string("timestamp"), Parameter::string("duration")],
    body: Some(|a| {
        let stamp = stamp(a, 0)?;
        let duration = parse_duration(a.text(1)).ok_or_else(|| {
            FunctionError::at(1, format!("{} is no duration; write numbers with the units h, m, s, ms, us, ns, as in 1h30m", a.quote(1)))
        })?;
        let later = stamp.plus(duration).ok_or_else(|| FunctionError::new("the result is not in the years 0 to 9999"))?;
        Ok(string(later.text()))
    }),
    #[cfg(test)]
    rows: &[
        ("timeadd(\"2024-02-28T23:00:00Z\",\"90m\")", "\"2024-02-29T00:30:00Z\""),
        ("timeadd(\"2024-01-01T00:00:00+02:00\",\"-1h0.5s\")", "\"2023-12-31T22:59:59+02:00\""),
        ("timeadd(\"2024-01-01T00:00:00.9Z\",\"100ms\")", "\"2024-01-01T00:00:01Z\""),
        ("timeadd(\"2024-01-01T00:00:00Z\",\"0\")", "\"2024-01-01T00:00:00Z\""),
        ("timeadd(\"2024-01-01T00:00:00Z\",\"1d\")", "ERROR \"1d\" is no duration"),
        ("timeadd(\"2024-01-01T00:00:00Z\",\"2562047h\")", "\"2316-04-11T23:00:00Z\""),
        ("timeadd(\"2024-01-01T00:00:00Z\",\"2562048h\")", "ERROR is no duration"),
        ("timeadd(\"2024-01-01\",\"1h\")", "ERROR \"2024-01-01\" is no point in time"),
        ("timeadd(\"2024-02-30T00:00:00Z\",\"1h\")", "ERROR is no point in time"),
        ("timeadd(plantimestamp(),\"1h\")", "\"2023-11-14T23:13:20Z\""),
    ],
    ..Function::BASE
};

pub(super) const COMPARE: Function = Function {
    name: "timecmp",
    doc: "-1, 0 or 1, as a point in time is before, at or after another.",
    parameters: &[Parameter::string("timestamp_a"), Parameter::string("timestamp_b")],
    gives: Gives::Is(Shape::Number),
    body: Some(|a| Ok((stamp(a, 0)?.utc().cmp(&stamp(a, 1)?.utc()) as i64).into())),
    #[cfg(test)]
    rows: &[
        ("timecmp(\"2024-01-01T00:00:00Z\",\"2024-01-01T01:00:00+01:00\")", "0"),
        ("timecmp(\"2024-01-01T00:00:00Z\",\"2024-01-01T00:00:01Z\")", "-1"),
        ("timecmp(\"2024-01-01T00:00:00-01:00\",\"2024-01-01T00:00:00Z\")", "1"),
        ("timecmp(\"x\",\"2024-01-01T00:00:00Z\")", "ERROR \"x\" is no point in time"),
    ],
    ..Function::BASE
};

pub(super) const NOW: Function = Function {
    name: "timestamp",
    doc: "The time of the apply. It is known after apply only; plantimestamp() is known at once.",
    body: Some(|a| Ok(a.unknown())),
    #[cfg(test)]
    rows: &[("timestamp()", "UNKNOWN string"), ("timestamp() != null", "true")],
    ..Function::BASE
};

pub(super) const PLAN: Function = Function {
    name: "plantimestamp",
    doc: "The time of the plan; the same all over it.",
    body: Some(|a| {
        let stamp = Stamp::from_seconds(a.context.now).ok_or_else(|| FunctionError::new("the clock is far off"))?;
        Ok(string(stamp.text()))
    }),
    #[cfg(test)]
    rows: &[("plantimestamp()", "\"2023-11-14T22:13:20Z\""), ("plantimestamp(1)", "ERROR takes no arguments")],
    ..Function::BASE
};

pub(super) fn stamp(a: &Arguments<'_>, index: usize) -> Result<Stamp, FunctionError> {
    Stamp::parse(a.text(index))
        .ok_or_else(|| FunctionError::at(index, format!("{} is no point in time; write it as 2024-02-03T04:05:06Z", a.quote(index))))
}
