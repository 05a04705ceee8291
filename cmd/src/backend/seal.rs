//! From the `encryption` block to what seals state, plans and journals.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use karmaform_encryption::Encryption;
use karmaform_lang::Settings;
use karmaform_model::{Clear, Diagnostic, Diagnostics, Object, Seal, SealError};

use super::arguments::{BlockName, Given, checked};
use crate::app::{App, Stop};
use crate::flags::VariableFlags;
use crate::project::load_if_any;

/// Where keys are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) home: Option<&'a Path>,
}

/// What a configuration seals with: nothing, where there is no block.
///
/// # Errors
/// If the block is wrong, or a file it names can't be read.
pub(crate) fn seal_of(app: &App, settings: &Settings) -> Result<Arc<dyn Seal>, Stop> {
    let Some(block) = &settings.encryption else { return Ok(Arc::new(Clear)) };
    let around = Surroundings { directory: &app.directory, environment: &app.wiring.environment, home: app.wiring.home.as_deref() };
    let wrong = |all: Diagnostics| all.into_iter().map(|d| if d.span.is_none() { d.with_span(Some(block.span)) } else { d }).collect();
    sealing(&Given::from(block), around).map_err(|all| Stop::Because(wrong(all)))
}

/// The same for the configuration in the directory, for what has none with it.
///
/// # Errors
/// As [`seal_of`], and if the files can't be read.
pub(crate) fn seal_of_directory(app: &mut App, flags: &VariableFlags) -> Result<Arc<dyn Seal>, Stop> {
    let project = load_if_any(app, flags, false)?;
    // What it is sealed with may stand in what did not parse.
    if project.config.settings.encryption.is_none() && project.config.is_incomplete() {
        return Err(project.diagnostics.into());
    }
    seal_of(app, &project.config.settings)
}

/// Over the arguments of a block.
///
/// # Errors
/// All that is wrong with them.
pub(crate) fn sealing(given: &Given, around: Surroundings<'_>) -> Result<Arc<dyn Seal>, Diagnostics> {
    let arguments = checked(BlockName::Encryption, karmaform_encryption::schema(), given)?;
    let kms = |arguments: &Object| karmaform_s3::kms(arguments, around.environment, around.home);
    Ok(Arc::new(Encryption::open(&arguments, around.directory, around.home, &kms)?))
}

/// Something can't be sealed or opened.
pub(crate) fn unsealable(what: &str, error: &SealError) -> Diagnostic {
    Diagnostic::error("Encryption failed", format!("The {what}: {error}.")).with_hint(error.hint())
}
