//! `etcd backup run`: makes one backup.

use std::path::PathBuf;
use std::sync::Arc;

use karmaform_engine::Pool;

use super::super::reach::telling;
use super::super::status::bytes;
use crate::app::{App, Ended};
use crate::backup::{Made, Settings, Shelf, run as make};
use crate::runtime::seconds;

/// Arguments of `etcd backup run`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The folder with its settings
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let settings = Settings::read(&app.directory.join(&args.folder))?;
    let shelf = match &settings.bucket {
        Some(bucket) => bucket.open(&app.wiring.environment, app.wiring.home.as_deref()).map(|b| Shelf::Bucket(Box::new(b))),
        None => Ok(Shelf::Directory(settings.directory.clone())),
    };
    // Members are reached as their URLs say: there is no other way to them from here.
    let pool = Pool::new(Arc::clone(app.wiring.registry.catalog()), std::collections::BTreeMap::new());
    let clock = Arc::clone(&app.wiring.clock);
    let now = move || seconds(&*clock);
    let interrupt = app.interrupt.clone();
    let made = telling(app, true, async |tell| make(&settings, shelf, pool, &now, (tell, interrupt.wait())).await)?;
    app.output.print(&match made {
        Made::ByAnother(why) => format!("Nothing to do: {why}.\n"),
        Made::Here { place, size, revision, keys, compared, member } => {
            let size = bytes(i64::try_from(size).unwrap_or(i64::MAX));
            let keys = keys.map(|k| format!(", {k} keys")).unwrap_or_default();
            let hash = if compared { "" } else { " (the hash of its keys and values could not be compared)" };
            format!("Backed up and proven: {size}, revision {revision}{keys}, from member {member}{hash}\n  {place}\n")
        }
    });
    Ok(0)
}
