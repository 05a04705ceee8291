//! Numbers of the language: exact decimals, and the infinities that division by zero gives.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive, Zero};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many significant digits are shown and compared (a 512-bit binary float has 154).
const DIGITS: u64 = 154;
/// How many significant digits a calculation keeps: some more than are seen, so that `10 / 3 * 3` is 10 and not a little less.
pub const KEPT_DIGITS: u64 = DIGITS + 8;
/// Beyond this many digits a written number is refused: `1e99999999` parses at once and prints 100 MB.
const LONGEST: i64 = 4096;

/// A number.
#[derive(Clone, Debug)]
pub enum Number {
    /// A whole number that fits a machine word; the common case, kept small.
    Int(i64),
    /// Any other finite number.
    Decimal(Box<BigDecimal>),
    /// `1/0`
    PositiveInfinity,
    /// `-1/0`
    NegativeInfinity,
}

impl Number {
    /// From an exact decimal, of which [`KEPT_DIGITS`] are kept; what is seen as a whole number is one.
    pub fn from_decimal(decimal: BigDecimal) -> Self {
        let whole = if decimal.is_integer() { Some(decimal.clone()) } else { Some(seen(&decimal)).filter(BigDecimal::is_integer) };
        match whole.map(|whole| whole.to_i64().ok_or(whole)) {
            Some(Ok(int)) => Self::Int(int),
            Some(Err(long)) => Self::Decimal(Box::new(long.normalized())),
            None => Self::Decimal(Box::new(rounded(&decimal, KEPT_DIGITS).normalized())),
        }
    }

    /// From a float; `None` for NaN.
    pub fn from_f64(float: f64) -> Option<Self> {
        if float == f64::INFINITY {
            return Some(Self::PositiveInfinity);
        }
        if float == f64::NEG_INFINITY {
            return Some(Self::NegativeInfinity);
        }
        // The shortest text that reads back as this float, not its exact binary expansion.
        format!("{float}").parse().ok()
    }

    /// The decimal as it is seen, `None` for an infinity.
    pub fn decimal(&self) -> Option<BigDecimal> {
        self.kept().map(|d| seen(&d))
    }

    /// The decimal with all digits that a calculation goes on with, `None` for an infinity.
    pub fn kept(&self) -> Option<BigDecimal> {
        match self {
            Self::Int(i) => Some(BigDecimal::from(*i)),
            Self::Decimal(d) => Some((**d).clone()),
            _ => None,
        }
    }

    /// As a machine integer if it is whole and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// The nearest float.
    pub fn as_f64(&self) -> f64 {
        match self {
            #[allow(clippy::cast_precision_loss)]
            Self::Int(i) => *i as f64,
            Self::Decimal(d) => d.to_f64().unwrap_or(f64::NAN),
            Self::PositiveInfinity => f64::INFINITY,
            Self::NegativeInfinity => f64::NEG_INFINITY,
        }
    }

    /// True for a number without a fraction.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Int(_) => true,
            Self::Decimal(d) => d.is_integer(),
            _ => false,
        }
    }
}

/// Whole numbers stay exact; anything else has [`DIGITS`] digits that are seen.
fn seen(decimal: &BigDecimal) -> BigDecimal {
    if decimal.is_integer() { decimal.clone() } else { rounded(decimal, DIGITS).normalized() }
}

fn rounded(decimal: &BigDecimal, digits: u64) -> BigDecimal {
    match NonZeroU64::new(digits) {
        Some(most) if decimal.digits() > digits => decimal.with_precision_round(most, RoundingMode::HalfEven),
        _ => decimal.clone(),
    }
}

impl From<i64> for Number {
    fn from(i: i64) -> Self {
        Self::Int(i)
    }
}

impl From<u64> for Number {
    fn from(i: u64) -> Self {
        i64::try_from(i).map_or_else(|_| Self::from_decimal(BigDecimal::from(i)), Self::Int)
    }
}

impl From<usize> for Number {
    fn from(i: usize) -> Self {
        Self::from(i as u64)
    }
}

impl FromStr for Number {
    type Err = ();

    /// Decimal notation with an optional exponent, `.5` and `+5` too, or `Inf`; no hexadecimal, no underscores, no surrounding space.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if matches!(digits, "Inf" | "inf") {
            return Ok(if text.starts_with('-') { Self::NegativeInfinity } else { Self::PositiveInfinity });
        }
        let ok = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
        let begins = digits.strip_prefix('.').unwrap_or(digits).starts_with(|c: char| c.is_ascii_digit());
        if !begins || !digits.chars().all(ok) {
            return Err(());
        }
        if let Ok(int) = text.parse::<i64>() {
            return Ok(Self::Int(int));
        }
        let decimal = BigDecimal::from_str(text).map_err(|_| ())?;
        let (_, scale) = decimal.as_bigint_and_exponent();
        if scale.abs() > LONGEST || i64::try_from(decimal.digits()).unwrap_or(i64::MAX) > LONGEST {
            return Err(());
        }
        Ok(Self::from_decimal(decimal))
    }
}

impl fmt::Display for Number {
    /// Never an exponent; infinities as `+Inf` and `-Inf`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(i) => write!(f, "{i}"),
            Self::Decimal(d) if d.is_zero() => f.write_str("0"),
            Self::Decimal(d) => f.write_str(&seen(d).to_plain_string()),
            Self::PositiveInfinity => f.write_str("+Inf"),
            Self::NegativeInfinity => f.write_str("-Inf"),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        use Number::{Decimal, Int, NegativeInfinity, PositiveInfinity};
        let rank = |n: &Self| match n {
            NegativeInfinity => 0,
            Int(_) | Decimal(_) => 1,
            PositiveInfinity => 2,
        };
        match (self, other) {
            (Int(a), Int(b)) => a.cmp(b),
            (Decimal(a), Decimal(b)) => seen(a).cmp(&seen(b)),
            (Int(a), Decimal(b)) => BigDecimal::from(*a).cmp(b),
            (Decimal(a), Int(b)) => (**a).cmp(&BigDecimal::from(*b)),
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match String::deserialize(d)?.as_str() {
            "+Inf" => Ok(Self::PositiveInfinity),
            "-Inf" => Ok(Self::NegativeInfinity),
            text => text.parse().map_err(|()| serde::de::Error::custom("not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_without_exponent() {
        for (text, printed) in
            [("1e3", "1000"), ("0.10", "0.1"), ("-5", "-5"), ("1.0", "1"), ("12345678901234567890123", "12345678901234567890123")]
        {
            assert_eq!(text.parse::<Number>().unwrap().to_string(), printed);
        }
        for (text, printed) in [("+1", "1"), (".5", "0.5"), ("-.5e1", "-5"), ("5.", "5"), ("inf", "+Inf"), ("-Inf", "-Inf")] {
            assert_eq!(text.parse::<Number>().unwrap().to_string(), printed);
        }
        for text in ["", "0x10", "1_000", "1e99999999", "abc", " 1", "+-1", ".", "infinity"] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
    }

    #[test]
    fn digits_that_are_kept_are_not_seen() {
        let third = Number::from_decimal(BigDecimal::from_str(&format!("0.{}", "3".repeat(200))).unwrap());
        assert_eq!(third.kept().unwrap().digits(), KEPT_DIGITS);
        let text = third.to_string();
        assert_eq!(text, format!("0.{}", "3".repeat(154)));
        assert_eq!(text.parse::<Number>().unwrap(), third, "what is read again is the same");
        let nearly = BigDecimal::from_str(&format!("9.{}", "9".repeat(160))).unwrap();
        assert_eq!(Number::from_decimal(nearly).as_i64(), Some(10));
    }

    #[test]
    fn infinities_sort_at_the_ends() {
        assert!(Number::NegativeInfinity < Number::Int(i64::MIN));
        assert!(Number::PositiveInfinity > "1e30".parse().unwrap());
        assert_eq!(Number::from_f64(0.1).unwrap().to_string(), "0.1");
    }
}
