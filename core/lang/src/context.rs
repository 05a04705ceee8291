//! What expressions may ask of the outside: files through one small door, and facts of the run as plain values.

use std::sync::Arc;

/// The only door to the outside. Paths are relative to the working directory, or absolute.
pub trait Files: Send + Sync {
    /// The whole content.
    ///
    /// # Errors
    /// Why it can't be read, in words.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// True if there is a file.
    fn exists(&self, path: &str) -> bool;
    /// All files below a directory, relative to it, sorted.
    ///
    /// # Errors
    /// Why it can't be listed, in words.
    fn list(&self, directory: &str) -> Result<Vec<String>, String>;
}

/// Facts of a run that expressions can see.
#[derive(Clone)]
pub struct Context {
    /// The files.
    pub files: Arc<dyn Files>,
    /// Seconds since 1970-01-01 UTC, for `plantimestamp()`.
    pub now: i64,
    /// `path.module` and `path.root`.
    pub directory: String,
    /// `path.cwd`
    pub working_directory: String,
    /// `terraform.workspace`
    pub workspace: String,
    /// What `~` stands for.
    pub home: Option<String>,
    /// Version of the tool, for `required_version`.
    pub tool_version: String,
}
