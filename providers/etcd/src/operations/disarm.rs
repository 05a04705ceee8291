//! `etcd_disarm`: a restored cluster takes writes. A snapshot holds the alarms that were on when it was taken, of members that are no more (facts of
//! etcd: a restored NOSPACE refuses writes until somebody ends it).

use std::sync::LazyLock;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type};

use super::{Voters, names, passing, refused};
use crate::care::bytes;
use crate::client::{Client, within};
use crate::look::Look;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Ends the alarms that a restored etcd cluster brought with it, once its members work.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("through", Type::list(Type::String), "The names of its members."),
        ],
    )
    .through("cluster")
});

/// The operation `etcd_disarm`.
pub(crate) struct EtcdDisarm;

impl Operation<Client> for EtcdDisarm {
    fn name(&self) -> &'static str {
        "etcd_disarm"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let members = Voters::ask(client, &names(arguments, "through")).await;
            if let Err(why) = members.all_healthy() {
                return Ok(GateAnswer::Waiting(why));
            }
            let (speaker, look) = match members.speaker() {
                Ok(speaker) => speaker,
                Err(why) => return Ok(GateAnswer::Waiting(why)),
            };
            if look.alarms.is_empty() {
                return Ok(GateAnswer::Passed(format!("{} members work", members.healthy.len())));
            }
            if let Some(full) = members.healthy.iter().find_map(|(name, look)| full(client, name, look)) {
                return Err(full);
            }
            let mut connection = match client.open(speaker).await {
                Ok(connection) => connection,
                Err(why) => return Ok(GateAnswer::Waiting(why)),
            };
            for (member, alarm) in &look.alarms {
                // All members have the same data now, so that one of CORRUPT says nothing of them either.
                let kind = if alarm == "CORRUPT" { AlarmType::Corrupt } else { AlarmType::Nospace };
                let mut options = AlarmOptions::new();
                options.with_member(*member);
                if let Err(error) = within(connection.alarm(AlarmAction::Deactivate, kind, Some(options))).await {
                    return match passing(&error) {
                        Some(why) => Ok(GateAnswer::Waiting(why)),
                        None => Err(refused("Ending an alarm", client, &error)),
                    };
                }
            }
            Ok(GateAnswer::Waiting("alarms that came with the snapshot were ended".to_owned()))
        })
    }
}

/// The alarm would be back with the next write.
fn full(client: &Client, name: &str, look: &Look) -> Option<Diagnostic> {
    let quota = if look.quota > 0 { look.quota } else { client.quota() };
    (quota > 0 && look.size >= quota).then(|| {
        let detail = format!("Member {name} has {} of the {} that it may have, and takes no writes.", bytes(look.size), bytes(quota));
        Diagnostic::error("What was restored is too large", detail)
            .with_hint("Raise quota-backend-bytes in the cluster's settings, then plan and apply again.")
    })
}
