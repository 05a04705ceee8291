//! The %-verbs of `format`: `%`, flags, width, precision, `[n]`, letter, in this order.

use karmaform_model::{Number, escape_json, to_json_signed};
use unicode_segmentation::UnicodeSegmentation;

use super::numerals;
use super::prelude::*;

/// Widths and precisions beyond this only fill the memory.
const WIDEST: usize = 10_000;

/// One verb of a format.
#[derive(Default)]
pub(super) struct Verb<'a> {
    /// As it is written, for messages.
    text: &'a str,
    /// Where it begins.
    at: usize,
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) space: bool,
    pub(super) sharp: bool,
    pub(super) zero: bool,
    width: Option<usize>,
    pub(super) precision: Option<usize>,
    /// The number of its argument, from 1, if it is written.
    index: Option<usize>,
    pub(super) letter: char,
}

/// The text with each verb replaced by its argument. Unknown behind the first argument that is unknown.
pub(super) fn format(format: &str, arguments: &[&Value]) -> Answer {
    let mut out = String::new();
    let (mut at, mut next, mut used, mut known) = (0, 0, 0, true);
    while let Some(found) = format[at..].find('%') {
        let literal = &format[at..at + found];
        at += found;
        let verb = parse(format, at)?;
        if known {
            out.push_str(literal);
        }
        at += verb.text.len();
        if verb.letter == '%' {
            if known {
                out.push('%');
            }
            continue;
        }
        let index = verb.index.unwrap_or(next + 1);
        next = index;
        used = used.max(index);
        let value = arguments.get(index - 1).ok_or_else(|| {
            let have = if arguments.len() == 1 { "only 1".to_owned() } else { format!("only {}", arguments.len()) };
            FunctionError::at(0, format!("{} needs argument {index}, but there is {have}", verb.name()))
        })?;
        known &= value.is_wholly_known();
        if known {
            out.push_str(&render(&verb, value).map_err(|message| FunctionError::at(index, message))?);
        }
    }
    known &= arguments.iter().all(|value| value.is_wholly_known());
    if known && used < arguments.len() {
        let are = if used == 1 { "is" } else { "are" };
        return Err(FunctionError::at(used + 1, format!("only {used} of the {} arguments {are} used by the format", arguments.len())));
    }
    if !known {
        return Ok(unknown_with_prefix(&out));
    }
    out.push_str(&format[at..]);
    Ok(string(out))
}

impl Verb<'_> {
    fn name(&self) -> String {
        format!("the verb {:?} at {}", self.text, self.at)
    }

    /// The text brought to the width.
    fn pad(&self, text: &str) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(text.graphemes(true).count());
        let fill = if self.zero { "0" } else { " " }.repeat(missing);
        let is_number = matches!(self.letter, 'd' | 'b' | 'o' | 'x' | 'X' | 'e' | 'E' | 'f' | 'g' | 'G');
        let (sign, digits) = text.split_at(if is_number { self.sign_length(text) } else { 0 });
        match (self.zero, self.minus) {
            // Numbers have no zeros behind them, other texts do.
            (true, minus) if is_number || !minus => format!("{sign}{fill}{digits}"),
            (_, true) => format!("{text}{fill}"),
            _ => format!("{fill}{text}"),
        }
    }

    /// The length of what stands in front of the digits of a number: its sign, and its prefix like `0x`.
    fn sign_length(&self, text: &str) -> usize {
        let digits = text.trim_start_matches(['+', '-', ' ']);
        let prefixed = self.sharp && ["0x", "0X", "0b"].iter().any(|prefix| digits.starts_with(prefix));
        text.len() - digits.len() + if prefixed { 2 } else { 0 }
    }
}

fn parse(format: &str, at: usize) -> Result<Verb<'_>, FunctionError> {
    let incomplete = || {
        let shown: String = format[at..].chars().take(8).collect();
        FunctionError::at(0, format!("{shown:?} at {at} is not complete; a percent sign itself is written %%"))
    };
    let mut verb = Verb { at, ..Verb::default() };
    let mut rest = &format[at + 1..];
    loop {
        match rest.chars().next() {
            Some('+') => verb.plus = true,
            Some('-') => verb.minus = true,
            Some(' ') => verb.space = true,
            Some('#') => verb.sharp = true,
            Some('0') => verb.zero = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let index = |rest: &mut &str| -> Option<Option<usize>> {
        let Some(inside) = rest.strip_prefix('[') else { return Some(None) };
        let (number, after) = inside.split_once(']')?;
        *rest = after;
        number.parse().ok().filter(|n| *n > 0 && !number.starts_with(['0', '+'])).map(Some)
    };
    verb.width = number(&mut rest);
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        verb.precision = Some(number(&mut rest).unwrap_or(0));
    }
    verb.index = index(&mut rest).ok_or_else(incomplete)?;
    verb.letter = rest.chars().next().ok_or_else(incomplete)?;
    // A whole number is filled with zeros only in front, and not if its digits are counted already.
    verb.zero &= !(matches!(verb.letter, 'd' | 'b' | 'o' | 'x' | 'X') && (verb.minus || verb.precision.is_some()));
    verb.text = &format[at..format.len() - rest.len() + verb.letter.len_utf8()];
    if verb.width.max(verb.precision).is_some_and(|n| n > WIDEST) {
        return Err(FunctionError::at(0, format!("{} has a width or precision of more than {WIDEST}", verb.name())));
    }
    // A percent sign has nothing between its two.
    if !"vtbdoxXeEfgGsq".contains(verb.letter) && verb.text != "%%" {
        return Err(FunctionError::at(0, format!("there is no verb {:?}, at {at}", verb.text)));
    }
    Ok(verb)
}

fn number(rest: &mut &str) -> Option<usize> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    *rest = after;
    if digits.is_empty() { None } else { Some(digits.parse().unwrap_or(usize::MAX)) }
}

fn render(verb: &Verb<'_>, value: &Value) -> Result<String, String> {
    let misfit = |wanted: &str| {
        let found = if value.is_null() { "null".to_owned() } else { a(value.ty().word()) };
        format!("{} needs {wanted}, not {found}", verb.name())
    };
    let as_type = |ty: &Type, wanted: &str| -> Result<Value, String> {
        if value.is_null() {
            return Err(misfit(wanted));
        }
        convert(value, ty).map_err(|_| misfit(wanted))
    };
    let as_number = |wanted: &str| as_type(&Type::Number, wanted).map(|v| v.as_number().cloned().unwrap_or(Number::Int(0)));
    let as_text = || as_type(&Type::String, "a string").map(|v| v.as_str().unwrap_or_default().to_owned());
    Ok(match verb.letter {
        'v' => return Ok(verb.pad(&plainly(verb, value))),
        't' => as_type(&Type::Bool, "a bool")?.as_bool().unwrap_or(false).to_string(),
        's' => verb.pad(&cut(verb, &as_text()?)),
        'q' => verb.pad(&quoted(&cut(verb, &as_text()?))),
        'd' | 'b' | 'o' | 'x' | 'X' => {
            let number = as_number("a number")?;
            let text = numerals::whole(&number, verb).ok_or_else(|| format!("{} needs a whole number", verb.name()))?;
            if text.is_empty() { text } else { verb.pad(&text) }
        }
        _ => verb.pad(&numerals::fractional(&as_number("a number")?, verb)),
    })
}

/// As `%v` shows it: strings and numbers as they are, structures as JSON.
fn plainly(verb: &Verb<'_>, value: &Value) -> String {
    match &value.kind {
        _ if verb.sharp => escape_json(&to_json_signed(value).to_string()),
        Kind::String(s) => s.clone(),
        Kind::Number(n) => numerals::fractional(n, &Verb { letter: 'g', ..Verb::default() }),
        _ => escape_json(&to_json_signed(value).to_string()),
    }
}

/// A precision of zero cuts nothing off.
fn cut(verb: &Verb<'_>, text: &str) -> String {
    match verb.precision.filter(|most| *most > 0) {
        Some(most) => text.graphemes(true).take(most).collect(),
        None => text.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    escape_json(&serde_json::Value::from(text).to_string())
}

fn a(word: &str) -> String {
    if word.starts_with('o') { format!("an {word}") } else { format!("a {word}") }
}
