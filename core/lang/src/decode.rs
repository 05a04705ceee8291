//! Reading blocks of a fixed shape: which arguments and nested blocks they may hold, literal words, conditions.

use karmaform_model::{Diagnostic, Diagnostics, Span, Type, Value, convert};

use crate::config::Condition;
use crate::syntax::{Block, Body, Expr, ExprKind, Label, Part};
use crate::{ops, suggest};

/// What a block may hold.
pub(crate) struct Shape<'s> {
    /// For messages: `a "variable" block`
    pub what: &'s str,
    pub attributes: &'s [&'s str],
    pub blocks: &'s [&'s str],
}

/// Reports what does not belong in a body.
pub(crate) fn check_shape(body: &Body, shape: &Shape<'_>, diagnostics: &mut Diagnostics) {
    let what = shape.what;
    for attribute in &body.attributes {
        let name = attribute.name.as_str();
        if shape.attributes.contains(&name) {
            continue;
        }
        let error = if shape.blocks.contains(&name) {
            Diagnostic::slip("Block written as an argument", format!("In {what}, \"{name}\" is a block."))
                .with_hint(format!("Write {name} {{ ... }} without the equals sign."))
        } else {
            unknown("argument", name, what, shape.attributes)
        };
        diagnostics.push(error.with_span(Some(attribute.name_span)));
    }
    for block in &body.blocks {
        let name = block.kind.as_str();
        if shape.blocks.contains(&name) {
            continue;
        }
        let error = if shape.attributes.contains(&name) {
            Diagnostic::slip("Argument written as a block", format!("In {what}, \"{name}\" is an argument."))
                .with_hint(format!("Write {name} = ..."))
        } else {
            unknown("block", name, what, shape.blocks)
        };
        diagnostics.push(error.with_span(Some(block.kind_span)));
    }
}

fn unknown(kind: &str, name: &str, what: &str, known: &[&str]) -> Diagnostic {
    let error = Diagnostic::slip(format!("Unknown {kind}"), format!("{} has no {kind} \"{name}\".", capital(what)));
    match suggest::hint(name, known.iter().copied()) {
        Some(hint) => error.with_hint(hint),
        None if known.is_empty() => error,
        None => error.with_hint(format!("It may hold {}.", suggest::listed(known.iter().copied()))),
    }
}

/// The start of a sentence. Addresses stay as they are.
fn capital(text: &str) -> String {
    if !["a ", "an ", "the ", "this "].iter().any(|article| text.starts_with(article)) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default() + chars.as_str()
}

/// The labels of a block that must have exactly these.
pub(crate) fn labels<'b, const N: usize>(block: &'b Block, names: [&str; N], diagnostics: &mut Diagnostics) -> Option<[&'b Label; N]> {
    let found: Vec<&Label> = block.labels.iter().collect();
    if let Ok(found) = <[&Label; N]>::try_from(found) {
        return Some(found);
    }
    let form = names.iter().map(|n| format!(" \"{n}\"")).collect::<String>();
    let detail = match N {
        0 => format!("The block \"{}\" takes no labels.", block.kind),
        1 => format!("The block \"{}\" takes one label, its {}.", block.kind, names[0].to_lowercase()),
        _ => {
            let listed: Vec<_> = names.iter().map(|n| n.to_lowercase()).collect();
            format!("The block \"{}\" takes {N} labels: {}.", block.kind, listed.join(" and "))
        }
    };
    let extra = block.labels.get(N).map_or(block.span, |l| l.span);
    diagnostics.push(
        Diagnostic::error("Wrong number of labels", detail)
            .with_span(Some(extra))
            .with_hint(format!("Write {}{form} {{ ... }}.", block.kind)),
    );
    None
}

/// A label that is a name.
pub(crate) fn name<'b>(label: &'b Label, diagnostics: &mut Diagnostics) -> Option<&'b str> {
    named(&label.text, label.span, diagnostics).then_some(label.text.as_str())
}

/// False for a text that is no name, which is said.
pub(crate) fn named(text: &str, span: Span, diagnostics: &mut Diagnostics) -> bool {
    if is_name(text) {
        return true;
    }
    let error =
        Diagnostic::error("Invalid name", "A name starts with a letter or an underscore and holds letters, digits, \"_\" and \"-\".");
    let start = if text.starts_with(|c: char| c.is_alphabetic() || c == '_') { "" } else { "_" };
    let like = text.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' });
    let like: String = start.chars().chain(like).collect();
    diagnostics.push(error.with_span(Some(span)).with_hint(format!("Write another one, like {like}, here and wherever it is used.")));
    false
}

/// True for a text that can be the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The value of an expression of nothing but literals and operators, if it has one.
fn constant(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Literal(value) => Some(value.clone()),
        ExprKind::Parentheses(inner) => constant(inner),
        ExprKind::Unary(operator, inner) => ops::unary(*operator, &constant(inner)?).ok(),
        ExprKind::Binary(operator, both) => ops::binary(*operator, &constant(&both.0)?, &constant(&both.1)?).ok(),
        ExprKind::Conditional(parts) => {
            let [condition, yes, no] = &**parts;
            let condition = convert(&constant(condition)?, &Type::Bool).ok()?.as_bool()?;
            constant(if condition { yes } else { no })
        }
        ExprKind::Template(parts) => match parts.as_slice() {
            [Part::Interpolation(only)] => constant(only),
            parts => parts.iter().map(constant_part).collect::<Option<String>>().map(Value::from),
        },
        _ => None,
    }
}

fn constant_part(part: &Part) -> Option<String> {
    match part {
        Part::Literal(text) => Some(text.clone()),
        Part::Interpolation(expr) => convert(&constant(expr)?, &Type::String).ok()?.as_str().map(str::to_owned),
        Part::If { .. } | Part::For { .. } => None,
    }
}

/// `true` or `false` in constants; `None` if it is not there or wrong.
pub(crate) fn literal_bool(body: &Body, name: &str, diagnostics: &mut Diagnostics) -> Option<bool> {
    let attribute = body.attribute(name)?;
    match constant(&attribute.expr).and_then(|value| convert(&value, &Type::Bool).ok()?.as_bool()) {
        Some(value) => Some(value),
        None => {
            if !matches!(attribute.expr.bare().kind, ExprKind::Wrong) {
                let detail = format!("\"{name}\" must be true or false, written out: it decides how the configuration is read.");
                diagnostics.push(Diagnostic::error("Literal needed", detail).with_span(Some(attribute.expr.span)));
            }
            None
        }
    }
}

/// A text in constants.
pub(crate) fn literal_text(body: &Body, name: &str, diagnostics: &mut Diagnostics) -> Option<String> {
    let attribute = body.attribute(name)?;
    match constant(&attribute.expr).and_then(|value| convert(&value, &Type::String).ok()?.as_str().map(str::to_owned)) {
        Some(text) => Some(text),
        None => {
            if !matches!(attribute.expr.bare().kind, ExprKind::Wrong) {
                let detail = format!("\"{name}\" must be made of constants alone: nothing of it may refer to anything.");
                diagnostics.push(Diagnostic::error("Literal needed", detail).with_span(Some(attribute.expr.span)));
            }
            None
        }
    }
}

/// A block of a condition and its message, such as `validation` or `precondition`.
pub(crate) fn condition(block: &Block, diagnostics: &mut Diagnostics) -> Option<Condition> {
    let what = format!("a \"{}\" block", block.kind);
    check_shape(&block.body, &Shape { what: &what, attributes: &["condition", "error_message"], blocks: &[] }, diagnostics);
    labels(block, [], diagnostics);
    let condition = required(block, "condition", diagnostics);
    let message = required(block, "error_message", diagnostics);
    Some(Condition { condition: condition?, message: message? })
}

/// An argument that must be there.
pub(crate) fn required(block: &Block, name: &str, diagnostics: &mut Diagnostics) -> Option<Expr> {
    if let Some(attribute) = block.body.attribute(name) {
        return Some(attribute.expr.clone());
    }
    missing(&[name], &format!("the block \"{}\"", block.kind), block.span, diagnostics);
    None
}

/// Reports arguments that must be there.
pub(crate) fn missing(names: &[&str], what: &str, span: Span, diagnostics: &mut Diagnostics) {
    let (summary, detail) = match names {
        [] => return,
        [one] => ("Missing argument", format!("{} needs the argument \"{one}\".", capital(what))),
        many => ("Missing arguments", format!("{} needs the arguments {}.", capital(what), suggest::listed(many.iter().copied()))),
    };
    diagnostics.push(Diagnostic::error(summary, detail).with_span(Some(span)));
}

/// Reports a second one of what has no name of its own and can be there only once.
pub(crate) fn second(what: &str, span: Span, first: Span) -> Diagnostic {
    declared_twice(what, span, first, "Only one can be there: put all of it into one of them, or remove one.")
}

/// Reports a second block of the same name.
pub(crate) fn double(what: &str, span: Span, first: Span) -> Diagnostic {
    declared_twice(what, span, first, "Rename or remove one of the two.")
}

fn declared_twice(what: &str, span: Span, first: Span, hint: &str) -> Diagnostic {
    Diagnostic::error("Declared twice", format!("{} is declared already.", capital(what)))
        .with_span(Some(span))
        .with_label(first, "first declared here")
        .with_hint(hint)
}
