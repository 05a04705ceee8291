//! The providers that need nothing but this machine: `terraform` with `terraform_data`, `local` with `local_file`.
//!
//! Knows nothing of: hosts, connections, other providers.

mod data;
mod disk;
mod file;

use std::sync::Arc;

use karmaform_model::{Adapter, BoxFuture, Connections, Diagnostic, Driver, Object, Provider, ResourceType, Schema};

use data::TerraformData;
use file::LocalFile;

/// The provider `terraform`: what lives in the state alone.
pub struct Terraform {
    schema: Schema,
    data: TerraformData,
}

/// The provider `local`: files of the machine that karmaform runs on.
pub struct Local {
    schema: Schema,
    file: LocalFile,
}

/// Both providers, as the registry takes them.
pub fn drivers() -> Vec<Arc<dyn Driver>> {
    vec![Arc::new(Adapter(Terraform::default())), Arc::new(Adapter(Local::default()))]
}

impl Default for Terraform {
    fn default() -> Self {
        Self { schema: Schema::new("Resources that live in the state alone.", Vec::new()), data: TerraformData::new() }
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
