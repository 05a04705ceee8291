//! Values that were given for variables: in which order, from where, and which of them nobody declared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use karmaform_model::{Address, Diagnostic, Diagnostics, FileId, Object, Severity, Span, Value};

use crate::config::Config;
use crate::source::Sources;
use crate::suggest;
use crate::syntax::{Expr, parse_values};
use crate::variables::{Declaration, VariableOrigin};

/// Values for root variables, in rising precedence.
#[derive(Clone, Default)]
pub struct VariableInputs {
    inputs: Vec<Input>,
    /// Values of variables that nobody declared are passed over.
    lenient: bool,
    /// That nobody declared what is given on the command line is a warning: it may be for another file of tests.
    pub(crate) for_tests: bool,
    /// A test makes something of these itself, so that they need not be declared.
    used: BTreeSet<String>,
    /// None is held against its type and the rules of its variable.
    unjudged: bool,
    /// None is taken: what is loaded is meant for all values.
    any_values: bool,
    /// What modules give in place of what stands in them, by their addresses.
    pub(crate) overridden: BTreeMap<Address, Arc<Object>>,
}

/// Values may be secret, so only names are written.
impl fmt::Debug for VariableInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.inputs.iter().map(|input| match input {
                Input::Text { name, origin, .. } => format!("{name} from {origin:?}"),
                Input::Value { name, .. } => format!("{name} from a test"),
                Input::File(file) => format!("file {}", file.0),
                Input::Aside(file) => format!("not file {}", file.0),
            }))
            .finish()
    }
}

#[derive(Clone)]
enum Input {
    Text { name: String, value: String, origin: VariableOrigin },
    Value { name: String, value: Value, span: Span, is_told: bool },
    File(FileId),
    Aside(FileId),
}

impl VariableInputs {
    /// A value as text, from the environment or the command line. It is taken literally if the variable is of a primitive type or has
    /// none, else read as an expression.
    pub fn text(&mut self, name: impl Into<String>, value: impl Into<String>, origin: VariableOrigin) {
        self.inputs.push(Input::Text { name: name.into(), value: value.into(), origin });
    }

    /// A variables file; its text is in the [`Sources`] under this id.
    pub fn file(&mut self, file: FileId) {
        self.inputs.push(Input::File(file));
    }

    /// A value as it is, and where it is written. `is_told`: that nobody declared the variable is worth a warning.
    pub(crate) fn value(&mut self, name: impl Into<String>, value: Value, span: Span, is_told: bool) {
        self.inputs.push(Input::Value { name: name.into(), value, span, is_told });
    }

    /// A text among the [`Sources`] that is no part of the configuration and gives no values: diagnostics point into it.
    pub fn aside(&mut self, file: FileId) {
        self.inputs.push(Input::Aside(file));
    }

    /// A module gives these outputs, and nothing that stands in it is there.
    pub(crate) fn module(&mut self, address: Address, outputs: Object) {
        self.overridden.insert(address, Arc::new(outputs));
    }

    /// The same values for another configuration, which need not know all of these variables.
    #[must_use]
    pub fn for_another(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// The same for tests, where a value on the command line may be for something else than this configuration.
    #[must_use]
    pub fn for_tests(mut self) -> Self {
        self.for_tests = true;
        self
    }

    /// A test makes something of variables of these names.
    pub(crate) fn used_by_tests(&mut self, names: BTreeSet<String>) {
        self.used = names;
    }

    /// The same for a configuration that is checked alone: whether the values fit its variables is for those who work with them.
    #[must_use]
    pub fn unjudged(mut self) -> Self {
        self.unjudged = true;
        self
    }

    /// For a configuration that is held against whatever its variables may be: none has a value, and nothing is known of how often things
    /// stand. Each block is there once, without a key. What comes of it is good for [`crate::validate`], and must not be planned.
    #[must_use]
    pub fn any_values(self) -> Self {
        Self { any_values: true, ..self.unjudged() }
    }

    pub(crate) fn is_for_any_values(&self) -> bool {
        self.any_values
    }

    /// The files that are no configuration.
    pub(crate) fn files(&self) -> impl Iterator<Item = FileId> {
        self.inputs.iter().filter_map(|input| match input {
            Input::File(file) | Input::Aside(file) => Some(*file),
            Input::Text { .. } | Input::Value { .. } => None,
        })
    }
}

/// The value that wins for one variable.
#[derive(Clone)]
pub(crate) struct Given {
    pub text: Text,
    pub origin: VariableOrigin,
    path: String,
}

/// How it is written.
#[derive(Clone)]
pub(crate) enum Text {
    /// On the command line or in the environment.
    Literal(String),
    /// In a file.
    Expression(Expr),
    /// Evaluated already, and where that stands.
    Value(Value, Span),
}

impl Given {
    /// A text as `-var` has it.
    pub(crate) fn on_the_command_line(text: &str) -> Self {
        Self { text: Text::Literal(text.to_owned()), origin: VariableOrigin::CommandLine, path: String::new() }
    }

    /// Where it stands.
    pub(crate) fn span(&self) -> Option<Span> {
        match &self.text {
            Text::Literal(_) => None,
            Text::Expression(expr) => Some(expr.span),
            Text::Value(_, span) => Some(*span),
        }
    }

    /// Where it came from, in words.
    pub(crate) fn source(&self) -> String {
        match &self.origin {
            VariableOrigin::Environment(name) => format!("the environment ({name})"),
            VariableOrigin::File(_) => self.path.clone(),
            VariableOrigin::CommandLine => "the command line (-var)".to_owned(),
        }
    }
}

/// All given values.
#[derive(Default)]
pub(crate) struct AllGiven {
    pub values: BTreeMap<String, Given>,
    /// Those that nobody declared, where tests may ask for them.
    pub undeclared: BTreeMap<String, Given>,
    /// A variables file did not parse, so what seems to have no value may have one there.
    pub incomplete: bool,
    /// Whether values fit is not said.
    pub unjudged: bool,
}

/// Reads all given values; later ones win.
pub(crate) fn collect(sources: &Sources, inputs: &VariableInputs, config: &Config, diagnostics: &mut Diagnostics) -> AllGiven {
    // Where a configuration file is broken, what seems undeclared may be declared there.
    let (declared, broken) = (&config.declared, config.is_incomplete() || inputs.lenient);
    let mut given = AllGiven { unjudged: inputs.unjudged, ..AllGiven::default() };
    for input in &inputs.inputs {
        match input {
            Input::Text { name, value, origin } => {
                let is_declared = declared.contains_key(name);
                if !is_declared && *origin == VariableOrigin::CommandLine && !broken && !inputs.used.contains(name) {
                    let error = undeclared(name, declared);
                    diagnostics.push(if inputs.for_tests { Diagnostic { severity: Severity::Warning, ..error } } else { error });
                }
                let all = if is_declared { &mut given.values } else { &mut given.undeclared };
                let text = Text::Literal(value.clone());
                all.insert(name.clone(), Given { text, origin: origin.clone(), path: String::new() });
            }
            Input::Value { name, value, span, is_told } => {
                if declared.contains_key(name) {
                    let (text, origin) = (Text::Value(value.clone(), *span), VariableOrigin::File(span.file));
                    given.values.insert(name.clone(), Given { text, origin, path: sources.get(span.file).path.clone() });
                } else if *is_told && !config.is_incomplete() && !inputs.used.contains(name) {
                    diagnostics.push(without_use(name, *span, declared));
                }
            }
            Input::File(file) => {
                let is_told = |name: &str| !broken && !inputs.used.contains(name);
                read_file(sources, *file, config, &is_told, &mut given, diagnostics);
            }
            Input::Aside(_) => {}
        }
    }
    given
}

fn undeclared(name: &str, declared: &BTreeMap<String, Declaration>) -> Diagnostic {
    let error = Diagnostic::error(
        "Value for an undeclared variable",
        format!("\"{name}\" was set with -var, but no variable of that name is declared."),
    );
    let hint = suggest::hint(name, declared.keys().map(String::as_str));
    error.with_hint(hint.unwrap_or_else(|| format!("Declare it: variable \"{name}\" {{}}; or remove the flag.")))
}

fn without_use(name: &str, span: Span, declared: &BTreeMap<String, Declaration>) -> Diagnostic {
    let warning = Diagnostic::warning(
        "Value for an undeclared variable",
        format!("\"{name}\" is set here, but no variable of that name is declared."),
    );
    let hint = suggest::hint(name, declared.keys().map(String::as_str));
    warning.with_span(Some(span)).with_hint(hint.unwrap_or_else(|| "Remove the line, or declare the variable.".to_owned()))
}

/// `is_told`: that nobody declared a variable of this name is worth a warning.
fn read_file(
    sources: &Sources,
    file: FileId,
    config: &Config,
    is_told: &dyn Fn(&str) -> bool,
    given: &mut AllGiven,
    diagnostics: &mut Diagnostics,
) {
    let declared = &config.declared;
    let source = sources.get(file);
    let parsed = parse_values(file, source, &config.registry);
    // What is meant as a value may stand in a block.
    given.incomplete |= parsed.broken || !parsed.body.blocks.is_empty();
    diagnostics.extend(parsed.diagnostics);
    for block in &parsed.body.blocks {
        diagnostics.push(
            Diagnostic::error("Block in a variables file", "A variables file holds only NAME = VALUE lines.")
                .with_span(Some(block.span))
                .with_hint(if block.kind == "variable" {
                    "Variables are declared in a configuration file; here they get values."
                } else {
                    "For an object write NAME = { ... } with the equals sign."
                }),
        );
    }
    for attribute in parsed.body.attributes {
        let is_declared = declared.contains_key(&attribute.name);
        if !is_declared && is_told(&attribute.name) {
            diagnostics.push(without_use(&attribute.name, attribute.name_span, declared));
        }
        let all = if is_declared { &mut given.values } else { &mut given.undeclared };
        let text = Text::Expression(attribute.expr);
        all.insert(attribute.name, Given { text, origin: VariableOrigin::File(file), path: source.path.clone() });
    }
}
