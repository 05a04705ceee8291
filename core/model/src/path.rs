//! Paths into a value: `["settings"]["quota"]`, `[0]`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PathStep {
    /// Into a list, set or tuple.
    Index(usize),
    /// Into a map or object.
    Name(String),
}

/// Where inside an object something is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(pub Vec<PathStep>);

impl Path {
    /// The path of one attribute.
    pub fn attribute(name: &str) -> Self {
        Self(vec![PathStep::Name(name.into())])
    }

    /// This path, one step deeper.
    #[must_use]
    pub fn then(&self, step: PathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The attribute it starts in.
    pub fn root(&self) -> Option<&str> {
        match self.0.first() {
            Some(PathStep::Name(n)) => Some(n),
            _ => None,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(n) => write!(f, "[{n}]")?,
                PathStep::Name(n) if i == 0 => f.write_str(n)?,
                PathStep::Name(n) => write!(f, ".{n}")?,
            }
        }
        Ok(())
    }
}
