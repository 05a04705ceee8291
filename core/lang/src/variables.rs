//! Variables: their declarations; of the root module where values come from, and what is checked about them.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, FileId, Marks, Object, Span, Type, Value, convert};

use crate::conditions::{self, Verdict};
use crate::config::{Condition, Config, Variable};
use crate::decode::{self, Shape, check_shape, literal_bool, literal_text};
use crate::eval::Errors;
use crate::evaluator::{Evaluator, NothingKnown, TYPED};
use crate::given::{AllGiven, Given, Text};
use crate::modules::{Name, names_of};
use crate::scope::{Scope, Site};
use crate::statics::{self, Place};
use crate::syntax::{self, Block, Expr, ExprKind};
use crate::types::type_of;

/// Where a variable's value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableOrigin {
    /// An environment variable, with its name.
    Environment(String),
    /// A variables file.
    File(FileId),
    /// `-var`
    CommandLine,
}

/// A declared variable, before it has a value.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub ty: Type,
    /// `type` was written.
    typed: bool,
    /// What is written as its `type` is none, so nobody knows what fits.
    untold: bool,
    /// Something is wrong with its block: that it has no value may follow from that.
    pub is_wrong: bool,
    pub default: Option<Value>,
    pub description: Option<String>,
    pub sensitive: bool,
    pub ephemeral: bool,
    pub nullable: bool,
    /// What its value must be, as far as variables tell.
    pub validations: Vec<Condition>,
    /// The same where it is made of blocks or modules, which are known later.
    pub later: Vec<Condition>,
    pub span: Span,
}

impl Declaration {
    /// All that must hold of its value.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.validations.iter().chain(&self.later)
    }

    /// The marks of its value.
    pub(crate) fn marks(&self) -> Marks {
        Marks { secret: self.sensitive, ephemeral: self.ephemeral }
    }
}

/// What a `module` block says of itself: no value could be given to a variable of such a name.
const RESERVED: [&str; 8] = ["source", "version", "providers", "count", "for_each", "depends_on", "lifecycle", "locals"];

const CONSTANT: &str = "Values here are constants: they can't refer to anything.";

/// Reads a `variable` block.
pub(crate) fn declare(config: &Config, block: &Block, diagnostics: &mut Diagnostics) -> Option<(String, Declaration)> {
    let mut found = Diagnostics::new();
    let declared = read(config, block, &mut found);
    let is_wrong = found.has_errors();
    diagnostics.extend(found);
    declared.map(|(name, declaration)| (name, Declaration { is_wrong, ..declaration }))
}

fn read(config: &Config, block: &Block, diagnostics: &mut Diagnostics) -> Option<(String, Declaration)> {
    let [label] = decode::labels(block, ["NAME"], diagnostics)?;
    let name = decode::name(label, diagnostics)?;
    if RESERVED.contains(&name) {
        let detail = format!("No variable may be called \"{name}\": the word has a meaning of its own in \"module\" blocks.");
        let error = Diagnostic::error("Reserved name", detail).with_span(Some(label.span));
        diagnostics.push(error.with_hint("Choose another name."));
    }
    let body = &block.body;
    let attributes = &["type", "default", "description", "sensitive", "ephemeral", "nullable"];
    check_shape(body, &Shape { what: "a \"variable\" block", attributes, blocks: &["validation"] }, diagnostics);
    let constant = |expr: &Expr| constant(config, expr);
    let mut untold = false;
    let ty = body.attribute("type").map(|a| {
        let (ty, found) = type_of(&a.expr, &constant);
        untold = found.has_errors() || matches!(a.expr.kind, ExprKind::Wrong);
        diagnostics.extend(found);
        ty
    });
    let typed = ty.is_some();
    let ty = ty.unwrap_or(Type::Any);
    let nullable = literal_bool(body, "nullable", diagnostics).unwrap_or(true);
    let default = body.attribute("default").map(|attribute| {
        let (value, found) = constant(&attribute.expr);
        let failed = found.has_errors();
        diagnostics.extend(found);
        let unknown = Value::unknown(ty.clone());
        match convert(&value, &ty) {
            _ if failed || untold => unknown,
            Ok(value) if value.is_null() && !nullable => {
                let detail = format!("The variable \"{name}\" is not nullable, so its default must not be null.");
                diagnostics.push(Diagnostic::error("Invalid default", detail).with_span(Some(attribute.expr.span)));
                unknown
            }
            Ok(value) => value,
            Err(error) => {
                let detail = format!("The default of \"{name}\" does not fit its type {ty}: {error}.");
                diagnostics.push(Diagnostic::error("Invalid default", detail).with_span(Some(attribute.expr.span)));
                unknown
            }
        }
    });
    let declaration = Declaration {
        typed,
        untold,
        is_wrong: false,
        default,
        description: literal_text(body, "description", diagnostics),
        sensitive: literal_bool(body, "sensitive", diagnostics).unwrap_or_default(),
        ephemeral: literal_bool(body, "ephemeral", diagnostics).unwrap_or_default(),
        nullable,
        validations: body.blocks("validation").filter_map(|b| decode::condition(b, diagnostics)).collect(),
        later: Vec::new(),
        span: block.span,
        ty,
    };
    Some((name.to_owned(), declaration))
}

/// The value of an expression that may not refer to anything.
pub(crate) fn constant(config: &Config, expr: &Expr) -> (Value, Diagnostics) {
    let place = Place { constant: Some(CONSTANT), ..Place::default() };
    let mut diagnostics = statics::check(config, expr, place, &mut Vec::new());
    if diagnostics.has_errors() {
        return (crate::eval::unknown(), diagnostics);
    }
    let evaluator = Evaluator::new(config, &NothingKnown);
    let mut errors = Errors::default();
    let value = evaluator.eval(expr, &Scope::new(&Site { closed: true, ..Site::default() }), &mut errors);
    diagnostics.extend(evaluator.finish(errors));
    (value, diagnostics)
}

/// What is said of a variable without a value.
pub const MISSING_VARIABLE: &str = "No value for a required variable";

/// Gives all declared variables their values; names those that have none.
pub(crate) fn assign(
    config: &Config,
    declared: &BTreeMap<String, Declaration>,
    given: &AllGiven,
    diagnostics: &mut Diagnostics,
) -> (BTreeMap<String, Variable>, Vec<String>) {
    let mut variables = BTreeMap::new();
    let mut missing = Vec::new();
    for (name, declaration) in declared {
        let (incomplete, unjudged) = (given.incomplete, given.unjudged);
        let given = given.values.get(name);
        let mut raw = None;
        let value = match (given, &declaration.default) {
            // All that could be said of its value follows from the mistake in its type.
            _ if declaration.untold => Value::unknown(declaration.ty.clone()),
            (None, None) if declaration.is_wrong => Value::unknown(declaration.ty.clone()),
            (Some(given), _) if unjudged => value_of(config, name, declaration, given, &mut raw, &mut Diagnostics::new()),
            (Some(given), _) => value_of(config, name, declaration, given, &mut raw, diagnostics),
            (None, Some(default)) => default.clone(),
            (None, None) => {
                if !incomplete {
                    diagnostics.push(no_value(name, declaration));
                }
                missing.push(name.clone());
                Value::unknown(declaration.ty.clone())
            }
        };
        let variable = Variable {
            value: value.marked(declaration.marks()),
            ty: declaration.ty.clone(),
            sensitive: declaration.sensitive,
            ephemeral: declaration.ephemeral,
            description: declaration.description.clone(),
            default: declaration.default.clone(),
            given: raw,
            origin: given.map(|g| g.origin.clone()),
            span: declaration.span,
        };
        variables.insert(name.clone(), variable);
    }
    (variables, missing)
}

fn no_value(name: &str, declaration: &Declaration) -> Diagnostic {
    let about = declaration.description.as_deref().map(|d| format!(" It is described as: {d}")).unwrap_or_default();
    Diagnostic::error(MISSING_VARIABLE, format!("The variable \"{name}\" has no default and was not set.{about}"))
        .with_span(Some(declaration.span))
        .with_hint(format!("Set it with -var {name}=..., in a variables file, or by KF_VAR_{name}; or give it a default."))
}

/// What a text is for a variable of the root, as `-var` has it; `None` if there is no such variable, or it does not fit.
pub fn given_as(config: &Config, name: &str, text: &str) -> Option<Value> {
    let declaration = config.declared.get(name)?;
    let mut wrong = Diagnostics::new();
    let value = value_of(config, name, declaration, &Given::on_the_command_line(text), &mut None, &mut wrong);
    (!wrong.has_errors()).then_some(value)
}

/// What is given to variables that nobody declares. As in Terraform such a text is an expression; one that is none stands for itself. What can't be evaluated
/// is left out.
pub(crate) fn of_nobody(config: &Config, given: &AllGiven) -> Object {
    let value = |given: &Given| match &given.text {
        Text::Literal(text) => {
            let (expr, found) = syntax::parse_expression(TYPED, text);
            let value = if found.has_errors() { None } else { sure(config, &expr) };
            Some(value.unwrap_or_else(|| Value::from(text.as_str())))
        }
        Text::Expression(expr) => sure(config, expr),
        Text::Value(value, _) => Some(value.clone()),
    };
    given.undeclared.iter().filter_map(|(name, given)| Some((name.clone(), value(given)?))).collect()
}

/// The value of a constant expression, if nothing is wrong with it.
fn sure(config: &Config, expr: &Expr) -> Option<Value> {
    let (value, found) = constant(config, expr);
    (!found.has_errors()).then_some(value)
}

/// The value that a variable is given, converted; `raw` becomes what it was before.
fn value_of(
    config: &Config,
    name: &str,
    declaration: &Declaration,
    given: &Given,
    raw: &mut Option<Value>,
    diagnostics: &mut Diagnostics,
) -> Value {
    let unknown = Value::unknown(declaration.ty.clone());
    // The line of a secret value, or of one that nobody is to keep, must not be drawn.
    let shown = if declaration.marks().any() { None } else { given.span() };
    let span = shown.or(Some(declaration.span));
    let wrong = |detail: String| Diagnostic::error("Invalid value for a variable", detail).with_span(span);
    let value = match &given.text {
        Text::Literal(text) if !declaration.typed || declaration.ty.is_primitive() => Value::from(text.as_str()),
        Text::Literal(text) => {
            let (expr, found) = syntax::parse_expression(TYPED, text);
            let (value, more) = if found.has_errors() { (unknown.clone(), Diagnostics::new()) } else { constant(config, &expr) };
            if let Some(error) = found.iter().chain(more.iter()).find(|d| d.is_error()) {
                let bare = error.detail == CONSTANT || matches!(expr.kind, ExprKind::Wrong);
                let hint = if bare {
                    "Strings inside of lists and objects stand in quotes; mind the shell's own quotes."
                } else {
                    "Check its syntax."
                };
                let why = if declaration.sensitive { "it is secret, so no more is said." } else { &error.detail };
                let detail = format!("The value of \"{name}\" from {} can't be read as an expression: {why}", given.source());
                diagnostics.push(wrong(detail).with_hint(hint));
                return unknown;
            }
            value
        }
        Text::Value(value, _) => value.clone(),
        Text::Expression(expr) => {
            let (value, found) = constant(config, expr);
            let failed = found.has_errors();
            if declaration.sensitive && failed {
                diagnostics.push(wrong(format!(
                    "The value of \"{name}\" from {} can't be evaluated; it is secret, so no more is said.",
                    given.source()
                )));
            } else {
                diagnostics.extend(found);
            }
            if failed {
                return unknown;
            }
            value
        }
    };
    *raw = Some(value.clone());
    let value = match convert(&value, &declaration.ty) {
        Ok(value) => value,
        Err(error) => {
            let shown = if declaration.marks().any() { None } else { crate::describe::excerpt(&value) };
            let shown = shown.map(|text| format!(" It is {text}.")).unwrap_or_default();
            let detail =
                format!("The value of \"{name}\" from {} does not fit its type {}: {error}.{shown}", given.source(), declaration.ty);
            diagnostics.push(wrong(detail).with_label(declaration.span, "declared here"));
            return unknown;
        }
    };
    if value.is_null() && !declaration.nullable {
        return declaration.default.clone().unwrap_or_else(|| {
            diagnostics.push(wrong(format!("The variable \"{name}\" is not nullable, but is null from {}.", given.source())));
            unknown
        });
    }
    value
}

/// Checks what the `validation` blocks of the root or of a module refer to. Those that need more than variables are set aside until that is
/// known.
pub(crate) fn check_validations(config: &mut Config, diagnostics: &mut Diagnostics) {
    let mut declared = std::mem::take(&mut config.declared);
    for declaration in declared.values_mut() {
        for validation in std::mem::take(&mut declaration.validations) {
            match needs_blocks(config, &validation, diagnostics) {
                Some(false) => declaration.validations.push(validation),
                Some(true) => declaration.later.push(validation),
                None => {}
            }
        }
    }
    config.declared = declared;
}

/// Whether a condition is made of blocks or modules; nothing if it is wrong.
fn needs_blocks(config: &Config, validation: &Condition, diagnostics: &mut Diagnostics) -> Option<bool> {
    let (mut found, mut references) = (Diagnostics::new(), Vec::new());
    let exprs = [&validation.condition, &validation.message];
    for expr in exprs {
        found.extend(statics::check(config, expr, Place::default(), &mut references));
    }
    let is_wrong = found.has_errors();
    diagnostics.extend(found);
    let is_of_module = |name: &Name| match name {
        Name::Output { .. } => true,
        Name::Local(local) => config.locals.get(local).is_some_and(|l| l.module.is_some()),
        Name::Variable(_) => false,
    };
    (!is_wrong).then(|| !references.is_empty() || names_of(exprs).iter().any(is_of_module))
}

/// What the `validation` blocks of the root say that need nothing but variables; all of these have their values by now.
pub(crate) fn validate(config: &Config, declared: &BTreeMap<String, Declaration>, given: &AllGiven) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let evaluator = Evaluator::new(config, &NothingKnown);
    let site = Site::default();
    let scope = Scope::new(&site);
    for (name, declaration) in declared {
        for validation in &declaration.validations {
            // A value that was wrong already is not worth more words.
            if given.unjudged || config.variables.get(name).is_some_and(|v| v.value.is_unknown()) {
                continue;
            }
            let mut errors = Errors::default();
            let message = conditions::failed(&evaluator, validation, &scope, &mut errors);
            diagnostics.extend(evaluator.finish(errors));
            if let Some(message) = message {
                let given = given.values.get(name);
                let source = given.map_or_else(|| "its default".to_owned(), Given::source);
                diagnostics.push(
                    Diagnostic::error(
                        "Invalid value for a variable",
                        format!("The value of \"{name}\" from {source} is refused: {message}"),
                    )
                    .with_span(given.and_then(Given::span).filter(|_| !declaration.marks().any()).or(Some(declaration.span)))
                    .with_label(validation.condition.span, "this rule refused it"),
                );
            }
        }
    }
    diagnostics
}

/// For a configuration that is held against whatever its variables may be: only their types are known.
pub(crate) fn all_unknown(config: &mut Config) {
    for variable in config.variables.values_mut() {
        variable.value = Value::unknown(variable.ty.clone()).marked(variable.marks());
    }
}

/// For where values are not judged: one that the rules of its variable refuse becomes unknown, so that what is made of it is no mistake either.
pub(crate) fn unknown_where_refused(config: &mut Config) {
    let evaluator = Evaluator::new(config, &NothingKnown);
    let site = Site::default();
    let scope = Scope::new(&site);
    let is_refused = |declaration: &Declaration| {
        let mut verdicts = declaration.validations.iter().map(|v| conditions::verdict(&evaluator, v, &scope, &mut Errors::silent()));
        verdicts.any(|verdict| matches!(verdict, Verdict::Broken(_) | Verdict::Wrong))
    };
    let refused: Vec<String> = config.declared.iter().filter(|(_, d)| is_refused(d)).map(|(name, _)| name.clone()).collect();
    for name in &refused {
        if let Some(variable) = config.variables.get_mut(name) {
            variable.value = Value::unknown(variable.ty.clone()).marked(variable.marks());
        }
    }
}
