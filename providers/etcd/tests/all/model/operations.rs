//! What is asked of a running cluster: members come, are promoted, and leave. etcd's own rules stand beside what the operations look at.

use karmaform_model::{Object, Value};

use super::World;
use super::roster::{Known, Roster, majority};

/// What an operation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// That was all.
    Done,
    /// Not yet.
    Waiting(String),
}

impl World {
    /// One attempt; time passes before it.
    pub(crate) fn operate(&mut self, operation: &str, arguments: &Object) -> Result<Answer, String> {
        self.settle();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let through = arguments.get("through").and_then(Value::as_items).unwrap_or_default();
        let through: Vec<String> = through.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let up = through.iter().filter(|n| self.is_healthy(n)).count();
        let is_asked = up > 0 || operation == "etcd_make_room";
        let Some(roster) = self.formed.clone().filter(|_| is_asked) else { return Ok(Answer::Waiting("nobody can be asked".to_owned())) };
        let had_quorum = self.has_quorum();
        let answer = match operation {
            "etcd_join" => {
                let all = up == through.len();
                Ok(self.join(&roster, &text("peer_url").ok_or("no URL")?, text("replaces").as_deref(), all))
            }
            "etcd_promote" => self.promote(&roster, &text("name").ok_or("no name")?, &text("peer_url").ok_or("no URL")?, up),
            "etcd_leave" => Ok(self.leave(&roster, text("member_id").as_deref(), &text("peer_url").ok_or("no URL")?, up)),
            "etcd_make_room" => Ok(self.make_room()),
            "etcd_settle" => {
                let asked = arguments.get("minor").and_then(Value::as_i64).and_then(|minor| u32::try_from(minor).ok());
                let run: Vec<Option<u32>> = self.hosts.values().filter(|h| through.contains(&h.member)).map(|h| h.minor()).collect();
                let is_at = run.iter().any(|minor| *minor > asked) || run.iter().all(|minor| *minor == asked) && roster.version == asked;
                let is_at = is_at && up == through.len();
                Ok(if is_at { Answer::Done } else { Answer::Waiting("not at it".to_owned()) })
            }
            "etcd_downgrade" => self.go_down(arguments.get("to").and_then(Value::as_i64), up == through.len()),
            "etcd_disarm" if up == through.len() => Ok(Answer::Done),
            "etcd_disarm" => Ok(Answer::Waiting("not all work".to_owned())),
            _ => Err(format!("no operation {operation}")),
        };
        if had_quorum && !self.has_quorum() && !self.disturbed {
            self.violations.push(format!("quorum given up by {operation}"));
        }
        let waiting = self.formed.as_ref().map_or(0, Roster::on_their_way);
        if waiting > 1 {
            self.violations.push(format!("{waiting} members on their way at once"));
        }
        answer
    }

    /// Who defragments answers nobody meanwhile, so all must work. What is done is done at once here; the order is the provider's.
    fn make_room(&mut self) -> Answer {
        let voters = self.formed.as_ref().map_or(0, Roster::voters);
        if self.alive().iter().filter(|member| self.is_healthy(member)).count() < voters {
            return Answer::Waiting("not all work".to_owned());
        }
        self.fragmented.clear();
        self.is_full = false;
        Answer::Done
    }

    /// A cluster is told to go down to a version, and its members begin to keep their data as that does; or to stay.
    fn go_down(&mut self, to: Option<i64>, all: bool) -> Result<Answer, String> {
        let to = to.and_then(|to| u32::try_from(to).ok());
        let is_there = self.hosts.values().any(|host| host.minor() == to);
        let Some(formed) = self.formed.as_mut() else { return Ok(Answer::Waiting("nobody can be asked".to_owned())) };
        Ok(formed.go_down(to, is_there, all)?.map_or(Answer::Done, Answer::Waiting))
    }

    fn join(&mut self, roster: &Roster, url: &str, replaces: Option<&str>, all: bool) -> Answer {
        if roster.members.contains_key(url) {
            let is_old = replaces.is_some() && roster.id_of(url).as_deref() == replaces;
            return if is_old { Answer::Waiting("the old one is still there".to_owned()) } else { Answer::Done };
        }
        if !all || roster.on_their_way() > 0 {
            return Answer::Waiting("not all work, or one is on its way".to_owned());
        }
        if roster.voters() > 1 && self.alive().len() < roster.voters() || std::mem::take(&mut self.moved) {
            return Answer::Waiting("unhealthy cluster".to_owned());
        }
        self.made += 1;
        let known = Known { incarnation: self.made, learner: true, name: None };
        self.formed.as_mut().map(|r| r.members.insert(url.to_owned(), known));
        self.moved = true;
        Answer::Done
    }

    fn promote(&mut self, roster: &Roster, name: &str, url: &str, up: usize) -> Result<Answer, String> {
        let Some(known) = roster.members.get(url) else { return Err("it is no member".to_owned()) };
        if !known.learner {
            return Ok(if self.is_healthy(name) { Answer::Done } else { Answer::Waiting("it does not work".to_owned()) });
        }
        let runs = self.hosts.values().any(|h| h.member == name && h.takes_part_in(Some(roster)));
        if !runs || up + 1 < majority(roster.voters() + 1) {
            return Ok(Answer::Waiting("it has not caught up".to_owned()));
        }
        if let Some(known) = self.formed.as_mut().and_then(|r| r.members.get_mut(url)) {
            known.learner = false;
        }
        // It was sent what the leader has, free pages and all.
        let is_sent_free_pages = self.leader.as_ref().is_some_and(|leader| self.fragmented.contains(leader));
        self.fragmented.remove(name);
        self.fragmented.extend(is_sent_free_pages.then(|| name.to_owned()));
        self.moved = true;
        Ok(Answer::Waiting("promoted".to_owned()))
    }

    fn leave(&mut self, roster: &Roster, id: Option<&str>, at: &str, up: usize) -> Answer {
        let Some(url) = roster.find(id, at) else { return Answer::Done };
        let left = roster.voters_without(&url);
        if left == 0 || up < majority(left) {
            return Answer::Waiting("too few would be left".to_owned());
        }
        self.formed.as_mut().map(|r| r.members.remove(&url));
        let known = &roster.members[&url];
        self.fragmented.retain(|member| known.name.as_ref() != Some(member));
        for host in self.hosts.values_mut().filter(|h| h.is_at(&url) && h.has_data_of(&roster.id, known.incarnation)) {
            host.ends_removed();
        }
        self.moved = true;
        self.settle();
        Answer::Waiting("removed".to_owned())
    }
}
