//! Named values: variables, locals, outputs and `provider` blocks of modules. Each is evaluated when somebody needs it, once per pass, and
//! what it needs before it: not inside of each other, for chains may be long.

use std::sync::Arc;

use karmaform_model::{Diagnostic, Key, Marks, Number, Object, Type, Value, convert};

use super::{Called, Name, Sort, defaults, names_of};
use crate::budget::bounded;
use crate::conditions;
use crate::config::{Condition, Config, Repetition};
use crate::describe::excerpt;
use crate::ephemeral;
use crate::eval::{Errors, unknown};
use crate::evaluator::Evaluator;
use crate::references::KeyUse;
use crate::scope::{Scope, Site};
use crate::suggest;
use crate::syntax::{Expr, Step, StepKind};

/// A module with more instances is not evaluated whole before one of them, chosen by an expression, is.
const FEW: usize = 64;

/// A value by name: the number of the module's instance, and what it is.
type Named = (usize, Sort, String);

impl Config {
    /// What stands in the directory of an instance of a module.
    pub(crate) fn home(&self, module: usize) -> &Self {
        self.modules.get(module).and_then(|m| m.unit.as_deref()).unwrap_or(self)
    }
}

impl Evaluator<'_> {
    /// The value of a local, of a variable of a module, of an output or of a `provider` block of one.
    pub(crate) fn named(&self, module: usize, sort: Sort, name: &str) -> Option<Arc<Value>> {
        if let Some(value) = self.remembered(module, sort, name) {
            return Some(value);
        }
        let mut path: Vec<(Named, Vec<Named>)> = vec![((module, sort, name.to_owned()), self.needs(module, sort, name)?)];
        while let Some((named, needs)) = path.last_mut() {
            if let Some(needed) = needs.pop() {
                if self.remembered(needed.0, needed.1, &needed.2).is_none()
                    && let Some(more) = self.needs(needed.0, needed.1, &needed.2)
                {
                    path.push((needed, more));
                }
                continue;
            }
            let (module, sort, name) = named.clone();
            path.pop();
            if self.remembered(module, sort, &name).is_none() {
                self.evaluate(module, sort, &name);
            }
        }
        self.remembered(module, sort, name)
    }

    fn remembered(&self, module: usize, sort: Sort, name: &str) -> Option<Arc<Value>> {
        self.memo.values.borrow().get(&(module, sort))?.get(name).cloned()
    }

    fn remember(&self, module: usize, sort: Sort, name: &str, value: Value) -> Arc<Value> {
        let value = Arc::new(value);
        self.memo.values.borrow_mut().entry((module, sort)).or_default().insert(name.to_owned(), Arc::clone(&value));
        value
    }

    /// The named values that one is made of, the first last; `None` if there is no such thing.
    fn needs(&self, module: usize, sort: Sort, name: &str) -> Option<Vec<Named>> {
        let home = self.config.home(module);
        let (module, names): (usize, &[Name]) = match sort {
            Sort::Local => (module, &home.locals.get(name)?.names),
            Sort::Output if self.overridden(module).is_some() => (module, &[]),
            Sort::Output => (module, &home.outputs.get(name)?.names),
            Sort::Variable => {
                home.declared.get(name).filter(|_| module > 0)?;
                let instance = self.config.modules.get(module)?;
                let argument = instance.call.as_ref().and_then(|c| c.arguments.get(name));
                (instance.parent, argument.map(|a| a.names.as_slice()).unwrap_or_default())
            }
            Sort::Provider => (module, &home.defaults.get(name)?.names),
            Sort::Whole => return Some(Vec::new()),
        };
        let mut all = Vec::new();
        for name in names.iter().rev() {
            match name {
                Name::Variable(_) if module == 0 => {}
                Name::Variable(name) => all.push((module, Sort::Variable, name.clone())),
                Name::Local(name) => all.push((module, Sort::Local, name.clone())),
                Name::Output { call, key, output } => {
                    let Some(called) = self.called(module, call) else { continue };
                    let meant = called.meant(key);
                    if *key == KeyUse::Computed && meant.len() > FEW {
                        continue;
                    }
                    for child in meant {
                        let outputs = self.config.home(child).outputs.keys().filter(|o| output.as_ref().is_none_or(|n| n == *o));
                        all.extend(outputs.map(|o| (child, Sort::Output, o.clone())));
                    }
                }
            }
        }
        Some(all)
    }

    /// What a test says in place of all that stands in an instance of a module.
    fn overridden(&self, module: usize) -> Option<&Object> {
        self.config.modules.get(module)?.overridden.as_deref()
    }

    fn called(&self, module: usize, call: &str) -> Option<&Called> {
        self.config.modules.get(module)?.children.get(call)
    }

    fn evaluate(&self, module: usize, sort: Sort, name: &str) {
        let (rounds, loops) = (self.memo.rounds.replace(0), self.memo.loops.replace(false));
        let home = self.config.home(module);
        let site = Site::in_module(module);
        let scope = Scope::new(&site);
        let mut errors = Errors::default();
        match sort {
            Sort::Local => {
                let Some(local) = home.locals.get(name) else { return };
                let value = self.eval(&local.expr, &scope, &mut errors);
                let value = bounded(value, &format!("The local \"{name}\""), local.expr.span, &mut errors);
                self.remember(module, sort, name, value);
            }
            Sort::Output => {
                let Some(output) = home.outputs.get(name) else { return };
                if let Some(said) = self.overridden(module) {
                    let value = said.get(name).cloned().unwrap_or_else(|| Value::null(Type::Any));
                    self.remember(module, sort, name, value.marked(output.marks()));
                    return;
                }
                conditions::preconditions(self, &output.preconditions, "Output precondition failed", &scope, &mut errors);
                let value = self.eval(&output.value, &scope, &mut errors);
                if !output.ephemeral && value.contains_ephemeral() {
                    errors.push(ephemeral::output(name, output.value.span));
                } else if output.ephemeral && !value.ephemeral && value.ty() != Type::Any && !errors.any() {
                    errors.push(ephemeral::output_of_nothing(name, output.value.span));
                }
                let value = bounded(value, &format!("The output \"{name}\""), output.value.span, &mut errors).marked(output.marks());
                self.remember(module, sort, name, value);
            }
            Sort::Variable => {
                let mut value = self.input(module, name, &mut errors);
                if let Some(declaration) = home.declared.get(name).filter(|_| self.config.any_values) {
                    let nothing = Value::unknown(declaration.ty.clone()).marked(declaration.marks());
                    let given = std::mem::replace(&mut value, nothing);
                    if !errors.any() {
                        self.judge_given(module, name, given, &mut errors);
                    }
                }
                let is_unknown = value.is_unknown();
                self.remember(module, sort, name, value);
                // A value that was wrong already is not worth more words; the conditions may look at the variable, so it is known by now.
                if !is_unknown
                    && !errors.any()
                    && let Some(declaration) = home.declared.get(name)
                {
                    self.check_input(module, name, &declaration.validations, &mut errors);
                }
            }
            Sort::Provider => {
                let Some(object) = defaults::value(self, module, name, &mut errors) else { return };
                self.remember(module, sort, name, object.into());
            }
            Sort::Whole => {}
        }
        self.memo.rounds.set(rounds);
        self.memo.loops.set(loops);
        let mut late = self.memo.late.borrow_mut();
        for error in errors.list {
            if !late.contains(&error) {
                late.push(error);
            }
        }
    }

    /// What a call gives for a variable of its module, or its default.
    fn input(&self, module: usize, name: &str, errors: &mut Errors) -> Value {
        let home = self.config.home(module);
        let (Some(declaration), Some(call)) = (home.declared.get(name), self.config.modules.get(module).and_then(|m| m.call.as_ref()))
        else {
            return unknown();
        };
        let nothing = || Value::unknown(declaration.ty.clone());
        let default = || declaration.default.clone().unwrap_or_else(nothing).marked(declaration.marks());
        let Some(argument) = call.arguments.get(name) else { return default() };
        let site = self.call_site(module);
        let before = errors.list.len();
        let value = self.eval(&argument.expr, &Scope::new(&site), errors);
        let value = bounded(value, &format!("The variable \"{name}\""), argument.expr.span, errors);
        if errors.list.len() > before {
            return nothing().marked(declaration.marks());
        }
        // The line of a secret value must not be drawn.
        let span = if declaration.sensitive { declaration.span } else { argument.expr.span };
        let wrong = |detail: String| {
            Diagnostic::error("Invalid value for a variable", detail).with_span(Some(span)).with_label(declaration.span, "declared here")
        };
        if !declaration.ephemeral && value.contains_ephemeral() {
            errors.push(ephemeral::input(name, span, declaration.span));
            return nothing().marked(declaration.marks());
        }
        let value = match convert(&value, &declaration.ty) {
            Ok(value) => value,
            Err(error) => {
                let shown = if declaration.sensitive { None } else { excerpt(&value) };
                let shown = shown.map(|text| format!(" It is {text}.")).unwrap_or_default();
                errors.push(wrong(format!("The value of \"{name}\" does not fit its type {}: {error}.{shown}", declaration.ty)));
                nothing()
            }
        };
        if value.is_null() && !declaration.nullable {
            if declaration.default.is_some() {
                return default().marked(value.marks());
            }
            errors.push(wrong(format!("The variable \"{name}\" is not nullable, but is null here.")));
            return nothing();
        }
        value.marked(declaration.marks())
    }

    /// What the rules of a variable say of what a call gives it, where the value is for this alone: else any value may be there. Rules that need other names
    /// than the variable's own are passed over, so that nothing is remembered that is made of the value.
    fn judge_given(&self, module: usize, name: &str, given: Value, errors: &mut Errors) {
        let Some(declaration) = self.config.home(module).declared.get(name).filter(|_| !given.is_unknown()) else { return };
        self.remember(module, Sort::Variable, name, given);
        let is_own = |c: &&Condition| names_of([&c.condition, &c.message]).iter().all(|n| *n == Name::Variable(name.into()));
        self.check_input(module, name, declaration.validations.iter().filter(is_own), errors);
    }

    /// What some of the `validation` blocks of a variable say.
    fn check_input<'c>(&self, module: usize, name: &str, validations: impl IntoIterator<Item = &'c Condition>, errors: &mut Errors) {
        let Some(declaration) = self.config.home(module).declared.get(name) else { return };
        let site = Site::in_module(module);
        let given = self.config.modules.get(module).and_then(|m| m.call.as_ref()).and_then(|c| c.arguments.get(name));
        let span = given.map(|a| a.expr.span).filter(|_| !declaration.sensitive).unwrap_or(declaration.span);
        for validation in validations {
            if let Some(message) = conditions::failed(self, validation, &Scope::new(&site), errors) {
                let detail = format!("The value of \"{name}\" is refused: {message}");
                errors.push(
                    Diagnostic::error("Invalid value for a variable", detail)
                        .with_span(Some(span))
                        .with_label(validation.condition.span, "this rule refused it"),
                );
            }
        }
    }

    /// What `each` and `count` are in the call of an instance.
    fn call_site(&self, module: usize) -> Site {
        let Some(instance) = self.config.modules.get(module) else { return Site::default() };
        let key = instance.path.last().and_then(|s| s.key.as_ref());
        let mut site = Site::in_module(instance.parent);
        match key {
            Some(Key::Index(i)) => site.count = Some(Value::from(Number::from(*i))),
            Some(Key::Name(name)) => site.each = Some((name.as_str().into(), self.each_of_module(module, name))),
            None => return instance.call.iter().fold(site, |site, call| site.of_any(&call.repeat)),
        }
        site
    }

    fn each_of_module(&self, module: usize, name: &str) -> Value {
        let instance = &self.config.modules[module];
        let (Some(call), Some(step)) = (&instance.call, instance.path.last()) else { return unknown() };
        let Some(called) = self.called(instance.parent, &step.name) else { return unknown() };
        let mut path = instance.path.clone();
        if let Some(last) = path.last_mut() {
            last.key = None;
        }
        let whole = karmaform_model::Address::of_module(path);
        crate::attributes::each_value(self, &called.repetition, &call.repeat, &whole, instance.parent, name)
    }

    /// The value of `module.CALL` followed by steps.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn module_traversal(
        &self,
        whole: &Expr,
        call: &str,
        key: &KeyUse,
        used: usize,
        steps: &[Step],
        scope: &Scope<'_>,
        errors: &mut Errors,
    ) -> Value {
        let module = scope.site.module;
        let Some(called) = self.called(module, call) else { return unknown() };
        let of_all = |from: usize, errors: &mut Errors| {
            let value = self.whole_call(module, call, called);
            self.follow(whole, &value, &steps[from..], scope, errors)
        };
        match (&called.repetition, key) {
            (Repetition::Single, _) => {
                // An index of a single module is an output in brackets.
                let used = if *key == KeyUse::None { used } else { used - 1 };
                let Some(&child) = called.instances.get(&None) else { return unknown() };
                self.of_instance(whole, child, &steps[used..], scope, errors)
            }
            (Repetition::Open, _) => {
                let Some(&child) = called.instances.get(&None) else { return unknown() };
                match key {
                    // Whether this is a list or an object is not known.
                    KeyUse::None | KeyUse::Splat => {
                        unknown().marked(Marks { secret: false, ephemeral: self.whole_instance(child).contains_ephemeral() })
                    }
                    KeyUse::Literal(_) | KeyUse::Computed => self.of_instance(whole, child, &steps[used..], scope, errors),
                }
            }
            (_, KeyUse::None) => of_all(used, errors),
            (_, KeyUse::Splat) => of_all(used - 1, errors),
            (_, KeyUse::Literal(_) | KeyUse::Computed) => {
                let key = match (key, steps.get(used - 1).map(|s| &s.kind)) {
                    (KeyUse::Literal(Key::Index(i)), _) => Value::from(Number::from(*i)),
                    (KeyUse::Literal(Key::Name(name)), _) => name.as_str().into(),
                    (_, Some(StepKind::Index(index))) => {
                        let before = errors.list.len();
                        let key = self.eval(index, scope, errors);
                        if errors.list.len() > before {
                            return unknown();
                        }
                        key
                    }
                    _ => return unknown(),
                };
                let marks = key.all_marks();
                if key.is_unknown() {
                    return unknown().marked(marks);
                }
                match called.child(&key) {
                    Some(child) => self.of_instance(whole, child, &steps[used..], scope, errors).marked(marks),
                    None => {
                        let shown = excerpt(&key).map(|k| format!(" {k}")).unwrap_or_default();
                        let detail = format!("module.{call} has no instance{shown}: {}.", called.there());
                        self.fail(whole, steps[used - 1].span, scope, errors, "No such instance", detail)
                    }
                }
            }
        }
    }

    /// The value of one instance followed by steps: only the output that is meant is evaluated.
    fn of_instance(&self, whole: &Expr, child: usize, steps: &[Step], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        if !self.config.any_values
            && let Some(Step { kind: StepKind::Attribute(name), .. }) = steps.first()
            && let Some(value) = self.named(child, Sort::Output, name)
        {
            return self.follow(whole, &value, &steps[1..], scope, errors);
        }
        let value = self.whole_instance(child);
        self.follow(whole, &value, steps, scope, errors)
    }

    fn whole_instance(&self, child: usize) -> Arc<Value> {
        if let Some(value) = self.remembered(child, Sort::Whole, "") {
            return value;
        }
        let outputs = self.config.home(child).outputs.iter();
        let object: Object = if self.config.any_values {
            // As in Terraform, whether they are secret is not known either; what is kept nowhere must not get elsewhere.
            outputs.map(|(name, o)| (name.clone(), unknown().marked(Marks { secret: false, ephemeral: o.ephemeral }))).collect()
        } else {
            outputs.filter_map(|(name, _)| Some((name.clone(), Value::clone(&*self.named(child, Sort::Output, name)?)))).collect()
        };
        self.remember(child, Sort::Whole, "", object.into())
    }

    /// All instances of a module: a list by `count`, an object by `for_each`.
    fn whole_call(&self, module: usize, call: &str, called: &Called) -> Arc<Value> {
        if let Some(value) = self.remembered(module, Sort::Whole, call) {
            return value;
        }
        let instance = |number: &usize| Value::clone(&self.whole_instance(*number));
        let value = match &called.repetition {
            Repetition::Count(_) => Value::tuple(called.instances.values().map(instance).collect()),
            _ => {
                let entries = called.instances.iter().filter_map(|(key, number)| match key {
                    Some(Key::Name(name)) => Some((name.clone(), instance(number))),
                    _ => None,
                });
                entries.collect::<Object>().into()
            }
        };
        self.remember(module, Sort::Whole, call, value)
    }

    /// Evaluates what modules say of what goes in and out, whether somebody needs it or not, and gives what is wrong with it. `whole`: all of
    /// it, else only where there are conditions: what a plan leaves aside is as it was, and does not fit what is written now.
    ///
    /// `judges`: what variables may be is judged by now also where that needs things: all of them are as they are written.
    pub fn check_modules(&self, whole: bool, judges: bool) -> karmaform_model::Diagnostics {
        for number in 1..self.config.modules.len() {
            let home = self.config.home(number);
            for (name, _) in home.declared.iter().filter(|(_, d)| whole || !d.validations.is_empty()) {
                self.named(number, Sort::Variable, name);
            }
            for (name, _) in home.outputs.iter().filter(|(_, o)| whole || !o.preconditions.is_empty()) {
                self.named(number, Sort::Output, name);
            }
            let is_there = whole && self.overridden(number).is_none();
            for name in home.defaults.keys().filter(|_| is_there) {
                self.named(number, Sort::Provider, name);
            }
        }
        // All is as known by now as it gets.
        let mut errors = Errors::default();
        for number in (0..self.config.modules.len()).filter(|n| self.overridden(*n).is_none()) {
            // Also locals that nothing is made of.
            for name in self.config.home(number).locals.names().filter(|_| whole) {
                self.named(number, Sort::Local, name);
            }
            for (name, declaration) in self.config.home(number).declared.iter().filter(|_| judges) {
                self.check_input(number, name, &declaration.later, &mut errors);
            }
        }
        self.finish(errors)
    }
}

impl Called {
    /// The instance of a key.
    fn child(&self, key: &Value) -> Option<usize> {
        let key = match &self.repetition {
            Repetition::Single | Repetition::Open => None,
            Repetition::Count(_) => {
                let index = convert(key, &Type::Number).ok()?.as_i64()?;
                Some(Key::Index(u64::try_from(index).ok()?))
            }
            Repetition::ForEach(_) => Some(Key::Name(convert(key, &Type::String).ok()?.as_str()?.to_owned())),
        };
        self.instances.get(&key).copied()
    }

    fn there(&self) -> String {
        match &self.repetition {
            Repetition::Single | Repetition::Open => "it has neither count nor for_each".to_owned(),
            Repetition::Count(0) => "its count is 0".to_owned(),
            Repetition::Count(n) => format!("its indexes go from 0 to {}", n - 1),
            Repetition::ForEach(entries) if entries.is_empty() => "its for_each is empty".to_owned(),
            Repetition::ForEach(entries) => format!("its keys are {}", suggest::listed(entries.keys().map(String::as_str))),
        }
    }
}
