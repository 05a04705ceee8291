//! `etcd_promote`: a learner that runs and has caught up becomes a voter. etcd itself would also promote one that is dead, and with it the
//! quorum may be gone; so it must have answered a moment ago.

use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};

use super::{Voters, names, passing, refused, text, voters};
use crate::client::{Client, within};
use crate::cluster::quorum;
use crate::look::look;

/// How many revisions a learner may be behind. They keep coming while it is looked at.
const LAG: i64 = 1_000;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Makes a learner of an etcd cluster a voter, once it has caught up.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("through", Type::list(Type::String), "The names of members that work and may be asked."),
            Attribute::required("name", Type::String, "The learner's name in the connection."),
            Attribute::required("peer_url", Type::String, "Where the others reach it."),
            Attribute::optional("only_waits", Type::Bool, "It is not promoted yet: that it has caught up is enough."),
        ],
    )
    .through("cluster")
});

/// The operation `etcd_promote`.
pub(crate) struct EtcdPromote;

impl Operation<Client> for EtcdPromote {
    fn name(&self) -> &'static str {
        "etcd_promote"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let (name, url) = (text(arguments, "name")?, text(arguments, "peer_url")?);
            let only_waits = arguments.get("only_waits").and_then(Value::as_bool) == Some(true);
            Ok(match promote(client, &names(arguments, "through"), name, url, only_waits).await {
                Ok(done) => GateAnswer::Passed(done),
                Err(Wait::For(why)) => GateAnswer::Waiting(why),
                Err(Wait::No(error)) => return Err(*error),
            })
        })
    }
}

enum Wait {
    For(String),
    No(Box<Diagnostic>),
}

impl From<String> for Wait {
    fn from(why: String) -> Self {
        Self::For(why)
    }
}

async fn promote(client: &Client, through: &[String], name: &str, url: &str, only_waits: bool) -> Result<String, Wait> {
    let others = Voters::ask(client, through).await;
    let (speaker, reference) = others.speaker()?;
    let Some(known) = reference.members.iter().find(|m| m.peer_urls.iter().any(|u| u == url)) else {
        let what = format!("{} knows no member at {url}, though it was added a moment ago. Somebody else has removed it.", client.id());
        let error = Diagnostic::error("A member is not known to its cluster", what)
            .with_hint("Find out who changes the members of this cluster, then plan again.");
        return Err(Wait::No(Box::new(error)));
    };
    let own = look(client, name).await.map_err(|why| format!("it does not answer yet: {why}"))?;
    if own.member_id != known.id || own.cluster_id != reference.cluster_id {
        return Err(Wait::For(format!("at its address {:x} answers, and not {:x}", own.member_id, known.id)));
    }
    if !known.learner {
        own.trouble().map_or(Ok(()), Err)?;
        return Ok(format!("member {:x} votes", known.id));
    }
    if own.leader == 0 {
        return Err(Wait::For("it sees no leader".to_owned()));
    }
    let lag = reference.revision - own.revision;
    if lag > LAG {
        return Err(Wait::For(format!("it is {lag} revisions behind")));
    }
    if only_waits {
        return Ok(format!("{lag} revisions behind"));
    }
    // With it there is one voter more; it and those that work must be enough then.
    let (alive, needed) = (others.healthy.len() + 1, quorum(voters(&reference.members) + 1));
    if alive < needed {
        return Err(Wait::For(format!("{alive} members would work, and it takes {needed}: {}", others.troubles.join("; "))));
    }
    let mut connection = client.open(speaker).await?;
    match within(connection.member_promote(known.id)).await {
        // What it says of itself is the proof, at the next look.
        Ok(_) => Err(Wait::For("it was promoted, and has not heard of it yet".to_owned())),
        Err(error) => Err(match passing(&error) {
            Some(why) => Wait::For(why),
            None => Wait::No(Box::new(refused("Promoting a learner", client, &error))),
        }),
    }
}
