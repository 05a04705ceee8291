//! Type expressions: `list(string)`, `object({ a = string, b = optional(number, 7) })`.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, ObjectAttribute, Span, Type, Value, convert};

use crate::suggest;
use crate::syntax::{Expr, ExprKind, ObjectKey};

/// The type that an expression names. After an error: [`Type::Any`].
pub(crate) fn type_of(expr: &Expr, default: &dyn Fn(&Expr) -> (Value, Diagnostics)) -> (Type, Diagnostics) {
    let mut reader = Reader { default, diagnostics: Diagnostics::new() };
    // An old form, for which Terraform has a place at the top alone.
    let ty = match &expr.kind {
        ExprKind::Name(name) if name == "list" => Type::list(Type::Any),
        ExprKind::Name(name) if name == "map" => Type::map(Type::Any),
        _ => reader.read(expr),
    };
    (ty, reader.diagnostics)
}

struct Reader<'a> {
    /// Evaluates the second argument of `optional`.
    default: &'a dyn Fn(&Expr) -> (Value, Diagnostics),
    diagnostics: Diagnostics,
}

const WORDS: [&str; 9] = ["string", "number", "bool", "any", "list", "set", "map", "object", "tuple"];

impl Reader<'_> {
    fn wrong(&mut self, span: Span, detail: impl Into<String>, hint: impl Into<String>) -> Type {
        self.diagnostics.push(Diagnostic::error("Invalid type", detail).with_span(Some(span)).with_hint(hint));
        Type::Any
    }

    fn read(&mut self, expr: &Expr) -> Type {
        match &expr.kind {
            ExprKind::Name(name) => self.word(name, expr.span),
            ExprKind::Parentheses(inner) => self.read(inner),
            ExprKind::Call(call) => self.constructor(&call.name, &call.args, expr.span, call.name_span),
            ExprKind::Literal(value) if value.as_str().is_some() => {
                let text = value.as_str().unwrap_or_default();
                let hint = if WORDS.iter().any(|w| text.starts_with(w)) { format!("Write it without quotes: {text}") } else { examples() };
                self.wrong(expr.span, "A type is written as a word, not as a string.", hint)
            }
            ExprKind::Wrong => Type::Any,
            _ => self.wrong(expr.span, "This is not a type.", examples()),
        }
    }

    fn word(&mut self, name: &str, span: Span) -> Type {
        match name {
            "string" => Type::String,
            "number" => Type::Number,
            "bool" => Type::Bool,
            "any" => Type::Any,
            "list" | "set" | "map" => {
                self.wrong(span, format!("\"{name}\" needs the type of its elements."), format!("Write {name}(string), or {name}(any)."))
            }
            "object" => self.wrong(span, "\"object\" needs its attributes.", "Write object({ name = string })."),
            "tuple" => self.wrong(span, "\"tuple\" needs its element types.", "Write tuple([string, number])."),
            "optional" => self.wrong(span, "\"optional\" stands only inside of object({ ... }).", "Remove it."),
            _ => {
                let hint = suggest::hint(name, WORDS).unwrap_or_else(examples);
                self.wrong(span, format!("There is no type \"{name}\"."), hint)
            }
        }
    }

    fn constructor(&mut self, name: &str, args: &[Expr], span: Span, name_span: Span) -> Type {
        let [arg] = args else {
            return match name {
                "list" | "set" | "map" | "object" | "tuple" => {
                    self.wrong(span, format!("\"{name}\" takes exactly one argument."), examples())
                }
                "string" | "number" | "bool" | "any" => {
                    self.wrong(span, format!("\"{name}\" stands without parentheses."), format!("Write {name}."))
                }
                _ => self.word(name, name_span),
            };
        };
        match (name, &arg.kind) {
            ("list", _) => Type::list(self.read(arg)),
            ("set", _) => Type::set(self.read(arg)),
            ("map", _) => Type::map(self.read(arg)),
            ("tuple", ExprKind::Tuple(items)) => Type::Tuple(items.iter().map(|e| self.read(e)).collect()),
            ("tuple", _) => self.wrong(arg.span, "\"tuple\" takes a list of types.", "Write tuple([string, number])."),
            ("object", ExprKind::Object(items)) => self.object(items),
            ("object", _) => self.wrong(arg.span, "\"object\" takes its attributes in braces.", "Write object({ name = string })."),
            ("string" | "number" | "bool" | "any", _) => {
                self.wrong(span, format!("\"{name}\" takes no argument."), format!("Write {name}."))
            }
            _ => self.word(name, name_span),
        }
    }

    fn object(&mut self, items: &[(ObjectKey, Expr)]) -> Type {
        let mut attributes = BTreeMap::new();
        for (key, value) in items {
            let name = match key {
                ObjectKey::Name(name) => name.clone(),
                ObjectKey::Expr(expr) | ObjectKey::Once(expr) => match expr.bare().as_text() {
                    Some(text) => text.to_owned(),
                    None => {
                        self.wrong(expr.span, "Attribute names of an object type are plain words.", "Write object({ name = string }).");
                        continue;
                    }
                },
            };
            let attribute = match &value.kind {
                ExprKind::Call(call) if call.name == "optional" => self.optional(&call.args, value.span),
                _ => ObjectAttribute::required(self.read(value)),
            };
            if attributes.contains_key(&name) {
                let detail = format!("The attribute \"{name}\" of this object type is there twice.");
                self.wrong(value.span, detail, "Remove one of the two.");
            }
            attributes.insert(name, attribute);
        }
        Type::Object(attributes)
    }

    fn optional(&mut self, args: &[Expr], span: Span) -> ObjectAttribute {
        let (ty, default) = match args {
            [ty] => return ObjectAttribute::optional(self.read(ty)),
            [ty, default] => (self.read(ty), default),
            _ => {
                self.wrong(span, "\"optional\" takes a type and at most one default.", "Write optional(string, \"x\").");
                return ObjectAttribute::optional(Type::Any);
            }
        };
        let (value, diagnostics) = (self.default)(default);
        let failed = diagnostics.has_errors();
        self.diagnostics.extend(diagnostics);
        let value = match convert(&value, &ty) {
            Ok(value) => value,
            Err(error) => {
                if !failed {
                    self.wrong(default.span, format!("The default does not fit the type: {error}."), "Change the default or the type.");
                }
                Value::null(ty.clone())
            }
        };
        let default = (!value.is_null()).then(|| Box::new(value));
        ObjectAttribute { ty, optional: true, default }
    }
}

fn examples() -> String {
    "Types are string, number, bool, any, list(T), set(T), map(T), object({ name = T }) and tuple([T, ...]).".to_owned()
}
