//! Operators: `+ - * / %`, comparisons, `==`, `&& || !`.
//!
//! Numbers are exact decimals. A value that is known after apply gives one, unless what is known of it decides the answer already; a
//! secret operand makes the result secret. Messages never quote an operand. Knows nothing of text positions.

pub(crate) mod arithmetic;
mod equality;

use karmaform_model::{Kind, Number, Type, Unknown, Value, convert};

pub(crate) use equality::equal;

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `==`
    Eq,
    /// `!=`
    NotEq,
    /// `<`
    Less,
    /// `<=`
    LessEq,
    /// `>`
    Greater,
    /// `>=`
    GreaterEq,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl BinaryOperator {
    /// What its result is of, whatever the operands are.
    pub(crate) fn gives(self) -> Type {
        match self {
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Mod => Type::Number,
            Self::Eq | Self::NotEq | Self::Less | Self::LessEq | Self::Greater | Self::GreaterEq | Self::And | Self::Or => Type::Bool,
        }
    }
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOperator {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// The result of `left OPERATOR right`.
///
/// # Errors
/// If an operand does not fit the operator, is null, or the calculation has no result.
pub(crate) fn binary(operator: BinaryOperator, left: &Value, right: &Value) -> Result<Value, String> {
    use BinaryOperator::{Add, And, Div, Eq, Greater, GreaterEq, Less, LessEq, Mod, Mul, NotEq, Or, Sub};
    let marks = left.all_marks() | right.all_marks();
    let result = match operator {
        Eq => truth(equal(left, right)),
        NotEq => truth(equal(left, right).map(|same| !same)),
        Add => calculate(left, right, arithmetic::add),
        Sub => calculate(left, right, arithmetic::subtract),
        Mul => calculate(left, right, arithmetic::multiply),
        Div => calculate(left, right, arithmetic::divide),
        Mod => calculate(left, right, arithmetic::remainder),
        Less => compare(left, right, |a, b| a < b, less),
        Greater => compare(left, right, |a, b| a > b, |a, b| less(b, a)),
        LessEq => compare(left, right, |a, b| a <= b, |_, _| None),
        GreaterEq => compare(left, right, |a, b| a >= b, |_, _| None),
        // The value that decides alone: false for `&&`, true for `||`.
        And => logic(left, right, false),
        Or => logic(left, right, true),
    }?;
    Ok(result.marked(marks))
}

/// The result of `OPERATOR operand`.
///
/// # Errors
/// If the operand does not fit the operator or is null.
pub(crate) fn unary(operator: UnaryOperator, operand: &Value) -> Result<Value, String> {
    let operand_is = "the operand";
    let result = match operator {
        UnaryOperator::Neg => {
            let value = operand_of(operand, &Type::Number, operand_is)?;
            value.as_number().map_or_else(|| Value::unknown_not_null(Type::Number), |n| arithmetic::negate(n).into())
        }
        UnaryOperator::Not => {
            let value = operand_of(operand, &Type::Bool, operand_is)?;
            value.as_bool().map_or_else(|| Value::unknown_not_null(Type::Bool), |b| (!b).into())
        }
    };
    Ok(result.marked(operand.all_marks()))
}

/// The operand as that type, not null; still unknown if it was.
fn operand_of(value: &Value, ty: &Type, which: &str) -> Result<Value, String> {
    if value.is_null() {
        return Err(format!("{which} must not be null"));
    }
    convert(value, ty).map_err(|_| {
        let article = |word: &str| if word.starts_with('o') { format!("an {word}") } else { format!("a {word}") };
        let found = value.ty().word().to_owned();
        // A string may fit or not, by its content; saying "have string" alone would puzzle.
        if found == "string" {
            format!("{which} must be {}, and this string does not read as one", article(ty.word()))
        } else {
            format!("{which} must be {}, but is {}", article(ty.word()), article(&found))
        }
    })
}

fn both(left: &Value, right: &Value, ty: &Type) -> Result<(Value, Value), String> {
    Ok((operand_of(left, ty, "the left operand")?, operand_of(right, ty, "the right operand")?))
}

#[allow(clippy::unnecessary_wraps)]
fn truth(known: Option<bool>) -> Result<Value, String> {
    Ok(known.map_or_else(|| Value::unknown_not_null(Type::Bool), Value::from))
}

fn calculate(left: &Value, right: &Value, with: fn(&Number, &Number) -> Result<Number, String>) -> Result<Value, String> {
    let (left, right) = both(left, right, &Type::Number)?;
    match (left.as_number(), right.as_number()) {
        (Some(a), Some(b)) => Ok(with(a, b)?.into()),
        _ => Ok(Value::unknown_not_null(Type::Number)),
    }
}

fn compare(
    left: &Value,
    right: &Value,
    known: fn(&Number, &Number) -> bool,
    bounds: fn(&Value, &Value) -> Option<bool>,
) -> Result<Value, String> {
    let (left, right) = both(left, right, &Type::Number)?;
    truth(match (left.as_number(), right.as_number()) {
        (Some(a), Some(b)) => Some(known(a, b)),
        _ => bounds(&left, &right),
    })
}

/// `a < b` as far as the bounds of unknown numbers (lengths of unknown collections) decide it.
fn less(a: &Value, b: &Value) -> Option<bool> {
    let low = |v: &Value| bound(v, |u| u.min_length);
    let high = |v: &Value| bound(v, |u| u.max_length);
    if matches!((high(a), low(b)), (Some(high), Some(low)) if high < low) {
        return Some(true);
    }
    matches!((low(a), high(b)), (Some(low), Some(high)) if low >= high).then_some(false)
}

fn bound(value: &Value, of: fn(&Unknown) -> Option<usize>) -> Option<Number> {
    match &value.kind {
        Kind::Number(n) => Some(n.clone()),
        Kind::Unknown(u) => of(u).map(Number::from),
        _ => None,
    }
}

fn logic(left: &Value, right: &Value, deciding: bool) -> Result<Value, String> {
    let (left, right) = both(left, right, &Type::Bool)?;
    truth(match (left.as_bool(), right.as_bool()) {
        (Some(a), _) if a == deciding => Some(deciding),
        (_, Some(b)) if b == deciding => Some(deciding),
        (Some(_), Some(_)) => Some(!deciding),
        _ => None,
    })
}

#[cfg(test)]
#[path = "ops/tests.rs"]
mod tests;
