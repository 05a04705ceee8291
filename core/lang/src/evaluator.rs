//! The evaluator: what callers see of evaluation, and what it remembers during a pass.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_model::{Address, Diagnostic, Diagnostics, FileId, Mode, Object, Type, Value};

use crate::budget::bounded;
use crate::config::Config;
use crate::eval::Errors;
use crate::modules::Sort;
use crate::moment::Moment;
use crate::scope::{Scope, Site};
use crate::shown::shows_a_secret;
use crate::syntax::{self, Template};
use crate::{attributes, conditions, ephemeral, statics};

/// Gives the values of instances to an [`Evaluator`].
pub trait Resolver {
    /// The instance's object; an unknown value, or an object with unknown parts, while it is not known.
    fn instance(&self, address: &Address) -> Value;

    /// False for what the configuration has and nothing else: it is not in the state, and nobody is about to make it.
    fn is_there(&self, _: &Address) -> bool {
        true
    }
}

/// A resolver that knows nothing yet.
pub struct NothingKnown;

impl Resolver for NothingKnown {
    fn instance(&self, _: &Address) -> Value {
        Value::unknown_not_null(Type::Any)
    }
}

/// Evaluates one configuration against one [`Resolver`]. It remembers locals, so make one per pass.
pub struct Evaluator<'a> {
    pub(crate) config: &'a Config,
    pub(crate) resolver: &'a dyn Resolver,
    pub(crate) memo: Memo,
    /// Of an apply; a plan has none.
    pub(crate) moment: Option<&'a Moment>,
}

/// Values by module and sort, and by name.
type Named = BTreeMap<(usize, Sort), BTreeMap<String, Arc<Value>>>;

/// What an evaluator remembers.
#[derive(Default)]
pub(crate) struct Memo {
    /// Named values by the instance of a module that they are in.
    pub values: RefCell<Named>,
    /// Errors of named values: reported once, and never caught by a `try` that happened to come first.
    pub late: RefCell<Vec<Diagnostic>>,
    /// `for_each` of blocks and modules whose values were not known at load.
    pub each: RefCell<BTreeMap<Address, Arc<Value>>>,
    pub templates: RefCell<BTreeMap<String, Result<Template, String>>>,
    /// What an instance looks like before it is known, by type.
    pub unknown: RefCell<BTreeMap<(Mode, String), Value>>,
    /// How many template files are being evaluated inside of each other.
    pub depth: Cell<usize>,
    /// How many rounds the outermost `for` at hand has taken, with those within.
    pub rounds: Cell<usize>,
    /// There is a `for` around what is evaluated.
    pub loops: Cell<bool>,
    /// How often calls were made that give something else each time, by place.
    pub turns: RefCell<BTreeMap<String, usize>>,
}

/// The file id of what was typed in by hand.
pub(crate) const TYPED: FileId = FileId(u32::MAX);

impl<'a> Evaluator<'a> {
    /// Of this configuration.
    pub fn new(config: &'a Config, resolver: &'a dyn Resolver) -> Self {
        Self::with_memo(config, resolver, Memo::default())
    }

    pub(crate) fn with_memo(config: &'a Config, resolver: &'a dyn Resolver, memo: Memo) -> Self {
        Self { config, resolver, memo, moment: None }
    }

    /// The arguments of an instance: every configurable attribute and block of its schema, null or its default if not written, converted
    /// to the schema's types and with secret marks. Attributes that only the provider gives are left out.
    pub fn arguments(&self, instance: &Address) -> (Object, Diagnostics) {
        let mut errors = Errors::default();
        let object = attributes::arguments(self, instance, &mut errors);
        (object, self.finish(errors).into_iter().map(|d| d.at(instance)).collect())
    }

    /// The value of an output.
    pub fn output(&self, name: &str) -> (Value, Diagnostics) {
        let Some(output) = self.config.outputs.get(name) else {
            return (Value::null(Type::Any), Diagnostics::new());
        };
        let mut errors = Errors::default();
        let site = Site::default();
        let scope = Scope::new(&site);
        conditions::preconditions(self, &output.preconditions, conditions::OUTPUT_PRECONDITION, &scope, &mut errors);
        let value = self.eval(&output.value, &scope, &mut errors);
        let value = bounded(value, &format!("The output \"{name}\""), output.value.span, &mut errors);
        let is_shown = shows_a_secret(self, &output.value, &value, &scope);
        if is_shown && !output.sensitive {
            errors.push(
                Diagnostic::error(
                    "Output of a secret value",
                    format!("The output \"{name}\" has a value that is secret or made of secrets, and would show it."),
                )
                .with_span(Some(output.value.span))
                .with_hint("Add sensitive = true to the output, or wrap what is harmless in nonsensitive()."),
            );
        }
        if value.contains_ephemeral() {
            errors.push(ephemeral::refused(&format!("The output \"{name}\""), output.value.span));
        }
        (value.secret_if(output.sensitive), self.finish(errors))
    }

    /// An expression typed in by hand. Its diagnostics have no places.
    pub fn expression(&self, text: &str) -> (Value, Diagnostics) {
        let (expr, diagnostics) = syntax::parse_expression(TYPED, text);
        let unknown = || Value::unknown(Type::Any);
        let mut all: Vec<Diagnostic> = diagnostics.into_iter().collect();
        let mut value = unknown();
        if !all.iter().any(Diagnostic::is_error) {
            all.extend(statics::check_typed(self.config, &expr));
        }
        if !all.iter().any(Diagnostic::is_error) {
            let mut errors = Errors::default();
            value = self.eval(&expr, &Scope::new(&Site::default()), &mut errors);
            all.extend(self.finish(errors));
        }
        if all.iter().any(Diagnostic::is_error) {
            value = unknown();
        }
        let here = |file: FileId| file != TYPED;
        let placeless = all.into_iter().map(|mut d| {
            d.span = d.span.filter(|s| here(s.file));
            d.labels.retain(|(s, _)| here(s.file));
            d
        });
        (value, placeless.collect())
    }

    /// What came up, with what came up in locals first.
    pub(crate) fn finish(&self, errors: Errors) -> Diagnostics {
        let late = std::mem::take(&mut *self.memo.late.borrow_mut());
        late.into_iter().chain(errors.list).collect()
    }
}
