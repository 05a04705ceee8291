//! Calls: ordinary functions, and the forms that get their arguments unevaluated (`try`, `can`) or evaluate text (`templatefile`).

use std::sync::Arc;

use karmaform_model::{Diagnostic, Kind, Marks, Object, Type, Value, convert};

use crate::budget::BEYOND_LIMITS;
use crate::decode::is_name;
use crate::describe::excerpt;
use crate::eval::{Errors, unknown};
use crate::evaluator::{Evaluator, TYPED};
use crate::functions;
use crate::references::{Visit, walk};
use crate::scope::{Scope, Site};
use crate::statics;
use crate::syntax::{self, Call, Expr, ExprKind, Template};

/// Functions that are implemented here.
pub(crate) const FORMS: [&str; 4] = ["can", "templatefile", "templatestring", "try"];

/// Reads a text as a variables file.
pub(crate) const DECODE_TFVARS: &str = "provider::terraform::decode_tfvars";

/// In place of what is wrong with a secret text.
const HIDDEN: &str = "The template can't be read. It is secret, so no more is said.";

/// Template files may use template files, so deep.
const DEEPEST: usize = 16;

/// What no fallback makes up for: what is tried would take more than any machine has. It is told, and nothing is known.
fn refused(tried: &Errors, errors: &mut Errors) -> Option<Value> {
    let found = tried.list.iter().find(|d| BEYOND_LIMITS.contains(&d.summary.as_str()))?;
    errors.push(found.clone());
    Some(unknown())
}

impl Evaluator<'_> {
    /// The value of a function call.
    pub(crate) fn eval_call(&self, whole: &Expr, call: &Call, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        match call.name.as_str() {
            "try" => return self.eval_try(whole, call, scope, errors),
            "can" => return self.eval_can(whole, call, scope, errors),
            _ => {}
        }
        let before = errors.list.len();
        let mut args: Vec<Value> = call.args.iter().map(|e| self.eval(e, scope, errors)).collect();
        if errors.list[before..].iter().any(Diagnostic::is_error) {
            return unknown();
        }
        if call.expand
            && let (Some(last), Some(expr)) = (args.pop(), call.args.last())
        {
            match self.spread(expr, &last, scope, errors) {
                Ok(items) => args.extend(items),
                Err(value) => return value,
            }
        }
        match call.name.as_str() {
            "templatefile" => self.template_file(whole, call, &args, scope, errors),
            "templatestring" => self.template_string(whole, call, &args, scope, errors),
            DECODE_TFVARS => self.decode_variables(whole, call, &args, scope, errors),
            _ => match functions::call(&call.name, &args, &self.config.context) {
                Ok(value) => match self.momentary(call, &args, scope) {
                    Some(known) => known.marked(value.marks()),
                    None => value,
                },
                Err(error) => {
                    let argument =
                        error.argument.and_then(|i| Some((call.args.get(i.min(call.args.len().saturating_sub(1)))?, args.get(i)?)));
                    let shown = argument.and_then(|(expr, value)| {
                        // A literal can be seen already, a name is spelled out anyway.
                        let plain = matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::Traversal(..));
                        if plain { None } else { excerpt(value) }
                    });
                    let given = shown.map(|text| format!(" The argument is {text}.")).unwrap_or_default();
                    let at = error.argument.and_then(|i| functions::parameter_name(&call.name, i));
                    let at = at.map(|name| format!(" at the argument \"{name}\"")).unwrap_or_default();
                    let detail = format!("{}() failed{at}: {}.{given}", call.name, error.message.trim_end_matches('.'));
                    let span = argument.map_or(call.name_span, |(expr, _)| expr.span);
                    self.fail(whole, span, scope, errors, "Invalid function call", detail)
                }
            },
        }
    }

    /// The elements of what stands before "...". Without them, because they are not known or it is wrong, the value of the whole call.
    fn spread(&self, expr: &Expr, list: &Value, scope: &Scope<'_>, errors: &mut Errors) -> Result<Vec<Value>, Value> {
        match &list.kind {
            Kind::List(_, items) | Kind::Tuple(items) | Kind::Set(_, items) => {
                Ok(items.iter().map(|v| v.clone().marked(list.marks())).collect())
            }
            Kind::Unknown(u) if !u.ty.is_primitive() => Err(unknown().marked(list.marks())),
            _ => {
                let detail = "Only a list, set or tuple can be spread over the arguments with \"...\".".into();
                Err(self.fail(expr, expr.span, scope, errors, "Invalid expansion", detail))
            }
        }
    }

    /// The arguments of `try` and `can`, not evaluated but for one before "...": its errors are the call's own.
    fn to_try<'e>(&self, call: &'e Call, scope: &Scope<'_>, errors: &mut Errors) -> Result<Vec<ToTry<'e>>, Value> {
        let mut all: Vec<_> = call.args.iter().map(ToTry::Expr).collect();
        if call.expand
            && let (Some(_), Some(expr)) = (all.pop(), call.args.last())
        {
            let before = errors.list.len();
            let list = self.eval(expr, scope, errors);
            if errors.list[before..].iter().any(Diagnostic::is_error) {
                return Err(unknown());
            }
            all.extend(self.spread(expr, &list, scope, errors)?.into_iter().map(ToTry::Value));
        }
        Ok(all)
    }

    /// The value of such an argument, and what is wrong with it; `errors` are those of the call.
    fn tried(&self, argument: ToTry<'_>, scope: &Scope<'_>, errors: &Errors) -> (Value, Errors) {
        let mut tried = errors.of_a_part();
        let value = match argument {
            ToTry::Expr(expr) => self.eval(expr, scope, &mut tried),
            ToTry::Value(value) => value,
        };
        (value, tried)
    }

    /// The first argument without an error. An error counts at once, but what is not known may still turn out to be one.
    fn eval_try(&self, whole: &Expr, call: &Call, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let arguments = match self.to_try(call, scope, errors) {
            Ok(arguments) => arguments,
            Err(value) => return value,
        };
        if arguments.is_empty() {
            let detail = "try() takes at least 1 argument, but the list before \"...\" is empty.".into();
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", detail);
        }
        let mut last = Errors::default();
        for argument in arguments {
            let (value, tried) = self.tried(argument, scope, errors);
            if !tried.any() {
                return if value.is_wholly_known() { value } else { unknown().marked(value.all_marks()) };
            }
            if let Some(value) = refused(&tried, errors) {
                return value;
            }
            last = tried;
        }
        let details: Vec<_> = last.list.into_iter().map(|d| d.detail).collect();
        let detail = format!("None of the arguments of try() has a value. The last one: {}", details.join(" "));
        self.fail(whole, call.name_span, scope, errors, "Nothing to fall back to", detail)
    }

    /// Whether the argument is without an error, by the same rules.
    fn eval_can(&self, whole: &Expr, call: &Call, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let mut arguments = match self.to_try(call, scope, errors) {
            Ok(arguments) => arguments,
            Err(value) => return value,
        };
        let (Some(argument), true) = (arguments.pop(), arguments.is_empty()) else {
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", "can() takes one argument.".into());
        };
        let (value, tried) = self.tried(argument, scope, errors);
        if let Some(value) = refused(&tried, errors) {
            return value;
        }
        if tried.any() || value.is_wholly_known() { (!tried.any()).into() } else { Value::unknown_not_null(Type::Bool) }
    }

    fn template_file(&self, whole: &Expr, call: &Call, args: &[Value], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let [path, variables] = args else {
            let detail = "templatefile() takes a path and an object of variables.".into();
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", detail);
        };
        let marks = path.all_marks();
        let path = match convert(path, &Type::String) {
            Ok(value) if value.is_unknown() => return Value::unknown_not_null(Type::String).marked(marks),
            Ok(Value { kind: Kind::String(path), .. }) => path,
            _ => return self.fail(whole, call.name_span, scope, errors, "Invalid function call", "The path must be a string.".into()),
        };
        match self.cached_template(&path) {
            Ok(template) => {
                let name = if marks.any() { None } else { Some(format!("\"{path}\"")) };
                self.run_template(whole, call, name.as_deref(), &template, variables, scope, errors).marked(marks)
            }
            Err(problem) => {
                let problem = if marks.any() { HIDDEN.to_owned() } else { problem };
                let span = call.args.first().map_or(call.name_span, |e| e.span);
                self.fail(whole, span, scope, errors, "Invalid template", problem)
            }
        }
    }

    fn template_string(&self, whole: &Expr, call: &Call, args: &[Value], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let [text, variables] = args else {
            let detail = "templatestring() takes a template and an object of variables.".into();
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", detail);
        };
        let marks = text.all_marks();
        let text = match convert(text, &Type::String) {
            Ok(value) if value.is_unknown() => return unknown().marked(marks),
            Ok(Value { kind: Kind::String(text), .. }) => text,
            _ => {
                let detail = "The template must be a string.".into();
                return self.fail(whole, call.name_span, scope, errors, "Invalid function call", detail);
            }
        };
        match parsed(&text) {
            Ok(template) => {
                let name = (!marks.any()).then_some("the template");
                let value = self.run_template(whole, call, name, &template, variables, scope, errors).marked(marks);
                convert(&value, &Type::String).unwrap_or_else(|_| {
                    let detail = "The result of the template must be a string.".into();
                    self.fail(whole, call.name_span, scope, errors, "Invalid template", detail)
                })
            }
            Err(problem) => {
                let problem = if marks.any() { HIDDEN.to_owned() } else { problem };
                self.fail(whole, call.name_span, scope, errors, "Invalid template", problem)
            }
        }
    }

    fn decode_variables(&self, whole: &Expr, call: &Call, args: &[Value], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let span = call.args.first().map_or(call.name_span, |e| e.span);
        let text = args.first().map(|text| (convert(text, &Type::String), text.all_marks()));
        let (problem, marks) = match text {
            Some((Ok(value), marks)) if value.is_unknown() => return unknown().marked(marks),
            Some((Ok(Value { kind: Kind::String(text), .. }), marks)) => match self.variables_of(&text) {
                Ok(object) => return Value::from(object).marked(marks),
                Err(problem) => (problem, marks),
            },
            _ => ("The text of a variables file must be a string.".to_owned(), Marks::default()),
        };
        let problem = if marks.any() { "The text can't be read. It is secret, so no more is said.".to_owned() } else { problem };
        self.fail(whole, span, scope, errors, "Invalid function call", problem)
    }

    /// What the text of a variables file says: constants, without functions.
    fn variables_of(&self, text: &str) -> Result<Object, String> {
        let parsed = syntax::parse_body(TYPED, text);
        if let Some(error) = parsed.diagnostics.iter().find(|d| d.is_error()) {
            let line = error.span.and_then(|s| text.get(..usize::try_from(s.start).ok()?)).map_or(1, |t| t.matches('\n').count() + 1);
            return Err(format!("Line {line} of the text could not be read. {}", error.detail));
        }
        if let Some(block) = parsed.body.blocks.first() {
            return Err(format!("The text holds the block \"{}\", and only arguments can stand there.", block.kind));
        }
        let site = Site { closed: true, ..Site::default() };
        let mut object = Object::new();
        for attribute in parsed.body.attributes {
            let mut other = None;
            walk(&attribute.expr, &mut |visit| {
                other.get_or_insert(match visit {
                    Visit::Reference { name, .. } => format!("refers to \"{name}\""),
                    Visit::Call(call) => format!("calls {}()", call.name),
                });
            });
            if let Some(other) = other {
                return Err(format!("The value of \"{}\" in the text {other}, and only constants can stand there.", attribute.name));
            }
            let mut found = Errors::silent();
            let value = self.eval(&attribute.expr, &Scope::new(&site), &mut found);
            if let Some(error) = found.list.iter().find(|d| d.is_error()) {
                return Err(format!("The value of \"{}\" in the text is wrong: {}", attribute.name, error.detail));
            }
            object.insert(attribute.name, value);
        }
        Ok(object)
    }

    fn cached_template(&self, path: &str) -> Result<Template, String> {
        if let Some(template) = self.memo.templates.borrow().get(path) {
            return template.clone();
        }
        let template = self
            .config
            .context
            .files
            .read(path)
            .map_err(|problem| format!("The template file \"{path}\" can't be read: {problem}."))
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| format!("The template file \"{path}\" is not UTF-8 text.")))
            // A mark of the byte order is no part of the text.
            .and_then(|text| parsed(text.strip_prefix('\u{feff}').unwrap_or(&text)).map_err(|problem| format!("In \"{path}\": {problem}")));
        self.memo.templates.borrow_mut().insert(path.to_owned(), template.clone());
        template
    }

    /// `name` is for messages; without one, nothing of the template may be shown.
    #[allow(clippy::too_many_arguments)]
    fn run_template(
        &self,
        whole: &Expr,
        call: &Call,
        name: Option<&str>,
        template: &Template,
        variables: &Value,
        scope: &Scope<'_>,
        errors: &mut Errors,
    ) -> Value {
        let Some(entries) = variables.as_entries() else {
            if variables.is_unknown() {
                return unknown().marked(variables.marks());
            }
            let detail = format!("The variables of {} must be an object or a map.", name.unwrap_or("the template"));
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", detail);
        };
        if self.memo.depth.get() >= DEEPEST {
            let detail = format!("Template files use each other more than {DEEPEST} levels deep.");
            return self.fail(whole, call.name_span, scope, errors, "Invalid template", detail);
        }
        if let Some(wrong) = entries.keys().find(|name| !is_name(name)) {
            let shown = if variables.all_marks().any() { "One of them (they are secret)".to_owned() } else { format!("\"{wrong}\"") };
            let detail = format!("{shown} can't be the name of a variable: those are letters, digits, _ and -, with a letter first.");
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", detail);
        }
        let names: Vec<(&str, Value)> = entries.iter().map(|(n, v)| (n.as_str(), v.clone().marked(variables.marks()))).collect();
        let mut inner = errors.of_a_part();
        inner.list = statics::check_template(template, entries.keys().map(String::as_str));
        let mut value = unknown();
        if !inner.any() {
            self.memo.depth.set(self.memo.depth.get() + 1);
            let site = Site { closed: true, ..Site::default() };
            value = Scope::new(&site).bind(&names, |scope| self.eval_template(whole, template, scope, &mut inner));
            self.memo.depth.set(self.memo.depth.get() - 1);
        }
        // Places inside of the template are none of the configuration's.
        let mut problems: Vec<_> = inner.list.iter().filter(|d| d.is_error()).map(|d| d.detail.as_str()).collect();
        if problems.is_empty() && !value.is_null() {
            // Secret variables make the whole secret, whether the template uses them or not.
            return value.marked(variables.all_marks());
        }
        if problems.is_empty() {
            problems.push("The result is null, and a template has to give a value.");
        }
        let detail = name.map_or_else(|| HIDDEN.to_owned(), |name| format!("In {name}: {}", problems.join(" ")));
        errors.push(Diagnostic::error("Invalid template", detail).with_span(Some(call.name_span)));
        unknown()
    }
}

/// An argument of `try` or `can`.
enum ToTry<'e> {
    Expr(&'e Expr),
    /// An element of a list that was spread.
    Value(Value),
}

fn parsed(text: &str) -> Result<Template, String> {
    let (parts, diagnostics) = syntax::parse_template(TYPED, text);
    match diagnostics.iter().find(|d| d.is_error()) {
        Some(error) => Err(error.detail.clone()),
        None => Ok(Arc::new(parts)),
    }
}
