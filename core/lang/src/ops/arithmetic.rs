//! Calculation with numbers, and with the infinities that division by zero gives. Results are rounded as Terraform rounds them (`Float`).

use karmaform_model::Number::{Int, NegativeInfinity, NegativeZero, PositiveInfinity};
use karmaform_model::{Float, Number};

/// Longest result. Without a limit a chain of thirty locals, each the square of the one before, would fill the memory.
const LONGEST: u64 = 4096;

/// `a + b`
pub(crate) fn add(a: &Number, b: &Number) -> Result<Number, String> {
    if let (Int(a), Int(b)) = (a, b)
        && let Some(sum) = a.checked_add(*b)
    {
        return Ok(Int(sum));
    }
    match (a, b) {
        (NegativeZero, other) | (other, NegativeZero) => Ok(other.clone()),
        (PositiveInfinity, NegativeInfinity) | (NegativeInfinity, PositiveInfinity) => {
            Err("adding infinities of opposite signs has no result".to_owned())
        }
        (PositiveInfinity | NegativeInfinity, _) => Ok(a.clone()),
        (_, PositiveInfinity | NegativeInfinity) => Ok(b.clone()),
        _ => finite(a, b, Float::plus),
    }
}

/// `a - b`
pub(crate) fn subtract(a: &Number, b: &Number) -> Result<Number, String> {
    add(a, &negate(b))
}

/// `a * b`
pub(crate) fn multiply(a: &Number, b: &Number) -> Result<Number, String> {
    if (is_zero(a) || is_zero(b)) && !is_infinite(a) && !is_infinite(b) {
        return Ok(zero(has_minus(a) != has_minus(b)));
    }
    if let (Int(a), Int(b)) = (a, b)
        && let Some(product) = a.checked_mul(*b)
    {
        return Ok(Int(product));
    }
    if !(is_infinite(a) || is_infinite(b)) {
        return finite(a, b, Float::times);
    }
    if is_zero(a) || is_zero(b) {
        return Err("multiplying zero by infinity has no result".to_owned());
    }
    Ok(infinity(is_negative(a) != is_negative(b)))
}

/// `a / b`; a finite number divided by zero is an infinity.
pub(crate) fn divide(a: &Number, b: &Number) -> Result<Number, String> {
    if (is_zero(a) && is_zero(b)) || (is_infinite(a) && is_infinite(b)) {
        return Err("dividing zero by zero or infinity by infinity has no result".to_owned());
    }
    if is_zero(b) || is_infinite(a) {
        return Ok(infinity(has_minus(a) != has_minus(b)));
    }
    if is_zero(a) || is_infinite(b) {
        return Ok(zero(has_minus(a) != has_minus(b)));
    }
    if let (Int(a), Int(b)) = (a, b)
        && a.checked_rem(*b) == Some(0)
        && let Some(quotient) = a.checked_div(*b)
    {
        return Ok(Int(quotient));
    }
    finite(a, b, Float::over)
}

/// What is left of `a` after taking `b` off as often as it fits, with the sign of `a` unless that is nothing. Nothing is taken off if `b` is zero.
pub(crate) fn remainder(a: &Number, b: &Number) -> Result<Number, String> {
    if is_zero(b) {
        return Ok(a.clone());
    }
    if is_infinite(a) || is_infinite(b) {
        return Err("a remainder with infinity has no result".to_owned());
    }
    if matches!(a, NegativeZero) {
        return Ok(zero(!has_minus(b)));
    }
    if let (Int(a), Int(b)) = (a, b) {
        return Ok(Int(a.checked_rem(*b).unwrap_or(0)));
    }
    finite(a, b, Float::without)
}

/// `-a`
pub(crate) fn negate(a: &Number) -> Number {
    match a {
        Int(0) => NegativeZero,
        NegativeZero => Int(0),
        Int(i) if *i != i64::MIN => Int(-i),
        PositiveInfinity => NegativeInfinity,
        NegativeInfinity => PositiveInfinity,
        _ => a.float().map_or_else(|| a.clone(), |f| f.negated().into()),
    }
}

/// True for a number below zero.
pub(crate) fn is_negative(a: &Number) -> bool {
    match a {
        Int(i) => *i < 0,
        Number::Float(f) => f.is_negative(),
        PositiveInfinity | NegativeZero => false,
        NegativeInfinity => true,
    }
}

/// True for a number that is written with a minus: those below zero, and one zero.
pub(crate) fn has_minus(a: &Number) -> bool {
    is_negative(a) || matches!(a, NegativeZero)
}

/// True for the two infinities.
pub(crate) fn is_infinite(a: &Number) -> bool {
    matches!(a, PositiveInfinity | NegativeInfinity)
}

fn is_zero(a: &Number) -> bool {
    matches!(a, Int(0) | NegativeZero)
}

fn zero(negative: bool) -> Number {
    if negative { NegativeZero } else { Int(0) }
}

fn infinity(negative: bool) -> Number {
    if negative { NegativeInfinity } else { PositiveInfinity }
}

/// What comes of two finite numbers; infinities never get here.
fn finite(a: &Number, b: &Number, calculate: fn(&Float, &Float) -> Float) -> Result<Number, String> {
    let (Some(a), Some(b)) = (a.float(), b.float()) else { return Err("infinities have no digits".to_owned()) };
    let result = calculate(&a, &b);
    if result.length() > LONGEST {
        return Err(format!("the result has more than {LONGEST} digits"));
    }
    Ok(result.into())
}
