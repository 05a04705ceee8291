//! One call: arguments are counted, converted and checked, then the body runs, then the marks are put back.

use karmaform_model::{ConvertError, Marks, Value, convert};

use super::arguments::{Answer, Arguments, FunctionError, conversion};
use super::definition::{Function, Shape};
use crate::Context;

/// Calls a function with evaluated arguments.
pub(super) fn run(function: &Function, given: &[Value], context: &Context) -> Answer {
    count(function, given.len())?;
    let Some(body) = function.body else {
        return Err(FunctionError::new(format!("{} takes expressions and can't be called with plain values", function.name)));
    };
    let mut marks = Marks::default();
    let mut undecided = false;
    // An argument that is fine as it is stays where it is: a map of ten thousand entries is not copied for one lookup.
    let mut converted: Vec<Option<Value>> = Vec::with_capacity(given.len());
    for (i, value) in given.iter().enumerate() {
        let Some(parameter) = function.parameter(i) else { continue };
        if value.is_null() && !parameter.allow_null {
            return Err(FunctionError::at(i, "must not be null"));
        }
        if !parameter.kinds.has(value) {
            return Err(FunctionError::at(i, parameter.kinds.required()));
        }
        let mut new = match parameter.shape {
            Shape::Any => None,
            shape => Some(convert(value, &shape.ty()).map_err(|e| FunctionError::at(i, misfit(&e, value)))?),
        };
        if !parameter.allow_marks && value.all_marks().any() {
            new = Some(new.unwrap_or_else(|| value.clone()).without_marks());
            marks |= value.all_marks();
        }
        // A set with unknown elements has become an unknown list.
        undecided |= new.as_ref().unwrap_or(value).is_unknown() && !parameter.allow_unknown;
        converted.push(new);
    }
    let values = converted.iter().zip(given).map(|(new, old)| new.as_ref().unwrap_or(old)).collect();
    let arguments = Arguments { function, values, given, context };
    if undecided {
        // Marks that the body would have placed go on the whole: the parts they belong to are not there yet.
        let marks = given.iter().fold(marks, |all, v| all | v.all_marks());
        return Ok(arguments.unknown().marked(marks));
    }
    body(&arguments).map(|result| result.marked(marks))
}

fn count(function: &Function, given: usize) -> Result<(), FunctionError> {
    let most = function.parameters.len();
    let least = most - function.optional.min(most);
    if given < least {
        let missing = function.parameters.get(given).map_or("", |p| p.name);
        let wanted = if least == most && function.rest.is_none() { "needs" } else { "needs at least" };
        return Err(FunctionError::new(format!("{} {wanted} {}, and \"{missing}\" is missing", function.name, plural(least))));
    }
    if given > most && function.rest.is_none() {
        let takes = if most == 0 { "takes no arguments".to_owned() } else { format!("takes at most {}", plural(most)) };
        return Err(FunctionError::at(most, format!("{} {takes}, but has {given}", function.name)));
    }
    Ok(())
}

fn plural(count: usize) -> String {
    if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") }
}

/// A string fits a number or bool or not by its content, so naming the types alone would puzzle.
fn misfit(error: &ConvertError, value: &Value) -> String {
    let message = conversion(error, value.all_marks().any());
    if value.as_str().is_some() && (message.starts_with("number") || message.starts_with("bool")) {
        format!("{message} that does not read as one")
    } else {
        message
    }
}
