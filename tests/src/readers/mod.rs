//! Tools of others read what the command prints and its plans as JSON. What they look for is written here as rules, in our words, and every plan of a
//! life (made, changed, replaced, drifted, moved, let go, deferred, failed, destroyed) is read by all of them. Tools that can be had run as well.
//!
//! | module | whose rules |
//! |---|---|
//! | `text` | tfcmt and Atlantis: lines of `plan` and `apply` |
//! | `json` | terraform-json, through which tf-summarize and others read: keys and their types |
//! | `called` | how Atlantis and tf-summarize call the command |
//! | `tools` | policies in Rego, as conftest runs them, and terraform-compliance, for real |

mod called;
mod json;
mod life;
mod text;
mod tools;
