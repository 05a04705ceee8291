//! The one test binary. What each module proves stands in its header.

mod cluster;
mod conformance;
mod events;
mod examples;
mod golden;
mod lab;
mod parts;
mod properties;
mod reference;
mod tidy;
mod tool;
