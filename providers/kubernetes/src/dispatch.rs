//! Hands the questions of a refresh to whom each is for; each of them asks in batches of its own.

use std::collections::BTreeMap;

use futures::future::join_all;
use karmaform_model::{Ask, Diagnostic, Object};

use crate::archive::{self, KubernetesArchive};
use crate::archive_look;
use crate::client::Client;
use crate::look::Rehearsal;
use crate::{certificate, job, list, look, membership, owner, pod, pod_look, preflight};

type Answer = Result<Option<Object>, Diagnostic>;

/// Answers all asks, in their order.
pub(crate) async fn observe(client: &Client, archive: &KubernetesArchive, asks: &[Ask], rehearsal: Option<Rehearsal>) -> Vec<Answer> {
    let mut kinds: BTreeMap<&str, Vec<(usize, &Ask)>> = BTreeMap::new();
    for numbered in asks.iter().enumerate() {
        kinds.entry(&numbered.1.resource_type).or_default().push(numbered);
    }
    let looks = kinds.into_iter().map(|(kind, numbered)| async move {
        let (numbers, asks): (Vec<usize>, Vec<&Ask>) = numbered.into_iter().unzip();
        let answers = match kind {
            pod::KIND => pod_look::observe(client, &asks).await,
            archive::KIND => archive_look::observe(client, archive, &asks, rehearsal).await,
            list::KIND => list::observe(client, &asks).await,
            certificate::KIND | job::KIND => asks.iter().map(|ask| Ok(ask.known.clone())).collect(),
            membership::KIND => membership::observe(client, &asks).await,
            preflight::KIND if rehearsal.is_none() => asks.iter().map(|ask| Ok(ask.known.clone())).collect(),
            preflight::KIND => preflight::observe(client, &asks).await,
            owner::KIND => owner::observe(client, &asks).await,
            _ => look::observe(client, &asks, rehearsal).await,
        };
        numbers.into_iter().zip(answers)
    });
    let mut answers: Vec<(usize, Answer)> = join_all(looks).await.into_iter().flatten().collect();
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
