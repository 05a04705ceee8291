//! A way that one plan can't go: it goes the first leg, and later plans go on from there.

use crate::Object;

/// The first leg of such a way.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    /// The arguments that this plan brings about.
    pub wanted: Object,
    /// What is done first, and what is left for the plans after it, in a few words.
    pub rest: String,
    /// For whom a part of it fails that is made of what nobody has written.
    pub hint: Option<LegHint>,
}

/// Why something is wanted that only the way is in need of, and what to do where it can't be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegHint {
    /// The resource type of the parts that it is about.
    pub kind: &'static str,
    /// A sentence.
    pub text: String,
}
