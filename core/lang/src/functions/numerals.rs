//! Numbers as the verbs of `format` write them.

use std::num::NonZeroU64;

use bigdecimal::num_bigint::Sign;
use bigdecimal::{BigDecimal, RoundingMode, Zero};
use karmaform_model::Number;

use super::verbs::Verb;

/// For `%d %b %o %x %X`; none if the number has a fraction or is infinite. The precision is the least number of digits, and zero has
/// none with a precision of zero.
pub(super) fn whole(number: &Number, verb: &Verb<'_>) -> Option<String> {
    let decimal = number.decimal().filter(|_| number.is_whole())?;
    let (sign, digits) = decimal.with_scale(0).into_bigint_and_exponent().0.into_parts();
    let (base, prefix) = match verb.letter {
        'b' => (2, "0b"),
        'o' => (8, "0"),
        'x' => (16, "0x"),
        'X' => (16, "0X"),
        _ => (10, ""),
    };
    if sign == Sign::NoSign && verb.precision == Some(0) {
        return Some(String::new());
    }
    let mut text = format!("{:0>width$}", digits.to_str_radix(base), width = verb.precision.unwrap_or(0));
    if verb.letter == 'X' {
        text = text.to_uppercase();
    }
    let prefix = if verb.sharp { prefix } else { "" };
    Some(format!("{}{prefix}{text}", sign_text(sign == Sign::Minus, verb)))
}

/// For `%f %e %E %g %G`.
pub(super) fn fractional(number: &Number, verb: &Verb<'_>) -> String {
    let Some(decimal) = number.decimal() else { return number.to_string() };
    let negative = decimal.sign() == Sign::Minus || matches!(number, Number::NegativeZero);
    let decimal = decimal.abs();
    let text = match verb.letter {
        'f' => fixed(&decimal, verb.precision.unwrap_or(6)),
        'e' | 'E' => scientific(&decimal, verb.precision.unwrap_or(6)),
        // As few digits as there can be are not all digits.
        _ if verb.precision.is_none() => shortest(&number.to_string().trim_start_matches('-').parse().unwrap_or_default(), None),
        _ => shortest(&decimal, verb.precision),
    };
    let text = if verb.letter.is_uppercase() { text.to_uppercase() } else { text };
    format!("{}{text}", sign_text(negative, verb))
}

fn sign_text(negative: bool, verb: &Verb<'_>) -> &'static str {
    match (negative, verb.plus, verb.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

fn fixed(decimal: &BigDecimal, digits: usize) -> String {
    decimal.with_scale_round(i64::try_from(digits).unwrap_or(0), RoundingMode::HalfEven).to_plain_string()
}

/// The significant digits without zeros at the end, and the power of ten of the first.
fn digits(decimal: &BigDecimal) -> (String, i64) {
    if decimal.is_zero() {
        return ("0".to_owned(), 0);
    }
    let (digits, scale) = decimal.as_bigint_and_exponent();
    let text = digits.to_string();
    let power = i64::try_from(text.len()).unwrap_or(0) - 1 - scale;
    (text.trim_end_matches('0').to_owned(), power)
}

fn rounded(decimal: &BigDecimal, significant: usize) -> BigDecimal {
    let significant = NonZeroU64::new(significant as u64).unwrap_or(NonZeroU64::MIN);
    decimal.with_precision_round(significant, RoundingMode::HalfEven)
}

fn scientific(decimal: &BigDecimal, behind_point: usize) -> String {
    let (digits, power) = digits(&rounded(decimal, behind_point + 1));
    let digits = format!("{digits:0<width$}", width = behind_point + 1);
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{first}{point}{rest}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

/// `%g`: with an exponent for numbers that are very large or small, as short as possible otherwise.
fn shortest(decimal: &BigDecimal, precision: Option<usize>) -> String {
    let decimal = precision.map_or_else(|| decimal.clone(), |p| rounded(decimal, p.max(1)));
    let (digits, power) = digits(&decimal);
    let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let limit = match precision {
        None => 6,
        Some(p) => match i64::try_from(p.max(1)).unwrap_or(i64::MAX) {
            p if p > count && count > power => count,
            p => p,
        },
    };
    if power < -4 || power >= limit {
        return scientific(&decimal, digits.len() - 1);
    }
    fixed(&decimal, usize::try_from(count - 1 - power).unwrap_or(0))
}
