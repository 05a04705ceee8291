//! The hosts of the model, as the steps of a plan meet them. Apart from the model, which is also used where there are no such steps.

use std::hash::{DefaultHasher, Hash};

use karmaform_model::{Change, Object, Type, Value};

use crate::model::{Answer, Process, World, file_sum, moving};
use crate::steps::Outside;
use crate::steps::run::Cut;

fn host_of(object: &Object) -> String {
    object.get("host").and_then(|h| h.get("id")).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Outside for World {
    fn is_outside(resource_type: &str) -> bool {
        resource_type.starts_with("ssh_")
    }

    fn foretell(resource_type: &str, change: &mut Change) {
        if resource_type == "ssh_file"
            && let Some(after) = change.after_mut()
        {
            let sum = file_sum(after).unwrap_or_else(|| Value::unknown(Type::String));
            after.put("sha256", sum);
        }
    }

    fn is_away(&self, source: &Object) -> bool {
        self.away.contains(&host_of(source))
    }

    fn observe(&self, resource_type: &str, source: &Object) -> Option<Object> {
        self.observe(&host_of(source), resource_type, source)
    }

    fn brought(&self, source: &Object) -> Option<Object> {
        moving::brought(self.hosts.get(&host_of(source))?, source)
    }

    fn begin(&mut self, destroying: bool) {
        self.destroying = destroying;
        (self.was_looked_at, self.disturbed) = (false, false);
        // Who was stopped by a restoration that was cut off is down until it is gone on with.
        self.restoring &= !self.has_quorum();
    }

    fn change(&mut self, resource_type: &str, change: &Change) -> Result<Option<Object>, String> {
        let host = change.after().or(change.before()).map(host_of).unwrap_or_default();
        if self.away.contains(&host) {
            return Err(format!("{host} does not answer"));
        }
        self.apply(&host, resource_type, change)
    }

    fn cut_off(&mut self, change: &Change, cut: Cut) {
        let id = change.after().map(host_of).unwrap_or_default();
        if cut == Cut::Done {
            drop(self.apply(&id, "ssh_directory", change));
        }
        let Some(host) = self.hosts.get_mut(&id) else { return };
        if cut != Cut::Done {
            let has_arrived = cut == Cut::Arrived;
            moving::cut_off(host, change, cut != Cut::Before, has_arrived || cut == Cut::Left, has_arrived);
        }
        let stopped = matches!(cut, Cut::Left | Cut::Arrived | Cut::Done).then(|| host.member.clone());
        self.down_by_us.extend(stopped);
    }

    fn issue(&mut self, resource_type: &str, change: &Change) -> Option<Object> {
        self.issue(resource_type, change)
    }

    fn is_full(&self) -> bool {
        self.is_full
    }

    fn gate(&mut self, required: &[&str]) -> Vec<String> {
        self.gate(required)
    }

    fn operate(&mut self, operation: &str, arguments: &Object) -> Result<Option<String>, String> {
        Ok(match self.operate(operation, arguments)? {
            Answer::Done => None,
            Answer::Waiting(why) => Some(why),
        })
    }

    fn is_healthy(&self, member: &str) -> bool {
        self.is_healthy(member)
    }

    fn look_at_member(&self, member: &str, known: bool) -> Option<Object> {
        self.look_at_member(member, known)
    }

    fn add_ids(&self, member: &str, object: &mut Object) {
        self.add_ids(member, object);
    }

    fn crash(&mut self, member: &str) {
        self.crash(member);
    }

    fn runs_a_member(part: &str) -> bool {
        part == "unit"
    }

    fn print(&self, hasher: &mut DefaultHasher) {
        (&self.leader, self.was_looked_at, self.disturbed, &self.down_by_us).hash(hasher);
        for host in self.hosts.values() {
            (host.things.len(), &host.set_aside, host.marker, host.formation.is_some(), host.saved).hash(hasher);
            match &host.process {
                Process::Stopped => {}
                Process::Failed(why) => why.hash(hasher),
                Process::Running { config, joined, .. } => (config, joined).hash(hasher),
            }
        }
    }
}
