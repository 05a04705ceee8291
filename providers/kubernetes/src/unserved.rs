//! What is told of a kind that a server does not serve in the wanted version, with those in which it does.

use karmaform_model::Diagnostic;

use crate::client::Client;
use crate::manifest::{self, Name};
use crate::question::Question;

/// The error about what is wanted.
pub(crate) async fn unserved(client: &Client, question: &Question) -> Diagnostic {
    let Name { kind, group, .. } = &question.name;
    let version = question.wanted.as_ref().and_then(manifest::api_version).unwrap_or(group);
    let mut others = Vec::new();
    for other in client.versions(group).await.unwrap_or_default() {
        if matches!(client.kind(&other, kind).await, Ok(Some(_))) {
            others.push(other);
        }
    }
    let place = client.place();
    let error = Diagnostic::error("Kind is not known to the cluster", format!("{place} serves no {kind} of {version}."));
    if others.is_empty() {
        return error.with_hint("Install what brings it first: its CRD, with what else belongs to it.");
    }
    error.with_hint(format!("It serves {kind} of {}: use that version.", others.join(" and ")))
}
