//! The language, tested through its public interface: one binary for all.

mod cases;
mod size;
mod support;

mod checks;
mod corpus;
mod defaults;
mod fuzz;
mod imports;
mod loading;
mod modules;
mod moved;
mod open;
mod oracle;
mod removed;
mod templates;
mod written;
