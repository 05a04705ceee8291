//! State, and whole files, in a bucket of Amazon S3 or of any store that speaks its protocol.
//!
//! [`S3Store`] is a [`StateStore`](karmaform_model::StateStore): it compares and swaps bytes. What those bytes are, who locks and for how
//! long is the business of others. The layout and the arguments are Terraform's, so that both find the same state and the same lock.
//! [`S3Objects`] keeps files of any size below a prefix, with the same arguments.
//!
//! Knows no plan and no provider. The environment and the home folder are arguments.

mod access;
mod credentials;
mod door;
mod duration;
mod http;
mod kms;
mod limits;
mod metadata;
mod names;
mod objects;
mod place;
mod process;
mod profile;
mod schema;
mod settings;
mod source;
mod sso;
mod store;
mod sts;
mod words;

pub use kms::kms;
pub use limits::Limits;
pub use objects::{S3Object, S3Objects};
pub use schema::schema;
pub use store::S3Store;
