//! What is as it was made, and in need of care.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Action, Address, Caveat, CheckKind, Checked, Object, PlannedResource, Snapshot};

use super::super::compare::text;
use super::super::decay::{self, Certificate};
use super::super::{Difference, Kind};
use super::Search;

/// True for what an apply leaves there.
fn stays(resource: &PlannedResource) -> bool {
    !matches!(resource.change.action(), Action::Delete | Action::Forget)
}

impl<'a> Search<'a> {
    fn composites(&self) -> Vec<&'a PlannedResource> {
        self.planned.values().copied().filter(|r| r.provider.is_none()).collect()
    }

    /// Well-made, and about to be in need of care.
    pub(super) fn decaying(&mut self, state: &Snapshot, certificates: &BTreeMap<&Address, Certificate>, now: i64) {
        let stays: BTreeSet<&Address> = self.planned.values().filter(|r| stays(r)).map(|r| &r.address).collect();
        for (address, certificate) in certificates.iter().filter(|(_, c)| c.is_near(now)) {
            if !self.told.contains_key(address) && stays.contains(address) {
                let kind = self.type_of(address, state);
                self.add(Kind::Decay, address, &kind, certificate.is_due(now), Vec::new());
            }
        }
        let looked = self.looked;
        for (address, facts) in &looked.seen {
            let is_told = self.told.get(address).is_some_and(|kind| *kind != Kind::Unapplied);
            if is_told || !state.resources.contains_key(address) || !stays.contains(address) {
                continue;
            }
            let kind = self.type_of(address, state);
            for trouble in decay::troubles(facts) {
                self.add(Kind::Decay, address, &kind, trouble, Vec::new());
            }
        }
    }

    /// What composites say of several of their children together.
    pub(super) fn neglected(&mut self, state: &Snapshot) {
        let looked = self.looked;
        for resource in self.composites() {
            let Some(composite) = self.catalog.composite(&resource.resource_type) else { continue };
            let within = looked.seen.range(resource.address.clone()..).take_while(|(a, _)| a.is_within(&resource.address));
            let seen = within.map(|(address, facts)| (address.child.as_slice(), facts)).collect();
            for (path, found) in composite.care(&seen) {
                let address = resource.address.with_child(&path);
                if self.planned.get(&address).is_some_and(|r| stays(r))
                    && self.told.get(&address).is_none_or(|kind| *kind == Kind::Unapplied)
                {
                    let says = std::iter::once(found.detail).chain(found.hints).collect::<Vec<_>>().join(" ");
                    let kind = self.type_of(&address, state);
                    self.add(Kind::Decay, &address, &kind, says, Vec::new());
                }
            }
        }
    }

    /// What a check of the configuration says against it. Where the data source of a check is out of reach, that is told.
    pub(super) fn checked(&mut self) {
        let looked = self.looked;
        let is_check = |c: &&Checked| c.kind == CheckKind::Check && !c.problems.is_empty();
        for check in looked.plan.checks.iter().filter(is_check) {
            let of_unseen = |data: &Address| self.config.check_of(data).as_ref() == Some(&check.address);
            if !looked.doubts.unseen.iter().any(of_unseen) {
                self.add(Kind::Decay, &check.address, "check", check.problems.join(" "), Vec::new());
            }
        }
    }

    /// Runs as it should, and nobody mends it any more. Told of what was applied: what the configuration says by now may be newer.
    pub(super) fn unkept(&mut self, now: i64) {
        let composites = self.composites();
        let fellows: Vec<&Object> =
            composites.iter().filter_map(|r| r.change.before()).filter(|o| o.get("connection").is_some_and(|c| !c.is_null())).collect();
        for resource in composites {
            let (Some(before), Some(composite)) = (resource.change.before(), self.catalog.composite(&resource.resource_type)) else {
                continue;
            };
            if !stays(resource) {
                continue;
            }
            for upkeep in composite.upkeep(before, &fellows) {
                let Some(says) = decay::unkept(&upkeep, now) else { continue };
                let mut path = upkeep.attribute.split('.');
                let whole = path.next().and_then(|name| before.get(name));
                let is = path.try_fold(whole, |value, name| Some(value?.get(name))).flatten().map(text);
                let should = match &upkeep.caveat {
                    Caveat::Patches(_) => "one that gets patches",
                    Caveat::Fellow(fellow) => fellow.as_str(),
                };
                let (path, should) = (upkeep.attribute.to_owned(), Some(should.to_owned()));
                let difference = Difference { path, is, should, follows: false };
                self.find(Kind::Decay, &resource.address, &resource.resource_type, says, vec![difference]);
            }
        }
    }
}
