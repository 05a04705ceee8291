//! What a cluster expands into, with all that thousands of plans of it ask again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;

use karmaform_model::{Arg, Child, ChildStep, Expansion, Object, Type, Value};

use super::Path;

/// An expansion, with the children in an order in which those that they need come first.
#[derive(Default)]
pub(crate) struct Expanded {
    expansion: Expansion,
    by_path: BTreeMap<Path, (usize, Rc<Vec<Path>>)>,
    /// The arguments of children that need nobody's.
    settled: BTreeMap<Path, Object>,
}

impl Expanded {
    /// A child.
    pub(super) fn child(&self, path: &Path) -> Option<&Child> {
        self.by_path.get(path).map(|(index, _)| &self.expansion.children[*index])
    }

    /// Its arguments, with `lookup` giving siblings' attributes.
    pub(super) fn arguments(&self, child: &Child, lookup: &dyn Fn(&[ChildStep], &str) -> Value) -> Object {
        let of = || child.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(lookup))).collect();
        self.settled.get(&child.path).cloned().unwrap_or_else(of)
    }

    /// The siblings that come before it.
    pub(super) fn needs(&self, path: &Path) -> Option<&Rc<Vec<Path>>> {
        self.by_path.get(path).map(|(_, needs)| needs)
    }
}

impl From<Expansion> for Expanded {
    fn from(mut expansion: Expansion) -> Self {
        let (children, needs): (Vec<_>, Vec<_>) = sorted(expansion.children).into_iter().unzip();
        let paths = children.iter().map(|child| child.path.clone());
        let by_path = paths.zip(needs.into_iter().map(Rc::new).enumerate()).collect();
        expansion.children = children;
        let mut settled = BTreeMap::new();
        for child in &mut expansion.children {
            if child.arguments.values_mut().fold(true, |all, a| settle(a) & all) {
                let arguments = child.arguments.iter().map(|(n, a)| (n.clone(), a.resolve(&nobody)));
                settled.insert(child.path.clone(), arguments.collect());
            }
        }
        Self { expansion, by_path, settled }
    }
}

impl Deref for Expanded {
    type Target = Expansion;

    fn deref(&self) -> &Expansion {
        &self.expansion
    }
}

/// Parts that refer to nothing have one value for ever, which is shared by all plans then. Gives whether it is such a part.
fn settle(arg: &mut Arg) -> bool {
    let is_settled = match arg {
        Arg::Value(_) => return true,
        Arg::Child(..) => false,
        // All of them are asked, also after one that is not.
        Arg::List(args) | Arg::Text(args) => args.iter_mut().fold(true, |all, a| settle(a) & all),
        Arg::Object(args) => args.values_mut().fold(true, |all, a| settle(a) & all),
        Arg::Part(arg, _) | Arg::UrlHost(arg) | Arg::Base64(arg) | Arg::Decoded(arg) => settle(arg),
    };
    if is_settled {
        *arg = Arg::Value(arg.resolve(&nobody));
    }
    is_settled
}

/// Is never asked.
fn nobody(_: &[ChildStep], _: &str) -> Value {
    Value::unknown(Type::Any)
}

fn sorted(children: Vec<Child>) -> Vec<(Child, Vec<Path>)> {
    let (mut done, mut sorted) = (BTreeSet::new(), Vec::new());
    let mut left: Vec<_> = children.into_iter().map(|child| (needs(&child), child)).collect();
    while !left.is_empty() {
        let count = left.len();
        let mut later = Vec::new();
        for (needs, child) in left {
            if needs.iter().all(|n| done.contains(n)) {
                done.insert(child.path.clone());
                sorted.push((child, needs));
            } else {
                later.push((needs, child));
            }
        }
        assert!(later.len() < count, "children wait for each other");
        left = later;
    }
    sorted
}

/// The siblings that come first.
fn needs(child: &Child) -> Vec<Path> {
    let mut found = child.after.clone();
    child.arguments.values().for_each(|a| a.references(&mut found));
    found
}
