//! The hosts of the model, as the steps of a plan meet them. Apart from the model, which is also used where there are no such steps.

use karmaform_model::{Change, Object, Type, Value};

use crate::model::{Answer, World, file_sum};
use crate::steps::Outside;

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
            after.insert("sha256".to_owned(), sum);
        }
    }

    fn is_away(&self, source: &Object) -> bool {
        self.away.contains(&host_of(source))
    }

    fn observe(&self, resource_type: &str, source: &Object) -> Option<Object> {
        self.observe(&host_of(source), resource_type, source)
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
}
