//! Expressions to values. An expression with an error gives an unknown value, so that one mistake makes one message.
//!
//! Static mistakes (names that don't exist) are reported by `statics` before anything is evaluated; here they are silently unknown.

use karmaform_model::{Diagnostic, Kind, Marks, Object, Span, Type, Unknown, Value, convert, unify};

use crate::describe::{excerpt, names_in};
use crate::evaluator::Evaluator;
use crate::ops::{self, BinaryOperator};
use crate::scope::Scope;
use crate::syntax::{Expr, ExprKind, ObjectKey};

/// What came up while evaluating.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    pub list: Vec<Diagnostic>,
    /// Nobody will read them.
    silent: bool,
}

impl Errors {
    /// For trying something out.
    pub(crate) fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// For a part of what these are about: where nobody reads these, nobody reads those of the part either.
    pub(crate) fn of_a_part(&self) -> Self {
        Self { silent: self.silent, ..Self::default() }
    }

    /// True if nobody will read them.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    pub(crate) fn any(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }
}

/// What an erroneous expression evaluates to.
pub(crate) fn unknown() -> Value {
    Value::unknown(Type::Any)
}

impl Evaluator<'_> {
    /// Reports an error about an expression, with the values of the names in it.
    pub(crate) fn fail(&self, expr: &Expr, span: Span, scope: &Scope<'_>, errors: &mut Errors, summary: &str, detail: String) -> Value {
        let told = self.failure(expr, span, scope, errors, summary, detail);
        errors.push(told);
        unknown()
    }

    /// The same without reporting it. `errors` are those among which it would be.
    pub(crate) fn failure(&self, expr: &Expr, span: Span, scope: &Scope<'_>, errors: &Errors, summary: &str, detail: String) -> Diagnostic {
        if errors.silent {
            return Diagnostic::error(summary, detail);
        }
        let values = names_in(self, expr, scope);
        let detail = if values.is_empty() { detail } else { format!("{detail} {values}") };
        Diagnostic::error(summary, detail).with_span(Some(span))
    }

    /// The value of an expression.
    pub(crate) fn eval(&self, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        match &expr.kind {
            ExprKind::Literal(value) => value.clone(),
            ExprKind::Wrong => unknown(),
            ExprKind::Parentheses(inner) => self.eval(inner, scope, errors),
            ExprKind::Name(_) => self.eval_traversal(expr, expr, &[], scope, errors),
            ExprKind::Traversal(root, steps) => self.eval_traversal(expr, root, steps, scope, errors),
            ExprKind::Template(parts) => self.eval_template(expr, parts, scope, errors),
            ExprKind::Tuple(items) => Value::tuple(items.iter().map(|e| self.eval(e, scope, errors)).collect()),
            ExprKind::Object(items) => self.eval_object(items, scope, errors),
            ExprKind::Conditional(three) => self.eval_conditional(expr, three, scope, errors),
            ExprKind::Call(call) => self.eval_call(expr, call, scope, errors),
            ExprKind::Unary(operator, inner) => {
                let value = self.eval(inner, scope, errors);
                ops::unary(*operator, &value)
                    .unwrap_or_else(|message| self.fail(expr, inner.span, scope, errors, "Invalid operand", sentence(&message)))
            }
            ExprKind::Binary(operator, both) => self.eval_binary(expr, *operator, &both.0, &both.1, scope, errors),
            ExprKind::For(f) => self.eval_for(f, scope, errors),
        }
    }

    fn eval_binary(
        &self,
        expr: &Expr,
        operator: BinaryOperator,
        left: &Expr,
        right: &Expr,
        scope: &Scope<'_>,
        errors: &mut Errors,
    ) -> Value {
        let a = self.eval(left, scope, errors);
        let decides = match operator {
            BinaryOperator::And => Some(false),
            BinaryOperator::Or => Some(true),
            _ => None,
        };
        let is_decided = decides.is_some() && convert(&a, &Type::Bool).ok().and_then(|v| v.as_bool()) == decides;
        // Where the left side of `&&` or `||` decides, what fails on the right one does not count (`x != null && x.y`), but what can never be
        // true or false does. Measured: the result is secret or ephemeral if the right side is.
        let b = if is_decided { self.aside(|silent| self.eval(right, scope, silent)) } else { self.eval(right, scope, errors) };
        if is_decided && (b.is_null() || convert(&b, &Type::Bool).is_ok()) {
            return Value::from(decides == Some(true)).marked(a.marks() | b.all_marks());
        }
        ops::binary(operator, &a, &b).unwrap_or_else(|message| {
            let span = if message.starts_with("the left") {
                left.span
            } else if message.starts_with("the right") {
                right.span
            } else {
                expr.span
            };
            self.fail(expr, span, scope, errors, "Invalid operation", sentence(&message));
            // What it would have been is no question.
            Value::unknown(operator.gives())
        })
    }

    fn eval_object(&self, items: &[(ObjectKey, Expr)], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let mut object = Object::new();
        let (mut marks, mut undecided) = (Marks::default(), false);
        for (key, value) in items {
            let name = match key {
                ObjectKey::Name(name) => Some(name.clone()),
                ObjectKey::Expr(expr) | ObjectKey::Once(expr) => {
                    let (name, of_key) = self.eval_key(expr, scope, errors);
                    marks |= of_key;
                    undecided |= name.is_none();
                    name
                }
            };
            let value = self.eval(value, scope, errors);
            let Some(name) = name else { continue };
            if let ObjectKey::Once(expr) = key
                && object.contains_key(&name)
            {
                let which = if marks.any() { "the same".to_owned() } else { format!("{name:?} as well") };
                let detail = format!("Another key of this object is {which}, and an object in JSON has each key once.");
                self.fail(expr, expr.span, scope, errors, "Duplicate key", detail);
            }
            object.insert(name, value);
        }
        if undecided { Value::unknown_not_null(Type::Any).marked(marks) } else { Value::from(object).marked(marks) }
    }

    /// An object key: its text unless unknown or wrong, and its marks.
    pub(crate) fn eval_key(&self, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> (Option<String>, Marks) {
        let value = self.eval(expr, scope, errors);
        let marks = value.all_marks();
        if value.is_null() {
            self.fail(expr, expr.span, scope, errors, "Null as a key", "A key of an object or map must not be null.".into());
            return (None, marks);
        }
        match convert(&value, &Type::String) {
            Ok(text) => (text.as_str().map(str::to_owned), marks),
            Err(error) => {
                let detail = format!("A key of an object or map must be a string: {error}.");
                self.fail(expr, expr.span, scope, errors, "Invalid key", detail);
                (None, marks)
            }
        }
    }

    fn eval_conditional(&self, expr: &Expr, three: &[Expr; 3], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let [condition, yes, no] = three;
        let decision = self.eval_condition(condition, scope, errors);
        let (decision, marks) = match decision {
            Some((decision, marks)) => (decision, marks),
            None => return unknown(),
        };
        // The arm that is not taken only gives its type, and what failed in it is of any; its errors don't count. While the condition is not known, neither arm's do: what fails
        // may be the other one.
        let (mut taken, mut other) = (errors.of_a_part(), Errors::silent());
        let a = self.eval(yes, scope, if decision == Some(true) { &mut taken } else { &mut other });
        let b = self.eval(no, scope, if decision == Some(false) { &mut taken } else { &mut other });
        let failed = taken.any();
        errors.list.extend(taken.list);
        if failed {
            return unknown();
        }
        // Measured: what is secret or ephemeral in the arm that is not taken makes the result so, too.
        let marks = marks | a.marks() | b.marks();
        self.choose(expr, decision, &a, &b, scope, errors).marked(marks)
    }

    /// `None`: wrong. Inside: `None` if unknown; and its marks.
    pub(crate) fn eval_condition(&self, expr: &Expr, scope: &Scope<'_>, errors: &mut Errors) -> Option<(Option<bool>, Marks)> {
        let before = errors.list.len();
        let value = self.eval(expr, scope, errors);
        if errors.list.len() > before {
            return None;
        }
        if value.is_null() {
            self.fail(expr, expr.span, scope, errors, "Null condition", "A condition must be true or false, not null.".into());
            return None;
        }
        match convert(&value, &Type::Bool) {
            Ok(bool) => Some((bool.as_bool(), value.marks())),
            Err(_) => {
                let detail = format!("A condition must be true or false, but this is {}.", article(&value));
                self.fail(expr, expr.span, scope, errors, "Invalid condition", detail);
                None
            }
        }
    }

    fn choose(&self, expr: &Expr, decision: Option<bool>, a: &Value, b: &Value, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let (left, right) = (a.ty(), b.ty());
        // A null, and what is not known at all, takes the type of the other arm.
        let untyped = |v: &Value| matches!(v.kind, Kind::Null(Type::Any));
        let open = |v: &Value| matches!(&v.kind, Kind::Unknown(u) if u.ty == Type::Any);
        let common = match (untyped(a), untyped(b)) {
            (true, _) => Some(right.clone()),
            (_, true) => Some(left.clone()),
            _ if open(a) || open(b) => Some(Type::Any),
            _ => unify(&[left.clone(), right.clone()]),
        };
        // What is not chosen need not fit.
        let chosen = common.and_then(|ty| match decision {
            Some(yes) => convert(if yes { a } else { b }, &ty).ok(),
            None => Some(either(a, b, ty)),
        });
        chosen.unwrap_or_else(|| {
            let detail = format!("Both results of a condition need one type, but one is {left} and the other {right}.");
            self.fail(expr, expr.span, scope, errors, "Results of different types", detail)
        })
    }
}

/// One of two, not known which: what both have in common is known.
fn either(a: &Value, b: &Value, ty: Type) -> Value {
    let marks = a.all_marks() | b.all_marks();
    let (Ok(a), Ok(b)) = (convert(a, &ty), convert(b, &ty)) else { return Value::unknown(ty).marked(marks) };
    if a == b {
        return a;
    }
    let range = |v: &Value| match &v.kind {
        Kind::Unknown(u) => (u.min_length, u.max_length),
        Kind::Set(_, items) if !v.is_wholly_known() => (Some(usize::from(!items.is_empty())), Some(items.len())),
        Kind::List(_, items) | Kind::Set(_, items) => (Some(items.len()), Some(items.len())),
        Kind::Map(_, entries) => (Some(entries.len()), Some(entries.len())),
        Kind::Number(n) => {
            let whole = n.as_i64().and_then(|n| usize::try_from(n).ok());
            (whole, whole)
        }
        _ => (None, None),
    };
    let not_null = |v: &Value| match &v.kind {
        Kind::Unknown(u) => u.not_null,
        kind => !matches!(kind, Kind::Null(_)),
    };
    let ((a_min, a_max), (b_min, b_max)) = (range(&a), range(&b));
    let mut unknown = Unknown::of(ty);
    unknown.not_null = not_null(&a) && not_null(&b);
    unknown.min_length = a_min.zip(b_min).map(|(x, y)| x.min(y));
    unknown.max_length = a_max.zip(b_max).map(|(x, y)| x.max(y));
    of_known_length(&unknown).unwrap_or_else(|| Kind::Unknown(Box::new(unknown)).into()).marked(marks)
}

/// A list of so many elements, and a set of one, whatever these are.
fn of_known_length(unknown: &Unknown) -> Option<Value> {
    let length = unknown.max_length.filter(|most| unknown.not_null && unknown.min_length == Some(*most))?;
    let items = |element: &Type| vec![Value::unknown(element.clone()); length];
    match &unknown.ty {
        Type::List(element) => Some(Value::list((**element).clone(), items(element))),
        Type::Set(element) if length == 1 => Some(Value::set((**element).clone(), items(element))),
        _ => None,
    }
}

/// "a string", "an object".
pub(crate) fn article(value: &Value) -> String {
    if value.is_null() {
        return "null".into();
    }
    let shown = excerpt(value).filter(|_| value.ty().is_primitive()).map(|text| format!(" ({text})")).unwrap_or_default();
    let word = match value.ty() {
        Type::Any => return "not known yet".into(),
        ty => ty.word(),
    };
    if word.starts_with('o') { format!("an {word}{shown}") } else { format!("a {word}{shown}") }
}

/// A message as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let mut text: String = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default() + chars.as_str();
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}
