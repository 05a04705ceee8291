//! `-backend-config`: the arguments that a configuration leaves open, from files and single values.

use karmaform_lang::{Context, SettingsBlock, SourceFile, Sources, VariableInputs, load};
use karmaform_model::{Catalog, Diagnostic, Object, Schema, Type, Value};

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
                let known: Vec<_> = schema.attributes.iter().map(|a| a.name).collect();
                return Err(refused(format!("-backend-config gives \"{}\", which this backend does not have.", name.trim()))
                    .with_hint(format!("It has {}.", known.join(", ")))
                    .into());
            }
            _ => found.extend(file(app, flag)?),
        }
    }
    Ok(found)
}

fn refused(detail: String) -> Diagnostic {
    Diagnostic::error("Invalid backend configuration", detail)
}

fn file(app: &App, path: &str) -> Result<Object, Stop> {
    let text = std::fs::read_to_string(app.directory.join(path))
        .map_err(|e| refused(format!("The file \"{path}\" given with -backend-config can't be read: {}.", reason(&e))))?;
    Ok(block(&text).map_err(|why| refused(format!("The file \"{path}\" given with -backend-config: {why}")))?.arguments)
}

fn expression(name: &str, text: &str) -> Result<Value, Stop> {
    let wrong = |_| refused(format!("The value of -backend-config={name}=... can't be read as HCL."));
    let block = block(&format!("{name} = {text}")).map_err(wrong)?;
    block.arguments.get(name).cloned().ok_or_else(|| wrong(String::new()).into())
}

/// Reads arguments as if they stood in the block.
fn block(text: &str) -> Result<SettingsBlock, String> {
    let before = "karmaform {\nbackend \"x\" {\n";
    let mut sources = Sources::default();
    sources.add(SourceFile { path: String::new(), text: format!("{before}{text}\n}}\n}}\n") });
    let (config, wrong) = load(&sources, &VariableInputs::default(), &Context::alone(), &Catalog::default());
    if let Some(first) = wrong.iter().find(|d| d.is_error()) {
        let start = first.span.map_or(0, |s| s.start as usize).saturating_sub(before.len());
        let line = text.get(..start.min(text.len())).unwrap_or_default().matches('\n').count() + 1;
        return Err(format!("line {line}: {}: {}", first.summary, first.detail));
    }
    config.settings.backend.ok_or_else(|| "it has no arguments.".to_owned())
}
