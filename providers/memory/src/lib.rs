//! A world in a map, for tests and examples.
//!
//! [`Memory::over`] puts any provider over a [`World`]: its schemas and its pure planning stay, everything that would touch the outside is answered
//! from the map. Tests look into the map, preset it, make calls fail, and let hooks play what the outside would do by itself.
//! [`driver`] is a small provider of its own, `memory`, whose types exist nowhere else.
//!
//! Knows nothing of: networks, files, clocks, and of any provider it is put over.

mod calls;
mod delay;
mod driver;
mod fault;
mod fill;
mod inner;
mod text;
mod things;
mod world;

pub use calls::Memory;
pub use driver::{driver, drivers};
pub use fault::{Fault, Moment};
pub use fill::Blank;
pub use world::{Applied, Place, World};
