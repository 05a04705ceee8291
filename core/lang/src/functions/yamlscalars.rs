//! What a bare word of YAML stands for: as Terraform's reader sees it, which is neither exactly YAML 1.1 nor 1.2.

use karmaform_model::{Number, TOO_LONG};

use super::base64;
use super::prelude::*;
use super::timestamps::Stamp;
use super::yamldecode::unsupported;
use crate::ops::arithmetic;

/// A scalar without quotes and tag.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::null(Type::Any),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => true.into(),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => false.into(),
        ".nan" | ".NaN" | ".NAN" => return Err("holds a value that is no number (.nan)".to_owned()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Number::PositiveInfinity.into(),
        "-.inf" | "-.Inf" | "-.INF" => Number::NegativeInfinity.into(),
        _ => match number(text)? {
            Some(number) => number.into(),
            None if Number::is_too_long(text) => return Err(format!("holds {TOO_LONG}")),
            None => string(time(text).unwrap_or_else(|| text.to_owned())),
        },
    })
}

/// A scalar with a tag of the core schema; `quoted` if it is in quotes.
pub(super) fn tagged(tag: &str, text: &str, quoted: bool) -> Result<Value, String> {
    let misfit = || format!("has a value tagged as {tag} that is none");
    let wanted = match tag {
        "str" => return Ok(string(text)),
        // It stays as it is written, as texts hold no bytes.
        "binary" => return base64::decode(text).map(|_| string(text)).ok_or_else(misfit),
        "null" | "timestamp" => Type::Any,
        "int" | "float" => Type::Number,
        "bool" => Type::Bool,
        _ => return Err(unsupported()),
    };
    // In quotes it is a string, whatever the tag says, if it would be something else without them. Nothing at all is, too.
    if quoted && (text.is_empty() || time(text).is_some() || !matches!(tagged_plain(text)?.kind, Kind::String(_))) {
        return Ok(string(text));
    }
    match tag {
        "null" => Ok(Value::null(Type::Any)),
        "timestamp" => time(text).map(string).ok_or_else(misfit),
        _ => convert(&tagged_plain(text)?, &wanted).map_err(|_| misfit()),
    }
}

/// A bare word behind a tag: there numbers may have `_` in them, and be binary.
fn tagged_plain(text: &str) -> Result<Value, String> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let (negative, unsigned) = match digits.strip_prefix(['+', '-']) {
        Some(rest) => (digits.starts_with('-'), rest),
        None => (false, &*digits),
    };
    let unsigned = unsigned.to_ascii_lowercase();
    // Of 64 bits one is the sign's, where there is one.
    let most = match digits.as_bytes().first() {
        Some(b'-') => i64::MIN.unsigned_abs(),
        Some(b'+') => i64::MAX.unsigned_abs(),
        _ => u64::MAX,
    };
    for (prefix, base) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(number) = unsigned.strip_prefix(prefix).map(|digits| radix(digits, base, most)).transpose()?.flatten() {
            return Ok(if negative { arithmetic::negate(&number) } else { number }.into());
        }
    }
    match number(&digits)? {
        Some(number) => Ok(number.into()),
        None => plain(text),
    }
}

fn number(text: &str) -> Result<Option<Number>, String> {
    for (prefix, base) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return radix(digits, base, u64::MAX);
        }
    }
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let point = digits.find('.');
    let starts = digits.strip_prefix('.').unwrap_or(digits).starts_with(|c: char| c.is_ascii_digit());
    if !starts {
        return Ok(None);
    }
    // `.5` and `5.` are numbers here.
    let mut whole = format!("0{digits}");
    if let Some(place) = point.filter(|p| !digits[p + 1..].starts_with(|c: char| c.is_ascii_digit())) {
        whole.insert(place + 2, '0');
    }
    let number: Option<Number> = whole.parse().ok();
    Ok(number.map(|number| if negative { arithmetic::negate(&number) } else { number }))
}

/// Digits behind a prefix; what does not fit into 64 bits is refused, as in Terraform.
fn radix(digits: &str, base: u32, most: u64) -> Result<Option<Number>, String> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Ok(None);
    }
    let number = u64::from_str_radix(digits, base).ok().filter(|number| *number <= most);
    let number = number.ok_or("holds a number of more than 64 bits that is not decimal")?;
    Ok(number.to_string().parse().ok())
}

/// A date or a point in time, in full. Behind a space the time has no zone, behind a `T` it has one; all but years may have one digit.
fn time(text: &str) -> Option<String> {
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let (clock, zone) = match text[date.len()..].chars().next() {
        None => ("0:0:0", "Z"),
        Some(' ') => (time, "Z"),
        Some(_) => time.split_at(time.find(['Z', '+', '-'])?),
    };
    let (clock, fraction) = clock.split_at(clock.find('.').unwrap_or(clock.len()));
    let full = format!("{}T{}{fraction}{zone}", two_digits(date, '-'), two_digits(clock, ':'));
    Some(Stamp::parse(&full)?.text())
}

/// The parts with a zero in front of single digits.
fn two_digits(text: &str, between: char) -> String {
    let parts: Vec<String> = text.split(between).map(|part| format!("{part:0>2}")).collect();
    parts.join(&between.to_string())
}
