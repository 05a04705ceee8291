//! Reading arguments: what must be known is, what may come later is carried as it is, and what is wrong is said once.

use karmaform_model::{Address, Diagnostic, Diagnostics, Kind, Object, Type, Value};

/// The arguments of a composite as `read` makes them of an object.
///
/// # Errors
/// All that was found wrong, at the composite's address.
pub(crate) fn all<T>(address: &Address, object: &Object, read: impl FnOnce(&mut Reader<'_, '_>) -> Option<T>) -> Result<T, Diagnostics> {
    let mut found = Diagnostics::new();
    match read(&mut Reader::new(object, &mut found)) {
        Some(arguments) if !found.has_errors() => Ok(arguments),
        _ => Err(found.into_iter().map(|d| d.at(address)).collect()),
    }
}

/// An object of arguments, the words that stand before its attributes in messages, and what was found wrong.
pub(crate) struct Reader<'a, 'd> {
    object: Option<&'a Object>,
    /// `service.` for the attributes of the block `service`.
    prefix: String,
    pub(crate) found: &'d mut Diagnostics,
}

impl<'a, 'd> Reader<'a, 'd> {
    /// Of the arguments themselves.
    pub(crate) fn new(object: &'a Object, found: &'d mut Diagnostics) -> Self {
        Self { object: Some(object), prefix: String::new(), found }
    }

    /// Of a block that may stand once; of nothing if it does not stand.
    pub(crate) fn block(&mut self, name: &str) -> Reader<'a, '_> {
        let value = self.value(name);
        if value.is_some_and(Value::is_unknown) {
            self.later::<()>(name);
        }
        let object = value.and_then(Value::as_entries);
        Reader { object, prefix: format!("{}{name}.", self.prefix), found: self.found }
    }

    /// Of one of several blocks with labels.
    pub(crate) fn labelled<'b>(&mut self, name: &str, label: &str, object: Option<&'b Object>) -> Reader<'b, '_> {
        Reader { object, prefix: format!("{name} \"{label}\": "), found: self.found }
    }

    /// True if there is something to read.
    pub(crate) fn is_there(&self) -> bool {
        self.object.is_some()
    }

    /// How an attribute is called in messages.
    pub(crate) fn called(&self, name: &str) -> String {
        match self.prefix.split_once(": ") {
            Some((block, _)) => format!("`{name}` of {block}"),
            None => format!("`{}{name}`", self.prefix),
        }
    }

    /// What is written, known or not; `None` for null.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.object?.get(name).filter(|v| !v.is_null())
    }

    /// What is written, or null.
    pub(crate) fn given(&self, name: &str) -> Value {
        self.value(name).cloned().unwrap_or_else(|| Value::null(Type::Any))
    }

    /// A text that must be known.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        match self.value(name).map(|v| &v.kind) {
            None => None,
            Some(Kind::String(text)) => Some(text.clone()),
            Some(Kind::Unknown(_)) => self.later(name),
            Some(_) => self.wrong(name, "must be a string"),
        }
    }

    /// A whole number within bounds that must be known.
    pub(crate) fn number(&mut self, name: &str, bounds: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let value = self.value(name)?;
        if value.is_unknown() {
            return self.later(name);
        }
        match value.as_i64().filter(|n| bounds.contains(n)) {
            Some(number) => Some(number),
            None => self.wrong(name, &format!("must be a whole number from {} to {}", bounds.start(), bounds.end())),
        }
    }

    /// A truth that must be known.
    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        if value.is_unknown() {
            return self.later(name);
        }
        value.as_bool().or_else(|| self.wrong(name, "must be true or false"))
    }

    /// Texts that must be known, all of them.
    pub(crate) fn texts(&mut self, name: &str) -> Vec<String> {
        let Some(value) = self.value(name) else { return Vec::new() };
        if !value.is_wholly_known() {
            return self.later(name).unwrap_or_default();
        }
        let texts: Option<Vec<_>> = value.as_items().map(|items| items.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect());
        texts.or_else(|| self.wrong(name, "must be a list of strings")).unwrap_or_default()
    }

    /// One of a few words.
    pub(crate) fn word(&mut self, name: &str, words: &[&str], default: &str) -> String {
        let Some(text) = self.text(name) else { return default.to_owned() };
        if !words.contains(&text.as_str()) {
            let list: Vec<_> = words.iter().map(|w| format!("\"{w}\"")).collect();
            self.wrong::<()>(name, &format!("is \"{text}\", but must be one of {}", list.join(", ")));
            return default.to_owned();
        }
        text
    }

    /// Says that a value does not fit.
    pub(crate) fn wrong<T>(&mut self, name: &str, what: &str) -> Option<T> {
        let detail = format!("{} {what}.", self.called(name));
        self.found.push(Diagnostic::error("An argument that can't be used", detail));
        None
    }

    /// Says that a value must be known.
    pub(crate) fn later<T>(&mut self, name: &str) -> Option<T> {
        self.found.push(
            Diagnostic::error(
                "A value that must be known when planning",
                format!(
                    "{} decides which parts there are and what they are called, so it can't be known only after apply.",
                    self.called(name)
                ),
            )
            .with_hint("Take it from a variable or a local, or apply what it comes from first with `-target`."),
        );
        None
    }
}
