//! Draws diagnostics, plans, events and states, as text or JSON. Decides nothing.

pub(crate) mod align;
pub(crate) mod attributes;
pub(crate) mod composite;
pub(crate) mod deferred;
pub(crate) mod diagnostics;
pub(crate) mod diff;
pub(crate) mod graph;
pub(crate) mod json;
pub(crate) mod lists;
pub(crate) mod live;
pub(crate) mod markup;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod resource;
pub(crate) mod state;
pub(crate) mod steps;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod values;
