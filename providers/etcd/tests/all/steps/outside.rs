//! What a world must be able to do to stand behind a plan.

use std::hash::DefaultHasher;

use karmaform_model::{Change, Object};

use super::run::Cut;

/// A world: all that is outside of the state.
pub(crate) trait Outside: Clone + Default + PartialEq + std::fmt::Debug {
    /// True if things of this type are in the world and not only in the state.
    fn is_outside(resource_type: &str) -> bool;
    /// What a provider says ahead of a change: what it will compute, or that it can't be made in place.
    fn foretell(resource_type: &str, change: &mut Change);
    /// Where this is nobody answers: it is not seen, and can't be changed.
    fn is_away(&self, _source: &Object) -> bool {
        false
    }
    /// What is there.
    fn observe(&self, resource_type: &str, source: &Object) -> Option<Object>;
    /// Where a directory was brought that is not where the state has it.
    fn brought(&self, _source: &Object) -> Option<Object> {
        None
    }
    /// A run begins.
    fn begin(&mut self, destroying: bool);
    /// Does one change in the world.
    fn change(&mut self, resource_type: &str, change: &Change) -> Result<Option<Object>, String>;
    /// A run is killed in the middle of moving a directory.
    fn cut_off(&mut self, _change: &Change, _cut: Cut) {}
    /// Makes what lives in the state alone.
    fn issue(&mut self, resource_type: &str, change: &Change) -> Option<Object>;
    /// The alarm NOSPACE is on: no gate passes that does not say that something ends it.
    fn is_full(&self) -> bool {
        false
    }
    /// A gate asks for these members: time passes, then each is looked at. Gives those that are not healthy.
    fn gate(&mut self, required: &[&str]) -> Vec<String>;
    /// One attempt of an operation on the cluster. Gives what it waits for; `None`: it is done.
    fn operate(&mut self, operation: &str, arguments: &Object) -> Result<Option<String>, String>;
    /// A read goes through this member.
    fn is_healthy(&self, member: &str) -> bool;
    /// What the provider `etcd` says of a member; `known`: it is in the state.
    fn look_at_member(&self, member: &str, known: bool) -> Option<Object>;
    /// The ids that the cluster gives a member.
    fn add_ids(&self, member: &str, object: &mut Object);
    /// A member goes down by itself.
    fn crash(&mut self, member: &str);
    /// Something by which worlds that differ are mostly told apart, and quickly; equal ones have it in common.
    fn print(&self, hasher: &mut DefaultHasher);
    /// Its part of the order in which a policy picks steps: what runs a member is a unit or a pod.
    fn runs_a_member(part: &str) -> bool;
}
