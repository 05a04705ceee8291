//! `etcd verify`: whether a saved file is still whole, and with -drill whether etcd comes back from it. Asks no cluster and reads no state.

use std::path::PathBuf;

use karmaform_etcd::{Drilled, Verified, drill, verify};
use serde_json::json;

use super::reach::working;
use super::status::bytes;
use crate::app::{App, Ended};
use crate::flags::boolean;
use crate::wiring::WORKING_DIRECTORY;

/// Arguments of `etcd verify`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Also restore it into a scratch etcd on this machine, and ask that what it has
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    drill: bool,
    /// For the drill: where etcd, etcdctl and etcdutl of the cluster's minor version are; else they are taken from the path
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let file = app.directory.join(&args.file);
    let verified = verify(&file)?;
    let mut drilled = None;
    if args.drill {
        let programs = args.programs.as_ref().map(|p| app.directory.join(p));
        let scratch = app.directory.join(WORKING_DIRECTORY).join(format!("drill-{}", std::process::id()));
        let (file, verified) = (&file, &verified);
        let done = working(app, !args.json, async |tell| drill(file, verified, programs.as_deref(), &scratch, tell).await)?;
        drilled = Some(done?);
    }
    if args.json {
        let of = |d: &Drilled| json!({ "etcd_version": d.version, "revision": d.revision, "keys": d.keys, "same_hash": d.same_hash });
        let told = json!({
            "format_version": "1.0", "size": verified.size, "sha256": verified.sha256, "drill": drilled.as_ref().map(of),
            "manifest": verified.manifest.as_ref().map(karmaform_etcd::Manifest::to_json),
        });
        app.output.print(&format!("{told:#}\n"));
    } else {
        app.output.print(&text(&verified, drilled.as_ref()));
    }
    Ok(0)
}

fn text(verified: &Verified, drilled: Option<&Drilled>) -> String {
    let size = bytes(i64::try_from(verified.size).unwrap_or(i64::MAX));
    let mut text = format!("Whole: {size}, SHA-256 {}\n", verified.sha256);
    match &verified.manifest {
        Some(m) => {
            let (address, created) = (&m.about.address, &m.about.created);
            text.push_str(&format!("  as its manifest says: {address} at {created}, revision {}, etcd {}\n", m.revision, m.version));
        }
        None => text.push_str("  it has no manifest beside it: only its own sum was compared\n"),
    }
    if let Some(d) = drilled {
        let keys = d.keys.map_or_else(|| "keys that are not for everybody".to_owned(), |n| format!("{n} keys"));
        let hash = match d.same_hash {
            Some(_) => "with the keys and values that the member had",
            None => "whose hash there is nothing to compare with",
        };
        text.push_str(&format!("Restored by etcd {}: {keys} at revision {}, {hash}\n", d.version, d.revision));
    }
    text
}
