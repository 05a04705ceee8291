//! `etcd_make_room`: free pages go back to the disk, and a cluster that is full takes writes again. What is done by hand with `etcd defrag` and
//! `etcd alarm disarm`, as a step of a plan.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type};

use crate::by_hand::{Cluster, Defragmented, Defragmenting, corrupt, defragment, disarm, survey};
use crate::care::bytes;
use crate::client::Client;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Defragments members of an etcd cluster that need it, followers first, the leader last and after it has handed over; where the alarm \
         NOSPACE is on, drops the history first, and ends it when there is room.",
        vec![Attribute::required("cluster", Type::Any, "The connection to the cluster.")],
    )
    .through("cluster")
});

/// The operation `etcd_make_room`.
pub(crate) struct EtcdMakeRoom;

impl Operation<Client> for EtcdMakeRoom {
    fn name(&self) -> &'static str {
        "etcd_make_room"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, _arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let cluster = Cluster { client: client.clone() };
            let seen = survey(&cluster).await;
            if seen.alarming("CORRUPT") {
                return Err(corrupt());
            }
            // What was just restarted may lag for a moment. By hand nobody waits for that; here nothing else goes on meanwhile.
            let troubles = seen.troubles();
            if !troubles.is_empty() {
                return Ok(GateAnswer::Waiting(troubles.join("; ")));
            }
            let mut silent = |_: &str| {};
            if seen.alarms.is_empty() {
                let done = defragment(&cluster, Defragmenting::default(), &mut silent).await?;
                return Ok(GateAnswer::Passed(told(&done)));
            }
            let done = disarm(&cluster, &mut silent).await?;
            Ok(GateAnswer::Passed(format!("{}, and the alarm NOSPACE is off", told(&done.defragmented))))
        })
    }
}

/// What became of the databases, in a few words.
fn told(done: &[Defragmented]) -> String {
    if done.is_empty() {
        return "no member needs it any more".to_owned();
    }
    let of = |d: &Defragmented| format!("{} from {} to {}", d.member, bytes(d.before), bytes(d.after));
    done.iter().map(of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_each_is_told() {
        let done = |member: &str, before, after| Defragmented { member: member.to_owned(), before, after };
        assert_eq!(told(&[]), "no member needs it any more");
        assert_eq!(
            told(&[done("b", 300 << 20, 20 << 20), done("a", 1 << 30, 1 << 20)]),
            "b from 300.0 MiB to 20.0 MiB, a from 1.0 GiB to 1.0 MiB"
        );
    }
}
