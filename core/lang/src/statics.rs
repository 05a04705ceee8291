//! What can be said about an expression without evaluating it: names that don't exist, functions that don't exist, references that may
//! not stand there. And what it needs: its references.
//!
//! These mistakes can't be caught by `try` and `can`, as in Terraform.

use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, Span, nearest};

use crate::calls;
use crate::config::{Config, Reference, Repeat};
use crate::locals::push_new;
use crate::references::{self, KeyUse, Target, Visit, walk_bound, walk_parts};
use crate::steps::check_steps;
use crate::suggest;
use crate::syntax::{Expr, Part, Step, StepKind};

/// Where an expression stands, and so what it may refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place<'a> {
    /// The block it is in.
    pub own: Option<&'a Address>,
    /// `self` means something: an instance of that block.
    pub has_self: bool,
    /// `each` means something.
    pub each: bool,
    /// `count` means something.
    pub count: bool,
    /// Why no block may be referred to.
    pub no_blocks: Option<&'static str>,
    /// Why nothing at all may be referred to.
    pub constant: Option<&'static str>,
    /// The `check` block it is in.
    pub check: Option<&'a str>,
    /// Names bound around the expression: iterators of `dynamic` blocks.
    pub bound: &'a [String],
}

/// Checks one expression, and adds what it needs to `references`.
pub(crate) fn check<'e>(config: &Config, expr: &'e Expr, place: Place<'e>, references: &mut Vec<Reference>) -> Diagnostics {
    let mut checker = Checker { config, place, references, diagnostics: Diagnostics::new() };
    walk_bound(expr, place.bound.iter().map(String::as_str).collect(), &mut |visit| match visit {
        Visit::Call(call) => checker.diagnostics.extend(calls::check(call)),
        Visit::Reference { name, span, steps } => checker.reference(name, span, steps),
    });
    checker.diagnostics
}

/// Checks an expression typed in by hand.
pub(crate) fn check_typed(config: &Config, expr: &Expr) -> Diagnostics {
    check(config, expr, Place::default(), &mut Vec::new())
}

/// Checks a template file against the names of its variables.
pub(crate) fn check_template<'e>(parts: &'e [Part], names: impl Iterator<Item = &'e str>) -> Vec<Diagnostic> {
    let bound: Vec<_> = names.collect();
    let mut found: Vec<Diagnostic> = Vec::new();
    walk_parts(parts, bound.clone(), &mut |visit| match visit {
        Visit::Call(call) => found.extend(calls::check(call)),
        Visit::Reference { name, .. } => {
            let meant = suggest::hint(name, bound.iter().copied()).map(|h| format!(" {h}")).unwrap_or_default();
            let detail = format!("The template uses \"{name}\", which is not among the variables given to it.{meant}");
            if !found.iter().any(|d| d.detail == detail) {
                found.push(Diagnostic::error("Unknown name in a template", detail));
            }
        }
    });
    found
}

struct Checker<'c, 'r> {
    config: &'c Config,
    place: Place<'c>,
    references: &'r mut Vec<Reference>,
    diagnostics: Diagnostics,
}

const ROOTS: [&str; 10] = ["var", "local", "data", "module", "each", "count", "path", "terraform", "karmaform", "self"];

impl Checker<'_, '_> {
    fn wrong(&mut self, span: Span, summary: &str, detail: impl Into<String>, hint: Option<String>) {
        self.tell(Diagnostic::error(summary, detail), span, hint);
    }

    /// The same of what leaves all names what they are.
    fn slip(&mut self, span: Span, summary: &str, detail: impl Into<String>, hint: Option<String>) {
        self.tell(Diagnostic::slip(summary, detail), span, hint);
    }

    fn tell(&mut self, mut error: Diagnostic, span: Span, hint: Option<String>) {
        error.hints.extend(hint);
        self.diagnostics.push(error.with_span(Some(span)));
    }

    fn reference(&mut self, name: &str, span: Span, steps: &[Step]) {
        if let Some(why) = self.place.constant {
            return self.slip(span, "Reference not allowed here", why, None);
        }
        let Some(target) = references::target(name, steps) else {
            return self.incomplete(name, span);
        };
        match target {
            Target::Variable(variable) => self.variable(&variable, span),
            Target::Local(local) => self.local(&local, span),
            Target::Block { address, key, used } => self.block(address, &key, used, steps, span),
            Target::Module { call, key, used } => self.module(&call, &key, used, steps, span),
            Target::Each(part) => self.each(&part, span),
            Target::Count(part) => {
                if part != "index" {
                    self.wrong(span, "Unknown reference", format!("\"count\" has no \"{part}\"."), Some("Write count.index.".into()));
                } else if !self.place.count {
                    let hint = "Set count in this block, or use another value.".to_owned();
                    self.wrong(span, "count.index outside of count", "\"count.index\" has a value only in a block with count.", Some(hint));
                }
            }
            Target::Path(part) => {
                if !["module", "root", "cwd"].contains(&part.as_str()) {
                    let hint = suggest::hint(&part, ["module", "root", "cwd"]);
                    self.wrong(
                        span,
                        "Unknown reference",
                        format!("There is no \"path.{part}\"; there are path.module, path.root and path.cwd."),
                        hint,
                    );
                }
            }
            Target::Tool(part) => {
                if part != "workspace" {
                    self.wrong(span, "Unknown reference", format!("There is no \"{name}.{part}\"; there is terraform.workspace."), None);
                }
            }
            Target::Own => self.own(steps, span),
            Target::Alone => self.alone(name, span),
        }
    }

    fn incomplete(&mut self, name: &str, span: Span) {
        if self.config.variables.contains_key(name) || self.config.locals.get(name).is_some() {
            return self.alone(name, span);
        }
        let (detail, hint) = match name {
            "var" | "local" => (format!("After \"{name}\" a name must follow."), format!("Write {name}.NAME.")),
            "module" => ("After \"module\" a name must follow.".to_owned(), "Write module.NAME.OUTPUT.".to_owned()),
            "data" => ("After \"data\" a type and a name must follow.".to_owned(), "Write data.TYPE.NAME.".to_owned()),
            "resource" => ("After \"resource\" a type and a name must follow.".to_owned(), "Write TYPE.NAME.".to_owned()),
            "each" => ("After \"each\" \"key\" or \"value\" must follow.".to_owned(), "Write each.key or each.value.".to_owned()),
            "count" => ("After \"count\" \"index\" must follow.".to_owned(), "Write count.index.".to_owned()),
            "path" => ("After \"path\" a name must follow.".to_owned(), "Write path.module, path.root or path.cwd.".to_owned()),
            _ => (format!("After \"{name}\" a name must follow."), "Resources are referred to by TYPE.NAME.".to_owned()),
        };
        self.wrong(span, "Incomplete reference", detail, Some(hint));
    }

    fn alone(&mut self, name: &str, span: Span) {
        let hint = if self.config.variables.contains_key(name) {
            format!("Did you mean var.{name}?")
        } else if self.config.locals.get(name).is_some() {
            format!("Did you mean local.{name}?")
        } else {
            format!("For a text write \"{name}\" in quotes; references start with var., local., data., module. or a resource type.")
        };
        self.wrong(span, "Unknown name", format!("\"{name}\" alone refers to nothing."), Some(hint));
    }

    fn variable(&mut self, name: &str, span: Span) {
        if self.config.variables.contains_key(name) || self.config.incomplete {
            return;
        }
        let hint = nearest(name, self.config.variables.keys().map(String::as_str))
            .map_or_else(|| format!("Declare it: variable \"{name}\" {{}}."), |n| format!("Did you mean var.{n}?"));
        self.slip(span, "Unknown variable", format!("No variable \"{name}\" is declared."), Some(hint));
    }

    fn local(&mut self, name: &str, span: Span) {
        match self.config.locals.get(name) {
            Some(local) => {
                if let (Some(why), Some(module)) = (self.place.no_blocks, &local.module) {
                    let detail = format!("{why} local.{name} is made of module.{module}.");
                    return self.slip(span, "Reference not allowed here", detail, None);
                }
                for reference in &local.references {
                    if Some(&reference.address.block()) == self.place.own {
                        let detail = format!("local.{name} is made of {}, the very block that needs it here.", reference.address.block());
                        return self.slip(span, "Block refers to itself", detail, None);
                    }
                    if let Some(why) = self.place.no_blocks {
                        let detail = format!("{why} local.{name} is made of {}.", reference.address);
                        return self.slip(span, "Reference not allowed here", detail, None);
                    }
                    // Mistakes in the local itself are reported there.
                    if let Some(reference) = normalised(self.config, reference) {
                        push_new(self.references, Reference { span, ..reference });
                    }
                }
            }
            None if self.config.incomplete => {}
            None => {
                let hint = nearest(name, self.config.locals.names())
                    .map_or_else(|| "Define it in a locals block.".to_owned(), |n| format!("Did you mean local.{n}?"));
                self.slip(span, "Unknown local", format!("No local \"{name}\" is defined."), Some(hint));
            }
        }
    }

    fn each(&mut self, part: &str, span: Span) {
        if part != "key" && part != "value" {
            let hint = suggest::hint(part, ["key", "value"]).or(Some("Write each.key or each.value.".into()));
            self.wrong(span, "Unknown reference", format!("\"each\" has no \"{part}\"."), hint);
        } else if !self.place.each {
            let detail = format!("\"each.{part}\" has a value only in a block with for_each.");
            self.wrong(span, "each outside of for_each", detail, Some("Set for_each in this block, or use another value.".into()));
        }
    }

    fn own(&mut self, steps: &[Step], span: Span) {
        let Some(own) = self.place.own.filter(|_| self.place.has_self) else {
            let hint = "Refer to other blocks by TYPE.NAME.".to_owned();
            return self.wrong(span, "\"self\" outside of a postcondition", "\"self\" has a value only in a postcondition.", Some(hint));
        };
        if let Some(schema) = self.config.schema(own)
            && let Err((at, problem, hint)) = check_steps(schema, own, steps)
        {
            self.slip(at, "Unknown attribute", problem, hint);
        }
    }

    fn block(&mut self, address: Address, key: &KeyUse, used: usize, steps: &[Step], span: Span) {
        if let Some(why) = self.place.no_blocks {
            return self.slip(span, "Reference not allowed here", why, None);
        }
        let Some(block) = self.config.blocks.get(&address) else {
            // What its names are, without what is asked of it.
            let named = used - usize::from(*key != KeyUse::None);
            let end = named.checked_sub(1).and_then(|last| steps.get(last)).map_or(span.end, |step| step.span.end);
            return self.no_block(&address, Span { end, ..span });
        };
        if self.place.own == Some(&address) {
            let detail = format!("{address} can't be made of its own values.");
            if self.place.has_self {
                let hint = "In a postcondition write self, which is the instance that is judged.".to_owned();
                return self.slip(span, "Block refers to itself", detail, Some(hint));
            }
            let hint = "Refer to other blocks, or take the common value into a local.".to_owned();
            return self.slip(span, "Block refers to itself", detail, Some(hint));
        }
        if let Some(check) = block.check.as_deref().filter(|c| self.place.check != Some(*c)) {
            let detail = format!("{address} stands in the check \"{check}\", and only what that asserts sees it.");
            let hint = "Move the data source out of the check to refer to it from here.".to_owned();
            return self.slip(span, "Reference not allowed here", detail, Some(hint));
        }
        if self.wants_key(&address, &block.repeat, key, steps.get(used), span) {
            return;
        }
        let (mut key, mut used) = (key.clone(), used);
        match (&block.repeat, &key) {
            // An index of a single block is an attribute in brackets.
            (Repeat::None, KeyUse::Literal(karmaform_model::Key::Index(_))) => {
                let hint = format!("Remove the index: {address}.");
                return self.slip(span, "Index of a single block", format!("{address} has neither count nor for_each."), Some(hint));
            }
            (Repeat::None, KeyUse::Literal(_) | KeyUse::Computed) => {
                key = KeyUse::None;
                used -= 1;
            }
            _ => {}
        }
        if let Some(schema) = self.config.schema(&address)
            && let Err((at, problem, hint)) = check_steps(schema, &address, &steps[used..])
        {
            return self.slip(at, "Unknown attribute", problem, hint);
        }
        let reference = references::reference(address, &key, used, steps, span);
        if let Some(reference) = normalised(self.config, &reference) {
            push_new(self.references, reference);
        }
    }

    /// True if an attribute is taken of all instances of a block or a module, where one has to be named; that is told. `next`: what follows the key.
    fn wants_key(&mut self, name: &dyn std::fmt::Display, repeat: &Repeat, key: &KeyUse, next: Option<&Step>, span: Span) -> bool {
        let Some(StepKind::Attribute(attribute)) = next.map(|s| &s.kind) else { return false };
        let (word, hint) = match (repeat, key) {
            (Repeat::Count(_), KeyUse::None) => ("count", format!("Write {name}[0].{attribute} for one, {name}[*].{attribute} for all.")),
            (Repeat::ForEach(_), KeyUse::None) => {
                ("for_each", format!("Write {name}[KEY].{attribute} for one, values({name})[*].{attribute} for all."))
            }
            // All of them as one element of a list are rarely meant, and nothing else can be meant by an attribute of that.
            (Repeat::ForEach(_), KeyUse::Splat) => {
                let detail = format!("{name} has for_each, so it is an object of instances and not a list.");
                self.wrong(span, "Splat over for_each", detail, Some(format!("Write values({name})[*].")));
                return true;
            }
            _ => return false,
        };
        let detail = format!("{name} has {word}, so there may be several, and which one is meant must be said.");
        self.slip(span, "Missing index", detail, Some(hint));
        true
    }

    fn module(&mut self, name: &str, key: &KeyUse, used: usize, steps: &[Step], span: Span) {
        if let Some(why) = self.place.no_blocks {
            return self.slip(span, "Reference not allowed here", why, None);
        }
        let Some(call) = self.config.calls.get(name) else {
            if !self.config.incomplete {
                let hint = nearest(name, self.config.calls.keys().map(String::as_str)).map_or_else(
                    || format!("Declare it: module \"{name}\" {{ source = \"./DIRECTORY\" }}."),
                    |n| format!("Did you mean module.{n}?"),
                );
                self.slip(span, "Unknown module", format!("No module \"{name}\" is called."), Some(hint));
            }
            return;
        };
        if self.wants_key(&format_args!("module.{name}"), &call.repeat, key, steps.get(used), span) {
            return;
        }
        let mut used = used;
        match (&call.repeat, key) {
            (Repeat::None, KeyUse::Literal(karmaform_model::Key::Index(_))) => {
                let hint = format!("Remove the index: module.{name}.");
                let detail = format!("module.{name} has neither count nor for_each.");
                return self.slip(span, "Index of a single module", detail, Some(hint));
            }
            (Repeat::None, KeyUse::Literal(_) | KeyUse::Computed) => used -= 1,
            _ => {}
        }
        let (Some(unit), Some(Step { kind: StepKind::Attribute(output), span: at })) = (&call.unit, steps.get(used)) else { return };
        if !unit.outputs.contains_key(output) && !unit.incomplete {
            let outputs = unit.outputs.keys().map(String::as_str);
            let hint = match suggest::hint(output, outputs.clone()) {
                Some(hint) => hint,
                None if unit.variables.contains_key(output) => {
                    format!(
                        "It is a variable of the module. Write output \"{output}\" {{ value = var.{output} }} in the module to see it here."
                    )
                }
                None if unit.outputs.is_empty() => format!("Write output \"{output}\" {{ ... }} in the module."),
                None => format!("It has {}.", suggest::listed(outputs)),
            };
            self.wrong(*at, "Unknown output", format!("The module \"{name}\" has no output \"{output}\"."), Some(hint));
        }
    }

    fn no_block(&mut self, address: &Address, span: Span) {
        if self.config.incomplete {
            return;
        }
        let blocks = || self.config.blocks.keys();
        let what = if address.mode == Mode::Data { "data source" } else { "resource" };
        let twin = Address { mode: if address.mode == Mode::Data { Mode::Managed } else { Mode::Data }, ..address.clone() };
        let same_kind: Vec<_> = blocks().filter(|b| b.mode == address.mode && b.kind == address.kind).collect();
        let kinds = || blocks().filter(|b| b.mode == address.mode && b.name == address.name).map(|b| b.kind.as_str());
        let moved = self.config.moved.iter().find(|m| m.from.block() == *address && !m.from.is_module());
        let hint = if let Some(moved) = moved {
            format!("A moved block says that it is {} now; write that.", moved.to)
        } else if self.config.removed.contains_key(address) {
            "A removed block says that it is gone; take this reference out as well.".to_owned()
        } else if self.config.blocks.contains_key(&twin) {
            format!("Did you mean {twin}?")
        } else if let Some(name) = nearest(&address.name, same_kind.iter().map(|b| b.name.as_str())) {
            format!("Did you mean {}?", Address { name: name.to_owned(), ..address.clone() })
        } else if let Some(kind) = nearest(&address.kind, kinds()) {
            format!("Did you mean {}?", Address { kind: kind.to_owned(), ..address.clone() })
        } else if let Some(bound) = nearest(&address.kind, self.place.bound.iter().map(String::as_str)) {
            format!("Did you mean {bound}.{}?", address.name)
        } else if let Some(root) = nearest(&address.kind, ROOTS).filter(|_| address.mode == Mode::Managed) {
            format!("Did you mean {root}.{}?", address.name)
        } else {
            let word = if address.mode == Mode::Data { "data" } else { "resource" };
            format!("Declare it: {word} \"{}\" \"{}\" {{ ... }}.", address.kind, address.name)
        };
        self.slip(span, &format!("Unknown {what}"), format!("No {what} {address} is declared."), Some(hint));
    }
}

/// A literal key in the form that the instances have: `[0]` of a block with `for_each` is `["0"]`.
pub(crate) fn normalised(config: &Config, reference: &Reference) -> Option<Reference> {
    use karmaform_model::Key;
    let block = config.blocks.get(&reference.address.block())?;
    let key = match (&block.repeat, &reference.address.key) {
        (Repeat::ForEach(_), Some(Key::Index(i))) => Some(Key::Name(i.to_string())),
        (Repeat::Count(_), Some(Key::Name(n))) => n.parse().ok().map(Key::Index),
        (Repeat::None, _) => None,
        (_, key) => key.clone(),
    };
    Some(Reference { address: reference.address.with_key(key), ..reference.clone() })
}
