//! A small stand-in for the engine: expands a cluster, compares it with a world, asks for the order, and does the steps in any order that
//! is allowed, up to any step.

mod expanded;
pub(crate) mod met;
mod outside;
pub(crate) mod run;
mod schemas;
mod way;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use karmaform_etcd::EtcdCluster;
use karmaform_model::{
    Action, Address, Change, ChildChange, ChildStep, Choreography, Composite, Diagnostics, Object, PlanContext, ResourceEntry, Scene, Type,
    Value, default_plan,
};

use crate::model::shared::Shared;
use expanded::Expanded;
pub(crate) use outside::Outside;
pub(crate) use run::{Policy, Stop};
use schemas::{REGISTRY, schema};

/// What says which backup in a bucket was chosen.
const CHOICE: &str = "etcd_backup_choice";

/// A child's path.
pub(crate) type Path = Vec<ChildStep>;

/// What is remembered between runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// The composite's record.
    pub(crate) before: Option<Object>,
    /// The children's.
    pub(crate) children: Shared<BTreeMap<Path, (String, Object)>>,
    /// Whom each child needed when it was made: what is deleted goes the other way.
    pub(crate) needs: Shared<BTreeMap<Path, Rc<Vec<Path>>>>,
}

/// A cluster under test: its world and its state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stage<W> {
    /// The world.
    pub(crate) world: W,
    /// The state.
    pub(crate) state: State,
}

/// A finished plan.
pub(crate) struct Plan {
    /// Arguments, if the cluster is wanted.
    pub(crate) wanted: Option<Object>,
    /// What it expands into.
    pub(crate) expansion: Rc<Expanded>,
    /// Changes by path, with the resource type.
    pub(crate) changes: BTreeMap<Path, (String, Change)>,
    /// The order.
    pub(crate) choreography: Choreography,
    /// What is left for the plans after it.
    pub(crate) rest: Option<String>,
    graph: run::Graph,
}

impl Plan {
    /// True if there is something to do.
    pub(crate) fn has_changes(&self) -> bool {
        self.changes.values().any(|(_, c)| !c.is_no_op())
    }
}

/// The composite's address in all tests.
pub(crate) fn address() -> Address {
    Address::managed("etcd_cluster", "main")
}

/// The arguments of a cluster of the first so many of `a` to `g`.
pub(crate) fn arguments(members: usize) -> Object {
    let hosts = ('a'..='g').take(members).enumerate().map(|(i, name)| {
        let ip = format!("10.0.0.{}", i + 11);
        let connection = Value::object([("provider", "ssh".into()), ("id", format!("{ip}:22").into()), ("address", ip.as_str().into())]);
        (name.to_string(), Value::object([("address", ip.as_str().into()), ("connection", connection), ("clock_offset", 0i64.into())]))
    });
    Object::from([
        ("version".to_owned(), "3.5.16".into()),
        ("hosts".to_owned(), hosts.collect::<Object>().into()),
        ("source".to_owned(), "etcd-v3.5.16-linux-amd64.tar.gz".into()),
    ])
}

/// The same with a setting.
pub(crate) fn with_setting(mut arguments: Object, name: &str, value: &str) -> Object {
    arguments.insert("settings".to_owned(), Value::map(Type::String, [(name.to_owned(), value.into())].into()));
    arguments
}

impl<W: Outside> Stage<W> {
    /// What is there now, over what the state remembers.
    fn observe(&self, resource_type: &str, wanted: Option<&Object>, known: Option<&Object>) -> Option<Object> {
        let source = known.or(wanted)?;
        if self.is_unseen(resource_type, source) {
            return None;
        }
        if resource_type == "etcd_member" {
            return self.world.look_at_member(source.get("name").and_then(Value::as_str)?, known.is_some());
        }
        if resource_type == CHOICE {
            return Some(known.cloned().unwrap_or_else(|| in_the_bucket(source)));
        }
        if !W::is_outside(resource_type) {
            return None;
        }
        // What is moved is also looked for where it is to be.
        let ahead = || wanted.filter(|_| resource_type == "ssh_directory").and_then(|wanted| self.world.observe(resource_type, wanted));
        let brought = || known.filter(|_| resource_type == "ssh_directory").and_then(|known| self.world.brought(known));
        self.world.observe(resource_type, source).or_else(brought).or_else(ahead)
    }

    fn is_unseen(&self, resource_type: &str, source: &Object) -> bool {
        W::is_outside(resource_type) && self.world.is_away(source)
    }

    /// Plans to make the world like these arguments, or to destroy it.
    pub(crate) fn plan(&self, wanted: Option<&Object>) -> Result<Plan, Diagnostics> {
        self.plan_without(wanted, "nothing")
    }

    /// The same where those with this in their address are not among the targets.
    pub(crate) fn plan_without(&self, wanted: Option<&Object>, left_out: &str) -> Result<Plan, Diagnostics> {
        self.plan_of(wanted, &|address: &str| !address.contains(left_out))
    }

    /// The same where only those of which this is true by their address are among the targets.
    pub(crate) fn plan_of(&self, wanted: Option<&Object>, is_among: &dyn Fn(&str) -> bool) -> Result<Plan, Diagnostics> {
        let stage = self.state.before.as_ref().zip(wanted).and_then(|(before, wanted)| EtcdCluster.first_leg(before, wanted));
        let wanted = stage.as_ref().map(|stage| &stage.wanted).or(wanted);
        let expansion = match wanted {
            Some(arguments) => expanded(arguments)?,
            None => Rc::default(),
        };
        let mut changes: BTreeMap<Path, (String, Change)> = BTreeMap::new();
        let mut observed: BTreeMap<Path, Option<Object>> = BTreeMap::new();
        for child in &expansion.children {
            let known = self.state.children.get(&child.path).map(|(_, o)| o);
            let lookup = |path: &[ChildStep], attribute: &str| {
                let change = changes.get(path).map(|(_, c)| c);
                change.and_then(|c| c.after()?.get(attribute).cloned()).unwrap_or_else(|| Value::unknown(Type::Any))
            };
            let mut arguments = expansion.arguments(child, &lookup);
            let seen = self.observe(&child.resource_type, Some(&arguments), known);
            // Who does not answer is taken to be what the state remembers.
            let remembered = known.filter(|known| self.is_unseen(&child.resource_type, known));
            let change = difference::<W>(&child.resource_type, known, seen.as_ref().or(remembered), &mut arguments);
            observed.insert(child.path.clone(), seen);
            changes.insert(child.path.clone(), (child.resource_type.clone(), change));
        }
        for (path, (resource_type, known)) in self.state.children.iter() {
            if !changes.contains_key(path) {
                observed.insert(path.clone(), self.observe(resource_type, None, Some(known)));
                changes.insert(path.clone(), (resource_type.clone(), Change::Delete { before: known.clone() }));
            }
        }
        let scene = Scene {
            address: &address(),
            before: self.state.before.as_ref(),
            wanted,
            children: changes
                .iter()
                .filter(|(path, _)| is_among(&address().with_child(path).to_string()))
                .map(|(path, (resource_type, change))| {
                    let in_state = self.state.children.contains_key(path);
                    (
                        path.clone(),
                        ChildChange {
                            resource_type,
                            change,
                            observed: observed.get(path).and_then(Option::as_ref),
                            in_state,
                            unseen: change.before().or(change.after()).is_some_and(|o| self.is_unseen(resource_type, o)),
                        },
                    )
                })
                .collect(),
        };
        let choreography =
            if changes.values().any(|(_, c)| !c.is_no_op()) { EtcdCluster.choreograph(&scene)? } else { Choreography::default() };
        for told in &choreography.told {
            let (_, change) = changes.get_mut(&told.child).unwrap_or_else(|| panic!("{:?} is told something, and is no child", told.child));
            if let Some(after) = change.after_mut() {
                after.insert(told.attribute.to_owned(), told.value.clone());
            }
        }
        let mut plan = Plan {
            wanted: wanted.cloned(),
            expansion,
            changes,
            choreography,
            graph: run::Graph::default(),
            rest: stage.as_ref().map(|stage| stage.rest.clone()),
        };
        plan.graph = run::graph(&plan, &self.state);
        Ok(plan)
    }
}

fn difference<W: Outside>(resource_type: &str, known: Option<&Object>, seen: Option<&Object>, arguments: &mut Object) -> Change {
    let is_outside = W::is_outside(resource_type) || resource_type == "etcd_member";
    let before = match (known, seen) {
        (known, Some(seen)) => {
            let mut object = known.cloned().unwrap_or_default();
            seen.iter().for_each(|(name, value)| object.put(name, value.clone()));
            Some(object)
        }
        (Some(known), None) if !is_outside => Some(known.clone()),
        _ => None,
    };
    let mut change = match REGISTRY.resource(resource_type) {
        Some(ResourceEntry::Type(_, spec)) => {
            spec.plan(&PlanContext { now: 0 }, before.as_ref(), Some(arguments)).expect("a member can be planned")
        }
        _ if resource_type == "ssh_directory" => directory(before.as_ref(), arguments),
        _ => default_plan(schema(resource_type), before.as_ref(), Some(arguments)),
    };
    W::foretell(resource_type, &mut change);
    // What was only seen comes into the state, says the engine.
    if let (Change::NoOp { object }, CHOICE, None) = (&change, resource_type, known) {
        change = Change::Update { before: object.clone(), after: object.clone() };
    }
    // A pod that said that it will never start is made anew, says the provider.
    let text = |name: &str| before.as_ref()?.get(name)?.as_str();
    let never_starts = text("renew_on").zip(text("termination_message")).is_some_and(|(what, words)| words.contains(what));
    if let (Change::NoOp { object }, Some(before), true) = (&change, &before, never_starts) {
        change = Change::Update { before: before.clone(), after: object.clone() };
    }
    // New contents of a certificate or an archive are known only when they were made.
    if let Change::Update { before, after } = &mut change {
        // When to renew is no part of a certificate.
        let differs = |name: &&String| !matches!(name.as_str(), "renew_before_hours") && before.get(name) != after.get(name);
        let is_reissued = after.keys().any(|name| differs(&name));
        let computed: &[&str] = match resource_type {
            "tls_certificate" if is_reissued => &["certificate", "private_key"],
            "tls_ca" if is_reissued => &["certificate"],
            "ssh_artifact" if before.get("source") != after.get("source") => &["content_sha256"],
            _ => &[],
        };
        for name in computed {
            after.insert((*name).to_owned(), Value::unknown(Type::String));
        }
    }
    change
}

/// The one backup that there is in any bucket, for who asks for this.
fn in_the_bucket(asked: &Object) -> Object {
    let mut chosen = asked.clone();
    let facts = [
        ("place", "s3://fleet-backups/prod/etcd/main-20261125T030000Z.db.age".into()),
        ("created", "2026-11-25T03:00:00Z".into()),
        ("size", 20_512_i64.into()),
        ("sha256", "cd".repeat(32).into()),
        ("revision", 4_711_i64.into()),
        ("etcd_version", "3.5.16".into()),
        ("encrypted", true.into()),
    ];
    chosen.extend(facts.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
    chosen
}

/// One that moves changes in place, as its provider says.
fn directory(before: Option<&Object>, wanted: &Object) -> Change {
    let moves = wanted.get("moves").and_then(Value::as_bool) == Some(true);
    let Some(before) = before.filter(|_| moves) else { return default_plan(schema("ssh_directory"), before, Some(wanted)) };
    let mut there = before.clone();
    there.insert("path".to_owned(), wanted["path"].clone());
    let is_open = before.get("moving").and_then(Value::as_bool) == Some(true) || before.get("path") != wanted.get("path");
    match default_plan(schema("ssh_directory"), Some(&there), Some(wanted)) {
        Change::NoOp { object: after } if is_open => Change::Update { before: before.clone(), after },
        Change::Update { after, .. } => Change::Update { before: before.clone(), after },
        change => change,
    }
}

thread_local! {
    /// The last expansions: thousands of plans are of the same few arguments.
    static EXPANDED: RefCell<Vec<(Object, Rc<Expanded>)>> = const { RefCell::new(Vec::new()) };
}

/// The expansion of these arguments.
fn expanded(arguments: &Object) -> Result<Rc<Expanded>, Diagnostics> {
    let known = EXPANDED.with_borrow(|all| all.iter().find(|(object, _)| object == arguments).map(|(_, e)| Rc::clone(e)));
    if let Some(known) = known {
        return Ok(known);
    }
    let expansion = Rc::new(Expanded::from(EtcdCluster.expand(&address(), arguments)?));
    EXPANDED.with_borrow_mut(|all| {
        all.truncate(3);
        all.insert(0, (arguments.clone(), Rc::clone(&expansion)));
    });
    Ok(expansion)
}

/// True if a change of this kind removes.
fn removes(change: &Change) -> bool {
    change.action() == Action::Delete
}
