//! The namespace, as a plan's steps meet it.

use std::hash::{DefaultHasher, Hash};

use karmaform_model::{Change, Object, Type, Value};

use super::{Process, World, objects, roster, trust};
use crate::steps::Outside;

impl Outside for World {
    fn is_outside(resource_type: &str) -> bool {
        resource_type.starts_with("kubernetes_")
    }

    fn foretell(resource_type: &str, change: &mut Change) {
        if resource_type == "kubernetes_object" {
            objects::foretell(change);
        }
    }

    fn observe(&self, resource_type: &str, source: &Object) -> Option<Object> {
        if resource_type == "kubernetes_object" {
            return self.objects.get(&objects::name(source)).map(|thing| thing.attributes().clone());
        }
        let name = source.get("name").and_then(Value::as_str)?;
        let pod = self.pods.get(name)?;
        let (phase, problem) = match &pod.process {
            Process::Pending(why) => ("Pending", Some(why)),
            Process::Ended(why) => ("CrashLoopBackOff", Some(why)),
            Process::Running { .. } => ("Running", None),
        };
        let words = match &pod.process {
            // Whoever was removed calls that no error, and leaves no words.
            Process::Ended(why) if why != super::members::REMOVED => why.as_str().into(),
            _ => Value::null(karmaform_model::Type::String),
        };
        Some(Object::from([
            ("name".to_owned(), name.into()),
            ("revision".to_owned(), pod.revision().into()),
            ("uid".to_owned(), pod.uid.as_str().into()),
            ("phase".to_owned(), phase.into()),
            ("ready".to_owned(), self.is_healthy(name).into()),
            ("termination_message".to_owned(), words),
            ("problem".to_owned(), problem.map_or_else(|| Value::null(karmaform_model::Type::String), |p| p.as_str().into())),
        ]))
    }

    fn begin(&mut self, destroying: bool) {
        self.destroying = destroying;
        if destroying {
            self.down_by_us.clear();
        }
        (self.was_looked_at, self.disturbed) = (false, false);
    }

    fn change(&mut self, resource_type: &str, change: &Change) -> Result<Option<Object>, String> {
        let alive_before = self.alive();
        let quorum_before = self.has_quorum();
        let result = match resource_type {
            "kubernetes_object" => self.change_object(change),
            _ => self.change_pod(change),
        };
        self.notes_who_is_refused();
        let alive = self.alive();
        let members = self.formed.as_ref().map_or(0, roster::Roster::voters);
        if !self.destroying {
            self.down_by_us.extend(alive_before.difference(&alive).cloned());
            if self.down_by_us.len() > 1 {
                self.violations.push(format!("{:?} down by us at once", self.down_by_us));
            }
            if quorum_before && !self.has_quorum() && members > 2 && !self.disturbed {
                self.violations.push(format!("quorum given up by a change of {resource_type}"));
            }
        }
        if self.eager {
            self.controllers();
        }
        result
    }

    /// A certificate says by which CA it is.
    fn issue(&mut self, resource_type: &str, change: &Change) -> Option<Object> {
        let mut object = change.after()?.clone();
        self.made += 1;
        let number = self.made;
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_known = |name: &str| object.get(name).is_some_and(|v| !v.is_unknown() && !v.is_null());
        match resource_type {
            "terraform_data" => {
                (!is_known("id")).then(|| object.insert("id".to_owned(), format!("terraform_data-id-{number}").into()));
            }
            _ if is_known("certificate") => {}
            "tls_ca" => trust::authority(&mut object, number),
            _ => {
                let certificate = trust::leaf(&text("ca_certificate"), number);
                if text("common_name") == "root" {
                    self.ours = Some(certificate.clone());
                }
                object.insert("certificate".to_owned(), certificate.into());
                object.insert("private_key".to_owned(), format!("private_key-{number}").into());
            }
        }
        for name in ["not_before", "not_after", "serial_number", "output"] {
            if object.get(name).is_some_and(Value::is_unknown) {
                object.insert(name.to_owned(), format!("{name}-{number}").into());
            }
        }
        Some(object)
    }

    fn gate(&mut self, required: &[&str]) -> Vec<String> {
        self.settle();
        let unhealthy: Vec<String> = required.iter().filter(|m| !self.is_healthy(m)).map(|m| (*m).to_owned()).collect();
        if unhealthy.is_empty() {
            self.was_looked_at = true;
            self.disturbed = false;
        }
        unhealthy
    }

    fn operate(&mut self, operation: &str, arguments: &Object) -> Result<Option<String>, String> {
        self.act(operation, arguments)
    }

    fn is_healthy(&self, member: &str) -> bool {
        self.is_healthy(member)
    }

    fn look_at_member(&self, member: &str, known: bool) -> Option<Object> {
        let healthy = self.is_healthy(member);
        if !healthy && !known {
            return None;
        }
        let leads = healthy && self.leader.as_deref() == Some(member);
        let mut seen =
            Object::from([("name".to_owned(), member.into()), ("healthy".to_owned(), healthy.into()), ("leader".to_owned(), leads.into())]);
        let votes = |roster: &roster::Roster| roster.members.get(&Self::url(member)).is_some_and(|m| !m.learner && m.name.is_some());
        if self.has_quorum() && !self.formed.as_ref().is_some_and(votes) {
            seen.insert("nonvoter".to_owned(), true.into());
        }
        if healthy {
            self.add_ids(member, &mut seen);
        }
        Some(seen)
    }

    fn add_ids(&self, member: &str, object: &mut Object) {
        let Some(roster) = &self.formed else { return };
        let url = |name: &str| self.pods.get(member).and_then(|p| p.flag(name)).unwrap_or_default().replace("$(POD_NAME)", member);
        object.insert("nonvoter".to_owned(), false.into());
        object.insert("size_bytes".to_owned(), (1_i64 << 20).into());
        let runs = self.pods.get(member).and_then(super::Pod::minor);
        let to = self.formed.as_ref().and_then(|roster| roster.goes_down_to).filter(|_| runs > Some(5));
        object.insert("goes_down_to".to_owned(), to.map_or_else(|| Value::null(Type::Number), |to| i64::from(to).into()));
        object.insert("version".to_owned(), self.pods.get(member).map(super::Pod::version).unwrap_or_default().into());
        object.insert("roster".to_owned(), roster.told());
        object.insert("member_id".to_owned(), roster.id_of(&Self::url(member)).unwrap_or_default().into());
        object.insert("cluster_id".to_owned(), roster.id.clone().into());
        object.insert("peer_url".to_owned(), url("initial-advertise-peer-urls").into());
        object.insert("client_url".to_owned(), url("advertise-client-urls").into());
    }

    fn crash(&mut self, member: &str) {
        self.crash(member);
    }

    fn runs_a_member(part: &str) -> bool {
        part == "pod"
    }

    fn print(&self, hasher: &mut DefaultHasher) {
        (self.made, &self.leader, self.was_looked_at, self.disturbed, self.eager, &self.down_by_us).hash(hasher);
        self.disks.keys().for_each(|disk| disk.hash(hasher));
        for (name, pod) in &self.pods {
            (name, &pod.uid, matches!(pod.process, Process::Running { .. })).hash(hasher);
        }
        for ((_, name), thing) in self.objects.iter() {
            (name, thing.attributes().get("uid").and_then(Value::as_str)).hash(hasher);
        }
    }
}

impl World {
    /// A pod is waited for, or deleted so that a new one is made; one that is as wanted is left alone.
    fn change_pod(&mut self, change: &Change) -> Result<Option<Object>, String> {
        let Some(after) = change.after() else { return Ok(None) };
        let text = |name: &str| after.get(name).and_then(Value::as_str).unwrap_or_default();
        if self.stateful_set().is_none() {
            return Err("nobody makes the pod".to_owned());
        }
        if self.pods.get(text("name")).is_some_and(|pod| pod.revision() != text("revision")) {
            self.pods.remove(text("name"));
        }
        let mut object = after.clone();
        object.insert("uid".to_owned(), "uid".into());
        Ok(Some(object))
    }
}
