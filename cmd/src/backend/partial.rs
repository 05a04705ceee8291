//! `-backend-config`: the arguments that a configuration leaves open, from files and single values.

use karmaform_lang::{Context, SettingsBlock, SourceFile, Sources, VariableInputs, load};
use karmaform_model::{Catalog, Diagnostic, Diagnostics, Object, Schema, Span, Type, Value};

use super::arguments::meant;
use crate::app::{App, Stop};
use crate::disk::reason;

/// The arguments that these flags give, later ones over earlier ones.
///
/// # Errors
/// For a file that can't be read, and for text that is no value.
pub(crate) fn arguments(app: &App, schema: &Schema, flags: &[String]) -> Result<Object, Stop> {
    let mut found = Object::new();
    for flag in flags {
        match flag.split_once('=') {
            // A file may have this character in its name, but hardly in a place where the rest is an argument.
            Some((name, value)) if schema.attribute(name.trim()).is_some() => {
                let name = name.trim();
                let is_text = schema.type_of(name).is_none_or(|t| t == Type::String);
                let value = if is_text { Value::from(value) } else { expression(name, value)? };
                found.insert(name.to_owned(), value);
            }
            Some((name, _)) if !app.directory.join(flag).exists() => {
                let name = name.trim();
                return Err(refused(format!("-backend-config gives \"{name}\", which this backend does not have."))
                    .with_hint(meant(name, schema))
                    .into());
            }
            _ => found.extend(file(app, schema, flag)?),
        }
    }
    Ok(found)
}

fn refused(detail: String) -> Diagnostic {
    Diagnostic::error("Invalid backend configuration", detail)
}

fn file(app: &App, schema: &Schema, path: &str) -> Result<Object, Stop> {
    let text = std::fs::read_to_string(app.directory.join(path))
        .map_err(|e| refused(format!("The file \"{path}\" given with -backend-config can't be read: {}.", reason(&e))))?;
    let wrong = |why: String| refused(format!("The file \"{path}\" given with -backend-config: {why}"));
    let block = block(&text).map_err(wrong)?;
    let mut unknown: Vec<_> = block.arguments.keys().filter(|name| schema.attribute(name).is_none()).collect();
    unknown.sort_by_key(|name| block.spans.get(*name).map(|span| span.start));
    let told: Diagnostics = unknown
        .into_iter()
        .map(|name| {
            let line = block.spans.get(name).map_or(1, |span| line(&text, *span));
            wrong(format!("line {line}: this backend has no argument \"{name}\".")).with_hint(meant(name, schema))
        })
        .collect();
    if told.has_errors() { Err(told.into()) } else { Ok(block.arguments) }
}

fn expression(name: &str, text: &str) -> Result<Value, Stop> {
    let wrong = |why: String| {
        refused(format!("The value of -backend-config={name}=... can't be read as HCL: {why}"))
            .with_hint(format!("Give a value as it would stand in the block, in quotes of the shell: -backend-config='{name}=...'."))
    };
    let block = block(&format!("{name} = {text}")).map_err(wrong)?;
    block.arguments.get(name).cloned().ok_or_else(|| wrong("it is no value.".to_owned()).into())
}

/// What arguments of a file are put into.
const AROUND: &str = "karmaform {\nbackend \"x\" {\n";

/// The number of the line in a text that was put into [`AROUND`].
fn line(text: &str, span: Span) -> usize {
    let start = (span.start as usize).saturating_sub(AROUND.len());
    text.get(..start.min(text.len())).unwrap_or_default().matches('\n').count() + 1
}

/// True if a sentence has a word of the values on the lines of this place of a text that was put into [`AROUND`], or may have.
fn repeats(sentence: &str, text: &str, span: Option<Span>) -> bool {
    let Some(span) = span else { return true };
    let at = |byte: u32| (byte as usize).saturating_sub(AROUND.len()).min(text.len());
    let (Some(before), Some(behind)) = (text.get(..at(span.start)), text.get(at(span.end)..)) else { return true };
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    let end = behind.find('\n').map_or(text.len(), |n| at(span.end) + n);
    let lines = text.get(start..end).unwrap_or(text);
    // The name of the argument is no secret.
    let values = lines.split_once('=').map_or(lines, |(_, values)| values);
    values.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| !word.is_empty() && sentence.contains(word))
}

/// Reads arguments as if they stood in the block.
fn block(text: &str) -> Result<SettingsBlock, String> {
    let mut sources = Sources::default();
    sources.add(SourceFile { path: String::new(), text: format!("{AROUND}{text}\n}}\n}}\n") });
    let (config, wrong) = load(&sources, &VariableInputs::default(), &Context::alone(), &Catalog::default());
    if let Some(first) = wrong.iter().find(|d| d.is_error()) {
        let line = first.span.map_or(1, |span| line(text, span));
        // A text that nobody put into quotes may be a secret, and is taken for a name.
        let repeats_it = repeats(&first.detail, text, first.span);
        return Err(if repeats_it {
            format!("line {line}: {}.", first.summary)
        } else {
            format!("line {line}: {}: {}", first.summary, first.detail)
        });
    }
    config.settings.backend.ok_or_else(|| "it has no arguments.".to_owned())
}
