//! The ends of `moved` blocks as what they may mean: which can be one and the same, and which lies in which.

use karmaform_model::{Address, Key};

use super::Moved;

/// Which instances are meant at one place of a path.
#[derive(Clone, Debug, PartialEq)]
enum Instances {
    /// Each by itself: the block stands in a module, and is about every instance of that.
    Each,
    /// All of them, each with its key.
    All,
    /// This one; `None`: the only one of a block without `count` or `for_each`.
    One(Option<Key>),
}

/// One end of a `moved` block, seen from the root.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    modules: Vec<(String, Instances)>,
    /// Type, name and instances; nothing for a whole module.
    resource: Option<(String, String, Instances)>,
}

/// The names in a pattern: its modules; its type and name, if it is no module.
pub(super) type Names = (Vec<String>, Option<(String, String)>);

impl Instances {
    fn may_be(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(a), Self::One(b)) => a == b,
            _ => true,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other || *self == Self::Each || *other == Self::Each
    }
}

impl Pattern {
    /// Of one end of a block.
    pub(super) fn of(moved: &Moved, end: &Address) -> Self {
        let last = if moved.is_whole() { Instances::All } else { Instances::One(end.key.clone()) };
        let mut modules: Vec<_> = moved.module.iter().map(|name| (name.clone(), Instances::Each)).collect();
        modules.extend(end.module.iter().map(|step| (step.name.clone(), Instances::One(step.key.clone()))));
        if let (true, true, Some((_, instances))) = (end.is_module(), moved.is_whole(), modules.last_mut()) {
            *instances = Instances::All;
        }
        let resource = (!end.is_module()).then(|| (end.kind.clone(), end.name.clone(), last));
        Self { modules, resource }
    }

    /// Its names, without instances. What may be another has the same; what may be in another begins with its modules.
    pub(super) fn names(&self) -> Names {
        let resource = self.resource.as_ref().map(|(kind, name, _)| (kind.clone(), name.clone()));
        (self.modules.iter().map(|(name, _)| name.clone()).collect(), resource)
    }

    /// True if both may name one and the same thing.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        self.agrees(other, Instances::may_be)
    }

    /// True if both say the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.agrees(other, Instances::is_same)
    }

    fn agrees(&self, other: &Self, agree: fn(&Instances, &Instances) -> bool) -> bool {
        let resources = match (&self.resource, &other.resource) {
            (None, None) => true,
            (Some((kind, name, a)), Some((other_kind, other_name, b))) => kind == other_kind && name == other_name && agree(a, b),
            _ => false,
        };
        resources && self.modules.len() == other.modules.len() && agree_all(&self.modules, &other.modules, agree)
    }

    /// True if this may lie in the other one, a module.
    pub(super) fn may_be_in(&self, module: &Self) -> bool {
        let is_deeper = self.modules.len() > module.modules.len() || self.resource.is_some() && self.modules.len() == module.modules.len();
        module.resource.is_none() && is_deeper && agree_all(&self.modules, &module.modules, Instances::may_be)
    }

    /// True if both are instances of one and the same module.
    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        self.resource.is_none() && self.names() == other.names()
    }

    /// How deep in modules the block stands.
    pub(super) fn depth(&self) -> usize {
        self.modules.iter().take_while(|(_, instances)| *instances == Instances::Each).count()
    }

    /// True for all instances of a resource.
    pub(super) fn is_whole_resource(&self) -> bool {
        matches!(self.resource, Some((_, _, Instances::All)))
    }
}

fn agree_all(a: &[(String, Instances)], b: &[(String, Instances)], agree: fn(&Instances, &Instances) -> bool) -> bool {
    a.iter().zip(b).all(|((name, x), (other, y))| name == other && agree(x, y))
}
