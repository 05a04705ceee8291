//! `etcd_downgrade`: a cluster of which all members run one minor version is told that it goes down to the one before, or that it stays after all (facts
//! of etcd, "Way back"). Members then keep their data as the older version does; only then may the first of them be replaced.

use std::sync::LazyLock;

use etcd_client::{DowngradeOptions, Error};
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type, Value};

use super::{Voters, names, passing};
use crate::client::{Client, within};
use crate::look::{Look, reason};
use crate::versions::Version;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Tells an etcd cluster that it goes down to the minor version before, and waits until its members keep their data so; or gives that up.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("through", Type::list(Type::String), "The names of all members."),
            Attribute::optional("to", Type::Number, "The second number of the version that it goes down to; null: it stays what it is."),
        ],
    )
    .through("cluster")
});

/// The operation `etcd_downgrade`.
pub(crate) struct EtcdDowngrade;

impl Operation<Client> for EtcdDowngrade {
    fn name(&self) -> &'static str {
        "etcd_downgrade"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let to = arguments.get("to").and_then(Value::as_i64).and_then(|to| u32::try_from(to).ok());
            let all = Voters::ask(client, &names(arguments, "through")).await;
            let (speaker, _) = match all.speaker() {
                Ok(speaker) => speaker,
                Err(why) => return Ok(GateAnswer::Waiting(why)),
            };
            let looks: Vec<(&str, &Look)> = all.healthy.iter().map(|(name, look)| (name.as_str(), look)).collect();
            let options = match next(to, &looks, &all.troubles) {
                Next::Done(what) => return Ok(GateAnswer::Passed(what)),
                Next::Wait(why) => return Ok(GateAnswer::Waiting(why)),
                Next::Enable(minor) => DowngradeOptions::Enable(format!("3.{minor}.0")),
                Next::Cancel => DowngradeOptions::Cancel,
            };
            let connection = match client.open(speaker).await {
                Ok(connection) => connection,
                Err(why) => return Ok(GateAnswer::Waiting(why)),
            };
            match within(connection.maintenance_client().downgrade(options)).await {
                Ok(_) => Ok(GateAnswer::Waiting("the cluster was told, and has not answered by what it is yet".to_owned())),
                Err(error) => match passing(&error) {
                    Some(why) => Ok(GateAnswer::Waiting(why)),
                    None => Err(refused(client, to, &error)),
                },
            }
        })
    }
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done(String),
    Wait(String),
    Enable(u32),
    Cancel,
}

/// Decides by what members say of themselves. A cluster of which one member runs the older version already needs to be told nothing: it is what the lowest of
/// them is.
fn next(to: Option<u32>, looks: &[(&str, &Look)], troubles: &[String]) -> Next {
    let begun = |to: u32| looks.iter().any(|(_, look)| look.goes_down_to == Some(to));
    let is_begun = looks.iter().any(|(_, look)| look.goes_down_to.is_some());
    let Some(to) = to else {
        return if is_begun { Next::Cancel } else { Next::Done("nothing was begun".to_owned()) };
    };
    let runs = |look: &Look| Version::read(&look.version).map(|version| version.minor);
    if let Some((name, _)) = looks.iter().find(|(_, look)| runs(look) == Some(to)) {
        return Next::Done(format!("{name} runs 3.{to} already"));
    }
    if !troubles.is_empty() {
        return Next::Wait(troubles.join("; "));
    }
    match (begun(to), is_begun) {
        (false, true) => Next::Cancel,
        // Its leader looks every 4 s; before that it would refuse.
        (false, false) => match looks.iter().find(|(_, look)| look.storage < runs(look)) {
            Some((name, _)) => Next::Wait(format!("{name} does not keep its data as it could yet")),
            None => Next::Enable(to),
        },
        (true, _) => {
            let is_kept_so = |look: &Look| look.storage == Some(to);
            let others: Vec<&str> = looks.iter().filter(|(_, look)| !is_kept_so(look)).map(|(name, _)| *name).collect();
            match others.is_empty() {
                true => Next::Done(format!("all members keep their data as 3.{to} does")),
                false => Next::Wait(format!("{} not keep their data as 3.{to} does yet", do_not(&others))),
            }
        }
    }
}

fn do_not(names: &[&str]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "does" } else { "do" })
}

fn refused(client: &Client, to: Option<u32>, error: &Error) -> Diagnostic {
    let what = to.map_or_else(|| "Giving up a downgrade".to_owned(), |to| format!("A downgrade to 3.{to}"));
    Diagnostic::error("etcd refuses a downgrade", format!("{what} of {} was refused: {}.", client.id(), reason(error)))
        .with_hint("Look at `etcdctl endpoint status` and at the log of the leader, then plan again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_say_what_is_next() {
        let (new, told, ready, old) = (
            Look::of_version("3.6.14", Some(6), None),
            Look::of_version("3.6.14", Some(6), Some(5)),
            Look::of_version("3.6.14", Some(5), Some(5)),
            Look::of_version("3.5.33", None, None),
        );
        let of = |to, looks: &[&Look], troubles: &[&str]| {
            let named: Vec<(&str, &Look)> = ["a", "b", "c"].into_iter().zip(looks.iter().copied()).collect();
            next(to, &named, &troubles.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(Some(5), &[&new, &new, &new], &[]), Next::Enable(5));
        assert_eq!(of(Some(5), &[&new, &new], &["member c: down"]), Next::Wait("member c: down".to_owned()));
        assert_eq!(of(Some(5), &[&told, &ready, &told], &[]), Next::Wait("a, c do not keep their data as 3.5 does yet".to_owned()));
        assert_eq!(of(Some(5), &[&ready, &ready, &ready], &[]), Next::Done("all members keep their data as 3.5 does".to_owned()));
        assert_eq!(of(Some(5), &[&ready, &old], &["member c: down"]), Next::Done("b runs 3.5 already".to_owned()));
        let rising = Look::of_version("3.6.14", Some(5), None);
        assert_eq!(of(Some(5), &[&new, &rising], &[]), Next::Wait("b does not keep its data as it could yet".to_owned()));
        assert_eq!(of(Some(4), &[&told, &told, &told], &[]), Next::Cancel);
        assert_eq!(of(None, &[&told, &ready], &[]), Next::Cancel);
        assert_eq!(of(None, &[&new, &new], &[]), Next::Done("nothing was begun".to_owned()));
    }
}
