//! What carries the marks of something that karmaform made, and is in no state.

use crate::{Diagnostic, Diagnostics, Object};

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

/// What a look for strays told.
#[derive(Clone, Debug, Default)]
pub struct Strays {
    /// Those that there are.
    pub found: Vec<Stray>,
    /// With any of these there may be more of any kind.
    pub wrong: Diagnostics,
    /// Of these alone there may be more.
    pub unlisted: Vec<Unlisted>,
}

/// Things that can't be told for lack of a right, where all others can.
#[derive(Clone, Debug, PartialEq)]
pub struct Unlisted {
    /// How their names begin: `Pod/karmada-system/`.
    pub begin: Vec<String>,
    /// Which right that is.
    pub why: Diagnostic,
}

impl From<(Vec<Stray>, Diagnostics)> for Strays {
    fn from((found, wrong): (Vec<Stray>, Diagnostics)) -> Self {
        Self { found, wrong, unlisted: Vec::new() }
    }
}
