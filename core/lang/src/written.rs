//! What stands in a block, as far as the text alone tells: arguments as constants, or by what they refer to. For those outside who look at a
//! configuration and not only at what came of it. Nothing is evaluated but what refers to nothing and calls no function.

use std::collections::BTreeMap;

use karmaform_model::{Key, Value};

use crate::blocks::META;
use crate::config::{Config, Output, Repeat, ResourceBlock};
use crate::lifecycle;
use crate::modules::ModuleCall;
use crate::references::{Visit, literal_key, walk};
use crate::syntax::{Body, Expr, ExprKind, Step, StepKind};

/// What an expression says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// This value, as it is written.
    Constant(Value),
    /// Something made of these: each reference, as often as it stands there, followed by its shorter forms, as in Terraform: `x.a.id`, `x.a`.
    /// Empty where it is made by functions alone.
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
    /// What stands in it; `config` is what it stands in.
    pub fn written(&self, config: &Config) -> Written {
        body(config, &self.body, true)
    }

    /// What `count` says, and what `for_each` does.
    pub fn written_repeats(&self, config: &Config) -> (Option<Said>, Option<Said>) {
        repeats(config, &self.repeat)
    }

    /// What `depends_on` names.
    pub fn written_needs(&self) -> Vec<String> {
        self.body.attribute("depends_on").map(|a| needs(&a.expr)).unwrap_or_default()
    }
}

impl Output {
    /// What its `value` says; `config` is what it stands in.
    pub fn written(&self, config: &Config) -> Said {
        said(config, &self.value)
    }

    /// What `depends_on` names.
    pub fn written_needs(&self) -> &[String] {
        &self.needs
    }
}

impl ModuleCall {
    /// What the variables of the module are given here; `config` is what the call stands in.
    pub fn written(&self, config: &Config) -> BTreeMap<String, Said> {
        self.arguments.iter().map(|(name, argument)| (name.clone(), said(config, &argument.expr))).collect()
    }

    /// What `count` says, and what `for_each` does.
    pub fn written_repeats(&self, config: &Config) -> (Option<Said>, Option<Said>) {
        repeats(config, &self.repeat)
    }

    /// What `depends_on` names.
    pub fn written_needs(&self) -> &[String] {
        &self.needs
    }
}

/// What is named in a `depends_on`, each thing as it is written there: with its key, and an output of a module as that.
pub(crate) fn needs(expr: &Expr) -> Vec<String> {
    let ExprKind::Tuple(items) = &expr.kind else { return Vec::new() };
    let mut all = Vec::new();
    for item in items {
        let unquoted = lifecycle::unquoted(item);
        walk(unquoted.as_ref().unwrap_or(item), &mut |visit| {
            if let Visit::Reference { name, steps, .. } = visit {
                all.extend(forms(name, steps).into_iter().next());
            }
        });
    }
    all
}

fn repeats(config: &Config, repeat: &Repeat) -> (Option<Said>, Option<Said>) {
    match repeat {
        Repeat::Count(expr) => (Some(said(config, expr)), None),
        Repeat::ForEach(expr) => (None, Some(said(config, expr))),
        Repeat::None | Repeat::Wrong => (None, None),
    }
}

/// `outer`: what stands directly in the block, where some names are for all types.
fn body(config: &Config, text: &Body, outer: bool) -> Written {
    let mut out = Written::default();
    for attribute in text.attributes.iter().filter(|a| !(outer && META.contains(&a.name.as_str()))) {
        out.arguments.insert(attribute.name.clone(), said(config, &attribute.expr));
    }
    for block in text.blocks.iter().filter(|b| !(outer && b.kind == "lifecycle") && b.kind != "dynamic") {
        out.blocks.entry(block.kind.clone()).or_default().push(body(config, &block.body, false));
    }
    out
}

fn said(config: &Config, expr: &Expr) -> Said {
    let mut all = Vec::new();
    let mut calls = false;
    walk(expr, &mut |visit| match visit {
        Visit::Reference { name, steps, .. } => all.extend(forms(name, steps)),
        Visit::Call(_) => calls = true,
    });
    if all.is_empty() && !calls {
        let (value, problems) = crate::variables::constant(config, expr);
        if !problems.has_errors() && value.is_wholly_known() {
            return Said::Constant(value);
        }
    }
    Said::Made(all)
}

/// A reference as far as its text tells which part is meant, then ever shorter, down to the thing that it is a part of, at last without key.
fn forms(name: &str, steps: &[Step]) -> Vec<String> {
    // The long form of `T.N` is told as the short one.
    let (name, steps) = match (name, steps) {
        ("resource", [Step { kind: StepKind::Attribute(kind), .. }, rest @ ..]) => (kind.as_str(), rest),
        _ => (name, steps),
    };
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
    // So many parts name a thing; an output belongs to an instance of its module.
    let has_key = |at: usize| parts.get(at).is_some_and(|p| p.starts_with('['));
    let named = match name {
        "self" => 1,
        "data" => 3,
        "module" if has_key(2) && parts.len() > 3 => 3,
        _ => 2,
    };
    (named..=parts.len()).rev().map(|count| parts[..count].concat()).collect()
}
