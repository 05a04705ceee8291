//! `etcd snapshot`: the cluster in a file, from a healthy follower, with a manifest beside it. Only reads of the cluster.

use std::path::PathBuf;

use karmaform_etcd::{About, Saving, save};
use serde_json::json;

use super::reach::{Target, belongings, look, working};
use super::status::bytes;
use crate::app::{App, Ended};
use crate::flags::boolean;
use crate::ui::json::timestamp;

/// Arguments of `etcd snapshot`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// The file; its manifest is FILE.json
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// From this member; else from a follower that works and lags least
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// Also of a cluster that is not whole: the last that can be had of it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    force: bool,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let reached = look(app, &args.target)?;
    let about = About {
        created: timestamp(app.now_seconds()),
        lineage: reached.state.lineage.clone(),
        address: reached.address.to_string(),
        belongs: belongings(&reached.state, &reached.address),
    };
    let saving = Saving { member: args.member.clone(), force: args.force, about };
    let file = app.directory.join(&args.out);
    let cluster = &reached.cluster;
    let saved = working(app, !args.target.json, async |tell| save(cluster, &file, &saving, tell).await)??;
    let manifest = &saved.manifest;
    if args.target.json {
        let told = json!({ "format_version": "1.0", "file": args.out, "manifest": manifest.to_json() });
        app.output.print(&format!("{told:#}\n"));
        return Ok(0);
    }
    let size = bytes(i64::try_from(manifest.size).unwrap_or(i64::MAX));
    app.output.print(&format!(
        "Saved: {size}, revision {} of cluster {}, SHA-256 {}\n  {}\n  {}\n",
        manifest.revision,
        manifest.cluster_id,
        manifest.sha256,
        args.out.display(),
        saved.manifest_file.display()
    ));
    if !manifest.about.belongs.is_empty() {
        let lines: String = manifest.about.belongs.iter().map(|b| format!("  {b}\n")).collect();
        app.output.print(&format!("Keep with it, from the state:\n{lines}"));
    }
    Ok(0)
}
