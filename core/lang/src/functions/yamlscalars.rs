//! What a bare word of YAML stands for: as Terraform's reader sees it, which is neither exactly YAML 1.1 nor 1.2.

use karmaform_model::{Number, TOO_LONG};

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
        _ => match number(text) {
            Some(number) => number.into(),
            None if Number::is_too_long(text) => return Err(format!("holds {TOO_LONG}")),
            None => string(time(text).unwrap_or_else(|| text.to_owned())),
        },
    })
}

/// A scalar with a tag of the core schema; `bare` if it has no quotes.
pub(super) fn tagged(tag: &str, text: &str, bare: bool) -> Result<Value, String> {
    let misfit = || format!("has a value tagged as {tag} that is none");
    let wanted = match tag {
        "str" | "binary" => return Ok(string(text)),
        // In quotes it is a string, whatever the tag says.
        "null" | "int" | "float" | "bool" | "timestamp" if !bare => return Ok(string(text)),
        "null" => return Ok(Value::null(Type::Any)),
        "timestamp" => return time(text).map(string).ok_or_else(misfit),
        "int" | "float" => Type::Number,
        "bool" => Type::Bool,
        _ => return Err(unsupported()),
    };
    convert(&plain(text)?, &wanted).map_err(|_| misfit())
}

fn number(text: &str) -> Option<Number> {
    for (prefix, base) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return radix(digits, base);
        }
    }
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let point = digits.find('.');
    let starts = digits.strip_prefix('.').unwrap_or(digits).starts_with(|c: char| c.is_ascii_digit());
    if !starts {
        return None;
    }
    // `.5` and `5.` are numbers here.
    let mut whole = format!("0{digits}");
    if let Some(place) = point.filter(|p| !digits[p + 1..].starts_with(|c: char| c.is_ascii_digit())) {
        whole.insert(place + 2, '0');
    }
    let number: Number = whole.parse().ok()?;
    Some(if negative { arithmetic::negate(&number) } else { number })
}

fn radix(digits: &str, base: u32) -> Option<Number> {
    let mut number = None;
    for c in digits.chars() {
        let digit = Number::from(i64::from(c.to_digit(base)?));
        let so_far = number.unwrap_or(Number::Int(0));
        number = Some(arithmetic::add(&arithmetic::multiply(&so_far, &Number::from(i64::from(base))).ok()?, &digit).ok()?);
    }
    number
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
