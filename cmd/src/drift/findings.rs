//! From what was seen, and what an apply would do about it, to what is not as it should be. Pure.

mod care;

use std::collections::{BTreeMap, BTreeSet};

use karmaform_engine::Beside;
use karmaform_lang::Config;
use karmaform_model::{
    Action, Address, Attribute, Catalog, Change, Deferred, Diagnostic, DriftedResource, Mode, Object, Path, PlannedResource, Reason,
    Snapshot, Value, same,
};

use super::compare::{compare, text};
use super::decay::{self, Certificate};
use super::{Cut, Difference, Finding, Kind, Looked, Told};
use crate::ui::attributes::marked;
use crate::ui::deferred::{open, reason};
use crate::ui::resource::schema_of;

/// What `stat` calls a user that there is not.
const NOBODY: &str = "\"UNKNOWN\"";

/// What it is found in.
struct Search<'a> {
    catalog: &'a Catalog,
    config: &'a Config,
    looked: &'a Looked,
    planned: BTreeMap<&'a Address, &'a PlannedResource>,
    found: Vec<Finding>,
    /// What is told of, and how first.
    told: BTreeMap<Address, Kind>,
    /// Hosts and names of users that are gone from them.
    gone: BTreeSet<(String, String)>,
}

/// All that is not as it should be. `now` in seconds since 1970.
pub(crate) fn findings(catalog: &Catalog, config: &Config, state: &Snapshot, looked: Looked, now: i64) -> Told {
    let plan = &looked.plan;
    let planned = plan.resources.iter().filter(|r| r.deposed.is_none()).map(|r| (&r.address, r)).collect();
    let mut search =
        Search { catalog, config, looked: &looked, planned, found: Vec::new(), told: BTreeMap::new(), gone: gone(&looked.plan.drift) };
    for address in &looked.doubts.unseen {
        // Nothing ails what was only not asked about any more.
        if looked.unasked.contains(address) {
            search.told.insert(address.clone(), Kind::Unreachable);
            continue;
        }
        let kind = search.type_of(address, state);
        search.add(Kind::Unreachable, address, &kind, "nobody could look at it".to_owned(), Vec::new());
    }
    for drifted in &plan.drift {
        search.drifted(drifted);
    }
    for stray in &looked.strays {
        search.stray(stray, state);
    }
    let certificates = decay::certificates(state);
    search.planned(&certificates, now);
    search.moved();
    search.deferred();
    search.decaying(state, &certificates, now);
    search.neglected(state);
    search.unkept(now);
    search.checked();
    let mut found = search.found;
    found.sort_by(|a, b| (a.kind, &a.address).cmp(&(b.kind, &b.address)));
    let resources = plan.resources.iter().filter(|r| r.address.mode == Mode::Managed && r.deposed.is_none()).count();
    let certificates = certificates.into_iter().map(|(address, c)| (address.clone(), c.end)).collect();
    let graph = plan.resources.iter().filter(|r| r.deposed.is_none()).map(|r| (r.address.clone(), r.dependencies.clone())).collect();
    let hides_pods = |facts: &Object| facts.get("unlisted").and_then(Value::as_bool) == Some(true);
    let without_pods = looked.seen.iter().filter(|(_, facts)| hides_pods(facts)).map(|(address, _)| address.clone()).collect();
    let mut notes = looked.met;
    if let Some(cut) = looked.cut {
        let unasked = looked.unasked.iter().filter(|a| a.mode == Mode::Managed).count();
        notes.push(interrupted(cut, unasked, resources));
    }
    Told {
        findings: found,
        resources,
        graph,
        certificates,
        news: None,
        unsure: looked.doubts.unsure.iter().cloned().collect(),
        is_partial: !plan.targets.is_empty(),
        knows_strays: looked.knows_strays,
        unlisted: looked.unlisted,
        without_pods,
        is_blind: false,
        is_interrupted: looked.cut.is_some(),
        notes,
        now,
    }
}

impl Search<'_> {
    fn add(&mut self, kind: Kind, address: &Address, resource_type: &str, says: String, differences: Vec<Difference>) {
        self.told.entry(address.clone()).or_insert(kind);
        self.find(kind, address, resource_type, says, differences);
    }

    fn find(&mut self, kind: Kind, address: &Address, resource_type: &str, says: String, differences: Vec<Difference>) {
        self.found.push(Finding {
            kind,
            address: address.clone(),
            resource_type: resource_type.to_owned(),
            says,
            differences,
            ignored: None,
            is_new: None,
            span: self.config.block(address).map(|b| b.span).or_else(|| self.config.check(address).map(|c| c.span)),
        });
    }

    fn type_of(&self, address: &Address, state: &Snapshot) -> String {
        let planned = self.planned.get(address).map(|r| r.resource_type.clone());
        let stored = || state.resources.get(address).map(|r| r.resource_type.clone());
        planned.or_else(stored).unwrap_or_else(|| address.kind.clone())
    }

    /// Beside what is ours. It says nothing of that itself, so this does not count as told.
    fn stray(&mut self, stray: &Beside, state: &Snapshot) {
        let owner = stray.address.whole();
        let resource_type = self.type_of(&owner, state);
        let says = format!("{} has its marks, and is in no state", stray.name);
        let difference = Difference { path: stray.name.clone(), is: Some("there".to_owned()), should: None, follows: false };
        self.find(Kind::Extra, &owner, &resource_type, says, vec![difference]);
    }

    /// Changed or deleted outside.
    fn drifted(&mut self, drifted: &DriftedResource) {
        let DriftedResource { address, resource_type, before, after } = drifted;
        let planned = self.planned.get(address).copied();
        let secrets = planned.map(|r| r.secret_paths.as_slice()).unwrap_or_default();
        let Some(after) = after else {
            // What is not wanted any more either is well as it is.
            if planned.is_none_or(|r| !matches!(r.change.action(), Action::Delete | Action::Forget)) {
                self.add(Kind::Missing, address, resource_type, "it was made, and is not there any more".to_owned(), Vec::new());
            }
            return;
        };
        let mut differences = self.differences(address, resource_type, after, before, secrets);
        self.without_nobody(before, &mut differences);
        let is_written = differences.iter().any(|d| !d.follows);
        // What the configuration says by now that it did not say when the thing was made.
        let acting = planned.filter(|r| r.change.action().acts());
        let edits = acting.and_then(|r| r.change.after()).map(|wanted| {
            let mut edits = self.differences(address, resource_type, before, wanted, secrets);
            edits.retain(|d| !d.follows);
            edits
        });
        let is_edited = edits.as_ref().is_some_and(|e| !e.is_empty());
        // What only tells of the thing changes with it, and is nothing to repair by itself.
        if !differences.is_empty() && (is_written || acting.is_some() && !is_edited) {
            // What can't be planned for is not compared with the configuration.
            let is_open = acting.is_some() || planned.is_none();
            let says = match (self.instead(address), is_open) {
                (Some(word), _) => format!("somebody put a {word} into its place"),
                (None, true) => "somebody changed it".to_owned(),
                (None, false) => "somebody changed it, to what the configuration says by now".to_owned(),
            };
            self.add(Kind::Changed, address, resource_type, says, differences);
            if let Some(edits) = edits.filter(|e| !e.is_empty()) {
                self.add(Kind::Unapplied, address, resource_type, "the configuration says something else".to_owned(), edits);
            }
            // Somebody changed what is to go.
            if let Some(resource) = planned.filter(|r| matches!(r.change.action(), Action::Delete | Action::Forget)) {
                let (kind, says) = told_as(resource, false);
                self.add(kind, address, resource_type, says.to_owned(), Vec::new());
            }
        }
    }

    /// What was seen in the place of a thing, if something else was: a fact of the moment, in the words of where it is.
    fn instead(&self, address: &Address) -> Option<&str> {
        self.looked.seen.get(address)?.get("instead")?.as_str()
    }

    /// Whose user is gone belongs to nobody: that is told of the user.
    fn without_nobody(&self, of: &Object, differences: &mut Vec<Difference>) {
        let is_gone =
            |d: &Difference| d.should.as_ref().zip(host(of)).is_some_and(|(name, host)| self.gone.contains(&(host, name.clone())));
        differences.retain(|d| !(matches!(d.path.as_str(), "owner" | "group") && d.is.as_deref() == Some(NOBODY) && is_gone(d)));
    }

    /// True for a part of what a configuration may say.
    fn is_written(&self, address: &Address, resource_type: &str, path: &str) -> bool {
        let name = path.split(['.', '[']).next().unwrap_or_default();
        let schema = schema_of(self.catalog, address.mode, resource_type);
        schema.is_none_or(|s| s.attribute(name).is_none_or(Attribute::is_configurable))
    }

    /// What an apply would do that nobody from outside caused.
    fn planned(&mut self, certificates: &BTreeMap<&Address, Certificate>, now: i64) {
        let looked = self.looked;
        let gone: BTreeSet<&Address> = looked.plan.drift.iter().filter(|d| d.after.is_none()).map(|d| &d.address).collect();
        let causes: BTreeSet<Address> = self.told.keys().cloned().collect();
        // A composite's own record comes after its parts: where one of them tells of an edit, it need not.
        let (parts, records): (Vec<&PlannedResource>, Vec<_>) = looked.plan.resources.iter().partition(|r| r.provider.is_some());
        let mut edited = BTreeSet::new();
        for resource in parts.into_iter().chain(records) {
            let PlannedResource { address, resource_type, change, .. } = resource;
            let action = change.action();
            let is_told = resource.deposed.is_none() && self.told.contains_key(address);
            let is_doubtful = looked.doubts.unseen.contains(address) || looked.doubts.unsure.contains(address);
            if !action.acts() || address.mode == Mode::Data || is_told || is_doubtful {
                continue;
            }
            if matches!(action, Action::Delete | Action::Forget) && gone.contains(address) && resource.deposed.is_none() {
                continue;
            }
            let mut differences = match (change.before(), change.after()) {
                (Some(before), Some(after)) => self.differences(address, resource_type, before, after, &resource.secret_paths),
                _ => Vec::new(),
            };
            let told = differences.len();
            self.without_nobody(change.before().or(change.after()).unwrap_or(&Object::new()), &mut differences);
            if differences.is_empty() && told > 0 {
                continue;
            }
            if let Some(certificate) = certificates.get(address).filter(|_| self.is_renewed(resource)) {
                self.add(Kind::Decay, address, resource_type, certificate.is_due(now), Vec::new());
                continue;
            }
            // Nothing that was written differs, as far as that is known: it follows from something else that changes, or is only waited for, as it
            // is not well. That is told as such.
            let is_made_or_taken = matches!(action, Action::Create | Action::Delete | Action::Forget);
            let is_as_written = !is_made_or_taken && differences.iter().all(|d| d.follows);
            let is_caused = resource.provider.is_none() || resource.dependencies.iter().any(|d| self.is_cause(&causes, d));
            let follows = is_as_written && (is_caused || self.is_only_waited_for(resource));
            if follows || resource.provider.is_none() && edited.contains(address) {
                continue;
            }
            if let Some(made_anew) = self.carried(resource) {
                // Who it comes from tells of it, unless nothing else of that was changed.
                if !made_anew.iter().any(|d| self.told.contains_key(d)) {
                    self.add(Kind::Changed, address, resource_type, "what it is made with was made anew outside".to_owned(), differences);
                }
                continue;
            }
            let (kind, says) = told_as(resource, self.config.open_import(address).is_some());
            edited.extend(address.composite().filter(|_| kind == Kind::Unapplied));
            self.add(kind, address, resource_type, says.to_owned(), differences);
        }
    }

    /// What the state knows by another address than the configuration does, and is told of for nothing else.
    fn moved(&mut self) {
        let looked = self.looked;
        for (now, was) in &looked.plan.moved {
            if let Some(planned) = self.planned.get(now).filter(|r| r.change.is_no_op()) {
                let resource_type = planned.resource_type.clone();
                let says = format!("it has moved: the state knows it as {was}");
                if !self.told.contains_key(now) {
                    self.add(Kind::Unapplied, now, &resource_type, says, Vec::new());
                }
            }
        }
    }

    /// What can't be told before something else is applied. Of what is there nobody knows what it is compared with.
    fn deferred(&mut self) {
        let Looked { plan, doubts, .. } = self.looked;
        let mut blind: BTreeSet<&Address> = doubts.unseen.iter().chain(&doubts.unsure).collect();
        let is_blind = |d: &Deferred, blind: &BTreeSet<&Address>| d.because.iter().any(|a| blind.contains(a));
        // What waits for something that nobody could look at is no better off, and so on.
        let mut known = 0;
        while blind.len() > known {
            known = blind.len();
            let more: Vec<&Address> = plan.deferred.iter().filter(|d| is_blind(d, &blind)).map(|d| &d.address).collect();
            blind.extend(more);
        }
        let open = open(plan);
        for deferred in &plan.deferred {
            let kind = if deferred.is_whole() && blind.contains(&deferred.address) { Kind::Unreachable } else { Kind::Unapplied };
            if kind == Kind::Unreachable && self.looked.cut.is_some() {
                continue;
            }
            let seen = if deferred.stored > 0 && deferred.is_whole() { ", and is not compared with anything" } else { "" };
            let says = format!("{}{seen}", reason(deferred, &open));
            self.add(kind, &deferred.address, &deferred.address.kind, says, Vec::new());
        }
    }

    /// A certificate that is the same but for time is renewed, and not changed.
    fn is_renewed(&self, resource: &PlannedResource) -> bool {
        self.keeps(resource, |a| a.is_configurable() && a.is_stored())
    }

    /// True for an update that nobody asked for and that would change nothing of what is stored, of what is not ready or in need of care: it is waited
    /// for, or cared for.
    fn is_only_waited_for(&self, resource: &PlannedResource) -> bool {
        let is_unwell = self.looked.seen.get(&resource.address).is_some_and(|facts| !decay::troubles(facts).is_empty());
        let is_asked_for = resource.reason.is_some() || resource.importing.is_some() || resource.deposed.is_some();
        resource.change.action() == Action::Update && !is_asked_for && is_unwell && self.keeps(resource, Attribute::is_stored)
    }

    /// True if a change has both sides and these attributes are the same on them.
    fn keeps(&self, resource: &PlannedResource, which: impl Fn(&Attribute) -> bool) -> bool {
        let schema = schema_of(self.catalog, resource.address.mode, &resource.resource_type);
        let (Some(before), Some(after), Some(schema)) = (resource.change.before(), resource.change.after(), schema) else { return false };
        schema.attributes.iter().filter(|a| which(a)).all(|a| same(before.get(a.name), after.get(a.name)))
    }

    /// What it depends on and was seen to be another than the state remembers, if that is all there is to an update: each argument that changes was
    /// there, and is there by now, as a result of one of these. `None` if there is more to it.
    fn carried(&self, resource: &PlannedResource) -> Option<Vec<Address>> {
        let schema = schema_of(self.catalog, resource.address.mode, &resource.resource_type)?;
        let Change::Update { before, after } = &resource.change else { return None };
        let drifted = self.looked.plan.drift.iter().filter(|d| resource.dependencies.contains(&d.address));
        let sources: Vec<(&Address, &Object, &Object)> = drifted.filter_map(|d| Some((&d.address, &d.before, d.after.as_ref()?))).collect();
        let written = schema.attributes.iter().filter(|a| a.is_configurable() && a.is_stored());
        let changes = written.map(|a| (before.get(a.name), after.get(a.name))).filter(|(was, is)| !same(*was, *is));
        let source = |(was, is): (Option<&Value>, Option<&Value>)| {
            let is_whole = was.is_some_and(|v| v.as_str().is_some_and(|t| !t.is_empty()));
            let has = |old: &Object, new: &Object| old.iter().any(|(name, v)| same(Some(v), was) && same(new.get(name), is));
            sources.iter().find(|(_, old, new)| is_whole && has(old, new)).map(|(address, ..)| *address)
        };
        let found: Vec<Address> = changes.map(|change| source(change).cloned()).collect::<Option<_>>()?;
        (!found.is_empty()).then_some(found)
    }

    fn is_cause(&self, causes: &BTreeSet<Address>, address: &Address) -> bool {
        let changes = |a: &Address| self.planned.get(a).is_some_and(|r| r.change.action().acts());
        causes.contains(address)
            || causes.range(address.clone()..).take_while(|a| a.is_within(address)).next().is_some()
            || changes(address)
    }

    fn differences(&self, address: &Address, resource_type: &str, is: &Object, should: &Object, secrets: &[Path]) -> Vec<Difference> {
        let schema = schema_of(self.catalog, address.mode, resource_type);
        let ready = |object: &Object| {
            let mut object = object.clone();
            if let Some(schema) = schema {
                object.retain(|name, _| schema.attribute(name).is_none_or(Attribute::is_stored));
            }
            marked(object, schema, secrets)
        };
        let mut found = Vec::new();
        compare("", Some(&ready(is)), Some(&ready(should)), &mut found);
        for difference in &mut found {
            difference.follows = !self.is_written(address, resource_type, &difference.path);
        }
        found
    }
}

/// That there may be more than is told, as so many resources were not looked at.
fn interrupted(cut: Cut, unasked: usize, resources: usize) -> Diagnostic {
    let what = match cut {
        Cut::Resources if unasked > 0 => {
            format!("Of {resources} resources {unasked} were not looked at by then: nothing is known of them. What was seen is told.")
        }
        Cut::Resources | Cut::Strays => {
            "All resources were looked at by then, but not what may be there beside them, so nothing extra is told.".to_owned()
        }
        Cut::Backups => "All resources were looked at by then, but not whether backups are where they were put.".to_owned(),
    };
    Diagnostic::error("The look was interrupted", what).with_hint("Run drift again, and give it time: what is told may be a part only.")
}

/// The host that something is on.
fn host(object: &Object) -> Option<String> {
    object.get("host")?.get("id")?.as_str().map(str::to_owned)
}

/// Hosts of users that were deleted outside, and their names, as they are shown.
fn gone(drift: &[DriftedResource]) -> BTreeSet<(String, String)> {
    let missing = drift.iter().filter(|d| d.after.is_none() && d.resource_type == "ssh_user");
    missing.filter_map(|d| Some((host(&d.before)?, text(d.before.get("name")?)))).collect()
}

/// In which way, and in which words, a change that nobody from outside caused is told of. `is_open`: a block imports it, and does not know yet what.
fn told_as(resource: &PlannedResource, is_open: bool) -> (Kind, &'static str) {
    let says = match (&resource.reason, resource.change.action()) {
        (Some(Reason::CreateBecauseMissing), _) => return (Kind::Missing, "it was made, and is not there any more"),
        (Some(Reason::FinishEarlierRun), _) => "an earlier run began with it and did not end",
        (Some(Reason::ReplaceBecauseTainted), _) => "it is marked as damaged, and must be made anew",
        _ if resource.importing.is_some() => "it is there and to be imported, and was not yet",
        _ if resource.deposed.is_some() => "what it was before it was made anew is still there",
        (_, Action::Create) if is_open => "it is to be imported, and what it is named by is known only after apply",
        (_, Action::Create) => "it is in the configuration, and was not made yet",
        (_, Action::Delete | Action::Forget) => "it is not in the configuration any more, and still there",
        (_, Action::DestroyThenCreate | Action::CreateThenDestroy) => {
            "the configuration says something else, for which it must be made anew"
        }
        _ => "the configuration says something else",
    };
    (Kind::Unapplied, says)
}
