//! The gate `etcd_silent`: no member works. Members of a cluster without a majority are restarted together, and whoever does that looks right before it
//! whether there is one again.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type};

use crate::client::Client;
use crate::look::{Look, look_at};
use crate::operations::names;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Sees that reads go through no member of an etcd cluster: then nothing is lost where several are restarted at once.",
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the cluster."),
            Attribute::required("members", Type::list(Type::String), "The names of all members."),
        ],
    )
    .through("cluster")
});

/// The gate `etcd_silent`.
pub(crate) struct EtcdSilent;

impl Gate<Client> for EtcdSilent {
    fn name(&self) -> &'static str {
        "etcd_silent"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let looks = look_at(client, names(arguments, "members")).await;
            match works(&looks) {
                Some(name) => Err(works_again(name, client.id())),
                None => Ok(GateAnswer::Passed("no member works".to_owned())),
            }
        })
    }
}

/// One that works.
fn works(looks: &BTreeMap<String, Result<Look, String>>) -> Option<&str> {
    let is_well = |seen: &Result<Look, String>| seen.as_ref().is_ok_and(|look| look.trouble().is_none());
    looks.iter().find(|(_, seen)| is_well(seen)).map(|(name, _)| name.as_str())
}

fn works_again(name: &str, cluster: &str) -> Diagnostic {
    Diagnostic::error(
        "The cluster works again",
        format!("When this was planned no member of {cluster} worked, and several were to be restarted at once. By now \"{name}\" works."),
    )
    .with_hint("Plan and apply again: one after the other is restarted then.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_works_is_one_too_many() {
        let well = || Ok(Look::of_version("3.5.16", None, None));
        let alone = || Ok(Look { leader: 0, ..Look::of_version("3.5.16", None, None) });
        let silent = || Err("connection refused".to_owned());
        let told = |b: Result<Look, String>| {
            let looks = BTreeMap::from([("a".to_owned(), silent()), ("b".to_owned(), b)]);
            works(&looks).map(|name| works_again(name, "etcd_cluster.main"))
        };
        assert!(told(silent()).is_none() && told(alone()).is_none());
        let refused = told(well()).unwrap();
        assert_eq!(refused.summary, "The cluster works again");
        assert!(refused.detail.ends_with("By now \"b\" works."), "{}", refused.detail);
    }
}
