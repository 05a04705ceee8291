//! `etcd_leave`: the cluster removes a member, before its process is stopped. If it leads, it hands that over first: removing the leader
//! ends writes for an election's time.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};

use super::change::{Change, Refusal};
use super::{Voters, id, names, refused, text, voters};
use crate::client::{Client, within};
use crate::cluster::quorum;
use crate::look::{Known, Look, look as look_at_one};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Removes a member from an etcd cluster.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("through", Type::list(Type::String), "The names of the members that stay and work."),
            Attribute::required("name", Type::String, "The member's name in the connection, if it is there."),
            Attribute::optional(
                "member_id",
                Type::String,
                "Its id, in hexadecimal digits; without it who is at the URL leaves, if anybody is.",
            ),
            Attribute::required("peer_url", Type::String, "Where the others reach it."),
            Attribute::optional("is_lost", Type::Bool, "It leaves because its data is gone; if it works all the same, it stays."),
        ],
    )
    .through("cluster")
});

/// The operation `etcd_leave`.
pub(crate) struct EtcdLeave;

impl Operation<Client> for EtcdLeave {
    fn name(&self) -> &'static str {
        "etcd_leave"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let (name, url) = (text(arguments, "name")?, text(arguments, "peer_url")?);
            let id = arguments.get("member_id").and_then(Value::as_str).map(id).transpose()?;
            let is_it = |m: &&Known| id.map_or_else(|| m.peer_urls.iter().any(|u| u == url), |id| m.id == id);
            let stay = Voters::ask(client, &names(arguments, "through")).await;
            let (speaker, look) = match stay.speaker() {
                Ok(speaker) => speaker,
                Err(why) => return Ok(GateAnswer::Waiting(why)),
            };
            let Some(leaving) = look.members.iter().find(is_it) else {
                let knows = |look: &Look| look.members.iter().any(|m| is_it(&m));
                let late: Vec<&str> = stay.healthy.iter().filter(|(_, l)| knows(l)).map(|(n, _)| n.as_str()).collect();
                return Ok(if late.is_empty() {
                    GateAnswer::Passed(format!("{name} is not a part of it"))
                } else {
                    GateAnswer::Waiting(format!("{} still know it", late.join(", ")))
                });
            };
            // Those that stay must be enough without it, whether it works or not.
            let left = voters(&look.members) - usize::from(!leaving.learner);
            if stay.healthy.len() < quorum(left) {
                let why =
                    format!("{} of {left} others work, and it takes {}: {}", stay.healthy.len(), quorum(left), stay.troubles.join("; "));
                return Ok(GateAnswer::Waiting(why));
            }
            let id = leaving.id;
            let is_lost = arguments.get("is_lost").and_then(Value::as_bool) == Some(true) && client.names().any(|n| n == name);
            if is_lost && look_at_one(client, name).await.is_ok_and(|own| own.member_id == id && own.trouble().is_none()) {
                let what = format!("When the plan was made the data of {name} was gone, and now it works.");
                return Err(
                    Diagnostic::error("A member that was lost is there again", what).with_hint("Plan again: there may be nothing to do.")
                );
            }
            if look.leader == id
                && client.names().any(|n| n == name)
                && let Ok(mut leader) = client.open(name).await
                && within(leader.move_leader(look.member_id)).await.is_ok()
            {
                return Ok(GateAnswer::Waiting(format!("it hands the lead to {speaker}")));
            }
            match Change::Leave(id).ask(client, &stay).await {
                Ok(_) => Ok(GateAnswer::Waiting("it was removed, and not all have heard of it yet".to_owned())),
                Err(Refusal::Waiting(why)) => Ok(GateAnswer::Waiting(why)),
                // Gone meanwhile; the next look says so.
                Err(Refusal::Refused(error)) if reason_is_gone(&error) => Ok(GateAnswer::Waiting("it is gone".to_owned())),
                Err(Refusal::Refused(error)) => Err(refused("Removing a member", client, &error)),
            }
        })
    }
}

/// gRPC's "not found".
fn reason_is_gone(error: &etcd_client::Error) -> bool {
    matches!(error, etcd_client::Error::GRpcStatus(status) if status.code() as i32 == 5)
}
