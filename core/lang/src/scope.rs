//! What names mean where an expression stands: names bound by `for` and templates, `each`, `count`.

use karmaform_model::{Type, Value};

use crate::config::Repeat;
use crate::eval::unknown;

/// Names bound by the expressions around.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    pub site: &'s Site,
    frame: Option<&'s Frame<'s>>,
}

struct Frame<'s> {
    names: &'s [(&'s str, Value)],
    parent: Option<&'s Frame<'s>>,
}

/// Where an expression stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    /// `each.key`, `each.value`
    pub each: Option<(Value, Value)>,
    /// `count.index`
    pub count: Option<Value>,
    /// The instance of a module: its number, 0 for the root.
    pub module: usize,
    /// Only bound names mean something: in template files, and where nothing may be referred to.
    pub closed: bool,
    /// It is kept nowhere, so what is ephemeral may stand here: a provider block.
    pub of_run: bool,
}

impl Site {
    /// In an instance of a module.
    pub(crate) fn in_module(module: usize) -> Self {
        Self { module, ..Self::default() }
    }

    /// Of an instance that stands for all that come of `count` or `for_each`.
    pub(crate) fn of_any(self, repeat: &Repeat) -> Self {
        match repeat {
            Repeat::Count(_) => Self { count: Some(Value::unknown_not_null(Type::Number)), ..self },
            Repeat::ForEach(_) => Self { each: Some((Value::unknown_not_null(Type::String), unknown())), ..self },
            Repeat::None | Repeat::Wrong => self,
        }
    }
}

impl<'s> Scope<'s> {
    /// The outermost scope of a site.
    pub(crate) fn new(site: &'s Site) -> Self {
        Self { site, frame: None }
    }

    /// With more names, for the time of `work`.
    pub(crate) fn bind<R>(&self, names: &[(&str, Value)], work: impl FnOnce(&Scope<'_>) -> R) -> R {
        let frame = Frame { names, parent: self.frame };
        work(&Scope { site: self.site, frame: Some(&frame) })
    }

    /// What a bound name stands for.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let mut frame = self.frame;
        while let Some(here) = frame {
            if let Some((_, value)) = here.names.iter().find(|(n, _)| *n == name) {
                return Some(value);
            }
            frame = here.parent;
        }
        None
    }
}
