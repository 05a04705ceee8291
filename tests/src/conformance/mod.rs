//! One suite for all implementations of a trait. A new backend adds a function that opens it, and nothing else.

mod journal;
mod state_backend;
