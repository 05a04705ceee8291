//! `etcd_settle`: a cluster whose members have come to a minor version is at that version itself before they go on to the next. Its leader looks every 4 s
//! (facts of etcd, "Version monitor"), so right behind a restart it may not be.

use std::sync::LazyLock;
use std::time::Duration;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};

use super::{Voters, names};
use crate::client::Client;
use crate::look::Look;
use crate::versions::Version;

/// How long after all members run a version the cluster is at it for sure. Those before 3.6 don't say that it is.
const MONITOR: Duration = Duration::from_secs(6);

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Waits until an etcd cluster is at the minor version that all of its members run.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("through", Type::list(Type::String), "The names of all members."),
            Attribute::required("minor", Type::Number, "The second number of that version."),
        ],
    )
    .through("cluster")
});

/// The operation `etcd_settle`.
pub(crate) struct EtcdSettle;

impl Operation<Client> for EtcdSettle {
    fn name(&self) -> &'static str {
        "etcd_settle"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let minor = arguments.get("minor").and_then(Value::as_i64).and_then(|minor| u32::try_from(minor).ok()).unwrap_or_default();
            let all = names(arguments, "through");
            let mut is_sure = false;
            loop {
                let seen = Voters::ask(client, &all).await;
                if let Err(why) = seen.all_healthy() {
                    return Ok(GateAnswer::Waiting(why));
                }
                match at(minor, seen.healthy.iter().map(|(name, look)| (name.as_str(), look))) {
                    At::It(_) if is_sure => {
                        return Ok(GateAnswer::Passed(format!("all members run 3.{minor} for {} s", MONITOR.as_secs())));
                    }
                    At::It(true) => return Ok(GateAnswer::Passed(format!("all members keep their data as 3.{minor} does"))),
                    At::It(false) => is_sure = true,
                    At::Not(why) => return Ok(GateAnswer::Waiting(why)),
                }
                tokio::time::sleep(MONITOR).await;
            }
        })
    }
}

/// Where a cluster is.
#[derive(Debug, PartialEq, Eq)]
enum At {
    /// All members run the version; true: and say that the cluster is at it.
    It(bool),
    /// Not yet.
    Not(String),
}

fn at<'a>(minor: u32, looks: impl Iterator<Item = (&'a str, &'a Look)>) -> At {
    let mut says = true;
    let looks: Vec<(&str, &Look)> = looks.collect();
    let runs = |look: &Look| Version::read(&look.version).map(|version| version.minor);
    // Somebody has gone on already: then it was at this one.
    if looks.iter().any(|(_, look)| runs(look) > Some(minor)) {
        return At::It(true);
    }
    for (name, look) in looks {
        if runs(look) != Some(minor) {
            return At::Not(format!("{name} runs {}", look.version));
        }
        match look.storage {
            Some(storage) if storage != minor => return At::Not(format!("{name} keeps its data as 3.{storage} does")),
            Some(_) => {}
            None => says = false,
        }
    }
    At::It(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(version: &str, storage: Option<u32>) -> Look {
        Look::of_version(version, storage, None)
    }

    #[test]
    fn a_cluster_is_where_its_members_say_that_it_is() {
        let (old, new, late) = (look("3.5.33", None), look("3.6.14", Some(6)), look("3.6.14", Some(5)));
        assert_eq!(at(5, [("a", &old), ("b", &old)].into_iter()), At::It(false));
        assert_eq!(at(6, [("a", &new), ("b", &new)].into_iter()), At::It(true));
        assert_eq!(at(6, [("a", &new), ("b", &late)].into_iter()), At::Not("b keeps its data as 3.5 does".to_owned()));
        assert_eq!(at(6, [("a", &old), ("b", &new)].into_iter()), At::Not("a runs 3.5.33".to_owned()));
        assert_eq!(at(5, [("a", &old), ("b", &late)].into_iter()), At::It(true));
    }
}
