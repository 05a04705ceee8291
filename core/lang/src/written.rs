//! What stands in a block, as far as the text alone tells: arguments as constants, or by what they refer to. For those outside who look at a
//! configuration and not only at what came of it. Nothing is evaluated.

use std::collections::BTreeMap;

use karmaform_model::{Key, Kind, Object, Value};

use crate::blocks::META;
use crate::config::{Output, Repeat, ResourceBlock};
use crate::modules::ModuleCall;
use crate::references::{Visit, literal_key, walk};
use crate::syntax::{Body, Expr, ExprKind, ObjectKey, Step, StepKind};

/// What an expression says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// This value, as it is written.
    Constant(Value),
    /// Something made of these: each reference, followed by its shorter forms, as in Terraform: `x.a.id`, `x.a`. Empty where it is made by
    /// functions alone.
    Made(Vec<String>),
}

/// The arguments of a block and the blocks in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// By name; not those that every block may have, as `count`.
    pub arguments: BTreeMap<String, Said>,
    /// By kind, in their order. What `dynamic` blocks make of themselves is not told.
    pub blocks: BTreeMap<String, Vec<Written>>,
}

impl ResourceBlock {
    /// What stands in it.
    pub fn written(&self) -> Written {
        body(&self.body, true)
    }

    /// What `count` says, and what `for_each` does.
    pub fn written_repeats(&self) -> (Option<Said>, Option<Said>) {
        repeats(&self.repeat)
    }
}

impl Output {
    /// What its `value` says.
    pub fn written(&self) -> Said {
        said(&self.value)
    }
}

impl ModuleCall {
    /// What the variables of the module are given here.
    pub fn written(&self) -> BTreeMap<String, Said> {
        self.arguments.iter().map(|(name, argument)| (name.clone(), said(&argument.expr))).collect()
    }

    /// What `count` says, and what `for_each` does.
    pub fn written_repeats(&self) -> (Option<Said>, Option<Said>) {
        repeats(&self.repeat)
    }
}

fn repeats(repeat: &Repeat) -> (Option<Said>, Option<Said>) {
    match repeat {
        Repeat::Count(expr) => (Some(said(expr)), None),
        Repeat::ForEach(expr) => (None, Some(said(expr))),
        Repeat::None | Repeat::Wrong => (None, None),
    }
}

/// `outer`: what stands directly in the block, where some names are for all types.
fn body(text: &Body, outer: bool) -> Written {
    let mut out = Written::default();
    for attribute in text.attributes.iter().filter(|a| !(outer && META.contains(&a.name.as_str()))) {
        out.arguments.insert(attribute.name.clone(), said(&attribute.expr));
    }
    for block in text.blocks.iter().filter(|b| !(outer && b.kind == "lifecycle") && b.kind != "dynamic") {
        out.blocks.entry(block.kind.clone()).or_default().push(body(&block.body, false));
    }
    out
}

fn said(expr: &Expr) -> Said {
    if let Some(value) = constant(expr) {
        return Said::Constant(value);
    }
    let mut all = Vec::new();
    walk(expr, &mut |visit| {
        if let Visit::Reference { name, steps, .. } = visit {
            for form in forms(name, steps) {
                if !all.contains(&form) {
                    all.push(form);
                }
            }
        }
    });
    Said::Made(all)
}

/// The value of what is made of literals alone.
fn constant(expr: &Expr) -> Option<Value> {
    match &expr.bare().kind {
        ExprKind::Literal(value) => Some(value.clone()),
        ExprKind::Tuple(items) => items.iter().map(constant).collect::<Option<Vec<_>>>().map(Value::tuple),
        ExprKind::Object(items) => {
            let entry = |(key, value): &(ObjectKey, Expr)| {
                let key = match key {
                    ObjectKey::Name(name) => name.clone(),
                    ObjectKey::Expr(key) => constant(key)?.as_str()?.to_owned(),
                };
                Some((key, constant(value)?))
            };
            items.iter().map(entry).collect::<Option<Object>>().map(|entries| Kind::Object(entries).into())
        }
        _ => None,
    }
}

/// A reference as far as its text tells which part is meant, then ever shorter, down to the thing that it is a part of, at last without key.
fn forms(name: &str, steps: &[Step]) -> Vec<String> {
    let mut parts = vec![name.to_owned()];
    for step in steps {
        parts.push(match &step.kind {
            StepKind::Attribute(name) => format!(".{name}"),
            StepKind::LegacyIndex(at) => Key::Index(*at).to_string(),
            StepKind::Index(key) => match literal_key(key) {
                Some(key) => key.to_string(),
                None => break,
            },
            StepKind::AttributeSplat | StepKind::FullSplat => break,
        });
    }
    // So many parts name a thing.
    let named = match name {
        "self" => 1,
        "data" => 3,
        _ => 2,
    };
    (named..=parts.len()).rev().map(|count| parts[..count].concat()).collect()
}
