//! `state mv`: what is in the state gets another address; what it describes stays as it is. The rules are Terraform's (`terraform state mv`
//! 1.11); in addition, a composite takes its children along, and a child can be moved to where one of the same path can be.

use std::collections::BTreeSet;

use karmaform_lang::quoted;
use karmaform_model::{Address, Diagnostic, Key, ResourceState, Snapshot};

use super::not_there;
use crate::app::{App, Ended, Stop};
use crate::flags::{LockFlags, PlaceFlags, boolean};
use crate::planning::addresses;
use crate::reading::current_backend;
use crate::session::Session;

/// Arguments of `state mv`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A resource with its instances, one instance, a composite with all that is below it, or a module with all that is in it
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Its new address; nothing may be there
    #[arg(value_name = "DESTINATION")]
    destination: String,
    /// Only say what would be moved
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    dry_run: bool,
    #[command(flatten)]
    lock: LockFlags,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let from = addresses("SOURCE", std::slice::from_ref(&args.source))?.remove(0);
    let to = addresses("DESTINATION", std::slice::from_ref(&args.destination))?.remove(0);
    let open = current_backend(app, &args.state)?;
    let mut session = Session::exclusive(app, open, "state-mv", &args.lock)?;
    let done = move_in(app, &mut session, &from, &to, args.dry_run);
    session.close(app);
    done?;
    Ok(0)
}

fn move_in(app: &mut App, session: &mut Session, from: &Address, to: &Address, dry_run: bool) -> Result<(), Stop> {
    let next = moved(&session.snapshot, from, to)?;
    if dry_run {
        app.output.print(&format!("Would move \"{from}\" to \"{to}\"\n"));
        return Ok(());
    }
    session.replace(app, next)?;
    app.output.print(&format!("Move {} to {}\nSuccessfully moved 1 object(s).\n", quoted(&from.to_string()), quoted(&to.to_string())));
    if app.wiring.registry.composite(&from.kind).is_some() {
        app.say(
            "What a composite is made of may be called after it: units, directories, objects. Change the configuration and run plan before \
             anything else. If it would make things anew, write the old name as \"name\", or move it back.\n",
        );
    }
    Ok(())
}

/// The state with everything at `from` at `to`.
fn moved(snapshot: &Snapshot, from: &Address, to: &Address) -> Result<Snapshot, Diagnostic> {
    let all: BTreeSet<&Address> = snapshot.resources.keys().chain(snapshot.deposed.keys().map(|(a, _)| a)).collect();
    let depth = from.child.len();
    // A key of a module that is left out is none: resources are moved in one instance of a module at a time.
    let sources: Vec<_> = all.iter().filter(|a| a.is_within(from) && (from.is_module() || a.module == from.module)).collect();
    if sources.is_empty() {
        return Err(not_there(from, snapshot));
    }
    if from.is_module() != to.is_module() {
        let detail = format!("{from} can't become {to}: one is a whole module, and the other is not.");
        return Err(Diagnostic::error("Invalid state move request", detail)
            .with_hint("Move a module to the address of a module, and a resource to the address of a resource."));
    }
    if from.is_module() {
        return module_moved(snapshot, from, to);
    }
    let steps = |a: &Address| a.child.iter().map(|s| s.name.clone()).collect::<Vec<_>>();
    if (from.mode, &from.kind, steps(from)) != (to.mode, &to.kind, steps(to)) {
        let detail = format!("{from} can't become {to}: they are not of one type.");
        return Err(
            Diagnostic::error("Invalid state move request", detail).with_hint("Only the name and the keys of an address can change.")
        );
    }
    let is_whole = key_at(from, depth).is_none() && sources.iter().any(|a| key_at(a, depth).is_some());
    if is_whole && key_at(to, depth).is_some() {
        let detail = format!("{from} is a whole resource with {} instances, and {to} is the address of one.", instances(&sources, depth));
        return Err(Diagnostic::error("Invalid target address", detail)
            .with_hint("Move one instance, or give the address of a whole resource, without a key."));
    }
    // One instance may get a place beside others; a whole resource takes all of them.
    let is_taken = |a: &&Address| a.is_within(to) && (is_whole || key_at(a, depth) == key_at(to, depth));
    if let Some(there) = all.iter().find(|a| is_taken(a)) {
        let detail = format!("Nothing can be moved to {to}: {there} is in the state already.");
        return Err(Diagnostic::error("Invalid target address", detail).with_hint("Move that away first, or forget it with state rm."));
    }
    let address = |a: &Address| if a.is_within(from) { renamed(a, from, to) } else { a.clone() };
    let stays = |d: &Address| all.iter().any(|a| a.is_within(d) && !a.is_within(from));
    let resource = |r: &ResourceState| {
        let dependencies: BTreeSet<_> = r.dependencies.iter().flat_map(|d| dependency(d, from, to, stays(d))).collect();
        ResourceState { dependencies: dependencies.into_iter().collect(), ..r.clone() }
    };
    Ok(Snapshot {
        resources: snapshot.resources.iter().map(|(a, r)| (address(a), resource(r))).collect(),
        deposed: snapshot.deposed.iter().map(|((a, key), r)| ((address(a), key.clone()), resource(r))).collect(),
        ..snapshot.clone()
    })
}

/// The state with all that is in one module in another. Where neither end has a key, each instance keeps its own.
fn module_moved(snapshot: &Snapshot, from: &Address, to: &Address) -> Result<Snapshot, Diagnostic> {
    let depth = from.module.len();
    let key = |a: &Address, depth: usize| a.module.get(depth - 1).and_then(|s| s.key.clone());
    let moving = || snapshot.resources.keys().chain(snapshot.deposed.keys().map(|(a, _)| a)).filter(|a| a.is_within(from));
    let is_whole = key(from, depth).is_none() && moving().any(|a| key(a, depth).is_some());
    if is_whole && key(to, to.module.len()).is_some() {
        let detail = format!("{from} is a module with several instances, and {to} is the address of one.");
        return Err(Diagnostic::error("Invalid target address", detail)
            .with_hint("Move one instance, or give the address of a whole module, without a key."));
    }
    let renamed = |address: &Address| {
        if !address.is_within(from) {
            return address.clone();
        }
        let mut module = to.module.clone();
        if let Some(last) = module.last_mut().filter(|_| is_whole) {
            last.key = key(address, depth);
        }
        module.extend(address.module.iter().skip(depth).cloned());
        Address { module, ..address.clone() }
    };
    let is_taken = |a: &Address| a.is_within(to) && !a.is_within(from) && (is_whole || key(a, to.module.len()) == key(to, to.module.len()));
    if let Some(there) = snapshot.resources.keys().find(|a| is_taken(a)) {
        let detail = format!("Nothing can be moved to {to}: {there} is in the state already.");
        return Err(Diagnostic::error("Invalid target address", detail).with_hint("Move that away first, or forget it with state rm."));
    }
    let resource = |r: &ResourceState| {
        let dependencies: BTreeSet<_> = r.dependencies.iter().map(renamed).collect();
        ResourceState { dependencies: dependencies.into_iter().collect(), ..r.clone() }
    };
    Ok(Snapshot {
        resources: snapshot.resources.iter().map(|(a, r)| (renamed(a), resource(r))).collect(),
        deposed: snapshot.deposed.iter().map(|((a, d), r)| ((renamed(a), d.clone()), resource(r))).collect(),
        ..snapshot.clone()
    })
}

/// The key in the part of an address that a move changes: of the resource, or of a step below a composite.
fn key_at(address: &Address, depth: usize) -> Option<&Key> {
    if depth == 0 { address.key.as_ref() } else { address.child.get(depth - 1).and_then(|s| s.key.as_ref()) }
}

fn instances(sources: &[&&Address], depth: usize) -> usize {
    sources.iter().map(|a| key_at(a, depth)).collect::<BTreeSet<_>>().len()
}

/// The address that something at or below `from` gets. Where neither end names an instance, each keeps its key.
fn renamed(address: &Address, from: &Address, to: &Address) -> Address {
    let depth = from.child.len();
    let mut new = to.clone();
    if key_at(from, depth).is_none() && key_at(to, depth).is_none() {
        let key = key_at(address, depth).cloned();
        match new.child.last_mut() {
            Some(step) => step.key = key,
            None => new.key = key,
        }
    }
    new.child.extend(address.child.iter().skip(depth).cloned());
    new
}

/// What a dependency becomes. One on a whole resource, of which an instance moves away, is one on both if others stay.
fn dependency(on: &Address, from: &Address, to: &Address, others_stay: bool) -> Vec<Address> {
    if on.is_within(from) {
        return vec![renamed(on, from, to)];
    }
    if !from.is_within(on) || to.is_within(on) {
        return vec![on.clone()];
    }
    if others_stay { vec![on.clone(), to.clone()] } else { vec![to.clone()] }
}

#[cfg(test)]
#[path = "mv_tests.rs"]
mod tests;
