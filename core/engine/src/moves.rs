//! What `moved` blocks make of a state, before anything else is done with it: the same things under their new addresses. Pure. Also what
//! `count` alone says: a resource that gets it, or loses it, goes on with the instance that it had.

mod places;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Config, Moved, Repetition, Unit};
use karmaform_model::{Action, Address, Diagnostic, Diagnostics, Key, Mode, ModeOfPlan, ResourceEntry, ResourceState, Snapshot};

use crate::forget::{MOST, few};
use crate::graph::Role;
use crate::walk::Pass;
use places::{Names, Places, names};

/// A state as the configuration calls things.
#[derive(Clone, Debug)]
pub struct Relocated<'a> {
    /// The state; the one that was given where nothing moves.
    pub state: Cow<'a, Snapshot>,
    /// Where each instance was, by its address now. What a composite is made of goes with it and is not named.
    pub moved: BTreeMap<Address, Address>,
}

/// Moves what the configuration says has moved. What can't be moved, as something is there already, stays and is warned of.
pub fn relocate<'a>(config: &Config, state: &'a Snapshot) -> (Relocated<'a>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let all = state.resources.keys().chain(state.deposed.keys().map(|(address, _)| address));
    let mut places = Places::of(all.filter(|a| a.mode == Mode::Managed).map(Address::whole));
    let mut blocked = Vec::new();
    for moved in &config.moved {
        for (unit, going) in places.units(moved) {
            if places.is_taken(&unit, moved.is_whole(), &going) {
                blocked.push(unit);
                continue;
            }
            let going = going.into_iter().map(|address| {
                let to = unit.renamed(&address);
                (address, to)
            });
            places.move_all(going);
        }
    }
    imply(config, &mut places);
    diagnostics.extend(unresolved(&blocked));
    let moved = places.into_moved();
    let state = if moved.is_empty() { Cow::Borrowed(state) } else { Cow::Owned(relocated(state, &moved)) };
    (Relocated { state, moved }, diagnostics)
}

/// A resource without `count` is its first instance with it, unless a block says something else.
fn imply(config: &Config, places: &mut Places) {
    let first = Some(Key::Index(0));
    let mut said: BTreeMap<Names, Vec<&Moved>> = BTreeMap::new();
    for moved in &config.moved {
        for end in [&moved.from, &moved.to] {
            said.entry(names(&moved.module, end)).or_default().push(moved);
        }
    }
    let found: Vec<(Address, Address)> = places
        .addresses()
        .filter_map(|address| {
            let block = config.block(address)?;
            let key = match (&block.repetition, &address.key) {
                (Repetition::Count(_), None) => first.clone(),
                (Repetition::Single, key) if *key == first => None,
                _ => return None,
            };
            let to = address.with_key(key);
            let is_said = said.get(&names(&[], &block.address)).is_some_and(|all| all.iter().any(|m| m.mentions(&block.address)));
            (!is_said && !places.has(&to)).then(|| (address.clone(), to))
        })
        .collect();
    for found in found {
        places.move_all([found]);
    }
}

fn unresolved(blocked: &[Unit]) -> Option<Diagnostic> {
    let named: Vec<_> = blocked.iter().take(MOST).map(|u| format!("{} could not move to {}", u.from, u.to)).collect();
    let more = blocked.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more could not move") } else { String::new() };
    (!named.is_empty()).then(|| {
        let detail = format!(
            "Moved blocks ask for what can't be done, since something is there already: {}{more}. What was not moved is not configured \
             where it is, so it is planned to be destroyed.",
            named.join(", ")
        );
        Diagnostic::warning("Unresolved resource instance address changes", detail)
            .with_hint("If that is not what you want, move one of the two out of the way with state mv, and plan again.")
    })
}

/// The state with everything at its new address; `moved` as [`Relocated::moved`].
pub fn relocated(state: &Snapshot, moved: &BTreeMap<Address, Address>) -> Snapshot {
    let forward: BTreeMap<&Address, &Address> = moved.iter().map(|(now, was)| (was, now)).collect();
    let all = state.resources.keys().chain(state.deposed.keys().map(|(address, _)| address)).filter(|a| !a.is_child());
    let there: BTreeSet<&Address> = all.collect();
    let renamed = |address: &Address| match forward.get(&address.whole()) {
        Some(now) => now.with_child(&address.child),
        None => address.clone(),
    };
    let mut blocks: BTreeMap<Address, Vec<Address>> = BTreeMap::new();
    let mut resource = |resource: &ResourceState| {
        let mut dependencies = BTreeSet::new();
        for needed in &resource.dependencies {
            if needed.is_child() || there.contains(needed) {
                dependencies.insert(renamed(needed));
            } else {
                let now = blocks.entry(needed.clone()).or_insert_with(|| several(needed, &there, &forward));
                dependencies.extend(now.iter().cloned());
            }
        }
        ResourceState { dependencies: dependencies.into_iter().collect(), ..resource.clone() }
    };
    let resources = state.resources.iter().map(|(a, r)| (renamed(a), resource(r))).collect();
    let deposed = state.deposed.iter().map(|((a, key), r)| ((renamed(a), key.clone()), resource(r))).collect();
    Snapshot { resources, deposed, ..state.clone() }
}

/// What a dependency on several instances becomes: on what it was if some of them stay, and on the places of those that went.
fn several(needed: &Address, there: &BTreeSet<&Address>, forward: &BTreeMap<&Address, &Address>) -> Vec<Address> {
    let gone: BTreeSet<&Address> = forward.iter().filter(|(was, _)| was.is_within(needed)).map(|(_, now)| *now).collect();
    if gone.is_empty() {
        return vec![needed.clone()];
    }
    let stays = there.iter().any(|a| a.is_within(needed) && !forward.contains_key(*a));
    let mut all: Vec<Address> = if stays { vec![needed.clone()] } else { Vec::new() };
    let blocks: BTreeSet<Address> = gone.iter().map(|a| a.block()).collect();
    for block in blocks {
        // One name for all, where it means no others.
        let is_shared = there.iter().any(|a| a.block() == block && !forward.contains_key(*a))
            || forward.values().any(|now| now.block() == block && !gone.contains(now));
        if is_shared {
            all.extend(gone.iter().filter(|a| a.block() == block).map(|a| (*a).clone()));
        } else {
            all.push(block);
        }
    }
    all
}

/// Composites call what they make after their address. Where nothing but a new address would make parts anew, with what they hold, it is refused.
pub(crate) fn guard(pass: &Pass<'_>) -> Diagnostics {
    let graph = pass.graph;
    if pass.options.mode != ModeOfPlan::Normal {
        return Diagnostics::new();
    }
    let mut found = Diagnostics::new();
    for (now, was) in &graph.moved {
        let Some(&number) = graph.instances.get(now).filter(|n| graph.nodes[**n].role == Role::Composite && graph.nodes[**n].configured)
        else {
            continue;
        };
        let (Some(ResourceEntry::Composite(ty)), visit) = (pass.entries[number], &pass.visits[number]) else { continue };
        let (Some(wanted), Some(new)) = (&visit.wanted, &visit.expansion) else { continue };
        let old = ty.expand(was, wanted).unwrap_or_default();
        let mut anew: BTreeSet<Address> = BTreeSet::new();
        for child in &new.children {
            let twin = old.children.iter().find(|c| c.path == child.path);
            let address = now.with_child(&child.path);
            let action = graph.instances.get(&address).and_then(|n| pass.visits[*n].decision.as_ref()).map(|d| d.change.action());
            let is_replaced = matches!(action, Some(Action::DestroyThenCreate | Action::CreateThenDestroy));
            if twin.is_none() || is_replaced && twin.is_some_and(|t| t.arguments != child.arguments) {
                anew.insert(address);
            }
        }
        let is_gone = |path: &Vec<_>| !new.children.iter().any(|c| c.path == *path);
        anew.extend(old.children.iter().filter(|c| is_gone(&c.path)).map(|c| now.with_child(&c.path)));
        if !anew.is_empty() {
            found.push(made_anew(pass, now, was, &anew));
        }
    }
    found
}

fn made_anew(pass: &Pass<'_>, now: &Address, was: &Address, anew: &BTreeSet<Address>) -> Diagnostic {
    let config = pass.inputs.config;
    let said = config.moved.iter().find(|m| m.unit(was).is_some()).map(|m| m.span);
    let detail = format!(
        "A \"{}\" calls what it makes after its address. As {now} it would destroy parts of what it made as {was} and make them anew under \
         other names, with all that they hold: {}.",
        now.kind,
        few(anew)
    );
    let error =
        Diagnostic::error("Move would make things anew", detail).at(now).with_span(said.or_else(|| config.block(now).map(|b| b.span)));
    let has_name = pass.inputs.registry.composite(&now.kind).is_some_and(|ty| ty.schema().attribute("name").is_some());
    let error = if has_name { error.with_hint("Write the name that it has had into its argument \"name\".") } else { error };
    let what = if said.is_some() { "delete the moved block" } else { "leave \"count\" as it was" };
    error.with_hint(format!("Or keep its address: {what}, and call it {was} again."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dependencies of `t.user`, before and after.
    fn check(instances: &[&str], moved: &[(&str, &str)], needs: &str, expected: &str) {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let resource = |needs: &str| ResourceState {
            resource_type: "t".into(),
            provider: "p".into(),
            schema_version: 0,
            attributes: [].into_iter().collect(),
            secret_paths: Vec::new(),
            dependencies: needs.split_whitespace().map(address).collect(),
            create_before_destroy: false,
            protected: false,
            status: karmaform_model::Status::Ready,
        };
        let mut state = Snapshot::default();
        state.resources.extend(instances.iter().map(|a| (address(a), resource(""))));
        state.resources.insert(address("t.user"), resource(needs));
        let moved = moved.iter().map(|(was, now)| (address(now), address(was))).collect();
        let after = relocated(&state, &moved);
        let found: Vec<String> = after.resources[&address("t.user")].dependencies.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected, "{instances:?} {moved:?} {needs}");
        assert_eq!(after.resources.len(), state.resources.len());
    }

    #[test]
    fn what_is_needed_is_needed_under_its_new_address() {
        check(&["t.a"], &[("t.a", "t.b")], "t.a", "t.b");
        check(&["t.a", "t.a/part"], &[("t.a", "module.m.t.a")], "t.a/part", "module.m.t.a/part");
        // All of a block, some of it, and one beside others.
        check(&["t.a[0]", "t.a[1]"], &[("t.a[0]", "t.b[0]"), ("t.a[1]", "t.b[1]")], "t.a", "t.b");
        check(&["t.a[0]", "t.a[1]"], &[("t.a[0]", "t.b[0]")], "t.a", "t.a t.b");
        check(&["t.a[0]", "t.b[1]"], &[("t.a[0]", "t.b[0]")], "t.a", "t.b[0]");
        check(&["t.a[0]", "t.a[1]"], &[("t.a[0]", "t.b")], "t.a[1]", "t.a[1]");
        check(&["module.m[0].t.a", "module.m[1].t.a"], &[("module.m[0].t.a", "t.a")], "module.m.t.a", "t.a module.m.t.a");
    }
}
