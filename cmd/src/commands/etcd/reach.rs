//! From an address to an etcd cluster that can be asked, and waiting for what is done to it. What etcd is, is not known here.

use std::sync::Arc;

use clap::ArgAction;
use karmaform_engine::Pool;
use karmaform_etcd::{Cluster, Tell};
use karmaform_model::{Address, Connection, Diagnostic, Object, ResourceState, Snapshot, Value};

use crate::app::{App, Stop};
use crate::flags::{LockFlags, PlaceFlags, boolean};
use crate::planning::{addresses, halted};
use crate::reading::{current_backend, current_state};
use crate::session::Session;
use crate::ui::json::state::attributes;
use crate::ui::resource::schema_of;

/// The provider whose connections lead to clusters.
const PROVIDER: &str = "etcd";
/// What most people name.
const CLUSTER: &str = "etcd_cluster";

/// Which cluster, and how it is told.
#[derive(clap::Args, Debug)]
pub(super) struct Target {
    /// The cluster: an etcd_cluster, or a resource in one
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(super) json: bool,
    #[command(flatten)]
    state: PlaceFlags,
}

/// What whoever acts is asked.
#[derive(clap::Args, Debug)]
pub(super) struct Acting {
    /// Don't ask
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    auto_approve: bool,
    #[command(flatten)]
    lock: LockFlags,
}

/// A cluster of the state.
pub(super) struct Reached {
    /// The cluster.
    pub(super) cluster: Cluster,
    /// Its address.
    pub(super) address: Address,
    /// The state that it is in.
    pub(super) state: Snapshot,
    /// Connections live as long as this.
    _pool: Arc<Pool>,
}

/// A cluster to look at.
///
/// # Errors
/// The state can't be read, or has no such cluster.
pub(super) fn look(app: &mut App, target: &Target) -> Result<Reached, Stop> {
    let address = address(target)?;
    let state = current_state(app, &target.state)?.unwrap_or_default();
    reach(app, address, state, true)
}

/// Takes the lock, asks, and does it. `question`: what will happen; `name`: what the lock and the cancellation call it.
///
/// # Errors
/// The lock is held, there is no such cluster, nobody agreed, or what was done failed.
pub(super) fn act<T>(
    app: &mut App,
    (target, acting): (&Target, &Acting),
    (name, question): (&str, &str),
    work: impl AsyncFnOnce(&Cluster, Tell<'_>) -> Result<T, Diagnostic>,
) -> Result<T, Stop> {
    if target.json && !acting.auto_approve {
        let why = "Nobody can be asked for approval here: the answer is to be JSON.";
        return Err(Diagnostic::error("Not approved", why).with_hint("Give -auto-approve.").into());
    }
    let address = address(target)?;
    let open = current_backend(app, &target.state)?;
    let mut session = Session::exclusive(app, open, name, &acting.lock)?;
    let done = acted(app, &session, address, (target, acting), (name, question), work);
    session.close(app);
    done
}

fn acted<T>(
    app: &mut App,
    session: &Session,
    address: Address,
    (target, acting): (&Target, &Acting),
    (name, question): (&str, &str),
    work: impl AsyncFnOnce(&Cluster, Tell<'_>) -> Result<T, Diagnostic>,
) -> Result<T, Stop> {
    let reached = reach(app, address, session.snapshot.clone(), false)?;
    if !acting.auto_approve {
        let question = format!("{question}\n  Cluster: {}\n  Only 'yes' will be accepted to confirm.", reached.address);
        app.confirm(&question, name)?;
    }
    let cluster = &reached.cluster;
    Ok(working(app, !target.json, async |tell| work(cluster, tell).await)??)
}

/// Does it, and tells how far it is. The first Ctrl-C ends it between two steps of it; what a server has begun it goes on with.
///
/// # Errors
/// If it was interrupted.
pub(super) fn working<T>(app: &mut App, tells: bool, work: impl AsyncFnOnce(Tell<'_>) -> T) -> Result<T, Stop> {
    let interrupt = app.interrupt.clone();
    let done = telling(app, tells, async |tell| {
        tokio::select! {
            biased;
            done = work(tell) => Some(done),
            () = interrupt.wait() => None,
        }
    });
    done.ok_or_else(|| halted().into())
}

/// Does it to its end, and tells how far it is. An interruption is heard by the work itself.
pub(super) fn telling<T>(app: &mut App, tells: bool, work: impl AsyncFnOnce(Tell<'_>) -> T) -> T {
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
    let mut tell = move |line: &str| drop(sender.send(line.to_owned()));
    let output = &mut app.output;
    let mut print = |line: String| {
        if tells {
            output.print(&format!("  {line}\n"));
        }
    };
    let _asking = app.interrupt.ask_first();
    app.executor.block_on(async {
        let mut work = std::pin::pin!(work(&mut tell));
        let done = loop {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => print(line),
                done = &mut work => break done,
            }
        };
        while let Ok(line) = lines.try_recv() {
            print(line);
        }
        done
    })
}

fn address(target: &Target) -> Result<Address, Stop> {
    Ok(addresses("ADDRESS", std::slice::from_ref(&target.address))?.remove(0))
}

fn reach(app: &App, address: Address, state: Snapshot, only_looks: bool) -> Result<Reached, Stop> {
    let connection = connection(app, &state, &address)?;
    let (catalog, providers) = (Arc::clone(app.wiring.registry.catalog()), std::collections::BTreeMap::new());
    let pool = if only_looks { Pool::only_looking(catalog, providers) } else { Pool::new(catalog, providers) };
    let cluster = Cluster::new(&connection, Arc::clone(&pool) as Arc<dyn karmaform_model::Connections>)?;
    Ok(Reached { cluster, address, state, _pool: pool })
}

/// The connection of the first thing at or below this address that is reached through one.
fn connection(app: &App, state: &Snapshot, address: &Address) -> Result<Object, Diagnostic> {
    let within = || state.resources.iter().filter(|(a, _)| a.is_within(address));
    if let Some(connection) = within().find_map(|(a, r)| through(app, a, r)) {
        return Ok(connection);
    }
    if within().next().is_some() {
        let detail = format!("{address} is no etcd cluster and in none, or it was never finished.");
        return Err(Diagnostic::error("Not an etcd cluster", detail).with_hint(format!("Name an `{CLUSTER}`.")));
    }
    let known: Vec<String> = state.resources.keys().filter(|a| a.kind == CLUSTER && !a.is_child()).map(ToString::to_string).collect();
    let error = Diagnostic::error("Not in the state", format!("The state has no {address}."));
    Err(if known.is_empty() { error } else { error.with_hint(format!("There is {}.", known.join(", "))) })
}

fn through(app: &App, address: &Address, resource: &ResourceState) -> Option<Object> {
    if resource.provider != PROVIDER {
        return None;
    }
    let schema = schema_of(&app.wiring.registry, address.mode, &resource.resource_type)?;
    let Connection::Attribute(name) = schema.connection else { return None };
    attributes(address, resource, &app.wiring.registry).get(name).and_then(Value::as_entries).cloned()
}

/// What data of this cluster are worth little without: authorities and keys of its own and of those that depend on it, by their addresses.
pub(super) fn belongings(state: &Snapshot, address: &Address) -> Vec<String> {
    let own = address.composite().unwrap_or_else(|| address.clone());
    let of = |a: &Address| a.composite().unwrap_or_else(|| a.clone());
    let depends = |r: &ResourceState| r.dependencies.iter().any(|d| d.is_within(&own));
    let users: std::collections::BTreeSet<Address> = state.resources.iter().filter(|(_, r)| depends(r)).map(|(a, _)| of(a)).collect();
    let is_kept = |a: &Address, r: &ResourceState| {
        let is_key = r.provider == "tls" && r.resource_type != "tls_certificate";
        is_key || a.to_string().contains("encryption")
    };
    let those = state.resources.iter().filter(|(a, r)| (a.is_within(&own) || users.contains(&of(a))) && is_kept(a, r));
    those.map(|(a, _)| a.to_string()).collect()
}
