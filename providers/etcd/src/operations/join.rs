//! `etcd_join`: the cluster is told of a new member. It is added as a learner: as a voter it would count for the quorum before it runs.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};

use super::change::{Change, Refusal};
use super::{Voters, names, refused, text};
use crate::client::Client;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Adds a member to an etcd cluster, as a learner.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("through", Type::list(Type::String), "The names of members that work and may be asked."),
            Attribute::required("peer_url", Type::String, "Where the others will reach it."),
            Attribute::optional("replaces", Type::String, "The id of the member that had this URL before, in hexadecimal digits."),
            Attribute::optional("is_new", Type::Bool, "It had not started when the plan was made, and begins with nothing."),
        ],
    )
    .through("cluster")
});

/// The operation `etcd_join`.
pub(crate) struct EtcdJoin;

impl Operation<Client> for EtcdJoin {
    fn name(&self) -> &'static str {
        "etcd_join"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let url = text(arguments, "peer_url")?;
            let replaced = arguments.get("replaces").and_then(Value::as_str);
            let voters = Voters::ask(client, &names(arguments, "through")).await;
            let (_, look) = match voters.speaker() {
                Ok(speaker) => speaker,
                Err(why) => return Ok(GateAnswer::Waiting(why)),
            };
            if let Some(known) = look.members.iter().find(|m| m.peer_urls.iter().any(|u| u == url)) {
                let id = format!("{:x}", known.id);
                if replaced == Some(id.as_str()) {
                    return Ok(GateAnswer::Waiting(format!("the member {id} has not left yet")));
                }
                // What it starts with would be taken from it.
                if arguments.get("is_new").and_then(Value::as_bool) == Some(true) && known.has_started() {
                    let what = format!("When the plan was made the member {id} had not started, and now it has.");
                    return Err(Diagnostic::error("A member has started meanwhile", what)
                        .with_hint("Plan and apply again: it is gone on with from there."));
                }
                return Ok(GateAnswer::Passed(format!("{} {id} is known", if known.learner { "learner" } else { "member" })));
            }
            // etcd itself would take a second change while the first is not finished.
            if let Some(other) = look.members.iter().find(|m| m.learner || !m.has_started()) {
                return Ok(GateAnswer::Waiting(format!("the member {:x} is still on its way into the cluster", other.id)));
            }
            if let Err(why) = voters.all_healthy() {
                return Ok(GateAnswer::Waiting(why));
            }
            match Change::Join(url).ask(client, &voters).await {
                Ok(id) => Ok(GateAnswer::Passed(format!("added as the learner {id:x}"))),
                Err(Refusal::Waiting(why)) => Ok(GateAnswer::Waiting(why)),
                Err(Refusal::Refused(error)) => Err(refused("Adding a member", client, &error)),
            }
        })
    }
}
