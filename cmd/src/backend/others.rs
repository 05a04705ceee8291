//! The states of other configurations, for `terraform_remote_state`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karmaform_model::{
    BackendError, BoxFuture, Clear, Diagnostic, Diagnostics, Object, OtherState, Refused, Seal, Snapshot, StateError, States, StoreError,
};

use super::arguments::{BlockName, Given, checked};
use super::kind_of;
use super::seal::{Surroundings, sealing, unsealable};
use crate::wiring::{BackendKind, BackendRequest};
use crate::workspace::check;

/// What it takes to open any of them.
pub(crate) struct Others {
    pub(crate) backends: Vec<BackendKind>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) home: Option<PathBuf>,
}

impl Others {
    fn kind(&self, backend: &str) -> Result<BackendKind, Diagnostic> {
        kind_of(&self.backends, backend).map_err(|(refused, known)| refused.with_hint(format!("There are {}.", known.join(", "))))
    }

    async fn read_now(&self, wanted: &OtherState<'_>) -> Result<Option<Snapshot>, Diagnostic> {
        let OtherState { backend, config, workspace, encryption } = *wanted;
        let kind = self.kind(backend)?;
        check(workspace)?;
        let arguments = arguments(kind, config).map_err(first)?;
        // Relative to the configuration: that is where the process is.
        let directory = Path::new(".");
        let (environment, home) = (&self.environment, self.home.as_deref());
        let seal: Arc<dyn Seal> = match encryption {
            None => Arc::new(Clear),
            Some(arguments) => {
                let given = Given { arguments: arguments.clone(), ..Given::default() };
                sealing(&given, Surroundings { directory, environment, home }).map_err(first)?
            }
        };
        let request = BackendRequest { directory, arguments: &arguments, workspace, state: None, environment, home, seal: &seal };
        let open = (kind.open)(&request)?;
        open.backend.read().await.map_err(|error| {
            if let BackendError::Damaged { source: StateError::Sealed(error), .. } = &error {
                return unsealable(&format!("state at {}", open.place), error);
            }
            let why = match &error {
                BackendError::Store { source: StoreError::Changed, .. } => error.to_string(),
                BackendError::Store { source, .. } => source.to_string(),
                other => other.to_string(),
            };
            Diagnostic::error("Can't read the state", format!("The state at {}: {}.", open.place, why.trim_end_matches('.')))
        })
    }
}

/// The arguments as the backend has them.
fn arguments(kind: BackendKind, config: &Object) -> Result<Object, Diagnostics> {
    let given = Given { arguments: config.clone(), ..Given::default() };
    checked(BlockName::Config(kind.name), (kind.schema)(), &given)
}

/// What is wrong first; a data source says one thing at a time.
fn first(all: Diagnostics) -> Diagnostic {
    all.into_iter().next().unwrap_or_else(|| Diagnostic::error("Invalid backend configuration", "Its arguments can't be used."))
}

impl States for Others {
    fn refused(&self, backend: &str, config: &Object) -> Refused {
        match self.kind(backend) {
            Ok(kind) => arguments(kind, config).err().into_iter().flatten().map(|wrong| ("config", wrong)).collect(),
            Err(wrong) => vec![("backend", wrong)],
        }
    }

    fn read<'a>(&'a self, wanted: OtherState<'a>) -> BoxFuture<'a, Result<Option<Snapshot>, Diagnostic>> {
        Box::pin(async move { self.read_now(&wanted).await })
    }
}
