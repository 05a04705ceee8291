//! The order of values in sets, which is Terraform's.

use std::cmp::Ordering;
use std::num::NonZeroU64;

use bigdecimal::RoundingMode;

use super::{Kind, Value};
use crate::Number;

impl Value {
    /// An order over all values, for sets: bools, numbers, strings (by bytes), then the rest by the text of their parts, as Terraform has it,
    /// and nulls last.
    pub fn total_order(&self, other: &Self) -> Ordering {
        fn rank(v: &Value) -> u8 {
            match v.kind {
                Kind::Bool(_) => 1,
                Kind::Number(_) => 2,
                Kind::String(_) => 3,
                Kind::List(..) | Kind::Set(..) | Kind::Tuple(_) => 4,
                Kind::Map(..) | Kind::Object(_) => 5,
                Kind::Unknown(_) => 6,
                Kind::Null(_) => 7,
            }
        }
        match (&self.kind, &other.kind) {
            (Kind::Bool(a), Kind::Bool(b)) => a.cmp(b),
            (Kind::Number(a), Kind::Number(b)) => a.cmp(b),
            (Kind::String(a), Kind::String(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)).then_with(|| match (&self.kind, &other.kind) {
                (Kind::Null(_) | Kind::Unknown(_), _) => Ordering::Equal,
                _ => self.order_text().cmp(&other.order_text()),
            }),
        }
    }

    /// What a value is sorted by among others with parts: numbers by the text of ten digits.
    pub(super) fn order_text(&self) -> String {
        fn write(value: &Value, out: &mut String, exact: &mut String) {
            let mut all = |items: &mut dyn Iterator<Item = &Value>, [open, close]: [char; 2], out: &mut String| {
                out.push(open);
                for item in items {
                    write(item, out, exact);
                    out.push(';');
                }
                out.push(close);
            };
            match &value.kind {
                Kind::Unknown(_) => out.push('?'),
                Kind::Null(_) => out.push('~'),
                Kind::Bool(b) => out.push(if *b { 'T' } else { 'F' }),
                Kind::Number(number) => {
                    out.push_str(&short(number));
                    exact.push_str(&number.to_string());
                    exact.push(';');
                }
                Kind::String(text) => out.push_str(&format!("{text:?}")),
                Kind::List(_, items) | Kind::Set(_, items) => all(&mut items.iter(), ['[', ']'], out),
                Kind::Tuple(items) => all(&mut items.iter(), ['<', '>'], out),
                Kind::Object(parts) => all(&mut parts.values(), ['<', '>'], out),
                Kind::Map(_, entries) => {
                    out.push('{');
                    for (key, item) in entries {
                        out.push_str(&format!("{key:?}:"));
                        write(item, out, exact);
                        out.push(';');
                    }
                    out.push('}');
                }
            }
        }
        let (mut out, mut exact) = (String::new(), String::new());
        write(self, &mut out, &mut exact);
        // Before all that stands in a text; those that are alike to ten digits have an order of their own.
        out.push('\0');
        out + &exact
    }
}

/// A number of ten digits at most, with an exponent from `1e+10` on and below `0.0001`.
fn short(number: &Number) -> String {
    let decimal = match number {
        Number::Float(float) => float.decimal(),
        Number::Int(int) if int.unsigned_abs() >= 10_000_000_000 => (*int).into(),
        _ => return number.to_string(),
    };
    let most = NonZeroU64::new(10).unwrap_or(NonZeroU64::MIN);
    let rounded = decimal.with_precision_round(most, RoundingMode::HalfEven).normalized();
    let (digits, scale) = rounded.as_bigint_and_exponent();
    let digits = digits.to_string();
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let power = i64::try_from(digits.len()).unwrap_or(i64::MAX) - 1 - scale;
    if (-4..10).contains(&power) {
        return rounded.to_plain_string();
    }
    let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

#[cfg(test)]
mod tests {
    use crate::{Type, Value};

    #[test]
    fn numbers_in_structures_are_sorted_by_ten_digits() {
        let sorted = |numbers: &[&str]| {
            let number = |text: &&str| Value::tuple(vec![Value::from(text.parse::<crate::Number>().unwrap())]);
            let set = Value::set(Type::Tuple(vec![Type::Number]), numbers.iter().map(number).collect());
            format!("{set:?}").replace("[[", "").replace("]]", "").replace("], [", " ")
        };
        assert_eq!(sorted(&["1e30", "1e21", "5", "-1", "10", "10"]), "set-1 10 1000000000000000000000 1000000000000000000000000000000 5");
        assert_eq!(sorted(&["0.00001", "0.0001", "0.2", "-0.5", "1.5", "15"]), "set-0.5 0.0001 0.2 1.5 15 0.00001");
        assert_eq!(sorted(&["1234567890", "9999999999", "10000000000", "99999999999"]), "set1234567890 10000000000 99999999999 9999999999");
        assert_eq!(sorted(&["12345678902", "12345678901", "2", "12345678902"]), "set12345678901 12345678902 2");
        assert_eq!(sorted(&["-1e12", "-5", "-15"]), "set-15 -1000000000000 -5");
    }
}
