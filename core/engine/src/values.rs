//! Small pure helpers on objects: what is not known yet, what the state remembers, marks, and paths.

use std::collections::BTreeSet;

use karmaform_model::{
    Attribute, ConvertError, Kind, Marks, Object, Path, PathStep, ResourceState, Schema, Type, Value, convert, fits, same,
};

/// An instance of which nothing is known: every attribute "known after apply".
pub(crate) fn unknown_object(schema: &Schema) -> Object {
    with_unknown(schema, &Object::new())
}

/// These attributes, and all others of the schema "known after apply".
pub(crate) fn with_unknown(schema: &Schema, known: &Object) -> Object {
    fill(schema, known, Value::unknown)
}

/// These attributes, converted where they fit, and all others of the schema null.
pub(crate) fn with_nulls(schema: &Schema, known: &Object) -> Object {
    fill(schema, known, Value::null)
}

fn fill(schema: &Schema, known: &Object, missing: impl Fn(Type) -> Value) -> Object {
    // Most objects have all of it already, and then the copy is the same one.
    let mut object = known.clone();
    let has = |name: &String| schema.attribute(name).is_some() || schema.block(name).is_some();
    if !known.keys().all(has) {
        object.retain(|name, _| has(name));
    }
    for attribute in &schema.attributes {
        match known.get(attribute.name) {
            None => drop(object.insert(attribute.name.to_owned(), missing(attribute.ty.clone()))),
            Some(value) if fits(value, &attribute.ty) => {}
            Some(value) => put_converted(&mut object, attribute.name, value, &attribute.ty),
        }
    }
    for block in &schema.blocks {
        match known.get(block.name) {
            None => drop(object.insert(block.name.to_owned(), missing(block.ty()))),
            Some(value) if block.fits(value) => {}
            Some(value) => put_converted(&mut object, block.name, value, &block.ty()),
        }
    }
    schema.mark(&mut object);
    object
}

fn put_converted(object: &mut Object, name: &str, value: &Value, ty: &Type) {
    if let Ok(converted) = convert(value, ty) {
        object.put(name, converted);
    }
}

/// True if an object has every attribute of the schema in its type, and those of `after` as they are there. What `after` lacks are facts of
/// the moment.
pub(crate) fn is_all(schema: &Schema, object: &Object, after: Option<&Object>) -> bool {
    let is_there = |name: &str, fits: &dyn Fn(&Value) -> bool| object.get(name).is_some_and(fits);
    schema.attributes.iter().all(|a| is_there(a.name, &|v| fits(v, &a.ty)))
        && schema.blocks.iter().all(|b| is_there(b.name, &|v| b.fits(v)))
        && object.len() == schema.attributes.len() + schema.blocks.len()
        && after.is_some_and(|after| after.iter().all(|(name, value)| object.get(name) == Some(value)))
}

/// What the state says of an instance, with the marks of the schema and of the configuration it was made from.
pub(crate) fn remembered(schema: &Schema, state: &ResourceState) -> Result<Object, ConvertError> {
    let mut object = state.attributes.decoded(schema)?;
    mark_paths(&mut object, &state.secret_paths);
    Ok(object)
}

/// Marks these paths, as far as they exist.
pub(crate) fn mark_paths(object: &mut Object, paths: &[Path]) {
    for path in paths {
        if let Some((PathStep::Name(name), rest)) = path.0.split_first() {
            mark_path(object, name, rest);
        }
    }
}

fn mark_path(object: &mut Object, name: &str, path: &[PathStep]) {
    // Looked at first: to change a shared object is to copy it.
    if object.get(name).is_some_and(|v| !v.is_marked(path))
        && let Some(value) = object.get_mut(name)
    {
        value.mark_secret(path);
    }
}

/// Where an object is secret though its schema does not say so.
pub(crate) fn secret_paths(schema: &Schema, object: &Object) -> Vec<Path> {
    let mut found = Vec::new();
    for (name, value) in object {
        if schema.attribute(name).is_some_and(|a| a.secret || !a.is_stored()) || !value.contains_secret() {
            continue;
        }
        let below = |path: &Path| {
            let mut steps = vec![PathStep::Name(name.clone())];
            steps.extend(path.0.iter().cloned());
            Path(steps)
        };
        found.extend(value.secret_paths().iter().map(below));
    }
    found
}

/// Puts the marks of one object on another, also where the first is not known yet.
pub(crate) fn carry_marks(from: &Object, to: &mut Object) {
    for (name, value) in from {
        if value.contains_secret() {
            value.secret_paths().iter().for_each(|path| mark_path(to, name, &path.0));
        }
    }
}

/// Marks texts that are the same as a secret one in `from`: what a provider gives back of a secret it was given is no less secret. What it
/// gave back as the configuration wrote it keeps the marks it has there, as a plain text may happen to be the same as a secret; so does what it
/// gave back in an attribute that echoes one of these.
pub(crate) fn mark_copies(schema: &Schema, from: &Object, to: &mut Object) {
    let mut secrets = BTreeSet::new();
    from.values().for_each(|v| collect_secrets(v, false, &mut secrets));
    if secrets.is_empty() {
        return;
    }
    for (name, value) in to.iter_mut() {
        let attribute = schema.attribute(name);
        let is_written = attribute.is_none_or(Attribute::is_configurable);
        let source = if is_written { Some(name.as_str()) } else { attribute.and_then(|a| a.echoes) };
        let written = source.and_then(|name| from.get(name));
        if let (false, Some(written)) = (is_written, written) {
            written.secret_paths().iter().for_each(|path| value.mark_secret(&path.0));
        }
        mark_equal(value, written, &secrets);
    }
}

fn collect_secrets<'a>(value: &'a Value, inside: bool, found: &mut BTreeSet<&'a str>) {
    let secret = inside || value.secret;
    found.extend(value.as_str().filter(|text| secret && !text.is_empty()));
    value.parts().for_each(|part| collect_secrets(part, secret, found));
}

/// Marks what is the same as a secret, but for what stands at the same place in `written`.
fn mark_equal(value: &mut Value, written: Option<&Value>, secrets: &BTreeSet<&str>) {
    if written.is_some_and(|w| same(Some(w), Some(&*value))) {
        return;
    }
    match &mut value.kind {
        Kind::String(text) => value.secret |= secrets.contains(text.as_str()),
        Kind::List(_, items) | Kind::Tuple(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                mark_equal(item, written.and_then(|w| w.as_items()?.get(i)), secrets);
            }
        }
        Kind::Map(_, entries) | Kind::Object(entries) => {
            for (name, entry) in entries.iter_mut() {
                mark_equal(entry, written.and_then(|w| w.get(name)), secrets);
            }
        }
        // A set keeps its marks as one, on the whole.
        Kind::Set(_, items) => value.secret |= items.iter().any(|v| v.as_str().is_some_and(|text| secrets.contains(text))),
        _ => {}
    }
}

/// True if no part of any value is unknown.
pub(crate) fn is_wholly_known(object: &Object) -> bool {
    object.values().all(Value::is_wholly_known)
}

/// A copy without volatile attributes; `write_only` ones go as well if `stored`.
pub(crate) fn without_volatile(schema: &Schema, object: &Object, stored: bool) -> Object {
    let keeps = |name: &str| schema.attribute(name).is_none_or(|a| !(a.volatile || stored && a.write_only));
    if object.keys().all(|name| keeps(name)) {
        return object.clone();
    }
    object.iter().filter(|(name, _)| keeps(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// The part of an object at a path; nothing where there is none.
pub(crate) fn part_of<'o>(object: &'o Object, path: &Path) -> Option<&'o Value> {
    let (PathStep::Name(name), rest) = path.0.split_first()? else { return None };
    rest.iter().try_fold(object.get(name)?, |value, step| match step {
        PathStep::Name(name) => value.get(name),
        PathStep::Index(i) => value.as_items()?.get(*i),
    })
}

/// The object with the part at this path taken from `source`; taken away if it is not there.
pub(crate) fn take_from(target: &mut Object, source: &Object, path: &Path) {
    let Some((PathStep::Name(name), rest)) = path.0.split_first() else { return };
    match (target.get_mut(name), source.get(name)) {
        (Some(target), Some(source)) => take_value(target, source, rest),
        (_, Some(source)) if rest.is_empty() => drop(target.insert(name.clone(), source.clone())),
        _ => {}
    }
}

fn take_value(target: &mut Value, source: &Value, path: &[PathStep]) {
    let Some((step, rest)) = path.split_first() else {
        *target = source.clone();
        return;
    };
    match (&mut target.kind, step) {
        (Kind::Map(_, entries) | Kind::Object(entries), PathStep::Name(name)) => match (entries.get_mut(name), source.get(name)) {
            (Some(there), Some(source)) => take_value(there, source, rest),
            (None, Some(source)) if rest.is_empty() => drop(entries.insert(name.clone(), source.clone())),
            (Some(_), None) if rest.is_empty() => drop(entries.remove(name)),
            _ => {}
        },
        (Kind::List(_, items) | Kind::Tuple(items), PathStep::Index(i)) => {
            if let (Some(there), Some(source)) = (items.get_mut(*i), source.as_items().and_then(|s| s.get(*i))) {
                take_value(there, source, rest);
            }
        }
        _ => {}
    }
}

/// Fills what the plan left open from what is known now; what the plan showed must be the same now.
///
/// # Errors
/// The place where it is not.
pub(crate) fn merge(planned: &Value, now: &Value, path: &Path) -> Result<Value, Path> {
    let marks = planned.marks() | now.marks();
    if planned.is_unknown() {
        // Of what was not known all was taken to be secret; by now it can be told which part is.
        let is_in_part = !now.secret && now.contains_secret();
        return Ok(now.clone().marked(Marks { secret: planned.secret && !is_in_part, ..planned.marks() }));
    }
    // It had parts because one of them was taken to be secret, and by now none is.
    if now.is_unknown() && tells_nothing(planned) {
        return Ok(now.clone().marked(planned.marks()));
    }
    if planned.is_wholly_known() {
        return if same(Some(planned), Some(now)) { Ok(planned.clone().marked(now.marks())) } else { Err(path.clone()) };
    }
    let kind = match (&planned.kind, &now.kind) {
        (Kind::List(_, p) | Kind::Tuple(p), Kind::List(..) | Kind::Tuple(_)) => {
            let items = now.as_items().unwrap_or_default();
            if p.len() != items.len() {
                return Err(path.clone());
            }
            let merged: Vec<_> =
                p.iter().zip(items).enumerate().map(|(i, (a, b))| merge(a, b, &path.then(PathStep::Index(i)))).collect::<Result<_, _>>()?;
            match &now.kind {
                Kind::List(ty, _) => Kind::List(ty.clone(), merged),
                _ => Kind::Tuple(merged),
            }
        }
        // Elements of a set have no place that could be compared while some are unknown.
        (Kind::Set(..), Kind::Set(..)) => now.kind.clone(),
        (Kind::Map(_, p) | Kind::Object(p), Kind::Map(_, n) | Kind::Object(n)) => {
            if !p.keys().eq(n.keys()) {
                return Err(path.clone());
            }
            let merged: Object = p
                .iter()
                .zip(n.values())
                .map(|((name, a), b)| Ok((name.clone(), merge(a, b, &path.then(PathStep::Name(name.clone())))?)))
                .collect::<Result<_, Path>>()?;
            match &now.kind {
                Kind::Map(ty, _) => Kind::Map(ty.clone(), merged),
                _ => Kind::Object(merged),
            }
        }
        _ => return Err(path.clone()),
    };
    Ok(Value::from(kind).marked(marks))
}

/// True if nothing in it is known.
fn tells_nothing(value: &Value) -> bool {
    let entries = value.as_entries().map(|e| !e.is_empty() && e.values().all(tells_nothing));
    let items = value.as_items().map(|i| !i.is_empty() && i.iter().all(tells_nothing));
    value.is_unknown() || entries.or(items).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown() -> Value {
        Value::unknown(Type::String)
    }

    fn check_merge(planned: Value, now: Value, expected: &str) {
        let text = merge(&planned, &now, &Path::attribute("a")).map_or_else(|p| format!("ERROR {p}"), |v| format!("{v:?}"));
        assert_eq!(text, expected);
    }

    #[test]
    fn holes_are_filled_and_what_was_shown_stays() {
        check_merge(unknown(), "x".into(), r#""x""#);
        check_merge("x".into(), "x".into(), r#""x""#);
        check_merge("x".into(), "y".into(), "ERROR a");
        check_merge(unknown().secret(), "x".into(), "(secret)");
        let parts = Value::object([("a", unknown().secret()), ("b", unknown())]);
        assert!(merge(&parts, &unknown(), &Path::attribute("a")).is_ok_and(|v| v.is_unknown()), "none of its parts is secret after all");
        check_merge(unknown().secret(), Value::tuple(vec![Value::from("x").secret(), "y".into()]), r#"[(secret), "y"]"#);
        let object = |b: Value, c: Value| Value::object([("b", b), ("c", c)]);
        check_merge(object("1".into(), unknown()), object("1".into(), "2".into()), r#"{"b": "1", "c": "2"}"#);
        check_merge(object("1".into(), unknown()), object("9".into(), "2".into()), "ERROR a.b");
        check_merge(Value::tuple(vec![unknown()]), Value::tuple(vec![]), "ERROR a");
        check_merge(Value::null(Type::String), "x".into(), "ERROR a");
    }

    #[test]
    fn only_what_a_provider_says_of_itself_is_secret_for_being_the_same() {
        let attributes = vec![
            Attribute::optional("input", Type::Any, ""),
            Attribute::optional("chosen", Type::String, ""),
            Attribute::computed("echo", Type::Any, ""),
            Attribute::computed("same", Type::Any, "").echoes("input"),
        ];
        let schema = Schema::new("", attributes);
        let object = |open: Value, pw: Value| {
            let list = Value::tuple(vec!["db".into(), open]);
            Value::object([("list", list), ("name", "db".into()), ("pw", pw)])
        };
        let whole = |input: Value, chosen: Value, echo: Value, same: Value| -> Object {
            let entries = [("input", input), ("chosen", chosen), ("echo", echo), ("same", same)];
            entries.map(|(name, value)| (name.to_owned(), value)).into()
        };
        let sent = whole(object(unknown(), Value::from("db").secret()), unknown(), unknown(), unknown());
        let mut given =
            whole(object("db".into(), "db".into()), "db".into(), object("x".into(), "db".into()), object("db".into(), "db".into()));
        carry_marks(&sent, &mut given);
        mark_copies(&schema, &sent, &mut given);
        let marked: Vec<String> = secret_paths(&schema, &given).iter().map(ToString::to_string).collect();
        assert_eq!(marked, ["chosen", "echo.list[0]", "echo.name", "echo.pw", "input.list[1]", "input.pw", "same.list[1]", "same.pw"]);
    }

    #[test]
    fn parts_are_taken_by_path() {
        let object = |text: &str| -> Object {
            let map = [("k".to_owned(), Value::from(text)), (text.to_owned(), 1i64.into())].into();
            [("a".to_owned(), Value::map(Type::Any, map)), ("b".to_owned(), text.into())].into()
        };
        let (mut target, source) = (object("new"), object("old"));
        take_from(&mut target, &source, &Path::attribute("b"));
        assert_eq!(target["b"], "old".into());
        take_from(&mut target, &source, &Path::attribute("a").then(PathStep::Name("k".into())));
        take_from(&mut target, &source, &Path::attribute("a").then(PathStep::Name("new".into())));
        assert_eq!(format!("{:?}", target["a"]), r#"map{"k": "old"}"#);
        take_from(&mut target, &source, &Path::attribute("a"));
        assert_eq!(target["a"], source["a"]);
    }
}
