//! Following references and steps: `var.x.y[0]`, `list[*].name`.
//!
//! Values are walked by reference and only the end is copied: `local.big[each.key]` must not copy all of `local.big`.

use karmaform_model::{Address, Key, Kind, Marks, Number, Object, Type, Value, convert, nearest};

use crate::config::{Repeat, Repetition};
use crate::describe::excerpt;
use crate::eval::{Errors, article, unknown};
use crate::evaluator::Evaluator;
use crate::modules::Sort;
use crate::references::{self, KeyUse, Target};
use crate::scope::Scope;
use crate::suggest;
use crate::syntax::{Expr, ExprKind, Step, StepKind};

/// What is said of a secret key that is not there.
const NO_SECRET: &str = "There is no element of this secret key.";

/// One step further.
enum Next<'v> {
    /// A part of the value.
    Part(&'v Value),
    /// Something made.
    Made(Value),
    Failed,
}

impl Evaluator<'_> {
    /// The value of `root` followed by `steps`; `whole` is the expression to speak of in messages.
    pub(crate) fn eval_traversal(&self, whole: &Expr, root: &Expr, steps: &[Step], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let ExprKind::Name(name) = &root.kind else {
            let before = errors.list.len();
            let value = self.eval(root, scope, errors);
            return if errors.list.len() > before { unknown() } else { self.follow(whole, &value, steps, scope, errors) };
        };
        if let Some(value) = scope.get(name) {
            return self.follow(whole, value, steps, scope, errors);
        }
        if scope.site.closed {
            return unknown();
        }
        let rest = steps.get(1..).unwrap_or_default();
        match references::target(name, steps) {
            Some(Target::Variable(name)) if scope.site.module > 0 => match self.named(scope.site.module, Sort::Variable, &name) {
                Some(value) => self.follow(whole, &value, rest, scope, errors),
                None => unknown(),
            },
            Some(Target::Variable(name)) => match self.config.variables.get(&name) {
                Some(variable) => self.follow(whole, &variable.value, rest, scope, errors),
                None => unknown(),
            },
            Some(Target::Local(name)) => match self.named(scope.site.module, Sort::Local, &name) {
                Some(value) => self.follow(whole, &value, rest, scope, errors),
                None => unknown(),
            },
            Some(Target::Module { call, key, used }) => self.module_traversal(whole, &call, &key, used, steps, scope, errors),
            Some(Target::Block { address, key, used }) => {
                let address = match self.config.modules.get(scope.site.module) {
                    Some(module) if !module.path.is_empty() => address.in_module(&module.path),
                    _ => address,
                };
                match self.config.blocks.get(&address).map(|b| &b.repeat) {
                    // An index of a single block is an attribute in brackets.
                    Some(Repeat::None) => {
                        let used = if key == KeyUse::None { used } else { used - 1 };
                        return self.follow(whole, &self.instance(&address), &steps[used..], scope, errors);
                    }
                    Some(Repeat::Wrong) | None => return unknown(),
                    Some(Repeat::Count(_) | Repeat::ForEach(_)) => {}
                }
                let value = match (&key, steps.get(used.wrapping_sub(1)).map(|s| &s.kind)) {
                    (KeyUse::Splat, _) => {
                        let value = self.block_value(&address);
                        return self.follow(whole, &value, &steps[used - 1..], scope, errors);
                    }
                    (KeyUse::Literal(key), _) => Some(match key {
                        Key::Index(i) => Value::from(Number::from(*i)),
                        Key::Name(n) => n.as_str().into(),
                    }),
                    (KeyUse::Computed, Some(StepKind::Index(index))) => Some(self.eval(index, scope, errors)),
                    _ => None,
                };
                let value = match value {
                    None => self.block_value(&address),
                    Some(key) => self.keyed_instance(whole, &steps[used - 1], &address, &key, scope, errors),
                };
                self.follow(whole, &value, &steps[used..], scope, errors)
            }
            Some(Target::Each(name)) => match (&scope.site.each, name.as_str()) {
                (Some((key, _)), "key") => self.follow(whole, key, rest, scope, errors),
                (Some((_, value)), "value") => self.follow(whole, value, rest, scope, errors),
                _ => unknown(),
            },
            Some(Target::Count(name)) if name == "index" => match &scope.site.count {
                Some(index) => self.follow(whole, index, rest, scope, errors),
                None => unknown(),
            },
            Some(Target::Path(name)) => match name.as_str() {
                "module" => {
                    let directory = &self.config.home(scope.site.module).context.directory;
                    self.follow(whole, &directory.as_str().into(), rest, scope, errors)
                }
                "root" => self.follow(whole, &self.config.context.directory.as_str().into(), rest, scope, errors),
                "cwd" => self.follow(whole, &self.config.context.working_directory.as_str().into(), rest, scope, errors),
                _ => unknown(),
            },
            Some(Target::Tool(name)) if name == "workspace" => {
                self.follow(whole, &self.config.context.workspace.as_str().into(), rest, scope, errors)
            }
            _ => unknown(),
        }
    }

    /// The instance that a key chooses, and only that one.
    fn keyed_instance(&self, whole: &Expr, step: &Step, address: &Address, key: &Value, scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let Some(block) = self.config.blocks.get(address) else { return unknown() };
        let marks = key.all_marks();
        if key.is_unknown() {
            return self.unknown_instance(address).marked(marks);
        }
        let wanted = match &block.repetition {
            Repetition::Open => return self.unknown_instance(address).marked(marks),
            Repetition::Single => None,
            Repetition::Count(_) => {
                convert(key, &Type::Number).ok().and_then(|n| n.as_i64()).and_then(|i| u64::try_from(i).ok()).map(Key::Index)
            }
            Repetition::ForEach(_) => convert(key, &Type::String).ok().and_then(|s| s.as_str().map(|s| Key::Name(s.to_owned()))),
        };
        let wanted = wanted.filter(|w| block.repetition.has(Some(w))).map(|w| address.with_key(Some(w)));
        if let Some(instance) = wanted.as_ref().filter(|i| !self.is_outside(&block.repetition, i)) {
            return self.instance(instance).marked(marks);
        }
        let there = match &block.repetition {
            _ if wanted.is_some() => "it is not there, and this plan does not make it".to_owned(),
            Repetition::Single | Repetition::Open => "it has neither count nor for_each".to_owned(),
            Repetition::Count(0) => "its count is 0".to_owned(),
            Repetition::Count(n) => format!("its indexes go from 0 to {}", n - 1),
            Repetition::ForEach(entries) if entries.is_empty() => "its for_each is empty".to_owned(),
            Repetition::ForEach(entries) => format!("its keys are {}", suggest::listed(entries.keys().map(String::as_str))),
        };
        let shown = excerpt(key).map(|k| format!(" {k}")).unwrap_or_default();
        let detail = format!("{address} has no instance{shown}: {there}.");
        self.fail(whole, step.span, scope, errors, "No such instance", detail)
    }

    /// Goes along the steps.
    pub(crate) fn follow(&self, whole: &Expr, value: &Value, steps: &[Step], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let mut here = value;
        let mut marks = Marks::default();
        for (i, step) in steps.iter().enumerate() {
            if marks | here.marks() != here.marks() {
                // A part of a secret is one, in messages as well.
                return self.follow(whole, &here.clone().marked(marks), &steps[i..], scope, errors);
            }
            marks |= here.marks();
            let next = match &step.kind {
                StepKind::Attribute(name) => self.attribute(whole, here, name, step, scope, errors),
                StepKind::LegacyIndex(index) => self.index(whole, here, &Value::from(Number::from(*index)), step, scope, errors),
                StepKind::Index(expr) => {
                    let before = errors.list.len();
                    let key = self.eval(expr, scope, errors);
                    if errors.list.len() > before {
                        return unknown();
                    }
                    // Measured: a secret key of an object literal does not make the result secret, any other key does.
                    if !matches!(here.kind, Kind::Object(_)) {
                        marks |= key.all_marks();
                    }
                    self.index(whole, here, &key, step, scope, errors)
                }
                StepKind::FullSplat => return self.splat(whole, here, &steps[i + 1..], &[], scope, errors).marked(marks),
                StepKind::AttributeSplat => {
                    let rest = &steps[i + 1..];
                    let each = rest.iter().take_while(|s| matches!(s.kind, StepKind::Attribute(_) | StepKind::LegacyIndex(_))).count();
                    return self.splat(whole, here, &rest[..each], &rest[each..], scope, errors).marked(marks);
                }
            };
            match next {
                Next::Part(part) => here = part,
                Next::Made(made) => return self.follow(whole, &made, &steps[i + 1..], scope, errors).marked(marks),
                Next::Failed => return unknown(),
            }
        }
        here.clone().marked(marks)
    }

    fn no(&self, whole: &Expr, step: &Step, scope: &Scope<'_>, errors: &mut Errors, summary: &str, detail: String) -> Next<'static> {
        self.fail(whole, step.span, scope, errors, summary, detail);
        Next::Failed
    }

    fn attribute<'v>(&self, whole: &Expr, value: &'v Value, name: &str, step: &Step, scope: &Scope<'_>, errors: &mut Errors) -> Next<'v> {
        let missing = |kind: &str, entries: &Object| {
            let hint = if value.marks().any() { None } else { nearest(name, entries.keys().map(String::as_str)) };
            let meant = hint.map(|h| format!(" Did you mean \"{h}\"?")).unwrap_or_default();
            let there = if value.marks().any() || entries.is_empty() || hint.is_some() {
                String::new()
            } else {
                format!(" It has {}.", suggest::listed(entries.keys().map(String::as_str)))
            };
            format!("This {kind} has no \"{name}\".{there}{meant}")
        };
        match &value.kind {
            Kind::Object(entries) => match entries.get(name) {
                Some(part) => Next::Part(part),
                None => self.no(whole, step, scope, errors, "No such attribute", missing("object", entries)),
            },
            Kind::Map(_, entries) => match entries.get(name) {
                Some(part) => Next::Part(part),
                None => self.no(whole, step, scope, errors, "No such element", missing("map", entries)),
            },
            Kind::Unknown(u) => match &u.ty {
                Type::Any => Next::Made(unknown()),
                Type::Map(element) => Next::Made(Value::unknown((**element).clone())),
                Type::Object(attributes) => match attributes.get(name) {
                    Some(attribute) => Next::Made(Value::unknown(attribute.ty.clone())),
                    None => {
                        let names = || suggest::listed(attributes.keys().map(String::as_str));
                        let is_told = !value.marks().any() && !attributes.is_empty();
                        let there = if is_told { format!(" It has {}.", names()) } else { String::new() };
                        let detail = format!("This object has no \"{name}\".{there}");
                        self.no(whole, step, scope, errors, "No such attribute", detail)
                    }
                },
                _ => self.no_attributes(whole, value, name, step, scope, errors),
            },
            Kind::Null(_) => {
                let detail = format!("The value is null, so it has no \"{name}\".");
                self.no(whole, step, scope, errors, "Attribute of null", detail)
            }
            _ => self.no_attributes(whole, value, name, step, scope, errors),
        }
    }

    fn no_attributes(&self, whole: &Expr, value: &Value, name: &str, step: &Step, scope: &Scope<'_>, errors: &mut Errors) -> Next<'static> {
        let detail = match value.ty() {
            Type::List(_) | Type::Tuple(_) => {
                format!("A list has no attribute \"{name}\". For one element write [0].{name}, for all [*].{name}.")
            }
            Type::Set(_) => format!("A set has no attribute \"{name}\". Go over it with a for expression."),
            _ => format!("This is {} and has no attributes.", article(value)),
        };
        self.no(whole, step, scope, errors, "No such attribute", detail)
    }

    fn index<'v>(&self, whole: &Expr, value: &'v Value, key: &Value, step: &Step, scope: &Scope<'_>, errors: &mut Errors) -> Next<'v> {
        let summary = "Invalid index";
        if value.is_null() {
            return self.no(whole, step, scope, errors, summary, "The value is null, so it has no elements.".into());
        }
        if key.is_null() {
            return self.no(whole, step, scope, errors, summary, "An index must not be null.".into());
        }
        // What it is must not be told.
        let is_secret = key.all_marks().any();
        match &value.kind {
            Kind::List(_, items) | Kind::Tuple(items) => match position(key) {
                Err(problem) => self.no(whole, step, scope, errors, summary, problem),
                Ok(None) => Next::Made(match &value.kind {
                    Kind::List(element, _) => Value::unknown(element.clone()),
                    _ => Value::unknown(karmaform_model::unify(&items.iter().map(Value::ty).collect::<Vec<_>>()).unwrap_or(Type::Any)),
                }),
                Ok(Some(i)) => match items.get(i) {
                    Some(part) => Next::Part(part),
                    None if is_secret => self.no(whole, step, scope, errors, summary, NO_SECRET.into()),
                    None => {
                        let there = match items.len() {
                            0 => "it is empty".to_owned(),
                            n => format!("its indexes go from 0 to {}", n - 1),
                        };
                        self.no(whole, step, scope, errors, summary, format!("The list has no element {i}: {there}."))
                    }
                },
            },
            Kind::Map(..) | Kind::Object(_) => match convert(key, &Type::String) {
                Ok(name) => match name.as_str() {
                    Some(name) if !is_secret => self.attribute(whole, value, name, step, scope, errors),
                    Some(name) => {
                        value.get(name).map_or_else(|| self.no(whole, step, scope, errors, "No such element", NO_SECRET.into()), Next::Part)
                    }
                    None => Next::Made(match &value.kind {
                        Kind::Map(element, _) => Value::unknown(element.clone()),
                        _ => unknown(),
                    }),
                },
                Err(_) => self.no(whole, step, scope, errors, summary, no_name(key)),
            },
            Kind::Unknown(u) => match &u.ty {
                Type::Any => Next::Made(unknown()),
                // What can't be a key is none of what is to come, either.
                Type::List(_) if convert(key, &Type::Number).is_err() => self.no(whole, step, scope, errors, summary, no_number(key)),
                Type::Map(_) | Type::Object(_) if convert(key, &Type::String).is_err() => {
                    self.no(whole, step, scope, errors, summary, no_name(key))
                }
                Type::List(element) | Type::Map(element) => Next::Made(Value::unknown((**element).clone())),
                Type::Tuple(types) => match position(key) {
                    Err(problem) => self.no(whole, step, scope, errors, summary, problem),
                    Ok(None) => Next::Made(unknown()),
                    Ok(Some(i)) => match types.get(i) {
                        Some(ty) => Next::Made(Value::unknown(ty.clone())),
                        None if is_secret => self.no(whole, step, scope, errors, summary, NO_SECRET.into()),
                        None => self.no(whole, step, scope, errors, summary, format!("The list has no element {i}.")),
                    },
                },
                Type::Object(attributes) => match key.as_str() {
                    Some(name) if is_secret && !attributes.contains_key(name) => {
                        self.no(whole, step, scope, errors, "No such element", NO_SECRET.into())
                    }
                    Some(name) => self.attribute(whole, value, name, step, scope, errors),
                    None => Next::Made(unknown()),
                },
                _ => self.not_indexable(whole, value, step, scope, errors),
            },
            _ => self.not_indexable(whole, value, step, scope, errors),
        }
    }

    fn not_indexable(&self, whole: &Expr, value: &Value, step: &Step, scope: &Scope<'_>, errors: &mut Errors) -> Next<'static> {
        let detail = match value.ty() {
            Type::Set(_) => "Elements of a set have no index. Use tolist(), or one() if there is only one.".to_owned(),
            _ => format!("Only lists, maps and objects have elements; this is {}.", article(value)),
        };
        self.no(whole, step, scope, errors, "Invalid index", detail)
    }

    fn splat(&self, whole: &Expr, value: &Value, each: &[Step], rest: &[Step], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        let go = |item: &Value, errors: &mut Errors| self.follow(whole, item, each, scope, errors);
        let result = match &value.kind {
            Kind::Null(Type::List(_) | Type::Set(_) | Type::Tuple(_)) => {
                let detail =
                    "The value is null in place of a list or a set. For an empty list instead, write x == null ? [] : x[*].".into();
                return self.fail(whole, whole.span, scope, errors, "Splat over null", detail);
            }
            Kind::Null(_) => Value::tuple(Vec::new()),
            Kind::Tuple(items) => Value::tuple(items.iter().map(|v| go(v, errors)).collect()),
            // What follows must fit the elements also where there are none.
            Kind::List(element, items) | Kind::Set(element, items) if items.is_empty() => {
                Value::list(go(&Value::unknown(element.clone()), errors).ty(), Vec::new())
            }
            Kind::List(_, items) | Kind::Set(_, items) => listed(items.iter().map(|v| go(v, errors)).collect()),
            Kind::Unknown(u) => match &u.ty {
                Type::List(_) | Type::Set(_) if each.is_empty() => value.clone(),
                Type::List(element) | Type::Set(element) => {
                    let one = go(&Value::unknown(Type::clone(element)), errors);
                    Value::unknown_not_null(Type::list(one.ty()))
                }
                // What an element can't have is wrong before it is known.
                Type::Tuple(types) => {
                    let parts = types.iter().map(|ty| go(&Value::unknown(ty.clone()), errors).ty()).collect();
                    Value::unknown_not_null(Type::Tuple(parts))
                }
                Type::Any => Value::unknown_not_null(Type::Any),
                // As in Terraform: what is in brackets is looked for only once it is there.
                Type::Object(_) if !u.not_null && each.iter().any(|step| matches!(step.kind, StepKind::Index(_))) => {
                    Value::unknown_not_null(Type::Any)
                }
                // What can be no part of it is wrong even if it turns out to be null.
                _ => {
                    let one = go(value, errors);
                    if u.not_null { Value::tuple(vec![one]) } else { Value::unknown_not_null(Type::Any) }
                }
            },
            _ => Value::tuple(vec![go(value, errors)]),
        };
        self.follow(whole, &result.marked(value.marks()), rest, scope, errors)
    }
}

/// A list if all are of one type, else a tuple.
fn listed(items: Vec<Value>) -> Value {
    let Some(ty) = items.first().map(Value::ty) else { return Value::tuple(items) };
    if ty != Type::Any && items.iter().all(|v| v.ty() == ty) { Value::list(ty, items) } else { Value::tuple(items) }
}

/// A key as an index; `None` if it is not known.
fn position(key: &Value) -> Result<Option<usize>, String> {
    let number = convert(key, &Type::Number).map_err(|_| no_number(key))?;
    let Some(number) = number.as_number() else { return Ok(None) };
    if !number.is_whole() {
        return Err("The index must be a whole number.".into());
    }
    match number.as_i64() {
        Some(i) if i < 0 => Err("The index must not be negative. To count from the end, use list[length(list) - 1].".into()),
        Some(i) => Ok(Some(usize::try_from(i).unwrap_or(usize::MAX))),
        None => Ok(Some(usize::MAX)),
    }
}

fn no_number(key: &Value) -> String {
    format!("The index must be a number, but is {}.", article(key))
}

fn no_name(key: &Value) -> String {
    format!("The key must be a string, but is {}.", article(key))
}
