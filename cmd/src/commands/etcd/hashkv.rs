//! `etcd hashkv`: whether all members have the same data. Only looks.
//!
//! Exit codes: 0 they have, 2 they have not, 1 it can't be told.

use karmaform_etcd::{Hashes, hashes};
use serde_json::{Value as Json, json};

use super::reach::{Target, look};
use super::status::{NOT_WELL, agreement};
use crate::app::{App, Ended};
use crate::planning::looking;
use crate::ui::style::Tone;
use crate::ui::table::table;

/// It can't be told.
const UNTOLD: i32 = 1;

/// Arguments of `etcd hashkv`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Up to this revision; else the newest that all have
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    revision: Option<i64>,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let reached = look(app, &args.target)?;
    let found = looking(app, hashes(&reached.cluster, args.revision))??;
    if args.target.json {
        let mut told = to_json(&found);
        told["format_version"] = json!("1.0");
        app.output.print(&format!("{told:#}\n"));
    } else {
        let header = ["member", "hash", "compacted at"].map(str::to_owned);
        let odd = found.odd();
        let row = |(name, hash): (&String, &Result<karmaform_etcd::Hash, String>)| match hash {
            Ok(h) => {
                let tone = if odd.contains(&name.as_str()) { Tone::Remove } else { Tone::Plain };
                vec![(name.clone(), Tone::Bold), (format!("{:08x}", h.hash), tone), (h.compacted.to_string(), Tone::Plain)]
            }
            Err(why) => vec![(name.clone(), Tone::Bold), (why.clone(), Tone::Remove), (String::new(), Tone::Plain)],
        };
        let rows: Vec<_> = found.members.iter().map(row).collect();
        let (word, tone) = agreement(&found);
        let text = format!("{}Data at revision {}: {}\n", table(&header, &rows, &app.theme), found.revision, app.theme.paint(tone, word));
        app.output.print(&text);
    }
    Ok(match found.agree() {
        Some(true) => 0,
        Some(false) => NOT_WELL,
        None => UNTOLD,
    })
}

/// For programs.
pub(super) fn to_json(hashes: &Hashes) -> Json {
    let one = |(name, hash): (&String, &Result<karmaform_etcd::Hash, String>)| match hash {
        Ok(h) => json!({ "name": name, "hash": h.hash, "compact_revision": h.compacted }),
        Err(why) => json!({ "name": name, "error": why }),
    };
    json!({ "revision": hashes.revision, "agree": hashes.agree(), "members": hashes.members.iter().map(one).collect::<Vec<_>>() })
}
