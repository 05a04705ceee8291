//! The gate `etcd_healthy`: all of these members work, and they agree.

mod silent;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type, Value};

use crate::client::Client;
use crate::look::{Known, Look, look_at};
use crate::operations::names;

pub(crate) use silent::EtcdSilent;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Waits until members of an etcd cluster are healthy: reads go through each of them, they follow one leader, and nothing is alarming.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("require", Type::list(Type::String), "The names of the members that must be healthy."),
            Attribute::optional("unfinished", Type::list(Type::String), "Peer URLs of members that are on their way in or out: nobody has to wait for them."),
            Attribute::optional("tolerate", Type::list(Type::String), "Alarms that may be on, as something after this ends them: `NOSPACE`."),
        ],
    )
    .through("cluster")
});

/// The gate `etcd_healthy`.
pub(crate) struct EtcdHealthy;

impl Gate<Client> for EtcdHealthy {
    fn name(&self) -> &'static str {
        "etcd_healthy"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let required: BTreeSet<String> = match arguments.get("require").and_then(Value::as_items) {
                Some(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                None => client.names().map(str::to_owned).collect(),
            };
            // One good look is enough: a step that restarts a unit ends when the old process is gone, so nobody answers who is about to stop.
            let unfinished = names(arguments, "unfinished");
            let looks: Vec<_> = look_at(client, required.iter().cloned()).await.into_iter().collect();
            if looks.len() < required.len() {
                return Ok(GateAnswer::Waiting("a look at a member ended early".to_owned()));
            }
            if let Some(name) = expelled(&looks) {
                return Err(no_member(name, client));
            }
            let tolerated = names(arguments, "tolerate");
            Ok(match judge(&looks, client.names().count(), &unfinished, &tolerated) {
                Ok(seen) => GateAnswer::Passed(seen),
                Err(waiting) => GateAnswer::Waiting(waiting),
            })
        })
    }
}

/// One that does not answer and that the others don't know: it was removed while this went on, and waiting for it is in vain.
fn expelled(looks: &[(String, Result<Look, String>)]) -> Option<&str> {
    let told = looks.iter().filter_map(|(_, seen)| seen.as_ref().ok()).find(|look| look.trouble().is_none())?;
    if told.hides_members() || told.members.iter().any(|known| known.name.is_empty()) {
        return None;
    }
    let is_out = |name: &str| told.members.iter().all(|known| known.name != name);
    looks.iter().find(|(name, seen)| seen.is_err() && is_out(name)).map(|(name, _)| name.as_str())
}

fn no_member(name: &str, client: &Client) -> Diagnostic {
    Diagnostic::error(
        "A member is none any more",
        format!("Somebody has removed \"{name}\" from {} since this was planned: the others work and don't know it.", client.id()),
    )
    .with_hint("Plan and apply again: it joins as a new member.")
}

/// What it waits for, or what was seen.
fn judge(looks: &[(String, Result<Look, String>)], members: usize, unfinished: &[String], tolerated: &[String]) -> Result<String, String> {
    let mut troubles = Vec::new();
    let mut good = Vec::new();
    for (name, seen) in looks {
        match seen.as_ref().map(Look::trouble) {
            Ok(None) => good.extend(seen.iter().map(|look| (name, look))),
            Ok(Some(why)) => troubles.push(format!("member {name}: {why}")),
            Err(why) => troubles.push(format!("member {name}: {why}")),
        }
    }
    if !troubles.is_empty() {
        return Err(troubles.join("; "));
    }
    let Some(((first, reference), rest)) = good.split_first() else { return Ok("no member asked for".to_owned()) };
    for (name, look) in rest {
        if look.cluster_id != reference.cluster_id {
            return Err(format!(
                "members {first} and {name} belong to different clusters ({:x}, {:x})",
                reference.cluster_id, look.cluster_id
            ));
        }
        if look.leader != reference.leader {
            return Err(format!("members {first} and {name} follow different leaders"));
        }
    }
    for (name, look) in &good {
        let is_awaited = |known: &&Known| !known.peer_urls.iter().any(|url| unfinished.contains(url));
        for known in look.members.iter().filter(is_awaited) {
            if !known.has_started() {
                let who = if known.name.is_empty() { format!("{:x}", known.id) } else { known.name.clone() };
                return Err(format!("member {name} knows a member {who} that never started"));
            }
            if known.learner {
                return Err(format!("member {} is a learner", known.name));
            }
        }
        if let Some((member, alarm)) = look.alarms.iter().find(|(_, alarm)| !tolerated.contains(alarm)) {
            let known = look.members.iter().find(|m| m.id == *member);
            let whose = known.map_or_else(|| format!("{member:x}"), |m| m.name.clone());
            return Err(format!("alarm {alarm} of member {whose}"));
        }
    }
    Ok(format!("{} of {members} members healthy", good.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: u64, name: &str) -> Known {
        Known { id, name: name.to_owned(), learner: false, peer_urls: Vec::new(), client_urls: vec!["https://10.0.0.1:2379".to_owned()] }
    }

    fn healthy(id: u64) -> Look {
        Look {
            size: 0,
            in_use: 0,
            quota: 0,
            revision: 1,
            member_id: id,
            cluster_id: 9,
            leader: 1,
            version: "3.5.16".to_owned(),
            storage: None,
            goes_down_to: None,
            learner: false,
            read: Ok(()),
            refuses: false,
            alarms: Vec::new(),
            members: vec![known(1, "a"), known(2, "b")],
        }
    }

    fn check(change: impl FnOnce(&mut Look), expected: Result<&str, &str>) {
        let mut b = healthy(2);
        change(&mut b);
        let looks = [("a".to_owned(), Ok(healthy(1))), ("b".to_owned(), Ok(b))];
        assert_eq!(judge(&looks, 3, &[], &[]), expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn members_must_work_and_agree() {
        check(|_| {}, Ok("2 of 3 members healthy"));
        check(|b| b.read = Err("request timed out".to_owned()), Err("member b: request timed out"));
        check(|b| b.leader = 0, Err("member b: it sees no leader"));
        check(|b| b.leader = 2, Err("members a and b follow different leaders"));
        check(|b| b.cluster_id = 10, Err("members a and b belong to different clusters (9, a)"));
        check(|b| b.alarms = vec![(2, "NOSPACE".to_owned())], Err("alarm NOSPACE of member b"));
        check(|b| b.learner = true, Err("member b: it is a learner and does not vote"));
        check(|b| b.members.push(known(3, "")), Err("member b knows a member 3 that never started"));
        check(|b| b.members[0].learner = true, Err("member a is a learner"));
    }

    #[test]
    fn who_is_on_its_way_is_not_waited_for() {
        let mut b = healthy(2);
        let urls = vec!["https://10.0.0.3:2380".to_owned()];
        b.members.push(Known { peer_urls: urls.clone(), client_urls: Vec::new(), ..known(3, "") });
        let looks = [("a".to_owned(), Ok(healthy(1))), ("b".to_owned(), Ok(b))];
        assert_eq!(judge(&looks, 3, &urls, &[]), Ok("2 of 3 members healthy".to_owned()));
        assert!(judge(&looks, 3, &["https://10.0.0.4:2380".to_owned()], &[]).is_err());
    }

    #[test]
    fn an_alarm_that_is_ended_later_stops_nobody() {
        let mut b = healthy(2);
        b.alarms = vec![(2, "NOSPACE".to_owned()), (1, "CORRUPT".to_owned())];
        let tolerated = ["NOSPACE".to_owned()];
        let looks = |b: &Look| [("a".to_owned(), Ok(healthy(1))), ("b".to_owned(), Ok(b.clone()))];
        assert_eq!(judge(&looks(&b), 3, &[], &tolerated), Err("alarm CORRUPT of member a".to_owned()));
        b.alarms.pop();
        assert_eq!(judge(&looks(&b), 3, &[], &tolerated), Ok("2 of 3 members healthy".to_owned()));
    }

    #[test]
    fn nobody_waits_for_who_was_removed() {
        let silent = |name: &str| (name.to_owned(), Err("connection refused".to_owned()));
        let a = |change: fn(&mut Look)| {
            let mut look = healthy(1);
            change(&mut look);
            ("a".to_owned(), Ok(look))
        };
        assert_eq!(expelled(&[a(|_| {}), silent("b")]), None);
        assert_eq!(expelled(&[a(|_| {}), silent("c")]), Some("c"));
        assert_eq!(expelled(&[a(|l| l.leader = 0), silent("c")]), None);
        let hides = |look: &mut Look| (look.refuses, look.members) = (true, Vec::new());
        assert_eq!(expelled(&[a(hides), silent("c")]), None);
        assert_eq!(expelled(&[a(|l| l.members.push(known(3, ""))), silent("c")]), None);
    }

    #[test]
    fn all_that_is_waited_for_is_named() {
        let looks = [("a".to_owned(), Err("connection refused".to_owned())), ("b".to_owned(), Err("no leader".to_owned()))];
        assert_eq!(judge(&looks, 3, &[], &[]), Err("member a: connection refused; member b: no leader".to_owned()));
    }
}
