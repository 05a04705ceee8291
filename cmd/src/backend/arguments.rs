//! The arguments of a block in the settings, checked against its schema.

use std::collections::BTreeMap;

use karmaform_lang::SettingsBlock;
use karmaform_model::{Attribute, Diagnostic, Diagnostics, Object, Presence, Schema, Span, Value, convert, listed, nearest};

/// The arguments that were written, with where they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The arguments; nested blocks are objects.
    pub(crate) arguments: Object,
    /// Where each stands, for those in the configuration.
    pub(crate) spans: BTreeMap<String, Span>,
    /// Where the block stands.
    pub(crate) span: Option<Span>,
}

impl From<&SettingsBlock> for Given {
    fn from(block: &SettingsBlock) -> Self {
        Self { arguments: block.arguments.clone(), spans: block.spans.clone(), span: Some(block.span) }
    }
}

/// A block, as messages call it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlockName<'a> {
    /// `backend "KIND"`
    Backend(&'a str),
    /// `config` of a data source that reads another state, which the backend of this kind keeps.
    Config(&'a str),
    /// `encryption`
    Encryption,
}

impl BlockName<'_> {
    fn refused(self, detail: String) -> Diagnostic {
        let summary = match self {
            Self::Backend(_) | Self::Config(_) => "Invalid backend configuration",
            Self::Encryption => "Invalid encryption configuration",
        };
        Diagnostic::error(summary, detail)
    }

    /// What to do where an argument is missing.
    fn to_give(self, name: &str) -> String {
        match self {
            Self::Config(_) => "Write it in config.".to_owned(),
            Self::Backend(_) | Self::Encryption => {
                format!("Write it in the block, or give it with: karmaform init -backend-config={name}=...")
            }
        }
    }
}

impl std::fmt::Display for BlockName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Backend(kind) | Self::Config(kind) => write!(f, "backend \"{kind}\""),
            Self::Encryption => f.write_str("encryption block"),
        }
    }
}

/// The arguments as the schema has them: of their types, absent ones with their default or null.
///
/// # Errors
/// One diagnostic for each that is unknown, of a wrong type, or missing.
pub(crate) fn checked(block: BlockName<'_>, schema: &Schema, given: &Given) -> Result<Object, Diagnostics> {
    let mut wrong = Diagnostics::new();
    for name in given.arguments.keys().filter(|n| schema.attribute(n).is_none()) {
        let hint = meant(name, schema);
        let diagnostic = block.refused(format!("The {block} has no argument \"{name}\"."));
        wrong.push(diagnostic.with_span(given.spans.get(name).copied().or(given.span)).with_hint(hint));
    }
    let mut arguments = Object::new();
    for attribute in &schema.attributes {
        let span = given.spans.get(attribute.name).copied().or(given.span);
        match one(block, attribute, given.arguments.get(attribute.name)) {
            Ok(value) => drop(arguments.insert(attribute.name.to_owned(), value)),
            Err(diagnostic) => wrong.push(diagnostic.with_span(span)),
        }
    }
    if wrong.is_empty() { Ok(arguments) } else { Err(wrong) }
}

/// What may be meant by an argument that is not there.
pub(super) fn meant(name: &str, schema: &Schema) -> String {
    let known = schema.attributes.iter().map(|a| a.name);
    nearest(name, known.clone()).map_or_else(|| format!("It has {}.", listed(known)), |meant| format!("Did you mean \"{meant}\"?"))
}

fn one(block: BlockName<'_>, attribute: &Attribute, given: Option<&Value>) -> Result<Value, Diagnostic> {
    let refused = |detail: String| block.refused(detail);
    let name = attribute.name;
    let Some(given) = given.filter(|v| !v.is_null()) else {
        if attribute.presence == Presence::Required {
            return Err(refused(format!("The {block} needs the argument \"{name}\".")).with_hint(block.to_give(name)));
        }
        return Ok(attribute.default.clone().unwrap_or_else(|| Value::null(attribute.ty.clone())));
    };
    if !given.is_wholly_known() {
        return Err(refused(format!("The value of \"{name}\" must be known before planning."))
            .with_hint("Where it comes from a variable, give it by KF_VAR_<name> or in a variables file: not every command takes -var."));
    }
    // The directory remembers where the state is, without secrets.
    if !attribute.secret && given.contains_ephemeral() {
        let detail =
            format!("\"{name}\" is remembered in the directory, and its value is made of an ephemeral one, which is of one run alone.");
        return Err(refused(detail).with_hint("Make it of other values, or give it with: karmaform init -backend-config"));
    }
    let value = convert(given, &attribute.ty).map_err(|e| refused(format!("The argument \"{name}\": {e}.")))?;
    Ok(value.secret_if(attribute.secret))
}
