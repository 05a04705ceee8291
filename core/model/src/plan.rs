//! The plan: a finished, immutable, serialisable value. Apply makes no choices.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    Action, Address, Change, Checked, Deferred, Diagnostics, GateSpec, Object, OutputState, Path, Risk, Value, same, same_and_alike,
    to_json,
};

/// What kind of plan was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeOfPlan {
    /// Make the world like the configuration.
    #[default]
    Normal,
    /// `-destroy`
    Destroy,
    /// `-refresh-only`: take what is seen into the state, change nothing.
    RefreshOnly,
}

/// Why a change is as it is, where the two sides don't say it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// `-replace`
    ReplaceByRequest,
    /// `replace_triggered_by`
    ReplaceByTriggers(Address),
    /// An attribute can't change in place.
    ReplaceBecauseCannotUpdate(Vec<Path>),
    /// It was marked as damaged.
    ReplaceBecauseTainted,
    /// The block is gone.
    DeleteBecauseNoResourceConfig,
    /// The module that it was in is gone, or this instance of it.
    DeleteBecauseNoModule(Address),
    /// `count` is lower now.
    DeleteBecauseCountIndex,
    /// The key left `for_each`.
    DeleteBecauseEachKey,
    /// It was moved from this address, and nothing is configured where it is now.
    DeleteBecauseNoMoveTarget(Address),
    /// The block has other repetition now.
    DeleteBecauseWrongRepetition,
    /// Its composite does not expand into it any more.
    DeleteBecauseNotInComposite,
    /// It existed in the state and is not there any more.
    CreateBecauseMissing,
    /// An earlier run started to make or change it and did not finish.
    FinishEarlierRun,
    /// The data source's arguments are not known yet.
    ReadBecauseConfigUnknown,
    /// The data source depends on something that changes.
    ReadBecauseDependencyPending,
    /// The data source is a check's own, and read again at the end of the apply.
    ReadBecauseCheckNested,
}

/// One resource instance of the plan, changed or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedResource {
    /// Its address.
    pub address: Address,
    /// Its resource type (of a child, not the composite's).
    pub resource_type: String,
    /// The key of a deposed object, if this is about one that an earlier replacement left over, and not about the instance itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// Its provider; the composite's own record has none.
    pub provider: Option<String>,
    /// What happens.
    pub change: Change,
    /// Facts of the moment that were seen when it was planned, for whoever does it: the change itself has none, as the state keeps none.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub facts: Object,
    /// It is taken over: by this id an `import` block names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<String>,
    /// Why.
    pub reason: Option<Reason>,
    /// What that does to running things, in words.
    pub impact: Vec<String>,
    /// What it depends on directly, for the state.
    pub dependencies: Vec<Address>,
    /// `create_before_destroy` is in effect.
    pub create_before_destroy: bool,
    /// `prevent_destroy` is in effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Paths whose secrecy comes from the configuration.
    pub secret_paths: Vec<Path>,
    /// Those of them that the state does not have: what is there is hidden from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newly_secret: Vec<Path>,
}

fn is_nothing(facts: &Object) -> bool {
    facts.is_empty()
}

/// What one step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum StepKind {
    /// The change of `resources[resource]`, or half of a replacement.
    Change {
        /// Index into [`Plan::resources`].
        resource: usize,
        /// Read, Create, Update, Delete or Forget: what this step does.
        part: Action,
    },
    /// Wait for a gate.
    Gate {
        /// The composite it belongs to.
        composite: Address,
        /// The gate.
        gate: Box<GateSpec>,
    },
    /// Write the composite's own record: its arguments and outputs.
    Finish {
        /// Index into [`Plan::resources`].
        resource: usize,
    },
    /// Nothing; many steps meet here, so that n-to-n orderings cost n.
    Join,
}

/// One step. Its id is its index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What it does.
    #[serde(flatten)]
    pub kind: StepKind,
    /// Steps that must have ended well before; always lower ids.
    pub after: Vec<usize>,
}

/// A planned change of a root output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputChange {
    /// What it was; `None`: it was not.
    pub before: Option<Value>,
    /// What it will be; `None`: it goes away.
    pub after: Option<Value>,
    /// Marked `sensitive`.
    pub sensitive: bool,
}

impl OutputChange {
    /// True if it changes its type alone, so that no text has anything to tell of it.
    pub fn is_of_type_alone(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return false };
        before.is_wholly_known()
            && after.is_wholly_known()
            && before.secret == after.secret
            && to_json(before) == to_json(after)
            && !same_and_alike(before, after)
    }
}

/// A resource that someone changed outside; in a refresh-only plan also one that has another address now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftedResource {
    /// Its address.
    pub address: Address,
    /// Its resource type.
    pub resource_type: String,
    /// As the state remembers it.
    pub before: Object,
    /// As it is; `None`: gone.
    pub after: Option<Object>,
}

impl DriftedResource {
    /// What became of it; nothing, where it only has another address.
    pub fn action(&self) -> Action {
        match &self.after {
            None => Action::Delete,
            Some(after) if *after == self.before => Action::NoOp,
            Some(_) => Action::Update,
        }
    }

    /// True if it has another address now, and is what it was.
    pub fn is_move_alone(&self) -> bool {
        self.action() == Action::NoOp
    }
}

/// The value of a root variable; secret and ephemeral ones are left out of saved plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariableValue {
    /// The value; `None` in a saved plan if it is secret or ephemeral.
    pub value: Option<Value>,
    /// Marked `sensitive`.
    pub sensitive: bool,
    /// Marked `ephemeral`: of one run alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    /// Somebody gave it, so that it is not its default. An ephemeral one must be given again to apply the plan if it was given, and must
    /// not be if it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
}

/// What a policy says of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// A plan that breaks it is not applied.
    pub is_mandatory: bool,
    /// Why it is broken; `None`: it holds.
    pub broken: Option<String>,
    /// Why it is applied all the same, by who said so.
    pub overridden: Option<String>,
}

/// A finished plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this format.
    pub format: u32,
    /// Version of the tool that made it.
    pub tool_version: String,
    /// When, in seconds since 1970.
    pub created: i64,
    /// What was asked for.
    pub mode: ModeOfPlan,
    /// The world was looked at; otherwise the state was trusted.
    #[serde(default)]
    pub refreshed: bool,
    /// Errors were met: it holds what could be planned all the same, to be shown and never to be applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errored: bool,
    /// The state it was made from: lineage (if there was one) and serial.
    pub lineage: Option<String>,
    /// See `lineage`.
    pub serial: u64,
    /// Every resource looked at, ordered by address.
    pub resources: Vec<PlannedResource>,
    /// What apply does.
    pub steps: Vec<Step>,
    /// Root outputs that change.
    pub outputs: BTreeMap<String, OutputChange>,
    /// Root outputs that stay as they are, and new ones that are null: such are not stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_outputs: BTreeMap<String, OutputState>,
    /// What changed outside.
    pub drift: Vec<DriftedResource>,
    /// Of a plan that only refreshes: applying it notes what things need by now, or in which order they are replaced, and no other value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub renews: bool,
    /// Impact of each composite, in words.
    pub impact: BTreeMap<Address, Vec<String>>,
    /// What of that is to be counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub risks: BTreeMap<Address, Risk>,
    /// Children of composites whose place does not answer: their steps may have to come before those of others, and do not hold these up.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub away: BTreeSet<Address>,
    /// What policies say of it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judgements: BTreeMap<String, Judgement>,
    /// What conditions say, those of `check` blocks among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Checked>,
    /// Where instances of the state were, by their address now; applying takes that into the state. What a composite is made of goes with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub moved: BTreeMap<Address, Address>,
    /// What is left to a later plan, since it can't be told yet. Ordered by address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<Deferred>,
    /// `-target` addresses in effect.
    pub targets: Vec<Address>,
    /// `-exclude` addresses in effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<Address>,
    /// Root variables.
    pub variables: BTreeMap<String, VariableValue>,
    /// Warnings met while planning.
    pub warnings: Diagnostics,
}

impl PlannedResource {
    /// True if it is taken over just as it is.
    pub fn is_import_alone(&self) -> bool {
        match &self.change {
            Change::Update { before, after } => self.importing.is_some() && after.iter().all(|(name, v)| same(before.get(name), Some(v))),
            _ => false,
        }
    }
}

/// Something of it is not known yet. A secret that was taken out of a plan was.
fn is_to_come(value: &Value) -> bool {
    (value.is_unknown() && value.withheld_number().is_none()) || value.parts().any(is_to_come)
}

impl Plan {
    /// The format this version writes and reads.
    pub const FORMAT: u32 = 1;

    /// True if apply would change nothing, not even an output or an address in the state.
    pub fn is_empty(&self) -> bool {
        !self.has_new_outputs() && self.moved.is_empty() && !self.has_changes()
    }

    /// True if it is about a part of everything, by `-target` or `-exclude`.
    pub fn is_of_a_part(&self) -> bool {
        !self.targets.is_empty() || !self.excludes.is_empty()
    }

    /// True if an output changes. What only looks makes nothing, so that an output of what is not made yet is no news there.
    pub fn has_new_outputs(&self) -> bool {
        let is_news = |change: &OutputChange| self.mode != ModeOfPlan::RefreshOnly || !change.after.as_ref().is_some_and(is_to_come);
        self.outputs.values().any(is_news)
    }

    /// The outputs whose change can be told as text.
    pub fn told_outputs(&self) -> impl Iterator<Item = (&String, &OutputChange)> {
        self.outputs.iter().filter(|(_, change)| !change.is_of_type_alone())
    }

    /// The resources as they are listed: see [`Address::list_order`].
    pub fn listed(&self) -> Vec<&PlannedResource> {
        let mut listed: Vec<_> = self.resources.iter().collect();
        listed.sort_by(|a, b| a.address.list_order().cmp(&b.address.list_order()));
        listed
    }

    /// What changed outside, as it is listed.
    pub fn listed_drift(&self) -> Vec<&DriftedResource> {
        let mut listed: Vec<_> = self.drift.iter().collect();
        listed.sort_by(|a, b| a.address.list_order().cmp(&b.address.list_order()));
        listed
    }

    /// Where a resource was, or what a composite made of it; `None` if it is where it was.
    pub fn previous_address(&self, address: &Address) -> Option<Address> {
        previous_address(&self.moved, address)
    }

    /// True if a resource changes.
    pub fn has_changes(&self) -> bool {
        self.resources.iter().any(|r| r.change.action().acts())
    }

    /// Resources to add, to change and to destroy. A replacement counts as added and destroyed; a composite's own record does not count.
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for resource in self.resources.iter().filter(|r| r.provider.is_some() && !r.is_import_alone()) {
            match resource.change.action() {
                Action::Create => counts.0 += 1,
                Action::Update => counts.1 += 1,
                Action::Delete => counts.2 += 1,
                Action::DestroyThenCreate | Action::CreateThenDestroy => {
                    counts.0 += 1;
                    counts.2 += 1;
                }
                Action::NoOp | Action::Read | Action::Forget => {}
            }
        }
        counts
    }
}

/// Where an instance, or a part of one, was; `moved` has where instances were, by their address now. `None` if it is where it was.
pub fn previous_address(moved: &BTreeMap<Address, Address>, address: &Address) -> Option<Address> {
    let composite = address.composite();
    moved.get(composite.as_ref().unwrap_or(address)).map(|was| was.with_child(&address.child))
}
