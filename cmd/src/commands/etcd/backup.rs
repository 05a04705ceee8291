//! `etcd backup`: what `etcd_backup` has made, from a bucket back to a file; and the two commands that its timers and CronJobs run.

mod get;
mod install;
mod list;
mod make;

use clap::ArgAction;
use karmaform_model::{Address, Diagnostic, Value};

use crate::app::{App, Ended, Stop};
use crate::backup::{Bucket, RECORD, Shelf, place};
use crate::flags::{PlaceFlags, boolean};
use crate::planning::addresses;
use crate::reading::current_state;
use crate::ui::json::state::attributes;

/// Arguments of `etcd backup`.
#[derive(clap::Args, Debug)]
#[command(disable_help_subcommand = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with them.
#[derive(clap::Subcommand, Debug)]
enum Command {
    /// The backups that are there, newest first
    List(list::Args),
    /// Get one back into a file: the newest, or the newest before a time
    Get(get::Args),
    /// Make one by the settings in a folder: what timers and CronJobs run
    Run(make::Args),
    /// Put this program into a folder: what the pods of a CronJob begin with
    Install(install::Args),
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    match &args.command {
        Command::List(args) => list::run(app, args),
        Command::Get(args) => get::run(app, args),
        Command::Run(args) => make::run(app, args),
        Command::Install(args) => install::run(app, args),
    }
}

/// Which backups, and how they are told.
#[derive(clap::Args, Debug)]
struct Target {
    /// The etcd_backup; or s3://BUCKET/PREFIX/NAME, where no state tells of it
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The address of the store as it is reached from here, if that is another one than where backups are made
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The region of the bucket, if the state does not say it
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// The store wants the bucket in the path and not in the host's name
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    path_style: bool,
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    #[command(flatten)]
    state: PlaceFlags,
}

/// The name of the backups, and the bucket that they are in.
///
/// # Errors
/// The state has none of this address, or they are in no bucket; or the place is none.
fn shelf(app: &mut App, target: &Target) -> Result<(String, Shelf), Stop> {
    let place = place::read(&target.address)?;
    let is_place = place.is_some();
    let (name, mut bucket) = match place {
        Some(place) => (place.name, place.bucket),
        None => remembered(app, target)?,
    };
    if target.endpoint.is_some() {
        bucket.endpoint.clone_from(&target.endpoint);
    }
    if target.region.is_some() {
        bucket.region.clone_from(&target.region);
    }
    bucket.use_path_style |= target.path_style;
    let opened = bucket.open(&app.wiring.environment, app.wiring.home.as_deref());
    let opened = opened.map_err(|why| if is_place { place::in_flags(why) } else { why })?;
    Ok((name, Shelf::Bucket(Box::new(opened))))
}

/// The same as the state has them.
fn remembered(app: &mut App, target: &Target) -> Result<(String, Bucket), Stop> {
    let address = addresses("ADDRESS", std::slice::from_ref(&target.address))?.remove(0);
    let state = current_state(app, &target.state)?.unwrap_or_default();
    let mut records = state.resources.iter().filter(|(_, r)| r.resource_type == RECORD);
    let of = |a: &Address| a.composite().unwrap_or_else(|| a.clone()).to_string();
    let within: Vec<_> = records.clone().filter(|(a, _)| a.is_within(&address)).collect();
    if within.len() > 1 {
        let names: Vec<String> = within.iter().map(|(a, _)| of(a)).collect();
        let detail = format!("{address} is more than one of them.");
        return Err(Diagnostic::error("Which backups?", detail).with_hint(format!("Name {}.", names.join(" or "))).into());
    }
    let Some((record, resource)) = within.first().copied() else {
        let known: Vec<String> = records.by_ref().map(|(a, _)| of(a)).collect();
        let error = Diagnostic::error("Not in the state", format!("The state has no backups of the address {address}."));
        return Err(if known.is_empty() { error } else { error.with_hint(format!("There is {}.", known.join(", "))) }.into());
    };
    let attributes = attributes(record, resource, &app.wiring.registry);
    let text = |name: &str| attributes.get(name).and_then(Value::as_str).map(str::to_owned);
    let Some(bucket) = attributes.get("store").and_then(Bucket::of) else {
        let detail = format!("The backups of {address} are not in a bucket but where they are made: on a host, or in a volume.");
        return Err(Diagnostic::error("No bucket to look into", detail)
            .with_hint("Look there: the directory of the host, or the claim. Or let the etcd_backup have a block `s3`.")
            .into());
    };
    Ok((text("name").unwrap_or_default(), bucket))
}
