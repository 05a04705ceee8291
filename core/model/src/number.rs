//! Numbers of the language, and the infinities that division by zero gives.

mod float;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, ToPrimitive};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use float::Float;
use float::PRECISION;

/// What is said of a number that is written with too many digits.
pub const TOO_LONG: &str = "a number of more than 4096 digits";
/// Beyond this many digits a written number is refused: `1e99999999` parses at once and prints 100 MB.
const LONGEST: u64 = 4096;
/// A float of 64 bits has all digits of whole numbers up to here.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A number.
#[derive(Clone, Debug)]
pub enum Number {
    /// A whole number that fits a machine word; the common case, kept small.
    Int(i64),
    /// Any other finite number.
    Float(Box<Float>),
    /// `-0`: equal to zero and shown with its sign, which `1 / x` and products with it keep.
    NegativeZero,
    /// `1/0`
    PositiveInfinity,
    /// `-1/0`
    NegativeInfinity,
}

impl Number {
    /// From a decimal: the nearest that there is.
    pub fn from_decimal(decimal: &BigDecimal) -> Self {
        Float::from_decimal(decimal, PRECISION).into()
    }

    /// From a whole number of any size, exactly.
    pub fn from_integer(integer: BigInt) -> Self {
        integer.to_i64().map_or_else(|| Self::Float(Box::new(Float::from_integer(integer))), Self::Int)
    }

    /// From a float, exactly; `None` for NaN.
    pub fn from_f64(float: f64) -> Option<Self> {
        match float {
            f64::INFINITY => Some(Self::PositiveInfinity),
            f64::NEG_INFINITY => Some(Self::NegativeInfinity),
            zero if zero == 0.0 && zero.is_sign_negative() => Some(Self::NegativeZero),
            // One that has more digits than are shown of it is no `Int`, of which all are.
            finite if finite.abs() > MOST_EXACT => Some(Self::Float(Box::new(Float::from_f64(finite)))),
            finite => (!finite.is_nan()).then(|| Float::from_f64(finite).into()),
        }
    }

    /// It as a float (zero has no sign there), `None` for an infinity.
    pub fn float(&self) -> Option<Float> {
        match self {
            Self::Int(i) => Some(Float::from_integer(BigInt::from(*i))),
            Self::NegativeZero => Some(Float::from_integer(BigInt::ZERO)),
            Self::Float(f) => Some((**f).clone()),
            Self::PositiveInfinity | Self::NegativeInfinity => None,
        }
    }

    /// All its decimal digits, `None` for an infinity.
    pub fn decimal(&self) -> Option<BigDecimal> {
        match self {
            Self::Int(i) => Some(BigDecimal::from(*i)),
            Self::NegativeZero => Some(BigDecimal::from(0)),
            Self::Float(f) => Some(f.decimal()),
            Self::PositiveInfinity | Self::NegativeInfinity => None,
        }
    }

    /// True for a text that is a number, but of more digits than a number may have, so that it is refused.
    pub fn is_too_long(text: &str) -> bool {
        digits_of(text).is_some_and(|digits| digits > LONGEST)
    }

    /// A number that was kept: what was calculated may be longer by some digits than what may be written.
    pub(crate) fn kept(text: &str) -> Result<Self, ()> {
        Self::of_length(text, 2 * LONGEST)
    }

    /// True for a text of a number that not even [`Number::kept`] takes; nothing is calculated.
    pub(crate) fn is_too_long_to_keep(text: &str) -> bool {
        digits_of(text).is_none_or(|digits| digits > 2 * LONGEST)
    }

    fn of_length(text: &str, most: u64) -> Result<Self, ()> {
        if matches!(without_sign(text), "Inf" | "inf") {
            return Ok(if text.starts_with('-') { Self::NegativeInfinity } else { Self::PositiveInfinity });
        }
        if digits_of(text).is_none_or(|digits| digits > most) {
            return Err(());
        }
        if let Ok(int) = text.parse::<i64>() {
            return Ok(if int == 0 && text.starts_with('-') { Self::NegativeZero } else { Self::Int(int) });
        }
        let number = Self::from_decimal(&BigDecimal::from_str(text).map_err(|_| ())?);
        Ok(if text.starts_with('-') && matches!(number, Self::Int(0)) { Self::NegativeZero } else { number })
    }

    /// As a machine integer if it is whole and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(*i),
            Self::NegativeZero => Some(0),
            Self::Float(f) => f.integer().and_then(|i| i.to_i64()),
            Self::PositiveInfinity | Self::NegativeInfinity => None,
        }
    }

    /// The nearest float of 64 bits.
    pub fn as_f64(&self) -> f64 {
        match self {
            #[allow(clippy::cast_precision_loss)]
            Self::Int(i) => *i as f64,
            Self::NegativeZero => -0.0,
            Self::Float(f) => f.as_f64(),
            Self::PositiveInfinity => f64::INFINITY,
            Self::NegativeInfinity => f64::NEG_INFINITY,
        }
    }

    /// True for a number without a fraction.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Int(_) | Self::NegativeZero => true,
            Self::Float(f) => f.integer().is_some(),
            Self::PositiveInfinity | Self::NegativeInfinity => false,
        }
    }
}

impl From<Float> for Number {
    fn from(float: Float) -> Self {
        match float.integer().and_then(|i| i.to_i64()) {
            Some(int) => Self::Int(int),
            None => Self::Float(Box::new(float)),
        }
    }
}

impl From<i64> for Number {
    fn from(i: i64) -> Self {
        Self::Int(i)
    }
}

impl From<u64> for Number {
    fn from(i: u64) -> Self {
        Self::from_integer(BigInt::from(i))
    }
}

impl From<usize> for Number {
    fn from(i: usize) -> Self {
        Self::from(i as u64)
    }
}

fn without_sign(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

/// How many digits a written number has before and behind the point, an exponent taken in; `None` for what is no number. Nothing is calculated.
fn digits_of(text: &str) -> Option<u64> {
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = without_sign(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let exponent = match exponent {
        None => 0,
        Some(written) => {
            let digits = without_sign(written);
            let size = Some(digits).filter(|d| !d.is_empty() && is_digits(d))?.parse::<i32>().unwrap_or(i32::MAX);
            i64::from(if written.starts_with('-') { -size } else { size })
        }
    };
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX / 2);
    let before = (length(whole.trim_start_matches('0')) + exponent).max(0);
    let behind = (length(fraction) - exponent).max(0);
    u64::try_from((before + behind).max(length(whole) + length(fraction))).ok()
}

impl FromStr for Number {
    type Err = ();

    /// Decimal notation with an optional exponent, `.5` and `+5` too, or `Inf`; no hexadecimal, no underscores, no surrounding space.
    fn from_str(text: &str) -> Result<Self, ()> {
        Self::of_length(text, LONGEST)
    }
}

impl fmt::Display for Number {
    /// Never an exponent; infinities as `+Inf` and `-Inf`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(i) => write!(f, "{i}"),
            Self::Float(float) => f.write_str(&float.text()),
            Self::NegativeZero => f.write_str("-0"),
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
    /// Numbers are equal that are shown with the same digits, as in Terraform.
    fn cmp(&self, other: &Self) -> Ordering {
        use Number::{Int, NegativeInfinity, PositiveInfinity};
        let rank = |n: &Self| match n {
            NegativeInfinity => 0,
            Int(_) | Number::Float(_) | Number::NegativeZero => 1,
            PositiveInfinity => 2,
        };
        match (self, other) {
            (Int(a), Int(b)) => a.cmp(b),
            (a, b) => match (a.float(), b.float()) {
                (Some(a), Some(b)) if !a.has_precision_of(&b) && a.text() == b.text() => Ordering::Equal,
                (Some(a), Some(b)) => a.order(&b),
                _ => rank(a).cmp(&rank(b)),
            },
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
            text => Self::kept(text).map_err(|()| serde::de::Error::custom("not a number")),
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
        for (text, printed) in [("-0", "-0"), ("-0.00", "-0"), ("0", "0"), ("+0", "0")] {
            let number = text.parse::<Number>().unwrap();
            assert_eq!(number.to_string(), printed);
            assert!(number == Number::Int(0) && number.as_i64() == Some(0) && number.is_whole());
        }
        assert!(Number::NegativeZero < Number::Int(1) && Number::NegativeZero > Number::Int(-1));
        for text in ["", "0x10", "1_000", "1e99999999", "abc", " 1", "+-1", ".", "infinity"] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_fewest_digits_are_shown_that_are_this_number() {
        // Of 512 bits, as Terraform 1.11 shows them.
        let third = Float::from_integer(1.into()).over(&Float::from_integer(3.into()));
        let text = Number::from(third.clone()).to_string();
        assert_eq!(text, format!("0.{}5", "3".repeat(154)));
        assert_eq!(text.parse::<Number>().unwrap(), third.clone().into(), "what is read again is the same");
        assert_eq!(Number::from(third.times(&Float::from_integer(3.into()))).as_i64(), Some(1));
        for text in ["0.1", "123456789012345678901234567890.123456789", "0.000001", "-2.5", "10000000000000000000000000000000000000000.1"] {
            assert_eq!(text.parse::<Number>().unwrap().to_string(), text);
        }
        let long = format!("1{}1", "0".repeat(199)).parse::<Number>().unwrap();
        assert_eq!(long.to_string(), format!("1{}", "0".repeat(200)));
        // Of 53 bits.
        assert_eq!(Number::from_f64(1e23).unwrap().to_string(), format!("1{}", "0".repeat(23)));
        assert_eq!(Number::from_f64(f64::MIN_POSITIVE).unwrap().to_string().trim_start_matches(['0', '.']), "22250738585072014");
        let long = Number::from_f64(-814_396_043_177_867_648.0).unwrap();
        assert_eq!((long.to_string().as_str(), long.as_i64()), ("-814396043177867600", Some(-814_396_043_177_867_648)));
        assert_eq!(Number::from_f64(0.1).unwrap(), "0.1".parse().unwrap(), "what is shown alike is equal");
        assert!(Number::from_f64(0.1).unwrap() < "0.2".parse().unwrap());
    }

    #[test]
    fn floats_of_64_bits_are_shown_as_everywhere() {
        let mut bits = 0x0123_4567_89ab_cdefu64;
        for _ in 0..300 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let float = f64::from_bits(bits);
            if float.is_normal() {
                assert_eq!(Number::from_f64(float).unwrap().to_string(), format!("{float}"));
            }
        }
    }

    #[test]
    fn it_goes_up_and_down_to_whole_numbers() {
        for (text, down, up) in [("1.5", 1, 2), ("-1.5", -2, -1), ("7", 7, 7), ("-0.1", -1, 0), ("1e30", -1, -1)] {
            let Some(float) = text.parse::<Number>().unwrap().float() else { panic!() };
            let expected =
                if down == up && down < 0 { [BigInt::from(10).pow(30), BigInt::from(10).pow(30)] } else { [down.into(), up.into()] };
            assert_eq!([float.whole(false), float.whole(true)], expected, "{text}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_calculated_with() {
        for text in [
            "1e9223372036854775808",
            "1e-9223372036854775808",
            "0e9223372036854775808",
            "1e99999999999999999999",
            "-1E+4096",
            "1e4096",
            "1e-4097",
        ] {
            assert!(text.parse::<Number>().is_err() && Number::is_too_long(text), "{text}");
        }
        let long = "9".repeat(10_000_000);
        assert!(long.parse::<Number>().is_err() && Number::is_too_long(&long));
        for text in ["1e4095", "-1e-4095", "0.5e-4000", &"9".repeat(4096)] {
            assert!(text.parse::<Number>().is_ok() && !Number::is_too_long(text), "{text}");
        }
        for text in ["1e", "e5", "1e+", "1.2.3", "abc", ""] {
            assert!(text.parse::<Number>().is_err() && !Number::is_too_long(text), "{text}");
        }
    }

    #[test]
    fn what_may_be_written_and_calculated_can_be_kept() {
        for text in ["1e4095", "-1e-4095", &"9".repeat(4096), &format!("0.{}", "9".repeat(4095))] {
            let number: Number = text.parse().unwrap();
            assert_eq!(Number::kept(&number.to_string()), Ok(number), "{text}");
        }
        // Of an estimate a little below the limit.
        let most = Number::from(Float::from_decimal(&BigDecimal::from(BigInt::from(3).pow(8600)), PRECISION));
        assert!(most.float().unwrap().length() <= LONGEST && most.to_string().len() > 4096);
        assert_eq!(Number::kept(&most.to_string()), Ok(most));
    }

    #[test]
    fn infinities_sort_at_the_ends() {
        assert!(Number::NegativeInfinity < Number::Int(i64::MIN));
        assert!(Number::PositiveInfinity > "1e30".parse().unwrap());
        assert_eq!(Number::from_f64(0.1).unwrap().to_string(), "0.1");
    }
}
