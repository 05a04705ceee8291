//! The providers that need no connection: `terraform` with `terraform_data` and `terraform_remote_state`, `local` with `local_file`.
//!
//! Knows nothing of: hosts, connections, other providers.

mod data;
mod disk;
mod file;
mod remote_state;

use std::sync::Arc;

use karmaform_model::{Adapter, BoxFuture, Connections, DataSource, Diagnostic, Driver, Object, Provider, ResourceType, Schema, States};

use data::TerraformData;
use file::LocalFile;
use remote_state::RemoteState;

/// The provider `terraform`: what lives in the state alone, and the states of others.
pub struct Terraform {
    schema: Schema,
    data: TerraformData,
    remote_states: [RemoteState; 2],
}

/// The provider `local`: files of the machine that karmaform runs on.
pub struct Local {
    schema: Schema,
    file: LocalFile,
}

/// Both providers, as the registry takes them. `states` is where other configurations have theirs.
pub fn drivers(states: &Arc<dyn States>) -> Vec<Arc<dyn Driver>> {
    vec![Arc::new(Adapter(Terraform::new(states))), Arc::new(Adapter(Local::default()))]
}

impl Terraform {
    /// Over the states of other configurations.
    pub fn new(states: &Arc<dyn States>) -> Self {
        let schema = Schema::new("Resources that live in the state alone, and the states of other configurations.", Vec::new());
        let remote_states = ["terraform_remote_state", "remote_state"].map(|name| RemoteState::new(name, Arc::clone(states)));
        Self { schema, data: TerraformData::new(), remote_states }
    }
}

impl Default for Local {
    fn default() -> Self {
        Self { schema: Schema::new("Files of the machine that karmaform runs on.", Vec::new()), file: LocalFile::new() }
    }
}

impl Provider for Terraform {
    type Client = ();

    fn name(&self) -> &'static str {
        "terraform"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn types(&self) -> Vec<&dyn ResourceType<()>> {
        vec![&self.data]
    }

    fn data_sources(&self) -> Vec<&dyn DataSource<()>> {
        self.remote_states.iter().map(|s| s as &dyn DataSource<()>).collect()
    }

    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<(), Diagnostic>> {
        Box::pin(async { Ok(()) })
    }
}

impl Provider for Local {
    type Client = ();

    fn name(&self) -> &'static str {
        "local"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn types(&self) -> Vec<&dyn ResourceType<()>> {
        vec![&self.file]
    }

    fn connect<'a>(&'a self, _: &'a Object, _: &'a Object, _: Arc<dyn Connections>) -> BoxFuture<'a, Result<(), Diagnostic>> {
        Box::pin(async { Ok(()) })
    }
}
