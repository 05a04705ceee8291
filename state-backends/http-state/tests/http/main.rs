//! The backend against a server in this process: one that keeps its word, in several ways, and one that misbehaves.

mod faults;
mod flow;
mod locks;
mod server;
mod tls;
