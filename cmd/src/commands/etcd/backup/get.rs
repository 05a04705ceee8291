//! `etcd backup get`: one backup from the bucket into a file that is there only when it is known to be whole, with its manifest beside it: what `restore`
//! and `etcd verify` take.

use std::path::PathBuf;

use karmaform_etcd::{beside, verify};
use karmaform_model::Diagnostic;
use serde_json::json;

use super::super::reach::working;
use super::super::status::bytes;
use super::list::time;
use super::{Target, shelf};
use crate::app::{App, Ended};
use crate::backup::{at, choose, entries, fetch, identity, moment, place};

/// Arguments of `etcd backup get`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// The file; its manifest is FILE.json
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// This one, as list names it; else the newest that is whole
    #[arg(long, value_name = "NAME", conflicts_with = "before")]
    name: Option<String>,
    /// The newest that was made at this time or before: 2026-01-02T03:04:05Z
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// What decrypts it: a file as age-keygen writes it
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let before = args.before.as_deref().map(|text| moment("-before", text)).transpose()?;
    let identity = args.identity.as_ref().map(|file| identity(&app.directory.join(file), "of -identity")).transpose()?;
    let now = at(app.now_seconds());
    let out = app.directory.join(&args.out);
    let beside = beside(&out);
    for path in [&out, &beside] {
        if path.symlink_metadata().is_ok() {
            let detail = format!("{} is there already, and nothing is written over.", path.display());
            return Err(Diagnostic::error("The file is there already", detail).with_hint("Give another name, or move it away.").into());
        }
    }
    let named = place::read(&args.target.address)?.and_then(|place| place.backup);
    if named.is_some() && (args.name.is_some() || args.before.is_some()) {
        return Err(place::named_twice(&args.target.address, "-name or -before").into());
    }
    let named = named.or_else(|| args.name.clone());
    let (name, shelf) = shelf(app, &args.target)?;
    let chosen = working(app, !args.target.json, async |tell| {
        let chosen = choose(entries(&name, &shelf.files().await?), named.as_deref(), before, now)?;
        tell(&format!("getting {}", shelf.place(chosen.data.as_deref().unwrap_or_default())));
        fetch(&shelf, &chosen, identity.as_ref(), (&out, &beside)).await?;
        Ok::<_, Diagnostic>(chosen)
    })??;
    let verified = verify(&out)?;
    if args.target.json {
        let told = json!({
            "format_version": "1.0", "name": chosen.stem, "created": time(&chosen), "file": args.out, "size": verified.size, "sha256": verified.sha256,
        });
        app.output.print(&format!("{told:#}\n"));
    } else {
        let size = bytes(i64::try_from(verified.size).unwrap_or(i64::MAX));
        let of = |m: &karmaform_etcd::Manifest| format!(", revision {} of cluster {} ({})", m.revision, m.cluster_id, m.about.address);
        let revision = verified.manifest.as_ref().map(of).unwrap_or_default();
        let out = args.out.display();
        app.output.print(&format!("Got {} of {}: {size}{revision}, SHA-256 {}\n  {out}\n", chosen.stem, time(&chosen), verified.sha256));
    }
    Ok(0)
}
