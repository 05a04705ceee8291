//! Bundles: one file with what a configuration needs from elsewhere, for places without a way out. Making one, and working with one.

mod file;
mod shelf;
mod unseen;

use std::sync::Arc;

use karmaform_model::{Diagnostic, Stock, Supplied, Supply};

pub(crate) use self::file::{Contents, ImageNote, Writer};
use self::shelf::Shelf;
pub(crate) use self::unseen::unseen;
use crate::app::{App, Stop};
use crate::project::Project;

/// How much a command needs the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It makes things.
    Certain,
    /// It looks, or takes away: what is in the bundle is hardly asked for.
    Perhaps,
}

/// A bundle that can't be read, for whoever asks for something of it.
struct Unreadable(String, Diagnostic);

impl Stock for Unreadable {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn has(&self, _: &Supply) -> bool {
        false
    }

    fn find(&self, _: &Supply) -> Result<Option<Supplied>, Diagnostic> {
        Err(self.1.clone())
    }
}

/// Hands what the configuration's `bundle` holds to all who would fetch something.
///
/// # Errors
/// If it can't be read, and is needed for certain.
pub(crate) fn use_bundle(app: &App, project: &Project, needed: Use) -> Result<(), Stop> {
    let Some((path, span)) = &project.config.settings.bundle else { return Ok(()) };
    let shelf = Shelf::open(&app.directory.join(path), path).map_err(|why| {
        let detail = format!("{path}, which \"bundle\" names, {why}.");
        Diagnostic::error("Bundle can't be read", detail).with_span(Some(*span)).with_hint(
            "Make it with \"karmaform bundle\", where there is a way to all sources, and bring it here; or leave out \"bundle\".",
        )
    });
    let stock: Arc<dyn Stock> = match shelf {
        Ok(shelf) => Arc::new(shelf),
        Err(why) if needed == Use::Perhaps => Arc::new(Unreadable(path.clone(), why)),
        Err(why) => return Err(why.into()),
    };
    app.wiring.registry.drivers().for_each(|driver| driver.stock(Arc::clone(&stock)));
    Ok(())
}
