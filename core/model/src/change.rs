//! What is to happen to one resource.

use serde::{Deserialize, Serialize};

use crate::{Object, Path};

/// In which order a replacement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplaceOrder {
    /// `-/+`: the default.
    DestroyFirst,
    /// `+/-`: `create_before_destroy`.
    CreateFirst,
}

/// A planned change with both sides inside. In `after`, unknown parts are "known after apply".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Change {
    /// Nothing to do. `object` may carry refreshed facts (a connection, a computed value) for the state.
    NoOp {
        /// What is and stays.
        object: Object,
    },
    /// A data source that can only be read during apply.
    Read {
        /// Its arguments, and unknown results.
        after: Object,
    },
    /// Make it.
    Create {
        /// What is wanted.
        after: Object,
    },
    /// Change it in place.
    Update {
        /// What is.
        before: Object,
        /// What is wanted.
        after: Object,
    },
    /// Remove it and make it anew.
    Replace {
        /// What is.
        before: Object,
        /// What is wanted.
        after: Object,
        /// Which comes first.
        order: ReplaceOrder,
        /// The attributes that can't change in place.
        because: Vec<Path>,
    },
    /// Remove it.
    Delete {
        /// What is.
        before: Object,
    },
    /// Leave it alone and stop managing it.
    Forget {
        /// What is.
        before: Object,
    },
}

/// A change without its sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    NoOp,
    /// Read during apply.
    Read,
    /// Create.
    Create,
    /// Update in place.
    Update,
    /// Replace, destroy first.
    DestroyThenCreate,
    /// Replace, create first.
    CreateThenDestroy,
    /// Delete.
    Delete,
    /// Forget.
    Forget,
}

impl Action {
    /// True unless an apply would do nothing to the thing and to what is recorded of it: reading is no such act.
    pub fn acts(self) -> bool {
        !matches!(self, Self::NoOp | Self::Read)
    }
}

impl Change {
    /// Without its sides.
    pub fn action(&self) -> Action {
        match self {
            Self::NoOp { .. } => Action::NoOp,
            Self::Read { .. } => Action::Read,
            Self::Create { .. } => Action::Create,
            Self::Update { .. } => Action::Update,
            Self::Replace { order: ReplaceOrder::DestroyFirst, .. } => Action::DestroyThenCreate,
            Self::Replace { order: ReplaceOrder::CreateFirst, .. } => Action::CreateThenDestroy,
            Self::Delete { .. } => Action::Delete,
            Self::Forget { .. } => Action::Forget,
        }
    }

    /// What is now.
    pub fn before(&self) -> Option<&Object> {
        match self {
            Self::Read { .. } | Self::Create { .. } => None,
            Self::NoOp { object } => Some(object),
            Self::Update { before, .. } | Self::Replace { before, .. } | Self::Delete { before } | Self::Forget { before } => Some(before),
        }
    }

    /// What will be.
    pub fn after(&self) -> Option<&Object> {
        match self {
            Self::Delete { .. } | Self::Forget { .. } => None,
            Self::NoOp { object } => Some(object),
            Self::Read { after } | Self::Create { after } | Self::Update { after, .. } | Self::Replace { after, .. } => Some(after),
        }
    }

    /// What will be, to fill in.
    pub fn after_mut(&mut self) -> Option<&mut Object> {
        match self {
            Self::Delete { .. } | Self::Forget { .. } => None,
            Self::NoOp { object } => Some(object),
            Self::Read { after } | Self::Create { after } | Self::Update { after, .. } | Self::Replace { after, .. } => Some(after),
        }
    }

    /// True if there is nothing to do.
    pub fn is_no_op(&self) -> bool {
        matches!(self, Self::NoOp { .. })
    }
}
