//! What is around the objects that are asked about in one go, and is none of them: the pods of workloads and of those whom Services lead to.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::client::{Client, Place};
use crate::look::inside;
use crate::manifest::Name;
use crate::pods_by_hand::{self, Changed, Pods};
use crate::question::Question;

/// What is around those objects of which nobody else may set fields.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// Where there are workloads, or Services.
    namespaces: BTreeSet<String>,
    workloads: Vec<Name>,
    pods: Pods,
    /// Where they could not be listed.
    unlisted: BTreeSet<String>,
}

impl Surroundings {
    /// What the questions tell of it, without the pods.
    pub(crate) fn of<'a>(questions: impl Iterator<Item = &'a Question>) -> Self {
        let mut found = Self::default();
        for Question { name, exclusive, .. } in questions.filter(|q| q.is_known) {
            let is_workload = pods_by_hand::is_workload(&name.kind);
            if is_workload {
                found.workloads.push(Name { namespace: inside(&name.namespace).to_owned(), ..name.clone() });
            }
            if *exclusive && (is_workload || name.kind == "Service") {
                found.namespaces.insert(inside(&name.namespace).to_owned());
            }
        }
        found
    }

    /// With the pods, as they are now.
    pub(crate) async fn with_pods(mut self, client: &Client, at_once: usize) -> Self {
        self.unlisted = std::mem::take(&mut self.namespaces);
        self.pods = pods_by_hand::listed(client, self.unlisted.clone(), at_once).await;
        self.unlisted.retain(|namespace| !self.pods.contains_key(namespace));
        self
    }

    /// True if something of an object would be told of pods, and these could not be listed.
    pub(crate) fn hides_pods(&self, place: &Place, is_exclusive: bool) -> bool {
        let kind = place.served.kind.as_str();
        is_exclusive
            && (pods_by_hand::is_workload(kind) || kind == "Service")
            && place.namespace.as_ref().is_some_and(|namespace| self.unlisted.contains(namespace))
    }

    fn pods(&self, place: &Place) -> &[Json] {
        place.namespace.as_ref().and_then(|n| self.pods.get(n)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The pods of a workload whose images somebody changed.
    pub(crate) fn altered(&self, place: &Place, question: &Question, live: &Json) -> Vec<(&Json, Vec<Changed>)> {
        let kind = &place.served.kind;
        let is_looked_into = question.exclusive && pods_by_hand::is_workload(kind);
        if is_looked_into { pods_by_hand::altered(kind, live, self.pods(place)) } else { Vec::new() }
    }

    /// Who is behind a Service of ours, and none of ours.
    pub(crate) fn strangers(&self, place: &Place, question: &Question, live: &Json) -> Vec<String> {
        if !question.exclusive || place.served.kind != "Service" {
            return Vec::new();
        }
        let beside = self.workloads.iter().filter(|w| Some(&w.namespace) == place.namespace.as_ref()).cloned().collect::<Vec<_>>();
        let found = pods_by_hand::strangers(live, self.pods(place), &beside);
        found.into_iter().map(|pod| format!("it leads to the pod {pod}, too, which has its labels and is none of ours")).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pods_why::{deployments, pods};

    #[tokio::test]
    async fn what_is_not_known_of_pods_is_said() {
        let (client, _) = crate::mock::client(|_, path| match path {
            "/api/v1/namespaces/refused/pods" => crate::mock::refused(403, "pods is forbidden: User \"u\" cannot list resource \"pods\""),
            _ => (200, json!({ "items": [] })),
        })
        .await;
        let namespaces = ["listed", "refused"].map(str::to_owned).into();
        let found = Surroundings { namespaces, ..Surroundings::default() }.with_pods(&client, 2).await;
        for (place, is_exclusive, hidden) in [
            (deployments("refused"), true, true),
            (deployments("listed"), true, false),
            (deployments("unasked"), true, false),
            // Where others may set what they like nothing is told of pods, and of what has none neither.
            (deployments("refused"), false, false),
            (pods("refused"), true, false),
        ] {
            assert_eq!(found.hides_pods(&place, is_exclusive), hidden, "{:?} {is_exclusive}", place.namespace);
        }
    }
}
