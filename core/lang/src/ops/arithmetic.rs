//! Exact calculation with numbers, and with the infinities that division by zero gives.

use std::num::NonZeroU64;

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, RoundingMode, Signed, Zero};
use karmaform_model::Number::{Int, NegativeInfinity, PositiveInfinity};
use karmaform_model::{KEPT_DIGITS, Number};

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
        (PositiveInfinity, NegativeInfinity) | (NegativeInfinity, PositiveInfinity) => {
            Err("adding infinities of opposite signs has no result".to_owned())
        }
        (PositiveInfinity | NegativeInfinity, _) => Ok(a.clone()),
        (_, PositiveInfinity | NegativeInfinity) => Ok(b.clone()),
        _ => finite(decimal(a) + decimal(b)),
    }
}

/// `a - b`
pub(crate) fn subtract(a: &Number, b: &Number) -> Result<Number, String> {
    add(a, &negate(b))
}

/// `a * b`
pub(crate) fn multiply(a: &Number, b: &Number) -> Result<Number, String> {
    if let (Int(a), Int(b)) = (a, b)
        && let Some(product) = a.checked_mul(*b)
    {
        return Ok(Int(product));
    }
    if !(is_infinite(a) || is_infinite(b)) {
        return finite(decimal(a) * decimal(b));
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
        return Ok(infinity(is_negative(a) != is_negative(b)));
    }
    if is_infinite(b) {
        return Ok(Int(0));
    }
    if let (Int(a), Int(b)) = (a, b)
        && a.checked_rem(*b) == Some(0)
        && let Some(quotient) = a.checked_div(*b)
    {
        return Ok(Int(quotient));
    }
    let ((top, top_scale), (bottom, bottom_scale)) = (decimal(a).into_bigint_and_exponent(), decimal(b).into_bigint_and_exponent());
    // So many zeros behind the numerator that the whole part of the quotient has all digits wanted, and two more to round by.
    let digits = |n: &BigInt| i64::try_from(n.magnitude().to_string().len()).unwrap_or(i64::MAX);
    let zeros = (i64::try_from(KEPT_DIGITS).unwrap_or(0) + 2 + digits(&bottom) - digits(&top)).max(0);
    let top = top * BigInt::from(10).pow(u32::try_from(zeros).unwrap_or(u32::MAX));
    let mut quotient = &top / &bottom;
    let mut scale = top_scale - bottom_scale + zeros;
    if quotient.clone() * &bottom != top {
        // Not exact: one more digit says so, or an exact half would be rounded the wrong way.
        let sign = if (top.sign() == Sign::Minus) == (bottom.sign() == Sign::Minus) { 1 } else { -1 };
        quotient = quotient * 10 + sign;
        scale += 1;
        let digits = NonZeroU64::new(KEPT_DIGITS).unwrap_or(NonZeroU64::MIN);
        return finite(BigDecimal::new(quotient, scale).with_precision_round(digits, RoundingMode::HalfEven));
    }
    finite(BigDecimal::new(quotient, scale))
}

/// What is left of `a` after taking `b` off as often as it fits, with the sign of `a`. Nothing is taken off if `b` is zero.
pub(crate) fn remainder(a: &Number, b: &Number) -> Result<Number, String> {
    if is_infinite(a) || is_infinite(b) || is_zero(b) {
        return Ok(a.clone());
    }
    if let (Int(a), Int(b)) = (a, b) {
        return Ok(Int(a.checked_rem(*b).unwrap_or(0)));
    }
    finite(decimal(a) % decimal(b))
}

/// `-a`
pub(crate) fn negate(a: &Number) -> Number {
    match a {
        Int(i) if *i != i64::MIN => Int(-i),
        PositiveInfinity => NegativeInfinity,
        NegativeInfinity => PositiveInfinity,
        _ => Number::from_decimal(-decimal(a)),
    }
}

/// `a` to the power of a whole `exponent` of at least 0, exactly; `None` if the result would be too long.
pub(crate) fn power(a: &Number, exponent: u32) -> Option<Number> {
    let mut result = Int(1);
    let mut square = a.clone();
    let mut left = exponent;
    while left > 0 {
        if left & 1 == 1 {
            result = multiply(&result, &square).ok()?;
        }
        left >>= 1;
        if left > 0 {
            square = multiply(&square, &square).ok()?;
        }
    }
    Some(result)
}

/// True for a number below zero.
pub(crate) fn is_negative(a: &Number) -> bool {
    match a {
        Int(i) => *i < 0,
        Number::Decimal(d) => d.is_negative(),
        PositiveInfinity => false,
        NegativeInfinity => true,
    }
}

/// True for the two infinities.
pub(crate) fn is_infinite(a: &Number) -> bool {
    matches!(a, PositiveInfinity | NegativeInfinity)
}

fn is_zero(a: &Number) -> bool {
    match a {
        Int(i) => *i == 0,
        Number::Decimal(d) => d.is_zero(),
        _ => false,
    }
}

fn infinity(negative: bool) -> Number {
    if negative { NegativeInfinity } else { PositiveInfinity }
}

/// The decimal of a finite number; infinities never get here.
fn decimal(a: &Number) -> BigDecimal {
    a.kept().unwrap_or_default()
}

fn finite(result: BigDecimal) -> Result<Number, String> {
    let (_, scale) = result.as_bigint_and_exponent();
    if result.digits() > LONGEST || scale.unsigned_abs() > LONGEST {
        return Err(format!("the result has more than {LONGEST} digits"));
    }
    Ok(Number::from_decimal(result))
}
