//! Calls: ordinary functions, and the forms that get their arguments unevaluated (`try`, `can`) or evaluate text (`templatefile`).

use std::sync::Arc;

use karmaform_model::{Diagnostic, Kind, Marks, Type, Value, convert};

use crate::describe::excerpt;
use crate::eval::{Errors, unknown};
use crate::evaluator::{Evaluator, TYPED};
use crate::functions;
use crate::references::{Visit, walk};
use crate::scope::{Scope, Site};
use crate::statics;
use crate::syntax::{self, Call, Expr, ExprKind, StepKind, Template};

/// Functions that are implemented here.
pub(crate) const FORMS: [&str; 4] = ["can", "templatefile", "templatestring", "try"];

/// In place of what is wrong with a secret text.
const HIDDEN: &str = "The template can't be read. It is secret, so no more is said.";

/// Template files may use template files, so deep.
const DEEPEST: usize = 16;

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
            match &last.kind {
                Kind::List(_, items) | Kind::Tuple(items) | Kind::Set(_, items) => {
                    args.extend(items.iter().map(|v| v.clone().marked(last.marks())));
                }
                Kind::Unknown(u) if !u.ty.is_primitive() => return unknown().marked(last.marks()),
                _ => {
                    let detail = "Only a list, set or tuple can be spread over the arguments with \"...\".".into();
                    return self.fail(expr, expr.span, scope, errors, "Invalid expansion", detail);
                }
            }
        }
        match call.name.as_str() {
            "templatefile" => self.template_file(whole, call, &args, scope, errors),
            "templatestring" => self.template_string(whole, call, &args, scope, errors),
            _ => match functions::call(&call.name, &args, &self.config.context) {
                Ok(value) => self.momentary(call, scope).unwrap_or(value),
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

    /// The first argument without an error.
    fn eval_try(&self, whole: &Expr, call: &Call, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let mut last = Errors::default();
        for arg in &call.args {
            if let Some(marks) = self.needs_unknown(arg, scope) {
                return unknown().marked(marks);
            }
            let mut tried = Errors::default();
            let value = self.eval(arg, scope, &mut tried);
            if !tried.any() {
                return value;
            }
            last = tried;
        }
        let details: Vec<_> = last.list.into_iter().map(|d| d.detail).collect();
        let detail = format!("None of the arguments of try() has a value. The last one: {}", details.join(" "));
        self.fail(whole, call.name_span, scope, errors, "Nothing to fall back to", detail)
    }

    fn eval_can(&self, whole: &Expr, call: &Call, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let [arg] = call.args.as_slice() else {
            return self.fail(whole, call.name_span, scope, errors, "Invalid function call", "can() takes one argument.".into());
        };
        if self.needs_unknown(arg, scope).is_some() {
            return Value::unknown_not_null(Type::Bool);
        }
        let mut tried = Errors::default();
        self.eval(arg, scope, &mut tried);
        (!tried.any()).into()
    }

    /// `Some` if a name in the expression leads to something that is not known yet, so that an error may still come or go; with its marks.
    fn needs_unknown(&self, expr: &Expr, scope: &Scope<'_>) -> Option<Marks> {
        let mut found = None;
        walk(expr, &mut |visit| {
            let Visit::Reference { name, span, steps } = visit else { return };
            if found.is_some() {
                return;
            }
            let plain = steps.iter().take_while(|s| !matches!(s.kind, StepKind::FullSplat | StepKind::AttributeSplat)).count();
            let root = Expr { kind: ExprKind::Name(name.to_owned()), span };
            let mut tried = Errors::silent();
            let value = self.eval_traversal(expr, &root, &steps[..plain], scope, &mut tried);
            if !tried.any() && !value.is_wholly_known() {
                found = Some(value.all_marks());
            }
        });
        found
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
                self.run_template(whole, call, (!marks.any()).then_some("the template"), &template, variables, scope, errors).marked(marks)
            }
            Err(problem) => {
                let problem = if marks.any() { HIDDEN.to_owned() } else { problem };
                self.fail(whole, call.name_span, scope, errors, "Invalid template", problem)
            }
        }
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
            .and_then(|text| parsed(&text).map_err(|problem| format!("In \"{path}\": {problem}")));
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
        let names: Vec<(&str, Value)> = entries.iter().map(|(n, v)| (n.as_str(), v.clone().marked(variables.marks()))).collect();
        let mut inner = Errors::default();
        inner.list = statics::check_template(template, entries.keys().map(String::as_str));
        let mut value = unknown();
        if !inner.any() {
            self.memo.depth.set(self.memo.depth.get() + 1);
            let site = Site { closed: true, ..Site::default() };
            value = Scope::new(&site).bind(&names, |scope| self.eval_template(whole, template, scope, &mut inner));
            self.memo.depth.set(self.memo.depth.get() - 1);
        }
        // Places inside of the template are none of the configuration's.
        let problems: Vec<_> = inner.list.iter().filter(|d| d.is_error()).map(|d| d.detail.as_str()).collect();
        if problems.is_empty() {
            return value;
        }
        let detail = name.map_or_else(|| HIDDEN.to_owned(), |name| format!("In {name}: {}", problems.join(" ")));
        errors.push(Diagnostic::error("Invalid template", detail).with_span(Some(call.name_span)));
        unknown()
    }
}

fn parsed(text: &str) -> Result<Template, String> {
    let (parts, diagnostics) = syntax::parse_template(TYPED, text);
    match diagnostics.iter().find(|d| d.is_error()) {
        Some(error) => Err(error.detail.clone()),
        None => Ok(Arc::new(parts)),
    }
}
