//! What expressions may ask of the outside: files through one small door, and facts of the run as plain values.

use std::sync::Arc;

/// The only door to the outside. Paths are relative to the working directory, or absolute.
pub trait Files: Send + Sync {
    /// The whole content.
    ///
    /// # Errors
    /// Why it can't be read, in words.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// True if there is a file, false if there is nothing.
    ///
    /// # Errors
    /// What there is, and is no file, in words: `is a directory`.
    fn exists(&self, path: &str) -> Result<bool, String>;
    /// All files below a directory, relative to it, sorted; none if there is no such directory.
    ///
    /// # Errors
    /// Why it can't be listed, in words.
    fn list(&self, directory: &str) -> Result<Vec<String>, String>;
    /// The same, for somebody who wants nothing deeper than so many levels: 1 is for the directory itself.
    ///
    /// # Errors
    /// Why it can't be listed, in words.
    fn list_to(&self, directory: &str, _levels: usize) -> Result<Vec<String>, String> {
        self.list(directory)
    }
    /// The names of the files that stand in a directory itself, sorted.
    ///
    /// # Errors
    /// Why it can't be listed, in words.
    fn names(&self, directory: &str) -> Result<Vec<String>, String> {
        Ok(self.list(directory)?.into_iter().filter(|name| !name.contains('/')).collect())
    }
}

/// Facts of a run that expressions can see.
#[derive(Clone)]
pub struct Context {
    /// The files.
    pub files: Arc<dyn Files>,
    /// Seconds since 1970-01-01 UTC, for `plantimestamp()`.
    pub now: i64,
    /// `path.root`, and `path.module` of the root module.
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

impl Context {
    /// For texts that stand by themselves: no files, no home folder, time at its beginning.
    pub fn alone() -> Self {
        Self {
            files: Arc::new(NoFiles),
            now: 0,
            directory: ".".to_owned(),
            working_directory: "/".to_owned(),
            workspace: "default".to_owned(),
            home: None,
            tool_version: "0.1.0".to_owned(),
        }
    }
}

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("there is no {path}"))
    }

    fn exists(&self, _: &str) -> Result<bool, String> {
        Ok(false)
    }

    fn list(&self, _: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}
