//! Times: how they are written, how long a certificate lives, and when it is due for renewal.

use jiff::Timestamp;
use karmaform_model::{Attribute, Diagnostic, Diagnostics, Object, Type, Value};

const HOUR: i64 = 3600;
/// A hundred years; more does not fit what other programs can read.
const LONGEST_HOURS: i64 = 876_000;
/// Clocks differ: a certificate is valid a little before it is made.
pub(crate) const BACKDATED: i64 = 300;

/// The two attributes that say how long.
pub(crate) fn attributes(validity: i64, renew_before: i64) -> [Attribute; 2] {
    [
        Attribute::optional("validity_hours", Type::Number, "How long a new certificate is valid, in hours.").or(validity),
        Attribute::optional(
            "renew_before_hours",
            Type::Number,
            "How long before its end it is renewed, in hours. 0: only when it is over.",
        )
        .or(renew_before),
    ]
}

/// Checks the two attributes as far as they are known.
pub(crate) fn check(wanted: &Object, problems: &mut Diagnostics) {
    let mut whole = |name: &str, least: i64, summary: &str| {
        let number = wanted.get(name)?.as_number()?;
        let hours = number.as_i64().filter(|h| (least..=LONGEST_HOURS).contains(h));
        if hours.is_none() {
            let detail = format!("The value of \"{name}\" is {number}, and must be a whole number from {least} to {LONGEST_HOURS}.");
            problems.push(Diagnostic::error(summary, detail));
        }
        hours
    };
    if let (Some(validity), Some(renew_before)) =
        (whole("validity_hours", 1, "Validity out of bounds"), whole("renew_before_hours", 0, "Renewal window out of bounds"))
        && renew_before >= validity
    {
        problems.push(
            Diagnostic::error(
                "Renewal window as long as the validity",
                format!(
                    "\"renew_before_hours\" is {renew_before}, and \"validity_hours\" is {validity}: every plan would renew the certificate."
                ),
            )
            .with_hint("Set \"renew_before_hours\" to about a third of \"validity_hours\"."),
        );
    }
}

/// Seconds that a new certificate is valid from now on.
pub(crate) fn validity(object: &Object) -> i64 {
    object.get("validity_hours").and_then(Value::as_i64).unwrap_or(1).saturating_mul(HOUR)
}

/// The end of the certificate that is there; `None` if there is none.
pub(crate) fn end(object: &Object) -> Option<i64> {
    object.get("not_after").and_then(Value::as_str)?.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// True if the certificate of `before` is to be renewed now, or is not there at all.
pub(crate) fn is_due(now: i64, before: &Object, wanted: &Object) -> bool {
    let renew_before = wanted.get("renew_before_hours").and_then(Value::as_i64).unwrap_or(0).saturating_mul(HOUR);
    end(before).is_none_or(|end| now > end.saturating_sub(renew_before))
}

/// A time as RFC 3339 writes it.
pub(crate) fn written(second: i64) -> String {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_string()
}

/// The day of a time, for sentences.
pub(crate) fn day(second: i64) -> String {
    written(second).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(validity: i64, renew_before: i64) -> Object {
        [("validity_hours".to_owned(), validity.into()), ("renew_before_hours".to_owned(), renew_before.into())].into()
    }

    #[test]
    fn impossible_lifetimes_are_refused() {
        for (validity, renew_before, expected) in [(10, 9, 0), (10, 0, 0), (10, 10, 1), (0, 0, 1), (1, -1, 1), (900_000, 1, 1)] {
            let mut problems = Diagnostics::new();
            check(&object(validity, renew_before), &mut problems);
            assert_eq!(problems.len(), expected, "{validity} {renew_before}");
        }
    }

    #[test]
    fn a_certificate_is_due_just_after_its_moment() {
        let mut before = object(10, 2);
        assert!(is_due(0, &before, &object(10, 2)), "there is none");
        before.insert("not_after".into(), written(100_000).into());
        for (now, due) in [(0, false), (100_000 - 2 * HOUR, false), (100_001 - 2 * HOUR, true), (200_000, true)] {
            assert_eq!(is_due(now, &before, &object(10, 2)), due, "{now}");
        }
        assert_eq!((written(0), day(86_399)), ("1970-01-01T00:00:00Z".to_owned(), "1970-01-01".to_owned()));
    }
}
