//! `module` blocks: what they say, the instances that come of them, and the values that go in and out. A directory is read and checked
//! once, however often it is called; an instance is a number, its path, and values that are evaluated when somebody needs them.

mod defaults;
mod expand;
mod read;
mod tree;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_model::{Address, Key, ModuleStep, Object, Span};

pub(crate) use defaults::{Defaults, give_defaults};
pub(crate) use expand::expand;
pub(crate) use read::{Loader, connect, read};

use crate::config::{Config, Reference, Repeat, Repetition};
use crate::references::{self, KeyUse, Target, Visit, walk};
use crate::syntax::{Body, Expr};

/// A `module` block.
#[derive(Clone)]
pub struct ModuleCall {
    /// Where its header stands.
    pub span: Span,
    /// `source`, as written.
    pub source: String,
    pub(crate) arguments: BTreeMap<String, Argument>,
    pub(crate) repeat: Repeat,
    /// What `count` or `for_each` needs.
    pub(crate) repeat_names: Vec<Name>,
    pub(crate) repeat_references: Vec<Reference>,
    /// What `depends_on` names.
    pub(crate) needs: Vec<String>,
    pub(crate) depends_on: Option<Expr>,
    pub(crate) depends: Vec<Reference>,
    /// What stands in the directory; `None` if it could not be read, which is an error that was reported.
    pub(crate) unit: Option<Arc<Config>>,
}

/// A value for a variable of a module.
#[derive(Clone)]
pub(crate) struct Argument {
    pub expr: Expr,
    pub name_span: Span,
    pub names: Vec<Name>,
    pub references: Vec<Reference>,
}

/// One instance of a module.
#[derive(Clone)]
pub(crate) struct ModuleInstance {
    pub path: Vec<ModuleStep>,
    /// What stands in its directory; `None` for the root, which is the configuration itself.
    pub unit: Option<Arc<Config>>,
    /// The instance that its call stands in.
    pub parent: usize,
    /// The call; `None` for the root.
    pub call: Option<Arc<ModuleCall>>,
    /// The modules that are called in it, as far as it is known how often.
    pub children: BTreeMap<String, Called>,
    /// What all in it needs first: `depends_on`, `count` and `for_each` of its call, and of those around it.
    pub enter: Arc<Vec<Reference>>,
    /// What a test says that it gives. Then nothing in it is there but its variables.
    pub overridden: Option<Arc<Object>>,
}

/// A call and what came of it.
#[derive(Clone)]
pub(crate) struct Called {
    pub repetition: Repetition,
    pub instances: BTreeMap<Option<Key>, usize>,
}

/// What a named value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Variable,
    Local,
    Output,
    /// All outputs of a module, or of all instances of one.
    Whole,
    /// What a `provider` block of a module says.
    Provider,
}

/// A value that an expression needs, by its name in the module that it stands in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Variable(String),
    Local(String),
    /// One output, or all.
    Output {
        call: String,
        key: KeyUse,
        output: Option<String>,
    },
}

impl ModuleCall {
    /// What stands in the module's directory, once for all its calls. There is one if the configuration has no errors.
    pub fn unit(&self) -> Option<&Config> {
        self.unit.as_deref()
    }

    /// True with `count`, or with `for_each`.
    pub fn repeats(&self) -> (bool, bool) {
        (matches!(self.repeat, Repeat::Count(_)), matches!(self.repeat, Repeat::ForEach(_)))
    }

    /// The variables of the module that are given values here.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.arguments.keys().map(String::as_str)
    }
}

impl ModuleInstance {
    /// That of the configuration itself.
    pub(crate) fn root() -> Self {
        Self { path: Vec::new(), unit: None, parent: 0, call: None, children: BTreeMap::new(), enter: Arc::default(), overridden: None }
    }
}

impl Called {
    /// The key as instances have it: `[0]` of a module with `for_each` is `["0"]`.
    pub(crate) fn normalised(&self, key: &Key) -> Option<Key> {
        match (&self.repetition, key) {
            (Repetition::ForEach(_), Key::Index(i)) => Some(Key::Name(i.to_string())),
            (Repetition::Count(_), Key::Name(name)) => name.parse().ok().map(Key::Index),
            _ => Some(key.clone()),
        }
    }

    /// The instances that a use of the module means, as far as its text says.
    pub(crate) fn meant(&self, key: &KeyUse) -> Vec<usize> {
        match (&self.repetition, key) {
            (Repetition::Count(_) | Repetition::ForEach(_), KeyUse::Literal(key)) => {
                self.instances.get(&self.normalised(key)).copied().into_iter().collect()
            }
            _ => self.instances.values().copied().collect(),
        }
    }
}

/// The values that expressions need by name, without doubles.
pub(crate) fn names_of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<Name> {
    let mut names = BTreeSet::new();
    exprs.into_iter().for_each(|e| add_names(e, &mut names));
    names.into_iter().collect()
}

/// The same for a whole body.
pub(crate) fn names_in_body(body: &Body, names: &mut BTreeSet<Name>) {
    body.attributes.iter().for_each(|a| add_names(&a.expr, names));
    body.blocks.iter().for_each(|b| names_in_body(&b.body, names));
}

fn add_names(expr: &Expr, names: &mut BTreeSet<Name>) {
    walk(expr, &mut |visit| {
        let Visit::Reference { name, steps, .. } = visit else { return };
        match references::target(name, steps) {
            Some(Target::Variable(name)) => drop(names.insert(Name::Variable(name))),
            Some(Target::Local(name)) => drop(names.insert(Name::Local(name))),
            Some(Target::Module { call, key, used }) => {
                let output = match steps.get(used).map(|s| &s.kind) {
                    Some(crate::syntax::StepKind::Attribute(name)) => Some(name.clone()),
                    _ => None,
                };
                // An index of a single module may be an output in brackets.
                let output = output.filter(|_| key != KeyUse::Computed);
                names.insert(Name::Output { call, key, output });
            }
            _ => {}
        }
    });
}

/// The address of a module by the name of its call and the key of a reference to it.
pub(crate) fn address_of(call: &str, key: &KeyUse) -> Address {
    let key = match key {
        KeyUse::Literal(key) => Some(key.clone()),
        _ => None,
    };
    Address::of_module(vec![ModuleStep { name: call.to_owned(), key }])
}
