//! `parseint`

use bigdecimal::num_bigint::BigInt;
use karmaform_model::Number;

use super::prelude::*;

/// Longest string: each digit of it is a multiplication of all before it.
const LONGEST: usize = 4096;

pub(super) const FUNCTION: Function = Function {
    name: "parseint",
    doc: "The whole number that a string stands for in a base from 2 to 62.",
    parameters: &[Parameter::any("number").unknown(), Parameter::number("base")],
    gives: Gives::Is(Shape::Number),
    body: Some(parseint),
    #[cfg(test)]
    rows: &[
        ("parseint(\"ff\",16)", "255"),
        ("parseint(\"FF\",16)", "255"),
        ("parseint(\"-ff\",16)", "-255"),
        ("parseint(\"z\",36)", "35"),
        ("parseint(\"aA\",62)", "656"),
        ("parseint(\"12\",2)", "ERROR \"12\" is no whole number in base 2"),
        ("parseint(\"\",10)", "ERROR is no whole number in base 10"),
        ("parseint(10,10)", "ERROR must be a string, not a number"),
        ("parseint(u.id,10)", "UNKNOWN number"),
        ("parseint(length(u.list),10)", "ERROR must be a string, not a number"),
        ("parseint(true,10)", "ERROR must be a string, not a bool"),
        ("parseint(\"1\",1)", "ERROR from 2 to 62"),
        ("parseint(\"123456789012345678901234567890\",10)", "123456789012345678901234567890"),
    ],
    ..Function::BASE
};

fn parseint(a: &Arguments<'_>) -> Answer {
    if let Kind::Unknown(number) = &a.value(0).kind
        && matches!(number.ty, Type::String | Type::Any)
    {
        return Ok(a.unknown());
    }
    let base = u32::try_from(a.whole(1)?).ok().filter(|b| (2..=62).contains(b));
    let base = base.ok_or_else(|| FunctionError::at(1, "the base must be a whole number from 2 to 62"))?;
    let bad = || FunctionError::at(0, format!("{} is no whole number in base {base}", a.quote(0)));
    let Some(text) = a.value(0).as_str() else {
        return Err(FunctionError::at(0, format!("must be a string, not a {}", a.value(0).ty().word())));
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() {
        return Err(bad());
    }
    if digits.len() > LONGEST {
        return Err(FunctionError::at(0, format!("more than {LONGEST} digits")));
    }
    let mut result = BigInt::from(0);
    for c in digits.chars() {
        result = result * base + digit(c, base).ok_or_else(bad)?;
    }
    Ok(Number::from_integer(if negative { -result } else { result }).into())
}

/// Up to base 36 the case of letters is no matter; beyond, capitals come after small letters.
fn digit(c: char, base: u32) -> Option<u32> {
    let digit = match c {
        '0'..='9' => u32::from(c) - u32::from('0'),
        'a'..='z' => u32::from(c) - u32::from('a') + 10,
        'A'..='Z' if base <= 36 => u32::from(c) - u32::from('A') + 10,
        'A'..='Z' => u32::from(c) - u32::from('A') + 36,
        _ => return None,
    };
    (digit < base).then_some(digit)
}
