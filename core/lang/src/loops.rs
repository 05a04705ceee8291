//! `for` expressions, and going over collections in general.

use karmaform_model::{Diagnostic, Kind, Marks, Object, Type, Value};

use crate::budget::MOST_ROUNDS;
use crate::eval::{Errors, article, unknown};
use crate::evaluator::Evaluator;
use crate::scope::Scope;
use crate::syntax::{Expr, For};

impl Evaluator<'_> {
    /// The value of a for expression.
    pub(crate) fn eval_for(&self, f: &For, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let is_inner = self.begin_loop();
        let value = self.eval_rounds(f, scope, errors);
        self.memo.loops.set(is_inner);
        value
    }

    /// Counts anew where no `for` is around this one, and says whether there is one.
    pub(crate) fn begin_loop(&self) -> bool {
        let is_inner = self.memo.loops.replace(true);
        if !is_inner {
            self.memo.rounds.set(0);
        }
        is_inner
    }

    /// Evaluates what does not count: neither what fails in it, nor the rounds that it takes.
    pub(crate) fn aside<T>(&self, evaluate: impl FnOnce(&mut Errors) -> T) -> T {
        let rounds = self.memo.rounds.get();
        let result = evaluate(&mut Errors::silent());
        self.memo.rounds.set(rounds);
        result
    }

    fn eval_rounds(&self, f: &For, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let before = errors.list.len();
        let collection = self.eval(&f.collection, scope, errors);
        if errors.list.len() > before {
            return unknown();
        }
        let Some(entries) = self.entries(&f.collection, &collection, "A for expression", scope, errors) else { return unknown() };
        let is_open = matches!(&collection.kind, Kind::Unknown(u) if u.ty == Type::Any);
        let asked =
            if !is_open && entries.as_ref().is_none_or(Vec::is_empty) { self.ask(f, scope, errors) } else { Some(Marks::default()) };
        let Some(of_condition) = asked else { return unknown() };
        let mut marks = collection.marks();
        // The condition will be asked of what there will be, and how many are left tells what it says.
        let Some(entries) = entries else { return Value::unknown_not_null(Type::Any).marked(marks | of_condition) };
        let result = self.go_over(&f.collection, collection.marks(), entries, errors, |entries, errors| {
            let mut result =
                Collected { object: f.key.is_some().then(Object::new), items: Vec::new(), groups: Object::new(), undecided: false };
            for (key, value) in entries {
                let mut names = vec![(f.value_name.as_str(), value)];
                if let Some(name) = &f.key_name {
                    names.push((name, key));
                }
                if !scope.bind(&names, |inner| self.for_step(f, inner, &mut result, &mut marks, errors)) {
                    return None;
                }
            }
            Some(result)
        });
        let Some(result) = result else { return unknown().marked(marks) };
        if result.undecided {
            return Value::unknown_not_null(Type::Any).marked(marks);
        }
        let value = match result.object {
            Some(_) if f.group => Value::from(result.groups),
            Some(object) => Value::from(object),
            None => Value::tuple(result.items),
        };
        value.marked(marks)
    }

    /// Goes over the entries of a collection that has these marks itself. As in HCL its entries don't have them: what is made of them does as a
    /// whole, so that `nonsensitive` takes all away. What fails on the way is told as if they had: no message shows them.
    pub(crate) fn go_over<T>(
        &self,
        expr: &Expr,
        marks: Marks,
        entries: Vec<(Value, Value)>,
        errors: &mut Errors,
        mut work: impl FnMut(Vec<(Value, Value)>, &mut Errors) -> T,
    ) -> T {
        // Where nobody reads what fails, nothing is told again: loops within loops would be gone over twice as often each.
        if !marks.any() || errors.is_silent() {
            return work(entries, errors);
        }
        let rounds = self.memo.rounds.get();
        let mut found = Errors::silent();
        let result = work(entries.clone(), &mut found);
        if found.list.is_empty() {
            return result;
        }
        self.memo.rounds.set(rounds);
        let before = errors.list.len();
        let result = work(entries.into_iter().map(|(k, v)| (k.marked(marks), v.marked(marks))).collect(), errors);
        if errors.list.len() == before {
            // It fails only where nothing is marked, and says what nobody may see.
            let what = found.list.swap_remove(0).summary;
            errors
                .push(Diagnostic::error(what, "What is wrong here is secret or ephemeral and can't be shown.").with_span(Some(expr.span)));
        }
        result
    }

    /// The marks of the condition; `None` if it fails whatever it is asked of. As in Terraform, that is told where it is asked of nothing, or
    /// nobody knows of what.
    fn ask(&self, f: &For, scope: &Scope<'_>, errors: &mut Errors) -> Option<Marks> {
        let Some(condition) = &f.condition else { return Some(Marks::default()) };
        let mut names = vec![(f.value_name.as_str(), unknown())];
        names.extend(f.key_name.as_deref().map(|name| (name, unknown())));
        scope.bind(&names, |inner| self.eval_condition(condition, inner, errors)).map(|(_, marks)| marks)
    }

    /// One round of a for expression; false after an error: the next rounds would only repeat it.
    fn for_step(&self, f: &For, scope: &Scope<'_>, result: &mut Collected, marks: &mut Marks, errors: &mut Errors) -> bool {
        let before = errors.list.len();
        if let Some(condition) = &f.condition {
            match self.eval_condition(condition, scope, errors) {
                None => return false,
                Some((decision, of_condition)) => {
                    *marks |= of_condition;
                    match decision {
                        Some(true) => {}
                        Some(false) => return true,
                        None => {
                            result.undecided = true;
                            return true;
                        }
                    }
                }
            }
        }
        let name = match &f.key {
            None => None,
            Some(key) => {
                let (name, of_key) = self.eval_key(key, scope, errors);
                *marks |= of_key;
                if name.is_none() {
                    result.undecided = true;
                }
                name
            }
        };
        let value = self.eval(&f.value, scope, errors);
        if errors.list[before..].iter().any(Diagnostic::is_error) {
            return false;
        }
        match (&mut result.object, name) {
            (None, _) => result.items.push(value),
            (Some(_), None) => {}
            (Some(_), Some(name)) if f.group => {
                let group = result.groups.get_or_insert_with(&name, || Value::tuple(Vec::new()));
                if let Kind::Tuple(items) = &mut group.kind {
                    items.push(value);
                }
            }
            (Some(object), Some(name)) => {
                if object.insert(name.clone(), value).is_some() {
                    let key = f.key.as_ref().unwrap_or(&f.value);
                    let which = if marks.any() { String::new() } else { format!(" {name:?}") };
                    let detail = format!("Two items give the same key{which}, and an object has each key once.");
                    let error = Diagnostic::error("Duplicate key", detail).with_span(Some(key.span));
                    errors.push(error.with_hint("To collect all values of a key in a list, write ... after the value."));
                    return false;
                }
            }
        }
        true
    }

    /// What a `for` goes over: keys and values, without the marks of the collection itself. The outer `None`: an error; the inner one: not known yet.
    pub(crate) fn entries(
        &self,
        expr: &Expr,
        collection: &Value,
        who: &str,
        scope: &Scope<'_>,
        errors: &mut Errors,
    ) -> Option<Option<Vec<(Value, Value)>>> {
        let entries: Vec<_> = match &collection.kind {
            Kind::List(_, items) | Kind::Tuple(items) => items.iter().enumerate().map(|(i, v)| (Value::from(i), v.clone())).collect(),
            Kind::Set(_, items) => items.iter().map(|v| (v.clone(), v.clone())).collect(),
            Kind::Map(_, entries) | Kind::Object(entries) => entries.iter().map(|(k, v)| (Value::from(k.as_str()), v.clone())).collect(),
            Kind::Unknown(u) if !u.ty.is_primitive() => return Some(None),
            Kind::Null(_) => {
                self.fail(expr, expr.span, scope, errors, "Iteration over null", format!("{who} can't go over null."));
                return None;
            }
            _ => {
                let detail = format!("{who} goes over a list, a set, a map or an object, but this is {}.", article(collection));
                self.fail(expr, expr.span, scope, errors, "Iteration over a single value", detail);
                return None;
            }
        };
        let rounds = self.memo.rounds.get() + entries.len();
        self.memo.rounds.set(rounds);
        if rounds > MOST_ROUNDS {
            let detail =
                format!("A loop goes at most {MOST_ROUNDS} rounds, those of all loops within it counted, too; this one goes more.");
            errors.push(Diagnostic::error("Too many rounds", detail).with_span(Some(expr.span)));
            return None;
        }
        Some(Some(entries))
    }
}

struct Collected {
    object: Option<Object>,
    items: Vec<Value>,
    groups: Object,
    undecided: bool,
}
