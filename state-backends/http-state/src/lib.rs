//! State on any server that speaks Terraform's REST protocol, as GitLab does.
//!
//! [`HttpBackend`] is a [`StateBackend`](karmaform_model::StateBackend) of its own and no store: the protocol has no conditional writes and
//! no way to renew a lock. What it has is used: the lock's id goes with each write, so that a server that knows its locks refuses a writer
//! that lost its own; and before each write the state is read again and compared with what this run knew.
//!
//! Knows no plan and no provider. The environment is an argument.

mod address;
mod arguments;
mod backend;
mod http;
mod limits;
mod lock;
mod words;

pub use arguments::schema;
pub use backend::HttpBackend;
pub use limits::Limits;
