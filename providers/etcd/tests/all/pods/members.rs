//! What is asked of a running cluster and of what runs it: members come, are promoted, and leave, and pods start with what they need. etcd's own rules
//! stand beside what the operations look at.

use karmaform_model::{Object, Value, to_json};

use super::roster::{Known, Roster, majority};
use super::{Process, World, objects};

/// What etcd says before it ends, of who was removed.
pub(super) const REMOVED: &str = "the member has been permanently removed from the cluster";

impl World {
    /// One attempt; time passes before it. Gives what is waited for.
    pub(super) fn act(&mut self, operation: &str, arguments: &Object) -> Result<Option<String>, String> {
        self.settle();
        let had_quorum = self.has_quorum();
        let answer = match operation {
            "kubernetes_start" => self.start_pod(arguments),
            "kubernetes_exec" if arguments["pod"].as_str().is_some_and(|pod| pod.ends_with("-restore")) => self.work(arguments),
            "kubernetes_exec" => self.save(arguments),
            "kubernetes_helper" => Ok(self.help(arguments)),
            "kubernetes_stop" => self.stop(arguments),
            _ => self.ask(operation, arguments),
        };
        if self.eager {
            self.controllers();
        }
        let is_told = operation == "kubernetes_stop";
        if had_quorum && !self.has_quorum() && !self.disturbed && !is_told {
            self.violations.push(format!("quorum given up by {operation}"));
        }
        let waiting = self.formed.as_ref().map_or(0, Roster::on_their_way);
        if waiting > 1 {
            self.violations.push(format!("{waiting} members on their way at once"));
        }
        answer
    }

    fn start_pod(&mut self, arguments: &Object) -> Result<Option<String>, String> {
        let remakes = arguments.get("remake").and_then(Value::as_bool) == Some(true);
        for manifest in arguments["manifests"].as_items().unwrap_or_default() {
            self.put(manifest, remakes)?;
        }
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(pod) = text("pod") else { return Ok(None) };
        let claim = arguments.get("claim").filter(|c| !c.is_null());
        let name = claim.map(|claim| objects::name(&Object::from([("manifest".to_owned(), claim.clone())])));
        let is_claim_old = name.as_ref().is_some_and(|name| {
            let uid = self.objects.get(name).and_then(|o| o.attributes().get("uid")).and_then(Value::as_str);
            uid.is_some() && uid.map(str::to_owned) == text("replaces_claim")
        });
        let is_old = |p: &super::Pod| Some(&p.uid) == text("replaces").as_ref() && !matches!(p.process, Process::Running { .. });
        if let Some(old) = self.pods.get(&pod).filter(|p| is_claim_old || is_old(p)) {
            assert!(!matches!(old.process, Process::Running { joined: true, .. }), "{pod} works, and would be made anew");
            self.pods.remove(&pod);
        }
        if let Some(name) = name.filter(|_| is_claim_old) {
            self.disks.remove(&format!("claim {}", name.1));
            self.objects.remove(&name);
            return Ok(Some("it is made anew".to_owned()));
        }
        if let Some(claim) = claim {
            self.put(claim, false)?;
        }
        Ok(match self.pods.get(&pod).map(|p| p.process.clone()) {
            Some(Process::Running { .. }) => None,
            other => Some(format!("{pod}: {other:?}")),
        })
    }

    fn save(&mut self, arguments: &Object) -> Result<Option<String>, String> {
        let pod = arguments["pod"].as_str().unwrap_or_default().to_owned();
        let version = self.formed.as_ref().and_then(|r| r.version);
        let is_told = self.formed.as_ref().is_some_and(|r| r.goes_down_to.is_some());
        if !is_told && self.pods.values().any(|p| p.minor() > version) {
            self.violations.push("what is saved is of another version already".to_owned());
        }
        if !self.is_healthy(&pod) || self.has_no_room {
            return Err(format!("{pod} can't save"));
        }
        assert!(to_json(&arguments["command"]).to_string().contains("snapshot"), "{arguments:?}");
        self.saved = version;
        Ok(None)
    }

    fn ask(&mut self, operation: &str, arguments: &Object) -> Result<Option<String>, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let through = arguments.get("through").map(to_json).unwrap_or_default();
        let through: Vec<&str> = through.as_array().into_iter().flatten().filter_map(|n| n.as_str()).collect();
        let up = through.iter().filter(|n| self.is_healthy(n)).count();
        let Some(roster) = self.formed.clone().filter(|_| up > 0) else { return Ok(Some("nobody can be asked".to_owned())) };
        if operation == "etcd_disarm" {
            return Ok((up < through.len()).then(|| "not all work".to_owned()));
        }
        let number = |name: &str| arguments.get(name).and_then(Value::as_i64).and_then(|n| u32::try_from(n).ok());
        if operation == "etcd_settle" {
            let is_at = roster.version == number("minor") && up == through.len();
            return Ok((!is_at).then(|| "not at it".to_owned()));
        }
        if operation == "etcd_downgrade" {
            let to = number("to");
            let is_there = self.pods.iter().any(|(name, pod)| pod.minor() == to && self.is_healthy(name));
            let all = up == through.len();
            return self.formed.as_mut().map_or(Ok(None), |roster| roster.go_down(to, is_there, all));
        }
        let url = text("peer_url").ok_or("no URL")?;
        match operation {
            "etcd_join" => {
                let is_new = arguments.get("is_new").and_then(Value::as_bool) == Some(true);
                if is_new && text("replaces").is_none() && roster.members.get(&url).is_some_and(|m| m.name.is_some()) {
                    return Err(format!("{url} has started meanwhile"));
                }
                Ok(self.join(&roster, &url, text("replaces").as_deref(), up == through.len()))
            }
            "etcd_promote" => {
                let only_waits = arguments.get("only_waits").and_then(Value::as_bool) == Some(true);
                self.promote(&roster, &text("name").ok_or("no name")?, &url, up, only_waits)
            }
            "etcd_leave" => Ok(self.leave(&roster, text("member_id").as_deref(), &url, up)),
            _ => Err(format!("no operation {operation}")),
        }
    }

    fn join(&mut self, roster: &Roster, url: &str, replaces: Option<&str>, all: bool) -> Option<String> {
        if roster.members.contains_key(url) {
            let is_old = replaces.is_some() && roster.id_of(url).as_deref() == replaces;
            return is_old.then(|| "the old one is still there".to_owned());
        }
        let is_one_on_its_way = roster.on_their_way() > 0;
        let is_all_there = roster.voters() == 1 || self.voting().count() == roster.voters();
        if !all || is_one_on_its_way || !is_all_there || std::mem::take(&mut self.moved) {
            return Some("not all work, or one is on its way".to_owned());
        }
        self.made += 1;
        let known = Known { incarnation: self.made, learner: true, name: None };
        self.formed.as_mut().map(|r| r.members.insert(url.to_owned(), known));
        self.moved = true;
        None
    }

    fn promote(&mut self, roster: &Roster, name: &str, url: &str, up: usize, only_waits: bool) -> Result<Option<String>, String> {
        let Some(known) = roster.members.get(url) else { return Err("it is no member".to_owned()) };
        if !known.learner {
            return Ok((!self.is_healthy(name)).then(|| "it does not work".to_owned()));
        }
        if self.taking_part().all(|(other, _)| other != name) || up + 1 < majority(roster.voters() + 1) {
            return Ok(Some("it has not caught up".to_owned()));
        }
        if only_waits {
            return Ok(None);
        }
        if let Some(known) = self.formed.as_mut().and_then(|r| r.members.get_mut(url)) {
            known.learner = false;
        }
        self.moved = true;
        Ok(Some("promoted".to_owned()))
    }

    fn leave(&mut self, roster: &Roster, id: Option<&str>, at: &str, up: usize) -> Option<String> {
        let url = roster.find(id, at)?;
        let left = roster.voters_without(&url);
        if left == 0 || up < majority(left) {
            return Some("too few would be left".to_owned());
        }
        self.formed.as_mut().map(|r| r.members.remove(&url));
        self.moved = true;
        self.settle();
        Some("removed".to_owned())
    }

    /// Somebody removes a member with etcd's own tool.
    pub(crate) fn remove_by_hand(&mut self, member: &str) {
        self.formed.as_mut().map(|r| r.members.remove(&Self::url(member)));
        self.settle();
    }
}
