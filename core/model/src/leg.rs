//! A way that one plan can't go: it goes the first leg, and later plans go on from there.

use crate::Object;

/// The first leg of such a way.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    /// The arguments that this plan brings about.
    pub wanted: Object,
    /// What is done first, and what is left for the plans after it, in a few words.
    pub rest: String,
}
