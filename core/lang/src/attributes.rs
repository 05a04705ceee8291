//! The arguments of an instance: its body evaluated and made to fit its schema.

use std::sync::Arc;

use karmaform_model::{
    Address, Attribute, Block as BlockSchema, Diagnostic, Key, Kind, Mode, Nesting, Object, Presence, Schema, Value, convert,
};

use crate::blocks::iterator;
use crate::conditions;
use crate::config::{Repeat, Repetition, ResourceBlock};
use crate::ephemeral;
use crate::eval::{Errors, article};
use crate::evaluator::Evaluator;
use crate::modules;
use crate::scope::{Scope, Site};
use crate::syntax::{Block, Body};

/// See [`Evaluator::arguments`].
pub(crate) fn arguments(evaluator: &Evaluator<'_>, instance: &Address, errors: &mut Errors) -> Object {
    let (Some(block), Some(schema)) = (evaluator.config.block(instance), evaluator.config.schema(instance)) else { return Object::new() };
    let site = site(evaluator, block, instance.key.as_ref());
    let scope = Scope::new(&site);
    conditions::preconditions(evaluator, &block.preconditions, conditions::PRECONDITION, &scope, errors);
    let mut object = body_object(evaluator, schema, &block.body, &scope, errors);
    object.retain(|name, _| schema.attribute(name).is_none_or(Attribute::is_configurable));
    modules::give_defaults(evaluator, block, &mut object);
    schema.mark(&mut object);
    if !errors.any() {
        refused_by_provider(evaluator, block, &object, errors);
    }
    object
}

/// What a data source itself says against its arguments, where these are written.
fn refused_by_provider(evaluator: &Evaluator<'_>, block: &ResourceBlock, arguments: &Object, errors: &mut Errors) {
    let Some(entry) = evaluator.config.registry.data_source(&block.address.kind).filter(|_| block.address.mode == Mode::Data) else {
        return;
    };
    for (name, wrong) in entry.driver.refused(&block.address.kind, arguments) {
        errors.push(wrong.with_span(block.body.attribute(name).map(|a| a.expr.span).or(Some(block.span))));
    }
}

/// What `each` and `count` are for an instance.
pub(crate) fn site(evaluator: &Evaluator<'_>, block: &ResourceBlock, key: Option<&Key>) -> Site {
    let mut site = Site::in_module(block.module);
    match key {
        Some(Key::Index(i)) => site.count = Some(Value::from(karmaform_model::Number::from(*i))),
        Some(Key::Name(name)) => {
            let value = each_value(evaluator, &block.repetition, &block.repeat, &block.address, block.module, name);
            site.each = Some((name.as_str().into(), value));
        }
        None if block.repetition == Repetition::Open => return site.of_any(&block.repeat),
        None => {}
    }
    site
}

/// The value of a key of a block or module, whose `for_each` stands in an instance of a module. If it was not known when the configuration
/// was loaded, the expression is evaluated again, once per pass.
pub(crate) fn each_value(
    evaluator: &Evaluator<'_>,
    repetition: &Repetition,
    repeat: &Repeat,
    whole: &Address,
    module: usize,
    name: &str,
) -> Value {
    let Repetition::ForEach(entries) = repetition else { return crate::eval::unknown() };
    let loaded = entries.get(name).cloned().unwrap_or_else(crate::eval::unknown);
    if loaded.is_wholly_known() {
        return loaded;
    }
    let known = evaluator.memo.each.borrow().get(whole).cloned();
    let now = known.unwrap_or_else(|| {
        let value = match repeat {
            Repeat::ForEach(expr) => evaluator.eval(expr, &Scope::new(&Site::in_module(module)), &mut Errors::silent()),
            _ => crate::eval::unknown(),
        };
        let value = Arc::new(value);
        evaluator.memo.each.borrow_mut().insert(whole.clone(), value.clone());
        value
    });
    now.get(name).cloned().unwrap_or(loaded)
}

/// The attributes and blocks of a body; all that the schema has.
pub(crate) fn body_object(evaluator: &Evaluator<'_>, schema: &Schema, body: &Body, scope: &Scope<'_>, errors: &mut Errors) -> Object {
    let mut object = Object::new();
    for attribute in &schema.attributes {
        object.insert(attribute.name.to_owned(), attribute_value(evaluator, attribute, body, scope, errors));
    }
    for block in &schema.blocks {
        object.insert(block.name.to_owned(), block_value(evaluator, block, body, scope, errors));
    }
    object
}

fn attribute_value(evaluator: &Evaluator<'_>, attribute: &Attribute, body: &Body, scope: &Scope<'_>, errors: &mut Errors) -> Value {
    let absent = || attribute.default.clone().unwrap_or_else(|| Value::null(attribute.ty.clone()));
    let Some(written) = body.attribute(attribute.name).filter(|_| attribute.is_configurable()) else { return absent() };
    let before = errors.list.len();
    let value = evaluator.eval(&written.expr, scope, errors);
    let wrong = || Value::unknown(attribute.ty.clone()).secret_if(value.contains_secret());
    if errors.list[before..].iter().any(Diagnostic::is_error) {
        return wrong();
    }
    if attribute.is_stored() && !scope.site.of_run && value.contains_ephemeral() {
        errors.push(ephemeral::argument(attribute, written.expr.span));
        return wrong();
    }
    if value.is_null() {
        if attribute.presence == Presence::Required {
            let detail = format!("\"{}\" must have a value, and null stands for none.", attribute.name);
            return evaluator.fail(&written.expr, written.expr.span, scope, errors, "Null for a required argument", detail);
        }
        return absent().marked(value.marks());
    }
    match convert(&value, &attribute.ty) {
        Ok(converted) => converted,
        Err(error) => {
            let found = if attribute.secret { String::new() } else { format!(" It is {}.", article(&value)) };
            let detail = if attribute.ty.is_primitive() {
                format!("\"{}\" must be a {}.{found}", attribute.name, attribute.ty)
            } else {
                format!("\"{}\" must be of type {}: {error}.", attribute.name, attribute.ty)
            };
            evaluator.fail(&written.expr, written.expr.span, scope, errors, "Argument of the wrong type", detail);
            wrong()
        }
    }
}

fn block_value(evaluator: &Evaluator<'_>, schema: &BlockSchema, body: &Body, scope: &Scope<'_>, errors: &mut Errors) -> Value {
    let mut found: Vec<(String, Value)> = Vec::new();
    for block in &body.blocks {
        if block.kind == schema.name {
            let label = block.labels.first().map(|l| l.text.clone()).unwrap_or_default();
            found.push((label, body_object(evaluator, &schema.schema, &block.body, scope, errors).into()));
        } else if block.kind == "dynamic" && block.labels.first().is_some_and(|l| l.text == schema.name) {
            match dynamic(evaluator, schema, block, scope, errors) {
                Some(more) => found.extend(more),
                None => return Value::unknown(schema.ty()),
            }
        }
    }
    match schema.nesting {
        Nesting::Single => found.into_iter().next().map_or_else(|| Value::null(schema.ty()), |(_, value)| value),
        Nesting::List => Value::list(schema.schema.object_type().clone(), found.into_iter().map(|(_, value)| value).collect()),
        Nesting::Map => Value::map(schema.schema.object_type().clone(), found.into_iter().collect()),
    }
}

/// The blocks that a `dynamic` block makes; `None` if that is not known yet, or after an error.
fn dynamic(
    evaluator: &Evaluator<'_>,
    schema: &BlockSchema,
    block: &Block,
    scope: &Scope<'_>,
    errors: &mut Errors,
) -> Option<Vec<(String, Value)>> {
    let for_each = &block.body.attribute("for_each")?.expr;
    let content = &block.body.blocks("content").next()?.body;
    let name = iterator(block)?;
    let before = errors.list.len();
    let collection = evaluator.eval(for_each, scope, errors);
    if errors.list.len() > before {
        return None;
    }
    if collection.ephemeral && !scope.site.of_run {
        errors.push(ephemeral::refused("The number of blocks", for_each.span));
        return None;
    }
    let entries = evaluator.entries(for_each, &collection, "A dynamic block", scope, errors)??;
    let (marks, mut made) = (collection.marks(), Vec::new());
    for (key, value) in entries {
        let (key, value) = (key.marked(marks), value.marked(marks));
        let iterator = Value::object([("key", key.clone()), ("value", value)]);
        scope.bind(&[(name.as_str(), iterator)], |inner| {
            let label = match (schema.nesting, block.body.attribute("labels")) {
                (Nesting::Map, Some(labels)) => label(evaluator, &labels.expr, inner, errors),
                _ => Some(String::new()),
            };
            let object = body_object(evaluator, &schema.schema, content, inner, errors);
            if let Some(label) = label {
                made.push((label, Value::from(object)));
            }
        });
    }
    Some(made)
}

fn label(evaluator: &Evaluator<'_>, expr: &crate::syntax::Expr, scope: &Scope<'_>, errors: &mut Errors) -> Option<String> {
    let before = errors.list.len();
    let value = evaluator.eval(expr, scope, errors);
    if errors.list.len() > before {
        return None;
    }
    if value.contains_ephemeral() {
        errors.push(ephemeral::refused("The label of a block", expr.span));
        return None;
    }
    let text = match value.as_items() {
        Some([one]) => convert(one, &karmaform_model::Type::String).ok(),
        _ => None,
    };
    match text {
        Some(Value { kind: Kind::String(text), .. }) => Some(text),
        _ => {
            let detail = "\"labels\" must be a list of one text that is known before apply.".into();
            evaluator.fail(expr, expr.span, scope, errors, "Invalid labels", detail);
            None
        }
    }
}
