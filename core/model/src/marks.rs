//! What a value is besides what it holds.

use std::ops::{BitOr, BitOrAssign};

/// The marks of a value, or of several: what is made of marked values has the marks of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Never shown, never written in clear outside the state.
    pub secret: bool,
    /// Of this run alone: in no state and in no plan.
    pub ephemeral: bool,
}

impl Marks {
    /// True if there is one, so that nothing of the value may be shown.
    pub fn any(self) -> bool {
        self.secret || self.ephemeral
    }
}

impl BitOr for Marks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { secret: self.secret || other.secret, ephemeral: self.ephemeral || other.ephemeral }
    }
}

impl BitOrAssign for Marks {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}
