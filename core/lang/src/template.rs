//! Templates to strings.
//!
//! What is unknown makes the result unknown, but the text before it is remembered: `startswith("pre-${x}", "pre-")` is true.

use karmaform_model::{Diagnostic, Kind, Marks, Type, Value, convert};

use crate::budget;
use crate::eval::{Errors, article};
use crate::evaluator::Evaluator;
use crate::functions::{string, unknown_with_prefix};
use crate::scope::Scope;
use crate::syntax::{Expr, Part};

/// So many bytes of a beginning are remembered, as in Terraform.
const REMEMBERED: usize = 128;

/// A string under construction.
#[derive(Default)]
struct Text {
    /// What is known from the start on.
    known: String,
    /// Something unknown came; what follows is lost.
    cut: bool,
    marks: Marks,
    failed: bool,
    /// It would be longer than any text may be.
    is_long: bool,
}

impl Evaluator<'_> {
    /// The value of a template. One that is a single interpolation has that value, whatever its type.
    pub(crate) fn eval_template(&self, whole: &Expr, parts: &[Part], scope: &Scope<'_>, errors: &mut Errors) -> Value {
        if let [Part::Interpolation(expr)] = parts {
            return self.eval(expr, scope, errors);
        }
        let mut text = Text::default();
        self.add_parts(whole, parts, &mut text, scope, errors);
        if text.is_long && !text.failed {
            errors.push(Diagnostic::error("Text too long", format!("{}.", budget::long_text())).with_span(Some(whole.span)));
            text.failed = true;
        }
        if text.failed {
            return Value::unknown(Type::String).marked(text.marks);
        }
        // Where parts meet, an accent may belong to the letter before it.
        let value = if text.cut { unknown_with_prefix(text.beginning()) } else { string(text.known) };
        value.marked(text.marks)
    }

    fn add_parts(&self, whole: &Expr, parts: &[Part], text: &mut Text, scope: &Scope<'_>, errors: &mut Errors) {
        for part in parts {
            match part {
                Part::Literal(literal) => text.add(literal),
                Part::Interpolation(expr) => self.add_value(expr, text, scope, errors),
                Part::If { condition, then, otherwise } => self.add_if(whole, condition, then, otherwise, text, scope, errors),
                Part::For { key_name, value_name, collection, body } => {
                    let before = errors.list.len();
                    let value = self.eval(collection, scope, errors);
                    if errors.list.len() > before {
                        text.failed = true;
                        continue;
                    }
                    text.marks |= value.marks();
                    let is_inner = self.begin_loop();
                    match self.entries(collection, &value, "A for directive", scope, errors) {
                        None => text.failed = true,
                        Some(None) => text.cut = true,
                        Some(Some(entries)) => {
                            let failed = text.failed;
                            self.go_over(collection, value.marks(), entries, errors, |entries, errors| {
                                text.failed = false;
                                for (key, value) in entries {
                                    let mut names = vec![(value_name.as_str(), value)];
                                    if let Some(name) = key_name {
                                        names.push((name, key));
                                    }
                                    scope.bind(&names, |inner| self.add_parts(whole, body, text, inner, errors));
                                    if text.failed || text.is_long {
                                        break;
                                    }
                                }
                            });
                            text.failed |= failed || errors.list.len() > before;
                        }
                    }
                    self.memo.loops.set(is_inner);
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn add_if(
        &self,
        whole: &Expr,
        condition: &Expr,
        then: &[Part],
        otherwise: &[Part],
        text: &mut Text,
        scope: &Scope<'_>,
        errors: &mut Errors,
    ) {
        let Some((decision, marks)) = self.eval_condition(condition, scope, errors) else {
            text.failed = true;
            return;
        };
        text.marks |= marks;
        match decision {
            Some(yes) => {
                let (taken, other) = if yes { (then, otherwise) } else { (otherwise, then) };
                // As of `?:`, what is secret or ephemeral in the arm that is not taken makes the result so, too. A template file is as secret as all that
                // it is given, and may come to its end by that arm.
                if self.memo.depth.get() == 0 {
                    let mut aside = Text::default();
                    self.aside(|silent| self.add_parts(whole, other, &mut aside, scope, silent));
                    text.marks |= if aside.failed { Marks::default() } else { aside.marks };
                }
                self.add_parts(whole, taken, text, scope, errors);
            }
            None => {
                // What it will be made of is not known, but that it may be made of a secret is.
                text.cut = true;
                let failed = text.failed;
                for arm in [then, otherwise] {
                    self.add_parts(whole, arm, text, scope, &mut Errors::silent());
                }
                text.failed = failed;
            }
        }
    }

    fn add_value(&self, expr: &Expr, text: &mut Text, scope: &Scope<'_>, errors: &mut Errors) {
        let before = errors.list.len();
        let value = self.eval(expr, scope, errors);
        text.marks |= value.all_marks();
        if errors.list.len() > before {
            text.failed = true;
            return;
        }
        let problem = if value.is_null() {
            "The value is null, which can't be part of a text.".to_owned()
        } else {
            match convert(&value, &Type::String) {
                Ok(Value { kind: Kind::String(s), .. }) => return text.add(&s),
                // What is known of its beginning is not told, as in Terraform.
                Ok(Value { kind: Kind::Unknown(_), .. }) => {
                    text.cut = true;
                    return;
                }
                _ => format!(
                    "Only strings, numbers and bools can be part of a text; this is {}. Use jsonencode() or join().",
                    article(&value)
                ),
            }
        };
        text.failed = true;
        self.fail(expr, expr.span, scope, errors, "Invalid interpolation", problem);
    }
}

impl Text {
    fn add(&mut self, text: &str) {
        self.is_long |= self.known.len() + text.len() > budget::LONGEST_TEXT;
        if !self.cut && !self.is_long {
            self.known.push_str(text);
        }
    }

    /// As much of what is known as is remembered.
    fn beginning(&self) -> &str {
        let end = (0..=REMEMBERED.min(self.known.len())).rfind(|at| self.known.is_char_boundary(*at));
        &self.known[..end.unwrap_or(0)]
    }
}
