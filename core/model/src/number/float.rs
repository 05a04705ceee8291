//! Binary floats with as many bits as they need, up to a precision: what Terraform calculates with. Its numbers have 512 bits, each result is the
//! nearest of those (a tie goes to the even one), and what is shown are the fewest digits that no other number of that precision is nearest to.

use std::cmp::Ordering;

use bigdecimal::num_bigint::{BigInt, BigUint, Sign};
use bigdecimal::{BigDecimal, ToPrimitive, Zero};

/// Bits of a number that was written, or calculated with one that was.
pub(crate) const PRECISION: u64 = 512;

/// `mantissa * 2^exponent`, where the mantissa is odd or zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Float {
    mantissa: BigInt,
    exponent: i64,
    /// How many bits it may have.
    precision: u64,
}

impl Float {
    /// The float of `precision` bits that is nearest to `mantissa * 2^exponent`, and a little more (away from zero) if there is `more`.
    fn nearest(mantissa: BigInt, exponent: i64, more: bool, precision: u64) -> Self {
        let (sign, mut bits) = mantissa.into_parts();
        let mut exponent = exponent;
        let over = bits.bits().saturating_sub(precision);
        if over > 0 {
            let half = BigUint::from(1u8) << (over - 1);
            let rest = &bits & ((BigUint::from(1u8) << over) - 1u8);
            bits >>= over;
            exponent += i64::try_from(over).unwrap_or(i64::MAX);
            let is_up = match rest.cmp(&half) {
                Ordering::Less => false,
                Ordering::Equal => more || bits.bit(0),
                Ordering::Greater => true,
            };
            bits += u8::from(is_up);
        }
        let zeros = bits.trailing_zeros().unwrap_or(0);
        let exponent = if bits.is_zero() { 0 } else { exponent + i64::try_from(zeros).unwrap_or(0) };
        Self { mantissa: BigInt::from_biguint(sign, bits >> zeros), exponent, precision }
    }

    /// The nearest to a decimal.
    pub(crate) fn from_decimal(decimal: &BigDecimal, precision: u64) -> Self {
        let (digits, scale) = decimal.as_bigint_and_exponent();
        match u32::try_from(scale) {
            Ok(behind_point) => ratio(digits, 0, BigInt::from(10).pow(behind_point), 0, precision),
            Err(_) => Self::nearest(digits * BigInt::from(10).pow(u32::try_from(-scale).unwrap_or(u32::MAX)), 0, false, precision),
        }
    }

    /// A whole number, with all its bits.
    pub(crate) fn from_integer(integer: BigInt) -> Self {
        let precision = integer.bits().max(PRECISION);
        Self::nearest(integer, 0, false, precision)
    }

    /// The same as a 64-bit float that is finite, with its 53 bits.
    pub(crate) fn from_f64(float: f64) -> Self {
        let bits = float.to_bits();
        let (written, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) & 0x7ff);
        let mantissa = if exponent == 0 { written } else { written | 1 << 52 };
        let sign = if float.is_sign_negative() { Sign::Minus } else { Sign::Plus };
        let exponent = i64::try_from(exponent.max(1)).unwrap_or(0) - 1075;
        Self::nearest(BigInt::from_biguint(sign, mantissa.into()), exponent, false, 53)
    }

    /// All its digits: a binary float is always a decimal that ends.
    pub fn decimal(&self) -> BigDecimal {
        let (digits, behind_point) = scaled(self.mantissa.clone(), self.exponent);
        BigDecimal::new(digits, i64::try_from(behind_point).unwrap_or(i64::MAX))
    }

    /// The nearest 64-bit float.
    pub(crate) fn as_f64(&self) -> f64 {
        self.decimal().to_f64().unwrap_or(f64::NAN)
    }

    /// It as a whole number, if it is one.
    pub(crate) fn integer(&self) -> Option<BigInt> {
        u64::try_from(self.exponent).ok().map(|zeros| &self.mantissa << zeros)
    }

    /// What is left without what is behind the point.
    fn truncated(&self) -> BigInt {
        self.integer().unwrap_or_else(|| {
            let (sign, bits) = self.mantissa.clone().into_parts();
            BigInt::from_biguint(sign, bits >> self.exponent.unsigned_abs())
        })
    }

    /// The nearest whole number that is not larger; not smaller, if it is to be `up`.
    #[must_use]
    pub fn whole(&self, up: bool) -> BigInt {
        let is_other = self.exponent < 0 && up != (self.mantissa.sign() == Sign::Minus);
        let step = if up { 1 } else { -1 };
        self.truncated() + if is_other { step } else { 0 }
    }

    /// True below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.mantissa.sign() == Sign::Minus
    }

    /// It with the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { mantissa: -&self.mantissa, ..self.clone() }
    }

    /// The sum, with the precision of the more precise one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |f: &Self| &f.mantissa << (f.exponent - exponent).unsigned_abs();
        Self::nearest(aligned(self) + aligned(other), exponent, false, self.precision.max(other.precision))
    }

    /// The product, with the precision of the more precise one, or with all bits that it has of 512.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let product = Self::nearest(&self.mantissa * &other.mantissa, self.exponent + other.exponent, false, PRECISION);
        let precision = self.precision.max(other.precision).max(product.mantissa.bits());
        Self { precision, ..product }
    }

    /// The quotient, with the precision of the more precise one. The other must not be zero.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let precision = self.precision.max(other.precision);
        ratio(self.mantissa.clone(), self.exponent, other.mantissa.clone(), other.exponent, precision)
    }

    /// What is left after taking the other off as often as it fits into the quotient, as it is rounded. The other must not be zero.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let often = Self::nearest(self.over(other).truncated(), 0, false, self.precision);
        let off = Self::nearest(&other.mantissa * &often.mantissa, other.exponent + often.exponent, false, self.precision);
        self.plus(&off.negated())
    }

    /// Which is larger, exactly.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |f: &Self| &f.mantissa << (f.exponent - exponent).unsigned_abs();
        aligned(self).cmp(&aligned(other))
    }

    /// It has as many bits as the other one: then they are shown alike only if they are the same.
    pub(crate) fn has_precision_of(&self, other: &Self) -> bool {
        self.precision == other.precision
    }

    /// How many decimal digits it has before and behind the point, about.
    #[must_use]
    pub fn length(&self) -> u64 {
        (self.exponent.unsigned_abs() + self.mantissa.bits()) * 3 / 10
    }

    /// The fewest digits that are nearest to it and to no other one of its precision; never an exponent.
    pub(crate) fn text(&self) -> String {
        let sign = if self.is_negative() { "-" } else { "" };
        let (bits, wanted) = (self.mantissa.magnitude(), self.precision + 1);
        if bits.is_zero() {
            return "0".to_owned();
        }
        // One bit more than it has: the neighbours are two away, and what is one away is half-way to them.
        let shift = wanted.saturating_sub(bits.bits());
        let middle = bits << shift;
        let exponent = self.exponent - i64::try_from(shift).unwrap_or(0);
        let digits = |of: BigUint| scaled(BigInt::from(of), exponent);
        let (exact, behind_point) = digits(middle.clone());
        let texts = [exact, digits(&middle - 1u8).0, digits(&middle + 1u8).0].map(|n| n.to_string());
        let width = texts.iter().map(String::len).max().unwrap_or(0);
        let [exact, lower, upper] = texts.map(|t| format!("{t:0>width$}"));
        // Half-way is this one only if it is even.
        let short = shortest(exact.as_bytes(), lower.as_bytes(), upper.as_bytes(), !middle.bit(1));
        format!("{sign}{}", with_point(&short, width, usize::try_from(behind_point).unwrap_or(0)))
    }
}

/// The nearest to a quotient.
fn ratio(top: BigInt, top_exponent: i64, bottom: BigInt, bottom_exponent: i64, precision: u64) -> Float {
    // So many zeros behind it that the whole part of the quotient has all bits wanted, and two more to round by.
    let zeros = (precision + 2 + bottom.bits()).saturating_sub(top.bits());
    let top = top << zeros;
    let quotient = &top / &bottom;
    let more = &quotient * &bottom != top;
    Float::nearest(quotient, top_exponent - bottom_exponent - i64::try_from(zeros).unwrap_or(0), more, precision)
}

/// `integer * 2^exponent` as digits, and how many of them are behind the point.
fn scaled(integer: BigInt, exponent: i64) -> (BigInt, u64) {
    let halves = exponent.unsigned_abs();
    match exponent < 0 {
        true => (integer * BigInt::from(5).pow(u32::try_from(halves).unwrap_or(u32::MAX)), halves),
        false => (integer << halves, 0),
    }
}

/// The first digits of `exact`, the last one rounded, that stay between `lower` and `upper` (`inclusive`: or are one of them). All have as many digits.
fn shortest(exact: &[u8], lower: &[u8], upper: &[u8], inclusive: bool) -> Vec<u8> {
    let first = exact.iter().position(|d| *d != b'0').unwrap_or(0);
    let is_zero = |rest: &[u8]| rest.iter().all(|d| *d == b'0');
    for end in first + 1..=exact.len() {
        let (down, rest) = exact.split_at(end);
        let up = next(down);
        let is_down = match down.cmp(&lower[..end]) {
            Ordering::Equal => inclusive && is_zero(&lower[end..]),
            order => order == Ordering::Greater,
        };
        let is_up = up.as_ref().is_some_and(|up| match up.as_slice().cmp(&upper[..end]) {
            Ordering::Equal => inclusive || !is_zero(&upper[end..]),
            order => order == Ordering::Less,
        });
        let half = rest
            .first()
            .map_or(Ordering::Less, |d| d.cmp(&b'5').then_with(|| if is_zero(&rest[1..]) { Ordering::Equal } else { Ordering::Greater }));
        let is_odd = down.last().is_some_and(|d| d % 2 == 1);
        let is_nearer_up = half == Ordering::Greater || half == Ordering::Equal && is_odd;
        match (is_down, is_up, up) {
            (true, true, Some(up)) if is_nearer_up => return up,
            (true, ..) => return down.to_vec(),
            (false, true, Some(up)) => return up,
            _ => {}
        }
    }
    exact.to_vec()
}

/// Digits, one more; none if there would be one more of them.
fn next(digits: &[u8]) -> Option<Vec<u8>> {
    let mut next = digits.to_vec();
    for digit in next.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return Some(next);
        }
        *digit = b'0';
    }
    None
}

/// The first of `width` digits, of which so many are behind the point.
fn with_point(digits: &[u8], width: usize, behind_point: usize) -> String {
    let mut text: String = digits.iter().map(|d| char::from(*d)).collect();
    text.extend(std::iter::repeat_n('0', width - digits.len()));
    let (whole, fraction) = match text.len().checked_sub(behind_point) {
        Some(at) => (text[..at].to_owned(), text[at..].to_owned()),
        None => (String::new(), format!("{text:0>behind_point$}")),
    };
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}
