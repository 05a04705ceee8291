//! What stands in for single instances: a test says what they are like, and their providers are not asked about them.

use crate::{Address, Diagnostic, Object, ResourceSpec};

/// Answers for some instances in place of their providers.
pub trait StandIns: Send + Sync {
    /// The pure half of this resource; `None`: nothing stands in for it.
    fn spec(&self, address: &Address) -> Option<&dyn ResourceSpec>;

    /// What is there once a resource that [`StandIns::spec`] answers for has been made, or changed, as planned.
    ///
    /// # Errors
    /// What is said of it can't be.
    fn made(&self, address: &Address, planned: &Object) -> Result<Object, Diagnostic>;

    /// What a data source says; `None`: nothing stands in for it.
    fn read(&self, address: &Address, arguments: &Object) -> Option<Result<Object, Diagnostic>>;
}
