//! What stands in a plan where a secret was: enough to tell whether two of them were the same, and that it was known.

use crate::{Kind, Unknown, Value};

/// No text that is known begins so.
const WITHHELD: &str = "\u{0}withheld ";

impl Value {
    /// What stands for this one; equal ones are to have equal numbers.
    #[must_use]
    pub fn withheld(&self, number: usize) -> Self {
        let unknown = Unknown { prefix: Some(format!("{WITHHELD}{number}")), ..Unknown::of(self.ty()) };
        Self::from(Kind::Unknown(Box::new(unknown))).secret()
    }

    /// The number of what stands for another one.
    pub fn withheld_number(&self) -> Option<&str> {
        match &self.kind {
            Kind::Unknown(unknown) => unknown.prefix.as_deref().and_then(|prefix| prefix.strip_prefix(WITHHELD)),
            _ => None,
        }
    }
}
