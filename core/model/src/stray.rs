//! What carries the marks of something that karmaform made, and is in no state.

use crate::Object;

/// A thing that is in the state or the configuration, for who looks for strays beside it.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its resource type.
    pub resource_type: String,
    /// It is a part of a composite.
    pub is_part: bool,
    /// It is in the state, and there: what carries its marks belongs to the same whole.
    pub is_ours: bool,
    /// What was seen of it; what names it, at least.
    pub object: Object,
}

/// A thing that nobody knows, with the marks of one that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// As its world names it: `Deployment.apps/karmada-system/karmada-scheduler`, `/etc/etcd/main/old.conf on 10.0.0.1`.
    pub name: String,
    /// Place of the one with the same marks in what was known.
    pub beside: usize,
}
